"""How the optimum answers to one person's cost, of strata known through sums.

The people asked about are imagined: each is somebody of one stratum, now at a given cost. Who is active is found from
guess to guess as in :mod:`hushbid.allocation.pairs_by_pieces`. What follows is computed from changes only: with the
sums of each stratum taken about its present mean ``m``, people who come and go change ``(U, m, Q)`` by

    δU = d₀,    δm = d₁/(U + d₀),    δQ = d₂ − d₁²/(U + d₀),        d_j = Σ ±(ψ − m)^j,

and values by what these changes make of them. Of very many people one's share would be lost in the digits of the whole.
"""

import math

import numpy as np

from hushbid.allocation.budget_integral import budget_values
from hushbid.allocation.deviations import Deviations, Surroundings
from hushbid.allocation.from_sums import SummedOptimum
from hushbid.allocation.pieces import Stratum
from hushbid.allocation.reply_rules import Answers
from hushbid.allocation.rule import AllocationRule
from hushbid.allocation.targets import Change, Present, Sums
from hushbid.common.arrays import FloatArray, IndexArray


def _change(size: float, total: float, d0: FloatArray, d1: FloatArray, d2: FloatArray) -> Change:
    """Of one stratum of λ ``size`` and present mass ``total``."""
    with np.errstate(divide="ignore", invalid="ignore"):
        after = total + d0
        return Change(size * d1 / after, d2 - d1 * d1 / after, -size * size * d0 / (total * after))


class SummedRules:
    """The optimum as a function of the cost of one person, of any stratum."""

    def __init__(self, summed: SummedOptimum) -> None:
        self.summed = summed
        self._all, self._each = _elsewhere(summed)
        self._views: dict[int, tuple[Surroundings, list[FloatArray]]] = {}

    def of(self, stratum: int, costs: FloatArray) -> AllocationRule:
        """Return the rule of imagined people of one stratum, who are now at ``costs`` below its level."""
        if stratum not in self._views:
            summed = self.summed
            view = Surroundings.of(summed.people, summed.pieces, stratum)
            terms = _outward(summed.people[stratum], summed.counts[stratum], summed.moments[stratum][1])
            self._views[stratum] = view, terms
        pairs = PairsFromSums(self.summed, stratum, costs, *self._views[stratum], self._all, self._each[stratum])
        codes, caps = np.full(costs.size, stratum), np.broadcast_to(math.inf, costs.shape)
        return AllocationRule(self.summed.form, codes, caps, pairs)


class PairsFromSums:
    """The optimum as a function of the cost of each of some imagined people of one stratum."""

    blur = 0.0

    def __init__(
        self,
        summed: SummedOptimum,
        stratum: int,
        costs: FloatArray,
        view: Surroundings,
        terms: list[FloatArray],
        everywhere: Change,
        own: Change,
    ) -> None:
        self._summed, self._form, self._own_stratum = summed, summed.form, summed.people[stratum]
        self._now = Present(summed.mean, summed.spread, summed.floor, summed.at)
        self._view, self._terms, self._all, self._own_changes = view, terms, everywhere, own
        self._lowest = summed.strata[stratum].lowest
        self._total, self._mean, _ = summed.moments[stratum]
        self._own = (costs - self._lowest) / summed.form.scale
        offset, mass = self._own_stratum.offset, self._own_stratum.mass
        # whoever is listed by herself is no neighbour of hers; the others are among those who are not listed
        last = np.maximum(offset.searchsorted(self._own, side="right") - 1, 0)
        listed = (offset[last] == self._own) & (mass[last] == 1.0)
        self._place = np.where(listed, last, -1)
        self._rank = np.where(listed, last, np.maximum(offset.searchsorted(self._own) - 1, 0))

    def dearest(self, rows: IndexArray) -> FloatArray:
        """Return the costs above which people are not bought from: without caps none."""
        return np.full(rows.size, math.inf)

    def answers(self, stratum: int, rows: IndexArray, costs: FloatArray) -> Answers:
        """Return the optimum if people had these costs, not below their own; values count from the present one."""
        form, now, target = self._form, self._now, self._form.target
        pairs = Deviations(
            view=self._view,
            mass=np.ones(rows.size),
            own=self._own[rows],
            to=(costs - self._lowest) / form.scale,
            cost=costs / form.scale,
            place=self._place[rows],
            rank=self._rank[rows],
        )
        # those who do not settle go to and fro between neighbours by rounding
        at, level, found, _ = pairs.follow(target, now.at)
        lost = ~(at < math.inf)
        change, (total, moved) = self._changes(pairs, at, level, found)
        mean, spread, floor = now.mean + change.mean, now.spread + change.spread, now.floor + change.floor
        new = target.root(mean, spread, floor)
        step = target.step(new, self._summed.paid + change.paid(now, new))
        # how far the level of the stratum is above each cost
        over = self._mean - pairs.to + (moved + self._own_stratum.size * new) / total
        loss = np.where(lost | (pairs.to == math.inf), 0.0, np.maximum(over, 0.0) / step)

        def values() -> FloatArray:
            if target.kind == "budget":
                return budget_values(target, pairs, level, found, at)
            return np.where(lost, math.inf, target.value_change(now, change, new))

        return Answers(values, loss, np.where(lost, math.inf, floor + mean / new))

    def _changes(
        self, pairs: Deviations, at: FloatArray, level: FloatArray, found: Sums
    ) -> tuple[Change, tuple[FloatArray, FloatArray]]:
        """Of all strata together; and the mass and the first moment of hers, about its present mean."""
        gone, present = (pairs.own < level).astype(float), found.present.astype(float)
        own, to = pairs.own - self._mean, np.where(found.present, pairs.to - self._mean, 0.0)
        d0, d1, d2 = (terms[found.count] - gone * own**j + present * to**j for j, terms in enumerate(self._terms))
        hers = _change(self._own_stratum.size, self._total, d0, d1, d2)
        if not self._view.other_keys.size:
            return hers, (self._total + d0, d1)
        k = np.maximum(self._own_stratum.key.searchsorted(at), 1)
        parts = (
            getattr(hers, name) + getattr(self._all, name)[found.piece] - getattr(self._own_changes, name)[k]
            for name in ("mean", "spread", "floor")
        )
        return Change(*parts), (self._total + d0, d1)


def _outward(stratum: Stratum, count: int, mean: float) -> list[FloatArray]:
    """``d₀, d₁, d₂`` if the first 0, 1, 2, … entries are active instead of the first ``count``."""
    distance, found = stratum.offset - mean, []
    for power in range(3):
        terms = stratum.mass * distance**power
        before = -terms[:count][::-1].cumsum()[::-1]
        found.append(np.concatenate([before, [0.0], terms[count:].cumsum()]))
    return found


def _elsewhere(summed: SummedOptimum) -> tuple[Change, list[Change]]:
    """The changes of all strata together in each piece, and of each if its first 0, 1, 2, … entries are active."""
    each = []
    for one, count, (total, mean, _) in zip(summed.people, summed.counts, summed.moments, strict=True):
        each.append(_change(one.size, total, *_outward(one, count, mean)))
    order = np.argsort(np.concatenate([one.key for one in summed.people]), kind="stable")
    present = sum(summed.counts)
    together = []
    for name in ("mean", "spread", "floor"):
        # what each entry changes; the first of a stratum is always there
        steps = np.concatenate([np.append(0.0, np.diff(getattr(one, name)[1:])) for one in each])[order]
        together.append(np.append(-steps[1:present][::-1].cumsum()[::-1], np.append(0.0, steps[present:].cumsum())))
    return Change(*together), each
