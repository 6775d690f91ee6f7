"""How much precision a privacy loss supplies in the local setting: with Laplace noise, or by randomised response.

Normal form: losses ``y`` are multiplied by ``V^{1/2}``, precisions ``q`` by ``V``. With Laplace noise
``q = y²/(y² + 2)``; with randomised response, where ``V = 1/4``, ``q = tanh²(y)``. With ``s = 1 − q``, the loss at
which another unit of precision costs ``P/ψ`` solves ``s^p·(1 − s) = c·(ψ/P)²``, whose left side rises up to
``p/(p + 1)``:

* Laplace: ``q' = √2·s^{3/2}·√(1 − s)``, so ``p = 3`` and ``c = 1/2``;
* randomised response: ``q' = 2·s·√(1 − s)``, so ``p = 2`` and ``c = 1/4``.

Below ``q = 1/(p + 1)``, the turn, precision is convex in the loss: a person there is *low*. The solvers have closed
forms for the same roots.
"""

import math
from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from hushbid.common.arrays import FloatArray


class PrecisionCurve(ABC):
    """Precision as a function of the loss, in normal form."""

    power: ClassVar[int]
    """``p``."""

    share: ClassVar[float]
    """``c``."""

    most_useful: ClassVar[float]
    """The ``y`` with the largest ``q/y``."""

    @property
    def turn(self) -> float:
        """Return the ``q`` below which one is low."""
        return 1.0 / (self.power + 1)

    @property
    def peak(self) -> float:
        """Return the largest ``s^p·(1 − s)``."""
        return (1.0 - self.turn) ** self.power * self.turn

    @property
    def steepest(self) -> float:
        """Return the largest ``dq/dy``: below ``P = ψ/steepest`` nobody has a root."""
        return math.sqrt(self.peak / self.share)

    @abstractmethod
    def precision(self, y: float) -> float:
        """Return ``q(y)``."""

    @abstractmethod
    def error(self, y: FloatArray) -> FloatArray:
        """Return ``1/q(y)``."""

    @abstractmethod
    def loss(self, short: FloatArray) -> FloatArray:
        """Return ``y`` from ``1 − q``, to full precision where that is small."""

    @abstractmethod
    def loss_of(self, q: FloatArray) -> FloatArray:
        """Return ``y(q)``, to full precision where ``q`` is small."""

    @abstractmethod
    def price_of_last(self, q: FloatArray) -> FloatArray:
        """Return ``y'(q)``: what the last bit of a precision costs."""

    @abstractmethod
    def loss_alone(self, cost: FloatArray) -> FloatArray:
        """Return the ``y`` at which ``1/q + cost·y`` is least."""

    def short_at(self, ratio: FloatArray) -> FloatArray:
        """Return ``1 − q`` of the high root at ``ψ/P``: Newton's method in a bracket, from its series at either end."""
        p, top = self.power, 1.0 - self.turn
        aim = self.share * np.square(np.minimum(ratio, self.steepest))
        root = np.power(aim, 1.0 / p) if p != 3 else np.cbrt(aim)
        depth = np.sqrt(np.maximum(self.peak - aim, 0.0) / (0.5 * p * top ** (p - 2)))
        near_zero = root < 0.85 * self.peak ** (1.0 / p)
        found = np.where(near_zero, root * (1.0 + root * (1.0 + root) / p), top - depth * (1.0 + 0.89 * depth)).ravel()
        left, s, aim, low = np.arange(found.size), found.copy(), aim.ravel(), root.ravel()
        high, near = np.full(found.size, top), np.zeros(found.size, dtype=bool)
        for _ in range(60):
            power = s * s if p == 3 else s
            excess = power * s * (1.0 - s) - aim
            high, low = np.where(excess >= 0.0, s, high), np.where(excess < 0.0, s, low)
            slope = power * (p - (p + 1) * s)
            ahead = np.where(slope > 0.0, s - excess / slope, s)
            ahead = np.where((ahead >= low) & (ahead <= high), ahead, 0.5 * (low + high))
            found[left] = ahead
            # a step this short doubled the digits; one more, and it is done
            open_ = ~near
            near = (np.abs(ahead - s) <= 1e-8 * s)[open_]
            left, s, aim, low, high = left[open_], ahead[open_], aim[open_], low[open_], high[open_]
            if left.size == 0:
                break
        return found.reshape(ratio.shape)

    def slope(self, short: FloatArray) -> FloatArray:
        """Return ``dq/d log P`` there, from ``d log s·(p − (p + 1)·s)/(1 − s) = −2 d log P``."""
        left = np.maximum(self.power - (self.power + 1) * short, 1e-9)
        return np.where(short < 1.0 - self.turn, 2.0 * short * (1.0 - short) / left, 0.0)


class _Laplace(PrecisionCurve):
    power, share = 3, 0.5
    most_useful = math.sqrt(2.0)

    def precision(self, y: float) -> float:
        return y * y / (y * y + 2.0) if y < math.inf else 1.0

    def error(self, y: FloatArray) -> FloatArray:
        return np.asarray(1.0 + 2.0 / (y * y))

    def loss(self, short: FloatArray) -> FloatArray:
        return np.asarray(np.sqrt(2.0 * (1.0 - short) / short))

    def loss_of(self, q: FloatArray) -> FloatArray:
        return np.asarray(np.sqrt(2.0 * q / (1.0 - q)))

    def price_of_last(self, q: FloatArray) -> FloatArray:
        rest = 1.0 - q
        return np.asarray(1.0 / (np.sqrt(2.0 * q * rest) * rest))

    def loss_alone(self, cost: FloatArray) -> FloatArray:
        return np.asarray(np.cbrt(4.0 / cost))


class _Coin(PrecisionCurve):
    power, share = 2, 0.25
    most_useful = 1.0886594924826534  # sinh 2y = 4y

    def precision(self, y: float) -> float:
        return math.tanh(y) ** 2

    def error(self, y: FloatArray) -> FloatArray:
        return np.asarray(np.tanh(y) ** -2.0)

    def loss(self, short: FloatArray) -> FloatArray:
        return np.asarray(np.log1p(np.sqrt(1.0 - short)) - 0.5 * np.log(short))

    def loss_of(self, q: FloatArray) -> FloatArray:
        return np.asarray(np.arctanh(np.sqrt(q)))

    def price_of_last(self, q: FloatArray) -> FloatArray:
        return np.asarray(0.5 / (np.sqrt(q) * (1.0 - q)))

    def loss_alone(self, cost: FloatArray) -> FloatArray:
        """Return it by halving: ``2(1 − t²)/t³ = cost``, ``t = tanh y``, in logarithms."""
        wanted = np.log(0.5 * cost)
        low, high = np.full(cost.shape, math.log(1e-105)), np.full(cost.shape, math.log(800.0))
        for _ in range(64):
            middle = 0.5 * (low + high)
            y = np.exp(middle)
            gone = np.exp(-2.0 * y)
            log_cosh = y + np.log1p(gone) - math.log(2.0)
            log_tanh = np.log(-np.expm1(-2.0 * y)) - np.log1p(gone)
            more = -2.0 * log_cosh - 3.0 * log_tanh > wanted
            low, high = np.where(more, middle, low), np.where(more, high, middle)
        found = np.exp(0.5 * (low + high))
        return np.where(cost == 0.0, math.inf, np.where(cost == math.inf, 0.0, found))


LAPLACE, COIN = _Laplace(), _Coin()
