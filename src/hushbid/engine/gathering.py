"""The pass that takes people to the driver: those below a cut, or the cheapest of them, of each stratum."""

from dataclasses import dataclass

import numpy as np

from hushbid.common.arrays import FloatArray, HashArray, IndexArray, IntArray
from hushbid.engine.adapter import Batch, pyarrow
from hushbid.engine.people import People, Rows

_GATHERED = ("costs", "bids", "groups", "strata", "variance", "limit", "ties")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Gathered:
    """People taken to the driver: at most ``most`` of each stratum, the cheapest first, equals by their tie keys."""

    most: int
    costs: FloatArray
    bids: FloatArray
    groups: IntArray
    strata: IntArray
    variance: FloatArray
    limit: FloatArray
    ties: HashArray

    @classmethod
    def nobody(cls, most: int) -> "Gathered":
        """Where to start adding."""
        none = np.zeros(0)
        return cls(
            most=most,
            costs=none,
            bids=none,
            groups=np.zeros(0, np.int64),
            strata=np.zeros(0, np.int64),
            variance=none,
            limit=none,
            ties=np.zeros(0, dtype=np.uint64),
        )

    def __add__(self, other: "Gathered") -> "Gathered":
        """The cheapest of both; more than enough are kept until `settled`."""
        both = Gathered(
            most=self.most, **{name: np.concatenate([getattr(self, name), getattr(other, name)]) for name in _GATHERED}
        )
        # cut back only at twice too many, so that each row is sorted a few times at most
        crowd = int(np.bincount(both.strata).max(initial=0)) if both.costs.size > 2 * self.most else 0
        return both.settled() if crowd > 2 * self.most else both

    def settled(self) -> "Gathered":
        """In an order that does not depend on how they arrived, and not too many."""
        order = np.lexsort((self.limit, self.variance, self.groups, self.bids, self.ties, self.costs, self.strata))
        # the first so many of each stratum
        strata = self.strata[order]
        order = order[np.arange(order.size) - strata.searchsorted(strata) < self.most]
        return Gathered(most=self.most, **{name: getattr(self, name)[order] for name in _GATHERED})


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
        ties = self.ties(batch, rows, which)
        return Gathered(
            most=self.most,
            costs=rows.costs[which],
            bids=rows.bids[which],
            groups=np.zeros(which.size, np.int64) if rows.groups is None else rows.groups[which],
            strata=rows.strata[which],
            variance=np.zeros(which.size) if rows.variance is None else rows.variance[which],
            limit=np.full(which.size, np.inf) if rows.limit is None else rows.limit[which],
            ties=np.zeros(which.size, np.uint64) if ties is None else ties,
        )

    def near(self, rows: Rows) -> IndexArray:
        """Which of the good rows are not above the cut."""
        return np.flatnonzero(rows.costs <= np.array(self.cuts).take(rows.strata))

    def ties(self, batch: Batch, rows: Rows, which: IndexArray) -> HashArray | None:
        """The tie keys of some rows, if identity matters."""
        if not self.by_identity or self.people.id is None:
            return None
        # rows that could not be priced are in the batch, but not in `rows`
        places = which if rows.good is None else np.flatnonzero(rows.good)[which]
        return self.people.tie_keys(batch.column(self.people.id).take(pyarrow().array(places)))
