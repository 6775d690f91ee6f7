"""Caps so low that everybody else gives all she may, whatever one person asks: then no search is needed.

For a price ``A`` the least cost with ``Σε = S`` changes at the rate ``λ(S) − (4A + 2AΣVε²)/S³``. If somebody is below
her cap, a little more of her costs at most ``ψ + 2A·Ve/S²``, so ``λ`` is at most that. Where

    ψ·S³ + 2A·Ve·S < 4A      at S = Σe, for the largest ψ and the largest Ve,

it holds for every smaller ``S`` too, and the cost still falls: at the optimum nobody with such a cost is below her cap.
So only the person who moves can be, and her loss ``y`` beside the others' ``E = Σe``, ``D = ΣVe²`` is the one root of
``x(E + y)³ + 2AVE·y = 2A(2 + D)``, or at an end.
"""

import math

import numpy as np

from hushbid.allocation.goals import Price
from hushbid.allocation.problem import MOST, Problem, workable
from hushbid.allocation.reply_rules import Replies
from hushbid.arrays import FloatArray, IndexArray


class FullCaps:
    """The optimum where everybody but the person who moves is at her cap."""

    def __init__(self, problem: Problem, caps: FloatArray, variance: FloatArray) -> None:
        self._costs, self._caps, self._variance = problem.costs, caps, variance
        self._weight = problem.goal.number
        finite = problem.costs < math.inf
        self._total = float(caps[finite].sum())
        self._squares = float((variance * caps * caps)[finite].sum())
        self._paid = float((problem.costs * caps)[finite].sum())

    @classmethod
    def of(cls, problem: Problem, caps: float | FloatArray) -> "FullCaps | None":
        """The rule, if the caps are that low; None if a search is needed."""
        if not isinstance(problem.goal, Price):
            return None
        every = np.broadcast_to(np.asarray(caps, dtype=float), problem.costs.shape)
        variance = np.broadcast_to(np.asarray(problem.variance, dtype=float), problem.costs.shape)
        finite = problem.costs < math.inf
        if not (every < math.inf).all():
            return None
        weight, total = problem.goal.number, float(every[finite].sum())
        dearest, steepest = float(problem.costs[finite].max()), float((variance * every).max())
        if not dearest * total**3 + 2.0 * weight * steepest * total < 4.0 * weight * (1.0 - 1e-9):
            return None
        return cls(problem, every, variance)

    @property
    def losses(self) -> FloatArray:
        """Everybody's loss at the optimum."""
        return np.where(self._costs < math.inf, self._caps, 0.0)

    def at(self, rows: IndexArray, costs: FloatArray) -> Replies:
        """The optimum if person ``rows[j]`` had cost ``costs[j]`` (``inf``: were not there), for every j."""
        weight, cap, variance = self._weight, self._caps[rows], self._variance[rows]
        costs = workable(costs, 0.0, MOST * weight)
        own = self._costs[rows]
        here = np.where(own < math.inf, cap, 0.0)  # what she is counted with in the sums
        others = np.maximum(self._total - here, 0.0)
        alone = np.count_nonzero(self._costs < math.inf) == (own < math.inf)
        others = np.where(alone, 0.0, others)
        squares = np.where(alone, 0.0, np.maximum(self._squares - variance * here * here, 0.0))
        paid = np.where(alone, 0.0, self._paid - np.where(here > 0.0, own, 0.0) * here)
        loss = self._loss(costs, others, squares, variance, cap)
        with np.errstate(divide="ignore", invalid="ignore"):
            mse = np.where(others + loss > 0.0, (2.0 + squares + variance * loss * loss) / (others + loss) ** 2, np.inf)
            value = weight * mse + paid + np.where(loss > 0.0, costs * loss, 0.0)
        return Replies(value, loss, mse)

    def _loss(
        self, costs: FloatArray, others: FloatArray, squares: FloatArray, variance: FloatArray, cap: FloatArray
    ) -> FloatArray:
        """Her loss at each cost: Newton's method from her cap, where the equation is convex."""
        there = costs < math.inf
        cost, pull = np.where(there, costs, 0.0), 2.0 * self._weight * variance * others
        most = 2.0 * self._weight * (2.0 + squares)
        loss = cap.copy()
        for _ in range(100):
            total = others + loss
            excess = cost * total**3 + pull * loss - most
            slope = 3.0 * cost * total * total + pull
            step = np.where((excess > 0.0) & (slope > 0.0), excess / np.where(slope > 0.0, slope, 1.0), 0.0)
            loss = np.maximum(loss - step, 0.0)
            if not (step > 1e-15 * cap).any():
                break
        return np.where(there, loss, 0.0)
