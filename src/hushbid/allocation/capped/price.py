"""The least of ``MSE + Σ ψε`` under caps: a search over ``S = Σ ε`` that rules out everything else, with proof.

For a given ``S`` the best losses fill up to a level: ``Φ(S) = 2/S² + N(1/S², S)`` with ``N(p, S)`` the least
``pΣVε² + Σψε`` at ``Σε = S, 0 ≤ ε ≤ e``, convex in ``S`` and concave in ``p``. For any level ``λ`` duality bounds it by
a line, ``N(p, S) ≥ λS + Σ min over 0 ≤ ε ≤ e of (pVε² + (ψ − λ)ε)``, which touches at the level that fills ``S``.
Between two points ``S₁ < S₂`` the two lines, mixed as ``p`` is, lie below ``N``; with ``2/S²`` their mixture is
``c₀ + c₁S + c₂/S² + c₃/S``, whose least value is at an end or at a root of ``c₁S³ − c₃S − 2c₂``. Intervals whose bound
is below the best value seen are split until none is.

People without costs, if they are all that is bought from, are a candidate of their own. Otherwise somebody with a
positive cost is bought from, at most her marginal worth ``2·MSE/S``, which bounds ``S``.
"""

import math
from dataclasses import dataclass

import numpy as np

from hushbid.allocation.capped.crowds import Variants
from hushbid.allocation.capped.levels import Aim, Points, newton
from hushbid.allocation.capped.parts import Lines, Parts, balanced, fill
from hushbid.arrays import BoolArray, FloatArray

PRICE = Aim("price", 1.0)
_GAP = 1e-10
_ROUNDS = 120
_POINTS, _PARTS = 64, 16
"""So many points at once are worth a call; an interval is cut into so many parts at the most."""

_CRUMBS = 1e-9
"""A smaller share of all losses may be due to nobody."""

_DIGITS = 1e-14
"""A smaller share is rounding."""

_BESIDE = 1e-12
"""How far beside a corner its two levels are looked for."""


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """The best of each population."""

    points: Points
    """Its level and rate; not settled where nothing beats people without costs."""

    value: FloatArray
    """``MSE + Σ ψε``."""

    bound: FloatArray
    """No purchase that somebody is paid for has less."""

    lines: Lines
    """Everything that was looked at."""


def _mixture(left: Lines, right: Lines, base: float, s: FloatArray) -> FloatArray:
    """The bound at ``s`` between the two, with the share of each written so that nothing cancels."""
    one, two = left.at, right.at
    share = (one / s) ** 2 * ((two - s) / (two - one)) * ((two + s) / (one + two))
    low = left.height + (base + left.level) * (s - one)
    high = right.height - (base + right.level) * (two - s)
    mixed: FloatArray = 2.0 / (s * s) + share * low + (1.0 - share) * high
    return mixed


def bounds(left: Lines, right: Lines, base: float) -> tuple[FloatArray, FloatArray]:
    """The least of the bound on each interval, and where it is."""
    one, two = left.at, right.at
    factor = 1.0 / ((two / one) ** 2 - 1.0)
    d_left = left.height - (base + left.level) * one
    d_right = right.height - (base + right.level) * two
    fall, turn = d_left - d_right, left.level - right.level
    c1 = base + right.level - factor * turn
    c2, c3 = 2.0 + factor * two * two * fall, factor * two * two * turn
    best, place = _mixture(left, right, base, one), one
    for s in [two, *_cubic_roots(c1, c3, c2)]:
        at = np.clip(np.nan_to_num(s, nan=1.0), one, two)
        here = _mixture(left, right, base, at)
        place = np.where(here < best, at, place)
        best = np.minimum(best, here)
    return best, place


def _cubic_roots(c1: FloatArray, c3: FloatArray, c2: FloatArray) -> list[FloatArray]:
    """All real roots of ``c₁S³ − c₃S − 2c₂``, some perhaps twice or not a number."""
    with np.errstate(all="ignore"):
        p, half = -c3 / (3.0 * c1), -c2 / c1
        inner = half * half + p**3
        root = np.sqrt(np.maximum(inner, 0.0))
        single = np.cbrt(-half + root) + np.cbrt(-half - root)
        radius = np.sqrt(np.maximum(-p, 0.0))
        angle = np.arccos(np.clip(-half / radius**3, -1.0, 1.0)) / 3.0
        found = [
            np.where(inner > 0.0, single, 2.0 * radius * np.cos(angle - 2.0 * math.pi * k / 3.0)) for k in range(3)
        ]
        # once more with Newton, and the case without a cubic term
        found = [s - (c1 * s**3 - c3 * s - 2.0 * c2) / (3.0 * c1 * s * s - c3) for s in found]
        return [*found, -2.0 * c2 / c3]


def search(variants: Variants, low: FloatArray, high: FloatArray, best: FloatArray) -> Found:
    """The least value over ``low ≤ S ≤ high`` in each population, where ``best`` is attained already."""
    return _polished(variants, *explore(Parts.whole(variants), low, high, best))


def explore(parts: Parts, low: FloatArray, high: FloatArray, best: FloatArray) -> tuple[Lines, FloatArray]:
    """Lines enough to rule out every ``low ≤ S ≤ high`` that is not among them, and in each population the bound.

    What is ruled out is not better by more than `_GAP`. Whoever asks for more than an error saves is not bought from:
    ``−∂MSE/∂S`` is at most ``2·MSE/S``, and where nothing is worse than ``best``, both ``MSE`` and ``2/S²`` are at most
    that. So levels end there: without an end those between people of very different costs have no digits.
    """
    base = parts.base
    worth = math.sqrt(2.0) * best**1.5 * (1.0 + 1e-6)
    high = np.minimum(high, parts.full)
    low = np.minimum(low, high * 0.5)
    seen = _first_lines(parts, low, high, worth)
    best = best.copy()
    np.minimum.at(best, seen.which, seen.value)
    inner = np.flatnonzero(seen.which[1:] == seen.which[:-1])
    left, right = seen.take(inner), seen.take(inner + 1)
    bound = np.full(best.size, np.inf)
    for _ in range(_ROUNDS):
        least, place = bounds(left, right, base)
        narrow = right.at - left.at <= 1e-9 * right.at
        open_ = (least < best[left.which] * (1.0 - _GAP)) & ~narrow
        np.minimum.at(bound, left.which[~open_], least[~open_])
        if not open_.any():
            break
        left, right = _split(parts, worth, left.take(open_), right.take(open_), place[open_])
        new = np.append(left.value, right.value)
        np.minimum.at(best, np.append(left.which, right.which), new)
        seen = seen.joined(left)
    else:
        np.minimum.at(bound, left.which, bounds(left, right, base)[0])
    return seen, bound


def _split(parts: Parts, worth: FloatArray, left: Lines, right: Lines, place: FloatArray) -> tuple[Lines, Lines]:
    """The parts of intervals: two each, or more if there are few."""
    at, corner = _splits(left, right, place)
    many = min(_POINTS // at.size, _PARTS)
    if many > 2 and not corner.any():
        steps = np.arange(1, many) / many
        at, which = (left.at[:, None] * (right.at / left.at)[:, None] ** steps).ravel(), left.which.repeat(many - 1)
        near = left.levels[:, :, None] + (right.levels - left.levels)[:, :, None] * steps
        inner = fill(parts, which, at, 1.0, near.reshape(near.shape[0], -1), worth)
        grid = inner.columns.reshape(-1, left.at.size, many - 1)
        strung = np.concatenate([left.columns[:, :, None], grid, right.columns[:, :, None]], axis=2)
        every, rows = np.repeat(left.which, many), strung.shape[0]
        return Lines(every, strung[:, :, :-1].reshape(rows, -1)), Lines(every, strung[:, :, 1:].reshape(rows, -1))
    near = 0.5 * (left.levels + right.levels)
    before = fill(parts, left.which, at, np.where(corner, 1.0 - _BESIDE, 1.0), near, worth)
    after = before
    if corner.any():
        some = np.flatnonzero(corner)
        beside = fill(parts, left.which[some], at[some], 1.0 + _BESIDE, None, worth)
        after = Lines(before.which, before.columns.copy())
        after.columns[:, some] = beside.columns
    return left.joined(after), before.joined(right)


def _splits(left: Lines, right: Lines, place: FloatArray) -> tuple[FloatArray, BoolArray]:
    """Where to split: at a corner if there is one inside, else where the bound is least, not too near an end."""
    one, two = left.at, right.at
    same = np.abs(left.corner_after - right.corner) <= 1e-12 * right.corner
    corners = same & (right.corner > one * (1.0 + 1e-9)) & (right.corner < two * (1.0 - 1e-9))
    width = two - one
    inside = np.clip(place, one + 0.1 * width, two - 0.1 * width)
    # far ends apart: by their ratio
    inside = np.where(two > 4.0 * one, np.clip(place, one * (two / one) ** 0.2, one * (two / one) ** 0.8), inside)
    first = np.take_along_axis(right.corner, corners.argmax(axis=0)[None], axis=0)[0]
    corner: BoolArray = corners.any(axis=0)
    return np.where(corner, first, inside), corner


def _first_lines(parts: Parts, low: FloatArray, high: FloatArray, worth: FloatArray) -> Lines:
    """Some ``S`` to start with, evenly spaced in ratio; both ends among them."""
    points = int(min(max(6.0, 2.0 * float(np.log2(high / low).max())), 24.0))
    steps = np.linspace(0.0, 1.0, points)
    at = (low[:, None] * (high / low)[:, None] ** steps).clip(low[:, None], high[:, None])
    at[:, -1] = high
    return fill(parts, np.repeat(np.arange(low.size), points), at.ravel(), 1.0, None, worth)


def _polished(variants: Variants, seen: Lines, bound: FloatArray) -> Found:
    """Of all nearly best points each brought to where both equations hold; among equals the largest ``S``."""
    # the best of those seen: what was attained before the search, by one person alone, may be a little better
    best = np.full(variants.count, np.inf)
    np.minimum.at(best, seen.which, seen.value)
    near = seen.take((seen.value <= best[seen.which] * (1.0 + 1e-7)) & (seen.value < np.inf))
    base = variants.crowd.base
    count = variants.count
    one_each = Variants(
        variants.crowd,
        None if variants.without is None else variants.without[near.which],
        None if variants.moved is None else variants.moved.take(near.which),
    )
    start = Points(near.level, 0.5 * near.at**2, one_each.totals(near.level, 0.5 * near.at**2, None), base)
    points, settled = newton(one_each, PRICE, near.level, start.rate)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        value = points.mse + points.expense
    fine = settled & (value <= near.value * (1.0 + 1e-12)) & (points.rate > 0.0)
    # where Newton's method went elsewhere the point as it was found
    level, rate = np.where(fine, points.level, near.level), np.where(fine, points.rate, start.rate)
    value = np.where(fine, value, near.value)
    least = np.full(count, np.inf)
    np.minimum.at(least, near.which, value)
    equal = np.flatnonzero(value <= least[near.which] * (1.0 + 1e-13))
    order = equal[np.lexsort((-rate[equal], near.which[equal]))]
    first = order[np.flatnonzero(np.diff(near.which[order], prepend=-1))]
    out_level, out_rate = np.zeros(count), np.zeros(count)
    out_level[near.which[first]], out_rate[near.which[first]] = level[first], rate[first]
    out_level = without_crumbs(Parts.whole(variants), out_level[None], out_rate)[0]
    return Found(Points(out_level, out_rate, variants.totals(out_level, out_rate), base), least, bound, seen)


def without_crumbs(parts: Parts, levels: FloatArray, rate: FloatArray) -> FloatArray:
    """The levels of all strata, lowered where next to nothing is bought from those inside and nothing is best.

    Where everybody cheaper is at the cap the search ends a little beside that corner, where the next person sells. The
    sign of the optimality condition decides: one more unit of ``S`` costs ``Σ λ_g·τ_g`` and saves ``2·MSE/S``.
    """
    levels, every = levels.copy(), np.arange(rate.size)
    for first in range(0, rate.size, parts.step):
        some = every[first : first + parts.step]
        totals = [one.totals(level[some], rate[some], some) for one, level in zip(parts.each, levels, strict=True)]
        whole, error, _ = balanced(parts, rate[some], list(levels[:, some]), totals)
        costs = sum(
            size * (one.crowd.base + level[some])
            for size, one, level in zip(parts.sizes, parts.each, levels, strict=True)
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            too_dear = costs > 2.0 * error / whole * (1.0 + _CRUMBS)
        for g, (one, at) in enumerate(zip(parts.each, totals, strict=True)):
            bought = rate[some] * at.gain
            crumbs = (bought < _CRUMBS * at.used) & too_dear | (bought < _DIGITS * at.used)
            few = np.flatnonzero(crumbs & (at.mass > 0.0))
            if few.size == 0:
                continue
            # below the cost of everybody inside, where those at the cap stay there
            level = levels[g, some[few]] - 4.0 * at.gain[few] / at.mass[few]
            level -= _DIGITS * (one.crowd.base + level)
            after = one.totals(level, rate[some[few]], some[few])
            same = (after.mass == 0.0) & (np.abs(after.used - at.used[few]) <= _DIGITS * at.used[few])
            levels[g, some[few[same]]] = level[same]
    return levels
