"""How the optimum for a contrast under caps moves when one person's cost does, for many (person, cost) pairs at once.

Replacing a cost changes the sums of one stratum by one person's terms. From the present ``S`` and levels Newton's
method goes to the pair's; `basins` proves that what it finds is the only stationary point that can be as good. Where
that is not proved, and for lowered costs, all ``S`` are searched for the pair.
"""

import math
from dataclasses import replace

import numpy as np

from hushbid.allocation.capped.basin import Basin, basins
from hushbid.allocation.capped.contrast import begin, best_seen, settle, value_at
from hushbid.allocation.capped.contrast_solve import Optimum, solve_capped_contrast
from hushbid.allocation.capped.crowds import Variants
from hushbid.allocation.capped.near import CHUNK, Present, in_step
from hushbid.allocation.capped.parts import Parts
from hushbid.allocation.capped.price import explore
from hushbid.allocation.capped.strata import Divided
from hushbid.allocation.central_problem import limited
from hushbid.allocation.problem import Problem
from hushbid.allocation.reply_rules import DirectReplies, Replies
from hushbid.arrays import FloatArray, IndexArray
from hushbid.estimation import Strata

_GUESSES = np.append(1.0, 4.0 ** -np.arange(0.5, 8.0))
"""As shares of the present ``S``, where it might be if somebody moves."""

_FAR_BELOW = 1e-6

_SEARCHED = 256
"""So many pairs are searched at once."""

Answer = tuple[FloatArray, FloatArray, FloatArray]
"""Value, loss and error of each pair, in the units of the search."""


class CappedContrastReplies:
    """The optimum under caps as a function of one person's cost, everybody else's fixed; for a price."""

    def __init__(self, problem: Problem, caps: float | FloatArray, strata: Strata) -> None:
        self._divided = divided = Divided.of(problem, caps, strata)
        self._place = np.empty(problem.costs.size, dtype=np.intp)
        """Where everybody is in her stratum."""

        for rows in divided.rows:
            self._place[rows] = np.arange(rows.size)
        found = Optimum.of(divided)
        self._outline, self._at, self._now = found.outline, found.at, [Present(one) for one in divided.each]
        for one, level in zip(self._now, found.levels, strict=True):
            one.stand(level, 0.5 * found.at**2)
        self._basins: list[Basin | None] = [None] * len(self._now)
        if found.seen is not None:
            self._basins = basins(found.parts, found.seen, found.levels, 0.5 * found.at**2)
        self._free = frozenset(np.flatnonzero(problem.costs == 0.0).tolist())
        self._direct = DirectReplies(
            problem.costs, lambda costs: solve_capped_contrast(replace(problem, costs=costs), caps, strata)
        )
        self._known: dict[tuple[int, bool], tuple[float, float]] = {}

    def at(self, rows: IndexArray, costs: FloatArray) -> Replies:
        """The optimum if person ``rows[j]`` had cost ``costs[j]`` (``inf``: were not there), for every j."""
        divided = self._divided
        value, loss, mse = np.empty(rows.size), np.empty(rows.size), np.empty(rows.size)
        within = limited(costs, divided.limits)
        codes = divided.strata.codes[rows]
        for stratum in np.unique(codes).tolist():
            mine = np.flatnonzero(codes == stratum)
            for first in range(0, mine.size, CHUNK):
                part = mine[first : first + CHUNK]
                value[part], loss[part], mse[part] = self._answer(stratum, rows[part], within[part])
        self._or_without_pay(rows, within, (value, loss, mse))
        root = math.sqrt(divided.unit)
        value, loss, mse = (
            value * (divided.scale / root),
            np.minimum(loss / root, divided.caps[rows]),
            mse * divided.factor,
        )
        # far below everybody in her stratum her cost has no digits there: by itself
        base = np.array([one.base * divided.scale for one in divided.each])
        below = np.flatnonzero(within < _FAR_BELOW * base[codes])
        if below.size:
            found = self._direct.at(rows[below], within[below])
            value[below], loss[below], mse[below] = found.value, found.loss, found.mse
        # beyond the limits her loss stays the same, and the potential goes on as a line
        beyond = np.flatnonzero((within != costs) & (loss > 0.0))
        value[beyond] += loss[beyond] * (costs[beyond] - within[beyond])
        return Replies(value, loss, mse, max(one.blur for one in self._now) / root)

    def _answer(self, stratum: int, rows: IndexArray, costs: FloatArray) -> Answer:
        """Pairs of one stratum, if somebody is paid."""
        place = self._place[rows]
        own = self._now[stratum].variants(place, costs)
        parts = self._parts(stratum, own)
        at, levels = np.zeros(rows.size), np.zeros((len(self._now), rows.size))
        value, mse = np.full(rows.size, np.inf), np.full(rows.size, np.inf)
        searched = np.ones(rows.size, dtype=bool)
        if (basin := self._basins[stratum]) is not None:
            raised = np.flatnonzero(costs >= self._divided.each[stratum].costs[place])
            near = self._near(stratum, own.take(raised))
            # the end may be all that a stratum's caps allow, to the last digit
            fine = (near[0] >= basin.low) & (near[0] <= basin.high * (1.0 + 1e-12)) & (near[2] <= basin.worst)
            done = raised[fine]
            at[done], levels[:, done], value[done], mse[done] = (one[..., fine] for one in near)
            searched[done] = False
        unsolved = np.flatnonzero(searched)
        for first in range(0, unsolved.size, _SEARCHED):
            some = unsolved[first : first + _SEARCHED]
            at[some], levels[:, some], value[some], mse[some] = self._search(stratum, parts.take(some), costs[some])
        assert own.moved is not None
        loss = np.where(value < np.inf, own.moved.losses(levels[stratum], 0.5 * at * at), 0.0)
        return value, loss, mse

    def _parts(self, stratum: int, own: Variants) -> Parts:
        """The populations in which people of one stratum have moved."""
        each = [own if g == stratum else Variants(one.crowd) for g, one in enumerate(self._now)]
        return Parts(self._divided.sizes, each)

    def _near(self, stratum: int, own: Variants) -> tuple[FloatArray, ...]:
        """``S``, levels, value and error by Newton's method from the present ones; an infinite value if it goes astray.

        Who cannot change groups in a box around the present point is summed once. What is found inside the box is
        right; what is not is looked for in a larger one, and at last among everybody.
        """
        at = np.full(own.count, self._at)
        levels = np.repeat(np.array([one.level for one in self._now])[:, None], own.count, axis=1)
        value, mse, unsolved = np.full(own.count, np.inf), np.full(own.count, np.inf), np.arange(own.count)
        boxes = [one.crowds() for one in self._now]
        for width in range(max(len(one) for one in boxes)):
            crowds = [one[min(width, len(one) - 1)] for one in boxes]
            step = min(in_step(crowd) for crowd in crowds)
            for first in range(0, unsolved.size, step):
                some = unsolved[first : first + step]
                each = [own.take(some) if g == stratum else Variants(self._now[g].crowd) for g in range(len(crowds))]
                parts = Parts(self._divided.sizes, [one.on(crowd) for one, crowd in zip(each, crowds, strict=True)])
                s, tau, fine = settle(parts, at[some], levels[:, some])
                for crowd, level in zip(crowds, tau, strict=True):
                    fine &= crowd.holds(level, 0.5 * s * s)
                done = some[fine]
                at[done], levels[:, done] = s[fine], tau[:, fine]
                found = value_at(parts, s, tau)
                value[done], mse[done] = found[0][fine], found[1][fine]
            unsolved = unsolved[value[unsolved] == np.inf]
            if unsolved.size == 0:
                break
        return at, levels, value, mse

    def _search(self, stratum: int, parts: Parts, costs: FloatArray) -> tuple[FloatArray, ...]:
        """``S``, levels, value and error of each population by a search over everything."""
        divided = self._divided
        size, now, own = divided.sizes[stratum], self._now[stratum], parts.each[stratum]
        assert own.without is not None
        assert own.moved is not None
        offset = np.append(now.crowd.people.offset, [math.inf, math.inf])
        others = now.crowd.base + np.where(own.without == 0, offset[1], offset[0])
        elsewhere = sum(other * divided.each[g].base for g, other in enumerate(divided.sizes) if g != stratum)
        moved = costs / divided.scale
        paid = np.minimum(divided.paid, np.where(moved > 0.0, size * moved, math.inf))
        guesses = (self._at or 1.0) * _GUESSES[:, None] * np.ones(parts.count)
        at, levels = np.zeros(parts.count), np.zeros((len(self._now), parts.count))
        value, mse = np.full(parts.count, np.inf), np.full(parts.count, np.inf)
        low, high, best = begin(parts, value, guesses, elsewhere + size * np.minimum(others, moved), paid)
        high = np.minimum(high, self._outline.until(best) + own.moved.cap / size)
        some = np.flatnonzero(high > 0.0)
        if some.size:
            seen = explore(parts.take(some), low[some], high[some], best[some])[0]
            at[some], levels[:, some], value[some] = best_seen(parts.take(some), seen)
            mse[some] = value_at(parts.take(some), at[some], levels[:, some])[1]
        return at, levels, value, mse

    # -- people who ask for nothing ------------------------------------------------------------------------------------

    def _or_without_pay(self, rows: IndexArray, costs: FloatArray, answer: Answer) -> None:
        """Where people who ask for nothing do as well by themselves: these."""
        value, loss, mse = answer
        perhaps = np.arange(costs.size) if self._free else np.flatnonzero(costs == 0.0)
        for j in perhaps.tolist():
            error, own = self._without_pay(int(rows[j]), bool(costs[j] == 0.0))
            if error <= value[j]:
                value[j], loss[j], mse[j] = error, own, error

    def _without_pay(self, row: int, free: bool) -> tuple[float, float]:
        """The error that people who ask for nothing reach alone, if she is or is not one of them, and her loss."""
        key = (row if free or row in self._free else -1, free)
        if key not in self._known:
            who = np.array(sorted((self._free - {row}) | ({row} if free else set())), dtype=np.intp)
            error, losses = self._divided.without_pay(who)
            self._known[key] = error, float(losses[who == row][0]) * math.sqrt(self._divided.unit) if free else 0.0
        return self._known[key]
