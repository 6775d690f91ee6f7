"""The kernels of the writing pass: from a row to privacy loss, weight and payment, by lookup or by formula."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hushbid.common.arrays import FloatArray, HashArray, IndexArray, IntArray
from hushbid.engine.adapter import Batch, Fields, pyarrow
from hushbid.engine.gathering import GatherKernel
from hushbid.engine.people import People, Rows, lookup_keys
from hushbid.mechanism import Decision
from hushbid.mechanism.many import Priced, SummedPurchase
from hushbid.payments import EvenBounds

PRICED: Fields = (("privacy_loss", "float64"), ("weight", "float64"), ("payment", "float64"))
"""The columns that pricing appends."""

Decided = tuple[FloatArray, FloatArray, FloatArray]
"""Privacy losses, weights and payments."""


class Details(NamedTuple):
    """All that a record says of what was decided about some people; fields are called as in a record."""

    privacy_loss: FloatArray
    weight: FloatArray
    payment: FloatArray
    information_rent: FloatArray
    rent_lower: FloatArray
    rent_upper: FloatArray
    outside_error: FloatArray


class Rents(NamedTuple):
    """Information rents, rigorous bounds on them, and errors outside."""

    estimate: FloatArray
    lower: FloatArray
    upper: FloatArray
    outside: FloatArray

    @classmethod
    def of(cls, made: Decision, order: IndexArray) -> "Rents":
        """Return those of a decision, in another order."""
        columns = (made.information_rent, made.rent_bounds[0], made.rent_bounds[1], made.outside_error)
        return cls(*(column[order] for column in columns))


@dataclass(frozen=True, slots=True, kw_only=True)
class Idle:
    """What people who are not bought from are paid: their user weight times what the estimate gains them."""

    user_weight: float
    mse: float
    outside: float | None
    """Their error outside; None if it is each one's own variance, a column of the table."""

    largest_outside: float
    """The largest error that anybody has outside."""

    def payments(self, rows: Rows) -> FloatArray:
        """For every row."""
        if self.user_weight == 0.0:
            return np.zeros(rows.bids.size)
        return self.user_weight * (self.mse - self.outside_errors(rows))

    def outside_errors(self, rows: Rows) -> FloatArray:
        """Return everybody's error outside, as if nobody were bought from."""
        outside = rows.variance if self.outside is None else np.full(rows.bids.size, self.outside)
        assert outside is not None
        return outside

    @property
    def largest_payment(self) -> float:
        """No payment to somebody idle is larger, whoever pays."""
        return self.user_weight * max(self.mse, self.largest_outside) if self.user_weight else 0.0


class Decider(ABC):
    """A kernel of the writing pass: by lookup and by formula here, by a menu in `hushbid.engine.solve_menu`."""

    idle: Idle
    """What people are paid who are not bought from."""

    @property
    @abstractmethod
    def people(self) -> People:
        """Which columns say what."""

    @property
    @abstractmethod
    def largest_payment(self) -> float:
        """About the largest payment, whoever pays."""

    @property
    @abstractmethod
    def used(self) -> tuple[float, float]:
        """What the best estimate uses of anybody's loss at most, and of all together."""

    @abstractmethod
    def decide(self, batch: Batch, rows: Rows) -> Decided:
        """Return the decisions for the good rows of a batch."""

    @abstractmethod
    def details(self, batch: Batch, rows: Rows) -> Details:
        """Return the decisions for the good rows of a batch, with all that they follow from."""

    @property
    def bought_in_strata(self) -> tuple[tuple[int, float], ...]:
        """How many are bought from in each stratum, and their losses together; empty without strata."""
        return ()

    @property
    def columns(self) -> list[str]:
        """What it reads."""
        return self.people.columns

    @property
    def fields(self) -> Fields:
        """The columns to append."""
        return PRICED

    def __call__(self, batch: Batch) -> list[Any]:
        """Return the columns that pricing appends to a batch."""
        rows = self.people.read(batch)
        return columns_of(rows, *self.decide(batch, rows))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LookupKernel(Decider):
    """People priced on the driver are found by their keys; all others are idle."""

    gather: GatherKernel
    idle: Idle
    salt: int
    """With which no two people who differ have the same key."""

    keys: HashArray
    """Ascending."""

    loss: FloatArray
    weight: FloatArray
    payment: FloatArray
    rents: Rents
    strata: IntArray
    """Everybody's stratum."""

    @property
    def people(self) -> People:
        """Which columns say what."""
        return self.gather.people

    @property
    def bought_in_strata(self) -> tuple[tuple[int, float], ...]:
        """How many are bought from in each stratum, and their losses together; empty without strata."""
        if not self.people.strata:
            return ()
        parts = (self.loss[self.strata == code] for code in range(len(self.people.strata)))
        return tuple((int(np.count_nonzero(part)), float(part.sum())) for part in parts)

    @property
    def columns(self) -> list[str]:
        """What it reads."""
        return self.gather.columns

    @property
    def largest_payment(self) -> float:
        """About the largest payment, whoever pays."""
        return max(float(np.abs(self.payment).max(initial=0.0)), self.idle.largest_payment)

    @property
    def used(self) -> tuple[float, float]:
        """What the best estimate uses of anybody's loss at most, and of all together."""
        some = self.weight > 0.0
        total = float((self.loss[some] / self.weight[some]).min())  # where all of it is used, and no weight is less
        most, largest = float(self.weight.max()) * total, float(self.loss.max())
        # all of it, but for the last digits: then it is used to the last digit
        return (largest if most >= largest * (1.0 - 1e-12) else most), total

    def decide(self, batch: Batch, rows: Rows) -> Decided:
        """The decisions for the good rows of a batch."""
        payment = self.idle.payments(rows)
        loss, weight = np.zeros(payment.size), np.zeros(payment.size)
        which, place = self.found(batch, rows)
        loss[which], weight[which], payment[which] = self.loss[place], self.weight[place], self.payment[place]
        return loss, weight, payment

    def details(self, batch: Batch, rows: Rows) -> Details:
        """Return the same, and rents and errors outside; who is idle has no rent."""
        decided, (which, place) = self.decide(batch, rows), self.found(batch, rows)
        estimate, lower, upper = (np.zeros(rows.bids.size) for _ in range(3))
        found = Rents(estimate, lower, upper, self.idle.outside_errors(rows).copy())
        for column, known in zip(found, self.rents, strict=True):
            column[which] = known[place]
        return Details(*decided, *found)

    def found(self, batch: Batch, rows: Rows) -> tuple[IndexArray, IndexArray]:
        """Which good rows were priced on the driver, and where they stand there."""
        which = self.gather.near(rows)
        if not which.size or not self.keys.size:
            return which[:0], which[:0]
        keys = lookup_keys(
            rows.bids[which],
            [None if rows.groups is None else rows.groups[which], rows.strata[which]],
            [None if column is None else column[which] for column in (rows.variance, rows.limit)],
            self.gather.ties(batch, rows, which),
            self.salt,
        )
        # sorted keys: where it would stand, and whether it does
        place = np.minimum(self.keys.searchsorted(keys), self.keys.size - 1)
        hit = self.keys[place] == keys
        return which[hit], place[hit]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FormulaKernel(Decider):
    """Losses by the optimum's formula, rents and outside errors by curves in the bid, per stratum and group."""

    people: People
    idle: Idle
    purchase: SummedPurchase

    @property
    def largest_payment(self) -> float:
        """About the largest payment, whoever pays."""
        return self.purchase.largest_price + self.idle.largest_payment

    @property
    def used(self) -> tuple[float, float]:
        """What the best estimate uses of anybody's loss at most, and of all together: an optimum is used whole."""
        return np.inf, self.purchase.loss_per_share

    @property
    def bought_in_strata(self) -> tuple[tuple[int, float], ...]:
        """How many are bought from in each stratum, and their losses together; empty without strata."""
        return self.purchase.bought_in_strata if self.people.strata else ()

    def decide(self, batch: Batch, rows: Rows) -> Decided:
        """The decisions for the good rows of a batch."""
        found = self._priced(rows)
        return found.loss, found.weight, self._payments(rows, found)

    def details(self, batch: Batch, rows: Rows) -> Details:
        """Return the same, and rents and errors outside."""
        found, outside = self._priced(rows), self.idle.outside_errors(rows)
        if found.outside.size and self.idle.user_weight:
            outside = outside + found.outside
        error = self.purchase.schedule_error + self.purchase.rent_error
        bounds = EvenBounds(rents=found.rent, losses=found.loss, error=error)
        payment = self._payments(rows, found)
        return Details(found.loss, found.weight, payment, found.rent, bounds[0], bounds[1], outside)

    def _priced(self, rows: Rows) -> Priced:
        return self.purchase.priced(rows.bids, rows.costs, rows.groups, rows.strata)

    def _payments(self, rows: Rows, found: Priced) -> FloatArray:
        # bid times loss and rent; an infinite bid has no loss
        payment = np.multiply(rows.bids, found.loss, out=np.zeros(found.loss.size), where=found.loss > 0.0)
        payment += found.rent
        if self.idle.user_weight:
            payment += self.idle.payments(rows)
        if found.outside.size:  # the estimate without them, where they would have mattered
            payment -= self.idle.user_weight * found.outside
        return payment


def columns_of(rows: Rows, *decided: NDArray[Any]) -> list[Any]:
    """Values for the good rows as Arrow arrays, null in the rows that cannot be priced."""
    pa = pyarrow()
    good = rows.good
    if good is None:
        return [pa.array(values) for values in decided]
    # a row that cannot be priced stays, with nulls
    columns = []
    for values in decided:
        column = np.zeros(good.size, dtype=values.dtype)
        column[good] = values
        columns.append(pa.array(column, mask=~good))
    return columns
