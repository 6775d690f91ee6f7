"""The central optimum, exactly: one dimension, convex pieces against one concave term.

Divide costs by ``A·v^{3/2}`` for a variance unit ``v`` and losses by ``v^{-1/2}``; then the problem is

    min over w ≥ 0, Σ w = 1, S > 0 of   2/S² + Σ w_i²/u_i + S·Σ ψ_i w_i,      u_i = v/V_i.

For fixed ``a = Σ ψ_i w_i`` the best ``S`` is ``(4/a)^{1/3}``, which leaves ``h(a) = g(a) + κ·a^{2/3}`` with
``κ = (3/2)·4^{1/3}`` and ``g`` the least ``Σ w²/u`` at that ``a``: convex, continuously differentiable, piecewise
quadratic, and reached by ``w_i ∝ u_i (τ − ψ_i)⁺`` for a level ``τ``. With ``U, m, Q`` the mass, mean and centred second
moment (all weighted by ``u``) of the people below ``τ``, and ``G(τ) = Σ u_i (τ − ψ_i)⁺ = U(τ − m)``,

    a = m − Q/G,      g = 1/U + (m − a)²/Q,      g'(a) = −2/G,

so ``h`` falls exactly where ``κ·G < 3·a^{1/3}``. Every local minimum inside a piece is the larger root of
``(m − a)·a^{1/3} = κQ/3``; in ``b = a^{1/3}`` that is ``b⁴ − m·b + κQ/3 = 0``. The answer is the best of them.
[F] Thm. 3 and Algorithm 1 solve a related enumeration; ``docs/explanation/algorithms.md`` has the proofs.
"""

import math
from dataclasses import dataclass

import numpy as np

from hushbid.allocation.lower_bounds import central_lower_bound
from hushbid.allocation.problem import HUGE, TINY, Allocation, Problem
from hushbid.arrays import BoolArray, FloatArray, IndexArray, spread

CUBE_ROOT_4: float = 4.0 ** (1.0 / 3.0)
KAPPA: float = 1.5 * CUBE_ROOT_4
_SLOPE = (KAPPA / 3.0) ** 3
_SELECT_ABOVE = 1 << 15
"""Above this many people the expensive ones are left out before sorting."""

_SAMPLE = 1 << 13
_FEW = 64
"""With up to so many people below the level, plain numbers are quicker than arrays."""


@dataclass(frozen=True, slots=True)
class Optimum:
    """The best point of the one-dimensional problem, in normal form."""

    value: float
    """``h(a)``."""

    base: float
    """The smallest cost; ``mean`` counts from here."""

    mass: float
    """``U`` over the active people."""

    mean: float
    """``m − base``."""

    spread: float
    """``Q``."""

    root: float
    """``b = a^{1/3}``; 0 when the best is to add no noise."""

    @property
    def level(self) -> float:
        """``τ − base``: people below this are bought from."""
        return self.mean + 3.0 * self.root / (KAPPA * self.mass)

    def weights(self, offsets: FloatArray, mass: FloatArray | float) -> FloatArray:
        """``w_i = u_i (τ − ψ_i)⁺/G`` for people at ``base + offsets``, written so that nothing cancels."""
        if self.root == 0.0:
            return np.where(offsets == 0.0, mass / self.mass, 0.0)
        share = (self.mean - offsets) * (KAPPA / (3.0 * self.root))
        share += 1.0 / self.mass
        np.maximum(share, 0.0, out=share)
        if isinstance(mass, float) and mass == 1.0:
            return share
        share *= mass
        share /= share.sum()
        return share


def solve_central(problem: Problem) -> Allocation:
    """The global optimum of the central problem."""
    variance = problem.variance
    if not isinstance(variance, float):
        variance = _visible(problem, variance)
    elif variance > 0.0 and problem.only_noise_counts(variance):
        return _cheapest_only(problem)
    elif variance > 0.0 and problem.scale(variance) >= 1.0:
        return _solve(problem, variance, None)  # dividing by this scale cannot overflow
    with np.errstate(over="ignore"):  # a cost that overflows is above every level that matters
        if isinstance(variance, float):
            return _cheapest_only(problem) if variance == 0.0 else _solve(problem, variance, None)
        if (variance == 0.0).any():
            return _solve_with_certain(problem, variance)
        unit = float(variance[problem.costs < math.inf].min())
        if problem.only_noise_counts(float(variance.max())):
            return _cheapest_only(problem)
        return _solve(problem, unit, np.minimum(unit / variance, 1.0))


def variance_vanishes(problem: Problem) -> bool:
    """Whether some variance is zero, or cannot be seen beside the noise, so that the tie key may have to decide."""
    if isinstance(problem.variance, float):
        return problem.variance == 0.0 or problem.only_noise_counts(problem.variance)
    return bool((_visible(problem, problem.variance) == 0.0).any())


def _visible(problem: Problem, variance: FloatArray) -> FloatArray:
    """The variances; zero where one cannot move the objective by 1e-13 of what noise alone costs."""
    noise_alone = 1.5 * (4.0 * problem.error_weight) ** (1.0 / 3.0) * problem.cheapest ** (2.0 / 3.0)
    return np.where(problem.error_weight * variance <= 1e-13 * noise_alone, 0.0, variance)


def best_of_pieces(base: float, offset: FloatArray, mass: FloatArray | None = None, *, closed: bool = False) -> Optimum:
    """The global minimum of ``h`` for costs ``base + offset`` sorted ascending, in normal form; ``mass`` 1 by default.

    With ``closed`` the last cost only ends the last piece; the value is infinite if no minimum lies before it.
    """
    sums = Sums.of(base, offset, mass)
    last = offset.size - 1
    falling = sums.falling()
    # pieces where h falls at the left end and rises at the right; the last has no right end
    pieces: list[int] = (falling[:-1] > falling[1:]).nonzero()[0].tolist()
    if falling[last] and not closed:
        pieces.append(last)
    # the best of them, of a = 0 and of the humps
    value, count, with_noise = math.inf, 0, True
    if base == 0.0:  # a = 0: no noise, everything on the people whose privacy costs nothing
        count, with_noise = int(np.searchsorted(offset, 0.0, side="right")), False
        value = 1.0 / float(sums.total[count - 1])
    for k in pieces:
        h = sums.best_inside(k)
        if h < value:
            value, count, with_noise = h, k + 1, True
    # At the optimum κ·G = 3b and κ·b² < h, so a piece that starts beyond that G holds nothing better.
    end = int(sums.gain.searchsorted(3.0 * math.sqrt(value / KAPPA) / KAPPA)) if value < math.inf else last + 1
    for k in sums.humps(falling, pieces[0] + 1 if pieces else 1, end, closed):
        h = sums.best_inside(k)
        if h < value:
            value, count, with_noise = h, k + 1, True
    if count == 0:
        return Optimum(math.inf, base, math.inf, 0.0, 0.0, 0.0)
    return _polished(offset[:count], None if mass is None else mass[:count], base, with_noise=with_noise)


def _best_of_few(base: float, offset: FloatArray) -> Optimum | None:
    """The global minimum of ``h`` in plain numbers if the first few people settle it, as in most calls of a simulation.

    A piece that starts beyond ``κ·G = 3·√(h/κ)``, for an attained ``h``, holds nothing better. Before that, pieces at
    whose ends ``h`` rises hold nothing either if ``a`` is already past a quarter of their largest mean.
    """
    first = second = leftmost = 0.0
    value, stop, falling = math.inf, math.inf, True
    some = offset[:_FEW].tolist()
    # a last cost that compares with nothing ends the last piece
    some.append(math.nan)
    for count, x in enumerate(some):
        # G and a·G at the cost of the next person, who adds nothing to either
        gain = count * x - first
        if gain > stop:
            break
        scaled, square = x * first - second + base * gain, gain * gain
        if _SLOPE * square * square <= scaled:
            falling = True
        elif falling:  # also at the end, which is not a number
            falling = False
            mean = first / count
            spread = max(second - first * mean, 0.0)
            root, h = _inside(base + mean, spread, float(count))
            leftmost = leftmost or scaled / gain
            if h < value:
                value, active, best, exact = h, count, (mean, spread, root), spread > 0.02 * second
                stop = 3.0 * math.sqrt(h / KAPPA) / KAPPA
        if count < offset.size:
            first += x
            second += x * x
    else:
        if offset.size > _FEW:
            return None
    # a hump may hide something better: leave it to `best_of_pieces`
    if leftmost < 0.25 * (base + first / count) or not value < math.inf:
        return None
    # the spread cancelled: centre the moments in a second pass
    if not exact:
        return _polished(offset[:active], None, base, with_noise=True)
    return Optimum(value, base, float(active), *best)


@dataclass(frozen=True, slots=True, eq=False)
class Sums:
    """Moments of the cheapest 1, 2, … people about the smallest cost, and ``G`` at each one's own cost."""

    base: float
    offset: FloatArray
    total: FloatArray
    first: FloatArray
    second: FloatArray
    gain: FloatArray

    @classmethod
    def of(cls, base: float, offset: FloatArray, mass: FloatArray | None) -> "Sums":
        """The sums for costs ``base + offset`` sorted ascending; the first offset is 0."""
        if mass is None:
            total, weighted = np.arange(1.0, offset.size + 1.0), offset
        else:
            total, weighted = mass.cumsum(), mass * offset
        first = weighted.cumsum()
        return cls(base, offset, total, first, (weighted * offset).cumsum(), total * offset - first)

    def falling(self) -> BoolArray:
        """Whether ``h`` falls at each person's own cost: ``(κG/3)³·G ≤ a·G``."""
        gain = self.gain[1:]
        square = gain * gain
        below = np.empty(self.gain.size, dtype=bool)
        below[0] = _SLOPE * self.gain[0] ** 4 <= (
            self.offset[0] * self.first[0] - self.second[0] + self.base * self.gain[0]
        )
        # A person adds nothing to a·G at her own cost: without her own terms, large ones do not cancel.
        inner = self.offset[1:] * self.first[:-1] - self.second[:-1]
        below[1:] = _SLOPE * (square * square) <= inner + self.base * gain
        return below

    def best_inside(self, k: int) -> float:
        """The local minimum of ``h`` with the first ``k + 1`` people active."""
        total, first = float(self.total[k]), float(self.first[k])
        return _inside(self.base + first / total, max(float(self.second[k]) - first * first / total, 0.0), total)[1]

    def lowest(self, k: int) -> float:
        """``a`` where person ``k`` enters."""
        gain = float(self.gain[k])
        return self.base + (
            float(self.offset[k] * self.first[k - 1] - self.second[k - 1]) / gain if k > 0 and gain > 0.0 else 0.0
        )

    def humps(self, falling: BoolArray, start: int, end: int, closed: bool) -> list[int]:
        """Pieces with ``h`` rising at both ends that still hold a minimum: ``m/4`` inside, and the hump high enough."""
        end = min(end, self.offset.size - 1 if closed else self.offset.size)
        # the first a is already past a quarter of the largest mean
        if start >= end or self.lowest(start) >= 0.25 * (self.base + float(self.first[end - 1] / self.total[end - 1])):
            return []
        part = slice(start, end)
        first, total, gain = self.first[part], self.total[part], self.gain[part]
        # a hump needs a = m/4 inside its piece
        quarter = 0.25 * (self.base + first / total)
        left = np.zeros_like(gain)
        before = slice(start - 1, end - 1)
        np.divide(self.offset[part] * self.first[before] - self.second[before], gain, out=left, where=gain > 0.0)
        left += self.base
        low = (left < quarter) & ~falling[part]
        if not low.any():
            return []
        # and h falling there: (m − a)·a^{1/3} > κQ/3
        spread = np.maximum(self.second[part] - first * first / total, 0.0)
        right = np.append(left[1:], np.inf)
        low &= (3.0 * quarter * np.cbrt(quarter) > KAPPA * spread / 3.0) & (quarter < right)
        low[:-1] &= ~falling[start + 1 : end]
        found: list[int] = (np.flatnonzero(low) + start).tolist()
        return found


def _inside(mean: float, spread: float, mass: float) -> tuple[float, float]:
    """The larger root ``b`` of ``b⁴ − mean·b + κQ/3`` and ``h`` there: Newton from the right, where it is monotone."""
    constant = KAPPA * spread / 3.0
    b = mean ** (1.0 / 3.0)
    if constant > 0.0:
        lowest = (mean / 4.0) ** (1.0 / 3.0)
        for _ in range(80):
            cube = b * b * b
            slope = 4.0 * cube - mean
            if slope <= 0.0:
                b = lowest  # no root, or a double one missed by rounding: where the quartic is least
                break
            step = (b * (cube - mean) + constant) / slope
            b -= step
            if step <= 1e-16 * b:
                break
    if b <= 0.0:
        return 0.0, math.inf
    return b, 1.0 / mass + (KAPPA * KAPPA / 9.0) * spread / (b * b) + KAPPA * b * b


def _polished(offset: FloatArray, mass: FloatArray | None, base: float, *, with_noise: bool) -> Optimum:
    """The optimum for a known set of active people, with moments centred in a second pass.

    NumPy's sums, not BLAS's, which for so little would wait for its threads.
    """
    if mass is None:
        total = float(offset.size)
        mean = float(offset.sum()) / total
        deviation = offset - mean
        deviation *= deviation
        spread = float(deviation.sum())
    else:
        total = float(mass.sum())
        mean = float((mass * offset).sum()) / total
        deviation = offset - mean
        spread = float((mass * deviation * deviation).sum())
    if not with_noise:
        return Optimum(1.0 / total, base, total, mean, spread, 0.0)
    root, value = _inside(base + mean, spread, total)
    return Optimum(value, base, total, mean, spread, root)


def _solve(problem: Problem, unit: float, mass: FloatArray | None) -> Allocation:
    """Leave out the hopeless, sort the rest, take the best piece."""
    scale = problem.scale(unit)
    rows, best = contenders(problem.costs, mass, scale=scale)
    costs = problem.costs if rows is None else problem.costs[rows]
    offsets = costs - problem.cheapest
    offsets /= scale
    share = best.weights(offsets, 1.0 if mass is None else mass if rows is None else mass[rows])
    return _allocation(problem, unit, best, share, rows)


def _sort_and_solve(costs: FloatArray, mass: FloatArray | None, scale: float) -> Optimum:
    if mass is None:
        offset = costs.copy()
        if (offset[1:] < offset[:-1]).any():  # to look is nothing beside sorting
            offset.sort()
    else:
        order = np.argsort(costs, kind="stable")
        offset, mass = costs[order], mass[order]
    cheapest = float(offset[0])
    offset -= cheapest  # before dividing, so that close costs stay apart
    offset /= scale
    base = cheapest / scale
    if float(offset[-1]) > 1e3 * (1.0 + base ** (1.0 / 3.0)):
        count = int(np.searchsorted(offset, _highest_level(base + offset, mass) - base, side="right"))
        offset, mass = offset[:count], None if mass is None else mass[:count]
    found = _best_of_few(base, offset) if mass is None and base > 0.0 else None
    return found or best_of_pieces(base, offset, mass)


def _highest_level(costs: FloatArray, mass: FloatArray | None) -> float:
    """An upper bound on the optimal ``τ``, so that sums over those below it neither cancel nor overflow.

    At the optimum ``u_i (τ − ψ_i) ≤ G = 3b/κ`` for everybody, and ``κb²`` is at most the value of any one person alone.
    """
    if mass is None:
        costs = costs[:1]  # the cheapest gives the least of both
    with np.errstate(divide="ignore"):
        each = 1.0 if mass is None else 1.0 / mass
    worst_root = math.sqrt(float((each + KAPPA * np.cbrt(costs) ** 2).min()) / KAPPA)
    return float((costs + (3.0 * worst_root / KAPPA) * each).min()) * (1.0 + 1e-12)


def contenders(costs: FloatArray, mass: FloatArray | None, *, scale: float = 1.0) -> tuple[IndexArray | None, Optimum]:
    """The optimum, and rows among which everybody active is (None: anybody may be). Costs are in units of ``scale``.

    A cut at ``τ_c`` loses nothing if ``κ·G(τ_c) ≥ 3·b_max``: at the optimum ``κ·G(τ) = 3b`` and ``κb² ≤ h − 1/U_all``
    for any attained ``h``. A sample proposes the cut, this inequality checks it, and if it fails
    ``τ ≤ m + 3·b_max/(κU)``, true for the mass and mean of any set of people, gives a cut that passes.
    """
    if costs.size <= _SELECT_ABOVE:
        return None, _sort_and_solve(costs, mass, scale)
    finite = costs.size if costs.max() < math.inf else int(np.count_nonzero(costs < math.inf))
    # the sampling error that is left even if everybody is bought from
    floor = 1.0 / (finite if mass is None else float(mass[costs < math.inf].sum()))
    cut = _proposed_cut(costs, mass, scale)
    while True:
        # solve for those below the cut
        rows = np.flatnonzero(costs <= cut)
        picked, weight = costs[rows], None if mass is None else mass[rows]
        best = _sort_and_solve(picked, weight, scale)
        if rows.size == finite:
            return rows, best
        # check: is G at the cut too large for any optimum?
        worst_root = math.sqrt(max(best.value - floor, 0.0) / KAPPA)
        below = cut / scale - picked / scale
        gain = float(below.sum() if weight is None else weight.dot(below))
        if KAPPA * gain >= 3.0 * worst_root:
            return rows, best
        # no: from their mass and mean, a cut that passes
        total = float(rows.size if weight is None else weight.sum())
        level = cut / scale - gain / total + 3.0 * worst_root / (KAPPA * total)
        cut = max(level * scale * (1.0 + 1e-12), math.nextafter(cut, math.inf))


def _proposed_cut(costs: FloatArray, mass: FloatArray | None, scale: float) -> float:
    """Where the optimum of an evenly spaced sample, each counting for many, suggests to stop; only a hint."""
    step = costs.size // _SAMPLE
    sample = costs[::step]
    heavier = float(step) if mass is None else step * float(mass[::step].mean())
    ordered = np.sort(sample)
    ordered = ordered[: int(np.searchsorted(ordered, math.inf))]
    if ordered.size == 0:
        return float(costs[costs < math.inf].max())
    # each of the sample stands for `heavier` people, so its variance is that much smaller
    lighter_unit = scale * heavier**-1.5
    if not TINY <= ordered[0] / lighter_unit <= HUGE:
        return float(ordered[-1])
    hint = _sort_and_solve(ordered, None, lighter_unit)
    count = int(np.searchsorted(ordered, (hint.base + hint.level) * lighter_unit))
    # four standard deviations of the sample's count, and some, to spare
    spare = count + int(4.0 * math.sqrt(count)) + 16
    return float(ordered[min(spare, ordered.size - 1)])


def _allocation(problem: Problem, unit: float, best: Optimum, share: FloatArray, rows: IndexArray | None) -> Allocation:
    """Back from normal form to the caller's units and order."""
    # S = (4/a)^{1/3} in normal form; no noise is an infinite loss
    factor = math.inf if best.root == 0.0 else CUBE_ROOT_4 / best.root / math.sqrt(unit)
    active = int(np.count_nonzero(share))
    if best.root == 0.0:
        loss = np.where(share > 0.0, np.inf, 0.0)
    else:
        loss = share * factor
    # who was left out before sorting gets nothing
    if rows is not None:
        weights, privacy_loss = spread(problem.costs.size, rows, share, loss)
    else:
        weights, privacy_loss = share, loss
    # h = MSE + S·a, and both 2/S² and half of S·a are κ·a^{2/3}/3
    noise = best.root * best.root * (KAPPA / 3.0)
    return Allocation(
        privacy_loss=privacy_loss,
        weights=weights,
        mse=unit * (best.value - 2.0 * noise),
        objective=problem.error_weight * unit * best.value,
        active=active,
        setting="central",
        error_weight=problem.error_weight,
        _certify=problem.certifying(central_lower_bound),
    )


def _cheapest_only(problem: Problem) -> Allocation:
    """No sampling variance, or none that could be seen beside the noise: only the cheapest is asked."""
    n, a = problem.costs.size, problem.error_weight
    row = problem.first(np.flatnonzero(problem.costs == problem.cheapest), 1)
    weights, privacy_loss = np.zeros(n), np.zeros(n)
    weights[row] = 1.0
    loss = problem.loss_of_one()
    privacy_loss[row] = loss
    sampling = problem.variance if isinstance(problem.variance, float) else float(problem.variance[row[0]])
    mse = sampling + (0.0 if loss == math.inf else 2.0 / loss / loss)
    return Allocation(
        privacy_loss=privacy_loss,
        weights=weights,
        mse=mse,
        objective=a * mse + (0.0 if loss == math.inf else problem.cheapest * loss),
        active=1,
        setting="central",
        error_weight=a,
        _certify=problem.certifying(central_lower_bound),
    )


def _solve_with_certain(problem: Problem, variance: FloatArray) -> Allocation:
    """Some people's data have no variance: the cheapest of them, at cost ``ψ_0``, can take any remainder for free.

    Nobody dearer than her is used. Below ``ψ_0`` the pieces are as usual; at ``τ = ψ_0`` one more piece has
    ``g(a) = (ψ_0 − a)²/Q_0``, ``Q_0 = Σ u_i (ψ_0 − ψ_i)²``: the usual form with infinite mass at ``ψ_0``.
    """
    costs, certain = problem.costs, variance == 0.0
    price = float(costs[certain].min())
    ordinary = np.flatnonzero(~certain & (costs < price))
    unit = float(variance[ordinary].min()) if ordinary.size else 1.0
    scale = problem.scale(unit)
    mass, below, end = unit / variance[ordinary], costs[ordinary] / scale, price / scale
    if ordinary.size:
        # leave out those above every level that matters, the certain person perhaps too
        level = _highest_level(below, mass)
        within = below <= level
        ordinary, mass, below, end = ordinary[within], mass[within], below[within], end if end <= level else math.inf
    # the extra piece, at τ = ψ_0
    value, root, share = _anchored(below, mass, end)
    if ordinary.size:
        # the usual pieces, up to ψ_0
        order = np.argsort(below, kind="stable")
        ended = np.append(below[order], end) if end < math.inf else below[order]
        base = float(ended[0])
        best = best_of_pieces(base, ended - base, np.append(mass[order], 0.0)[: ended.size], closed=end < math.inf)
        if best.value <= value:
            value, root, share = best.value, best.root, best.weights(below - best.base, mass)
    weights = np.zeros(costs.size)
    weights[ordinary] = share
    # the certain person takes the remainder; less than rounding is none
    rest = 1.0 - float(share.sum())
    if value < math.inf and rest > 1e-12:
        weights[problem.first(np.flatnonzero(certain & (costs == price)), 1)] = rest
    noise = root * root * (KAPPA / 3.0)
    losses = np.where(weights > 0, np.inf, 0.0) if root == 0.0 else weights * (CUBE_ROOT_4 / root / math.sqrt(unit))
    return Allocation(
        privacy_loss=losses,
        weights=weights,
        mse=unit * (value - 2.0 * noise),
        objective=problem.error_weight * unit * value,
        active=int(np.count_nonzero(weights)),
        setting="central",
        error_weight=problem.error_weight,
        _certify=problem.certifying(central_lower_bound),
    )


def _anchored(costs: FloatArray, mass: FloatArray, price: float) -> tuple[float, float, FloatArray]:
    """The best point of the extra piece: its value (``inf`` if outside), root and the ordinary people's weights."""
    nobody = np.zeros(costs.size)
    if price == math.inf:
        return math.inf, 0.0, nobody
    below = price - costs
    spread = float(mass.dot(below * below))
    if price == 0.0 or spread == 0.0:
        return KAPPA * price ** (2.0 / 3.0), price ** (1.0 / 3.0), nobody
    root, value = _inside(price, spread, math.inf)
    share = mass * below * (KAPPA / (3.0 * root))
    # outside the piece, or no root: no candidate
    if share.sum() > 1.0 or 3.0 * (price / 4.0) ** (4.0 / 3.0) < KAPPA * spread / 3.0:
        return math.inf, 0.0, nobody
    return value, root, share
