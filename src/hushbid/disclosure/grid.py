"""The integer grid on which every promise is exact.

Person i's datum becomes an integer ``X_i`` in [0, M], ``M = 2**40``; the privacy loss ``ε_i``, a double and so a dyadic
rational, becomes an integer weight ``W_i = floor(ε_i·2**t)``. With

    N = floor(Σ W_i X_i / M) + (discrete Laplace noise of scale 2**t),        estimate = N / Σ W_i,

replacing the datum moves ``Σ W_i X_i`` by at most ``W_i·M`` and so the floor by at most ``W_i``: that person loses at
most ``W_i/2**t ≤ ε_i``. No step rounds up, because every quantity is an integer or an integer times a power of two; and
since the floor of a double is a double, the loss delivered is itself an exact double. Dividing comes after the noise,
where it cannot change what anybody loses. (This is the usual ``W_i = floor(G·ε_i/S)`` with noise ``G·M/S``, where S is
``Σ ε``, G/S is a power of two and the sum is shortened before the noise, so that ``Σ W_i`` can use all of 60 bits.)

``t`` is as large as ``Σ W_i ≤ 2**60`` and a noise scale of at most ``2**54`` allow if all deliver. So ``n`` people lose
at most ``n/2**t`` of total weight to rounding: less than a millionth of the noise for a million people at ε = 1.
"""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hushbid.common.arrays import BoolArray, FloatArray, IntArray, rows_text
from hushbid.disclosure import noise
from hushbid.errors import ReleaseError

DATA_BITS = 40
"""Data lie on a grid of 2**40 steps over the public range."""

ESTIMATE_BITS = 40
"""Estimates are published as multiples of 2**-40 of the range."""

LARGEST_EXPONENT = 54
TOTAL_BITS = 60
_LIMB_BITS = 20
_BLOCK = 1 << 22
ALL_EXACT = 10_000
"""Up to this many people everybody's promise is checked with fractions too, above a random sample of as many."""
MAPPED = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class PromiseCheck:
    """That nobody loses more than promised, verified in exact arithmetic before any noise was drawn."""

    people: int
    """How many people's losses were compared with their promises in vectorised integer arithmetic: everybody's."""

    people_in_fractions: int
    """How many of them were compared again, independently, with rational numbers."""

    people_mapped: int
    """For how many OpenDP's own bound was compared as well."""

    largest_share: float
    """The largest part of a promise that was used, at most 1."""


def to_grid(values: FloatArray, bounds: tuple[float, float], *, bits: int = DATA_BITS) -> IntArray:
    """Each value, clamped to the public range, as an integer in [0, 2**bits]. NaN is not allowed here.

    Rounding in floating point is harmless: the integer depends on this one value only, and always lies in the range.
    It is rounded down, which every language does alike.
    """
    low, high = bounds
    share = (np.clip(values, low, high) - low) / (high - low)
    return np.clip(np.floor(np.ldexp(share, bits)), 0, 2**bits).astype(np.int64)


def to_data_units(numerator: int, denominator: int, bounds: tuple[float, float], level: float = 1.0) -> float:
    """A share of the range, a ratio, as an estimate: the nearest on a public grid (the even one of two).

    The digits below that grid would tell the total weight, and with it who dropped out. ``level`` is what weights add
    up to: 1 for a mean, and for a combination of stratum means what these have together.
    """
    low, high = bounds
    steps, rest = divmod(numerator << ESTIMATE_BITS, denominator)
    # to the nearest, half to even
    if 2 * rest > denominator or (2 * rest == denominator and steps % 2):
        steps += 1
    return level * low + (high - low) * (steps / (1 << ESTIMATE_BITS))


def exponent_of(losses: FloatArray) -> int:
    """Return the t of people whose losses, or sums of losses, these are; finite, one of them positive.

    It follows from what was promised to all: an engine has to know it before it adds up, and memory does the same.
    """
    scale = math.frexp(float(losses.max()))[1]
    with np.errstate(under="ignore"):
        total = float(np.sum(np.ldexp(losses, -scale)))  # relative to the largest, so that nothing overflows
    # rounded up, so that the integers' sum surely fits
    return min(TOTAL_BITS - scale - math.frexp(total * (1.0 + 1e-9))[1], LARGEST_EXPONENT)


def integer_weights(losses: FloatArray, exponent: int) -> IntArray:
    """``W_i = floor(ε_i·2**t)``, exactly."""
    with np.errstate(under="ignore"):  # what underflows is below 1 and rounds down to 0 anyway
        return np.floor(np.ldexp(losses, exponent)).astype(np.int64)


def exact_sum(weights: IntArray, values: IntArray) -> int:
    """``Σ W_i X_i`` as an integer of any size: 20-bit limbs whose partial sums fit in 64 bits."""
    total = 0
    mask = (1 << _LIMB_BITS) - 1
    for start in range(0, weights.size, _BLOCK):
        weight, value = weights[start : start + _BLOCK], values[start : start + _BLOCK]
        low, high = value & mask, value >> _LIMB_BITS
        for limb in range(3):
            digits = (weight >> (limb * _LIMB_BITS)) & mask if limb < 2 else weight >> (limb * _LIMB_BITS)
            part = int(np.dot(digits, low)) + (int(np.dot(digits, high)) << _LIMB_BITS)
            total += part << (limb * _LIMB_BITS)
    return total


def check_promises(weights: IntArray, exponent: int, promised: FloatArray) -> PromiseCheck:
    """Verify ``W_i/2**t ≤ promised_i`` for everybody, exactly and in independent ways; refuse otherwise."""
    # check 1, for everybody: by shifting significands
    broken = ~_kept_in_integers(weights, exponent, promised)
    if broken.any():
        raise ReleaseError(f"The noise would not keep the promise made to {rows_text(broken)}; nothing was drawn.")
    people = weights.size
    # check 2, for all of few or some of many: in rational numbers
    rows = range(people) if people <= ALL_EXACT else random.SystemRandom().sample(range(people), ALL_EXACT)
    scale = math.ldexp(1.0, exponent)
    if not _kept_in_fractions(weights, scale, promised, rows):
        raise ReleaseError("Two exact checks of the promises disagree; nothing was drawn.")
    with np.errstate(under="ignore", divide="ignore", invalid="ignore"):
        shares = np.ldexp(weights.astype(np.float64), -exponent) / promised
    used = np.flatnonzero(weights)
    # check 3, for those closest to their promise: OpenDP's own bound
    closest = used[np.argpartition(-shares[used], MAPPED)[:MAPPED]] if used.size > MAPPED else used
    bounds = noise.loss_bounds(weights[closest].tolist(), scale=scale)
    if not (np.array(bounds) <= promised[closest]).all():
        raise ReleaseError("OpenDP's bound on somebody's privacy loss exceeds the promise; nothing was drawn.")
    return PromiseCheck(
        people=people,
        people_in_fractions=len(rows),
        people_mapped=int(closest.size),
        largest_share=float(shares[used].max(initial=0.0)),
    )


def _kept_in_integers(weights: IntArray, exponent: int, promised: FloatArray) -> BoolArray:
    """``W_i ≤ floor(promised_i·2**t)``, the right side by shifting the 53-bit significand of the promise."""
    unbounded = promised == math.inf
    fraction, power = np.frexp(np.where(unbounded, 0.0, promised))
    significand = np.ldexp(fraction, 53).astype(np.int64)
    shift = power.astype(np.int64) - 53 + exponent
    down = significand >> np.clip(-shift, 0, 63)
    up = significand << np.clip(shift, 0, 9)  # 62 bits at most; where the shift is longer, the weight is still shorter
    allowed = np.where(shift < 0, down, up)
    return np.asarray(unbounded | ((weights >= 0) & (weights <= allowed)))


def _kept_in_fractions(weights: IntArray, scale: float, promised: FloatArray, rows: Sequence[int]) -> bool:
    """``W_i/scale ≤ promised_i`` in rational numbers, from the very double that the sampler receives as its scale.

    With ``scale = a/b`` and ``promised_i = p/q`` that is ``W_i·b·q ≤ p·a``, in integers of any size.
    """
    above, below = scale.as_integer_ratio()
    which = np.asarray(rows, dtype=np.int64)
    for weight, promise in zip(weights[which].tolist(), promised[which].tolist(), strict=True):
        if promise == math.inf:
            continue
        top, bottom = promise.as_integer_ratio()
        if weight * below * bottom > top * above:
            return False
    return True
