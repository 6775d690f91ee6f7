"""One number of people in memory, weighed and added up again and again: what tests of releases look at."""

from collections.abc import Sequence

import numpy as np

from hushbid.common.arrays import BoolArray, FloatArray, IntArray
from hushbid.disclosure import ErrorModel, ReleasePlan
from hushbid.disclosure.combination import Blend, one_stratum
from hushbid.disclosure.delivery import with_rows
from hushbid.disclosure.memory import Weighed
from hushbid.disclosure.memory import weigh as weighed
from hushbid.disclosure.prepare import PreparedSums
from hushbid.disclosure.weighing import Weighing


def error_model(weights: FloatArray, variance: FloatArray, noise: FloatArray) -> ErrorModel:
    """The error of an estimate on a range of width 1 with these weights and independent terms of noise."""
    return Weighing.of(weights, variance=variance, noise=noise, strata=one_stratum(weights.size)).error(1.0, None)


class OneNumber:
    """The weights, the sum and the noise of a plan about one number."""

    def __init__(self, people: Weighed) -> None:
        self.people: Weighed = people
        self.summed: PreparedSums = people.without_data()
        self.plan: ReleasePlan = people.plan
        self.weights: IntArray = people.weights
        self.shares: FloatArray = people.shares
        self.exponent: int | None = None if people.sum_plan.noiseless else people.sum_plan.exponent
        self.noise_scale: float = people.sum_plan.noise_scale
        self.error: ErrorModel = self.summed.error
        self.blend: Blend = self.summed.blends[0]
        self.total_weight: int = self.summed.sums.total("weight")

    @property
    def privacy_loss(self) -> FloatArray:
        """What everybody loses, as a release states it."""
        return with_rows(self.summed.draw("support"), self.plan, self.people.losses > 0.0).privacy_loss

    def total(self, column: FloatArray) -> int:
        """The integer below the noise."""
        [[total]] = self.summed.totals_of(self.people.sums(np.asarray(column)[:, np.newaxis]))
        return total

    def estimates(self, totals: Sequence[int]) -> list[float]:
        """Each total with noise of its own, in data units."""
        return [values[0][0] for values in self.summed.values([[[total]] for total in totals])]


def weigh(plan: ReleasePlan, present: BoolArray) -> OneNumber:
    """Weigh those present."""
    return OneNumber(weighed(plan, present))
