"""The questions of a survey, and how one privacy loss pays for all of their answers.

Person i answers every question: a number in a public range, yes or no, or one of a few answers. Her answers are one
vector, she loses one ``ε_i``, and one noise is added to the weighted sum of everybody's vectors. The noise of a group
of questions has density ``∝ exp(−S·‖z‖)``; the norm's unit ball holds every difference of two people's answers:

- *a box*, for d numbers or yes/no questions, each on a range of width 1: ``E z_j² = (d+1)(d+2)/(3S²)``, up to six times
  less than if the loss were split over the questions;
- *a choice* among d answers, each a cell that holds 1 or 0: ``E z_a² = (d−1)·E_b/S²`` for every cell, see `_cells`.

Several groups share a person's loss in fixed parts, group g's part being ``s_g``. Then the error, weighed over
questions by importance and relative to each one's range, is that of **one number on a range of another width**:

    Σ_j p_j·MSE_j/R_j² = Σp·(2·width²/S² + variance·Σw²),

so whoever prices, pays, plans or caps needs only `Layout.width` and `Layout.variance`. Which questions share a box is
chosen so that the width is smallest: neighbours in importance.

Where a standard error is wanted for each question, the same market with error 1 keeps them all: its width and variance
are the largest that any question has relative to its own target.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from hushbid.common.arrays import as_bounds, as_number, varies_too_much
from hushbid.errors import InputError

PARTS = 1 << 30
"""A group's part of every loss is a whole number of these: so parts add up exactly, in integers."""

MOST_QUESTIONS = 200
MOST_ANSWERS = 100
LONGEST_NAME = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Question(ABC):
    """What is asked of everybody."""

    name: str
    """How the question is called: in files the column of its answers."""

    importance: float = 1.0
    """How much an error of this question counts beside the others', each relative to its range; positive."""

    kind: ClassVar[str]
    """What it is called in records."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", _as_name(self.name, "name"))
        importance = as_number(self.importance, "importance")
        if not 1e-6 <= importance <= 1e6:
            raise InputError(f"importance must be between 1e-6 and 1e6, got {importance:g}.", field="importance")
        object.__setattr__(self, "importance", importance)

    @property
    @abstractmethod
    def width(self) -> float:
        """The width of the range of an answer, in its unit."""

    @property
    @abstractmethod
    def relative_variance(self) -> float:
        """The variance of an answer around the mean on a range of width 1; of a choice, the mean over its cells."""

    @property
    def largest_variance(self) -> float:
        """The same of the cell that varies most."""
        return self.relative_variance

    def to_dict(self) -> dict[str, Any]:
        """The question as plain values that `question_from_dict` reads back."""
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        return {"kind": self.kind} | {name: list(v) if isinstance(v, tuple) else v for name, v in values.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Number(Question):
    """A number in a public range.

    >>> Number(name="hours of sleep", bounds=(0, 12), unit="h").relative_variance
    0.25
    """

    bounds: tuple[float, float]
    """The public range, chosen without looking at anybody's answer; answers outside count as its nearer end."""

    variance: float | None = None
    """Of the answers around their mean; None is the largest that the range allows."""

    unit: str = ""
    """What the number is counted in, for people to read."""

    kind: ClassVar[str] = "number"

    def __post_init__(self) -> None:
        super(Number, self).__post_init__()
        object.__setattr__(self, "bounds", as_bounds(self.bounds))
        if not isinstance(self.unit, str) or len(self.unit) > LONGEST_NAME or not self.unit.isprintable():
            raise InputError(f"unit must be a short text of printable characters, got {self.unit!r}.", field="unit")
        if self.variance is None:
            return
        variance = as_number(self.variance, "variance")
        if not 0.0 < variance < math.inf or varies_too_much(variance, self.bounds):
            most = self.width**2 / 4.0
            raise InputError(
                f"variance must be positive and at most {most:g}, a quarter of the squared width of the range,"
                f" got {variance:g}.",
                field="variance",
            )
        object.__setattr__(self, "variance", variance)

    @property
    def width(self) -> float:
        return self.bounds[1] - self.bounds[0]

    @property
    def relative_variance(self) -> float:
        return 0.25 if self.variance is None else self.variance / self.width**2


@dataclass(frozen=True, slots=True, kw_only=True)
class YesNo(Question):
    """A question to answer yes (1) or no (0); what is estimated is the share of yes."""

    kind: ClassVar[str] = "yes_no"

    @property
    def width(self) -> float:
        return 1.0

    @property
    def relative_variance(self) -> float:
        return 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice(Question):
    """One of several answers; what is estimated is the share of each.

    >>> Choice(name="party", answers=("left", "right", "no answer")).answers
    ('left', 'right', 'no answer')
    """

    answers: tuple[str, ...]
    """What one may answer, at least two; "no answer" may be one of them."""

    kind: ClassVar[str] = "choice"

    def __post_init__(self) -> None:
        super(Choice, self).__post_init__()
        if isinstance(self.answers, (str, Mapping)) or not isinstance(self.answers, Iterable):
            raise InputError("answers must be a list of texts.", field="answers")
        answers = tuple(_as_name(answer, "answers") for answer in self.answers)
        if not 2 <= len(answers) <= MOST_ANSWERS or len(set(answers)) < len(answers):
            raise InputError(
                f"answers must be 2 to {MOST_ANSWERS} texts, all different, got {len(answers)}.", field="answers"
            )
        object.__setattr__(self, "answers", answers)

    @property
    def width(self) -> float:
        return 1.0

    @property
    def relative_variance(self) -> float:
        return (1.0 - 1.0 / len(self.answers)) / len(self.answers)

    @property
    def largest_variance(self) -> float:
        return 0.25


QUESTIONS: dict[str, type[Question]] = {one.kind: one for one in (Number, YesNo, Choice)}
"""The kinds of questions by the names they have in records and campaign files."""


def question_from_dict(values: object) -> Question:
    """The inverse of `Question.to_dict`; what has a default may be left out."""
    if not isinstance(values, Mapping) or values.get("kind") not in tuple(QUESTIONS):
        raise InputError(f"a question must have a kind, one of {', '.join(QUESTIONS)}.", field="kind")
    kind = QUESTIONS[values["kind"]]
    known = [one.name for one in fields(kind)]
    given = {name: value for name, value in values.items() if name != "kind"}
    strange = sorted(set(given) - set(known))
    if strange:
        raise InputError(f"a {kind.kind} question has no {strange[0]!r}, only {', '.join(known)}.", field=strange[0])
    missing = {"name", "bounds"} & set(known) | {"answers"} & set(known)
    for name in sorted(missing - set(given)):
        raise InputError(f"a {kind.kind} question must have {name!r}.", field=name)
    return kind(**given)


def as_questions(questions: Iterable[Question]) -> tuple[Question, ...]:
    """One question or more, with names that differ."""
    found = tuple(questions)
    if not all(isinstance(one, Question) for one in found):
        raise InputError("questions must be Number, YesNo or Choice objects.", field="questions")
    if not 1 <= len(found) <= MOST_QUESTIONS:
        told = f"questions must be 1 to {MOST_QUESTIONS}, got {len(found)}."
        raise InputError(told, field="questions")
    names = [one.name for one in found]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputError(f"questions must have different names, got {twice[0]!r} twice.", field="questions")
    return found


def one_yes_no(questions: Sequence[Question]) -> bool:
    """Whether exactly one yes/no question is asked: in the local setting it is answered by randomised response."""
    return len(questions) == 1 and isinstance(questions[0], YesNo)


def _as_name(name: object, what: str) -> str:
    if not isinstance(name, str) or not name.strip() or len(name) > LONGEST_NAME or not name.isprintable():
        told = f"{what} must be a text of 1 to {LONGEST_NAME} printable characters, got {name!r}."
        raise InputError(told, field=what)
    return name.strip()


# -- one noise for several questions ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseGroup:
    """Questions that share a noise: numbers and yes/no questions in a box, or one choice."""

    rows: tuple[int, ...]
    """Which questions, by their position."""

    parts: int
    """The group's part of everybody's loss, in units of one over `PARTS`; positive."""

    cells: int
    """How many numbers the noise has: one per question of a box, one per answer of a choice."""

    choice: bool
    """Whether it is a choice."""

    @property
    def share(self) -> float:
        """The group's part of everybody's loss."""
        return self.parts / PARTS

    @property
    def noise(self) -> float:
        """``S²·E z²`` of one cell on a range of width 1, for a loss of which the group has its part."""
        return 2.0 * _spread(self.cells, self.choice) / self.share**2


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """How a survey's questions share everybody's loss, and the market for one number that it comes to."""

    groups: tuple[NoiseGroup, ...]
    """The groups, in the order of their first questions; every question is in one."""

    width: float
    """The width of the range that a single number would have."""

    variance: float
    """The variance that a single number would have."""

    importance: float
    """All importances together; 1 where each question has its own target."""

    def group_of(self, question: int) -> NoiseGroup:
        """The group of the question at that position."""
        return next(group for group in self.groups if question in group.rows)


def layout_of(questions: Sequence[Question], targets: Sequence[float] | None = None) -> Layout:
    """The best layout: for errors weighed by importance, or for a standard error for each question.

    >>> ten = [YesNo(name=f"q{i}") for i in range(10)]
    >>> layout = layout_of(ten)
    >>> len(layout.groups), round(layout.width, 2)
    (1, 4.69)
    """
    weights = [one.importance for one in questions]
    if targets is not None:
        weights = [(one.width / target) ** 2 for one, target in zip(questions, targets, strict=True)]
    cost = _summed_cost if targets is None else _largest_cost
    grouped = [(rows, False) for rows in _boxes(questions, weights, cost)]
    grouped += [((row,), True) for row, one in enumerate(questions) if isinstance(one, Choice)]
    # everybody's loss is split as the noise of the groups asks for: as the cube root, or the root, of what they cost
    power = 1.0 / 3.0 if targets is None else 0.5
    costs = [cost([weights[row] for row in rows], _spread(*_shape(questions, rows))) ** power for rows, _ in grouped]
    groups = tuple(
        NoiseGroup(rows=rows, parts=parts, cells=_shape(questions, rows)[0], choice=choice)
        for (rows, choice), parts in zip(grouped, _parts(costs), strict=True)
    )
    ordered = tuple(sorted(groups, key=lambda group: group.rows[0]))
    # from the parts as they are, so that it is the very error of the noise that will be drawn
    if targets is None:
        return _weighed(questions, ordered)
    noise = [cost([weights[row] for row in group.rows], group.noise / 2.0) for group in ordered]
    spread = max(p * one.largest_variance for p, one in zip(weights, questions, strict=True))
    return Layout(groups=ordered, width=math.sqrt(max(noise)), variance=spread, importance=1.0)


def _weighed(questions: Sequence[Question], groups: tuple[NoiseGroup, ...]) -> Layout:
    """The layout of errors weighed by importance with these groups."""
    weights = [one.importance for one in questions]
    total = math.fsum(weights)
    noise = [_summed_cost([weights[row] for row in group.rows], group.noise / 2.0) for group in groups]
    spread = math.fsum(p * one.relative_variance for p, one in zip(weights, questions, strict=True)) / total
    return Layout(groups=groups, width=math.sqrt(math.fsum(noise) / total), variance=spread, importance=total)


def refuse_other_layout(questions: Sequence[Question], layout: Layout) -> None:
    """A layout must be one of these questions: each in one group with its likes, all losses given away, none twice."""
    rows = sorted(row for group in layout.groups for row in group.rows)
    fits = rows == list(range(len(questions))) and sum(group.parts for group in layout.groups) == PARTS
    for group in layout.groups if fits else ():
        choices = [isinstance(questions[row], Choice) for row in group.rows]
        fits = fits and group.parts > 0 and (choices == [True] if group.choice else not any(choices))
        fits = fits and (group.cells, group.choice) == _shape(questions, group.rows)
    if not fits:
        raise InputError("layout must be what layout_of gives for these questions.", field="layout")


def layout_with(questions: Sequence[Question], groups: Iterable[tuple[Sequence[int], int]]) -> Layout:
    """The layout that somebody else chose: which rows share which parts; for errors weighed by importance."""
    stated = [(tuple(rows), parts) for rows, parts in groups]
    numbers = [number for rows, parts in stated for number in (*rows, parts)]
    whole = all(type(number) is int for number in numbers) and all(rows for rows, _ in stated)
    if not whole or sorted(row for rows, _ in stated for row in rows) != list(range(len(questions))):
        raise InputError("layout must hold each of these questions once, in groups with whole parts.", field="layout")
    found = []
    for rows, parts in stated:
        cells, choice = _shape(questions, rows)
        found.append(NoiseGroup(rows=rows, parts=parts, cells=cells, choice=choice))
    layout = Layout(groups=tuple(found), width=1.0, variance=1.0, importance=1.0)
    refuse_other_layout(questions, layout)
    return _weighed(questions, layout.groups)


def _shape(questions: Sequence[Question], rows: Sequence[int]) -> tuple[int, bool]:
    """How many cells a group has, and whether it is a choice."""
    first = questions[rows[0]]
    return (len(first.answers), True) if isinstance(first, Choice) else (len(rows), False)


def _spread(cells: int, choice: bool) -> float:
    """``S²·E z²/2`` of one cell: 1 for a single number."""
    return _cells(cells) if choice else (cells + 1) * (cells + 2) / 6.0


def _cells(answers: int) -> float:
    """``(d−1)·E_b/2`` for a choice among d answers: half the mean square of one cell of its noise, at ``S = 1``.

    The noise is on vectors that sum to 0, with density ``∝ exp(−Σ z⁺)``; k of the d cells are positive with weight
    ``C(d,k)/((k−1)!(d−k−1)!)``, and given k the mean square of a cell is ``d−1`` times ``2/(k+1) + 2/(d−k+1)``.
    """
    d = answers
    positive = range(1, d)
    weight = [math.comb(d, k) * math.comb(d - 2, k - 1) for k in positive]  # times (d−2)!
    mean = sum(w * (2.0 / (k + 1) + 2.0 / (d - k + 1)) for w, k in zip(weight, positive, strict=True)) / sum(weight)
    return (d - 1) * mean / 2.0


def _summed_cost(weights: Sequence[float], spread: float) -> float:
    """What a group adds to the error, all its questions together."""
    return math.fsum(weights) * spread


def _largest_cost(weights: Sequence[float], spread: float) -> float:
    """What a group needs for its hardest question."""
    return max(weights) * spread


def _boxes(
    questions: Sequence[Question], weights: Sequence[float], cost: Callable[[Sequence[float], float], float]
) -> list[tuple[int, ...]]:
    """The numbers and yes/no questions in boxes: neighbours in weight, so that the boxes' roots add up to the least."""
    power = 1.0 / 3.0 if cost is _summed_cost else 0.5
    order = sorted(
        (row for row, one in enumerate(questions) if not isinstance(one, Choice)), key=lambda row: (-weights[row], row)
    )
    # best[k]: the least sum for the first k, and where its last box begins
    best = [(0.0, 0)]
    for end in range(1, len(order) + 1):
        tried = []
        for start in range(end):
            inside = [weights[row] for row in order[start:end]]
            tried.append((best[start][0] + cost(inside, _spread(end - start, False)) ** power, start))
        best.append(min(tried))
    boxes, end = [], len(order)
    while end:
        start = best[end][1]
        boxes.append(tuple(sorted(order[start:end])))
        end = start
    return boxes


def _parts(costs: Sequence[float]) -> list[int]:
    """Whole parts proportional to ``costs``, at least 1 each, which add up to `PARTS` exactly."""
    total = math.fsum(costs)
    parts = [max(1, math.floor(PARTS * cost / total)) for cost in costs]
    parts[parts.index(max(parts))] += PARTS - sum(parts)
    return parts
