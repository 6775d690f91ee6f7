"""What the optimum would be if one person's virtual cost were another one."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from hushbid.common.arrays import FloatArray, IndexArray


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

        Only differences between values of one person mean something; for a price or an accuracy they are those of the
        optimal objective. It is computed each time it is asked for.
        """
        return self.values() if callable(self.values) else self.values


@dataclass(frozen=True, slots=True, eq=False)
class Answers:
    """The same for pairs of one stratum of the central problem, in its normal units."""

    values: Callable[[], FloatArray] = field(repr=False)
    """What computes the value function."""

    loss: FloatArray = field(repr=False)
    mse: FloatArray = field(repr=False)


class Solver(Protocol):
    """How the central optimum follows from one person's cost."""

    @property
    def blur(self) -> float:
        """By how much a loss in normal units may be off beyond rounding."""
        ...

    def dearest(self, rows: IndexArray) -> FloatArray:
        """Return the cost of each person above which nothing is bought from them."""
        ...

    def answers(self, stratum: int, rows: IndexArray, costs: FloatArray) -> Answers:
        """Return the optimum if people of a stratum had these costs, which are within the limits."""
        ...


class ReplyRule(Protocol):
    """The optimum as a function of one person's cost, everybody else's fixed."""

    def at(self, rows: IndexArray, costs: FloatArray) -> Replies:
        """The optimum if person ``rows[j]`` had cost ``costs[j]`` (``inf``: were not there), for every j."""
        ...
