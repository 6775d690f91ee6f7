"""What is needed of a rule, and what comes out: rents with their enclosure."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
Rows = NDArray[np.intp]
ROUNDING = 16.0 * np.finfo(float).eps


class Replies(Protocol):
    """Potential and loss at each of many (person, virtual cost) pairs."""

    @property
    def value(self) -> FloatArray: ...
    @property
    def loss(self) -> FloatArray: ...


class RuleWithPotential(Protocol):
    """A monotone rule in terms of the virtual cost, with its potential."""

    def at(self, rows: Rows, costs: FloatArray, /) -> Replies:
        """What happens if person ``rows[j]`` had virtual cost ``costs[j]`` (``inf``: were not there)."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rents:
    """Information rents with their enclosure."""

    lower: FloatArray
    """No rent is below this."""

    upper: FloatArray
    """No rent is above this."""

    estimate: FloatArray
    """The value used for payments: inside the enclosure, and usually much closer to the truth than its ends."""

    evaluations: int
    """How often the rule was evaluated."""

    @property
    def error(self) -> float:
        """The largest possible distance of an estimate from the truth."""
        if self.estimate.size == 0:
            return 0.0
        return float(np.maximum(self.upper - self.estimate, self.estimate - self.lower).max())
