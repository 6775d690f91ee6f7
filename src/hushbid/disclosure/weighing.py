"""How weights are spread over people, and the errors that follow: of one number, or of each question of a survey.

Weights are without signs and add up to 1, or in each stratum to its ``|ℓ|``; no bound depends on signs. Lengths are on
a range of width 1. Both settings and sums from engines end here: a `Weighing` is all that an error needs to know of
people.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

import numpy as np

from hushbid.common.arrays import FloatArray
from hushbid.disclosure.error import ErrorModel
from hushbid.disclosure.messages import Kind, message_kind
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is asked of everybody: a survey's questions, or one number as a survey of one question."""

    bounds: tuple[float, float]
    """The public range of the data, chosen without looking at them; of a survey, as wide as `Layout.width` says."""

    questions: tuple[Question, ...]
    """What is asked; one number in ``bounds`` is one question."""

    layout: Layout
    """How the questions share everybody's loss."""

    survey: bool = False
    """Whether answers to the questions are published; if not, one estimate."""

    relation: Relation | None = None
    """How closely price and datum may be related, among how many people; None: not at all. Of a survey, the spread is
    as large compared with each question's own variance as with the layout's."""

    @property
    def as_fields(self) -> dict[str, Any]:
        """These fields by name, for a plan that has more."""
        return {one.name: getattr(self, one.name) for one in fields(Asked)}

    @property
    def terms(self) -> list[str]:
        """A survey's questions and how they share everybody's loss, as texts that distinguish surveys; else empty."""
        if not self.survey:
            return []
        shares = [[*group.rows, group.parts] for group in self.layout.groups]
        return [json.dumps([one.to_dict() for one in self.questions]), json.dumps(shares)]

    @property
    def width(self) -> float:
        """Width of the public range."""
        return self.bounds[1] - self.bounds[0]

    @property
    def kind(self) -> Kind:
        """What devices send in the local setting."""
        return message_kind(self.questions if self.survey else ())


def question_errors(asked: Asked, weighings: Sequence[Weighing]) -> list[ErrorModel]:
    """Return the error of each question's values, in the order of the questions, from one weighing for each group.

    A number that is no survey's has the variance that the plan declares, which each person may have of their own.
    """
    if not asked.survey:
        return [weighing.error(asked.width, asked.relation) for weighing in weighings]
    found: dict[int, ErrorModel] = {}
    for group, weighing in zip(asked.layout.groups, weighings, strict=True):
        for row in group.rows:
            question = asked.questions[row]
            found[row] = weighing.question_error(question, group, relation_of(asked, question))
    return [found[row] for row in range(len(asked.questions))]


def expected_errors(asked: Asked, whole: Weighing) -> list[ErrorModel]:
    """Return the same where each group has its share of a weighing whose noise is that of all of everybody's loss."""
    return question_errors(asked, [whole.share(group) for group in asked.layout.groups])


def relation_of(asked: Asked, question: Question) -> Relation | None:
    """Return the relation of price and one question's answers: as large a part of their variance as of the plan's."""
    if asked.relation is None or not asked.survey:
        return asked.relation
    part = asked.relation.spread / asked.layout.variance
    return replace(asked.relation, spread=part * question.largest_variance * question.width**2)


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
