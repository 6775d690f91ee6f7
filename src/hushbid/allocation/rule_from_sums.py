"""How the optimum answers to one person's cost, of strata known through sums.

The people asked about are imagined: each is somebody of one stratum, now at a given cost. Who is active is found from
guess to guess as in :mod:`hushbid.allocation.contrast.replies`. What follows is computed from changes only: with the
sums of each stratum taken about its present mean ``m``, people who come and go change ``(U, m, Q)`` by

    δU = d₀,    δm = d₁/(U + d₀),    δQ = d₂ − d₁²/(U + d₀),        d_j = Σ ±(ψ − m)^j,

and values by what these changes make of them. Of very many people one's share would be lost in the digits of the whole.
"""

import math
from dataclasses import dataclass

import numpy as np

from hushbid.allocation.contrast.moved import Found, Moved, Others
from hushbid.allocation.contrast.pieces import Point, Stratum
from hushbid.allocation.contrast.potential import budget_potential
from hushbid.allocation.contrast.replies import ROUNDS, ContrastReplies, larger_root
from hushbid.allocation.from_sums import SummedOptimum
from hushbid.allocation.goals import Accuracy, Price
from hushbid.allocation.reply_rules import Replies
from hushbid.arrays import BoolArray, FloatArray, IndexArray


@dataclass(frozen=True, slots=True, eq=False)
class _Changes:
    """By how much ``M``, ``Q`` and ``C`` differ from the present."""

    mean: FloatArray
    spread: FloatArray
    floor: FloatArray

    @classmethod
    def of(cls, size: float, total: float, d0: FloatArray, d1: FloatArray, d2: FloatArray) -> "_Changes":
        """Of one stratum of λ ``size`` and present mass ``total``."""
        with np.errstate(divide="ignore", invalid="ignore"):
            after = total + d0
            return cls(size * d1 / after, d2 - d1 * d1 / after, -size * size * d0 / (total * after))


class SummedRules:
    """The optimum as a function of the cost of one person, of any stratum."""

    def __init__(self, summed: SummedOptimum) -> None:
        self.summed = summed
        self._all, self._each = _elsewhere(summed)
        self._views: dict[int, tuple[Others, list[FloatArray]]] = {}

    def of(self, stratum: int, costs: FloatArray) -> "SummedRule":
        """Return the rule of imagined people of one stratum, who are now at ``costs`` below its level."""
        if stratum not in self._views:
            summed = self.summed
            view = Others.of(summed.people, summed.pieces, stratum)
            terms = _outward(summed.people[stratum], summed.counts[stratum], summed.moments[stratum][1])
            self._views[stratum] = view, terms
        return SummedRule(self.summed, stratum, costs, *self._views[stratum], self._all, self._each[stratum])


class SummedRule(ContrastReplies):
    """The optimum as a function of the cost of each of some imagined people of one stratum."""

    def __init__(
        self,
        summed: SummedOptimum,
        stratum: int,
        costs: FloatArray,
        view: Others,
        terms: list[FloatArray],
        everywhere: _Changes,
        hers: _Changes,
    ) -> None:
        self._summed, self._scaled, self._pieces = summed, summed.scaled, summed.pieces
        self._people, self._own_stratum = summed.people, summed.people[stratum]
        self._point = Point(
            summed.at, summed.mean, summed.spread, summed.floor, tuple(summed.counts), tuple(summed.moments)
        )
        self._view, self._terms, self._all, self._hers = view, terms, everywhere, hers
        self._lowest = summed.strata[stratum].lowest
        self._total, self._mean, _ = summed.moments[stratum]
        self._own = (costs - self._lowest) / summed.scaled.scale
        offset, mass = self._own_stratum.offset, self._own_stratum.mass
        # whoever is listed by herself is no neighbour of hers; the others are among those who are not listed
        last = np.maximum(offset.searchsorted(self._own, side="right") - 1, 0)
        listed = (offset[last] == self._own) & (mass[last] == 1.0)
        self._place = np.where(listed, last, -1)
        self._rank = np.where(listed, last, np.maximum(offset.searchsorted(self._own) - 1, 0))

    def at(self, rows: IndexArray, costs: FloatArray) -> Replies:
        """The optimum if person ``rows[j]`` had cost ``costs[j]``, not below her own (``inf``: were not there).

        Values count from the present one.
        """
        pairs = Moved(
            others=self._view,
            mass=np.ones(rows.size),
            own=self._own[rows],
            to=(costs - self._lowest) / self._scaled.scale,
            place=self._place[rows],
            rank=self._rank[rows],
        )
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            # those who do not settle go to and fro between neighbours by rounding
            at, level, found, _ = self._follow(pairs, ROUNDS)
            lost = ~(at < math.inf)
            value, loss, mse = self._answers(pairs, at, level, found, lost)
        return Replies(np.where(lost, math.inf, value), np.where(lost, 0.0, loss), np.where(lost, math.inf, mse))

    def _answers(
        self, pairs: Moved, at: FloatArray, level: FloatArray, found: Found, lost: BoolArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        scaled, summed = self._scaled, self._summed
        change, above = self._changes(pairs, at, level, found)
        mean, spread, floor = summed.mean + change.mean, summed.spread + change.spread, summed.floor + change.floor
        if isinstance(scaled.goal, Price):
            new = larger_root(mean, spread)
            value = scaled.goal.number * scaled.factor * self._more_value(change, new)
            strength = 2.0 / (new * new * math.sqrt(scaled.unit))
        elif isinstance(scaled.goal, Accuracy):
            rest = scaled.ratio - floor
            new = mean / rest
            more = change.mean * new + summed.mean * (change.mean + summed.at * change.floor) / rest - change.spread
            paid = summed.paid + more
            expense = np.sqrt(2.0 * paid / scaled.unit)
            value = 2.0 * more / (scaled.unit * (expense + summed.expense))
            strength = np.sqrt(2.0 / (scaled.unit * paid))
        else:
            new = (scaled.half + spread) / mean
            value = budget_potential(scaled, pairs, at, level, found, lost)
            strength = np.full(at.size, math.sqrt(2.0 / scaled.unit / scaled.half))
        total, moved = above
        # how far her stratum's level is above her cost
        over = self._mean - pairs.to + (moved + self._own_stratum.size * new) / total
        loss = np.where(pairs.to < math.inf, np.maximum(over, 0.0), 0.0) * strength
        mse = scaled.factor * (floor + mean / new)
        if isinstance(scaled.goal, Accuracy):
            mse = np.full(at.size, scaled.goal.number**2)
        return value, loss, mse

    def _more_value(self, change: _Changes, new: FloatArray) -> FloatArray:
        """``Φ`` less the present one: what the changes make of it at the new ``T``, and what ``T`` makes of it."""
        now, both = self._summed.at, new * self._summed.at
        moved = 0.5 * (new + now) - 2.0 * self._summed.mean / both + self._summed.spread * (new + now) / (both * both)
        return np.asarray(change.floor + 2.0 * change.mean / new - change.spread / (new * new) + (new - now) * moved)

    def _changes(
        self, pairs: Moved, at: FloatArray, level: FloatArray, found: Found
    ) -> tuple[_Changes, tuple[FloatArray, FloatArray]]:
        """Of all strata together; and the mass and the first moment of hers, about its present mean."""
        gone, present = (pairs.own < level).astype(float), found.present.astype(float)
        own, to = pairs.own - self._mean, np.where(found.present, pairs.to - self._mean, 0.0)
        d0, d1, d2 = (terms[found.count] - gone * own**j + present * to**j for j, terms in enumerate(self._terms))
        hers = _Changes.of(self._own_stratum.size, self._total, d0, d1, d2)
        k = np.maximum(self._own_stratum.key.searchsorted(at), 1)
        parts = (
            getattr(hers, name) + getattr(self._all, name)[found.piece] - getattr(self._hers, name)[k]
            for name in ("mean", "spread", "floor")
        )
        return _Changes(*parts), (self._total + d0, d1)


def _outward(stratum: Stratum, count: int, mean: float) -> list[FloatArray]:
    """``d₀, d₁, d₂`` if the first 0, 1, 2, … entries are active instead of the first ``count``."""
    distance, found = stratum.offset - mean, []
    for power in range(3):
        terms = stratum.mass * distance**power
        before = -terms[:count][::-1].cumsum()[::-1]
        found.append(np.concatenate([before, [0.0], terms[count:].cumsum()]))
    return found


def _elsewhere(summed: SummedOptimum) -> tuple[_Changes, list[_Changes]]:
    """The changes of all strata together in each piece, and of each if its first 0, 1, 2, … entries are active."""
    each = []
    for one, count, (total, mean, _) in zip(summed.people, summed.counts, summed.moments, strict=True):
        each.append(_Changes.of(one.size, total, *_outward(one, count, mean)))
    order = np.argsort(np.concatenate([one.key for one in summed.people]), kind="stable")
    present = sum(summed.counts)
    together = []
    for name in ("mean", "spread", "floor"):
        # what each entry changes; the first of a stratum is always there
        steps = np.concatenate([np.append(0.0, np.diff(getattr(one, name)[1:])) for one in each])[order]
        together.append(np.append(-steps[1:present][::-1].cumsum()[::-1], np.append(0.0, steps[present:].cumsum())))
    return _Changes(*together), each
