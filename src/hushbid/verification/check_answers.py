"""Checks of a survey's answers: each question's, with the error that follows from the grid, question by question.

Of everybody's integer weight ``W`` a group of questions has ``floor(W·parts/2**30)``; its noise has the scale of the
grid, so that its parts cost nobody more than her weight. What is stated of a question is derived from those integers,
from its range and its variance; the values themselves cannot be checked without the data, beyond that they lie on the
public grid and that the shares of a choice add up to one.

In the local setting nobody's weight is split: everybody's messages have the weight ``w ∝ 1/(V + 2·width²/ε²)`` in all
questions, and her noise in a group has the scale ``1/(ε·parts/2**30)``. A single yes/no question has no noise there:
answers by coin are weighed by ``tanh²(ε/2)``, and vary by at most ``coth²(ε/2)/4`` each.
"""

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from hushbid.common.arrays import BoolArray, FloatArray, IntArray
from hushbid.disclosure import QuestionAnswer, Release
from hushbid.questions import Choice, NoiseGroup, Number, Question
from hushbid.verification.check_questions import noise_of
from hushbid.verification.check_release import (
    error_by_coin,
    error_check,
    integer_weights,
    noiseless_weights,
    planned_shares,
    present_in,
    rounding_of_messages,
    spent_in,
)
from hushbid.verification.findings import Check, judged
from hushbid.verification.stated_numbers import Facts, best_weights, spread_by_coin
from hushbid.verification.strata_weights import in_proportion, unevenness

_PARTS = 2**30
_GRID = 2.0**-40
"""Data and estimates are put on grids as fine as this part of the range."""


def answer_checks(facts: Facts) -> Iterator[Check]:
    """Everything about the answers, where a survey was released."""
    release, layout, questions = facts.record.release, facts.market.layout, facts.market.survey
    if release is None or layout is None or questions is None:
        return
    if [one.question for one in release.answers] != list(questions):
        yield judged("answers", ["The answers are not to the survey's questions"], "")
        return
    if facts.by_coin:
        yield from _by_coin(facts, release)
        return
    integers = _integers(facts, release) if facts.central else None
    groups = {row: group for group in layout.groups for row in group.rows}
    for row, answer in enumerate(release.answers):
        group = groups[row]
        weights, scales, rounding = (
            _sent(facts, release, group) if integers is None else _delivered(facts, integers, release, group)
        )
        name = answer.question.name
        yield error_check(f"error of {name!r}", answer.error, _error(facts, answer, group, weights, scales, rounding))
        weights, scales = _planned(facts, group)
        yield error_check(
            f"planned error of {name!r}", answer.planned_error, _error(facts, answer, group, weights, scales, 0.0)
        )
    yield _shared(integers, release, list(layout.groups))
    yield _values(facts, release)


def _by_coin(facts: Facts, release: Release) -> Iterator[Check]:
    """A single yes/no question in the local setting: the weights of those who delivered, and no noise."""
    [answer] = release.answers
    weights, _ = best_weights(facts, np.where(present_in(facts, release), facts.losses, 0.0))
    expected = error_by_coin(facts, weights, width=1.0, rounded=True)
    yield error_check(f"error of {answer.name!r}", answer.error, expected, by_coin=True)
    planned = error_by_coin(facts, best_weights(facts, facts.losses)[0], width=1.0, rounded=False)
    yield error_check(f"planned error of {answer.name!r}", answer.planned_error, planned, by_coin=True)
    used = weights > 0.0
    apart = math.fsum(weights[used] * 2.0 * np.sqrt(spread_by_coin(facts.losses[used])))
    yield _values(facts, release, farthest=0.5 * (apart - 1.0))


def _integers(facts: Facts, release: Release) -> IntArray:
    """Everybody's weight before it is split."""
    present, exponent = present_in(facts, release), release.grid.weight_exponent
    if exponent is None:
        return noiseless_weights(facts, present)
    return integer_weights(spent_in(facts, release), present, exponent)


def _parts(integers: IntArray, release: Release, group: NoiseGroup) -> list[int]:
    """A group's part of everybody's weight, in whole numbers of any size; without noise there is nothing to split."""
    if release.grid.weight_exponent is None:
        return list(integers.tolist())
    return [weight * group.parts // _PARTS for weight in integers.tolist()]


def _delivered(
    facts: Facts, integers: IntArray, release: Release, group: NoiseGroup
) -> tuple[FloatArray, FloatArray, float]:
    """The weights that were used, the scales of the noise, and the rounding, on a range of width 1."""
    parts, exponent = _parts(integers, release, group), release.grid.weight_exponent
    weights, step = in_proportion(parts, facts.codes, facts.sizes)
    noise = 0.0 if exponent is None else math.ldexp(1.0, exponent) * step
    # strata in proportion: each answer of a choice but the last is rounded down, and the last makes up for all
    more = group.cells if group.choice and facts.sizes.size > 1 else 0
    return weights, np.array([noise]), (float(facts.sizes.sum()) + 1.0) * _GRID + (2.0 + more) * step


def _sent(facts: Facts, release: Release, group: NoiseGroup) -> tuple[FloatArray, FloatArray, float]:
    """The same in the local setting: everybody who delivered has noise of her own."""
    present = present_in(facts, release)
    weights = np.abs(best_weights(facts, np.where(present, facts.losses, 0.0))[0])
    return weights, _scales(facts, weights, present, group), rounding_of_messages(facts, weights, present)


def _scales(facts: Facts, weights: FloatArray, rows: BoolArray, group: NoiseGroup) -> FloatArray:
    return weights[rows] / (facts.losses[rows] * (group.parts / _PARTS))


def _planned(facts: Facts, group: NoiseGroup) -> tuple[FloatArray, FloatArray]:
    """The same, had everybody delivered, and without rounding."""
    if not facts.central:
        weights = np.abs(best_weights(facts, facts.losses)[0])
        return weights, _scales(facts, weights, facts.bought, group)
    if (facts.losses == math.inf).any():
        return np.abs(best_weights(facts, facts.losses)[0]), np.zeros(1)
    weights, step = planned_shares(facts)
    return weights, np.array([step / (group.parts / _PARTS)])


def _error(
    facts: Facts, answer: QuestionAnswer, group: NoiseGroup, weights: FloatArray, scales: FloatArray, rounding: float
) -> dict[str, float]:
    """The fields of an error model of one question."""
    low, high = _range(answer.question)
    width, variance = high - low, _variance(answer.question)
    squares = math.fsum(weights**2)
    uneven, above = unevenness(weights, facts.codes, facts.sizes, facts.counts)
    bias = facts.market.max_correlation**2 * variance * uneven
    related = facts.market.max_correlation > 0.0
    *others, largest = sorted((width * scales).tolist())
    return {
        "sampling_variance": variance * squares,
        "squared_steps": width**2 * squares,
        "largest_step": width * float(weights.max()),
        "largest_noise": largest,
        "next_noise": others[-1] if others else 0.0,
        "other_noise_squared": math.fsum(scale**2 for scale in others),
        "rounding": width * rounding,
        "squared_bias": bias,
        "largest_bias": min(math.sqrt(bias), width * above) if related else 0.0,
        "cells": group.cells,
        "choice": group.choice,
    }


def _range(question: Question) -> tuple[float, float]:
    return question.bounds if isinstance(question, Number) else (0.0, 1.0)


def _variance(question: Question) -> float:
    """The most that a value can vary, in squared units."""
    if isinstance(question, Number) and question.variance is not None:
        return question.variance
    low, high = _range(question)
    return (high - low) ** 2 / 4.0


def _shared(integers: IntArray | None, release: Release, groups: list[NoiseGroup]) -> Check:
    """All parts of a person's weight, or of her loss, together are no more than that, in whole numbers."""
    problems = []
    if integers is None and sum(group.parts for group in groups) > _PARTS:
        problems.append("The groups of questions cost everybody more than her privacy loss")
    if integers is not None and release.grid.weight_exponent is not None:
        split = [_parts(integers, release, group) for group in groups]
        together = [sum(parts) for parts in zip(*split, strict=True)]
        if any(mine > whole for mine, whole in zip(together, integers.tolist(), strict=True)):
            problems.append("The groups of questions cost somebody more than her weight")
        if any(sum(parts) < 1 for parts in split):
            problems.append("A group of questions has no weight at all")
    sentence = "All questions together cost nobody more than her privacy loss"
    return judged("one loss for all questions", problems, sentence, groups=len(groups))


def _values(facts: Facts, release: Release, farthest: float | None = None) -> Check:
    """On the public grid, no further outside the range than noise can carry them, and shares that add up to one.

    One cell exceeds ``100`` times its standard deviation with a probability below ``1e-20``, however many cells there
    are: the tail of every group falls exponentially. Answers by coin lead no ``farthest`` than if all were alike.
    """
    problems = []
    for answer in release.answers:
        low, high = _range(answer.question)
        first, last = facts.range_of(low, high)
        error, name = answer.error, answer.question.name
        squares = error.largest_noise**2 + error.other_noise_squared
        spread = math.sqrt(squares * float(noise_of(error.cells, error.choice)))
        reach = (100.0 * spread if farthest is None else farthest) + error.rounding
        for value in answer.values:
            if not math.isfinite(value):
                problems.append(f"A value of {name!r} is not a finite number")
                continue
            base = facts.level * low
            step = round(Fraction(value - base) / Fraction(high - low) / Fraction(_GRID))
            near = [base + (high - low) * ((step + k) / (1 << 40)) for k in (-1, 0, 1)]
            if value not in near:
                problems.append(f"A value of {name!r} does not lie on the public grid")
            if not first - reach <= value <= last + reach:
                problems.append(f"A value of {name!r} lies further outside the range than the noise can carry it")
        # messages whose noise is far larger than the range are added up in floating point
        slack = len(answer.values) * (_GRID + (reach * 2.0**-50 if release.grid.weight_exponent is None else 0.0))
        if (
            isinstance(answer.question, Choice)
            and not abs(math.fsum(answer.values) - facts.level) <= slack + error.rounding
        ):
            problems.append(f"The shares of {name!r} do not add up to {facts.level:g}")
    return judged(
        "answers",
        problems,
        "The answers lie on the public grid; whether they are the ones that were drawn cannot be told without the data,"
        " only by comparing the record's hash with one published elsewhere",
        questions=len(release.answers),
    )
