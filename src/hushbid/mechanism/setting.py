"""What depends on where noise is added: once by a trusted platform (central), or on each person's device (local).

The solvers, estimators and releases of the two settings are chosen by name in their own packages. What the mechanism
itself must know about a setting is here, once.
"""

import math
from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from hushbid.arrays import FloatArray
from hushbid.estimation import Setting as SettingName

_LOCAL = 2.22
"""Local losses add up to at most this times ``V^{1/4}·√(A/ψ)``, unless there is one seller only."""


class Setting(ABC):
    """One of the two settings; all numbers are for a data range of width 1."""

    name: ClassVar[SettingName]
    """What it is called."""

    noise_power: ClassVar[int]
    """The noise in the plain mean of k sellers with equal losses falls like k to this power."""

    sends_messages: ClassVar[bool]
    """Whether people deliver messages that carry their noise already, not data."""

    one_variance: ClassVar[bool]
    """Whether everybody's variance must be the same."""

    loss_rounding: ClassVar[float]
    """Privacy losses are right to this relative error."""

    @property
    def other(self) -> SettingName:
        """The other setting's name."""
        return "central" if self.sends_messages else "local"

    @abstractmethod
    def identity_decides(self, variance: float | FloatArray) -> bool:
        """Whether some of several people with equal virtual costs may be bought from and others not."""

    @abstractmethod
    def hardest_to_release(self, losses: FloatArray) -> float:
        """The loss, of those bought, that decides whether anything can be released."""

    @abstractmethod
    def most_loss(self, error_weight: float, cheapest: float, variance: float | FloatArray) -> float:
        """What all privacy losses add up to at most, if nobody's virtual cost is below ``cheapest``."""

    @abstractmethod
    def payment_factor(self, slope: float) -> float:
        """What is paid for data, at most, over the largest objective, where ψ rises with at least this slope."""


class Central(Setting):
    """One sum, one draw of noise."""

    name: ClassVar[SettingName] = "central"
    noise_power: ClassVar[int] = 2
    sends_messages: ClassVar[bool] = False
    one_variance: ClassVar[bool] = False
    loss_rounding: ClassVar[float] = 1e-12

    def identity_decides(self, variance: float | FloatArray) -> bool:
        return not np.all(variance)

    def hardest_to_release(self, losses: FloatArray) -> float:
        return float(losses.max())

    def most_loss(self, error_weight: float, cheapest: float, variance: float | FloatArray) -> float:
        return float((4.0 * error_weight / cheapest) ** (1.0 / 3.0))

    def payment_factor(self, slope: float) -> float:
        return max(2.0 / slope, 2.0 / 3.0 + 2.0 / (3.0 * slope))


class Local(Setting):
    """Everybody's own noisy value."""

    name: ClassVar[SettingName] = "local"
    noise_power: ClassVar[int] = 1
    sends_messages: ClassVar[bool] = True
    one_variance: ClassVar[bool] = True
    loss_rounding: ClassVar[float] = 1e-10  # losses come from a Newton step of 4e-6

    def identity_decides(self, variance: float | FloatArray) -> bool:
        return True

    def hardest_to_release(self, losses: FloatArray) -> float:
        return float(losses.min())

    def most_loss(self, error_weight: float, cheapest: float, variance: float | FloatArray) -> float:
        # one seller's loss at the smallest cost; several may lose more together
        alone = float((4.0 * error_weight / cheapest) ** (1.0 / 3.0))
        spread: float = float(np.max(variance))
        return float(max(alone, _LOCAL * spread**0.25 * math.sqrt(error_weight / cheapest)))

    def payment_factor(self, slope: float) -> float:
        return 2.0 / 3.0 + 1.0 / (3.0 * slope)


CENTRAL, LOCAL = Central(), Local()
SETTINGS: dict[SettingName, Setting] = {"central": CENTRAL, "local": LOCAL}
"""The strategy of each setting."""
