"""How much precision a privacy loss supplies in the local setting: by Laplace noise, or by randomised response.

In normal form (losses divided by ``V^{-1/2}``, precisions by ``1/V``) a person who loses ``y`` supplies ``q(y)``, from
0 to 1, and the error is ``V/Σq``. The solver needs only this curve: rising, first convex, then concave, with a slope
``q'`` that each price ``P`` meets at one root on the concave branch, the *high root*.

- *Laplace noise*, for any datum: ``q = y²/(y² + 2)``, with its inflection at ``q = 1/4``.
- *Randomised response*, for a yes or no: the truth with odds ``e^ε : 1``. The variance of the answer, made unbiased, is
  at most ``coth²(ε/2)/4``, whatever the share of yes; so ``V = 1/4``, ``y = ε/2`` and ``q = tanh²(y)``, with its
  inflection at ``q = 1/3``. With ``t = tanh y``, ``q' = 2t(1 − t²)``, whose high root is a cosine.

**What the solver takes from both** (`local`): on the convex branch the elasticity ``y·q'/q`` falls, to 3/2 (Laplace)
or 1.52 (randomised response, ``4y/sinh 2y``) at the inflection; ``dq/d ln P`` at a high root falls with ``y``
(Laplace ``2q(1 − q)/(4q − 1)``, randomised response ``2q(1 − q)/(3q − 1)``); and the logarithm of ``y'(q)`` has a
derivative that rises with ``q``, from ``−∞`` through 0 at the inflection.
"""

import math
from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from hushbid.allocation.problem import Problem
from hushbid.common.arrays import FloatArray

_S = 2.0 * math.sqrt(8.0 / 3.0)
_TURNS = 1e-9  # added where a slope vanishes: at the inflection the root does not move smoothly


class Curve(ABC):
    """Precision as a function of the loss, in normal form."""

    steepest: ClassVar[float]  # the largest slope of q: above it there is no root
    worthwhile: ClassVar[float]
    """A person is worth their cost at price ``P`` exactly if ``ψ ≤ P`` times this, the largest ``q(y)/y``."""

    enough: ClassVar[float]  # what a person who is just worth their cost supplies: nobody supplies less as cheaply
    turn: ClassVar[float]  # the loss at the inflection, where the slope is steepest

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
    def change(self, y: FloatArray) -> FloatArray:
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
        return 1.0 / (1.0 + 2.0 / (y * y))

    def missing(self, y: FloatArray) -> FloatArray:
        return 2.0 / (y * y + 2.0)

    def loss(self, q: FloatArray) -> FloatArray:
        return np.sqrt(2.0 * q / (1.0 - q))

    def steepness(self, q: FloatArray) -> tuple[FloatArray, FloatArray]:
        rest = 1.0 - q
        return 1.0 / (np.sqrt(2.0 * q * rest) * rest), (4.0 * q - 1.0) / (2.0 * q * rest)

    def change(self, y: FloatArray) -> FloatArray:
        # 4q/(3y² − 2), in a form that also holds where y² is more than can be computed with
        return 4.0 / ((1.0 + 2.0 / (y * y)) * (3.0 * y * y - 2.0 + _TURNS))

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

    def change(self, y: FloatArray) -> FloatArray:
        q = self.precision(y)
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


LAPLACE: Curve = _Laplace()  # laplace noise on any datum
RESPONSE: Curve = _Response()  # randomised response to a yes or no question, for a variance of 1/4


def curve_of(problem: Problem) -> Curve:
    """The noise that people add in this problem."""
    return RESPONSE if problem.response else LAPLACE
