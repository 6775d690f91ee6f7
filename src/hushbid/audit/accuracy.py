"""Is an estimate as accurate as its formulas say? Simulated error and coverage against the stated ones.

Where price and datum may be related, the same is done with data whose expected values follow the weights, which is the
relation under which the error is as large as it can be (`hushbid.disclosure.relation`).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hushbid.common.arrays import BoolArray, FloatArray
from hushbid.disclosure import ErrorModel, Relation, ReleasePlan, simulate_privatized
from hushbid.disclosure.combination import level_of, rows_of
from hushbid.disclosure.memory import weigh
from hushbid.disclosure.received import sent_by, signed_weights
from hushbid.errors import InputError
from hushbid.estimation import is_central

_TOLERANCE = 5.0
_ALARM = 3e-7
"""How likely a right mechanism is to be rejected: five standard errors of a normal variable, to one side."""

_HALF_WIDTH = 1.96
"""Standard errors in half of a 95 % interval."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorstCase:
    """Stated and simulated accuracy if price and datum are related in the worst way that is allowed for."""

    formula_mse: float
    """Mean squared error that a release states for the worst case."""

    simulated_mse: float
    """Mean squared error in the simulation."""

    mse_uncertainty: float
    """Standard error of the simulated one (`standard_error`)."""

    coverage: float
    """Part of the simulated intervals that contain the mean."""

    attained: bool
    """Whether data within the range can be so related and vary as declared; else less was simulated than is stated."""

    @property
    def deviation(self) -> float:
        """Simulated minus stated error, in standard errors of the simulation."""
        return (self.simulated_mse - self.formula_mse) / self.mse_uncertainty

    @property
    def rejected(self) -> bool:
        """Whether the error is larger than stated, or smaller though the worst case was simulated in full."""
        return self.deviation > _TOLERANCE or (self.attained and self.deviation < -_TOLERANCE)


@dataclass(frozen=True, slots=True, kw_only=True)
class AccuracyCheck:
    """Stated and simulated accuracy of one plan."""

    repetitions: int
    """How many times data and noise were drawn."""

    formula_mse: float
    """Mean squared error that a release states, if price and datum are unrelated."""

    simulated_mse: float
    """Mean squared error in the simulation."""

    mse_uncertainty: float
    """Standard error of the simulated one (`standard_error`)."""

    level: float
    """Stated coverage of the interval."""

    coverage: float
    """Part of the simulated intervals that contain the mean."""

    worst: WorstCase | None = None
    """The same if they are related; None where that is not allowed for, and in a survey."""

    question: str = ""
    """Of a survey, the question that it is about."""

    noise_share: float | None = None
    """Of a survey, the part of the question's stated error that is noise, or false answers by coin."""

    by_coin: bool = False
    """Whether it is a yes/no question that a coin answers on everybody's device."""

    @property
    def deviation(self) -> float:
        """Simulated minus stated error, in standard errors of the simulation."""
        return (self.simulated_mse - self.formula_mse) / self.mse_uncertainty

    @property
    def rejected(self) -> bool:
        """Whether the error differs by more than five standard errors, or the coverage is as certainly too low."""
        if self.worst is not None and (self.worst.rejected or self._misses_too_often(self.worst.coverage)):
            return True
        return abs(self.deviation) > _TOLERANCE or self._misses_too_often(self.coverage)

    def _misses_too_often(self, coverage: float) -> bool:
        """Whether intervals of the stated level would miss so often with a probability below `_ALARM`, exactly.

        In few repetitions misses are rare events, of which there are five standard errors too many much more often than
        of a normal variable.
        """
        from scipy.special import bdtrc

        missed = round((1.0 - coverage) * self.repetitions)
        return missed > 0 and float(bdtrc(missed - 1, self.repetitions, 1.0 - self.level)) < _ALARM

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


def check_accuracy(
    plan: ReleasePlan,
    *,
    rng: np.random.Generator,
    repetitions: int = 2000,
    level: float = 0.95,
    drop_out: float = 0.0,
) -> AccuracyCheck:
    """Simulate a plan on synthetic data of exactly the declared variance, and compare.

    The data lie at the middle of the range plus or minus the declared standard deviation. A part ``drop_out`` of the
    people, chosen once, delivers nothing.
    """
    if repetitions < 10 or not 0.0 <= drop_out < 1.0:
        raise InputError(
            f"repetitions must be at least 10 and drop_out in [0, 1), got {repetitions} and {drop_out}.",
            field="repetitions",
        )
    deviation = np.sqrt(plan.variance)
    if (deviation > plan.width / 2.0 * (1 + 1e-12)).any():
        raise InputError(
            "variance must not exceed the square of half the range: no data have such a variance.", field="variance"
        )
    low, high = plan.bounds
    # two points, each as likely: exactly the declared variance, and mean in the middle
    mean = low + (high - low) / 2.0
    needed = plan.delivered > 0
    present = needed & (rng.random(plan.people) >= drop_out)
    # somebody of each stratum must deliver: the one with the largest loss
    for rows in rows_of(plan.combination):
        if not present[rows].any():
            present[np.arange(plan.people)[rows][int(np.argmax(plan.delivered[rows]))]] = True
    signs = rng.choice([-1.0, 1.0], size=(repetitions, plan.people))
    estimator = _Estimator.of(plan, present)
    misses = estimator.of_rows(mean + signs * deviation) - level_of(plan.combination) * mean
    squared, half = np.square(misses), estimator.error.half_width(level)
    return AccuracyCheck(
        repetitions=repetitions,
        formula_mse=estimator.error.mse,
        simulated_mse=float(squared.mean()),
        mse_uncertainty=standard_error(squared, estimator.error),
        level=level,
        coverage=float(np.mean(np.abs(misses) <= half)),
        worst=None if plan.relation is None else _worst(plan, plan.relation, estimator, half, rng, repetitions),
    )


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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Estimator:
    """The release's own weights and noise, for data of those who are present."""

    weights: FloatArray
    """Everybody's without their signs, 0 for those who are not."""

    error: ErrorModel
    of_rows: Callable[[FloatArray], FloatArray]
    """One estimate for each row of data."""

    @classmethod
    def of(cls, plan: ReleasePlan, present: BoolArray) -> "_Estimator":
        if is_central(plan.setting):
            weighed = weigh(plan, present)
            summed = weighed.without_data()

            def drawn(rows: FloatArray) -> FloatArray:
                totals = [summed.totals_of(weighed.sums(row[:, np.newaxis])) for row in rows]
                return np.array([values[0][0] for values in summed.values(totals)])

            return cls(weights=weighed.shares, error=summed.error, of_rows=drawn)
        people = np.flatnonzero(present)
        sent = sent_by(plan, people)
        losses, signed = plan.delivered[people], signed_weights(sent)

        def of_rows(rows: FloatArray) -> FloatArray:
            noisy = simulate_privatized(rows[:, people].ravel(), np.tile(losses, len(rows)), plan.bounds)
            return np.asarray(noisy.reshape(len(rows), people.size) @ signed)

        everybody = np.zeros(plan.people)
        everybody[people] = np.abs(signed)
        return cls(weights=everybody, error=sent.error(), of_rows=of_rows)


def _worst(
    plan: ReleasePlan,
    relation: Relation,
    estimator: _Estimator,
    half: float,
    rng: np.random.Generator,
    repetitions: int,
) -> WorstCase:
    """Simulate data whose expected values are as far from the mean as weights are from equal ones."""
    low, high = plan.bounds
    mean = low + (high - low) / 2.0
    # b ∝ w − 1/N over the whole roster or in each stratum, as large as the relation allows and the range has room for
    shape, squares = np.zeros(plan.people), 0.0
    for rows, count, weight in zip(
        rows_of(plan.combination), relation.counts, plan.combination.weights.tolist(), strict=True
    ):
        equal = abs(weight) / count
        shape[rows] = math.copysign(1.0, weight) * (estimator.weights[rows] - equal)
        squares += (count - shape[rows].size) * equal**2  # whoever is not in the plan
    length = math.sqrt(float(shape @ shape) + squares)
    wanted = math.sqrt(relation.roster * relation.spread) / length if length > 0.0 else 0.0
    room = plan.width / 2.0 / float(np.abs(shape).max()) if length > 0.0 else 0.0
    expected = mean + min(wanted, room) * shape
    # nobody varies more than the range allows around her expected value
    below, above = np.maximum(expected - low, 0.0), np.maximum(high - expected, 0.0)
    spread = np.minimum(plan.variance, below * above)
    used = estimator.weights > 0.0
    down, up = _two_points(spread, below, above)
    chance = np.divide(down, down + up, where=down + up > 0.0, out=np.zeros_like(down))
    rises = rng.random((repetitions, plan.people)) < chance
    misses = estimator.of_rows(expected + np.where(rises, up, -down)) - level_of(plan.combination) * mean
    squared = np.square(misses)
    return WorstCase(
        formula_mse=estimator.error.worst_mse,
        simulated_mse=float(squared.mean()),
        mse_uncertainty=standard_error(squared, estimator.error, estimator.error.squared_bias),
        coverage=float(np.mean(np.abs(misses) <= half)),
        attained=wanted <= room and bool((spread[used] >= plan.variance[used] * (1.0 - 1e-12)).all()),
    )


def _two_points(variance: FloatArray, below: FloatArray, above: FloatArray) -> tuple[FloatArray, FloatArray]:
    """How far down and up from the expected value, with so much room: as far either way, if there is room for it."""
    deviation = np.sqrt(variance)
    down, up = np.minimum(deviation, below), np.minimum(deviation, above)
    # further on the other side where one has no room: down·up is the variance
    further_up = np.divide(variance, down, where=down > 0.0, out=np.zeros_like(down))
    further_down = np.divide(variance, up, where=up > 0.0, out=np.zeros_like(up))
    return np.where(up < deviation, further_down, down), np.where(down < deviation, further_up, up)
