"""The cheapest central purchases, one for every ``T > 0``: levels by filling strata, then the step ``σ``.

With strata ``g`` of weights ``ℓ_g``, caps ``e`` and variances ``V = 1/u``, every efficient purchase has a ``T`` and is

    y_i = clip(u_i(λ_g − ψ_i), 0, σe_i),   Σ_g y = |ℓ_g|·T,   2σ = Σ_inside ψy/σ + Σ_capped e(λ_g − σVe),   ε = y/σ.

The last equation's left side rises with ``σ`` and its right side falls. Along ``T`` the error ``(2 + ΣVε²)/η²``,
``η = T/σ``, falls, the expense ``Σψε`` rises, and so does ``σ``. Newton's method finds most points from others nearby;
whatever solves the equations to the last digits is the purchase, however it was found. The others are bracketed: an
interval that holds the solution is narrowed, for levels and for ``σ``, by the straight line or the quadratic equation
of whoever is inside, and halved where that is no help.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields

import numpy as np

from hushbid.common.arrays import BoolArray, IndexArray
from hushbid.verification.central_sums import ByKind, OneByOne, Real, Sums

Pairs = OneByOne | ByKind

_ROUNDS = 200
_NEWTON = 16
_BALANCED, _MOST_BLUR = 1e-10, 1e-8
_FURTHER = 4.0
"""No step of Newton's method takes a number further than by this factor."""

_CALL = 60.0
"""What an evaluation takes for any number of pairs, in millionths of a second, about."""

_FULL = 1e-13
"""Steps begin this part above the least that there can be."""


@dataclass(slots=True, eq=False)
class Points:
    """One purchase for each pair."""

    at: Real
    """``T``."""

    step: Real
    """``σ``."""

    mse: Real
    expense: Real
    level: Real
    """Of each stratum, as its pairs count it."""

    blur: Real
    """To which part all this is known: where noise is far larger than what people differ in, digits are missing."""

    def take(self, which: IndexArray | BoolArray) -> "Points":
        """Some of them."""
        return Points(*(getattr(self, field.name)[which] for field in fields(self)))

    def put(self, which: IndexArray, other: "Points") -> None:
        """Replace some, by as many."""
        for field in fields(self):
            getattr(self, field.name)[which] = getattr(other, field.name)

    @staticmethod
    def joined(parts: "list[Points]") -> "Points":
        """All of several."""
        return Points(*(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(Points)))


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """An equation, and how it changes with levels, ``σ`` and ``T``."""

    excess: Real
    levels: Real
    step: Real
    at: Real


Goal = Callable[[Points, Sums], Row]
"""One more equation, which fixes ``T``."""


class Path:
    """Points for pairs, with the work that they take."""

    def __init__(self) -> None:
        self.worked = 0.0

    def points(self, pairs: Pairs, at: Real, near: Points | None = None) -> Points:
        """The purchases at these ``T``; solutions may be ``near`` others."""
        first = pairs.lowest
        if near is None:
            sizes = pairs.people.sizes
            cost = (sizes * np.where(pairs.ends.paid < np.inf, pairs.ends.paid, 0.0)).sum(axis=1)
            step = np.where(cost > 0.0, np.sqrt(0.5 * at * cost), at)
            found = Points(at.copy(), step, 0 * at, 0 * at, first + at[:, None] * sizes, 0 * at)
        else:
            ratio = at / near.at
            level = np.maximum(first + (near.level - first) * ratio[:, None], first)
            found = Points(at.copy(), near.step * ratio, 0 * at, 0 * at, level, 0 * at)
        rest = np.flatnonzero(~self.settled(pairs, found))
        if rest.size:
            found.put(rest, self._bracketed(pairs.take(rest), found.take(rest)))
        return found

    def settled(self, pairs: Pairs, found: Points, goal: Goal | None = None) -> BoolArray:
        """Newton's method from points nearby, at their ``T`` or to a goal: for which pairs it ends at the purchase."""
        sizes, solved, go = pairs.people.sizes, np.zeros(found.at.size, dtype=bool), np.arange(found.at.size)
        for _ in range(_NEWTON):
            some = pairs.take(go) if go.size < solved.size else pairs
            here = found.take(go)
            sums = some.sums(here.level, here.step)
            self.worked += _CALL + 2.0 * some.work
            target = here.at[:, None] * sizes
            fill = sums.cap * here.step[:, None] + sums.gap - target
            own = _balance(here, sums)
            levels, step, at = self._newton(here, sums, own, fill, sizes, goal)
            found.mse[go] = _error(sums, here)
            found.expense[go] = (sums.spent + sums.paid / here.step[:, None]).sum(axis=1)
            close = found.blur[go] = _blur(sums, here.level, target)
            done = (np.abs(step) <= close * here.step) & (np.abs(at) <= close * here.at)
            done &= np.abs(own.excess) <= np.maximum(_BALANCED, close) * here.step
            moved = np.where(sums.slope > 0.0, sums.slope * levels, sums.cap * levels / here.step[:, None] * target)
            done &= (np.maximum(np.abs(moved), np.abs(fill)) <= close[:, None] * target).all(axis=1)
            above = here.level - some.lowest
            found.level[go] = some.lowest + np.clip(above + levels, above / _FURTHER, above * _FURTHER)
            found.step[go] = np.clip(here.step + step, here.step / _FURTHER, here.step * _FURTHER)
            found.at[go] = np.clip(here.at + at, here.at / _FURTHER, here.at * _FURTHER)
            solved[go] = done
            go = go[~done & np.isfinite(found.step[go] + found.at[go])]
            if go.size == 0:
                break
        return solved

    def _newton(
        self, here: Points, sums: Sums, own: Row, fill: Real, sizes: Real, goal: Goal | None
    ) -> tuple[Real, Real, Real]:
        """Steps in levels, ``σ`` and ``T``.

        A stratum with nobody inside fixes ``σ``, and the equation of ``σ`` fixes its level.
        """
        flat = sums.slope == 0.0
        slope = np.where(flat, np.inf, sums.slope)
        zero, by_step, by_at = -fill / slope, -sums.cap / slope, sizes / slope
        excess, step, at = _eliminated(own, zero, by_step, by_at)
        stuck, which = flat.any(axis=1), (np.arange(flat.shape[0]), flat.argmax(axis=1))
        excess = np.where(stuck, fill[which], excess)
        step, at = np.where(stuck, sums.cap[which], step), np.where(stuck, -sizes[which[1]], at)
        if goal is None:
            ahead, further = -excess / step, np.zeros_like(here.at)
        else:
            other = _eliminated(goal(here, sums), zero, by_step, by_at)
            area = step * other[2] - at * other[1]
            ahead, further = (at * other[0] - excess * other[2]) / area, (excess * other[1] - step * other[0]) / area
        levels = zero + by_step * ahead[:, None] + by_at * further[:, None]
        rest = own.excess + (own.levels * levels).sum(axis=1) + own.step * ahead
        levels[which] += np.where(stuck, -rest / own.levels[which], 0.0)
        return levels, ahead, further

    def _bracketed(self, pairs: Pairs, near: Points) -> Points:
        """The same by narrowing intervals."""
        at, found, tiny = near.at, near, np.finfo(near.at.dtype).tiny
        target = at[:, None] * pairs.people.sizes
        least = (target / pairs.ends.most).max(axis=1)
        step = np.maximum(np.where(np.isfinite(near.step), near.step, 1.0), np.maximum(least * (1.0 + _FULL), tiny))
        low, high, level = least, np.full_like(at, np.inf), np.where(np.isfinite(near.level), near.level, pairs.lowest)
        exhausted = self._exhausted(pairs, found, target, least)
        width, go = np.full_like(at, np.inf), np.flatnonzero(~exhausted)
        for round_ in range(_ROUNDS):
            some, here = pairs.take(go), step[go]
            level[go] = self._filled(some, target[go], here, level[go])
            sums = some.sums(level[go], here)
            self.worked += _CALL + 2.0 * some.work
            point = Points(at[go], here, at[go], at[go], level[go], _blur(sums, level[go], target[go]))
            excess = _balance(point, sums).excess
            low[go], high[go] = np.where(excess < 0.0, here, low[go]), np.where(excess < 0.0, high[go], here)
            ahead = _root(sums, here)
            point.mse, point.expense = _error(sums, point), (sums.spent + sums.paid / here[:, None]).sum(axis=1)
            found.put(go, point)
            eps = 0.25 * point.blur
            done = (np.abs(ahead - here) <= eps * here) | (high[go] <= low[go] * (1.0 + eps)) | np.isnan(excess)
            slow = (round_ % 3 == 2) & (high[go] - low[go] > 0.5 * width[go])
            step[go] = _cut(ahead, low[go], high[go], halve=slow)
            if round_ % 3 == 2:
                width[go] = high[go] - low[go]
            go = go[~done]
            if go.size == 0:
                break
        return found

    def _exhausted(self, pairs: Pairs, found: Points, target: Real, least: Real) -> BoolArray:
        """Find where a stratum gives all it can: ``σ`` is the least, and its equation fixes that stratum's level."""
        go = np.flatnonzero(least > 0.0)
        some, step = pairs.take(go), least[go] * (1.0 + _FULL)
        level = self._filled(some, target[go], step, some.lowest)
        sums = some.sums(level, step)
        point = Points(found.at[go], step, found.at[go], found.at[go], level, _blur(sums, level, target[go]))
        excess, which = _balance(point, sums).excess, (target[go] / some.ends.most).argmax(axis=1)
        every = np.arange(go.size)
        level[every, which] += np.maximum(excess, 0.0) / some.ends.most[every, which]
        point.mse, point.expense = _error(sums, point), (sums.spent + sums.paid / step[:, None]).sum(axis=1)
        there = np.zeros(found.at.size, dtype=bool)
        there[go] = excess >= 0.0
        found.put(go[excess >= 0.0], point.take(excess >= 0.0))
        return there

    def _filled(self, pairs: Pairs, target: Real, step: Real, level: Real) -> Real:
        """The levels at which every stratum has what it should."""
        level, first = np.maximum(level, pairs.lowest), pairs.lowest
        low, high = first.copy(), np.full_like(level, np.inf)
        eps, go = np.finfo(level.dtype).eps, np.arange(step.size)
        for round_ in range(_ROUNDS):
            some = pairs.take(go) if go.size < step.size else pairs
            here, wanted = level[go], target[go]
            cap, gap, slope = some.fill(here, step[go])
            self.worked += _CALL + some.work
            excess = cap * step[go][:, None] + gap - wanted
            low[go], high[go] = np.where(excess < 0.0, here, low[go]), np.where(excess < 0.0, high[go], here)
            ahead = np.where(slope > 0.0, here - excess / slope, np.inf)
            done = (np.abs(excess) <= 4.0 * eps * wanted) | (np.abs(ahead - here) <= eps * np.abs(here))
            done |= (high[go] <= low[go] + eps * np.abs(low[go])) | np.isnan(excess)
            cut = first[go] + _cut(ahead - first[go], low[go] - first[go], high[go] - first[go], halve=round_ % 8 == 7)
            level[go] = np.where(done, np.where(slope > 0.0, ahead, here), cut)
            go = go[~done.all(axis=1)]
            if go.size == 0:
                break
        return level


def _blur(sums: Sums, level: Real, target: Real) -> Real:
    """How far a purchase may be from what its levels say, relative to itself, as levels have so many digits only."""
    digits = 16.0 * np.finfo(level.dtype).eps
    return np.asarray(np.clip(digits * (1.0 + (np.abs(level) * sums.slope / target).max(axis=1)), digits, _MOST_BLUR))


def _balance(here: Points, sums: Sums) -> Row:
    """The equation of ``σ``: ``2σ − Σ ψy/σ − Σ e(λ − σVe)``."""
    step = here.step
    return Row(
        2.0 * step - (sums.paid / step[:, None] + sums.slack).sum(axis=1),
        -(sums.costs / step[:, None] + sums.cap),
        2.0 + (sums.paid / step[:, None] ** 2 + sums.capped).sum(axis=1),
        np.zeros_like(step),
    )


def _eliminated(row: Row, zero: Real, by_step: Real, by_at: Real) -> tuple[Real, Real, Real]:
    """A row once levels follow from ``σ`` and ``T``."""
    return (
        row.excess + (row.levels * zero).sum(axis=1),
        row.step + (row.levels * by_step).sum(axis=1),
        row.at + (row.levels * by_at).sum(axis=1),
    )


def _error(sums: Sums, here: Points) -> Real:
    squares = here.step**2
    return np.asarray((2.0 * squares + (sums.squares + sums.capped * squares[:, None]).sum(axis=1)) / here.at**2)


def _root(sums: Sums, step: Real) -> Real:
    """The step at which the equation holds as long as the same people are at their caps, and inside."""
    with np.errstate(divide="ignore", invalid="ignore"):
        pull = np.where(sums.cap > 0.0, sums.cap / sums.slope, 0.0)
    mean, ease = (sums.costs * pull).sum(axis=1), (sums.cap * pull + sums.capped).sum(axis=1)
    second, first = 2.0 + ease, mean - sums.slack.sum(axis=1) - ease * step
    last = sums.paid.sum(axis=1) + mean * step
    depth = np.sqrt(first**2 + 4.0 * second * last)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(first > 0.0, 2.0 * last / (first + depth), (depth - first) / (2.0 * second)))


def _cut(ahead: Real, low: Real, high: Real, *, halve: Real | bool) -> Real:
    """Where to look next: ahead if that is inside, else half-way, or further on where there is no end yet."""
    with np.errstate(invalid="ignore"):
        far = high > 4.0 * low
        middle = np.where(far & (low > 0.0), np.sqrt(low) * np.sqrt(high), 0.5 * (low + high))
        middle = np.where(high == np.inf, np.maximum(4.0 * low, np.finfo(low.dtype).tiny), middle)
        good = (ahead > low) & (ahead < high) & ~np.asarray(halve)
    return np.where(good, ahead, middle)
