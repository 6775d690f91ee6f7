"""A problem with caps, in units in which the solvers work; who asks for nothing; what all caps together allow."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from hushbid.allocation.capped.crowds import Crowd, OneCap, Variants, Various
from hushbid.allocation.capped.levels import Aim, solve_levels
from hushbid.allocation.capped.people import People
from hushbid.allocation.capped.price import PRICE
from hushbid.allocation.goals import Accuracy, Budget, Price
from hushbid.allocation.problem import LEAST, MOST, Problem, workable
from hushbid.arrays import FloatArray, IndexArray, as_floats, first_row, rows_text
from hushbid.errors import InputError
from hushbid.estimation import best_weights


def as_caps(max_loss: ArrayLike, n: int) -> float | FloatArray:
    """The most that may be bought from everybody, or from each of ``n`` people: positive, perhaps infinite."""
    if isinstance(max_loss, float) and max_loss > 0.0:
        return max_loss
    caps = as_floats(max_loss, "max_loss")
    if caps.shape not in ((), (n,)):
        told = f"max_loss must be one number or one per person ({n}), got shape {caps.shape}."
        raise InputError(told, field="max_loss")
    bad = ~(caps > 0.0)
    if bad.any() and caps.ndim == 0:
        raise InputError(f"max_loss must be positive, got {float(caps):g}.", field="max_loss")
    if bad.any():
        told = f"max_loss must be positive, but {rows_text(bad, 'is')} not."
        raise InputError(told, field="max_loss", row=first_row(bad))
    return caps if caps.ndim else float(caps)


Guess = tuple[float, float]
"""A level (counted from the base) and a rate."""


@dataclass(frozen=True, slots=True, eq=False)
class Scaled:
    """A capped problem in units where the largest precision is 1 and, for a price, the error weight too."""

    costs: FloatArray
    """In the caller's units."""

    variance: float | FloatArray
    caps: float | FloatArray

    unit: float
    """The smallest variance; losses are in units of one over its root."""

    scale: float
    """What costs are divided by."""

    aim: Aim
    """The goal in these units."""

    base: float
    """The smallest cost in these units."""

    uncapped: tuple[float, float] | None = None
    """The rate and the sum of all losses that are best without caps, if they are known."""

    @classmethod
    def of(cls, problem: Problem, caps: float | FloatArray) -> "Scaled":
        """The problem in its units; refused where somebody with a cap has no variance."""
        goal, variance = problem.goal, problem.variance
        unit = variance if isinstance(variance, float) else float(variance.min())
        if not unit > 0.0:
            raise InputError("variance must be positive where max_loss is finite, got 0.", field="variance")
        if isinstance(goal, Price):
            scale, aim = problem.scale(unit), PRICE
        elif isinstance(goal, Accuracy):
            scale, aim = 1.0, Aim("accuracy", goal.number**2 / unit)
        else:
            assert isinstance(goal, Budget)
            scale, aim = 1.0, Aim("budget", goal.amount * math.sqrt(unit))
        problem.confine(scale)
        return cls(problem.costs, variance, caps, unit, scale, aim, problem.cheapest / scale)

    @property
    def most(self) -> float:
        """Above this cost nobody is bought from."""
        return MOST * self.scale

    @property
    def buyable(self) -> IndexArray:
        """Whom something can be bought from."""
        return np.flatnonzero(self.costs <= self.most)

    def workable(self, costs: FloatArray) -> FloatArray:
        """Costs with which these units work."""
        return workable(costs, LEAST * self.scale, self.most)

    def offsets(self, costs: FloatArray) -> FloatArray:
        """How far costs are above the cheapest."""
        return (costs - self.base * self.scale) / self.scale

    def masses(self, rows: IndexArray) -> FloatArray:
        """Precisions."""
        return np.ones(rows.size) if isinstance(self.variance, float) else self.unit / self.variance[rows]

    def caps_of(self, rows: IndexArray) -> FloatArray:
        """Caps."""
        caps = np.full(rows.size, self.caps) if isinstance(self.caps, float) else self.caps[rows]
        return caps * math.sqrt(self.unit)

    def people(self, rows: IndexArray) -> People:
        """These people."""
        return People.of(self.offsets(self.costs[rows]), self.masses(rows), self.caps_of(rows))

    @property
    def alike(self) -> bool:
        """Whether there is one variance and one finite cap."""
        return isinstance(self.variance, float) and isinstance(self.caps, float) and self.caps < math.inf

    def crowd(self, rows: IndexArray, top: float = math.inf) -> Crowd:
        """The sums over these people, who are sorted by cost; ``top`` is the level below which they are everybody."""
        if self.alike:
            assert isinstance(self.caps, float)
            return OneCap(self.base, self.offsets(self.costs[rows]), self.caps * math.sqrt(self.unit), top=top)
        return Various(self.base, self.people(rows), top=top)

    def weight(self, rows: IndexArray) -> tuple[FloatArray, float]:
        """The most accurate losses that these people's caps allow, and the error, in these units."""
        if self.alike:
            cap = float(self.caps_of(rows[:1])[0])
            return np.full(rows.size, cap), 2.0 / (rows.size * cap) ** 2 + 1.0 / rows.size
        found = best_weights(self.caps_of(rows), setting="central", variance=1.0 / self.masses(rows))
        return found.delivered, found.mse


def free_people(scaled: Scaled) -> tuple[IndexArray, float]:
    """Those who ask for nothing, and the least error that they alone reach; infinite if there are none."""
    if scaled.base > 0.0:
        return np.zeros(0, dtype=np.intp), math.inf
    free = np.flatnonzero(scaled.costs == 0.0)
    return free, scaled.weight(free)[1]


def free_losses(scaled: Scaled, free: IndexArray) -> FloatArray:
    """What people who ask for nothing and are enough are bought: as if all asked for the same, exactly the error."""
    losses, error = scaled.weight(free)
    if error >= scaled.aim.number * (1.0 - 1e-14):
        return losses
    people = People.of(np.zeros(free.size), scaled.masses(free), scaled.caps_of(free))
    crowd = Various(1.0, people)
    points = solve_levels(Variants(crowd), scaled.aim, np.ones(1), np.ones(1))
    return people.losses(points.level[0], points.rate[0])
