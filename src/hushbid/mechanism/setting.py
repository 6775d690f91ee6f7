"""What depends on where noise is added: once by a trusted platform (central), or on each person's device (local).

In the local setting a single yes/no question is answered by randomised response: no noise is added to a number, the
device tells the truth or the opposite by a coin. With the same privacy loss the error is smaller.

The solvers, estimators and releases of the two settings are chosen by name in their own packages. What the mechanism
itself must know about a setting is here, once.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from hushbid.allocation.local_curves import RESPONSE
from hushbid.common.arrays import FloatArray
from hushbid.estimation import Setting as SettingName
from hushbid.questions import Question, one_yes_no

_LOCAL = 2.22
"""Local losses add up to at most this times ``V^{1/4}·√(A/ψ)``, unless there is one seller only."""

_LOCAL_RESPONSE = 1.226
"""With randomised response they add up to at most this times ``√(A/ψ)``, with the same exception."""


class Setting(ABC):
    """One of the two settings; all numbers are for a data range of width 1."""

    name: ClassVar[SettingName]
    """What it is called."""

    noise_power: ClassVar[int]
    """The noise in the plain mean of k sellers with equal losses falls like k to this power."""

    sends_messages: ClassVar[bool]
    """Whether people deliver messages that carry their noise already, not data."""

    identity_decides: ClassVar[bool]
    """Whether some of several people with equal virtual costs may be bought from and others not."""

    loss_rounding: ClassVar[float]
    """Privacy losses are right to this relative error."""

    response: ClassVar[bool] = False
    """Whether people answer yes or no by randomised response instead of adding noise."""

    @property
    def other(self) -> SettingName:
        """The other setting's name."""
        return "central" if self.sends_messages else "local"

    @abstractmethod
    def hardest_to_release(self, losses: FloatArray) -> float:
        """The loss, of those bought, that decides whether anything can be released."""

    @abstractmethod
    def most_loss(self, error_weight: float, cheapest: float, variance: float | FloatArray) -> float:
        """What all privacy losses add up to at most, if nobody's virtual cost is below ``cheapest``."""

    def sole_loss(self, error_weight: float, cost: float) -> float:
        """What the only seller loses at this virtual cost; nobody loses more at theirs."""
        return float((4.0 * error_weight / cost) ** (1.0 / 3.0))

    def sole_cost(self, error_weight: float, loss: float) -> float:
        """The virtual cost at which the only seller has this loss: the inverse of `sole_loss`."""
        return 4.0 * error_weight / loss**3

    def loss_of_equals(self, people: int, variance: float, target: float) -> float:
        """What so many people, all alike, lose together where they just reach an error of ``target``."""
        noise = math.sqrt(2.0 / (target - variance / people))
        return noise * math.pow(people, 1.0 - 0.5 * self.noise_power)

    @abstractmethod
    def payment_factor(self, slope: float) -> float:
        """What is paid for data, at most, over the largest objective, where ψ rises with at least this slope."""


class Central(Setting):
    """One sum, one draw of noise."""

    name: ClassVar[SettingName] = "central"
    noise_power: ClassVar[int] = 2
    sends_messages: ClassVar[bool] = False
    identity_decides: ClassVar[bool] = False
    loss_rounding: ClassVar[float] = 1e-12

    def hardest_to_release(self, losses: FloatArray) -> float:
        return float(losses.max())

    def most_loss(self, error_weight: float, cheapest: float, variance: float | FloatArray) -> float:
        return self.sole_loss(error_weight, cheapest)

    def payment_factor(self, slope: float) -> float:
        return max(2.0 / slope, 2.0 / 3.0 + 2.0 / (3.0 * slope))


class Local(Setting):
    """Everybody's own noisy value."""

    name: ClassVar[SettingName] = "local"
    noise_power: ClassVar[int] = 1
    sends_messages: ClassVar[bool] = True
    identity_decides: ClassVar[bool] = True
    loss_rounding: ClassVar[float] = 1e-10  # losses come from a Newton step of 4e-6

    def hardest_to_release(self, losses: FloatArray) -> float:
        return float(losses.min())

    def most_loss(self, error_weight: float, cheapest: float, variance: float | FloatArray) -> float:
        # one seller's loss at the smallest cost; several may lose more together
        several = _LOCAL * math.pow(float(np.max(variance)), 0.25) * math.sqrt(error_weight / cheapest)
        return max(self.sole_loss(error_weight, cheapest), several)

    def payment_factor(self, slope: float) -> float:
        return 2.0 / 3.0 + 1.0 / (3.0 * slope)


class Response(Local):
    """Everybody's own answer to one yes/no question, true or false by a coin.

    What is proved of local payments in docs/explanation/proofs.md needs of the precision ``q`` only that
    ``y·q' ≤ 2q``; here ``y·q'/q = 2y/sinh y``.
    """

    response: ClassVar[bool] = True

    def most_loss(self, error_weight: float, cheapest: float, variance: float | FloatArray) -> float:
        return max(self.sole_loss(error_weight, cheapest), _LOCAL_RESPONSE * math.sqrt(error_weight / cheapest))

    def sole_loss(self, error_weight: float, cost: float) -> float:
        return 2.0 * float(RESPONSE.alone(np.array([8.0 * cost / error_weight]))[0])

    def sole_cost(self, error_weight: float, loss: float) -> float:
        # A(1 − t²)/(4t³), t = tanh(loss/2)
        half = 0.5 * loss
        return error_weight * math.exp(math.log(math.tanh(half)) * -3.0 - 2.0 * _log_cosh(half)) / 4.0

    def loss_of_equals(self, people: int, variance: float, target: float) -> float:
        return people * RESPONSE.loss_of_equals(people, variance, target)


def _log_cosh(x: float) -> float:
    """``log cosh x`` for a nonnegative x of any size."""
    return x + math.log1p(math.exp(-2.0 * x)) - math.log(2.0)


CENTRAL, LOCAL, RANDOMISED_RESPONSE = Central(), Local(), Response()
SETTINGS: dict[SettingName, Setting] = {"central": CENTRAL, "local": LOCAL}
"""The strategy of each setting, where noise is added to a number."""


def strategy_of(setting: SettingName, questions: Sequence[Question] | None) -> Setting:
    """What a market in that setting does: randomised response where one yes/no question is asked locally."""
    return RANDOMISED_RESPONSE if setting == "local" and one_yes_no(questions or ()) else SETTINGS[setting]
