"""Is an estimate as accurate as its formulas say? Simulated error and coverage against the stated ones.

Data are synthetic and vary exactly as declared: two values of a number around the middle of the range, yes and no, the
first two answers of a choice. One number is a survey of one question; of a choice the share of its first answer is
compared. Where price and datum may be related, the same is done with data whose expected values follow the weights,
which is the relation under which the error is as large as it can be (`hushbid.disclosure.relation`).
"""

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass

import numpy as np

from hushbid.common.arrays import BoolArray, FloatArray, Rng, as_generator
from hushbid.disclosure import ErrorModel, Relation, ReleasePlan
from hushbid.disclosure.combination import level_of, rows_of
from hushbid.disclosure.delivery import Simulator
from hushbid.disclosure.weighing import bounds_of, relation_of
from hushbid.errors import InputError
from hushbid.estimation import WORST_VARIANCE
from hushbid.questions import Choice, Number

TOLERANCE = 5.0
"""Standard errors by which a right error may be smaller than stated; `_largest_excess` says by how many larger."""

_ALARM = 3e-7
"""How likely a right mechanism is to be rejected: five standard errors of a normal variable, to one side."""

_HALF_WIDTH = 1.96
"""Standard errors in half of a 95 % interval."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Simulated:
    """Stated and simulated accuracy on one kind of data."""

    repetitions: int
    """How many times data and noise were drawn."""

    formula_mse: float
    """Mean squared error that a release states."""

    simulated_mse: float
    """Mean squared error in the simulation."""

    mse_uncertainty: float
    """Standard error of the simulated one (`standard_error`)."""

    level: float
    """Stated coverage of the interval."""

    coverage: float
    """Part of the simulated intervals that contain the mean."""

    @property
    def deviation(self) -> float:
        """Simulated minus stated error, in standard errors of the simulation."""
        return (self.simulated_mse - self.formula_mse) / self.mse_uncertainty

    @property
    def _too_small(self) -> bool:
        return self.deviation < -TOLERANCE

    @property
    def _too_large(self) -> bool:
        return self.deviation > _largest_excess(self.repetitions) or self._misses_too_often

    @property
    def _misses_too_often(self) -> bool:
        """Whether intervals of the stated level would miss so often with a probability below `_ALARM`, exactly.

        In few repetitions misses are rare events, of which there are five standard errors too many much more often than
        of a normal variable.
        """
        from scipy.special import bdtrc

        missed = round((1.0 - self.coverage) * self.repetitions)
        return missed > 0 and float(bdtrc(missed - 1, self.repetitions, 1.0 - self.level)) < _ALARM


@dataclass(frozen=True, slots=True, kw_only=True)
class WorstCase(_Simulated):
    """Stated and simulated accuracy if price and datum are related in the worst way that is allowed for."""

    attained: bool
    """Whether data within the range can be so related and vary as declared; else less was simulated than is stated."""

    @property
    def rejected(self) -> bool:
        """Whether the error is larger than stated, or smaller though the worst case was simulated in full."""
        return self._too_large or (self.attained and self._too_small)


@dataclass(frozen=True, slots=True, kw_only=True)
class AccuracyCheck(_Simulated):
    """Stated and simulated accuracy of one number or question, if price and datum are unrelated."""

    noise_share: float
    """The part of the stated error that is noise, or false answers by coin."""

    worst: WorstCase | None = None
    """The same if they are related; None where that is not allowed for."""

    question: str = ""
    """Of a survey, the question that it is about."""

    by_coin: bool = False
    """Whether it is a yes/no question that a coin answers on everybody's device."""

    @property
    def rejected(self) -> bool:
        """Whether error or coverage are certainly not as stated (coverage: too low)."""
        return self._too_small or self._too_large or (self.worst is not None and self.worst.rejected)

    def __str__(self) -> str:
        verdict = "Rejected" if self.rejected else "Not rejected"
        related = ""
        if self.worst is not None:
            margin = _HALF_WIDTH * self.worst.mse_uncertainty
            related = (
                f"; if price and datum are related, {self.worst.simulated_mse:.6g} ± {margin:.2g}"
                f" against {self.worst.formula_mse:.6g} at worst, coverage {self.worst.coverage:.4f}"
            )
        about = f"{self.question}: " if self.question else ""
        margin = _HALF_WIDTH * self.mse_uncertainty
        return (
            f"{about}{verdict}: simulated MSE {self.simulated_mse:.6g} ± {margin:.2g} against"
            f" {self.formula_mse:.6g}, coverage {self.coverage:.4f} against {self.level}{related}"
            f" ({self.repetitions} repetitions)."
        )


def check_questions(
    plan: ReleasePlan,
    *,
    rng: Rng,
    repetitions: int = 2000,
    level: float = 0.95,
    drop_out: float = 0.0,
) -> list[AccuracyCheck]:
    """Simulate a plan on synthetic data of exactly the declared variance, and compare; one result for each question.

    The data lie at the middle of the range plus or minus the declared standard deviation. A part ``drop_out`` of the
    people, chosen once, delivers nothing.
    """
    if repetitions < 10 or not 0.0 <= drop_out < 1.0:
        raise InputError(
            f"repetitions must be at least 10 and drop_out in [0, 1), got {repetitions} and {drop_out}.",
            field="repetitions",
        )
    variance, (low, high) = _variances(plan), np.array([bounds_of(one) for one in plan.questions]).T
    if (np.sqrt(variance) > (high - low) / 2.0 * (1 + 1e-12)).any():
        raise InputError(
            "variance must not exceed the square of half the range: no data have such a variance.", field="variance"
        )
    generator = as_generator(rng)
    estimator = Simulator.of(plan, _present(plan, generator, drop_out))
    middle = np.broadcast_to(low + (high - low) / 2.0, variance.shape)
    trial = _Trial(plan=plan, estimator=estimator, rng=generator, repetitions=repetitions, level=level)
    unrelated = trial.compare(middle, variance, [error.mse for error in estimator.errors])
    worst: list[WorstCase] | list[None] = [None] * len(plan.questions)
    if plan.relation is not None:
        worst = trial.compare_worst(plan.relation, variance)
    return [
        AccuracyCheck(
            **asdict(simulated),
            noise_share=_noise_share(plan, estimator.weights, error),
            worst=related,
            question=question.name if plan.survey else "",
            by_coin=plan.response,
        )
        for simulated, related, error, question in zip(unrelated, worst, estimator.errors, plan.questions, strict=True)
    ]


def standard_error(squared: FloatArray, error: ErrorModel, squared_bias: float = 0.0) -> float:
    """Return the standard error of a mean of squared misses: as measured, or as stated if that is larger.

    Noise has a long tail, and most repetitions that find too small an error missed it: their own spread is too small
    as well, and an honest mechanism would lie five such standard errors below its formula once in some thousands of
    checks. What follows from the formula is ``Var X² = 2σ⁴ + κ + 4b²σ²``, with the variance σ², the bias b, and a
    fourth cumulant κ of at most three times the sum of the noise terms' squared variances (a Laplace term's; a cell of
    a box or of a choice has less, and data of two values a negative one).
    """
    noise = max(error.mse - error.sampling_variance, 0.0)
    scales = error.largest_noise**2 + error.other_noise_squared
    unit = noise / scales if scales > 0.0 else 0.0  # the variance of noise of scale 1
    cumulant = 3.0 * unit**2 * (error.largest_noise**4 + error.next_noise**2 * error.other_noise_squared)
    stated = 2.0 * error.mse**2 + cumulant + 4.0 * squared_bias * error.mse
    return math.sqrt(max(float(squared.var(ddof=1)), stated) / squared.size)


def _largest_excess(repetitions: int) -> float:
    """By how many standard errors a right error may be larger than stated, with a probability below `_ALARM`.

    Of n squared Laplace variables, which have the longest tail of all noises, the sum lies so far above its mean once
    in ten million times: computed from n = 10 to 5,000 by convolution.
    """
    return TOLERANCE + 60.0 / math.sqrt(repetitions)


def _variances(plan: ReleasePlan) -> FloatArray:
    """How much everybody's answers vary, people × questions, in squared data units: of a number each may differ."""
    if not plan.survey:
        return plan.variance[:, np.newaxis]
    return np.tile([one.largest_variance * one.width**2 for one in plan.questions], (plan.people, 1))


def _present(plan: ReleasePlan, rng: np.random.Generator, drop_out: float) -> BoolArray:
    """Who delivers: of each stratum at least the person with the largest loss."""
    present = (plan.delivered > 0) & (rng.random(plan.people) >= drop_out)
    for rows in rows_of(plan.strata):
        if not present[rows].any():
            present[np.arange(plan.people)[rows][int(np.argmax(plan.delivered[rows]))]] = True
    return present


def _noise_share(plan: ReleasePlan, weights: FloatArray, error: ErrorModel) -> float:
    """The part of an error that there would not be without noise, or if no coin lied."""
    sampling = WORST_VARIANCE * float(weights @ weights) if plan.response else error.sampling_variance
    return 1.0 - sampling / error.mse


@dataclass(frozen=True, slots=True, kw_only=True)
class _Trial:
    """Many releases of one plan on synthetic data."""

    plan: ReleasePlan
    estimator: Simulator
    rng: np.random.Generator
    repetitions: int
    level: float

    def compare(self, expected: FloatArray, variance: FloatArray, stated: list[float]) -> list[_Simulated]:
        """Compare errors on data with these expected values and variances, people × questions, with the stated ones."""
        low, high = np.array([bounds_of(one) for one in self.plan.questions]).T
        # of each question the first value
        cells = [len(one.answers) if isinstance(one, Choice) else 1 for one in self.plan.questions]
        estimates = self.estimator.draw(self._tables(expected, variance))[:, np.cumsum([0, *cells[:-1]])]
        misses = estimates - level_of(self.plan.strata) * (low + (high - low) / 2.0)
        found = []
        for error, mse, missed in zip(self.estimator.errors, stated, misses.T, strict=True):
            squared = np.square(missed)
            found.append(
                _Simulated(
                    repetitions=self.repetitions,
                    formula_mse=mse,
                    simulated_mse=float(squared.mean()),
                    mse_uncertainty=standard_error(squared, error, mse - error.mse),
                    level=self.level,
                    coverage=float(np.mean(np.abs(missed) <= error.half_width(self.level))),
                )
            )
        return found

    def compare_worst(self, relation: Relation, variance: FloatArray) -> list[WorstCase]:
        """Compare on data whose expected values are as far from the middle as weights are from equal ones."""
        plan, errors = self.plan, self.estimator.errors
        shape, length = self._unevenness(relation)
        low, high = np.array([bounds_of(one) for one in plan.questions]).T
        spreads = [0.0 if own is None else own.spread for own in (relation_of(plan, one) for one in plan.questions)]
        # b ∝ w − 1/N over the whole roster or in each stratum, as large as the relation allows and the range has room
        wanted = np.sqrt(relation.roster * np.array(spreads)) / length if length > 0.0 else np.zeros(low.size)
        room = (high - low) / 2.0 / np.abs(shape).max() if length > 0.0 else np.zeros(low.size)
        expected = low + (high - low) / 2.0 + np.minimum(wanted, room) * shape[:, np.newaxis]
        # nobody varies more than the range allows around their expected value
        within = np.minimum(variance, np.maximum(expected - low, 0.0) * np.maximum(high - expected, 0.0))
        used = self.estimator.weights > 0.0
        attained = (wanted <= room) & (within[used] >= variance[used] * (1.0 - 1e-12)).all(axis=0)
        found = self.compare(expected, within, [error.worst_mse for error in errors])
        return [WorstCase(**asdict(one), attained=full) for one, full in zip(found, attained.tolist(), strict=True)]

    def _unevenness(self, relation: Relation) -> tuple[FloatArray, float]:
        """How far weights are from equal ones, with signs, and the length of that over the whole roster."""
        strata, weights = self.plan.strata, self.estimator.weights
        shape, squares = np.zeros(self.plan.people), 0.0
        for rows, count, weight in zip(rows_of(strata), relation.counts, strata.weights.tolist(), strict=True):
            equal = abs(weight) / count
            shape[rows] = math.copysign(1.0, weight) * (weights[rows] - equal)
            squares += (count - shape[rows].size) * equal**2  # those who are not in the plan
        return shape, math.sqrt(float(shape @ shape) + squares)

    def _tables(self, expected: FloatArray, variance: FloatArray) -> Iterator[FloatArray]:
        """Answers with two values each, of these expected values and variances; a number's within its range."""
        low, high = np.array([bounds_of(one) for one in self.plan.questions]).T
        down, up = _two_points(variance, np.maximum(expected - low, 0.0), np.maximum(high - expected, 0.0))
        chance = np.divide(down, down + up, where=down + up > 0.0, out=np.zeros_like(down))
        whole = [not isinstance(one, Number) for one in self.plan.questions]
        for _ in range(self.repetitions):
            rises = self.rng.random(expected.shape) < chance
            table = expected + np.where(rises, up, -down)
            yield np.where(whole, np.rint(table), table)


def _two_points(variance: FloatArray, below: FloatArray, above: FloatArray) -> tuple[FloatArray, FloatArray]:
    """How far down and up from the expected value, with so much room: as far either way, if there is room for it."""
    deviation = np.sqrt(variance)
    down, up = np.minimum(deviation, below), np.minimum(deviation, above)
    # further on the other side where one has no room: down·up is the variance
    further_up = np.divide(variance, down, where=down > 0.0, out=np.zeros_like(down))
    further_down = np.divide(variance, up, where=up > 0.0, out=np.zeros_like(up))
    return np.where(up < deviation, further_down, down), np.where(down < deviation, further_up, up)
