"""Checks of a release: everybody lost at most what was promised, exactly, and the error stated is the error.

A release says in which integers it was computed (:mod:`hushbid.disclosure.grid`). Central: ``W_i = floor(ε_i·2**t)``
over those who delivered, noise of scale ``2**t``, so that person i loses ``W_i/2**t``. Local: everybody's message was
made with exactly the promised loss. What cannot be checked without the data is the estimate itself, beyond that it lies
on the public grid, and how many values were clamped.
"""

import math
from collections.abc import Iterator
from dataclasses import asdict
from fractions import Fraction

import numpy as np

from hushbid.common.arrays import BoolArray, FloatArray, IntArray, rows_text
from hushbid.disclosure import ErrorModel, Release
from hushbid.verification.findings import Check, distance, judged, skipped
from hushbid.verification.stated_numbers import Facts, best_weights, spread_by_coin, used_of
from hushbid.verification.strata_weights import best_contrast, in_proportion, unevenness

_EXACT = 1e-12
_NEARLY = 1e-9
_DATA_BITS = 40
_ESTIMATE_BITS = 40
_TOTAL_BITS = 60
_LARGEST_EXPONENT = 54
_MESSAGE_BITS = 32
_NOISELESS_BITS = 50
_ROUNDED_BITS = 50
_ALL_IN_FRACTIONS = 10_000
_MAPPED = 16


def release_checks(facts: Facts) -> Iterator[Check]:
    """Everything about the release."""
    release = facts.record.release
    if release is None:
        yield skipped("release", "Nothing has been released")
        return
    yield _belongs(facts, release)
    yield _promises(facts, release)
    yield _grid(facts, release)
    by_coin = facts.by_coin
    yield error_check("error of the release", release.error, _delivered_error(facts, release), by_coin=by_coin)
    yield error_check("planned error", release.planned_error, _planned_error(facts), by_coin=by_coin)
    if facts.market.survey is None:
        yield _estimate(facts, release)


def _belongs(facts: Facts, release: Release) -> Check:
    problems = []
    if release.key != facts.record.outcome_key:
        problems.append("The release was made for another outcome")
    bounds = facts.market.bounds if facts.market.survey is None else (0.0, facts.market.width)
    if release.setting != facts.market.setting or release.bounds != bounds:
        problems.append("The release was made for another setting or other bounds")
    problems += _other_strata(facts, release)
    return judged("release", problems, "The release was made for this outcome, in its setting and bounds")


def _other_strata(facts: Facts, release: Release) -> list[str]:
    """Whether it combines the strata's means as the outcome does."""
    stated, strata = release.strata, facts.strata
    if stated is None or strata is None:
        return [] if stated is None and strata is None else ["The release was made for other strata"]
    counts = np.bincount(strata.codes[facts.bought], minlength=strata.count).tolist()
    same = (tuple(strata.weights.tolist()), tuple(counts), strata.names)
    fits = (stated.weights, stated.bought_from, stated.names) == same
    return [] if fits else ["The release was made for other strata"]


def present_in(facts: Facts, release: Release) -> BoolArray:
    """Who delivered, and whose data were used: with an unlimited loss among them, only those (central)."""
    present = facts.bought.copy()
    rows = np.array(release.dropped_out, dtype=np.intp)
    present[rows[(rows >= 0) & (rows < facts.people)]] = False
    if facts.central and (facts.losses[present] == math.inf).any():
        present &= facts.losses == math.inf
    return present


def spent_in(facts: Facts, release: Release) -> FloatArray:
    """What a release uses of everybody's promise: all of it, but for a menu that promises more than is of use.

    Where only part is used, it follows from an equation, whose last digits are the release's.
    """
    present = present_in(facts, release)
    left_out = facts.strata is not None and facts.central and not present[facts.bought].all()
    if not facts.shared and not left_out:
        return facts.losses
    stated = release.privacy_loss
    if facts.strata is None:
        used = used_of(facts.losses, facts.variance)
    else:  # strata are kept in proportion by those who are left
        weights, strength = best_contrast(np.where(present, facts.losses, 0.0), facts.variance, facts.strata)
        used = np.minimum(np.abs(weights) * strength, facts.losses)
    near = (stated > 0.0) & (stated <= facts.losses) & (distance(stated, used) <= _NEARLY)
    return np.where(near, stated, used)


def _promises(facts: Facts, release: Release) -> Check:
    """Comparing two doubles is exact; doing it again in rational numbers shows it."""
    promised, delivered = facts.losses, release.privacy_loss
    problems = []
    # at most what was promised, for everybody; no number is not at most
    more = ~((delivered >= 0.0) & (delivered <= promised))
    if more.any():
        problems.append(f"More was lost than promised in {rows_text(more)}")
    rows = np.flatnonzero((delivered < math.inf) & (promised < math.inf))[:_ALL_IN_FRACTIONS].tolist()
    if any(Fraction(float(delivered[row])) > Fraction(float(promised[row])) for row in rows):
        problems.append("More was lost than promised, in rational numbers")
    # whose data were used: bought from, and not dropped out
    dropped = list(release.dropped_out)
    if dropped != sorted(set(dropped)) or not all(
        0 <= row < facts.people and facts.losses[row] > 0.0 for row in dropped
    ):
        problems.append("Those who dropped out are not rows that should have delivered")
    present = present_in(facts, release)
    if delivered[~present].any():
        problems.append(f"Somebody lost privacy whose data were not used: {rows_text(~present & (delivered > 0.0))}")
    if not facts.central and not np.array_equal(delivered[present], promised[present]):
        problems.append("A message was not made with the promised loss")
    # the largest share of a promise that was used up
    finite = present & (promised < math.inf) & (promised > 0.0)
    share = float((delivered[finite] / promised[finite]).max(initial=0.0))
    if facts.central and (promised[present] == math.inf).any():
        share = 1.0
    problems += _count_problems(facts, release, present, share)
    return judged(
        "promises",
        problems,
        "Nobody lost more privacy than promised, in exact arithmetic",
        people=facts.people,
        in_rational_numbers=len(rows),
        dropped_out=len(dropped),
        largest_share_of_a_promise=share,
    )


def _count_problems(facts: Facts, release: Release, present: BoolArray, share: float) -> list[str]:
    """What the release says of the checks that were made before the noise was drawn."""
    check, delivered = release.check, release.privacy_loss
    noiseless = facts.central and release.grid.weight_exponent is None
    if noiseless:
        in_fractions, mapped = 0, 0
    elif facts.central:
        in_fractions = min(facts.people, _ALL_IN_FRACTIONS)
        mapped = min(int(np.count_nonzero(delivered)), _MAPPED)
    else:
        in_fractions, mapped = int(present.sum()), 0
    stated = (check.people, check.people_in_fractions, check.people_mapped)
    problems = []
    if stated != (facts.people, in_fractions, mapped) or not distance(check.largest_share, share) <= _EXACT:
        problems.append("What the release says of its own checks does not fit")
    if not (type(release.clamped) is int and 0 <= release.clamped <= int(present.sum())):
        problems.append("More values were clamped than delivered")
    if not facts.central and release.clamped != 0:
        problems.append("In the local setting nobody knows how many values were clamped")
    return problems


def _grid(facts: Facts, release: Release) -> Check:
    """The integers: weights rounded down, their sum, and the scale of the noise."""
    grid, present, delivered = release.grid, present_in(facts, release), release.privacy_loss
    problems = []
    # local: each message's own grid, the coarsest of which is stated
    if facts.by_coin:
        if (grid.data_bits, grid.weight_exponent, grid.total_weight, grid.noise_scale) != (0, None, None, None):
            problems.append("An answer by coin is one bit, without a grid")
        return judged("grid", problems, "Every message is one bit, without a grid and without noise")
    if not facts.central:
        bits = bits_of_messages(facts, facts.losses[present]).min(initial=_MESSAGE_BITS)
        if (grid.data_bits, grid.weight_exponent, grid.total_weight, grid.noise_scale) != (bits, None, None, None):
            problems.append("The grid is not that of the messages")
        return judged("grid", problems, "The messages were made on the grid that their privacy losses ask for")
    exponent = grid.weight_exponent
    if grid.data_bits != _DATA_BITS:
        problems.append("The data were not put on the grid of this version")
    # central without noise
    if (facts.losses[present] == math.inf).any():
        weights = noiseless_weights(facts, present)
        if exponent is not None or grid.noise_scale != 0.0 or grid.total_weight != sum(weights.tolist()):
            problems.append("Without noise there is neither a scale nor another sum of weights")
        if not (delivered[present] == math.inf).all():
            problems.append("Without noise everything is lost")
        return judged("grid", problems, "No noise was drawn, as the losses are unlimited")
    if exponent is None or type(grid.total_weight) is not int:
        return judged("grid", ["The weights or the noise are missing"], "")
    # central with noise: W/2**t is what was lost, to the last bit
    spent = spent_in(facts, release)
    weights = integer_weights(spent, present, exponent)
    wrong = np.ldexp(weights.astype(float), -exponent) != delivered
    if wrong.any():
        problems.append(f"The loss is not the promised one rounded down to the grid in {rows_text(wrong)}")
    if not _fine_enough(exponent, spent, present) or grid.noise_scale != math.ldexp(1.0, exponent):
        problems.append("The noise does not have the scale of the grid")
    if grid.total_weight != sum(weights.tolist()) or not 0 < grid.total_weight <= 2**_TOTAL_BITS:
        problems.append("The integer weights do not add up to the total stated")
    return judged(
        "grid",
        problems,
        "Integer weights, their sum and the scale of the noise fit, exactly",
        people=int(present.sum()),
        noise_scale=float(grid.noise_scale or 0.0),
    )


def integer_weights(losses: FloatArray, present: BoolArray, exponent: int) -> IntArray:
    """``floor(ε·2**t)``; a power of two times a double is exact, unless it is too small to count."""
    with np.errstate(under="ignore"):
        scaled = np.ldexp(np.where(present, losses, 0.0), exponent)
    return np.floor(np.minimum(scaled, 2.0**_TOTAL_BITS)).astype(np.int64)


def _largest_exponent(losses: FloatArray) -> int:
    """The ``t`` at which the weights' sum has at most 60 bits; never above 54."""
    largest = float(losses.max())
    total = float(np.sum(losses / largest)) * (1 + 1e-9)
    return min(_TOTAL_BITS - math.frexp(largest)[1] - math.frexp(total)[1], _LARGEST_EXPONENT)


def _fine_enough(exponent: int, losses: FloatArray, present: BoolArray) -> bool:
    """The ``t`` of those who delivered or, as an engine takes it, of everybody who was promised something."""
    if exponent == _largest_exponent(losses[present]):
        return True
    with np.errstate(over="ignore"):
        total = float(np.sum(losses))
    promised = min(_TOTAL_BITS - math.frexp(total * (1 + 1e-9))[1], _LARGEST_EXPONENT)
    return total < math.inf and exponent == promised


def noiseless_weights(facts: Facts, present: BoolArray) -> IntArray:
    shares, _ = best_weights(facts, np.where(present, math.inf, 0.0))
    return np.floor(np.ldexp(shares, _NOISELESS_BITS)).astype(np.int64)


def bits_of_messages(facts: Facts, losses: FloatArray) -> IntArray:
    """32 bits, fewer for a loss so small that the noise would not fit in 64 bits otherwise.

    Of a survey, it is the noise of the group of questions that has the least part, in whole numbers.
    """
    layout, unlimited = facts.market.layout, losses == math.inf
    fractions, exponents = np.frexp(np.where(unlimited, 1.0, losses))
    if layout is not None:
        part = min(group.parts for group in layout.groups)
        lengths = [(whole * part).bit_length() - 83 for whole in np.ldexp(fractions, 53).astype(np.int64).tolist()]
        exponents = exponents + np.array(lengths, dtype=np.int64)
    return np.where(unlimited, _MESSAGE_BITS, np.minimum(_MESSAGE_BITS, 53 + exponents.astype(np.int64)))


def rounding_of_messages(facts: Facts, weights: FloatArray, present: BoolArray) -> float:
    """What the grids of those who delivered add to an estimate with these weights, on a range of width 1."""
    bits = bits_of_messages(facts, facts.losses[present])
    return 2.0 * float((weights[present] * np.ldexp(1.0, -bits)).sum()) + 2.0**-_ESTIMATE_BITS


def _delivered_error(facts: Facts, release: Release) -> dict[str, float]:
    width, present = facts.market.width, present_in(facts, release)
    if facts.central:
        exponent = release.grid.weight_exponent
        noiseless = (facts.losses[present] == math.inf).any()
        spent = spent_in(facts, release)
        integers = noiseless_weights(facts, present) if noiseless else integer_weights(spent, present, exponent or 0)
        # the weights that were really used: integers over their sum
        weights, step = in_proportion(integers.tolist(), facts.codes, facts.sizes)
        noise = 0.0 if noiseless else math.ldexp(1.0, exponent or 0) * step
        rounding = float(facts.sizes.sum()) * 2.0**-_DATA_BITS + 2.0**-_ESTIMATE_BITS + 2.0 * step
        return _error_numbers(facts, weights, np.array([width * noise]), width * rounding)
    losses = np.where(present, facts.losses, 0.0)
    weights = np.abs(best_weights(facts, losses)[0])
    if facts.by_coin:
        return error_by_coin(facts, weights, width=width, rounded=True)
    rounding = rounding_of_messages(facts, weights, present)
    return _error_numbers(facts, weights, _scales(facts, weights, present), width * rounding)


def _planned_error(facts: Facts) -> dict[str, float]:
    """Had everybody delivered, and without rounding."""
    if not facts.central:
        weights = np.abs(best_weights(facts, facts.losses)[0])
        if facts.by_coin:
            return error_by_coin(facts, weights, width=facts.market.width, rounded=False)
        return _error_numbers(facts, weights, _scales(facts, weights, facts.bought), 0.0)
    if (facts.losses == math.inf).any():
        weights = np.abs(best_weights(facts, facts.losses)[0])
        return _error_numbers(facts, weights, np.zeros(1), 0.0)
    weights, step = planned_shares(facts)
    return _error_numbers(facts, weights, np.array([facts.market.width * step]), 0.0)


def planned_shares(facts: Facts) -> tuple[FloatArray, float]:
    """Everybody's weight without its sign if all deliver, and the scale of the noise on a range of width 1; central."""
    used = facts.losses if not facts.shared else used_of(facts.losses, facts.variance)
    return in_proportion(used, facts.codes, facts.sizes)


def error_by_coin(facts: Facts, weights: FloatArray, *, width: float, rounded: bool) -> dict[str, float]:
    """The fields of an error model of answers by coin, whose two values, made unbiased, lie ``coth(ε/2)`` apart."""
    used = weights > 0.0
    steps = 2.0 * np.sqrt(spread_by_coin(facts.losses[used])) * weights[used]
    squares = width**2 * math.fsum(steps**2)
    rounding = 2.0**-_ESTIMATE_BITS + 2.0**-_ROUNDED_BITS * math.fsum(steps) if rounded else 0.0
    none = dict.fromkeys(("largest_noise", "next_noise", "other_noise_squared", "squared_bias", "largest_bias"), 0.0)
    return none | {
        "sampling_variance": squares / 4.0,
        "squared_steps": squares,
        "largest_step": width * float(steps.max()),
        "rounding": width * rounding,
        "cells": 1.0,
        "choice": 0.0,
    }


def _scales(facts: Facts, weights: FloatArray, rows: BoolArray) -> FloatArray:
    return facts.market.width * weights[rows] / facts.losses[rows]


def _error_numbers(facts: Facts, weights: FloatArray, noise: FloatArray, rounding: float) -> dict[str, float]:
    """The fields of an error model, from weights and scales of Laplace noise, in data units."""
    width, unit = facts.population.width, facts.population.unit
    squares = math.fsum(weights**2)
    scales = sorted(noise.tolist())
    # how far from equal the weights are, over everybody whose mean is wanted
    uneven, above = unevenness(weights, facts.codes, facts.sizes, facts.counts)
    bias = facts.bias * unit * uneven
    return {
        "sampling_variance": math.fsum(facts.own * weights**2) * unit,
        "squared_steps": unit * squares,
        "largest_step": width * float(weights.max()),
        "largest_noise": scales[-1],
        "next_noise": scales[-2] if len(scales) > 1 else 0.0,
        "other_noise_squared": math.fsum(scale**2 for scale in scales[:-1]),
        "rounding": rounding,
        "squared_bias": bias,
        "largest_bias": min(math.sqrt(bias), width * above),
        "cells": 1.0,  # Laplace noise
        "choice": 0.0,
    }


def error_check(name: str, stated: ErrorModel, expected: dict[str, float], *, by_coin: bool = False) -> Check:
    # equal weights have no bias, but for rounding
    floors = {"squared_bias": stated.mse, "largest_bias": math.sqrt(stated.mse)}
    gaps = {
        field: float(distance(value, expected[field], floors.get(field, 0.0)))
        for field, value in asdict(stated).items()
    }
    problems = [
        f"{field} does not follow from {'the privacy losses' if by_coin else 'the declared variance and the grid'}"
        for field in gaps
        if gaps[field] > 1e-9
    ]
    whence = "privacy losses, for any share of yes" if by_coin else "declared variance and the noise"
    return judged(
        name,
        problems,
        f"The standard error follows from the {whence}",
        standard_error=math.sqrt(stated.mse),
        largest_relative_difference=max(gaps.values()),
    )


def _estimate(facts: Facts, release: Release) -> Check:
    """On the public grid, and no further outside the range than noise can carry it.

    The sum of Laplace terms of scales b exceeds ``100·√Σb²`` with probability below ``3·exp(−50)`` (Chernoff).
    """
    low, high = facts.market.bounds
    first, last = facts.range_of(low, high)
    problems, estimate = [], release.one_estimate
    if not math.isfinite(estimate):
        problems.append("The estimate is not a finite number")
    else:
        # the grid's numbers are rounded doubles: the nearest, or a neighbour
        base = facts.level * low
        step = round(Fraction(estimate - base) / Fraction(high - low) * 2**_ESTIMATE_BITS)
        near = [base + (high - low) * ((step + k) / (1 << _ESTIMATE_BITS)) for k in (-1, 0, 1)]
        if estimate not in near:
            problems.append("The estimate does not lie on the public grid")
        error = release.error
        reach = 100.0 * math.sqrt(error.largest_noise**2 + error.other_noise_squared) + error.rounding
        if not first - reach <= estimate <= last + reach:
            problems.append("The estimate lies further outside the range than the noise can carry it")
    return judged(
        "estimate",
        problems,
        "The estimate lies on the public grid; whether it is the one that was drawn cannot be told without the data,"
        " only by comparing the record's hash with one published elsewhere",
    )
