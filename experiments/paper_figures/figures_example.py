"""Figures of the paper's two examples, and of one person's choice in the first.

*The example*: two users whose sensitivities are uniform on [1, 2] (virtual cost 2c − 1), variance 1/4, everybody's
weight on the error 1 ([F], section 6.1). *The estimation example*: most people at a loss of 1/√n, √n of them at 1 ([F],
after Theorem 1).
"""

from typing import TYPE_CHECKING

import numpy as np

from experiments.paper_figures.figures import (
    BLACK,
    BLUE,
    GREEN,
    ORANGE,
    RED,
    STYLES,
    Look,
    PaperFigure,
    labelled,
    log_axes,
)
from hushbid.allocation import allocate
from hushbid.common.arrays import FloatArray
from hushbid.estimation import best_weights, minimax_bounds, mse_of, near_optimal_weights
from hushbid.mechanism import Market
from hushbid.priors import Uniform

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

__all__ = ["most_sure", "odds", "promise", "schedule", "two_users", "worked_example"]

PRIOR, VARIANCE = Uniform(1.0, 2.0), 0.25
QUANTITIES = {"mse": "mean squared error", "objective": "platform's objective", "loss": "user 1's privacy loss"}


def two_users(quick: bool = False) -> PaperFigure:
    """The nine panels: error, objective and user 1's loss; central, local, and local − central."""
    points = 13 if quick else 41
    bids = np.linspace(1.0, 2.0, points)
    second, first = np.meshgrid(bids, bids)
    table = {"c1": first.ravel(), "c2": second.ravel()}
    # every pair of bids, solved in both settings
    for setting in ("central", "local"):
        found = [
            allocate(PRIOR.virtual_cost(np.array(pair)), setting=setting, variance=VARIANCE)
            for pair in zip(table["c1"].tolist(), table["c2"].tolist(), strict=True)
        ]
        table[f"{setting}_mse"] = np.array([one.mse for one in found])
        table[f"{setting}_objective"] = np.array([one.objective for one in found])
        table[f"{setting}_loss"] = np.array([one.privacy_loss[0] for one in found])
    for quantity in QUANTITIES:
        table[f"difference_{quantity}"] = table[f"local_{quantity}"] - table[f"central_{quantity}"]

    def draw(canvas: "Canvas") -> None:
        axes = canvas.subplots(3, 3, sharex=True, sharey=True)
        for row, (quantity, words) in enumerate(QUANTITIES.items()):
            both = np.concatenate([table[f"{setting}_{quantity}"] for setting in STYLES])
            for column, kind in enumerate(("central", "local", "difference")):
                panel = axes[row, column]
                values = table[f"{kind}_{quantity}"].reshape(points, points).T
                if kind == "difference":
                    reach = float(np.abs(values).max())
                    shown = panel.pcolormesh(
                        bids, bids, values, cmap="PuOr_r", vmin=-reach, vmax=reach, rasterized=True
                    )
                else:
                    low, high = both.min(), both.max()
                    shown = panel.pcolormesh(bids, bids, values, cmap="cividis", vmin=low, vmax=high, rasterized=True)
                canvas.colorbar(shown, ax=panel, shrink=0.9)
                panel.set_title(f"{words},\n{'local − central' if kind == 'difference' else kind}")
                panel.set_aspect("equal")
                if row == 2:
                    panel.set_xlabel("$c_1$")
                if column == 0:
                    panel.set_ylabel("$c_2$")

    return PaperFigure(
        name="two-users",
        title="Two users, sensitivities uniform on [1, 2], variance 1/4: error, objective and user 1's privacy loss.",
        table=table,
        draw=draw,
        size=(9.0, 8.4),
    )


def worked_example(quick: bool = False) -> PaperFigure:
    """n times the error of four ways to weigh people, most of whom allow 1/√n and √n of whom allow 1."""
    sizes = np.unique(np.round(np.geomspace(4, 1e4 if quick else 1e6, 9 if quick else 21)))
    table = {"n": sizes} | {
        name: np.empty(sizes.size) for name in ("all_active", "equal_weights", "capped", "best", "lower_bound")
    }
    for j, size in enumerate(sizes.tolist()):
        n = int(size)
        losses = np.where(np.arange(n) < int(n - np.sqrt(n)), 1 / np.sqrt(n), 1.0)
        errors = {
            "all_active": mse_of(losses / losses.sum(), losses, setting="central", variance=VARIANCE),
            "equal_weights": mse_of(np.full(n, 1 / n), losses, setting="central", variance=VARIANCE),
            "capped": near_optimal_weights(losses, setting="central", variance=VARIANCE).mse,
            "best": best_weights(losses, setting="central", variance=VARIANCE).mse,
            "lower_bound": minimax_bounds(losses, "central").lower,
        }
        for name, error in errors.items():
            table[name][j] = error * n

    def draw(canvas: "Canvas") -> None:
        axes = canvas.subplots()
        looks: tuple[tuple[str, str, Look], ...] = (
            ("all_active", "use all that is allowed", {"color": RED, "linestyle": "--", "marker": "s"}),
            ("capped", "the paper's cap", {"color": ORANGE, "linestyle": "-.", "marker": "^"}),
            ("equal_weights", "equal weights", {"color": GREEN, "linestyle": ":", "marker": "v"}),
            ("best", "best (exact cap)", {"color": BLUE, "linestyle": "-", "marker": "o"}),
            ("lower_bound", "no private estimator is below", {"color": BLACK, "linestyle": "-", "marker": ""}),
        )
        for name, words, style in looks:
            axes.plot(sizes, table[name], label=words, **style)
        log_axes(axes, x="people n", y="n × mean squared error", title="Who allows more should not always be used more")
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))

    return PaperFigure(
        name="worked-example",
        title="Most people allow 1/√n, √n people allow 1: n times the error of five estimators.",
        table=table,
        draw=draw,
    )


def schedule(quick: bool = False) -> PaperFigure:
    """What one person faces as she changes her bid, the others' fixed: loss, payment and surplus."""
    others = np.linspace(1.0, 2.0, 41)[1::2]
    truth = 1.2
    bids = np.linspace(1.0, 2.0, 41 if quick else 201)
    table: dict[str, FloatArray] = {"bid": bids}
    for setting in STYLES:
        market = Market(prior=PRIOR, setting=setting, user_weight=0.0, buyer_weight=2000.0)  # type: ignore[arg-type]
        loss, payment = market.acquire([truth, *others]).schedule(user=0).at(bids)
        table[f"{setting}_loss"], table[f"{setting}_payment"] = loss, payment
        table[f"{setting}_surplus"] = payment - truth * loss

    def draw(canvas: "Canvas") -> None:
        panels = canvas.subplots(1, 3, sharex=True)
        for panel, (name, words) in zip(
            panels,
            {"loss": "privacy loss", "payment": "payment", "surplus": "payment − cost, if her cost is 1.2"}.items(),
            strict=True,
        ):
            for setting, style in STYLES.items():
                panel.plot(bids, table[f"{setting}_{name}"], label=setting, **(style | {"marker": ""}))
            labelled(panel, x="her bid", y="", title=words)
        panels[2].axvline(truth, color=BLACK, linewidth=0.8)
        panels[2].annotate("the truth", (truth, 0.02), xytext=(truth + 0.04, 0.02), fontsize=8)
        panels[0].legend()

    return PaperFigure(
        name="schedule",
        title="Twenty others fixed: a higher bid means less loss and less pay, and the truth is best.",
        table=table,
        draw=draw,
    )


def most_sure(before: float | FloatArray, loss: float | FloatArray) -> FloatArray:
    """The most that somebody who gave a fact about a person the chance ``before`` can become sure of it.

    Differential privacy bounds by exp(loss) what the person's taking part does to the odds; what other people's data
    say about her comes on top, and would without her.
    """
    odds_before = np.asarray(before) / (1.0 - np.asarray(before))
    after = odds_before * np.exp(loss)
    return np.asarray(after / (1.0 + after))


def odds(quick: bool = False) -> PaperFigure:
    """How sure somebody can become, against the privacy loss, for four chances before."""
    losses = np.linspace(0.0, 6.0, 13 if quick else 121)
    chances = (0.5, 0.1, 0.01, 0.001)
    table: dict[str, FloatArray] = {"privacy_loss": losses}
    table |= {f"from_{chance:g}": most_sure(chance, losses) for chance in chances}

    def draw(canvas: "Canvas") -> None:
        axes = canvas.subplots()
        looks = ((BLUE, "-"), (ORANGE, "-."), (GREEN, "--"), (RED, ":"))
        for chance, (colour, dashes) in zip(chances, looks, strict=True):
            label = f"{100 * chance:g} % before"
            axes.plot(losses, 100 * table[f"from_{chance:g}"], color=colour, linestyle=dashes, label=label)
        axes.plot([1.0], [100 * float(most_sure(0.5, 1.0))], "o", color=BLUE)
        axes.annotate("ε = 1: from even odds\nto at most 73 %", (1.0, 73.1), xytext=(0.05, 84), fontsize=8)
        labelled(
            axes,
            x="privacy loss ε",
            y="at most so sure after, in %",
            title="What taking part can tell about one person",
        )
        axes.set_ylim(0, 101)
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))

    return PaperFigure(
        name="odds",
        title="How sure somebody can become about a person because she took part, at most.",
        table=table,
        draw=draw,
        size=(7.0, 3.4),
    )


def promise(quick: bool = False) -> PaperFigure:
    """How likely each output is if a person's datum is at either end of the range, and the ratio of the two."""
    outputs = np.linspace(-3.0, 4.0, 71 if quick else 281)
    losses = (0.5, 2.0)
    table: dict[str, FloatArray] = {"output": outputs}
    for loss in losses:
        for end in (0, 1):
            table[f"end_{end}_loss_{loss:g}"] = loss / 2.0 * np.exp(-loss * np.abs(outputs - end))
        table[f"ratio_{loss:g}"] = table[f"end_1_loss_{loss:g}"] / table[f"end_0_loss_{loss:g}"]

    def draw(canvas: "Canvas") -> None:
        panels = canvas.subplots(1, 3, sharex=True)
        ends: tuple[Look, ...] = ({"color": BLUE, "linestyle": "-"}, {"color": RED, "linestyle": "--"})
        for panel, loss in zip(panels[:2], losses, strict=True):
            for end, look in enumerate(ends):
                panel.plot(outputs, table[f"end_{end}_loss_{loss:g}"], label=f"her datum is {end}", **look)
            labelled(panel, x="what others see", y="", title=f"how likely it is, ε = {loss:g}")
            panel.set_ylim(0.0, 1.25)
            panel.legend(fontsize=7.5)
        for loss, look in zip(
            losses, ({"color": GREEN, "linestyle": "-"}, {"color": ORANGE, "linestyle": "-."}), strict=True
        ):
            panels[2].plot(outputs, table[f"ratio_{loss:g}"], label=f"ε = {loss:g}", **look)
            for bound in (-loss, loss):
                panels[2].axhline(np.exp(bound), linewidth=0.7, linestyle=":", color=look["color"])
        panels[2].set_yscale("log")
        panels[2].set_yticks(
            [np.exp(-2), np.exp(-0.5), 1, np.exp(0.5), np.exp(2)], ["0.14", "0.61", "1", "1.65", "7.4"]
        )
        panels[2].minorticks_off()
        labelled(panels[2], x="what others see", y="", title="how much likelier with 1 than with 0")
        panels[2].legend(fontsize=7.5)

    return PaperFigure(
        name="promise",
        title="Whatever is seen, it is at most exp(ε) times as likely with one datum as with another.",
        table=table,
        draw=draw,
        size=(9.0, 3.2),
    )
