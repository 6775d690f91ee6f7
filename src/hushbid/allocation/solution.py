"""The answer to an allocation problem."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from hushbid.arrays import FloatArray

type_setting = Literal["central", "local"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Allocation:
    """Who gives up how much privacy, and what that buys; in units where the data range has width 1."""

    privacy_loss: FloatArray
    """Each person's ε, in the order of the input; ``inf`` where the optimum adds no noise at all."""

    weights: FloatArray
    """Each person's weight in the estimate; they sum to one."""

    mse: float
    """Mean squared error of the estimate: noise plus sampling."""

    objective: float
    """``error_weight * mse + Σ virtual_costs * privacy_loss``, the quantity that was minimised."""

    active: int
    """How many people are bought from."""

    setting: type_setting
    """``"central"`` (noise added once, by the platform) or ``"local"`` (by each person's device)."""

    error_weight: float
    """What one unit of squared error costs everybody together."""

    _certify: Callable[[], float] = field(repr=False)
    _certified: float | None = field(default=None, init=False, repr=False)

    @property
    def lower_bound(self) -> float:
        """A number that no allocation's objective can be below, computed without reading this one.

        Central: the bounds of all pieces of the one-dimensional problem, within 1e-9 of the optimum. Local: the dual
        bound, which leaves a gap when few people are active. Computed when first asked for, from the costs as they are
        then: do not change the array in between.
        """
        if self._certified is None:
            # frozen to the outside; the bound is remembered
            object.__setattr__(self, "_certified", self._certify())
        assert self._certified is not None
        return self._certified

    @property
    def gap(self) -> float:
        """``objective / lower_bound - 1``: how far from optimal this allocation could be at the most."""
        bound = self.lower_bound
        return self.objective / bound - 1.0 if bound > 0 else (0.0 if self.objective == bound else float("inf"))
