"""Checks of a survey: the one number it is bought as has the width and variance that its questions come to.

Everything from the questions as they are written, in fractions where that is possible. A group of d numbers or yes/no
questions has noise ``r·U``, U uniform on the cube and r of a gamma distribution with ``E r² = (d+1)(d+2)``; so a cell's
mean square is ``(d+1)(d+2)/3``. A choice among d answers has k positive cells with weight ``C(d,k)/((k−1)!(d−k−1)!)``;
their sum m has ``E m² = (d−1)d``, and cells share m and −m evenly over two simplices. Where there are few questions,
every way to group them is tried.
"""

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction

from hushbid.allocation.goals import Accuracy, Price
from hushbid.questions import Choice, Layout, Number, Question
from hushbid.verification.findings import Check, distance, judged
from hushbid.verification.stated_numbers import CLOSE, Facts

_PARTS = 2**30
_FEW = 7
"""Up to so many questions in boxes every way to group them is tried: 877 for seven."""

_ROUNDED = 1e-7
"""By this part the width may exceed the best one, as parts are whole numbers."""


def question_checks(facts: Facts) -> Iterator[Check]:
    """Everything about the questions, where there are any."""
    questions, layout = facts.market.survey, facts.market.layout
    if questions is None or layout is None:
        return
    stated = facts.market.stated_goal
    targets = stated.targets if isinstance(stated, Accuracy) else None
    weights = [_weight(one, None if targets is None else targets[row]) for row, one in enumerate(questions)]
    problems = [*_groups(questions, layout), *_goal(facts, weights)]
    if not problems:
        problems += _numbers(facts, questions, layout, weights, summed=targets is None)
    yield judged(
        "questions",
        problems,
        "The survey is bought as the one number that its questions come to",
        questions=len(questions),
        width=layout.width,
    )
    if not problems:
        yield _grouping(questions, layout, weights, summed=targets is None)


def _weight(question: Question, target: float | None) -> Fraction:
    """What a squared error of the question counts on a range of width 1."""
    if target is None:
        return Fraction(question.importance)
    return (Fraction(_width(question)) / Fraction(target)) ** 2


def _width(question: Question) -> float:
    return question.bounds[1] - question.bounds[0] if isinstance(question, Number) else 1.0


def _variance(question: Question, *, mean: bool) -> Fraction:
    """On a range of width 1; of a choice, the mean over cells or the most that a cell can have."""
    if isinstance(question, Number) and question.variance is not None:
        return Fraction(question.variance) / Fraction(_width(question)) ** 2
    if isinstance(question, Choice) and mean:
        return Fraction(len(question.answers) - 1, len(question.answers) ** 2)
    return Fraction(1, 4)


def noise_of(cells: int, choice: bool) -> Fraction:
    """The mean square of one cell of a group's noise, at a total loss of 1 that is the group's alone."""
    if not choice:
        return Fraction((cells + 1) * (cells + 2), 3)
    total, summed = Fraction(0), Fraction(0)
    for positive in range(1, cells):
        negative = cells - positive
        weight = Fraction(math.comb(cells, positive), math.factorial(positive - 1) * math.factorial(negative - 1))
        # the square of one of k even parts of 1 is 2/(k(k+1)) on average, and there are k of them
        squares = Fraction(2, positive + 1) + Fraction(2, negative + 1)
        total, summed = total + weight, summed + weight * squares
    return (cells - 1) * cells * summed / total / cells


def _groups(questions: Sequence[Question], layout: Layout) -> list[str]:
    """Every question in one group, choices alone, and parts that are everybody's whole loss."""
    problems = []
    if sorted(row for group in layout.groups for row in group.rows) != list(range(len(questions))):
        problems.append("Not every question is in exactly one group")
        return problems
    for group in layout.groups:
        members = [questions[row] for row in group.rows]
        choices = [one for one in members if isinstance(one, Choice)]
        cells = len(choices[0].answers) if choices else len(members)
        if (choices and len(members) > 1) or group.choice != bool(choices) or group.cells != cells:
            problems.append("A group has another shape than its questions")
    if any(group.parts < 1 for group in layout.groups) or sum(group.parts for group in layout.groups) != _PARTS:
        problems.append("The groups' parts of a loss do not add up to the whole loss")
    return problems


def _goal(facts: Facts, weights: Sequence[Fraction]) -> list[str]:
    """The goal of the one number is what was stated."""
    stated, found = facts.market.stated_goal, facts.population.stated
    if isinstance(stated, Price):
        expected = float(Fraction(stated.buyer_weight) * sum(weights))
        fits = isinstance(found, Price) and float(distance(found.buyer_weight, expected)) <= CLOSE
    else:
        fits = found == (Accuracy(1.0) if isinstance(stated, Accuracy) else stated)
    return [] if fits else ["The purchase has another goal than was stated for the questions"]


def _numbers(
    facts: Facts, questions: Sequence[Question], layout: Layout, weights: Sequence[Fraction], *, summed: bool
) -> list[str]:
    """Width and variance from the parts as they are."""
    squares, spreads = [], []
    for row, one in enumerate(questions):
        group = next(group for group in layout.groups if row in group.rows)
        share = Fraction(group.parts, _PARTS)
        squares.append(weights[row] * noise_of(group.cells, group.choice) / 2 / share**2)
        spreads.append(weights[row] * _variance(one, mean=summed))
    total = sum(weights) if summed else Fraction(1)
    width = math.sqrt(sum(squares) / total if summed else max(squares))
    variance = float(sum(spreads) / total if summed else max(spreads))
    gaps = {
        "width": max(float(distance(facts.market.width, width)), float(distance(facts.population.width, width))),
        "variance": float(distance(float(facts.own[0]) * width**2, variance)),
    }
    return [f"The {name} does not follow from the questions" for name, gap in gaps.items() if not gap <= CLOSE]


def _grouping(questions: Sequence[Question], layout: Layout, weights: Sequence[Fraction], *, summed: bool) -> Check:
    """No other way to group the questions, with the best parts for it, has a smaller width."""
    boxed = [row for row, one in enumerate(questions) if not isinstance(one, Choice)]
    power = 1.0 / 3.0 if summed else 0.5

    def root(rows: Sequence[int]) -> float:
        first = questions[rows[0]]
        cells = len(first.answers) if isinstance(first, Choice) else len(rows)
        noise = noise_of(cells, isinstance(first, Choice)) / 2
        inside = [weights[row] for row in rows]
        return math.pow((sum(inside) if summed else max(inside)) * noise, power)

    alone = math.fsum(root([row]) for row, one in enumerate(questions) if isinstance(one, Choice))
    ways = list(_partitions(boxed)) if len(boxed) <= _FEW else [[boxed], [[row] for row in boxed]]
    best = min(alone + math.fsum(root(rows) for rows in way) for way in ways)
    total = float(sum(weights)) if summed else 1.0
    least = math.sqrt(best ** (1.0 / power) / total)
    problems = [] if layout.width <= least * (1.0 + _ROUNDED) else ["Another grouping of the questions is better"]
    told = "No other grouping is better" if len(boxed) <= _FEW else "Neither one group nor single questions are better"
    return judged("grouping", problems, told, groupings=len(ways), least_width=least)


def _partitions(rows: Sequence[int]) -> Iterator[list[list[int]]]:
    """Every way to put rows into groups."""
    if not rows:
        yield []
        return
    for rest in _partitions(rows[1:]):
        yield [[rows[0]], *rest]
        for place, group in enumerate(rest):
            yield [*rest[:place], [rows[0], *group], *rest[place + 1 :]]
