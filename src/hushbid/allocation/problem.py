"""The allocation problem and what is allowed in it.

A platform buys data from ``n`` people to estimate a mean. Person i's data lie in a range of width 1 and have variance
``V_i``; buying privacy loss ``ε_i`` from her costs ``ψ_i`` per unit (her *virtual cost*). Choose ``ε ≥ 0`` and weights
``w ≥ 0``, ``Σ w = 1`` to minimise

    A·MSE(ε, w) + Σ ψ_i ε_i,

    central: MSE = 2/S² + Σ V_i w_i²,      S = Σ ε_i,  w_i = ε_i/S   (Laplace noise of scale 1/S, added once),
    local:   MSE = 1/Σ q(ε_i),             q(y) = y²/(V y² + 2),     (each person adds Laplace noise of scale 1/ε_i).

This is the pointwise problem that [F] Prop. 2 reduces optimal truthful acquisition to; ``A`` is the error weight, there
``n + 1``. [F] = Fallah, Makhdoumi, Malekian and Ozdaglar, "Optimal and Differentially Private Data Acquisition: Central
and Local Mechanisms", EC 2022, arXiv 2201.03968.
"""

import hashlib
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hushbid.allocation.goals import Accuracy, Budget, Goal, Price
from hushbid.allocation.unsolved import LOCAL_VARIANCES
from hushbid.common.arrays import FloatArray, HashArray, as_floats, as_number, as_variance, first_row, id_texts
from hushbid.errors import InputError, NobodyToBuyFrom
from hushbid.estimation import Setting

TINY, HUGE = 1e-200, 1e150
"""Costs in normal form must lie between these (or be zero), so that fourth powers neither vanish nor overflow."""

LEAST, MOST = 1e-140, 1e140
"""The same for solvers that need squares of unequal costs: those for an accuracy, for a budget and under caps."""

_LEAST_SCALE = 1e-280

_COPIED_UP_TO = 1 << 15
"""Arrays up to this size are copied, so that a certificate asked for later is about what was solved."""


@dataclass(slots=True, eq=False)
class Problem:
    """A validated problem; what the solvers see."""

    costs: FloatArray = field(repr=False)
    """Virtual costs in the caller's order: nonnegative, ``inf`` for people never bought from, at least one finite."""

    variances: FloatArray = field(repr=False)
    """One per person; all the same in the local setting."""

    goal: Goal
    """What is aimed at, on a data range of width 1: a `Price` (``A``, the error weight), an accuracy or a budget."""

    tie_key: NDArray[Any] | None = field(repr=False)
    """What decides between people of equal virtual cost: the smaller key first, then the position."""

    cheapest: float
    """The smallest virtual cost."""

    response: bool = False
    """Whether people answer yes or no by randomised response instead of adding noise; local, variance 1/4."""

    @property
    def variance(self) -> float:
        """The first person's variance: everybody's in the local setting."""
        return float(self.variances[0])

    @property
    def error_weight(self) -> float:
        """``A``: positive and finite; for a `Price` only."""
        assert isinstance(self.goal, Price)
        return self.goal.buyer_weight

    def scale(self, unit: float) -> float:
        """What costs are divided by to reach normal form (error weight 1, variance 1), for a variance ``unit``.

        Positive costs too small for normal form are lifted into it: that changes the optimum by less than 1e-130 of it.
        """
        scale = self.error_weight * unit * math.sqrt(unit)
        if not _LEAST_SCALE <= scale < math.inf:
            raise InputError(
                f"error_weight={self.error_weight:g} and variance={unit:g} are too extreme: error_weight *"
                f" variance**1.5 must be at least {_LEAST_SCALE:g}, and finite."
            )
        self._lift(TINY * scale)
        return scale

    def confine(self, scale: float = 1.0) -> None:
        """Lift positive costs below the least that is worked with; refused if all are above the largest.

        No bid of one person may stop a purchase. Nobody above ``MOST·scale`` is bought from.
        """
        self._lift(LEAST * scale)
        if self.cheapest > MOST * scale:
            raise InputError(
                f"virtual_costs must not all be above {MOST * scale:g}, got {self.cheapest:g} as the smallest.",
                field="virtual_costs",
            )

    def _lift(self, least: float) -> None:
        if self.cheapest < least:
            self.costs = lifted(self.costs, least)
            self.cheapest = least if self.cheapest > 0.0 else 0.0


def normal_scale(error_weight: float, variance: float) -> float:
    """``A·V^{3/2}``, what costs are divided by; in two steps where the power alone is no ordinary number."""
    if 1e-205 <= variance <= 1e205:
        return float(error_weight * variance**1.5)
    return error_weight * variance * math.sqrt(variance)


def lifted(costs: FloatArray, least: float) -> FloatArray:
    """Positive costs below the least that is worked with, moved up to it: nobody could measure the difference."""
    if not costs.min(initial=math.inf) < least:
        return costs
    tiny = (costs < least) & (costs > 0.0)
    return np.where(tiny, least, costs) if tiny.any() else costs


def workable(costs: FloatArray, least: float, most: float) -> FloatArray:
    """Costs lifted, and infinite where they are above the most: nothing would be bought there."""
    costs = lifted(costs, least)
    return np.where(costs > most, math.inf, costs) if costs.max(initial=0.0) > most else costs


def as_problem(
    virtual_costs: ArrayLike,
    *,
    variance: ArrayLike,
    error_weight: float | None,
    goal: Goal | None = None,
    tie_key: Sequence[Any] | NDArray[Any] | None,
    local: bool,
    response: bool = False,
) -> Problem:
    """Validate once; the message names the argument, the row where there is one, and what is allowed."""
    costs = as_floats(virtual_costs, "virtual_costs")
    if costs.ndim != 1:
        raise InputError(f"virtual_costs must be one-dimensional, got {costs.ndim} dimensions.", field="virtual_costs")
    n = costs.size
    if n == 0:
        raise InputError("virtual_costs must not be empty: there must be at least one person.", field="virtual_costs")
    cheapest = float(np.minimum.reduce(costs))
    if not 0.0 <= cheapest < math.inf:
        _refuse_costs(costs, cheapest)
    aim = _as_aim(goal, error_weight, n)
    if local and np.ndim(variance) > 0:
        raise LOCAL_VARIANCES.error()
    spread = as_variance(variance, n)
    if response and not (local and spread == 0.25):
        raise InputError("response must be False unless the setting is local and the variance 0.25.", field="response")
    if cheapest == 0.0:
        costs = costs + 0.0  # -0.0 becomes 0.0
    elif costs is virtual_costs and n <= _COPIED_UP_TO:  # the caller's own array, which may change
        costs = costs.copy()
    return Problem(
        costs, np.broadcast_to(spread, (n,)), aim, None if tie_key is None else as_keys(tie_key, n), cheapest, response
    )


def _as_aim(goal: Goal | None, error_weight: float | None, n: int) -> Goal:
    """The goal, or the price that ``error_weight`` is short for."""
    if goal is None:
        weight = float(n + 1) if error_weight is None else as_number(error_weight, "error_weight")
        if not 0.0 < weight < math.inf:
            raise InputError(f"error_weight must be positive and finite, got {error_weight}.", field="error_weight")
        return Price(weight)
    if error_weight is not None:
        raise InputError("give either goal or error_weight, got both.", field="goal")
    if not isinstance(goal, (Price, Accuracy, Budget)) or goal == Price(0.0):
        raise InputError(f"goal must be a positive Price, an Accuracy or a Budget, got {goal!r}.", field="goal")
    return goal


def as_keys(tie_key: Sequence[Any] | NDArray[Any], n: int) -> NDArray[Any]:
    """One key per person, all of one kind that can be ordered; kept as they are, never converted."""
    if np.ma.is_masked(tie_key):
        raise InputError("tie_key must have one entry per person, but some are masked.", field="tie_key")
    if isinstance(tie_key, np.ndarray) and tie_key.dtype.kind in "iubfSUmM":
        keys = tie_key
    elif isinstance(tie_key, (str, bytes)) or not hasattr(tie_key, "__len__"):
        raise InputError(
            f"tie_key must have one entry per person ({n}), got {type(tie_key).__name__}.", field="tie_key"
        )
    else:
        # without NumPy's conversions, which may make different keys equal
        items = list(tie_key)
        kinds = sorted({type(item).__name__ for item in items})
        if len(kinds) > 1 or kinds == ["NoneType"]:
            raise InputError(f"tie_key must be keys of one kind, got {', '.join(kinds)}.", field="tie_key")
        keys = np.empty(len(items), dtype=float if kinds == ["float"] else object)
        keys[:] = items
    if keys.shape != (n,):
        raise InputError(f"tie_key must have one entry per person ({n}), got shape {keys.shape}.", field="tie_key")
    if keys.dtype.kind == "f" and np.isnan(keys).any():
        row = first_row(np.isnan(keys))
        raise InputError(
            f"tie_key must be keys that can be ordered, but row {row} is not one.",
            field="tie_key",
            row=row,
        )
    return keys


def _refuse_costs(costs: FloatArray, cheapest: float) -> None:
    if cheapest == math.inf:
        raise NobodyToBuyFrom("Every virtual cost is infinite: there is nobody to buy from.")
    bad = np.isnan(costs) | (costs < 0)
    row = int(np.argmax(bad))
    problem = "not a number" if np.isnan(costs[row]) else "negative"
    raise InputError(
        f"virtual_costs must be nonnegative numbers (inf for never), but row {row} is {problem}"
        f" ({int(bad.sum())} such rows).",
        field="virtual_costs",
        row=row,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Allocation:
    """Who gives up how much privacy, and what that buys; in units where the data range has width 1."""

    privacy_loss: FloatArray = field(repr=False)
    """Each person's ε, in the order of the input; ``inf`` where the optimum adds no noise at all."""

    weights: FloatArray = field(repr=False)
    """Each person's weight in the estimate; they sum to one."""

    mse: float
    """Mean squared error of the estimate: noise plus sampling."""

    objective: float
    """The quantity that was minimised: ``error_weight * mse + Σ virtual_costs * privacy_loss`` for a price, the sum
    alone for an accuracy, ``mse`` for a budget."""

    active: int
    """How many people are bought from."""

    setting: Setting
    """``"central"`` (noise added once, by the platform) or ``"local"`` (by each person's device)."""

    error_weight: float
    """What one unit of squared error costs everybody together; for another goal, at what price it would be chosen."""

    _certify: Callable[[], float] = field(repr=False)
    _certified: float | None = field(default=None, init=False, repr=False)

    @property
    def lower_bound(self) -> float:
        """A number that no allocation's objective can be below, computed without reading this one.

        Central: the bounds of all intervals of the path, within 1e-9 of the optimum. Local: the dual bound, which
        leaves a gap when few people are active. Computed when first asked for, from the costs as they are then: do not
        change the array in between.
        """
        if self._certified is None:
            # frozen to the outside; the bound is remembered
            object.__setattr__(self, "_certified", self._certify())
        assert self._certified is not None
        return self._certified

    @property
    def gap(self) -> float:
        """``objective / lower_bound - 1``: how far from optimal this allocation could be at the most."""
        return relative_gap(self.objective, self.lower_bound)


def relative_gap(objective: float, lower_bound: float) -> float:
    """How far an objective is above a bound, as a share of the bound; infinite where the bound is 0 and it is not."""
    if lower_bound > 0.0:
        return objective / lower_bound - 1.0
    return 0.0 if objective == lower_bound else math.inf


def tie_keys(ids: Iterable[object], *, seed: bytes = b"") -> HashArray:
    """A number for each id, the same on every machine and engine; pass them as ``tie_key``.

    The order they give depends on nothing that anybody bids, nor on the order of rows, which may: in a file sorted
    by price. Without a ``seed`` of one's own, fixed before anybody bids, nobody has anything left to choose.

    >>> tie_keys(["ann", " ann "]).tolist()
    [10176691957563388837, 10176691957563388837]
    """
    digests = (
        hashlib.blake2b(id.encode(errors="surrogatepass"), digest_size=8, key=seed).digest() for id in id_texts(ids)
    )
    return np.frombuffer(b"".join(digests), dtype=">u8").astype(np.uint64)
