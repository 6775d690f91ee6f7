"""Figures of what disturbs a market: a cap, a wrong prior, people who collude, people who come twice.

All in one market: a hundred people, data between 0 and 1 of variance 1/4, sensitivities uniform on [1, 2], a buyer to
whom one squared unit of error is worth 10,000 (to halve a standard error of 0.1 is worth 75), and people who do not
care about the estimate. Bids stand at equally spaced quantiles unless drawn.
"""

from typing import TYPE_CHECKING

import numpy as np

from experiments.paper_figures.figures import BLACK, STYLES, PaperFigure, labelled, log_axes
from hushbid.common.arrays import FloatArray, IndexArray
from hushbid.estimation import best_weights
from hushbid.mechanism import Market
from hushbid.payments import rents
from hushbid.priors import Uniform

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

__all__ = ["cap", "collusion", "group_surplus", "identities", "wrong_prior"]


PRIOR = Uniform(1.0, 2.0)
PEOPLE = 100


def market_in(setting: str, *, prior: Uniform = PRIOR, cap: float | None = None) -> Market:
    """The market of these figures."""
    return Market(
        prior=prior,
        setting=setting,  # type: ignore[arg-type]
        user_weight=0.0,
        buyer_weight=10_000.0,
        max_privacy_loss=cap,
    )


def quantiles(n: int) -> FloatArray:
    """Bids at the middles of n equal parts of the distribution."""
    return np.asarray(1.0 + (np.arange(n) + 0.5) / n)


def cap(quick: bool = False) -> PaperFigure:
    """Error, payment and cost against the cap, as shares of what they are without one."""
    shares = np.linspace(0.2, 1.1, 7 if quick else 37)
    table = {"cap_share": shares}
    for setting in STYLES:
        free = market_in(setting).acquire(quantiles(PEOPLE))
        rows = []
        for share in shares.tolist():
            capped = market_in(setting, cap=share * float(free.privacy_loss.max())).acquire(quantiles(PEOPLE))
            rows.append(
                (
                    capped.privacy_loss.max(),
                    capped.mse / free.mse,
                    capped.total_payment / free.total_payment,
                    _cost(capped.mse, capped.total_payment) / _cost(free.mse, free.total_payment),
                )
            )
        for name, column in zip(("largest_loss", "mse", "payment", "cost"), np.array(rows).T, strict=True):
            table[f"{setting}_{name}"] = column

    def draw(canvas: "Canvas") -> None:
        panels = canvas.subplots(1, 3, sharex=True)
        for panel, (name, words) in zip(
            panels, {"mse": "squared error", "payment": "payments", "cost": "platform's cost"}.items(), strict=True
        ):
            for setting, style in STYLES.items():
                panel.plot(shares, table[f"{setting}_{name}"], label=setting, **(style | {"marker": ""}))
            panel.axhline(1.0, color=BLACK, linewidth=0.7)
            labelled(panel, x="cap / largest loss without it", y="", title=f"{words},\nrelative to no cap")
        panels[0].legend()

    return PaperFigure(
        name="cap",
        title="A cap that bites costs accuracy, and little until it is tight.",
        table=table,
        draw=draw,
    )


def wrong_prior(quick: bool = False) -> PaperFigure:
    """Sensitivities are uniform on [1, 2]; the platform believes that they begin or end elsewhere."""
    points = 5 if quick else 25
    beliefs = [(low, 2.0) for low in np.linspace(0.0, 1.0, points).tolist()]
    beliefs += [(1.0, high) for high in np.linspace(1.25, 4.0, points).tolist()]
    # the same people under every belief
    rng = np.random.default_rng(20220715)
    populations = [PRIOR.sample(PEOPLE, rng=rng) for _ in range(4 if quick else 40)]
    table: dict[str, FloatArray] = {
        "believed_low": np.array([low for low, _ in beliefs]),
        "believed_high": np.array([high for _, high in beliefs]),
    }
    # each belief relative to the right one
    for setting in STYLES:
        right = _mean_run(market_in(setting), populations)
        wrong = [_mean_run(market_in(setting, prior=Uniform(*belief)), populations) for belief in beliefs]
        for name, column in zip(("mse", "payment", "cost"), (np.array(wrong) / right).T, strict=True):
            table[f"{setting}_{name}"] = column

    def draw(canvas: "Canvas") -> None:
        panels = canvas.subplots(2, 3, sharex="row")
        rows = (("believed_low", slice(None, points), 1.0), ("believed_high", slice(points, None), 2.0))
        for row, (column, part, truth) in enumerate(rows):
            for panel, (name, words) in zip(
                panels[row],
                {"mse": "squared error", "payment": "payments", "cost": "platform's cost"}.items(),
                strict=True,
            ):
                for setting, style in STYLES.items():
                    values = table[f"{setting}_{name}"][part]
                    panel.plot(table[column][part], values, label=setting, **(style | {"marker": ""}))
                panel.axvline(truth, color=BLACK, linewidth=0.7)
                panel.axhline(1.0, color=BLACK, linewidth=0.7)
                end = "lower" if row == 0 else "upper"
                labelled(panel, x=f"believed {end} end (true: {truth:g})", y="", title=words if row == 0 else "")
        panels[0, 0].legend()

    return PaperFigure(
        name="wrong-prior",
        title="A wrong prior costs money or accuracy, never the truth: people still do best to bid truthfully.",
        table=table,
        draw=draw,
        size=(8.6, 5.2),
    )


def collusion(quick: bool = False) -> PaperFigure:
    """What two people can gain together by misreporting, in per cent of what a seller is paid on average."""
    sizes = np.array([5, 8] if quick else [3, 5, 8, 12, 20, 50, 100, 200, 500])
    table: dict[str, FloatArray] = {"n": sizes.astype(float)}
    for setting in STYLES:
        rows = [_best_collusion(market_in(setting), int(n), points=5 if quick else 9) for n in sizes]
        for name, column in zip(("average_payment", "gain"), np.array(rows).T, strict=True):
            table[f"{setting}_{name}"] = column

    def draw(canvas: "Canvas") -> None:
        axes = canvas.subplots()
        for setting, style in STYLES.items():
            gain = 100 * table[f"{setting}_gain"] / table[f"{setting}_average_payment"]
            axes.plot(sizes, np.maximum(gain, 1e-4), label=setting, **style)
        log_axes(
            axes,
            x="people n",
            y="% of an average payment",
            title="Largest joint gain found of any of four pairs",
        )
        axes.legend()

    return PaperFigure(
        name="collusion",
        title="Two people who know everybody's bid gain a little by agreeing, and next to nothing among many.",
        table=table,
        draw=draw,
        size=(6.0, 3.4),
    )


def identities(quick: bool = False) -> PaperFigure:
    """What the cheapest of a hundred people gains by coming several times, and what that does to the error."""
    counts = np.arange(1, 4 if quick else 9)
    table: dict[str, FloatArray] = {"identities": counts.astype(float)}
    for setting in STYLES:
        market = market_in(setting)
        rows = [_several(market, quantiles(PEOPLE), int(count), points=5 if quick else 33) for count in counts]
        for name, column in zip(("surplus", "loss", "stated_mse", "true_mse"), np.array(rows).T, strict=True):
            table[f"{setting}_{name}"] = column

    def draw(canvas: "Canvas") -> None:
        panels = canvas.subplots(1, 3, sharex=True)
        for setting, style in STYLES.items():
            panels[0].plot(counts, table[f"{setting}_surplus"], label=setting, **style)
            panels[1].plot(counts, table[f"{setting}_loss"], label=setting, **style)
            ratio = table[f"{setting}_true_mse"] / table[f"{setting}_stated_mse"]
            panels[2].plot(counts, ratio, label=setting, **style)
        for panel, words in zip(
            panels, ("her surplus, money", "her privacy loss in all", "true / stated squared error"), strict=True
        ):
            labelled(panel, x="identities", y="", title=words)
        panels[0].legend()

    return PaperFigure(
        name="identities",
        title="Coming several times pays, costs privacy, and makes the stated error too small: check identities.",
        table=table,
        draw=draw,
    )


def group_surplus(market: Market, bids: FloatArray, rows: IndexArray, stated: FloatArray, cost: FloatArray) -> float:
    """What the people ``rows`` have together, payment less true cost, if they state ``stated``."""
    changed = bids.copy()
    changed[rows] = stated
    costs = np.asarray(market.prior.virtual_cost(changed))
    rule = market.rule(costs)
    loss = rule.at(rows, costs[rows]).loss
    bought = np.flatnonzero(loss > 0)
    rent = rents(rule, PRIOR, rows[bought], stated[bought]).estimate
    return float(rent.sum() + np.dot(stated - cost, loss))


def _best_collusion(market: Market, n: int, *, points: int) -> tuple[float, float]:
    """An average payment, and the largest joint gain of four pairs of the cheapest and those at the margin."""
    bids = quantiles(n)
    honest = market.acquire(bids)
    last, next_one = max(honest.active - 1, 1), min(honest.active, n - 1)
    pairs = {(0, 1), (0, last), (0, next_one), (min(last, next_one - 1), next_one)}
    gains = [_joint_gain(market, bids, np.array(pair), points) for pair in sorted(pairs)]
    return honest.total_payment / honest.active, max(gains)


def _joint_gain(market: Market, bids: FloatArray, rows: IndexArray, points: int) -> float:
    """What the best joint bid on a refined grid adds to the honest surplus of two people."""
    truth = bids[rows]
    honest = group_surplus(market, bids, rows, truth, truth)
    best, place = honest, truth
    low, high = np.array([1.0, 1.0]), np.array([2.0, 2.0])
    for _ in range(3):
        first, second = (np.linspace(low[k], high[k], points) for k in (0, 1))
        for stated in np.stack(np.meshgrid(first, second), axis=-1).reshape(-1, 2):
            found = group_surplus(market, bids, rows, stated, truth)
            if found > best:
                best, place = found, stated
        step = (high - low) / (points - 1)
        low, high = np.maximum(place - step, 1.0), np.minimum(place + step, 2.0)
    return best - honest


def _several(market: Market, bids: FloatArray, count: int, *, points: int) -> tuple[float, float, float, float]:
    """The cheapest person under ``count`` identities that all state the same, at the best such statement."""
    truth = float(bids[0])
    everybody = np.concatenate([np.full(count, truth), bids[1:]])
    rows = np.arange(count)
    best, stated = -np.inf, truth
    for report in np.unique(np.append(np.linspace(1.0, 2.0, points), truth)).tolist():
        found = group_surplus(market, everybody, rows, np.full(count, report), np.full(count, truth))
        if found > best:
            best, stated = found, report
    everybody[:count] = stated
    costs = np.asarray(market.prior.virtual_cost(everybody))
    losses = market.allocation(costs).privacy_loss
    weights = best_weights(losses, setting=market.setting, variance=0.25)
    # One datum with the identities' joint weight: its variance counts by the square of the sum.
    own = weights.weights[:count]
    truly = weights.mse + 0.25 * (own.sum() ** 2 - np.square(own).sum())
    return best, float(losses[:count].sum()), weights.mse, float(truly)


def _mean_run(market: Market, populations: list[FloatArray]) -> FloatArray:
    """Mean error, payment and cost over the populations."""
    outcomes = [market.acquire(bids) for bids in populations]
    figures = [(one.mse, one.total_payment, _cost(one.mse, one.total_payment)) for one in outcomes]
    return np.asarray(np.mean(figures, axis=0))


def _cost(mse: float, payment: float) -> float:
    return 10_000.0 * mse + payment
