"""The frontier of error against money in the central setting, and the point on it that has a given error or expense.

For a level ``τ`` above the smallest cost let ``u_i = 1/V_i``,

    G(τ) = Σ u_i (τ − ψ_i)⁺,      W(τ) = Σ u_i ψ_i (τ − ψ_i)⁺,      ε_i = u_i (τ − ψ_i)⁺·√(2/W).

Then ``MSE = τ/G`` and ``Σ ψ_i ε_i = √(2W)``. As the level rises the error falls and the expense rises, and no purchase
does better on both: the levels are the frontier (``docs/explanation/levels.md`` has the proof). A price for the error
chooses the level where ``A·τ/G + √(2W)`` is least (:mod:`hushbid.allocation.central`), and has to compare valleys. An
accuracy ``r²`` has one level, ``r²·G = τ``; so has a budget ``B``, ``2W = B²``. Both sides are convex in the level and
piecewise linear: Newton's method walks from any level past the answer down to it and stops there exactly.

Costs are counted from the smallest one, ``base``, and precisions from the largest, so that nothing cancels.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hushbid.allocation.goals import Accuracy, Budget, Goal
from hushbid.allocation.lower_bounds import least_error, least_expense
from hushbid.allocation.problem import MOST, Allocation, Problem
from hushbid.arrays import FloatArray, IndexArray
from hushbid.errors import InputError, MarketError, Unreachable

_SELECT_ABOVE = 1 << 15
"""Above this many people those who are surely too expensive are left out first."""

_SAMPLE = 1 << 13


@dataclass(frozen=True, slots=True)
class Equation:
    """What a level must satisfy, with precisions in units of one over ``unit``: ``ratio·G = τ``, or ``W = half``."""

    goal: Goal
    unit: float

    @property
    def ratio(self) -> float:
        """``r²`` in these units."""
        assert isinstance(self.goal, Accuracy)
        return self.goal.number**2 / self.unit

    @property
    def half(self) -> float:
        """``B²/2`` in these units."""
        assert isinstance(self.goal, Budget)
        return 0.5 * self.unit * self.goal.amount**2

    def passed(self, base: float, level: float, gain: float, paid: float) -> bool:
        """Whether the answer is at this level or below it."""
        if isinstance(self.goal, Accuracy):
            return self.ratio * gain >= base + level
        return paid >= self.half

    def root(self, base: float, total: FloatArray, first: FloatArray, second: FloatArray) -> FloatArray:
        """The level, counted from ``base``, if exactly these people are active; infinite if they are not enough."""
        if isinstance(self.goal, Accuracy):
            above, slope = base + self.ratio * first, self.ratio * total - 1.0
        else:
            above, slope = self.half + base * first + second, base * total + first
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(slope > 0.0, above / slope, np.inf)


def solve_level(problem: Problem) -> Allocation:
    """The cheapest purchase with a given error, or the most accurate one with a given expense: there is one only."""
    problem.confine()
    goal, costs = problem.goal, problem.costs
    people = Buyable(costs, problem.variance)
    unit, base, equation = people.unit, problem.cheapest, Equation(goal, people.unit)
    weights, losses = np.zeros(costs.size), np.zeros(costs.size)
    # people who ask for nothing may be enough
    if isinstance(goal, Accuracy) and base == 0.0:
        free = np.flatnonzero(costs == 0.0)
        mass = people.masses(free)
        if enough(equation, float(mass.sum())):
            weights[free] = mass / mass.sum()
            losses[free] = weights[free] * free_loss(equation, float(mass.sum()))
            return _allocation(problem, losses, weights, free.size, goal.number**2, 0.0, worth=0.0)
    level, rows = find_level(equation, people, base)
    # G and W of those below the level
    offset = costs[rows] - base
    share = level - offset
    if people.mass is not None:
        share *= people.mass[rows]
    gain = float(share.sum())
    paid = base * gain + float((share * offset).sum())
    weights[rows] = share / gain
    losses[rows] = share * math.sqrt(2.0 / (unit * paid))
    error = goal.number**2 if isinstance(goal, Accuracy) else unit * (base + level) / gain
    expense = goal.amount if isinstance(goal, Budget) else math.sqrt(2.0 * paid / unit)
    active = int(np.count_nonzero(losses[rows]))
    return _allocation(problem, losses, weights, active, error, expense, worth=(gain / unit) ** 2 / expense)


def _allocation(
    problem: Problem,
    losses: FloatArray,
    weights: FloatArray,
    active: int,
    error: float,
    expense: float,
    *,
    worth: float,
) -> Allocation:
    accurate = isinstance(problem.goal, Accuracy)
    return Allocation(
        privacy_loss=losses,
        weights=weights,
        mse=error,
        objective=expense if accurate else error,
        active=active,
        setting="central",
        error_weight=worth,
        _certify=problem.certifying(least_expense if accurate else least_error),
    )


class Buyable:
    """Whom something can be bought from at all, and how precise their data are."""

    def __init__(self, costs: FloatArray, variance: float | FloatArray) -> None:
        """Everybody's cost; refused where a variance is 0."""
        self.costs = costs
        self.unit = variance if isinstance(variance, float) else float(variance.min())
        """The smallest variance."""

        if not self.unit > 0.0:
            raise InputError("variance must be positive for an accuracy or a budget, got 0.", field="variance")
        self.mass = None if isinstance(variance, float) else self.unit / variance
        """Everybody's precision in units of the largest; None where all are equal."""

    @cached_property
    def rows(self) -> IndexArray:
        """Where they are."""
        return np.flatnonzero(self.costs <= MOST)

    @cached_property
    def total(self) -> float:
        """Their mass together."""
        return float(self.rows.size if self.mass is None else self.mass[self.rows].sum())

    def masses(self, rows: IndexArray) -> FloatArray:
        """The precisions of these people, in units of the largest."""
        return np.ones(rows.size) if self.mass is None else self.mass[rows]


def refuse_unreachable(goal: Goal, precision: float, people: int) -> None:
    """An error below what these people's data have even without noise; ``precision`` is the sum of ``1/V``."""
    if isinstance(goal, Accuracy) and not goal.number**2 * precision > 1.0:
        raise unreachable(goal, precision, people)


def unreachable(goal: Accuracy, precision: float, people: int) -> Unreachable:
    """What to say about such an error."""
    return Unreachable(
        f"standard_error must be above {math.sqrt(1.0 / precision):.6g}, the error of these {people} people's data"
        f" without any noise, got {goal.number:g}.",
        field="standard_error",
    )


def enough(equation: Equation, mass: float) -> bool:
    """Whether people who ask for nothing, of this mass together, reach the accuracy without anybody else."""
    return equation.ratio * mass >= 1.0


def free_loss(equation: Equation, mass: FloatArray | float) -> FloatArray:
    """What all losses add up to where only people who ask for nothing are bought from: exactly the error wanted."""
    with np.errstate(divide="ignore"):
        return np.sqrt(2.0 / (equation.unit * np.maximum(equation.ratio - 1.0 / np.asarray(mass), 0.0)))


def find_level(equation: Equation, people: Buyable, base: float) -> tuple[float, IndexArray]:
    """The level, counted from ``base``, and the rows of those below it."""
    rows = _candidates(equation, people, base)
    while True:
        offset = people.costs[rows] - base
        level = _root(equation, base, offset, None if people.mass is None else people.mass[rows])
        below = offset < level
        if below.all():
            break
        rows = rows[below]  # fewer each time: the level falls
    if level == math.inf:
        raise MarketError("Every virtual cost is 0: a budget cannot be spent on people who ask for nothing.")
    return level, rows


def _root(equation: Equation, base: float, offset: FloatArray, mass: FloatArray | None) -> float:
    """The level if exactly these people are active."""
    weighted = offset if mass is None else mass * offset
    total = float(offset.size if mass is None else mass.sum())
    sums = (total, float(weighted.sum()), float((weighted * offset).sum()))
    return float(equation.root(base, *(np.asarray(one) for one in sums)))


def _candidates(equation: Equation, people: Buyable, base: float) -> IndexArray:
    """Everybody who may be below the level: of many people, those below a cut that a sample proposes and passes it."""
    costs = people.costs
    if costs.size > _SELECT_ABOVE:
        ordered = np.sort(costs[:: costs.size // _SAMPLE])
        each = costs.size / ordered.size
        ordered = ordered[: int(ordered.searchsorted(MOST, side="right"))] - base
        # each of the sample stands for as many as there are
        if people.mass is not None:
            each *= float(people.mass[:: costs.size // _SAMPLE].mean())
        spare = int(ordered.searchsorted(_root_of_sample(equation, base, ordered, each)))
        # four standard deviations of the sample's count, and some, to spare; then ever more
        spare += int(4.0 * math.sqrt(spare)) + 16
        while spare < ordered.size:
            cut = float(ordered[spare])
            rows = np.flatnonzero(costs < base + cut)
            offset = costs[rows] - base
            share = cut - offset
            if people.mass is not None:
                share *= people.mass[rows]
            gain = float(share.sum())
            if equation.passed(base, cut, gain, base * gain + float((share * offset).sum())):
                return rows
            spare *= 2
    refuse_unreachable(equation.goal, people.total / people.unit, people.rows.size)
    return people.rows


def _root_of_sample(equation: Equation, base: float, ordered: FloatArray, each: float) -> float:
    """The level of people with these sorted costs, each of the same mass; infinite if they are not enough."""
    weighted = each * ordered
    total = each * np.arange(1.0, ordered.size + 1.0)
    roots = equation.root(base, total, weighted.cumsum(), (weighted * ordered).cumsum())
    inside = np.flatnonzero((roots > ordered) & (roots <= np.append(ordered[1:], math.inf)))
    return float(roots[inside[0]]) if inside.size else math.inf
