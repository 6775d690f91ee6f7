"""What depends on where noise is added: once by a trusted platform (central), or on each person's device (local).

In the local setting a single yes/no question is answered by randomised response: no noise is added to a number, the
device tells the truth or the opposite by a coin. With the same privacy loss the error is smaller. What is proved of
local payments in docs/concepts/proofs.md needs of the precision ``q`` only that ``y·q' ≤ 2q``, which holds for both.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from hushbid.allocation.precision import LAPLACE, RESPONSE, Curve
from hushbid.common.arrays import FloatArray
from hushbid.estimation import Setting as SettingName
from hushbid.questions import Question, one_yes_no

_LOCAL, _LOCAL_RESPONSE = 2.22, 1.226
"""Local losses add up to at most this times ``V^{1/4}·√(A/ψ)``, with randomised response this times ``√(A/ψ)``, unless
there is one seller only."""


@dataclass(frozen=True, slots=True, eq=False)
class Setting:
    """One of the two settings; all numbers are for a data range of width 1."""

    name: SettingName
    """What it is called."""

    curve: Curve | None = field(default=None, repr=False)
    """The precision that a loss supplies where people add noise themselves; None in the central setting."""

    @property
    def sends_messages(self) -> bool:
        """Whether people deliver messages that carry their noise already, not data."""
        return self.curve is not None

    @property
    def response(self) -> bool:
        """Whether people answer yes or no by randomised response instead of adding noise."""
        return isinstance(self.curve, type(RESPONSE))

    @property
    def identity_decides(self) -> bool:
        """Whether some of several people with equal virtual costs may be bought from and others not."""
        return self.sends_messages

    @property
    def noise_power(self) -> int:
        """The noise in the plain mean of k sellers with equal losses falls like k to this power."""
        return 1 if self.sends_messages else 2

    @property
    def loss_rounding(self) -> float:
        """Privacy losses are right to this relative error; local ones come from a Newton step of 4e-6."""
        return 1e-10 if self.sends_messages else 1e-12

    @property
    def other(self) -> SettingName:
        """The other setting's name."""
        return "central" if self.sends_messages else "local"

    def hardest_to_release(self, losses: FloatArray) -> float:
        """The loss, of those bought, that decides whether anything can be released."""
        return float(losses.min() if self.sends_messages else losses.max())

    def most_loss(self, error_weight: float, cheapest: float, variance: float | FloatArray) -> float:
        """What all privacy losses add up to at most, if nobody's virtual cost is below ``cheapest``."""
        sole = self.sole_loss(error_weight, cheapest)
        if not self.sends_messages:
            return sole
        # several may lose more together
        factor = _LOCAL_RESPONSE if self.response else _LOCAL * math.pow(float(np.max(variance)), 0.25)
        return max(sole, factor * math.sqrt(error_weight / cheapest))

    def sole_loss(self, error_weight: float, cost: float) -> float:
        """What the only seller loses at this virtual cost; nobody loses more at theirs."""
        if self.response:
            return _sole_response(8.0 * cost / error_weight)
        return float((4.0 * error_weight / cost) ** (1.0 / 3.0))

    def sole_cost(self, error_weight: float, loss: float) -> float:
        """The virtual cost at which the only seller has this loss: the inverse of `sole_loss`."""
        if self.response:  # A(1 − t²)/(4t³), t = tanh(loss/2)
            half = 0.5 * loss
            return error_weight * math.exp(math.log(math.tanh(half)) * -3.0 - 2.0 * _log_cosh(half)) / 4.0
        return 4.0 * error_weight / loss**3

    def loss_of_equals(self, people: int, variance: float, target: float) -> float:
        """What so many people, all alike, lose together where they just reach an error of ``target``."""
        if self.response:
            return people * RESPONSE.loss_of_equals(people, variance, target)
        noise = math.sqrt(2.0 / (target - variance / people))
        return noise * math.pow(people, 1.0 - 0.5 * self.noise_power)

    def payment_factor(self, slope: float) -> float:
        """What is paid for data, at most, over the largest objective, where ψ rises with at least this slope."""
        if self.sends_messages:
            return 2.0 / 3.0 + 1.0 / (3.0 * slope)
        return max(2.0 / slope, 2.0 / 3.0 + 2.0 / (3.0 * slope))


def _log_cosh(x: float) -> float:
    """``log cosh x`` for a nonnegative x of any size."""
    return x + math.log1p(math.exp(-2.0 * x)) - math.log(2.0)


CENTRAL, LOCAL, RANDOMISED_RESPONSE = Setting("central"), Setting("local", LAPLACE), Setting("local", RESPONSE)


def strategy_of(setting: SettingName, questions: Sequence[Question] | None) -> Setting:
    """What a market in that setting does: randomised response where one yes/no question is asked locally."""
    if setting == "central":
        return CENTRAL
    return RANDOMISED_RESPONSE if one_yes_no(questions or ()) else LOCAL


def _sole_response(cost: float) -> float:
    """Return the loss at which ``A(1 − t²)/(4t³)`` is a virtual cost of ``A/8`` times this, with ``t = tanh(loss/2)``.

    With ``1/t = 1 + s`` that is ``4s + 6s² + 2s³ = cost``: by Newton's method from above.
    """
    s = min(0.25 * cost, float(np.cbrt(0.5 * cost)))
    for _ in range(60):
        step = (s * (4.0 + s * (6.0 + 2.0 * s)) - cost) / (4.0 + s * (12.0 + 6.0 * s))
        s -= step
        if not step > 1e-16 * s:
            break
    return math.log1p(2.0 / s)
