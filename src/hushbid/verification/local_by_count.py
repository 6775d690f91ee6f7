"""The local optimum once more, for verification: everybody's supply by its own equation, one price per number bought.

In normal form (costs divided by ``A·V^{3/2}``, losses times ``V^{1/2}``) person i at price ``P`` supplies ``q_i``, and
with ``s = 1 − q`` her optimality condition ``q'(y) = ψ_i/P`` reads ``s³(1 − s) = ½(ψ_i/P)²``, ``s ≤ 3/4`` on the high
branch, her loss ``y = √(2(1 − s)/s)``. With the cheapest ``k`` bought from, supply ``Λ = Σ q_i`` meets ``P = 1/Λ²`` at
one price and ``J_k = 1/Λ + Σ ψ_i y_i``, which is convex in ``k``; the first person alone has ``y = (4/ψ_1)^{1/3}``
(docs/explanation/algorithms.md has the proofs). The number bought from is found by walking downhill.

The solver uses a closed form for the high root and other iterations.
"""

import math
from dataclasses import dataclass

import numpy as np

from hushbid.arrays import FloatArray, IndexArray
from hushbid.verification.central_by_exclusion import Answers, normal_scale

_STEEPEST = 3.0 * math.sqrt(3.0) / (8.0 * math.sqrt(2.0))
_MOST = 7.35
"""Nobody is active at place k unless ``ψ·k² ≤ 7.35``: ``q' ≤ 0.4593`` and ``Λ ≥ k/4``."""

_CELLS = 1 << 20
_STEPS = 100
_NOBODY = (np.array([-1]), np.array([math.inf]))
"""The pair that changes nothing."""


@dataclass(frozen=True, slots=True, eq=False)
class Balances:
    """The stationary point of each pair with so many people bought from; normal form."""

    value: FloatArray
    """``J_k``, infinite if there is none."""

    price: FloatArray
    """``P``."""

    own: FloatArray
    """The person's own ``y``, 0 if she is not bought from."""


class LocalRule:
    """The local optimum as a function of one person's cost, for costs no smaller than her own."""

    def __init__(
        self, costs: FloatArray, variance: float, error_weight: float, order: IndexArray | None = None
    ) -> None:
        self._unit, self._error_weight = variance, error_weight
        self._scale = normal_scale(error_weight, variance)
        self._order = np.arange(costs.size) if order is None else order
        self._cost = self._finite_ones(costs)
        rows = np.lexsort((self._order, self._cost))
        rows = rows[: int(np.count_nonzero(self._cost < math.inf))]
        with np.errstate(over="ignore"):
            place = np.arange(rows.size, dtype=float)
            # who is too dear for her place among the cheapest is never active
            candidates = np.flatnonzero(self._cost[rows] / self._scale * place**2 <= _MOST)
        self._finite = int(rows.size)
        rows = rows[: int(candidates[-1]) + 3]
        self._rows, self._ranked, self._sorted = rows, self._cost[rows], self._cost[rows] / self._scale
        self._place = np.full(costs.size, self._finite)
        self._place[rows] = np.arange(rows.size)
        self._price, self._guess = 1.0, 1
        low, high = 1, rows.size
        while low < high:  # J_k falls up to the best k
            middle = (low + high) // 2
            if self.value_of(middle + 1) < self.value_of(middle):
                low = middle + 1
            else:
                high = middle
        self._guess = low
        self._price = float(self._balances(*_NOBODY, np.array([low])).price[0])

    @property
    def count(self) -> int:
        """How many people are bought from as things are."""
        return self._guess

    def at(self, rows: IndexArray, costs: FloatArray) -> Answers:
        """The optimum if person ``rows[j]`` had cost ``costs[j]`` (``inf``: were not there), for every j."""
        _, best = self._best(rows, self._finite_ones(costs))
        return Answers(
            best.own / math.sqrt(self._unit),
            np.sqrt(best.price) * self._unit,
            best.value * (self._error_weight * self._unit),
        )

    def value_of(self, count: int) -> float:
        """``J_k`` as things are, in the caller's units; infinite if no price balances so many."""
        found = self._balances(*_NOBODY, np.array([count]))
        return float(found.value[0]) * self._error_weight * self._unit

    def everybody(self, row: int, cost: float) -> tuple[FloatArray, float, float]:
        """Everybody's privacy loss, the error and the objective if person ``row`` had that cost."""
        changed = self._cost.copy()
        changed[row] = self._finite_ones(np.array([cost]))[0]
        counts, best = self._best(np.array([row]), changed[[row]])
        losses = np.zeros(changed.size)
        bought = np.lexsort((self._order, changed))[: int(counts[0])]
        if best.value[0] < math.inf:
            normal = changed[bought] / self._scale
            losses[bought] = _alone_loss(normal) if bought.size == 1 else _supply(normal / float(best.price[0]))[1]
        return (
            losses / math.sqrt(self._unit),
            math.sqrt(float(best.price[0])) * self._unit,
            float(best.value[0]) * self._error_weight * self._unit,
        )

    def _finite_ones(self, costs: FloatArray) -> FloatArray:
        """The costs, infinite where normal form cannot hold them.

        They stay as given, and so are ranked as the solver ranks them: in normal form two that differ in the last digit
        may be equal.
        """
        with np.errstate(over="ignore"):
            return np.where(costs / self._scale < math.inf, costs, math.inf)

    # -- how many ------------------------------------------------------------------------------------------------------

    def _best(self, rows: IndexArray, moved: FloatArray) -> tuple[IndexArray, Balances]:
        """Walk from the present number of people to the best one; ``J_k`` is convex in ``k``."""
        here = np.zeros(rows.size, dtype=np.intp)
        known = (rows >= 0) & (self._cost[rows] < math.inf)
        most = self._finite - known + (moved < math.inf)
        here = np.minimum(np.full(rows.size, self._guess), most)
        best = self._balances(rows, moved, here)
        best = Balances(best.value.copy(), best.price.copy(), best.own.copy())
        # downhill to fewer, then to more
        for step in (-1, 1):
            todo = np.arange(rows.size)
            while todo.size:
                ahead = here[todo] + step
                todo, ahead = todo[(ahead >= 1) & (ahead <= most[todo])], ahead[(ahead >= 1) & (ahead <= most[todo])]
                found = self._balances(rows[todo], moved[todo], ahead)
                # from where nobody balances, every smaller number must be tried
                better = (found.value < best.value[todo]) | ((step < 0) & np.isinf(best.value[todo]))
                todo, which = todo[better], np.flatnonzero(better)
                here[todo] = ahead[which]
                best.value[todo], best.price[todo] = found.value[which], found.price[which]
                best.own[todo] = found.own[which]
        return here, best

    def _balances(self, rows: IndexArray, moved: FloatArray, counts: IndexArray) -> Balances:
        value, price, own = np.full(rows.size, math.inf), np.full(rows.size, math.inf), np.zeros(rows.size)
        alone = np.flatnonzero(counts == 1)
        value[alone], price[alone], own[alone] = self._alone(rows[alone], moved[alone])
        several = np.flatnonzero(counts >= 2)
        at_once = max(_CELLS // (int(counts.max(initial=1)) + 2), 1)
        for start in range(0, several.size, at_once):
            part = several[start : start + at_once]
            value[part], price[part], own[part] = self._several(rows[part], moved[part], counts[part])
        return Balances(value, price, own)

    def _rank(self, rows: IndexArray, moved: FloatArray) -> IndexArray:
        """How many others come before the moved person: the cheaper, and equals that precede her."""
        rank = self._ranked.searchsorted(moved, side="left")
        end = self._ranked.searchsorted(moved, side="right")
        for j in np.flatnonzero(rank < end).tolist():
            rank[j] += int((self._order[self._rows[rank[j] : end[j]]] < self._order[rows[j]]).sum())
        taken_out = np.where(rows >= 0, self._place[rows], self._finite)
        return np.asarray(rank - (taken_out < rank))

    def _alone(self, rows: IndexArray, moved: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        cheapest = np.append(self._sorted[:2], [math.inf, math.inf])
        out = np.where(rows >= 0, self._place[rows], self._finite)
        cost = np.minimum(np.where(out == 0, cheapest[1], cheapest[0]), moved / self._scale)
        with np.errstate(divide="ignore", invalid="ignore"):
            y = _alone_loss(cost)
            error = np.where(cost > 0.0, 1.0 + 2.0 / (y * y), 1.0)
            value = error + np.where(cost > 0.0, cost * y, 0.0)
        value = np.where(cost < math.inf, value, math.inf)
        mine = (self._rank(rows, moved) == 0) & (moved < math.inf)
        return value, error * error, np.where(mine, y, 0.0)

    def _several(
        self, rows: IndexArray, moved: FloatArray, counts: IndexArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The price at which the cheapest ``counts`` supply ``Λ = P^{-1/2}``; safeguarded Newton steps in ``log P``."""
        active = self._rank(rows, moved) < counts
        # one row per pair: the cheapest others, and herself in the last column
        out = np.where(rows >= 0, self._place[rows], self._finite)[:, None]
        wanted = (counts - active)[:, None]
        column = np.arange(min(int(wanted.max()) + 1, self._sorted.size))[None, :]
        bought = (column != out) & (column - (out < column) < wanted)
        possible = bought.sum(axis=1) == wanted[:, 0]
        here = np.concatenate([bought, active[:, None]], axis=1)
        costs = np.where(bought, self._sorted[column], 0.0)
        costs = np.concatenate([costs, np.where(active, moved / self._scale, 0.0)[:, None]], axis=1)
        # below this price the dearest has no root
        dearest = costs.max(axis=1)
        least = dearest / _STEEPEST * (1.0 + 1e-13)
        price = np.maximum(np.full(rows.size, self._price), least)
        low, high, last = np.full(rows.size, 1e-300), np.full(rows.size, math.inf), False
        for _ in range(_STEPS):
            q, y, slope = _supply(costs / price[:, None])
            supply, change = np.where(here, q, 0.0).sum(axis=1), np.where(here, slope, 0.0).sum(axis=1)
            target = price**-0.5
            excess = supply - target
            # too much supply even at the least price: no balance
            possible &= ~((excess > 1e-13 * target) & (price <= least))
            low, high = np.where(excess <= 0.0, price, low), np.where(excess > 0.0, price, high)
            move = np.where(possible, -excess / (change + 0.5 * target), 0.0)
            if last:
                break
            last = not (np.abs(move) > 1e-8).any()  # the next step doubles the digits
            # Newton where it stays in the bracket, else halve it in the logarithm
            ahead = np.maximum(price * np.exp(np.clip(move, -2.0, 2.0)), least)
            inside = (low < ahead) & (ahead < high) | (np.abs(move) <= 1e-12)
            price = np.where(inside, ahead, np.sqrt(np.maximum(low, least) * np.minimum(high, 1e300)))
        spent = (costs * np.where(costs > 0.0, y, 0.0)).sum(axis=1)
        value = np.where(possible, 1.0 / supply + spent, math.inf)
        return value, supply**-2.0, np.where(active, y[:, -1], 0.0)


def _alone_loss(cost: FloatArray) -> FloatArray:
    """``(4/ψ)^{1/3}``: what is bought from one person alone."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.cbrt(4.0 / cost))


def _supply(ratio: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """``q``, ``y`` and ``dq/d log P`` on the high branch for ``ψ/P``, by Newton's method on ``s³(1 − s)``.

    The function is increasing and, up to one half, convex; from the right the steps cannot overshoot.
    """
    aim = 0.5 * np.square(np.minimum(ratio, _STEEPEST))
    root = np.cbrt(aim)
    # from the right, where steps do not overshoot; a bracket for the rest
    s = np.minimum(root * (1.0 + root), 0.75)
    low, high, last = root, np.full_like(root, 0.75), False
    for _ in range(60):
        excess = s * s * s * (1.0 - s) - aim
        high, low = np.where(excess >= 0.0, s, high), np.where(excess < 0.0, s, low)
        slope = s * s * (3.0 - 4.0 * s)
        with np.errstate(divide="ignore", invalid="ignore"):
            ahead = np.where(slope > 0.0, s - excess / slope, s)
        inside = (ahead >= low) & (ahead <= high)
        ahead = np.where(inside, ahead, 0.5 * (low + high))
        near = np.abs(ahead - s) <= 1e-8 * s  # the next step doubles the digits
        s = ahead
        if last:
            break
        last = bool(near.all())
    with np.errstate(divide="ignore", invalid="ignore"):
        y = np.sqrt(2.0 * (1.0 - s) / s)
        # from s³(1 − s) = ½(ψ/P)²: d log s·(3 − 4s)/(1 − s) = −2 d log P
        slope = np.where(s < 0.75, 2.0 * s * (1.0 - s) / np.maximum(3.0 - 4.0 * s, 1e-9), 0.0)
    return 1.0 - s, y, slope
