"""Everybody's integral enclosed over intervals of reports, which are split until the enclosures are narrow enough."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushbid.payments.ladder import PSI_ERROR, Ladder
from hushbid.payments.rule import ROUNDING, FloatArray, Rows, RuleWithPotential

_PEOPLE = 512
"""How many people are worked on together, so that their intervals stay in the processor's cache."""

_PIECES = 256
_FINEST = 1e-8
"""Smaller tolerances are not aimed at: there the error of virtual costs decides."""


@dataclass(slots=True, eq=False)
class _Parts:
    """Intervals of reports, one entry each: whose, between which nodes, and what the rule does at both ends."""

    who: Rows
    first: Rows
    last: Rows
    z0: FloatArray
    z1: FloatArray
    x0: FloatArray
    x1: FloatArray
    e0: FloatArray
    e1: FloatArray
    v0: FloatArray
    v1: FloatArray

    def take(self, which: Any) -> "_Parts":
        return _Parts(*(getattr(self, name)[which] for name in self.__slots__))

    def joined(self, other: "_Parts") -> "_Parts":
        return _Parts(*(np.concatenate([getattr(self, name), getattr(other, name)]) for name in self.__slots__))


class Enclosures:
    """Split intervals, most where their enclosures are widest, until everybody's is narrow enough."""

    def __init__(
        self,
        rule: RuleWithPotential,
        ladder: Ladder,
        rows: Rows,
        reports: FloatArray,
        costs: FloatArray,
    ) -> None:
        self.rule, self.ladder, self.rows, self.reports, self.costs = rule, ladder, rows, reports, costs
        self.evaluations, self.allowed = 0, 0.0
        self.sums: FloatArray = np.zeros((3, rows.size))  # lower bounds, upper bounds, estimates

    def run(self, besides: FloatArray, tolerance: float) -> None:
        """Enclose everybody's rent, to the tolerance relative to the largest payment where the table allows it."""
        start = self._start()
        self.allowed = 1.5 * max(tolerance, _FINEST) * self._largest(start, besides)
        self._settle_all(start)

    def too_wide(self) -> Rows:
        """Those whose enclosure is wider than allowed."""
        return np.flatnonzero(self.sums[1] - self.sums[0] > self.allowed)

    def narrowed(self, who: Rows, ladder: Ladder) -> bool:
        """Enclose these people's rents once more, with another table; whether that was worth its while."""
        part = Enclosures(self.rule, ladder, self.rows[who], self.reports[who], self.costs[who])
        part.allowed = self.allowed
        part._settle_all(part._start())
        self.evaluations += part.evaluations
        before, after = self.sums[1, who] - self.sums[0, who], part.sums[1] - part.sums[0]
        self.sums[:, who] = np.where(after < before, part.sums, self.sums[:, who])
        return bool(after.max() < 0.5 * before.max())

    def _settle_all(self, start: _Parts) -> None:
        size = self.rows.size
        order = np.argsort(start.who, kind="stable")
        ends = start.who[order].searchsorted(np.arange(0, size + _PEOPLE, _PEOPLE))
        for first, begin, end in zip(range(0, size, _PEOPLE), ends[:-1], ends[1:], strict=True):
            self._settle(start.take(order[begin:end]), self.allowed, self.sums[:, first : first + _PEOPLE], first)

    def _largest(self, start: _Parts, besides: FloatArray) -> float:
        """A lower bound, within a few percent, on what the person who seems to be paid most is paid."""
        guess = besides + np.bincount(start.who, self._enclose(start)[2], besides.size)
        who = int(guess.argmax())
        goal = float(guess[who])
        for _ in range(40):
            sums = np.zeros((3, 1))
            self._settle(start.take(start.who == who), 0.02 * goal, sums, who)
            least, most = (float(besides[who] + bound) for bound in sums[:2, 0])
            if most <= 1.5 * least:
                break
            goal = min(0.1 * goal, most)
        return least

    def _settle(self, parts: _Parts, allowed: float, sums: FloatArray, first: int) -> None:
        """Add up the enclosures of the people from ``first`` on, splitting until each one's gap is allowed."""
        size = sums.shape[1]
        for round_ in range(40):
            who = parts.who - first
            *bounds, slack = self._enclose(parts)
            gap = bounds[1] - bounds[0]
            total = np.bincount(who, gap, size)
            # Splitting in m divides a gap by m²; for the fewest pieces in all, m goes with its cube root.
            share = np.cbrt(np.minimum(gap, 1e300))
            factor = np.sqrt(np.bincount(who, share, size) * (1.04 / max(allowed, 1e-300)))
            pieces = np.ceil(share * np.where(total <= allowed, 0.0, factor)[who])
            # Every piece has the slack that the whole has: m² must not be bought with more than it saves.
            worth = np.cbrt(np.divide(2.0 * gap, slack, out=np.full(gap.size, np.inf), where=slack > 0.0))
            pieces = np.minimum(np.minimum(pieces, np.floor(worth)), np.minimum(parts.last - parts.first, _PIECES))
            again = (pieces > 1) if round_ < 39 else np.zeros(pieces.size, dtype=bool)
            done = slice(None) if not again.any() else ~again
            for row, bound in zip(sums, bounds, strict=True):
                row += np.bincount(who[done], bound[done], size)
            if not again.any():
                return
            parts = self._split(parts.take(again), pieces[again].astype(np.intp))

    def _at(self, who: Rows, costs: FloatArray) -> tuple[FloatArray, FloatArray]:
        self.evaluations += who.size
        found = self.rule.at(self.rows[who], costs)
        return found.loss, found.value

    def _start(self) -> _Parts:
        """From one's own report to the next node, and from there to the last."""
        ladder = self.ladder
        who = np.arange(self.rows.size)
        node = np.minimum(ladder.z.searchsorted(self.reports, side="left"), ladder.z.size - 1)
        end = np.full(who.size, ladder.z.size - 1)
        x = np.maximum(ladder.x[node], self.costs)
        (e0, v0), (e1, v1), (e2, v2) = (self._at(who, costs) for costs in (self.costs, x, ladder.x[end]))
        own, z = np.maximum(node - 1, 0), ladder.z[node]
        near = _Parts(who, own, node, self.reports, z, self.costs, x, e0, e1, v0, v1)
        return near.joined(_Parts(who, node, end, z, ladder.z[end], x, ladder.x[end], e1, e2, v1, v2))

    def _split(self, parts: _Parts, pieces: Rows) -> _Parts:
        """Each interval cut at evenly spaced nodes into so many pieces."""
        inner = pieces - 1
        which = np.repeat(np.arange(pieces.size), inner)
        number = np.arange(which.size) - np.repeat(np.cumsum(inner) - inner, inner) + 1
        node = parts.first[which] + (parts.last - parts.first)[which] * number // pieces[which]
        x = self.ladder.x[node]
        loss, value = self._at(parts.who[which], x)
        places = np.arange(which.size) + 2 * which + 1
        starts = np.cumsum(inner + 2) - inner - 2
        ends = starts + inner + 1

        def strung(first: NDArray[Any], middle: NDArray[Any], last: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
            """Start, inner points and end of every interval in a row; then the left and right end of every piece."""
            string = np.empty(which.size + 2 * pieces.size, dtype=middle.dtype)
            string[starts], string[places], string[ends] = first, middle, last
            return np.delete(string, ends), np.delete(string, starts)

        nodes = strung(parts.first, node, parts.last)
        ends_of = [
            strung(first, middle, last)
            for first, middle, last in (
                (parts.z0, self.ladder.z[node], parts.z1),
                (parts.x0, x, parts.x1),
                (parts.e0, loss, parts.e1),
                (parts.v0, value, parts.v1),
            )
        ]
        return _Parts(np.repeat(parts.who, pieces), *nodes, *(end for pair in ends_of for end in pair))

    def _enclose(self, part: _Parts) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Lower bound, upper bound and estimate of ``∫ε dz`` over each interval, and what of it is due to rounding."""
        dz, dx = part.z1 - part.z0, part.x1 - part.x0
        some = dz > 0.0
        low, high = np.where(some, part.e1, 0.0) * dz, np.where(some, part.e0, 0.0) * dz
        best = 0.5 * (low + np.minimum(high, 1e300))
        convex, excess = self.ladder.shape(part.first, part.last)
        usable = (excess < 0.25) & (part.e0 > part.e1) & (dx > 0.0)
        slack = np.zeros(dz.size)
        endless = np.isinf(part.e0)
        if endless.any():
            usable &= ~endless
            from_zero = np.flatnonzero(endless & (dx > 0.0))
            bounds = _from_zero(part.take(from_zero), convex[from_zero], excess[from_zero])
            for column, found in zip((low, high, best), bounds, strict=True):
                column[from_zero] = found
        if not usable.any():
            return low, high, best, slack
        k: slice | NDArray[np.bool_] = slice(None) if usable.all() else usable
        area, drop = np.maximum(part.v1[k] - part.v0[k], 0.0), part.e0[k] - part.e1[k]
        chebyshev = area * dz[k] / dx[k]
        turn = np.clip(part.x0[k] + (area - part.e1[k] * dx[k]) / drop, part.x0[k], part.x1[k])
        chord, beyond = self.ladder.inverse(turn)
        bend = np.where(convex[k], np.maximum(chord, beyond), np.minimum(chord, beyond))
        bend = np.clip(bend, part.z0[k], part.z1[k])
        step = part.e0[k] * (bend - part.z0[k]) + part.e1[k] * (part.z1[k] - bend)
        slack[k] = (ROUNDING * np.abs(part.v1[k]) + PSI_ERROR * area * part.x1[k] / dx[k]) * dz[k] / dx[k]
        least, most = np.minimum(chebyshev, step), np.maximum(chebyshev, step)
        lowest = np.maximum(least * (1.0 - 2.0 * excess[k]) - slack[k], low[k])
        highest = np.minimum(most * (1.0 + 4.0 * excess[k]) + slack[k], high[k])
        # For linear ε and dz/dx the truth lies two thirds of the way from Chebyshev's bound to the other.
        best[k] = np.clip(chebyshev + (2.0 / 3.0) * (step - chebyshev), lowest, np.maximum(highest, lowest))
        low[k], high[k] = lowest, np.maximum(highest, lowest)
        return low, high, best, slack


def _from_zero(
    part: _Parts, convex: NDArray[np.bool_], excess: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Bounds and an estimate for intervals that start with an infinite loss, so with a report and a cost of zero.

    A virtual cost is never below the report: ``z ≤ x``. So by parts, twice, the integral ``ε₁z₁ + ∫z d(−ε)`` is at most
    ``ε₁z₁ + ∫x d(−ε) = area − ε₁(x₁ − z₁)``. Chebyshev's inequality holds as elsewhere.
    """
    area = np.maximum(part.v1 - part.v0, 0.0)
    slack = ROUNDING * np.abs(part.v1) + PSI_ERROR * area
    low, high = part.e1 * part.z1, area - part.e1 * (part.x1 - part.z1) + slack
    chebyshev = area * part.z1 / part.x1
    known = excess < 0.25
    low = np.where(known & convex, np.maximum(low, chebyshev * (1.0 - 2.0 * excess) - slack), low)
    high = np.where(known & ~convex, np.minimum(high, chebyshev * (1.0 + 4.0 * excess) + slack), high)
    high = np.maximum(high, low)
    return low, high, np.clip(chebyshev, low, high)
