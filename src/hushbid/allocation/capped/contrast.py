"""The best purchase for a contrast of strata under caps, in every one of some populations: a price, one noise for all.

With sizes ``λ_g = |ℓ_g|/Λ`` and ``S = ηΛ = Σ ε`` every stratum gives ``λ_g·S``, and in units of ``A·Λ²`` the cost is

    Φ(S) = 2/S² + Σ_g N_g(1/S², λ_g·S),      N_g(p, s) = min pΣVε² + Σψε over the stratum at Σε = s, 0 ≤ ε ≤ e,

a sum of functions that are convex in ``S`` and concave in ``p``: lines and bounds are those without strata, added up
(:mod:`hushbid.allocation.capped.price`). ``S`` is at most what every stratum's caps allow, ``min_g Σ e/λ_g``.

At a minimum, with ``R = ΣVε²``, ``S³·Σ λ_g·τ_g = 2(2 + R)`` and every stratum gives its share. If nobody of one stratum
is inside, its caps alone say what ``S`` is, and its level is free between two values. Newton's method solves both.
"""

import math

import numpy as np

from hushbid.allocation.capped.parts import Lines, Parts, balanced, fill
from hushbid.arrays import BoolArray, FloatArray, IndexArray

_STEPS = 24
_SETTLED = 1e-12


def begin(parts: Parts, guesses: FloatArray, cheapest: FloatArray, paid: FloatArray) -> tuple[FloatArray, ...]:
    """Between which ``S`` all purchases lie that somebody is paid for and that beat one which is attained; and that.

    What is attained at one of some ``guesses`` of ``S`` is a value ``J``. Then ``2/S² ≤ J``. All together cost at least
    ``cheapest`` per unit of ``S``; if that is nothing, whoever is paid takes at least ``paid`` per unit of it, of which
    one more saves at most ``2·MSE/S``. A population in which a stratum has nobody gets ``J = ∞``.
    """
    low, high, best = np.zeros(parts.count), np.zeros(parts.count), np.full(parts.count, np.inf)
    some = np.flatnonzero(parts.full > 0.0)
    if some.size == 0:
        return low, high, best
    which = np.tile(some, guesses.shape[0])
    at = np.minimum(guesses[:, some], parts.full[some]).ravel()
    np.minimum.at(best, which, fill(parts, which, at).value)
    with np.errstate(divide="ignore", invalid="ignore"):
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
    return out_at, out_levels, least


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
            near = fine & (np.abs(ds) <= 0.5 * s) & (dtau > -0.9 * tau).all(axis=0)
            # no farther than to half or double S, and not below nothing
            at[unsolved] += np.where(fine, np.clip(ds, -0.5 * s, s), 0.0)
            levels[:, unsolved] += np.where(fine, np.maximum(dtau, -0.9 * tau), 0.0)
            done = near & (np.abs(ds) <= _SETTLED * s) & (np.abs(dtau) <= _SETTLED * np.maximum(tau, whole)).all(axis=0)
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
    mass, gain, paid, used, squares = (
        np.stack([getattr(one, name) for one in totals]) for name in ("mass", "gain", "paid", "used", "squares")
    )
    tau = np.array([one.crowd.base for one in parts.each])[:, None] + levels
    spread = np.maximum(tau * gain - paid, 0.0)
    # every stratum gives its share
    f, f_tau, f_s = used + rate * gain - size * s, rate * mass, s * gain - size
    # one more unit of S saves what it costs
    all_tau = (size * tau).sum(axis=0)
    g = s**3 * all_tau - 2.0 * (2.0 + (squares + rate * rate * spread).sum(axis=0))
    g_tau, g_s = s**3 * size - 4.0 * rate * rate * gain, 3.0 * s * s * all_tau - 4.0 * rate * s * spread.sum(axis=0)
    empty = ~(mass > 0.0)
    pinned = empty.any(axis=0)
    one = np.where(empty, used / size, np.inf).argmin(axis=0)[None]  # whose caps allow least
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        away, pull = np.where(empty, 0.0, f / f_tau), np.where(empty, 0.0, f_s / f_tau)
        ds = -(g - (g_tau * away).sum(axis=0)) / (g_s - (g_tau * pull).sum(axis=0))
        ds = np.where(pinned, -(np.take_along_axis(f, one, 0) / np.take_along_axis(f_s, one, 0))[0], ds)
        dtau = -(away + pull * ds)
        rest = -(g + g_s * ds + (g_tau * dtau).sum(axis=0)) / np.take_along_axis(g_tau, one, 0)[0]
    np.put_along_axis(dtau, one, np.where(pinned, rest, np.take_along_axis(dtau, one, 0)[0])[None], 0)
    # two strata without anybody inside agree by accident only
    others = empty & (np.abs(f + f_s * ds) > 1e-12 * size * s)
    ds = np.where(others.any(axis=0), math.nan, ds)
    return ds, dtau, np.where(empty, all_tau / size, 0.0)
