"""How much precision a privacy loss supplies in the local setting: by Laplace noise, or by randomised response.

In normal form (losses divided by ``V^{-1/2}``, precisions by ``1/V``) somebody who loses ``y`` supplies ``q(y)``, from
0 to 1, and the error is ``V/Σq``. All local solvers need of the noise is this curve: rising, first convex ("low"), then
concave ("high"), with a slope ``q'`` that each price ``P`` meets at one high root.

- *Laplace noise*, for any datum: ``q = y²/(y² + 2)``, which turns at ``q = 1/4``.
- *Randomised response*, for a yes or no: the truth with odds ``e^ε : 1``. The answer's variance, made unbiased, is at
  most ``coth²(ε/2)/4``, whatever the share of yes; so ``V = 1/4``, ``y = ε/2`` and ``q = tanh²(y)``, which turns at
  ``q = 1/3``. With ``t = tanh y``, ``q' = 2t(1 − t²)``, whose high root is a cosine.

**What both share.** The active are the cheapest, at most one is low, and with a price for the error nobody is if three
or more are active: keeping her would need an elasticity ``y·q'/q`` of at most 3/2, and on the convex part it is above
1.52 (randomised response: ``4y/sinh 2y``). Nor is the second of two with randomised response: it takes an elasticity of
at most ``1 + q_2/q_1`` to be kept, so ``q_2 ≥ 0.52·q_1``, and on all such pairs the first alone is better by 5 per cent
(a region of two dimensions, searched in ``tests/allocation/test_local_response.py``). What `local_accuracy` says of the
last person holds too: ``σ = 2q(1 − q)/|3q − 1|`` grows as ``2/3 + 4/(27u²)``, ``u = q − 1/3``, and since
``q(1 − q)²`` is ``4/27 − u² + u³``, the high root of a cheaper person is further from ``1/3`` than the low root of a
dearer one.
"""

import math
from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from hushbid.allocation.problem import TINY, Problem
from hushbid.arrays import FloatArray

_S = 2.0 * math.sqrt(8.0 / 3.0)
_TURNS = 1e-9
"""Added where a slope vanishes: at the turn the root does not move smoothly."""


class Curve(ABC):
    """Precision as a function of the loss, in normal form."""

    steepest: ClassVar[float]
    """The largest slope of ``q``: above it there is no root."""

    worthwhile: ClassVar[float]
    """Somebody is worth her cost at price ``P`` exactly if ``ψ ≤ P`` times this, the largest ``q(y)/y``."""

    enough: ClassVar[float]
    """What somebody just worthwhile supplies: nobody supplies less as cheaply."""

    turn: ClassVar[float]
    """The loss where the slope is steepest: below it one is low, above it high."""

    @abstractmethod
    def high_root(self, ratio: FloatArray) -> FloatArray:
        """The larger ``y`` with ``q'(y) = ratio``, for ``0 < ratio ≤ steepest``."""

    @abstractmethod
    def precision(self, y: FloatArray) -> FloatArray:
        """``q(y)``."""

    @abstractmethod
    def loss(self, q: FloatArray) -> FloatArray:
        """The inverse of `precision`."""

    @abstractmethod
    def steepness(self, q: FloatArray) -> tuple[FloatArray, FloatArray]:
        """``y'(q)``, what the last bit of precision takes, and how its logarithm moves with ``q``."""

    @abstractmethod
    def change(self, y: FloatArray, q: FloatArray) -> FloatArray:
        """``dq/d ln P`` at a high root."""

    @abstractmethod
    def alone(self, cost: FloatArray) -> FloatArray:
        """The ``y`` at which ``1/q + cost·y`` is least, for positive costs."""

    @abstractmethod
    def precisions(self, losses: FloatArray, variance: float) -> FloatArray:
        """One over the variance of what each person sends, for losses that are not in normal form."""

    @abstractmethod
    def loss_of_equals(self, people: int, variance: float, target: float) -> float:
        """The loss at which so many people, all alike, just reach a mean squared error of ``target``."""

    def terms(self, ratio: FloatArray) -> FloatArray:
        """``1 − q``, ``ψ·y/P`` and ``dq/d ln P`` at the high root for ``ψ/P``, in three rows."""
        ratio = np.clip(ratio, TINY, self.steepest)
        y = self.high_root(ratio)
        q = self.precision(y)
        return np.stack([self.missing(y), ratio * y, self.change(y, q)])

    @abstractmethod
    def missing(self, y: FloatArray) -> FloatArray:
        """``1 − q(y)``, to full precision."""


class _Laplace(Curve):
    steepest = 3.0 * math.sqrt(3.0) / (8.0 * math.sqrt(2.0))
    worthwhile = 1.0 / (2.0 * math.sqrt(2.0))
    enough = 0.5
    turn = math.sqrt(2.0 / 3.0)

    def high_root(self, ratio: FloatArray) -> FloatArray:
        """In closed form: with ``z = √y`` it is the quartic ``z⁴ − b·z + 2 = 0``, ``b = 2/√ratio``, whose resolvent
        ``s³ − 8s − b² = 0`` has one positive root, a hyperbolic cosine.
        """
        s = _S * np.cosh(np.arccosh(np.maximum(self.steepest / ratio, 1.0)) / 3.0)
        root = np.sqrt(s)
        z = 0.5 * (root + np.sqrt(np.maximum(4.0 / (np.sqrt(ratio) * root) - s, 0.0)))
        y: FloatArray = z * z
        return y

    def precision(self, y: FloatArray) -> FloatArray:
        square = y * y
        return square / (square + 2.0)

    def missing(self, y: FloatArray) -> FloatArray:
        return 2.0 / (y * y + 2.0)

    def loss(self, q: FloatArray) -> FloatArray:
        return np.sqrt(2.0 * q / (1.0 - q))

    def steepness(self, q: FloatArray) -> tuple[FloatArray, FloatArray]:
        rest = 1.0 - q
        return 1.0 / (np.sqrt(2.0 * q * rest) * rest), (4.0 * q - 1.0) / (2.0 * q * rest)

    def change(self, y: FloatArray, q: FloatArray) -> FloatArray:
        return 4.0 * q / (3.0 * y * y - 2.0 + _TURNS)

    def alone(self, cost: FloatArray) -> FloatArray:
        return np.cbrt(4.0 / cost)

    def precisions(self, losses: FloatArray, variance: float) -> FloatArray:
        return 1.0 / (variance + 2.0 / losses / losses)

    def loss_of_equals(self, people: int, variance: float, target: float) -> float:
        slack = people * target - variance
        return math.sqrt(2.0 / slack) if slack > 0.0 else math.inf


class _Response(Curve):
    steepest = 4.0 / (3.0 * math.sqrt(3.0))
    worthwhile = 0.5825829083651485  # at the y with sinh 2y = 4y
    enough = 0.6342344133498707
    turn = math.atanh(1.0 / math.sqrt(3.0))

    def high_root(self, ratio: FloatArray) -> FloatArray:
        """``t = (2/√3)·cos(arccos(−r)/3)`` with ``r`` the ratio to the steepest."""
        share = np.minimum(ratio / self.steepest, 1.0)
        # arccos(−r) = π/2 + arcsin(r), and cos(π/6 + a) = (√3/2)·cos a − sin a/2: so t is 1 less what is short
        angle = np.arcsin(share) / 3.0
        short = 1.0 - np.cos(angle) + np.sin(angle) / math.sqrt(3.0)  # 1 − t
        y: FloatArray = 0.5 * np.log((2.0 - short) / short)
        return y

    def precision(self, y: FloatArray) -> FloatArray:
        t = np.tanh(y)
        return t * t

    def missing(self, y: FloatArray) -> FloatArray:
        with np.errstate(over="ignore"):
            return np.cosh(y) ** -2.0

    def loss(self, q: FloatArray) -> FloatArray:
        return np.arctanh(np.sqrt(q))

    def steepness(self, q: FloatArray) -> tuple[FloatArray, FloatArray]:
        rest = 1.0 - q
        return 0.5 / (np.sqrt(q) * rest), (3.0 * q - 1.0) / (2.0 * q * rest)

    def change(self, y: FloatArray, q: FloatArray) -> FloatArray:
        return 2.0 * q * self.missing(y) / (3.0 * q - 1.0 + _TURNS)

    def alone(self, cost: FloatArray) -> FloatArray:
        """``cost·t³ + 2t² = 2``; with ``1/t = 1 + s`` that is ``4s + 6s² + 2s³ = cost``: by Newton from above."""
        s = np.minimum(0.25 * cost, np.cbrt(0.5 * cost))
        for _ in range(60):
            step = (s * (4.0 + s * (6.0 + 2.0 * s)) - cost) / (4.0 + s * (12.0 + 6.0 * s))
            s = s - step
            if not (step > 1e-16 * s).any():
                break
        y: FloatArray = 0.5 * np.log1p(2.0 / s)
        return y

    def precisions(self, losses: FloatArray, variance: float) -> FloatArray:
        return self.precision(0.5 * losses) / variance

    def loss_of_equals(self, people: int, variance: float, target: float) -> float:
        share = variance / (people * target)
        return 2.0 * math.atanh(math.sqrt(share)) if share < 1.0 else math.inf


LAPLACE: Curve = _Laplace()
"""Laplace noise on any datum."""

RESPONSE: Curve = _Response()
"""Randomised response to a yes or no question, for a variance of 1/4."""


def curve_of(problem: Problem) -> Curve:
    """The noise that people add in this problem."""
    return RESPONSE if problem.response else LAPLACE
