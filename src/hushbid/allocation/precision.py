"""How much precision a privacy loss supplies in the local setting: by Laplace noise, or by randomised response.

In normal form (losses divided by ``V^{-1/2}``, precisions by ``1/V``) a person who loses ``y`` supplies ``q(y)``, from
0 to 1, and the error is ``V/Σq``. The solver needs only this curve: rising, first convex, then concave, with a slope
``q'`` that each price ``P`` meets at one root on the concave branch, the *high root*.

- *Laplace noise*, for any datum: ``q = y²/(y² + 2)``, with its inflection at ``q = 1/4``.
- *Randomised response*, for a yes or no: the truth with odds ``e^ε : 1``. The variance of the answer, made unbiased, is
  at most ``coth²(ε/2)/4``, whatever the share of yes; so ``V = 1/4``, ``y = ε/2`` and ``q = tanh²(y)``, with its
  inflection at ``q = 1/3``. With ``t = tanh y``, ``q' = 2t(1 − t²)``, whose high root is a cosine.

**What the solver takes from both** (`local`), with the inflection at ``q = 1/b``: on the convex branch the elasticity
``y·q'/q`` falls, to 3/2 (Laplace) or 1.52 (randomised response, ``4y/sinh 2y``) at the inflection; the logarithm of
``y'(q)`` has the derivative ``(bq − 1)/(2q(1 − q))``, which rises with ``q``, from ``−∞`` through 0 at the inflection;
and ``dq/d ln P`` at a high root is one over that, and falls with ``y``.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hushbid.allocation.problem import TINY
from hushbid.common.arrays import FloatArray

_S = 2.0 * math.sqrt(8.0 / 3.0)
_TURNS = 1e-9  # added where a slope vanishes: at the inflection the root does not move smoothly


class Curve(ABC):
    """Precision as a function of the loss, in normal form."""

    bend: ClassVar[float]  # one over the precision at the inflection
    enough: ClassVar[float]  # what a person who is just worth their cost supplies: nobody supplies less as cheaply

    def __init__(self) -> None:
        turn, enough = np.array(1.0 / self.bend), np.array(self.enough)
        self.turn = float(self.loss(turn))  # the loss at the inflection
        self.steepest = 1.0 / float(self.steepness(turn)[0])  # the slope there, above which there is no root
        # a person is worth their cost at price P exactly if ψ ≤ P times this, the largest q(y)/y
        self.worthwhile = self.enough / float(self.loss(enough))

    @abstractmethod
    def high_root(self, ratio: FloatArray) -> FloatArray:
        """The larger ``y`` with ``q'(y) = ratio``, for ``0 < ratio ≤ steepest``."""

    @abstractmethod
    def precision(self, y: FloatArray) -> FloatArray:
        """``q(y)``."""

    @abstractmethod
    def missing(self, y: FloatArray) -> FloatArray:
        """``1 − q(y)``, to full precision."""

    @abstractmethod
    def loss(self, q: FloatArray) -> FloatArray:
        """The inverse of `precision`."""

    @abstractmethod
    def _steep(self, q: FloatArray) -> FloatArray:
        """``y'(q)``."""

    def steepness(self, q: FloatArray) -> tuple[FloatArray, FloatArray]:
        """``y'(q)``, what the last bit of precision takes, and how its logarithm moves with ``q``."""
        return self._steep(q), (self.bend * q - 1.0) / (2.0 * q * (1.0 - q))

    def change(self, y: FloatArray) -> FloatArray:
        """``dq/d ln P`` at a high root."""
        q = self.precision(y)
        return 2.0 * q * self.missing(y) / (self.bend * q - 1.0 + _TURNS)

    def precisions(self, losses: FloatArray, variance: float) -> FloatArray:
        """One over the variance of what each person sends, for losses that are not in normal form."""
        return self.precision(losses * math.sqrt(variance)) / variance

    def loss_of_equals(self, people: int, variance: float, target: float) -> float:
        """The loss at which so many people, all alike, just reach a mean squared error of ``target``."""
        share = variance / (people * target)
        return float(self.loss(np.array(share))) / math.sqrt(variance) if share < 1.0 else math.inf


class _Laplace(Curve):
    bend, enough = 4.0, 0.5

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
        return 1.0 / (1.0 + 2.0 / y / y)

    def missing(self, y: FloatArray) -> FloatArray:
        return 2.0 / (y * y + 2.0)

    def loss(self, q: FloatArray) -> FloatArray:
        return np.sqrt(2.0 * q / (1.0 - q))

    def _steep(self, q: FloatArray) -> FloatArray:
        rest = 1.0 - q
        return 1.0 / (np.sqrt(2.0 * q * rest) * rest)


class _Response(Curve):
    bend, enough = 3.0, 0.6342344133498707  # at the y with sinh 2y = 4y

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

    def _steep(self, q: FloatArray) -> FloatArray:
        return 0.5 / (np.sqrt(q) * (1.0 - q))


LAPLACE: Curve = _Laplace()  # laplace noise on any datum
RESPONSE: Curve = _Response()  # randomised response to a yes or no question, for a variance of 1/4


@dataclass(frozen=True, slots=True)
class Supply:
    """What people supply who reply to a price as best they can on the concave branch of their curve, up to a cap."""

    curve: Curve
    cap: float  # the most that anybody may lose; infinite if there is no cap
    top: float  # the precision at the cap
    turn: float  # where the concave branch begins: at the inflection, or at a cap below it
    turn_precision: float  # the precision there
    best_loss: float  # where precision per loss, q(y)/y, is largest
    best_precision: float  # the precision there: whoever is worth their cost supplies at least this much

    @classmethod
    def up_to(cls, curve: Curve, cap: float) -> "Supply":
        """The supply of people on this curve with this cap."""
        best = min(float(curve.loss(np.array(curve.enough))), cap)
        losses = np.array([cap, min(curve.turn, cap), best])
        top, low, most = curve.precision(losses).tolist()
        return cls(curve, cap, top, float(losses[1]), low, best, most)

    @property
    def worthwhile(self) -> float:
        """A person is worth their cost at the price ``P`` if it is at most ``P`` times this, the largest ``q(y)/y``."""
        return self.best_precision / self.best_loss

    @property
    def corner(self) -> float:
        """The ratio of cost to price below which a reply is at the cap: 0 if none is, infinite if all are."""
        if self.turn == self.cap:
            return math.inf
        return 1.0 / float(self.curve.steepness(np.array(self.top))[0]) if self.top < 1.0 else 0.0

    @property
    def turn_elasticity(self) -> float:
        """``y·q'/q`` at the turn: the least on the convex branch."""
        steep, _ = self.curve.steepness(np.array(self.turn_precision))
        return self.turn / (self.turn_precision * float(steep))

    def reply(self, ratio: FloatArray) -> FloatArray:
        """The best loss, for a cost of ``ratio`` times the price."""
        root = self.curve.high_root(np.minimum(np.maximum(ratio, TINY), self.curve.steepest))
        y: FloatArray = np.minimum(np.maximum(root, self.turn), self.cap)
        return y

    def terms(self, ratio: FloatArray) -> FloatArray:
        """How much that reply falls short of the cap, what it costs over ``P``, and ``dq/d ln P``, in three rows."""
        y = self.reply(ratio)
        found = np.empty((3, *y.shape))
        below = y < self.cap
        found[0] = np.where(below, self.curve.missing(y) - self.curve.missing(np.array(self.cap)), 0.0)
        np.multiply(ratio, y, out=found[1])
        found[2] = np.where(below & (y > self.turn), self.curve.change(y), 0.0)
        return found
