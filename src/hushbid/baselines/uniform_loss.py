"""One privacy loss for everybody, with truthful payments.

Nobody's bid changes her loss, so the only truthful payment that everybody accepts is the highest price anybody could
name, ``ε·c̄``, c̄ the top of the prior's support. The common loss minimises ``A·MSE + ε·Σ c̄_i``:

    central   MSE = 2/(nε)² + V/n        ε³ = 4A / (n² Σ c̄_i),
    local     MSE = (V + 2/ε²)/n         ε³ = 4A / (n Σ c̄_i),

and where one yes/no question is answered by randomised response, ``MSE = coth²(ε/2)/(4n)``.

Under a prior without a top the price is infinite: treating everybody alike cannot be paid for.
"""

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from hushbid.baselines.baseline import CommonLoss, Decision, best_common_loss, step_rents, unit_error_weight
from hushbid.common.arrays import FloatArray
from hushbid.errors import DivergentPayment
from hushbid.languages import noted
from hushbid.mechanism import Population


@dataclass(frozen=True, slots=True, kw_only=True)
class UniformLoss(CommonLoss):
    """Everybody sells the same loss at the highest price anybody could name."""

    name: ClassVar[str] = noted("the same loss for all")
    truthful: ClassVar[bool] = True
    voluntary: ClassVar[bool] = True

    @classmethod
    def best(cls, population: Population, *, error_weight: float | None = None) -> Self:
        """The common loss of least cost; an error where the support has no top."""
        weight = unit_error_weight(population, error_weight)
        tops = float(np.sum(_tops(population)))
        if tops == np.inf:
            raise DivergentPayment(
                noted("the same loss for all would cost an infinite amount: the prior has no largest cost.")
            )
        noise = 1.0 / population.people**population.setting.noise_power
        return cls(population=population, loss=best_common_loss(population, weight, noise, tops))

    def decide(self, bids: FloatArray) -> Decision:
        tops = _tops(self.population)
        losses = np.where(bids <= tops, self.loss, 0.0)
        return Decision(privacy_loss=losses, rent=step_rents(bids, losses, tops), mse=self.error_of(losses))


def _tops(population: Population) -> FloatArray:
    """Everybody's largest possible cost."""
    return population.per_person(lambda prior: prior.support[1])
