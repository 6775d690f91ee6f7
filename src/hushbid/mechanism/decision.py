"""What was decided: everybody's privacy loss and payment, and what they buy; as a frame and as plain values."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from hushbid.common.arrays import FloatArray, IndexArray, rounded_sum
from hushbid.common.codec import ARRAYS, Codec
from hushbid.common.tables import Library, frame_of
from hushbid.errors import RecordError
from hushbid.payments import FINEST, EvenBounds, RentBounds

LESS_EXACT = (
    "less exact payments: rounding leaves an error above the market's tolerance, and a misreport may gain as much as"
    " the stated incentive error"
)
"""The flag of a decision whose payments are not as exact as the market asks for."""

_WIDTH = 1.5
"""Enclosures of rents are aimed at this many times the tolerance, so that an estimate inside is right to it."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Decision:
    """Privacy losses, payments and what they buy. Confidential: a loss or a payment tells what was bid."""

    bids: FloatArray
    """Everybody's bid."""

    virtual_costs: FloatArray
    """What one unit of each person's privacy loss costs the platform, rents included."""

    privacy_loss: FloatArray
    """The ε promised to each person: their loss will not exceed it; 0 where nothing is bought."""

    weights: FloatArray
    """Each person's weight in the estimate; they sum to 1, or with strata to the weight of each."""

    payments: FloatArray
    """What each person is paid. Negative where they value the estimate and pay for it."""

    information_rent: FloatArray
    """What each person gains over staying out: the integral of their loss over higher bids."""

    rent_bounds: tuple[FloatArray, FloatArray] | RentBounds | EvenBounds
    """A rigorous lower and upper bound on each information rent."""

    outside_error: FloatArray
    """The squared error each person would live with if they stayed out, in squared data units."""

    mse: float
    """Mean squared error of the estimate if price and datum are unrelated, in squared data units; infinite if nothing
    was bought."""

    worst_mse: float
    """Mean squared error at worst, if they are related as closely as `Market.max_correlation` allows."""

    objective: float
    """What the goal minimises: ``error weight · worst_mse + Σ virtual cost · privacy loss`` for a price, the sum alone
    for an accuracy (both in money), ``worst_mse`` for a budget."""

    incentive_error: float
    """In money, twice the largest possible error of a payment: a misreport gains at most half of this, and half of what
    the decision at the misreport states."""

    tie_order: IndexArray | None
    """Everybody's place in the order in which people of equal virtual cost are bought from; None: as listed."""

    limits: FloatArray | None = None
    """The largest loss each person said they accept, infinite where they named none; None if nobody was asked."""

    @property
    def total_payment(self) -> float:
        """The sum of all payments."""
        return rounded_sum(self.payments)

    @property
    def standard_error(self) -> float:
        """Root mean squared error of the estimate if price and datum are unrelated, in data units."""
        return math.sqrt(self.mse)

    @property
    def worst_standard_error(self) -> float:
        """The same at worst, if they are related as closely as `Market.max_correlation` allows."""
        return math.sqrt(self.worst_mse)

    @property
    def active(self) -> int:
        """How many people are bought from."""
        return int(np.count_nonzero(self.privacy_loss))

    def columns(self) -> dict[str, FloatArray]:
        """Everybody's numbers as plain arrays by name, in the order of the bids."""
        found = {name: getattr(self, attribute) for name, attribute in _ATTRIBUTES.items()}
        return {name: column for name, column in found.items() if column is not None}

    def to_frame(self, library: Library | None = None) -> Any:
        """Everybody's numbers as a data frame, one row per person in the order of the bids. Confidential.

        Of ``library``; unless one is named, of the first that is installed: pandas, Polars, pyarrow.
        """
        return frame_of(self.columns(), library)

    def plain(self) -> dict[str, Any]:
        """The decision as plain values that `fields_of_plain` reads back."""
        return _WRITTEN.write(self._written())

    def with_arrays(self) -> dict[str, Any]:
        """Return the same, but columns stay arrays; `fields_of_plain` reads that, too."""
        return _WITH_ARRAYS.write(self._written())

    def _written(self) -> "_Written":
        columns = _Columns(**{name: getattr(self, attribute) for name, attribute in _ATTRIBUTES.items()})
        lower, upper = self.rent_bounds
        others = {name: getattr(self, name) for name in _SAME}
        return _Written(columns=columns, rent_lower=lower, rent_upper=upper, **others)

    def __repr__(self) -> str:  # losses and payments tell what people bid: not for a log
        return (
            f"{type(self).__name__}(people={self.bids.size}, active={self.active}, mse={self.mse:g},"
            f" total={self.total_payment:g})"
        )


def is_less_exact(decision: Decision, tolerance: float) -> bool:
    """Whether a payment may be off by more than the tolerance of the largest payment, as enclosures are aimed at it.

    It is not refused: a bidder could then stop the campaign.
    """
    if decision.active == 0:
        return False
    largest = max(float(decision.payments.max()), -float(decision.payments.min()))
    return less_exact(decision.incentive_error, largest, tolerance)


def less_exact(incentive_error: float, largest: float, tolerance: float) -> bool:
    """Return the same from figures: ``largest`` is the largest payment, whoever pays."""
    return 0.5 * incentive_error > _WIDTH * max(tolerance, FINEST) * largest


# -- plain values ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Columns:
    bid: FloatArray
    virtual_cost: FloatArray
    privacy_loss: FloatArray
    weight: FloatArray
    payment: FloatArray
    information_rent: FloatArray
    outside_error: FloatArray
    limit: FloatArray | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Written:
    columns: _Columns
    rent_lower: FloatArray
    rent_upper: FloatArray
    mse: float
    worst_mse: float
    objective: float
    incentive_error: float
    tie_order: IndexArray | None


_ATTRIBUTES = {
    "bid": "bids",
    "virtual_cost": "virtual_costs",
    "privacy_loss": "privacy_loss",
    "weight": "weights",
    "payment": "payments",
    "information_rent": "information_rent",
    "outside_error": "outside_error",
    "limit": "limits",
}
"""What the columns are called, and which attributes of a decision they are."""

_SAME = ("mse", "worst_mse", "objective", "incentive_error", "tie_order")
"""What is written by its own name."""

_WRITTEN = Codec(_Written, "outcome")
_WITH_ARRAYS = Codec(_Written, "outcome", style=ARRAYS)


def fields_of_plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a decision from its plain values, strictly."""
    found = _WRITTEN.read(values)
    columns, people = found.columns, found.columns.bid.size
    sizes = {getattr(columns, name).size for name in _Columns.__slots__ if getattr(columns, name) is not None}
    if people < 1 or sizes | {found.rent_lower.size, found.rent_upper.size} != {people}:
        raise RecordError(
            "outcome: columns and bounds on rents must have one number per person, and somebody must be there."
        )
    if found.tie_order is not None and not np.array_equal(np.sort(found.tie_order), np.arange(people)):
        raise RecordError(f"outcome: tie_order must hold every place from 0 to {people - 1} once.")
    read = {attribute: getattr(columns, name) for name, attribute in _ATTRIBUTES.items()}
    return read | {name: getattr(found, name) for name in _SAME} | {"rent_bounds": (found.rent_lower, found.rent_upper)}
