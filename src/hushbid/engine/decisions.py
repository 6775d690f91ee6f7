"""From a row to privacy loss, weight and payment: by lookup among people taken to the driver, or by formula."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hushbid.common.arrays import FloatArray, HashArray, IndexArray, IntArray, rounded_sum
from hushbid.engine.adapter import Batch, Fields, pyarrow
from hushbid.engine.people import People, Rows, lookup_keys
from hushbid.mechanism import Decision
from hushbid.mechanism.many import SummedPurchase
from hushbid.payments import EvenBounds


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Gathered:
    """People taken to the driver: at most ``most`` of each stratum, the cheapest first, equals by their tie keys."""

    most: int
    rows: Rows
    ties: HashArray

    def __add__(self, other: "Gathered") -> "Gathered":
        """The cheapest of both; more than enough are kept until `settled`."""
        ties = np.concatenate([self.ties, other.ties])
        both = Gathered(most=self.most, rows=self.rows + other.rows, ties=ties)
        # cut back only at twice too many, so that each row is sorted a few times at most
        crowd = int(np.bincount(both.rows.strata).max(initial=0)) if ties.size > 2 * self.most else 0
        return both.settled() if crowd > 2 * self.most else both

    def settled(self) -> "Gathered":
        """In an order that does not depend on how they arrived, and not too many."""
        rows = self.rows
        keys = (rows.limit, rows.variance, rows.groups, rows.bids, self.ties, rows.costs, rows.strata)
        order = np.lexsort([key for key in keys if key is not None])
        # the first so many of each stratum
        strata = rows.strata[order]
        order = order[np.arange(order.size) - strata.searchsorted(strata) < self.most]
        return Gathered(most=self.most, rows=rows.take(order), ties=self.ties[order])


@dataclass(frozen=True, slots=True)
class GatherKernel:
    """Everybody with a cost of at most the cut, or the cheapest ``most`` of them, of each stratum."""

    people: People
    cuts: tuple[float, ...]
    """One for each stratum."""

    most: int
    by_identity: bool
    """Whether identity decides between equals, so that ids are read."""

    @property
    def columns(self) -> list[str]:
        """What it reads."""
        return self.people.columns_and_id if self.by_identity else self.people.columns

    def __call__(self, batch: Batch, start: int | None) -> Gathered:
        rows = self.people.read(batch)
        which = self.near(rows)
        return Gathered(most=self.most, rows=rows.take(which), ties=self.ties(batch, rows, which))

    def near(self, rows: Rows) -> IndexArray:
        """Which of the good rows are not above the cut."""
        return np.flatnonzero(rows.costs <= np.array(self.cuts).take(rows.strata))

    def ties(self, batch: Batch, rows: Rows, which: IndexArray) -> HashArray:
        """The tie keys of some rows, all alike unless identity matters."""
        if not self.by_identity or self.people.id is None:
            return np.zeros(which.size, dtype=np.uint64)
        # rows that could not be priced are in the batch, but not in `rows`
        places = which if rows.good is None else np.flatnonzero(rows.good)[which]
        return self.people.tie_keys(batch.column(self.people.id).take(pyarrow().array(places)))


PRICED: Fields = (("privacy_loss", "float64"), ("weight", "float64"), ("payment", "float64"))
"""The columns that pricing appends."""


class Details(NamedTuple):
    """All that is decided about some people, called as in a record, and what the estimate uses of their losses."""

    privacy_loss: FloatArray
    weight: FloatArray
    payment: FloatArray
    information_rent: FloatArray
    rent_lower: FloatArray
    rent_upper: FloatArray
    outside_error: FloatArray
    used: FloatArray

    @classmethod
    def of(cls, made: Decision, used: FloatArray, order: IndexArray) -> "Details":
        """Return those of a decision, in another order."""
        columns = (made.privacy_loss, made.weights, made.payments, made.information_rent, *made.rent_bounds)
        return cls(*(column[order] for column in (*columns, made.outside_error, used)))

    @classmethod
    def idle(cls, payment: FloatArray, outside: FloatArray) -> "Details":
        """Return those of people who are not bought from."""
        loss, weight, rent, lower, upper, used = (np.zeros(payment.size) for _ in range(6))
        return cls(loss, weight, payment, rent, lower, upper, outside, used)


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
    def largest_used(self) -> float:
        """What the best estimate uses of anybody's loss at most."""

    @property
    @abstractmethod
    def used(self) -> tuple[tuple[int, float], ...]:
        """How many are bought from in each stratum, and what the best estimate uses of their losses together."""

    @abstractmethod
    def details(self, batch: Batch, rows: Rows) -> Details:
        """Return the decisions for the good rows of a batch, with all that they follow from."""

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
        return columns_of(rows, *self.details(batch, rows)[: len(PRICED)])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LookupKernel(Decider):
    """People priced on the driver are found by their keys; all others are idle."""

    gather: GatherKernel
    idle: Idle
    salt: int
    """With which no two people who differ have the same key."""

    keys: HashArray
    """Ascending."""

    known: Details
    """What was decided about these people, in the order of their keys."""

    strata: IntArray
    """Everybody's stratum."""

    @property
    def people(self) -> People:
        return self.gather.people

    @property
    def columns(self) -> list[str]:
        return self.gather.columns

    @property
    def largest_payment(self) -> float:
        return max(float(np.abs(self.known.payment).max(initial=0.0)), self.idle.largest_payment)

    @property
    def largest_used(self) -> float:
        return float(self.known.used.max(initial=0.0))

    @property
    def used(self) -> tuple[tuple[int, float], ...]:
        parts = (self.strata == code for code in range(len(self.gather.cuts)))
        return tuple(
            (int(np.count_nonzero(self.known.privacy_loss[part])), rounded_sum(self.known.used[part])) for part in parts
        )

    def details(self, batch: Batch, rows: Rows) -> Details:
        found = Details.idle(self.idle.payments(rows), self.idle.outside_errors(rows).copy())
        which, place = self.found(batch, rows)
        for column, known in zip(found, self.known, strict=True):
            column[which] = known[place]
        return found

    def found(self, batch: Batch, rows: Rows) -> tuple[IndexArray, IndexArray]:
        """Which good rows were priced on the driver, and where they stand there."""
        which = self.gather.near(rows)
        if not which.size or not self.keys.size:
            return which[:0], which[:0]
        keys = lookup_keys(rows.take(which), self.gather.ties(batch, rows, which), self.salt)
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
        return self.purchase.largest_price + self.idle.largest_payment

    @property
    def largest_used(self) -> float:
        return self.purchase.largest_loss  # an optimum is used whole

    @property
    def used(self) -> tuple[tuple[int, float], ...]:
        return self.purchase.bought_in_strata

    def details(self, batch: Batch, rows: Rows) -> Details:
        found = self.purchase.priced(rows.bids, rows.costs, rows.groups, rows.strata)
        outside, user_weight = self.idle.outside_errors(rows), self.idle.user_weight
        # bid times loss and rent; an infinite bid has no loss
        payment = np.multiply(rows.bids, found.loss, out=np.zeros(found.loss.size), where=found.loss > 0.0)
        payment += found.rent
        if user_weight:
            payment += self.idle.payments(rows)
        if found.outside.size:  # the estimate without them, where they would have mattered
            payment -= user_weight * found.outside
            outside = outside + found.outside if user_weight else outside
        error = self.purchase.schedule_error + self.purchase.rent_error
        bounds = EvenBounds(rents=found.rent, losses=found.loss, error=error)
        return Details(found.loss, found.weight, payment, found.rent, bounds[0], bounds[1], outside, found.loss)


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
