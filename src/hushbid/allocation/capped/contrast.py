"""The best purchase for a contrast of strata under caps, in every one of some populations: a price, one noise for all.

With sizes ``λ_g = |ℓ_g|/Λ`` and ``S = ηΛ = Σ ε`` every stratum gives ``λ_g·S``, and in units of ``A·Λ²`` the cost is

    Φ(S) = 2/S² + Σ_g N_g(1/S², λ_g·S),      N_g(p, s) = min pΣVε² + Σψε over the stratum at Σε = s, 0 ≤ ε ≤ e,

a sum of functions that are convex in ``S`` and concave in ``p``: lines and bounds are those without strata, added up
(:mod:`hushbid.allocation.capped.price`). ``S`` is at most what every stratum's caps allow, ``min_g Σ e/λ_g``.

At a minimum every stratum gives its share and ``S³·Σ λ_g·τ_g = 2(2 + ΣVε²)``. With the rate ``ρ = S²/2``, ``W`` over
those inside and ``E_g, D = Σe, ΣVe²`` over those at their cap that is ``ρ²W + ρ·Σ τ_g·E_g = 2 + D``. If nobody of one
stratum is inside, its caps alone say what ``S`` is, and its level is free between two values. Newton's method solves
both.
"""

import math
from dataclasses import dataclass

import numpy as np

from hushbid.allocation.capped.parts import Lines, Parts, balanced, fill
from hushbid.allocation.capped.price import without_crumbs
from hushbid.arrays import BoolArray, FloatArray, IndexArray

_STEPS = 24
_SETTLED = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class Outline:
    """What giving ``S`` costs at least, and a way to give it: the cheapest of every stratum up to their caps first."""

    at: FloatArray
    """Every ``S`` at which somebody is at her cap, the least first; 0 before them."""

    bill: FloatArray
    """``Σ ψε`` there, in between a line: no purchase that gives as much costs less."""

    value: FloatArray
    """``MSE + Σ ψε`` there, which is attained."""

    @classmethod
    def of(cls, parts: Parts) -> "Outline":
        """The outline of one population."""
        # nobody alone need give more than is best where a unit costs no more than the cheapest of each stratum
        most = (4.0 / parts.base) ** (1.0 / 3.0) if parts.base > 0.0 else 1e50
        corners, sums = [np.zeros(1)], []
        for size, one in zip(parts.sizes, parts.each, strict=True):
            people = one.crowd.people
            cap = np.minimum(people.cap, size * most)
            each = (cap / size, (one.crowd.base + people.offset) * cap, cap * cap / people.mass)
            sums.append([np.append(0.0, part.cumsum()) for part in each])
            corners.append(sums[-1][0])
        at = np.unique(np.concatenate(corners))
        at = at[at <= min(float(given[-1]) for given, _, _ in sums)]
        bill, squares = np.zeros(at.size), np.full(at.size, 2.0)
        for given, bills, spread in sums:
            bill += np.interp(at, given, bills)
            squares += np.interp(at, given, spread)
        with np.errstate(divide="ignore"):
            return cls(at, bill, squares / (at * at) + bill)

    def until(self, value: FloatArray) -> FloatArray:
        """The ``S`` past which everything costs more than a value; infinite if that is not known."""
        place = self.bill.searchsorted(value, side="right")
        after = np.append(self.at, math.inf)
        return after[np.minimum(place, self.at.size)]


def begin(
    parts: Parts, best: FloatArray, guesses: FloatArray, cheapest: FloatArray, paid: FloatArray
) -> tuple[FloatArray, ...]:
    """Between which ``S`` all purchases lie that somebody is paid for and that beat one which is attained; and that.

    What is attained, ``best`` or at one of some ``guesses`` of ``S``, is a value ``J``. Then ``2/S² ≤ J``. All together
    cost at least ``cheapest`` per unit of ``S``; if that is nothing, whoever is paid takes at least ``paid`` per unit
    of it, of which one more saves at most ``2·MSE/S``. A population in which a stratum has nobody gets nothing.
    """
    low, high, best = np.zeros(parts.count), np.zeros(parts.count), best.copy()
    some = np.flatnonzero(parts.full > 0.0)
    if some.size and guesses.size:
        which = np.tile(some, guesses.shape[0])
        at = np.minimum(guesses[:, some], parts.full[some]).ravel()
        np.minimum.at(best, which, fill(parts, which, at).value)
    some = some[best[some] < math.inf]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        low[some] = np.sqrt(2.0 / best[some])
        high[some] = np.where(cheapest > 0.0, best / cheapest, 2.0 * best / paid)[some] * (1.0 + 1e-12)
    return low, high, best


def best_seen(parts: Parts, seen: Lines) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Of all nearly best points each brought to where it is stationary, the best: ``S``, levels and value.

    Among equals it is the largest ``S``.
    """
    best = np.full(parts.count, np.inf)
    np.minimum.at(best, seen.which, seen.value)
    near = seen.take((seen.value <= best[seen.which] * (1.0 + 1e-7)) & (seen.value < np.inf))
    at, levels, fine = settle(parts.take(near.which), near.at, near.levels)
    value = value_at(parts.take(near.which), at, levels)[0]
    fine &= value <= near.value * (1.0 + 1e-12)
    # where Newton's method went elsewhere the point as it was found
    at, value, levels = (
        np.where(fine, at, near.at),
        np.where(fine, value, near.value),
        np.where(fine, levels, near.levels),
    )
    least = np.full(parts.count, np.inf)
    np.minimum.at(least, near.which, value)
    equal = np.flatnonzero(value <= least[near.which] * (1.0 + 1e-13))
    order = equal[np.lexsort((-at[equal], near.which[equal]))]
    first = order[np.flatnonzero(np.diff(near.which[order], prepend=-1))]
    out_at, out_levels = np.zeros(parts.count), np.zeros((len(parts.sizes), parts.count))
    out_at[near.which[first]], out_levels[:, near.which[first]] = at[first], levels[:, first]
    return out_at, without_crumbs(parts, out_levels, 0.5 * out_at**2), least


def value_at(parts: Parts, at: FloatArray, levels: FloatArray) -> tuple[FloatArray, FloatArray]:
    """What is attained at these levels, one ``S`` for each population, and the error of it."""
    value, error = np.empty(at.size), np.empty(at.size)
    for first in range(0, at.size, parts.step):
        some = np.arange(at.size)[first : first + parts.step]
        rate, here = 0.5 * at[some] ** 2, list(levels[:, some])
        totals = [one.totals(level, rate, some) for one, level in zip(parts.each, here, strict=True)]
        _, error[some], expense = balanced(parts, rate, here, totals)
        value[some] = error[some] + expense
    return value, error


def settle(parts: Parts, at: FloatArray, levels: FloatArray) -> tuple[FloatArray, FloatArray, BoolArray]:
    """``S`` and levels of a stationary point near a first guess, in each population; and where the steps settled."""
    at, levels = at.copy(), levels.copy()
    base = np.array([one.crowd.base for one in parts.each])[:, None]
    settled = np.zeros(at.size, dtype=bool)
    for first in range(0, at.size, parts.step):
        unsolved = np.arange(at.size)[first : first + parts.step]
        for _ in range(_STEPS):
            s, tau = at[unsolved], base + levels[:, unsolved]
            ds, dtau, whole = _step(parts, s, levels[:, unsolved], unsolved)
            fine = np.isfinite(ds) & np.isfinite(dtau).all(axis=0)
            at[unsolved] += np.where(fine, ds, 0.0)
            levels[:, unsolved] += np.where(fine, np.maximum(dtau, -0.9 * tau), 0.0)
            done = fine & (np.abs(ds) <= _SETTLED * s) & (np.abs(dtau) <= _SETTLED * np.maximum(tau, whole)).all(axis=0)
            settled[unsolved[done]] = True
            unsolved = unsolved[~done & fine]
            if unsolved.size == 0:
                break
    return at, levels, settled


def _step(
    parts: Parts, s: FloatArray, levels: FloatArray, which: IndexArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Newton's step in ``S`` and in the levels; and how large a level is whose stratum has nobody inside, else 0."""
    rate, size = 0.5 * s * s, np.array(parts.sizes)[:, None]
    totals = [one.totals(level, rate, which) for one, level in zip(parts.each, levels, strict=True)]
    mass, first, gain, paid, used, squares = (
        np.stack([getattr(one, name) for one in totals])
        for name in ("mass", "first", "gain", "paid", "used", "squares")
    )
    tau = np.array([one.crowd.base for one in parts.each])[:, None] + levels
    # every stratum gives its share; and one more unit of S saves what it costs, written so that nothing cancels
    f, f_tau, f_s = used + rate * gain - size * s, rate * mass, s * gain - size
    at_cap, inside = (tau * used).sum(axis=0), paid.sum(axis=0)
    g = rate * (at_cap + rate * inside) - (2.0 + squares.sum(axis=0))
    g_tau, g_s = rate * (used + rate * first), s * (at_cap + 2.0 * rate * inside)
    empty = ~(mass > 0.0)
    pinned = empty.any(axis=0)
    one = np.where(empty, used / size, np.inf).argmin(axis=0)[None]  # whose caps allow least
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        away, pull = np.where(empty, 0.0, f / f_tau), np.where(empty, 0.0, f_s / f_tau)
        ds = -(g - (g_tau * away).sum(axis=0)) / (g_s - (g_tau * pull).sum(axis=0))
        ds = np.where(pinned, -(np.take_along_axis(f, one, 0) / np.take_along_axis(f_s, one, 0))[0], ds)
        # no farther than to half or double S, nor to more than all caps allow
        ds = np.clip(ds, -0.5 * s, np.minimum(s, parts.full[which] - s))
        dtau = -(away + pull * ds)
        rest = -(g + g_s * ds + (g_tau * dtau).sum(axis=0)) / np.take_along_axis(g_tau, one, 0)[0]
    np.put_along_axis(dtau, one, np.where(pinned, rest, np.take_along_axis(dtau, one, 0)[0])[None], 0)
    # two strata without anybody inside agree by accident only
    others = empty & (np.abs(f + f_s * ds) > 1e-12 * size * s)
    ds = np.where(others.any(axis=0), math.nan, ds)
    return ds, dtau, np.where(empty, (size * tau).sum(axis=0) / size, 0.0)
