"""Figures of what the paper proves about large numbers of people."""

from typing import TYPE_CHECKING

import numpy as np

from experiments.paper_figures.figures import (
    BLACK,
    BLUE,
    GREEN,
    ORANGE,
    RED,
    STYLES,
    PaperFigure,
    log_axes,
)
from hushbid.allocation import allocate
from hushbid.estimation import best_weights, minimax_bounds, near_optimal_weights
from hushbid.priors import Uniform

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

__all__ = ["band", "central_threshold", "drop_threshold", "growth", "minimax", "settings"]

VARIANCE = 0.25


def central_threshold(n: int, cost: float, variance: float) -> float:
    """How much dearer than n − 1 equals a person must be before the central optimum drops her.

    [F] Prop. 6 with its variance where it belongs: ``V·(2ψ(n+1)²)^{1/3}/(n−1)``, exact while at most ``3nψ``.
    """
    return float(variance * np.cbrt(2.0 * cost * (n + 1.0) ** 2) / (n - 1.0))


def drop_threshold(n: int, cost: float, *, setting: str, variance: float) -> float:
    """How much dearer than n − 1 equals a person is when the optimum drops her, by bisection; 0 if any dearer."""
    low, high = cost * 1e-12, cost * 1e9
    if not _bought(n, cost, low, setting, variance):
        return 0.0
    for _ in range(80):
        middle = float(np.sqrt(low * high))
        low, high = (middle, high) if _bought(n, cost, middle, setting, variance) else (low, middle)
    return high


def _bought(n: int, cost: float, distance: float, setting: str, variance: float) -> bool:
    """Whether the person at ``cost + distance`` is bought from, beside n − 1 people at ``cost``."""
    if setting == "central":  # equals share equally: together they are one person with a variance n − 1 times smaller
        pair = allocate([cost, cost + distance], variance=[variance / (n - 1), variance], error_weight=n + 1.0)
        return bool(pair.privacy_loss[1] > 0)
    # At most 2.72·V^(3/4)·√(A/ψ) are bought from (docs/concepts/proofs.md): more equals change nothing.
    equals = min(n - 1, int(2.72 * variance**0.75 * np.sqrt((n + 1.0) / cost)) + 3)
    costs = np.append(np.full(equals, cost), cost + distance)
    found = allocate(costs, setting="local", variance=variance, error_weight=n + 1.0)
    return bool(found.privacy_loss[-1] > 0)


def band(quick: bool = False) -> PaperFigure:
    """Where the dearer user n is dropped, over n: between the curves only the local setting leaves her alone."""
    costs = (1.0, 0.01, 0.0001)
    sizes = np.unique(np.round(np.geomspace(10, 1e6, 6 if quick else 31)))
    table = {"n": sizes}
    # the threshold by solving, in both settings, and by the paper's formula
    for cost in costs:
        table[f"central_{cost:g}"] = np.array(
            [drop_threshold(int(n), cost, setting="central", variance=VARIANCE) for n in sizes]
        )
        table[f"local_{cost:g}"] = np.array(
            [drop_threshold(int(n), cost, setting="local", variance=VARIANCE) for n in sizes]
        )
        table[f"formula_{cost:g}"] = np.array([central_threshold(int(n), cost, VARIANCE) for n in sizes])

    def draw(canvas: "Canvas") -> None:
        panels = canvas.subplots(1, len(costs), sharex=True)
        for panel, cost in zip(panels, costs, strict=True):
            central, local = table[f"central_{cost:g}"], table[f"local_{cost:g}"]
            floor = central.min() / 300
            lower = np.maximum(local, floor)
            panel.fill_between(sizes, lower, central, color=BLUE, alpha=0.13, linewidth=0)
            panel.plot(sizes, central, label="central drops her above", **(STYLES["central"] | {"marker": ""}))
            some = local > 0
            panel.plot(sizes[some], local[some], label="local drops her above", **STYLES["local"])
            if not some.all():
                where = f"from n ≈ {sizes[~some][0]:,.0f} on" if some.any() else "at every n"
                words = f"{where}, local drops\nanybody dearer at all"
                panel.text(0.97, 0.04, words, transform=panel.transAxes, fontsize=7.5, color=RED, ha="right")
            panel.plot(sizes[::3], table[f"formula_{cost:g}"][::3], "x", color=BLACK, label="closed form, central")
            log_axes(panel, x="people n", y="", title=f"the others' virtual cost {cost:g}")
            panel.set_ylim(floor, central.max() * 2)
        panels[0].set_ylabel("how much dearer user n is")
        panels[1].legend(loc="upper right", fontsize=7)

    return PaperFigure(
        name="band",
        title="In the shaded band the local optimum leaves user n alone, and the central one buys from her.",
        table=table,
        draw=draw,
        size=(9.6, 3.5),
    )


def minimax(quick: bool = False) -> PaperFigure:
    """Lower bound, the paper's estimators and the best linear one, for losses of 1/√n and 1, in both settings."""
    sizes = np.unique(np.round(np.geomspace(10, 1e4 if quick else 1e6, 7 if quick else 21)))
    table = {"n": sizes}
    for setting in ("central", "local"):
        rows = []
        for size in sizes.tolist():
            n = int(size)
            losses = np.where(np.arange(n) < int(n - np.sqrt(n)), 1 / np.sqrt(n), 1.0)
            best = best_weights(losses, setting=setting, variance=VARIANCE).mse
            near = near_optimal_weights(losses, setting=setting, variance=VARIANCE).mse
            bounds = minimax_bounds(losses, setting)
            rows.append((bounds.lower, best, near, bounds.upper))
        for name, column in zip(("lower", "best", "paper", "upper"), np.array(rows).T, strict=True):
            table[f"{setting}_{name}"] = column

    def draw(canvas: "Canvas") -> None:
        panels = canvas.subplots(1, 2, sharey=True)
        for panel, setting in zip(panels, STYLES, strict=True):
            lower, upper = table[f"{setting}_lower"], table[f"{setting}_upper"]
            panel.fill_between(sizes, lower, upper, color=BLUE, alpha=0.1, linewidth=0)
            panel.plot(sizes, table[f"{setting}_paper"], "^-.", color=ORANGE, label="the paper's estimator")
            panel.plot(sizes, table[f"{setting}_best"], "o-", color=BLUE, label="best linear estimator")
            panel.plot(sizes, upper, "--", color=GREEN, label="guaranteed for every distribution")
            panel.plot(sizes, lower, "-", color=BLACK, label="no private estimator guarantees less")
            log_axes(panel, x="people n", y="", title=setting)
        panels[0].set_ylabel("mean squared error")
        panels[0].legend(loc="lower left")

    return PaperFigure(
        name="minimax",
        title="Minimax bounds with explicit constants against the error achieved; losses 1/√n, and 1 for √n people.",
        table=table,
        draw=draw,
    )


def growth(quick: bool = False) -> PaperFigure:
    """How many people are bought from: about n^(5/6) central and n^(1/2) local, for prices bounded away from 0."""
    sizes = np.unique(np.round(np.geomspace(10, 1e5 if quick else 1e7, 5 if quick else 19)))
    prior = Uniform(1.0, 2.0)
    table = {"n": sizes}
    for setting in STYLES:
        active = []
        for size in sizes.tolist():
            n = int(size)
            costs = prior.virtual_cost(1.0 + (np.arange(n) + 0.5) / n)
            active.append(allocate(costs, setting=setting, variance=VARIANCE).active)
        table[f"{setting}_active"] = np.array(active, dtype=float)

    def draw(canvas: "Canvas") -> None:
        axes = canvas.subplots()
        for setting, power, words in (("central", 5 / 6, "n^(5/6)"), ("local", 1 / 2, "n^(1/2)")):
            active = table[f"{setting}_active"]
            axes.plot(sizes, active, label=f"{setting}", **STYLES[setting])
            axes.plot(sizes, active[-1] * (sizes / sizes[-1]) ** power, ":", color=BLACK, linewidth=1)
            axes.annotate(words, (sizes[-1], active[-1]), xytext=(4, -3), textcoords="offset points")
        log_axes(axes, x="people n", y="bought from", title="Sensitivities uniform on [1, 2], error weight n + 1")
        axes.legend()
        axes.margins(x=0.12)

    return PaperFigure(
        name="growth",
        title="How many people are bought from, against the powers that theory says.",
        table=table,
        draw=draw,
        size=(6.4, 3.6),
    )


def settings(quick: bool = False) -> PaperFigure:
    """Standard error and cost in both settings, for a buyer to whom a squared unit of error is worth 10,000."""
    sizes = np.unique(np.round(np.geomspace(10, 1e4 if quick else 1e6, 4 if quick else 16)))
    prior = Uniform(1.0, 2.0)
    table = {"n": sizes}
    for setting in STYLES:
        rows = []
        for size in sizes.tolist():
            n = int(size)
            costs = prior.virtual_cost(1.0 + (np.arange(n) + 0.5) / n)
            found = allocate(costs, setting=setting, variance=VARIANCE, error_weight=10_000.0)
            rows.append((np.sqrt(found.mse), found.objective, found.active, found.privacy_loss.max()))
        for name, column in zip(("standard_error", "cost", "active", "largest_loss"), np.array(rows).T, strict=True):
            table[f"{setting}_{name}"] = column

    def draw(canvas: "Canvas") -> None:
        panels = canvas.subplots(1, 3)
        for panel, (name, words) in zip(
            panels,
            {
                "standard_error": "standard error",
                "cost": "cost: error and payments",
                "largest_loss": "largest loss",
            }.items(),
            strict=True,
        ):
            for setting, style in STYLES.items():
                panel.plot(sizes, table[f"{setting}_{name}"], label=setting, **style)
            log_axes(panel, x="people n", y="", title=words)
        panels[0].legend()

    return PaperFigure(
        name="settings",
        title="With more people to choose from a trusted platform gets better and better; without trust it soon stops.",
        table=table,
        draw=draw,
        size=(9.0, 3.2),
    )
