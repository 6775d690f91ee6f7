"""The released estimate, and what its operator may know about how it was made; of a survey, one for each question."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Annotated, Any

import numpy as np

from hushbid.common.arrays import FloatArray
from hushbid.common.codec import Codec, Through
from hushbid.common.numbers import cut_to
from hushbid.common.tables import Library, frame_of_rows
from hushbid.disclosure import noise
from hushbid.disclosure.cards import release_card
from hushbid.disclosure.combination import Combined
from hushbid.disclosure.error import ErrorModel, published_errors
from hushbid.disclosure.grid import PromiseCheck
from hushbid.disclosure.promises import ReleasePlan, one_number
from hushbid.disclosure.sum_plan import SumPlan
from hushbid.disclosure.weighing import bounds_of, in_order
from hushbid.display import pretty
from hushbid.errors import InputError, RecordError
from hushbid.estimation import Setting
from hushbid.questions import Choice, Number, Question, question_from_dict

FORMAT, VERSION = "hushbid release", 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """The integers a release was computed in; with them anybody can check the promises again."""

    data_bits: int
    """A datum is an integer between 0 and 2**data_bits (local: the coarsest grid among the messages)."""

    weight_exponent: int | None
    """Central: person i's weight is the integer ``privacy_loss_i · 2**weight_exponent``; None without noise."""

    total_weight: int | None
    """Central: the sum of all integer weights."""

    noise_scale: float | None
    """Central: the scale, in steps of the weighted sum, that the sampler received; 0 if no noise was drawn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summed:
    """How many people a release is about that was made from sums, without anybody's figures."""

    delivered: int
    """How many people's data were used."""

    dropped_out: int
    """How many people who should have delivered did not."""


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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Release(Estimated):
    """One estimate or a survey's answers, drawn once. All is for the operator; :meth:`public` is what may be shown."""

    key: str
    """The key of the plan."""

    setting: Setting
    """Where noise was added."""

    bounds: tuple[float, float]
    """The public range of the data; of a survey, that of the one number that its market is like."""

    privacy_loss: FloatArray
    """What each person really lost, exactly; 0 for those whose data were not used. At most what she was promised.

    In a survey of several groups the parts are rounded down besides, and strata are brought into exact proportion, so
    that she may have lost a little less. Empty if the release was made from sums."""

    error: ErrorModel
    """How far the estimate may lie from the mean, given who delivered.

    Of a survey, the mean squared error is the mean over its questions, weighed by importance and relative to ranges."""

    planned_error: ErrorModel
    """How far the estimate might have lain from the mean, had everybody delivered."""

    grid: Grid
    """The integers it was computed in."""

    check: PromiseCheck
    """The verification of all promises, made before the noise was drawn."""

    clamped: int
    """How many values lay outside the range. For the operator only (not known in the local setting: 0)."""

    dropped_out: tuple[int, ...]
    """The rows that should have delivered and did not. For the operator only. Empty if it was made from sums."""

    versions: dict[str, str]
    """Of this library and of the sampler."""

    summed: Summed | None = None
    """How many people it is about, if it was made from sums; None if it is known who they are."""

    estimate: float | None = None
    """The noisy weighted mean. It is not clamped to the range: that would bias it. None for a survey."""

    answers: tuple[QuestionAnswer, ...] = ()
    """What a survey found, in the order of its questions; empty where the release is one estimate."""

    strata: Combined | None = None
    """Which combination of stratum means it estimates; None where it is one mean."""

    def __post_init__(self) -> None:
        if (self.estimate is None) != bool(self.answers):
            raise InputError("A release must have an estimate, or the answers of a survey, and not both.")

    @classmethod
    def of(
        cls,
        plan: ReleasePlan | SumPlan,
        values: Sequence[Sequence[float]],
        *,
        errors: Sequence[ErrorModel],
        planned_errors: Sequence[ErrorModel],
        setting: Setting,
        **rest: Any,
    ) -> "Release":
        """Return the release of a plan's values by group and cell; ``rest`` are fields as they are."""
        answers = [
            QuestionAnswer(question=question, error=error, planned_error=planned, values=tuple(v), strata=plan.combined)
            for question, error, planned, v in zip(
                plan.questions, errors, planned_errors, in_order(plan.layout.groups, values), strict=True
            )
        ]
        return cls(
            setting=setting,
            bounds=plan.bounds,
            versions=_versions(setting),
            strata=plan.combined,
            estimate=None if plan.survey else answers[0].estimate,
            answers=tuple(answers) if plan.survey else (),
            **{"clamped": 0, "dropped_out": (), **rest},
        )

    @property
    def results(self) -> tuple[QuestionAnswer, ...]:
        """What was found for each question; one number is a survey of one question."""
        if self.estimate is None:
            return self.answers
        [asked] = one_number(self.bounds)
        one = QuestionAnswer(
            question=asked,
            error=self.error,
            planned_error=self.planned_error,
            values=(self.estimate,),
            strata=self.strata,
        )
        return (one,)

    @property
    def one_estimate(self) -> float:
        """The estimate, where the release is one."""
        return self._one_result.values[0]

    @property
    def _one_result(self) -> QuestionAnswer:
        if self.estimate is None:
            raise InputError("A survey has no single estimate: use answers.", field="estimate")
        return self.results[0]

    @property
    def delivered(self) -> int:
        """How many people's data were used."""
        return int(np.count_nonzero(self.privacy_loss)) if self.summed is None else self.summed.delivered

    @property
    def absent(self) -> int:
        """How many people who should have delivered did not."""
        return len(self.dropped_out) if self.summed is None else self.summed.dropped_out

    @property
    def bought_from(self) -> int:
        """How many people should have delivered."""
        return self.delivered + self.absent

    @property
    def fewest(self) -> int:
        """How many should have in the smallest stratum: of one alone, figures would tell what she bid."""
        return self.bought_from if self.strata is None else min(self.strata.bought_from)

    @property
    def range(self) -> tuple[float, float]:
        """Between which values the truth lies: the bounds, and where strata are combined their combination."""
        return self.bounds if self.strata is None else self.strata.range_of(self.bounds)

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return an interval that contains the mean with probability at least ``level``, whatever the distribution.

        It holds for independent data whose variance is at most the declared one, at every sample size, accounts for the
        Laplace tail, and holds for every relation of price and datum that the market allows for; see
        :mod:`hushbid.disclosure.error`. It is cut to the public range (the estimate is not): what is left of it
        contains the mean as surely, and if nothing is, it is the nearest end of the range.
        """
        return self._one_result.intervals(level)[0]

    def normal_interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return a narrower interval at the same level, if all but the largest noise term is normal; cut likewise.

        With many people, none of whom weighs much, it nearly is. With few it may contain the mean less often than
        ``level``, which `interval` never does.
        """
        return self._one_result.normal_intervals(level)[0]

    def public(self) -> dict[str, Any]:
        """Return what may be shown to anybody: the noisy estimate, and facts fixed before any data were seen.

        The errors are the planned ones. Drop-outs make the real ones larger, but real ones would tell who dropped out.
        They are rounded, and None where so few people are behind them that they would tell a bid.
        """
        head: dict[str, Any] = {"format": "hushbid public release", "version": VERSION, "setting": self.setting}
        if self.strata is not None:
            head["strata"] = self.strata.public()
        shown = [one.public(people=self.fewest) for one in self.results]
        if self.answers:
            return {**head, "answers": shown}
        [number] = shown
        del number["question"]
        return {**head, "bounds": list(self.bounds), **number}

    def to_frame(self, level: float = 0.95, *, library: Library | None = None) -> Any:
        """Return what was found as a data frame: one row per estimate, and for a choice one per answer. Confidential.

        ``low`` and ``high`` are the ends of an interval that contains the truth with probability at least ``level``,
        each by itself; ``normal_low`` and ``normal_high`` those of `normal_interval`. Of ``library``; unless one is
        named, of the first that is installed: pandas, Polars, pyarrow.
        """
        heads = ["question", "answer", "estimate", "low", "high", "normal_low", "normal_high"]
        heads += ["standard_error", "worst_standard_error"]
        rows = [
            (
                one.name if self.answers else "",
                name,
                value,
                *ends,
                *normal,
                one.standard_error,
                one.worst_standard_error,
            )
            for one in self.results
            for name, value, ends, normal in zip(
                one.answer_names, one.values, one.intervals(level), one.normal_intervals(level), strict=True
            )
        ]
        return frame_of_rows(heads, rows, library)

    def to_dict(self) -> dict[str, Any]:
        """Everything, as plain JSON values; confidential.

        The estimate comes last: a file torn before it does not hold it; one that lacks only its closing bytes does.
        """
        return RELEASE.write(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Release":
        """The inverse of :meth:`to_dict`. Strict: exactly the fields of this version, each of its type."""
        return RELEASE.read(values)

    def __repr__(self) -> str:
        if self.answers:
            return f"Release(answers={len(self.answers)}, setting={self.setting!r})"
        return f"Release(estimate={self.estimate!r}, standard_error={self.standard_error!r}, setting={self.setting!r})"

    def _repr_html_(self) -> str:
        return release_card(self.public())

    _repr_pretty_ = pretty


def _versions(setting: Setting) -> dict[str, str]:
    """Return the versions of this library and, where the noise is drawn here, of the sampler."""
    found = {"hushbid": version("hushbid")}
    return {**found, "opendp": noise.sampler_version()} if setting == "central" else found


RELEASE = Codec(Release, "release", header={"format": FORMAT, "version": VERSION})
