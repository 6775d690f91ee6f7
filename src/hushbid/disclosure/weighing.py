"""How weights are spread over people, and the errors that follow: of one number, or of each question of a survey.

Weights are without signs and add up to 1, or in each stratum to its ``|ℓ|``; no bound depends on signs. Lengths are on
a range of width 1. Both settings and sums from engines end here: a `Weighing` is all that an error needs to know of
people.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

import numpy as np

from hushbid.common.arrays import FloatArray
from hushbid.disclosure.error import ErrorModel
from hushbid.disclosure.relation import Relation, Unevenness, bias_of
from hushbid.estimation import Strata
from hushbid.questions import Layout, NoiseGroup, Number, Question

V = TypeVar("V")


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighing:
    """How weights are spread over people, and how much noise they get."""

    squares: float
    """``Σ w²``."""

    spread: float
    """``Σ V w²`` with everybody's declared variance, in squared data units."""

    largest: float
    """``max w``."""

    noise: float
    """The largest scale of the noise terms."""

    rounding: float = 0.0
    """Bound on what the integers add."""

    uneven: Unevenness | None = None
    """How far weights are from equal, where price and datum may be related."""

    next_noise: float = 0.0
    """The second largest scale, 0 in the central setting."""

    other_noise_squared: float = 0.0
    """The sum of the squares of all scales but the largest."""

    @classmethod
    def of(
        cls,
        weights: FloatArray,
        *,
        variance: FloatArray,
        noise: FloatArray,
        rounding: float = 0.0,
        relation: Relation | None = None,
        strata: Strata,
    ) -> "Weighing":
        """Of some people's weights, with independent noise terms of these scales. Others of a relation have none."""
        ascending = np.sort(noise)
        others, squares = ascending[:-1], np.square(weights)
        return cls(
            squares=float(np.sum(squares)),
            spread=float(np.sum(variance * squares)),
            largest=float(weights.max()),
            noise=float(ascending[-1]),
            rounding=rounding,
            uneven=None if relation is None else Unevenness.under(relation, weights, strata),
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

    def error(self, width: float, relation: Relation | None) -> ErrorModel:
        """How far an estimate of one number may lie from the truth, on a range of this width."""
        return self._error(width, self.spread, relation, cells=1, choice=False)

    def question_error(self, question: Question, group: NoiseGroup, relation: Relation | None) -> ErrorModel:
        """Return how far each value of a question may lie from the truth, by its group's weighing and its relation."""
        spread = question.largest_variance * question.width**2 * self.squares
        return self._error(question.width, spread, relation, cells=group.cells, choice=group.choice)

    def _error(self, width: float, spread: float, relation: Relation | None, *, cells: int, choice: bool) -> ErrorModel:
        squared_bias, largest_bias = bias_of(relation, self.uneven, width)
        return ErrorModel(
            sampling_variance=spread,
            squared_steps=width**2 * self.squares,
            largest_step=width * self.largest,
            largest_noise=width * self.noise,
            next_noise=width * self.next_noise,
            other_noise_squared=width**2 * self.other_noise_squared,
            rounding=width * self.rounding,
            squared_bias=squared_bias,
            largest_bias=largest_bias,
            cells=cells,
            choice=choice,
        )


class Plan(Protocol):
    """What errors need to know of a plan, whether it is about everybody or about sums."""

    @property
    def width(self) -> float: ...
    @property
    def relation(self) -> Relation | None: ...
    @property
    def questions(self) -> tuple[Question, ...]: ...
    @property
    def layout(self) -> Layout: ...
    @property
    def survey(self) -> bool: ...


def question_errors(plan: Plan, weighings: Sequence[Weighing]) -> list[ErrorModel]:
    """Return the error of each question's values, in the order of the questions, from one weighing for each group.

    A number that is no survey's has the variance that the plan declares, which each person may have of their own.
    """
    if not plan.survey:
        return [weighing.error(plan.width, plan.relation) for weighing in weighings]
    found: dict[int, ErrorModel] = {}
    for group, weighing in zip(plan.layout.groups, weighings, strict=True):
        for row in group.rows:
            question = plan.questions[row]
            found[row] = weighing.question_error(question, group, relation_of(plan, question))
    return [found[row] for row in range(len(plan.questions))]


def expected_errors(plan: Plan, whole: Weighing) -> list[ErrorModel]:
    """Return the same where each group has its share of a weighing whose noise is that of all of everybody's loss."""
    return question_errors(plan, [whole.share(group) for group in plan.layout.groups])


def relation_of(plan: Plan, question: Question) -> Relation | None:
    """Return the relation of price and one question's answers: as large a part of their variance as of the plan's."""
    if plan.relation is None or not plan.survey:
        return plan.relation
    part = plan.relation.spread / plan.layout.variance
    return replace(plan.relation, spread=part * question.largest_variance * question.width**2)


def in_order(groups: Sequence[NoiseGroup], values: Sequence[Sequence[V]]) -> list[Sequence[V]]:
    """Values by group and cell as values by question, in the questions' order."""
    found: dict[int, Sequence[V]] = {}
    for group, cells in zip(groups, values, strict=True):
        for place, row in enumerate(group.rows):
            found[row] = cells if group.choice else cells[place : place + 1]
    return [found[row] for row in sorted(found)]


def side_by_side(groups: Sequence[NoiseGroup], values: Sequence[Sequence[V]]) -> list[V]:
    """Values by group and cell as one list, in the questions' order."""
    return [value for by_question in in_order(groups, values) for value in by_question]


def bounds_of(question: Question) -> tuple[float, float]:
    """The public range of an answer."""
    return question.bounds if isinstance(question, Number) else (0.0, 1.0)


def cell_bounds(group: NoiseGroup, questions: Sequence[Question]) -> list[tuple[float, float]]:
    """The range of each cell of a group."""
    owners = group.rows * group.cells if group.choice else group.rows
    return [bounds_of(questions[row]) for row in owners]
