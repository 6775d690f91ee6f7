"""The released estimate, and what its operator may know about how it was made; of a survey, one for each question."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import numpy as np

from hushbid.common.arrays import FloatArray
from hushbid.common.codec import Codec
from hushbid.common.tables import Library, frame_of_rows
from hushbid.disclosure import noise
from hushbid.disclosure.cards import release_card
from hushbid.disclosure.combination import Combined
from hushbid.disclosure.error import ErrorModel
from hushbid.disclosure.grid import PromiseCheck
from hushbid.disclosure.promises import ReleasePlan, one_number
from hushbid.disclosure.question_answer import Estimated, QuestionAnswer
from hushbid.disclosure.sum_plan import SumPlan
from hushbid.disclosure.weighing import in_order
from hushbid.display import pretty
from hushbid.errors import InputError
from hushbid.estimation import Setting

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
        """Return the release of a plan's values by group and cell, without anybody's figures.

        ``rest`` are fields as they are.
        """
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
            privacy_loss=np.empty(0),
            dropped_out=(),
            **rest,
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
        return self._one_result.range

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
