"""What a survey found for one of its questions; one number is a survey of one question."""

import json
import math
from dataclasses import dataclass
from typing import Annotated, Any

from hushbid.common.codec import Through
from hushbid.common.numbers import cut_to
from hushbid.disclosure.combination import Combined
from hushbid.disclosure.error import ErrorModel, published_errors
from hushbid.disclosure.weighing import bounds_of
from hushbid.errors import InputError, RecordError
from hushbid.questions import Choice, Number, Question, question_from_dict


def _question_of(values: Any, path: str) -> Question:
    """The question that a record holds, written as `Question.to_dict` writes it and not otherwise."""
    try:
        question = question_from_dict(values)
    except InputError as problem:
        raise RecordError(f"{path}: {problem}", field=path) from None
    if json.dumps(question.to_dict(), sort_keys=True) != json.dumps(values, sort_keys=True):
        raise RecordError(f"{path} must be written as a question is, with all its fields.", field=path)
    return question


class Estimated:
    """What follows from the error of an estimate."""

    __slots__ = ()

    error: ErrorModel

    @property
    def standard_error(self) -> float:
        """Root mean squared error from the declared variance and the noise, never from the data.

        If price and datum are unrelated; `worst_standard_error` says how large it is at worst.
        """
        return math.sqrt(self.error.mse)

    @property
    def worst_standard_error(self) -> float:
        """The same if price and datum are related as closely as the market allows for."""
        return math.sqrt(self.error.worst_mse)


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionAnswer(Estimated):
    """What a survey found for one of its questions."""

    question: Annotated[Question, Through(Question.to_dict, _question_of)]
    """What was asked."""

    error: ErrorModel
    """How far each value may lie from the truth, given who delivered; of a choice, the share that varies most."""

    planned_error: ErrorModel
    """How far it might have lain, had everybody delivered."""

    values: tuple[float, ...]
    """The noisy weighted mean: one value, and for a choice the share of each of its answers, in their order.

    Not clamped to the range, which would bias them; a choice's shares add up to 1, but for rounding."""

    strata: Combined | None = None
    """Which combination of stratum means each value is of; None where it is one mean."""

    def __post_init__(self) -> None:
        expected = len(self.question.answers) if isinstance(self.question, Choice) else 1
        if len(self.values) != expected:
            told = f"values must have {expected} entries for {self.question.name!r}, got {len(self.values)}."
            raise InputError(told, field="values")

    @property
    def name(self) -> str:
        """How the question is called."""
        return self.question.name

    @property
    def estimate(self) -> float:
        """The estimated mean of a number, or the share of yes."""
        if isinstance(self.question, Choice):
            raise InputError(f"{self.name!r} has one share for each answer: use shares.", field="estimate")
        return self.values[0]

    @property
    def shares(self) -> dict[str, float]:
        """The estimated share of each answer of a choice, by its name."""
        if not isinstance(self.question, Choice):
            raise InputError(f"{self.name!r} is not a choice: use estimate.", field="shares")
        return dict(zip(self.question.answers, self.values, strict=True))

    @property
    def answer_names(self) -> tuple[str, ...]:
        """What each of the values is the share of: the answers of a choice; empty for a number, "yes" for yes or no."""
        if isinstance(self.question, Choice):
            return self.question.answers
        return ("",) if isinstance(self.question, Number) else ("yes",)

    @property
    def projected(self) -> tuple[float, ...]:
        """The values as shares that can be: the nearest from 0 to 1, and of a choice the nearest that add up to 1.

        They are nearer to the truth, but biased: an interval belongs to ``values``. A number is not projected, and
        neither is a combination of strata that is no mean, such as a difference.
        """
        if not self.is_share:
            return self.values
        if not isinstance(self.question, Choice):
            return (min(max(self.values[0], 0.0), 1.0),)
        return _nearest_shares(self.values)

    @property
    def is_share(self) -> bool:
        """Whether values are shares of people, which are neither below 0 nor above 1."""
        return not isinstance(self.question, Number) and (self.strata is None or self.strata.are_shares)

    @property
    def range(self) -> tuple[float, float]:
        """Between which values the truth lies: those of an answer, and where strata are combined their combination."""
        bounds = bounds_of(self.question)
        return bounds if self.strata is None else self.strata.range_of(bounds)

    def intervals(self, level: float = 0.95) -> tuple[tuple[float, float], ...]:
        """Return for each value an interval that contains the truth with probability at least ``level``.

        Each by itself: not all of them together.
        """
        return self._around(self.error.half_width(level))

    def normal_intervals(self, level: float = 0.95) -> tuple[tuple[float, float], ...]:
        """Return for each value the narrower interval that large samples justify, as `Release.normal_interval` says."""
        return self._around(self.error.normal_half_width(level))

    def _around(self, half: float) -> tuple[tuple[float, float], ...]:
        return tuple(cut_to(value - half, value + half, self.range) for value in self.values)

    def public(self, *, people: int) -> dict[str, Any]:
        """What may be shown to anybody, of an answer from so many people who were bought from."""
        choice = isinstance(self.question, Choice)
        found: dict[str, Any] = {"shares": self.shares} if choice else {"estimate": self.estimate}
        if self.is_share:
            found["projected"] = dict(zip(self.shares, self.projected, strict=True)) if choice else self.projected[0]
        return {"question": self.question.to_dict(), **published_errors(self.planned_error, people=people), **found}


def _nearest_shares(values: tuple[float, ...]) -> tuple[float, ...]:
    """The nonnegative numbers that add up to 1 and are nearest: all lowered alike, but not below 0.

    >>> _nearest_shares((0.75, 0.5, -0.25))
    (0.625, 0.375, 0.0)
    """
    descending = sorted(values, reverse=True)
    # as many stay positive as keep the lowest of them so
    lowered = [(math.fsum(descending[:k]) - 1.0) / k for k in range(1, len(values) + 1)]
    by = max(one for one, value in zip(lowered, descending, strict=True) if value > one)
    return tuple(max(value - by, 0.0) for value in values)
