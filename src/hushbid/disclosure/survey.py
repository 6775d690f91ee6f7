"""A survey in the central setting: all answers of everybody in exact integers, one noise for each group of questions.

Person i's loss ``ε_i`` has the integer weight ``W_i = floor(ε_i·2**t)`` of `hushbid.disclosure.grid`. Of it each group
g of questions has its part, in units of ``2**−30``:

    W_ig = floor(W_i·parts_g / 2**30),        Σ_g parts_g = 2**30,        so  Σ_g W_ig ≤ W_i ≤ ε_i·2**t.

In a box the sum of question j is ``floor(Σ W_ig·X_ij / 2**40)``, as for one number; of a choice, the sum of each answer
is ``Σ W_ig`` over those who gave it. Other answers of hers move the sums of a box by at most ``W_ig`` each, and from
one answer of a choice to another by ``W_ig``. The group's noise has the scale ``2**t``, so she loses ``W_ig/2**t`` in
it, and at most ``ε_i`` in all groups together. Dividing by ``Σ_i W_ig`` comes after the noise. Where stratum means are
combined, the sums of strata become one in each group as `hushbid.disclosure.contrast` says.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np

from hushbid.arrays import BoolArray, FloatArray, IntArray
from hushbid.disclosure import central, noise
from hushbid.disclosure.contrast import Blend, Combined, blend_of, rows_of, shares_of
from hushbid.disclosure.error import ErrorModel
from hushbid.disclosure.grid import (
    DATA_BITS,
    ESTIMATE_BITS,
    PromiseCheck,
    check_promises,
    exact_sum,
    ratio_in_data_units,
    to_grid,
)
from hushbid.disclosure.promises import ReleasePlan
from hushbid.disclosure.relation import NO_BIAS, Relation, Unevenness, bias_of
from hushbid.disclosure.release import QuestionAnswer
from hushbid.errors import InputError, ReleaseError
from hushbid.estimation import Strata
from hushbid.questions import PARTS, Layout, NoiseGroup, Number, Question

V = TypeVar("V")
_HALF = 30
_NONE = np.empty(0)
LEAST_EXPONENT = 16
"""With a smaller t the noise would be finer than the integers that several questions need."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighing:
    """How a group's weights, which add up to 1, are spread over people: all that the errors of its questions need.

    Where stratum means are combined, weights are without signs, and those of each stratum add up to its ``|ℓ|``."""

    squares: float
    """``Σ w²``."""

    largest: float
    """``max w``."""

    uneven: Unevenness | None
    """How far they are from equal, where price and datum may be related."""

    noise: float
    """The largest scale of the group's noise terms on a range of width 1."""

    rounding: float
    """Bound on what the integers add, on a range of width 1."""

    next_noise: float = 0.0
    """The second largest scale, 0 in the central setting."""

    other_noise_squared: float = 0.0
    """The sum of the squares of all scales but the largest."""

    @classmethod
    def of(
        cls,
        weights: FloatArray,
        *,
        noise: float,
        rounding: float,
        relation: Relation | None,
        strata: Strata | None = None,
        others: FloatArray = _NONE,
    ) -> "Weighing":
        """Of some people's weights; the scales of noise terms beside the largest one are in ascending order."""
        return cls(
            squares=float(np.sum(np.square(weights))),
            largest=float(weights.max()),
            uneven=None if relation is None else Unevenness.under(relation, weights, strata),
            noise=noise,
            rounding=rounding,
            next_noise=float(others[-1]) if others.size else 0.0,
            other_noise_squared=float(np.sum(np.square(others))),
        )

    def share(self, group: NoiseGroup) -> "Weighing":
        """What a group has of a weighing whose noise is that of all of everybody's loss."""
        part = group.share
        return replace(
            self,
            noise=self.noise / part,
            next_noise=self.next_noise / part,
            other_noise_squared=self.other_noise_squared / part**2,
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GroupSum:
    """One group's integer weights, ready for answers and noise."""

    group: NoiseGroup
    """Which questions share the noise."""

    weights: IntArray = field(repr=False)
    """``W_ig`` for everybody, 0 for those who did not deliver."""

    strata: Strata | None
    """Which combination of stratum means is estimated."""

    blend: Blend
    """How the sums of strata become one."""

    @property
    def total_weight(self) -> int:
        """``Σ_i W_ig``, positive."""
        return int(self.weights.sum())

    def totals(self, table: FloatArray, questions: Sequence[Question]) -> list[int]:
        """The exact sums of the group's cells, strata in proportion. Only the rows with a weight are read."""
        used = self.weights > 0
        weights, rows = self.weights[used], table[used]
        strata = rows_of(None if self.strata is None else self.strata.of(used))
        if self.group.choice:
            codes = rows[:, self.group.rows[0]].astype(np.int64)
            return self.blend.floors([answer_sums(weights[some], codes[some], self.group.cells) for some in strata])
        grids = [to_grid(rows[:, row], bounds_of(questions[row])) for row in self.group.rows]
        sums = [[exact_sum(weights[some], steps[some]) for some in strata] for steps in grids]
        return [self.blend.floor(one, DATA_BITS) for one in sums]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SurveySum:
    """A survey's integer weights for those who delivered, checked against every promise."""

    plan: ReleasePlan
    """The promises."""

    layout: Layout
    """How the questions share everybody's loss."""

    summed: central.Sum
    """Everybody's weight before it is split over the groups."""

    groups: tuple[GroupSum, ...]
    """The split, in the layout's order."""

    check: PromiseCheck
    """That all promises are kept by the groups together."""

    def totals(self, table: FloatArray) -> list[list[int]]:
        """The exact sums of every group's cells."""
        return [one.totals(table, self.plan.questions) for one in self.groups]

    def draw(self, many: Sequence[Sequence[Sequence[int]]]) -> list[list[list[float]]]:
        """Of each of many releases: the sums with noise of its own as values in data units, by group and cell."""
        exponent = self.summed.exponent
        by_group = []
        for place, one in enumerate(self.groups):
            noisy = drawn(one.group, [totals[place] for totals in many], exponent)
            by_group.append([values_of(one.group, row, one.blend, self.plan.questions) for row in noisy])
        return [list(found) for found in zip(*by_group, strict=True)]

    def answers(self, values: Sequence[Sequence[float]]) -> tuple[QuestionAnswer, ...]:
        """What was found, in the order of the questions, each with its errors."""
        plan, weighings = self.plan, [self._weighing(one) for one in self.groups]
        errors = errors_of(plan.questions, self.layout, plan.relation, weighings)
        return answers_of(plan.questions, self.layout, values, errors, planned_errors(plan), plan.combined)

    def _weighing(self, one: GroupSum) -> Weighing:
        return Weighing.of(
            shares_of(one.weights, one.strata),
            noise=self.summed.noise_scale * one.blend.step,
            rounding=rounding_of(one.group, one.blend),
            relation=self.plan.relation,
            strata=self.plan.strata,
        )


def weigh(plan: ReleasePlan, present: BoolArray) -> SurveySum:
    """Weights over those present as for one number, split over the groups; promises are checked on the sum of these."""
    layout = layout_of_plan(plan)
    summed = central.weigh(plan, present)
    exponent, check = summed.exponent, summed.check
    if exponent is None:  # no noise, nothing to share
        split = [summed.weights for _ in layout.groups]
    else:
        if exponent < LEAST_EXPONENT:
            raise too_large_to_share()
        split = [part_of(summed.weights, group.parts) for group in layout.groups]
        # whichever is more, what is stated or what the groups cost together
        check = check_promises(np.maximum(summed.weights, np.sum(split, axis=0)), exponent, plan.promised)
    if not all(weights[rows].any() for weights in split for rows in rows_of(plan.strata)):
        raise too_small_to_share()
    groups = tuple(
        GroupSum(group=group, weights=weights, strata=plan.strata, blend=blend_of(weights, plan.strata))
        for group, weights in zip(layout.groups, split, strict=True)
    )
    return SurveySum(plan=plan, layout=layout, summed=summed, groups=groups, check=check)


def too_large_to_share() -> ReleaseError:
    """The refusal of losses that leave less noise than the integers can hold."""
    return ReleaseError("The privacy losses of a survey must be infinite, or add up to at most 2**43.")


def too_small_to_share() -> ReleaseError:
    """The refusal of losses of which some questions would get nothing."""
    return ReleaseError(
        "The privacy losses of those who delivered are too small to share among the questions: nothing can be released."
    )


def layout_of_plan(plan: ReleasePlan) -> Layout:
    """How the questions of a survey's plan share everybody's loss."""
    if plan.layout is None:
        raise InputError("The plan is about one number, not about a survey's questions.", field="questions")
    return plan.layout


def part_of(weights: IntArray, parts: int) -> IntArray:
    """``floor(W·parts/2**30)`` exactly, in two halves that fit in 64 bits."""
    low = weights & (PARTS - 1)
    return np.asarray((weights >> _HALF) * parts + ((low * parts) >> _HALF))


def drawn(group: NoiseGroup, totals: Sequence[Sequence[int]], exponent: int | None) -> Sequence[Sequence[int]]:
    """Every vector of a group's sums plus the group's noise; without an exponent there is none."""
    if exponent is None:
        return totals
    draw = noise.draw_choices if group.choice else noise.draw_boxes
    return draw(totals, scale=math.ldexp(1.0, exponent))


def answer_sums(weights: IntArray, codes: IntArray, answers: int) -> list[int]:
    """What those who gave each answer of a choice weigh together."""
    return [int(weights[codes == answer].sum()) for answer in range(answers)]


def values_of(group: NoiseGroup, noisy: Sequence[int], blend: Blend, questions: Sequence[Question]) -> list[float]:
    """A group's noisy sums as values in data units."""
    owners = group.rows * group.cells if group.choice else group.rows
    above, below = blend.total.as_integer_ratio()
    return [
        ratio_in_data_units(cell * below, above, bounds_of(questions[row]), blend.level)
        for cell, row in zip(noisy, owners, strict=True)
    ]


def bounds_of(question: Question) -> tuple[float, float]:
    """The public range of an answer."""
    return question.bounds if isinstance(question, Number) else (0.0, 1.0)


def rounding_of(group: NoiseGroup, blend: Blend) -> float:
    """Bound on what the integers add to a value on a range of width 1."""
    # a choice's last answer is off by what all others are, where strata are brought into proportion
    more = group.cells if group.choice and len(blend.factors) > 1 else 0
    return blend.size * 2.0**-DATA_BITS + 2.0**-ESTIMATE_BITS + (2.0 + more) * blend.step


# -- errors ------------------------------------------------------------------------------------------------------------


def planned_errors(plan: ReleasePlan) -> list[ErrorModel]:
    """How far each question's values may lie from the truth if everybody delivers; from the plan alone."""
    layout = layout_of_plan(plan)
    weights, scale = central.planned_weights(plan)
    whole = Weighing.of(weights, noise=scale, rounding=0.0, relation=plan.relation, strata=plan.strata)
    return errors_of(plan.questions, layout, plan.relation, [whole.share(group) for group in layout.groups])


def errors_of(
    questions: Sequence[Question], layout: Layout, relation: Relation | None, weighings: Sequence[Weighing]
) -> list[ErrorModel]:
    """The error of each question's values, in the order of the questions; one weighing for each group."""
    found: dict[int, ErrorModel] = {}
    for group, weighing in zip(layout.groups, weighings, strict=True):
        for row in group.rows:
            found[row] = _error(questions[row], group, weighing, _relation_of(questions[row], layout, relation))
    return [found[row] for row in range(len(questions))]


def answers_of(
    questions: Sequence[Question],
    layout: Layout,
    values: Sequence[Sequence[float]],
    errors: Sequence[ErrorModel],
    planned: Sequence[ErrorModel],
    strata: Combined | None = None,
) -> tuple[QuestionAnswer, ...]:
    """Values by group and cell as answers in the order of the questions."""
    return tuple(
        QuestionAnswer(question=question, error=error, planned_error=expected, values=tuple(found), strata=strata)
        for question, error, expected, found in zip(questions, errors, planned, in_order(layout, values), strict=True)
    )


def in_order(layout: Layout, values: Sequence[Sequence[V]]) -> list[Sequence[V]]:
    """Values by group and cell as values by question, in the questions' order."""
    found: dict[int, Sequence[V]] = {}
    for group, cells in zip(layout.groups, values, strict=True):
        for place, row in enumerate(group.rows):
            found[row] = cells if group.choice else cells[place : place + 1]
    return [found[row] for row in sorted(found)]


def _relation_of(question: Question, layout: Layout, relation: Relation | None) -> Relation | None:
    """The relation of price and one question's answers: of its variance as large a part as of the layout's."""
    if relation is None:
        return None
    part = relation.spread / layout.variance
    return replace(relation, spread=part * question.largest_variance * question.width**2)


def _error(question: Question, group: NoiseGroup, weighing: Weighing, relation: Relation | None) -> ErrorModel:
    width, bias = question.width, NO_BIAS
    if relation is not None and weighing.uneven is not None:
        bias = bias_of(relation, weighing.uneven, width)
    return ErrorModel(
        sampling_variance=question.largest_variance * width**2 * weighing.squares,
        squared_steps=width**2 * weighing.squares,
        largest_step=width * weighing.largest,
        largest_noise=width * weighing.noise,
        next_noise=width * weighing.next_noise,
        other_noise_squared=width**2 * weighing.other_noise_squared,
        rounding=width * weighing.rounding,
        squared_bias=bias.squared,
        largest_bias=bias.largest,
        cells=group.cells,
        choice=group.choice,
    )
