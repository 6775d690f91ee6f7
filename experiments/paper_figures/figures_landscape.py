"""Why finding the optimum takes care: what is minimised has several valleys, and they change places.

*Central*: two people, the second dearer. For a share w of the second in the estimate the best noise leaves

    A·V·(w² + (1 − w)²) + (3/2)·(4A)^{1/3}·a^{2/3},      a = (1 − w)·ψ₁ + w·ψ₂,

a convex and a concave term (docs/concepts/proofs.md). *Local*: the best way to buy from exactly the cheapest k.
"""

from typing import TYPE_CHECKING

import numpy as np

from experiments.paper_figures.algorithm_2 import stationary_losses
from experiments.paper_figures.figures import BLACK, BLUE, GREEN, ORANGE, RED, Look, PaperFigure, labelled
from hushbid.common.arrays import FloatArray
from hushbid.priors import Uniform

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

__all__ = ["cost_of_share", "cost_with_exactly", "landscape"]

VARIANCE = 0.25
CHEAP, PAIR_WEIGHT = 0.01, 3.0
DEAR = {"below": 0.158, "at": 0.1612636, "above": 0.165}
"""The second person's virtual cost: below, at and above the one at which the better valley changes."""

CROWD, CROWD_WEIGHT = 60, 2000.0


def cost_of_share(share: FloatArray, dear: float) -> FloatArray:
    """What two people cost in the central setting if the dearer one has this share of the estimate."""
    price = (1.0 - share) * CHEAP + share * dear
    spread = PAIR_WEIGHT * VARIANCE * (share**2 + (1.0 - share) ** 2)
    return np.asarray(spread + 1.5 * np.cbrt(4.0 * PAIR_WEIGHT) * np.cbrt(price) ** 2)


def cost_with_exactly(people: int, costs: FloatArray) -> float:
    """The least cost of buying locally from exactly the cheapest ``people``; infinite if no such way is stationary."""
    from scipy.optimize import brentq

    cheapest = np.sort(costs)[:people]
    if people == 1:
        return float(CROWD_WEIGHT * VARIANCE + 1.5 * np.cbrt(4.0 * CROWD_WEIGHT) * np.cbrt(cheapest[0]) ** 2)

    def losses(precision: float) -> FloatArray:
        return stationary_losses(cheapest * precision**2 / CROWD_WEIGHT, variance=VARIANCE).high

    def supplied(precision: float) -> float:
        return float(np.sum(1.0 / (VARIANCE + 2.0 / losses(precision) ** 2))) - precision

    steepest = 3.0 * np.sqrt(3.0) / (8.0 * np.sqrt(2.0 * VARIANCE))  # beyond it somebody's two roots have merged
    most = float(np.sqrt(CROWD_WEIGHT * steepest / cheapest[-1])) * (1.0 - 1e-12)
    if supplied(most) > 0.0:
        return np.inf
    precision = brentq(supplied, 1e-6 * most, most, xtol=1e-13)
    return float(CROWD_WEIGHT / precision + cheapest @ losses(precision))


def landscape(quick: bool = False) -> PaperFigure:
    """The cost of every share of a dearer person, and of every number of people."""
    rows = 30 if quick else CROWD
    costs = np.asarray(Uniform(1.0, 2.0).virtual_cost(np.linspace(1.0, 2.0, CROWD)))
    shares = np.linspace(0.0, 0.22, rows)
    numbers = np.arange(1, rows + 1)
    # central: what each share of the dearer person costs; local: what each number of people does
    table: dict[str, FloatArray] = {"share": shares}
    table |= {f"cost_{where}": cost_of_share(shares, dear) for where, dear in DEAR.items()}
    table["people"] = numbers.astype(np.float64)
    table["cost_local"] = np.array([cost_with_exactly(int(k), costs) for k in numbers])

    def draw(canvas: "Canvas") -> None:
        left, right = canvas.subplots(1, 2)
        looks: tuple[Look, ...] = (
            {"color": GREEN, "linestyle": "--"},
            {"color": BLUE, "linestyle": "-"},
            {"color": ORANGE, "linestyle": "-."},
        )
        for (where, dear), look in zip(DEAR.items(), looks, strict=True):
            values = table[f"cost_{where}"]
            left.plot(shares, values - values[0], label=f"her virtual cost {dear:.4g}", **look)
            best = int(np.argmin(values))
            left.plot(shares[best], values[best] - values[0], "o", color=look["color"])
        left.axhline(0.0, color=BLACK, linewidth=0.7)
        labelled(left, x="share of the dearer person", y="cost, less that of doing without her", title="central")
        left.legend(fontsize=7.5, loc="upper left")
        some = np.isfinite(table["cost_local"])
        right.plot(numbers[some], table["cost_local"][some], "s", color=RED)
        best = int(np.argmin(table["cost_local"]))
        right.plot(numbers[best], table["cost_local"][best], "o", color=BLACK, markerfacecolor="none", markersize=9)
        words = f"best: {numbers[best]} of {CROWD}"
        right.annotate(words, (numbers[best], table["cost_local"][best]), xytext=(-25, 16), textcoords="offset points")
        right.set_xticks(numbers[1 : numbers[some][-1] + 1 : 2])
        right.set_ylim(0.98 * table["cost_local"][best], 1.4 * table["cost_local"][best])
        right.set_xlim(4, numbers[some][-1] + 1)
        labelled(right, x="people bought from", y="least cost", title="local")

    return PaperFigure(
        name="landscape",
        title="Two valleys that change places (central), and the cost of every number of people (local).",
        table=table,
        draw=draw,
        size=(8.6, 3.5),
    )
