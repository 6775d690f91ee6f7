"""Is an estimate as accurate as its formulas say? Simulated error and coverage against the stated ones."""

import math
from dataclasses import dataclass

import numpy as np

from hushbid.arrays import BoolArray, FloatArray
from hushbid.disclosure import ErrorModel, ReleasePlan, simulate_privatized
from hushbid.disclosure.central import weigh
from hushbid.disclosure.local import error_of
from hushbid.errors import InputError
from hushbid.estimation import best_weights, is_central

_TOLERANCE = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class AccuracyCheck:
    """Stated and simulated accuracy of one plan."""

    repetitions: int
    """How many times data and noise were drawn."""

    formula_mse: float
    """Mean squared error that a release states."""

    simulated_mse: float
    """Mean squared error in the simulation."""

    mse_uncertainty: float
    """Standard error of the simulated one."""

    level: float
    """Stated coverage of the interval."""

    coverage: float
    """Part of the simulated intervals that contain the mean."""

    @property
    def deviation(self) -> float:
        """Simulated minus stated error, in standard errors of the simulation."""
        return (self.simulated_mse - self.formula_mse) / self.mse_uncertainty

    @property
    def rejected(self) -> bool:
        """Whether error or coverage differ by more than five standard errors (coverage: to the wrong side)."""
        uncertainty = math.sqrt(self.level * (1.0 - self.level) / self.repetitions)
        return abs(self.deviation) > _TOLERANCE or self.coverage < self.level - _TOLERANCE * uncertainty

    def __str__(self) -> str:
        verdict = "Rejected" if self.rejected else "Not rejected"
        return (
            f"{verdict}: simulated MSE {self.simulated_mse:.6g} ± {self.mse_uncertainty:.2g} against"
            f" {self.formula_mse:.6g}, coverage {self.coverage:.4f} against {self.level}"
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
    """Simulate a plan on made-up data of exactly the declared variance, and compare.

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
    # somebody must deliver: the one with the largest loss
    if not present.any():
        present = needed & (np.arange(plan.people) == int(np.argmax(plan.delivered)))
    signs = rng.choice([-1.0, 1.0], size=(repetitions, plan.people))
    estimates, model = _simulate(plan, present, mean + signs * deviation)
    squared = np.square(estimates - mean)
    return AccuracyCheck(
        repetitions=repetitions,
        formula_mse=model.mse,
        simulated_mse=float(squared.mean()),
        mse_uncertainty=float(squared.std(ddof=1)) / math.sqrt(repetitions),
        level=level,
        coverage=float(np.mean(np.abs(estimates - mean) <= model.half_width(level))),
    )


def _simulate(plan: ReleasePlan, present: BoolArray, rows: FloatArray) -> tuple[FloatArray, ErrorModel]:
    """One estimate for each row of data, through the release's own noise path."""
    if is_central(plan.setting):
        summed = weigh(plan, present)
        return np.array(summed.estimates([summed.total(row) for row in rows])), summed.error
    people = np.flatnonzero(present)
    losses = plan.delivered[people]
    weights = best_weights(losses, setting="local", variance=plan.unit_variance[people]).weights
    noisy = simulate_privatized(rows[:, people].ravel(), np.tile(losses, len(rows)), plan.bounds)
    return noisy.reshape(len(rows), people.size) @ weights, error_of(plan, people, weights)
