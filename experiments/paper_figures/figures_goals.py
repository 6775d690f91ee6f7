"""Figures of what a buyer can state: the frontier of error against money, and protection against a relation."""

from typing import TYPE_CHECKING

import numpy as np

from experiments.paper_figures.figures import BLACK, BLUE, GREEN, ORANGE, RED, SKY, PaperFigure, log_axes
from hushbid.allocation import Budget, allocate
from hushbid.common.arrays import FloatArray
from hushbid.priors import LogNormal, Uniform

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

__all__ = ["PROTECTED", "TRUE", "frontier", "relation", "worst_errors"]

PEOPLE, VARIANCE = 200, 0.25
PROTECTED = (0.0, 0.02, 0.05, 0.1, 0.3)
"""How close a relation the purchases of the figure are protected against."""

TRUE = (0.0, 0.05, 0.1, 0.3)
"""How close the relation really is."""


def frontier(quick: bool = False) -> PaperFigure:
    """Error against money for 200 people, with what each goal states: a line it stands on, and the point it buys."""
    costs = np.asarray(Uniform(1, 2).virtual_cost(np.linspace(1.0, 2.0, PEOPLE)))
    money = np.geomspace(2.0, 60.0, 12 if quick else 80)
    error = np.sqrt([allocate(costs, variance=VARIANCE, goal=Budget(one)).mse for one in money.tolist()])
    # a price for the error buys where its line touches, in squared errors
    price = allocate(costs, variance=VARIANCE, error_weight=2000.0)
    spent = price.objective - 2000.0 * price.mse

    def draw(canvas: "Canvas") -> None:
        panel = canvas.subplots()
        panel.plot(money, error, color=BLUE, linewidth=2, label="the frontier: nothing lies below")
        panel.fill_between(money, error, error.max(), color=BLUE, alpha=0.08, linewidth=0)
        line = price.mse + (spent - money) / 2000.0
        seen = (line > 0) & (np.abs(money - spent) < 12.0)
        panel.plot(money[seen], np.sqrt(line[seen]), "--", color=GREEN, label="a price for the error: 2000")
        panel.plot([spent], [np.sqrt(price.mse)], "o", color=GREEN)
        panel.axvline(10.0, color=ORANGE, linestyle="-.", label="a budget of 10, on average or at most")
        panel.plot([10.0], [float(np.interp(10.0, money, error))], "s", color=ORANGE)
        panel.axhline(0.08, color=RED, linestyle=":", label="a standard error of 0.08")
        panel.plot([float(np.interp(-0.08, -error, money))], [0.08], "^", color=RED)
        log_axes(panel, x="money, rents included", y="standard error", title="")
        panel.legend(loc="upper right")

    return PaperFigure(
        name="frontier",
        title="Four goals, one frontier: each is a way to choose a point on it. 200 people, prices uniform on 1 to 2.",
        table={"money": money, "standard_error": error},
        draw=draw,
        size=(7.0, 4.2),
    )


def worst_errors(weights: FloatArray, noise: float, variance: float) -> list[float]:
    """The worst root mean squared error of a weighted mean if the relation is each of `TRUE`."""
    squares = float(np.square(weights).sum())
    return [
        float(np.sqrt(noise + variance * squares + true**2 * variance * (weights.size * squares - 1.0)))
        for true in TRUE
    ]


def relation(quick: bool = False) -> PaperFigure:
    """What each degree of protection costs and what it saves, for log-normal prices and one price for the error."""
    n, width, variance, weight = 500 if quick else 10_000, 12.0, 1.5, 63_500.0
    prior = LogNormal(0.0, 0.5)
    costs = np.asarray(prior.virtual_cost(prior.quantile((np.arange(n) + 0.5) / n)))
    rows = []
    for degree in PROTECTED:
        planned = variance / width**2 * (1.0 + n * degree**2)
        found = allocate(costs, variance=planned, error_weight=weight * width**2)
        expense = float(costs @ found.privacy_loss)
        noise = 2.0 * (width / float(found.privacy_loss.sum())) ** 2
        errors = worst_errors(found.weights, noise, variance)
        rows.append((degree, float(found.active), expense, float(found.privacy_loss.max()), *errors))
    columns = ("protected", "bought_from", "paid", "largest_loss", *(f"worst_at_{true:g}" for true in TRUE))
    table = dict(zip(columns, np.array(rows).T, strict=True))

    def draw(canvas: "Canvas") -> None:
        left, right = canvas.subplots(1, 2)
        places = np.arange(len(PROTECTED))
        for true, color, mark in zip(TRUE, (BLACK, SKY, ORANGE, RED), "osD^", strict=True):
            left.plot(places, table[f"worst_at_{true:g}"], marker=mark, color=color, label=f"it is {true:g}")
        left.set_yscale("log")
        left.set_title("worst standard error if the relation …")
        left.legend(fontsize=8)
        right.bar(places, table["paid"], color=BLUE, width=0.6)
        right.set_title("paid, rents included")
        for panel in (left, right):
            panel.set_xticks(places, [f"{one:g}" for one in PROTECTED])
            panel.set_xlabel("protected up to")

    return PaperFigure(
        name="relation",
        title=f"Protection costs money if prices tell nothing of data, and saves the estimate if they do; n = {n:,}.",
        table=table,
        draw=draw,
    )
