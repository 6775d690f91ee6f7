"""What the optimum would be if one person's virtual cost were another one."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from hushbid.allocation.problem import Allocation
from hushbid.arrays import FloatArray, IndexArray


@dataclass(frozen=True, slots=True, eq=False)
class Replies:
    """The optimum for each of many (person, virtual cost) pairs, in units where the data range has width 1."""

    values: FloatArray | Callable[[], FloatArray] = field(repr=False)
    """The value function, or what computes it: under a budget that is far more work than the losses."""

    loss: FloatArray = field(repr=False)
    """The person's own privacy loss."""

    mse: FloatArray = field(repr=False)
    """The mean squared error of the estimate."""

    blur: float = 0.0
    """By how much a loss may be off beyond rounding, where a level has lost its digits beside the costs."""

    @property
    def value(self) -> FloatArray:
        """The value function: concave and nondecreasing in the person's cost, with their privacy loss as its slope.

        For a price or an accuracy it is the optimal objective. It is computed each time it is asked for.
        """
        return self.values() if callable(self.values) else self.values


class ReplyRule(Protocol):
    """The optimum as a function of one person's cost, everybody else's fixed."""

    def at(self, rows: IndexArray, costs: FloatArray) -> Replies:
        """The optimum if person ``rows[j]`` had cost ``costs[j]`` (``inf``: were not there), for every j."""
        ...


class DirectReplies:
    """Any pair by solving its whole problem: slow, and right for whatever ``solve`` takes."""

    def __init__(self, costs: FloatArray, solve: Callable[[FloatArray], Allocation]) -> None:
        self._costs, self._solve = costs, solve

    def at(self, rows: IndexArray, costs: FloatArray) -> Replies:
        """The optimum if person ``rows[j]`` had cost ``costs[j]`` (``inf``: were not there), for every j."""
        value, loss, mse = np.full(rows.size, np.inf), np.zeros(rows.size), np.full(rows.size, np.inf)
        for j, (row, cost) in enumerate(zip(rows.tolist(), costs.tolist(), strict=True)):
            changed = self._costs.copy()
            changed[row] = cost
            if changed.min() < np.inf:
                found = self._solve(changed)
                value[j], loss[j], mse[j] = found.objective, found.privacy_loss[row], found.mse
        return Replies(value, loss, mse)
