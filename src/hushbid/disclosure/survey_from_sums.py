"""A survey in the central setting from sums that somebody else added up, batch by batch, wherever the answers are.

As `hushbid.disclosure.preparing_from_sums` for one number, with the integers of `hushbid.disclosure.survey`: of each
group of questions its total weight ``Σ W_ig``, and of each of its cells the weighted sum of the answers. The noise is
drawn once, here, after everything is added up.

    plan = SummedSurvey(people=SummedPlan(bounds=(0.0, layout.width), ...), questions=questions, layout=layout)
    sums = sum((SurveySums.of(losses, table, plan) for losses, table in batches), SurveySums.none(plan))
    release = prepare_summed_survey(plan, sums)(key)
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from hushbid.arrays import FloatArray
from hushbid.disclosure.contrast import Blend
from hushbid.disclosure.error import ErrorModel
from hushbid.disclosure.grid import DATA_BITS, exact_sum, to_grid
from hushbid.disclosure.preparing_from_sums import (
    Above,
    SummedPlan,
    Sums,
    errors_of_sums,
    exact_total,
    facts_of,
    refuse_unreleasable_sums,
    squared_unit,
    unevenness,
)
from hushbid.disclosure.release import Release
from hushbid.disclosure.survey import (
    LEAST_EXPONENT,
    Weighing,
    answers_of,
    bounds_of,
    drawn,
    errors_of,
    part_of,
    rounding_of,
    too_large_to_share,
    too_small_to_share,
    values_of,
)
from hushbid.errors import ReleaseError
from hushbid.questions import Layout, Number, Question


@dataclass(frozen=True, slots=True, kw_only=True)
class SummedSurvey:
    """A survey's promise to everybody, of whom only figures about all are known."""

    people: SummedPlan
    """The promise, as for one number on the range ``(0, layout.width)`` with the layout's variance."""

    questions: tuple[Question, ...]
    """What is asked."""

    layout: Layout
    """How the questions share everybody's loss."""

    def planned_errors(self, above: Above | None = None) -> list[ErrorModel]:
        """How far each question's values may lie from the truth if everybody delivers."""
        plan = self.people
        heavy = None if above is None else above.planned
        whole = Weighing(
            squares=plan.squared_weights,
            largest=plan.largest_loss / plan.total_loss,
            uneven=unevenness(plan, Fraction(plan.squared_weights), heavy, plan.total_weight),
            noise=1.0 / plan.total_loss,
            rounding=0.0,
        )
        shares = [whole.share(group) for group in self.layout.groups]
        return errors_of(self.questions, self.layout, plan.relation, shares)


@dataclass(frozen=True, slots=True, kw_only=True)
class SurveySums:
    """Exact integer sums over everybody who answered all questions."""

    people: Sums
    """Of everybody's weights before they are split, and how many people these are."""

    weights: tuple[int, ...]
    """``Σ W_ig`` of each group."""

    cells: tuple[tuple[int, ...], ...]
    """Of each group's cells ``Σ W_ig·X_ij``, or of a choice ``Σ W_ig`` over those who gave the answer."""

    @classmethod
    def none(cls, plan: SummedSurvey) -> "SurveySums":
        """Of nobody."""
        groups = plan.layout.groups
        return cls(people=Sums(), weights=(0,) * len(groups), cells=tuple((0,) * group.cells for group in groups))

    def __add__(self, other: "SurveySums") -> "SurveySums":
        """Both populations together."""
        return SurveySums(
            people=self.people + other.people,
            weights=tuple(map(sum, zip(self.weights, other.weights, strict=True))),
            cells=tuple(
                tuple(map(sum, zip(mine, theirs, strict=True)))
                for mine, theirs in zip(self.cells, other.cells, strict=True)
            ),
        )

    @classmethod
    def of(cls, losses: FloatArray, table: FloatArray, plan: SummedSurvey) -> "SurveySums":
        """Of some people: their promised losses, and their answers as `hushbid.disclosure.answers` writes them."""
        open_ = np.isnan(table).any(axis=1)
        people = Sums.of(losses, np.where(open_, np.nan, 0.0), None, plan.people)
        used = (losses > 0.0) & ~open_
        rows = table[used]
        whole = np.floor(np.ldexp(losses[used], plan.people.exponent)).astype(np.int64)
        split = [part_of(whole, group.parts) for group in plan.layout.groups]
        if (np.sum(split, axis=0) > whole).any():
            raise ReleaseError("The noise would not keep a promise; nothing was drawn.")
        cells = []
        for group, weights in zip(plan.layout.groups, split, strict=True):
            if group.choice:
                codes = rows[:, group.rows[0]]
                cells.append(tuple(exact_total(weights[codes == answer]) for answer in range(group.cells)))
            else:
                ranges = [bounds_of(plan.questions[row]) for row in group.rows]
                grids = [to_grid(rows[:, row], one) for row, one in zip(group.rows, ranges, strict=True)]
                cells.append(tuple(exact_sum(weights, steps) for steps in grids))
        return cls(
            people=replace(people, clamped=_clamped(rows, plan.questions)),
            weights=tuple(exact_total(weights) for weights in split),
            cells=tuple(cells),
        )


def prepare_summed_survey(plan: SummedSurvey, sums: SurveySums, above: Above | None = None) -> Callable[[str], Release]:
    """Check everything; what is returned only has to draw, under a key. Under a relation ``above`` is needed."""
    people, exponent = sums.people, plan.people.exponent
    refuse_unreleasable_sums(plan.people, people)
    refuse_unsharable(plan, sums)
    groups, uneven = plan.layout.groups, None
    squares = people.squares * squared_unit(plan.people, people)
    if above is not None:
        uneven = unevenness(plan.people, squares, above.delivered, Fraction(people.weight))
    weighings = [
        Weighing(
            squares=float(squares),
            largest=people.heaviest / people.weight,
            uneven=uneven,
            noise=2.0**exponent / total,
            rounding=rounding_of(group, Blend.of([total], [1.0])),
        )
        for group, total in zip(groups, sums.weights, strict=True)
    ]
    errors = errors_of(plan.questions, plan.layout, plan.people.relation, weighings)
    whole = errors_of_sums(plan.people, people, above)

    def draw(key: str) -> Release:
        values = []
        for group, total, cells in zip(groups, sums.weights, sums.cells, strict=True):
            # shortened before the noise: her answers still move a cell by at most W_ig
            totals = cells if group.choice else [cell >> DATA_BITS for cell in cells]
            [noisy] = drawn(group, [totals], exponent)
            values.append(values_of(group, noisy, Blend.of([total], [1.0]), plan.questions))
        answers = answers_of(plan.questions, plan.layout, values, errors, plan.planned_errors(above))
        return Release(answers=answers, key=key, **facts_of(plan.people, people, *whole))

    return draw


def refuse_unsharable(plan: SummedSurvey, sums: SurveySums) -> None:
    """Losses must leave noise that the integers can hold, and something for every group of questions."""
    if plan.people.exponent < LEAST_EXPONENT:
        raise too_large_to_share()
    if 0 in sums.weights:
        raise too_small_to_share()


def _clamped(rows: FloatArray, questions: tuple[Question, ...]) -> int:
    """How many numbers lie outside their range."""
    found = 0
    for place, question in enumerate(questions):
        if isinstance(question, Number):
            low, high = question.bounds
            found += int(np.count_nonzero((rows[:, place] < low) | (rows[:, place] > high)))
    return found
