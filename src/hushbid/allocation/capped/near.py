"""Points of populations in which one person's cost is replaced, found from the point of the present one.

Who cannot change groups in a box around the present point is summed once. What Newton's method finds inside the box is
right; what it does not is looked for in a larger box, and at last among everybody. What is not found from the present
point, or if there is none, is searched for: in some of the populations, from which Newton's method reaches the others.
"""

import math

import numpy as np

from hushbid.allocation.capped.crowds import Crowd, Variants, Various
from hushbid.allocation.capped.levels import Aim, Points, between_costs, meets, newton, others_at_caps
from hushbid.allocation.capped.people import People, Totals
from hushbid.allocation.capped.problem import Scaled
from hushbid.arrays import BoolArray, FloatArray, IndexArray

CHUNK = 1 << 14
_DENSE = 1 << 21
_IN_CACHE = 1 << 16
_FIRST = 2.0
_WIDER = 4.0
_FEW = 64
_DIGITS = 16.0 * float(np.finfo(float).eps)
_EVERY = 16
"""Of so many populations that differ by one person's cost only, one is searched."""


class Present:
    """Everybody at their present costs, and where the optimum is."""

    def __init__(self, scaled: Scaled) -> None:
        self.scaled = scaled
        buyable = scaled.buyable
        self.rows = buyable[np.argsort(scaled.costs[buyable], kind="stable")]
        """Everybody who can be bought from, the cheapest first."""

        self.crowd = scaled.crowd(self.rows)
        self.place = np.full(scaled.costs.size, self.rows.size)
        """Where each person is among them; behind the last if she is not."""

        self.place[self.rows] = np.arange(self.rows.size)
        self.level, self.rate = 1.0, 1.0
        self.known = False
        """Whether these are those of the optimum."""

        self._boxes: list[Crowd] = []

    def stand(self, level: float, rate: float) -> None:
        """Tell the level and the rate of the optimum."""
        self.level, self.rate, self.known = level, rate, True

    @property
    def blur(self) -> float:
        """By how much losses may be off: they are the distance of the level from a cost, which may have few digits."""
        people = self.crowd.people
        inside, _ = people.groups(self.level, self.rate)
        if not self.known or not inside.any():  # everybody is at the cap, or out
            return 0.0
        steepest = self.rate * float(people.mass.max())
        return min(_DIGITS * (self.scaled.base + self.level) * steepest, float(people.cap.max()))

    @property
    def step(self) -> int:
        """How many populations at a time, if everybody is looked at in each."""
        return max(_DENSE // (self.rows.size + 1), 1) if isinstance(self.crowd, Various) else CHUNK

    def variants(self, rows: IndexArray, costs: FloatArray) -> Variants:
        """The populations with one cost replaced."""
        scaled, there = self.scaled, costs < math.inf
        offset = np.where(there, scaled.offsets(np.where(there, costs, 0.0)), 0.0)
        mass, cap = scaled.masses(rows) * there, np.where(there, scaled.caps_of(rows), 0.0)
        return Variants(self.crowd, self.place[rows], People.of(offset, mass, cap))

    def crowds(self) -> list[Crowd]:
        """The crowd summed for ever larger boxes around the present point; at last everybody one by one."""
        crowd = self.crowd
        if not isinstance(crowd, Various) or self.rows.size <= _FEW:
            return [crowd]
        if not self._boxes:
            tau = self.scaled.base + self.level
            width = _FIRST / max(int(np.count_nonzero(crowd.people.losses(self.level, self.rate))), 16)
            while width < 0.5:
                levels = (self.level - width * tau, self.level + width * tau)
                rates = (self.rate * (1.0 - width), self.rate * (1.0 + width))
                self._boxes.append(Various(crowd.base, crowd.people, levels, rates))
                width *= _WIDER
            self._boxes.append(crowd)
        return self._boxes

    def points(self, variants: Variants, level: FloatArray, rate: FloatArray) -> Points:
        """The sums at a point of each population, a few populations at a time."""
        parts = [slice(first, first + self.step) for first in range(0, level.size, self.step)]
        found = [variants.totals(level[part], rate[part], np.arange(level.size)[part]) for part in parts]
        return Points(level, rate, Totals.joined(found), variants.crowd.base)

    def near(self, variants: Variants) -> tuple[Points, BoolArray]:
        """Newton's method from the present point; and where it settled (elsewhere the sums are not known)."""
        count = variants.count
        level, rate = np.full(count, self.level), np.full(count, self.rate)
        settled, unsolved, totals = np.zeros(count, dtype=bool), np.arange(count), Totals.empty(count)
        for crowd in self.crowds() if self.known else ():
            step = in_step(crowd)
            for first in range(0, unsolved.size, step):
                some = unsolved[first : first + step]
                found, fine = newton(variants.take(some).on(crowd), self.scaled.aim, level[some], rate[some])
                fine &= crowd.holds(found.level, found.rate)
                done = some[fine]
                level[done], rate[done], settled[done] = found.level[fine], found.rate[fine], True
                totals.put(done, found.totals, fine)
            unsolved = unsolved[~settled[unsolved]]
            if unsolved.size == 0:
                break
        return Points(level, rate, totals, variants.crowd.base), settled

    def solved(self, variants: Variants) -> Points:
        """The one level and rate of an accuracy or a budget in every population, whatever it takes."""
        near, settled = self.near(variants)
        unsolved = np.flatnonzero(~(settled & meets(near, self.scaled.aim)))
        for first in range(0, unsolved.size, self.step):
            some = unsolved[first : first + self.step]
            part = variants.take(some)
            near.level[some], near.rate[some] = level, rate = self._searched(part)
            near.totals.put(some, part.totals(level, rate), np.ones(some.size, dtype=bool))
        return near

    def _searched(self, variants: Variants) -> tuple[FloatArray, FloatArray]:
        """Level and rate without a first guess."""
        level, rate, _, known = others_at_caps(variants, self.scaled.aim)
        rest = np.flatnonzero(~known)
        if rest.size:
            level[rest], rate[rest] = _one_from_the_next(variants.take(rest), self.scaled.aim)
        return level, rate


def _one_from_the_next(variants: Variants, aim: Aim) -> tuple[FloatArray, FloatArray]:
    """Level and rate by search in some populations, and from there in those between them."""
    if variants.count <= _EVERY or variants.without is None or variants.moved is None:
        return between_costs(variants, aim)
    order = np.lexsort((variants.moved.offset, variants.without))
    place = np.append(np.arange(0, order.size - 1, _EVERY), order.size - 1)
    some, rest = order[place], np.delete(order, place)
    level, rate = np.empty(variants.count), np.empty(variants.count)
    level[some], rate[some] = between_costs(variants.take(some), aim)
    # the others begin on a line from one to the next
    rank = np.arange(order.size)
    level[order], rate[order] = np.interp(rank, place, level[some]), np.interp(rank, place, rate[some])
    found, settled = newton(variants.take(rest), aim, level[rest], rate[rest])
    level[rest], rate[rest] = found.level, found.rate
    lost = rest[~(settled & meets(found, aim))]
    if lost.size:
        level[lost], rate[lost] = between_costs(variants.take(lost), aim)
    return level, rate


def in_step(crowd: Crowd) -> int:
    """How many populations at a time."""
    return max(_IN_CACHE // (crowd.loose.size + 1), 1) if isinstance(crowd, Various) else CHUNK
