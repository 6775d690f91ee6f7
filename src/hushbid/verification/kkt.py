"""Whether a central purchase is optimal, judged by its optimality conditions alone: any goal, caps, strata, variances.

With multipliers ``a`` of the error ``N = (2 + Σ Vε²)/η²`` and ``b`` of the expense ``C = Σ ψε``, everybody has a
marginal cost ``m_i = 2a·V_iε_i/η² + b·ψ_i``. A purchase is stationary if, in each stratum ``g``, those bought from have
no larger one than those below their caps (``low_g ≤ high_g``), strata are in proportion, and ``η`` balances noise
against all that is paid for it: ``4a/η³ = b·C/η + Σ (ε_i/η)(λ_g − m_i)`` over those at their caps, for water levels
``λ_g`` between ``low_g`` and ``high_g``. A price has ``a = A, b = 1``. An error or an expense that is met leaves one
multiplier unknown: the largest violation is convex in it and is minimised; a budget that cannot be spent has ``b = 0``.
An error and a budget are convex problems, for which stationary means optimal. A price needs a lower bound, too.
"""

import math
from dataclasses import dataclass

import numpy as np

from hushbid.common.arrays import BoolArray, FloatArray, IndexArray

_AT_CAP = 1.0 - 1e-12
_STEPS = 90
_LOOKED_AT = 2000
_LOG_ODDS = -40.0, 80.0


@dataclass(frozen=True, slots=True, eq=False)
class Purchase:
    """What was bought, for a range of width 1; losses are finite and every stratum has some."""

    costs: FloatArray
    variance: FloatArray
    caps: FloatArray
    codes: IndexArray
    sizes: FloatArray
    losses: FloatArray

    @property
    def strengths(self) -> FloatArray:
        """Return ``Σε/|ℓ|`` of each stratum, which must be one number."""
        return np.asarray(np.bincount(self.codes, weights=self.losses, minlength=self.sizes.size) / self.sizes)

    @property
    def eta(self) -> float:
        """Return that number."""
        return float(self.strengths.mean())

    @property
    def mse(self) -> float:
        """Return the error."""
        return (2.0 + float((self.variance * self.losses**2).sum())) / self.eta**2

    @property
    def expense(self) -> float:
        """Return what virtual costs come to."""
        sold = self.losses > 0.0
        return float(self.costs[sold] @ self.losses[sold])


@dataclass(frozen=True, slots=True, eq=False)
class Residuals:
    """By how much the conditions fail, relative to what they compare."""

    levels: FloatArray
    """In each stratum."""

    balance: float
    strength: float
    """How far the strata are from one ``η``."""

    losses: FloatArray
    """Everybody's distance from the loss that the water level says, in money of a unit of loss: see `rounding`."""

    rounding: FloatArray
    """The change of everybody's loss if the water level changed by itself: what its last digits are worth."""


class Conditions:
    """The conditions of one purchase, as functions of the multipliers."""

    def __init__(self, purchase: Purchase) -> None:
        self._p, self._eta, self._expense = purchase, purchase.eta, purchase.expense
        p, eta = purchase, self._eta
        order = np.argsort(p.codes, kind="stable")
        on, below = p.losses > 0.0, (p.losses < p.caps * _AT_CAP) & (p.costs < math.inf)
        self._error = 2.0 * p.variance * p.losses / eta**2
        costs = np.where(p.costs < math.inf, p.costs, 0.0)
        self._on = _Largest(order[on[order]], p, self._error, costs)
        self._below = _Largest(order[below[order]], p, -self._error, -costs)
        capped = np.flatnonzero(on & ~below)
        count, share = p.sizes.size, p.losses[capped] / eta
        self._capped = np.bincount(p.codes[capped], weights=share, minlength=count)
        """``Σ ε/η`` over those at their caps, and the same times what ``a`` and ``b`` are multiplied by."""

        self._capped_error = float(share @ self._error[capped])
        self._capped_cost = float(share @ p.costs[capped])

    def levels(self, a: float, b: float) -> tuple[FloatArray, FloatArray]:
        """Return ``low_g`` and ``high_g``."""
        return self._on.at(a, b), -self._below.at(a, b)

    def balance(self, a: float, b: float, low: FloatArray, high: FloatArray) -> tuple[float, float]:
        """Return by how much ``η`` is too small at the lowest levels, and too large at the highest."""
        eta = self._eta
        noise, paid = 4.0 * a / eta**3, b * self._expense / eta - a * self._capped_error - b * self._capped_cost
        some = self._capped > 0.0
        least = paid + float(low[some] @ self._capped[some]) - noise
        most = noise - paid - float(high[some] @ self._capped[some])
        return least, most

    def residuals(self, a: float, b: float) -> Residuals:
        """Return by how much the conditions fail."""
        p, eta = self._p, self._eta
        low, high = self.levels(a, b)
        scale = np.maximum(low, 1e-320)
        least, most = self.balance(a, b, low, high)
        weigh = 4.0 * a / eta**3 + b * self._expense / eta
        level = np.where(low > high, 0.5 * (low + high), low)[p.codes]
        with np.errstate(all="ignore"):
            slope = eta**2 / (2.0 * a * p.variance)
            expected = np.clip(np.where(p.costs < math.inf, (level - b * p.costs) * slope, 0.0), 0.0, p.caps)
            spread = float((np.abs(p.strengths - eta) / eta).max())
        levels = np.where(high < math.inf, (low - high) / scale, 0.0)
        return Residuals(
            np.maximum(levels, 0.0),
            max(least, most, 0.0) / weigh if weigh > 0.0 else 0.0,
            spread,
            np.abs(p.losses - expected) if a > 0.0 else np.zeros(p.losses.size),
            np.asarray(level * slope) if a > 0.0 else np.zeros(p.losses.size),
        )

    def multipliers(self) -> tuple[float, float]:
        """Return the ``a`` and ``b`` at which the largest violation is least.

        Of very many people some are looked at, and then whoever is violated most among all, until nobody is added.
        """
        on, below = self._on, self._below
        looked_at = np.zeros(self._p.costs.size, dtype=bool)
        looked_at[:: max(looked_at.size // _LOOKED_AT, 1)] = True
        for a, b in ((1.0, 0.0), (0.0, 1.0)):
            looked_at[on.rows_at(a, b)] = looked_at[below.rows_at(a, b)] = True
        for _ in range(_STEPS):
            self._on, self._below = on.among(looked_at), below.among(looked_at)
            a, b = self._least_violation()
            worst = np.concatenate([on.rows_at(a, b), below.rows_at(a, b)])
            if looked_at[worst].all():
                break
            looked_at[worst] = True
        self._on, self._below = on, below
        return a, b

    def _least_violation(self) -> tuple[float, float]:
        """Return the multipliers for whoever is looked at.

        With ``a = t·η³/4`` and ``b = (1 − t)·η/C`` every violation is the largest of functions that are linear in
        ``t``, so it has one valley, also in the logarithm of ``t/(1 − t)``: golden sections find it.
        """
        eta = self._eta
        full = (eta**3 / 4.0, eta / self._expense)
        ends = [self.levels(full[0], 0.0)[0], self.levels(0.0, full[1])[0]]
        scale = 1.0 / np.maximum(*ends)

        def shares(odds: float) -> tuple[float, float]:
            return 1.0 / (1.0 + math.exp(-odds)), 1.0 / (1.0 + math.exp(odds))

        def violation(odds: float) -> float:
            a, b = (share * one for share, one in zip(shares(odds), full, strict=True))
            low, high = self.levels(a, b)
            worst = (np.where(high < math.inf, low - high, -math.inf) * scale).max()
            return float(max(worst, *self.balance(a, b, low, high)))

        left, right, best, known = *_LOG_ODDS, (math.inf, 0.0), {}
        ratio = 0.5 * (math.sqrt(5.0) - 1.0)
        for _ in range(_STEPS):
            inner = right - ratio * (right - left), left + ratio * (right - left)
            for odds in inner:
                if odds not in known:
                    known[odds] = violation(odds)
                best = min(best, (known[odds], odds))
            left, right = (left, inner[1]) if known[inner[0]] <= known[inner[1]] else (inner[0], right)
        a, b = shares(best[1])
        return a * full[0], b * full[1]


class _Largest:
    """The largest ``a·error + b·costs`` in each stratum, over some people, sorted by stratum."""

    def __init__(self, rows: IndexArray, purchase: Purchase, error: FloatArray, costs: FloatArray) -> None:
        codes = purchase.codes[rows]
        self._given = purchase, error, costs
        self._rows, self._error, self._costs = rows, error[rows], costs[rows]
        self._first = np.flatnonzero(np.diff(codes, prepend=-1))
        self._codes, self._count = codes[self._first], purchase.sizes.size

    def at(self, a: float, b: float) -> FloatArray:
        found = np.full(self._count, -math.inf)
        if self._rows.size:
            found[self._codes] = np.maximum.reduceat(a * self._error + b * self._costs, self._first)
        return found

    def rows_at(self, a: float, b: float) -> IndexArray:
        """Return one person of each stratum who has the largest."""
        values, ends = a * self._error + b * self._costs, [*self._first[1:].tolist(), self._rows.size]
        places = [
            first + int(values[first:end].argmax()) for first, end in zip(self._first.tolist(), ends, strict=False)
        ]
        return self._rows[places]

    def among(self, some: BoolArray) -> "_Largest":
        """Return the same over fewer people."""
        return _Largest(self._rows[some[self._rows]], *self._given)


def used_otherwise(purchase: Purchase) -> BoolArray:
    """Return who is used otherwise than without noise: all of zero cost and without a cap, and nobody else."""
    fitting = (purchase.costs == 0.0) & (purchase.caps == math.inf)
    found: BoolArray = np.where(fitting, purchase.losses != math.inf, purchase.losses != 0.0)
    return found
