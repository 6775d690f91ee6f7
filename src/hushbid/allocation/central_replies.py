"""How the central optimum moves when one person's cost does, for many (person, cost) pairs at once.

Replacing one cost changes the sums of :mod:`hushbid.allocation.central` by rank-one terms, so for each pair the optimum
is found by an active-set iteration over the sorted costs of everybody: guess how many are below the level ``τ``, solve
that piece in closed form, move to the piece its ``τ`` lies in, stop when they agree. That finds the optimum if the
problem has one basin whatever the pair, which `_only_basin` proves from the sums alone. Where it cannot, every piece
of every pair is looked at instead.
"""

import math

import numpy as np

from hushbid.allocation.central import CUBE_ROOT_4, KAPPA, Optimum, Sums, best_of_pieces, contenders
from hushbid.allocation.replies import Replies, Rows
from hushbid.allocation.solution import FloatArray

_CHUNK = 1 << 13
_DENSE = 1 << 20
_FEW = 48
_SLOPE = (KAPPA / 3.0) ** 3
_BEYOND = 1e70
"""Costs farther than this from the cheapest are not bought at, in normal form; fourth powers of it do not overflow."""


class CentralReplies:
    """The central optimum as a function of one person's cost, everybody else's fixed."""

    def __init__(self, costs: FloatArray, variance: float | FloatArray, error_weight: float) -> None:
        self._unit = variance if isinstance(variance, float) else float(variance.min())
        self._variance = variance
        self._error_weight = error_weight
        self._scale = error_weight * self._unit**1.5
        self._costs = costs
        self._order, self._highest = self._contenders()
        self._sorted, self._sorted_mass = self._own(self._order), self._mass(self._order)
        self._everybody = False
        with np.errstate(over="ignore"):
            base = float(self._sorted[0])
            self._sums = Sums.of(base, self._sorted - base, self._sorted_mass)
            self._best = best_of_pieces(base, self._sorted - base, self._sorted_mass)
            self._window = self._only_basin()

    def _own(self, rows: Rows) -> FloatArray:
        with np.errstate(over="ignore"):
            own: FloatArray = self._costs[rows] / self._scale
        return own

    def _mass(self, rows: Rows) -> FloatArray:
        return np.ones(rows.size) if isinstance(self._variance, float) else self._unit / self._variance[rows]

    def at(self, rows: Rows, costs: FloatArray) -> Replies:
        """The optimum if person ``rows[j]`` had cost ``costs[j]`` (``inf``: were not there), for every j."""
        with np.errstate(over="ignore"):
            moved = costs / self._scale
        value, loss, mse = np.empty(rows.size), np.empty(rows.size), np.empty(rows.size)
        dense = max(_DENSE // (self._sorted.size + 1), 1)
        for start in range(0, rows.size, _CHUNK):
            part = np.arange(start, min(start + _CHUNK, rows.size))
            if self._window is not None or self._everybody:
                quick = costs[part] >= self._costs[rows[part]]
                solve = self._all_or_all_others if self._window is None else self._follow
                some = part if quick.all() else part[quick]
                value[some], loss[some], mse[some] = solve(rows[some], moved[some])
                part = part[:0] if quick.all() else part[~quick]
            for first in range(0, part.size, dense):
                some = part[first : first + dense]
                value[some], loss[some], mse[some] = self._everywhere(rows[some], moved[some])
        return Replies(
            value * (self._error_weight * self._unit),
            loss / math.sqrt(self._unit),
            np.maximum(mse, 0.0) * self._unit,
        )

    # -- who can matter ------------------------------------------------------------------------------------------------

    def _contenders(self) -> tuple[Rows, float]:
        """Rows, cheapest first, that may be active when any one person's cost changes, and a level never exceeded.

        Without person i the value ``h/(1 − w_i)²`` is attained (share her weight among the others), so at the optimum
        ``κ·G(τ) = 3b ≤ 3·√(h/κ)/(1 − w_i)``. That bounds τ, since past the present level ``G`` grows at least at the
        rate ``U`` and one person takes at most ``u(τ − ψ_1)`` from it.
        """
        mass = None if isinstance(self._variance, float) else self._unit / self._variance
        chosen, best = contenders(self._costs, mass, scale=self._scale)
        active = np.arange(self._costs.size) if chosen is None else chosen
        share = float(best.weights(self._own(active) - best.base, self._mass(active)).max())
        part = (1.0 if mass is None else float(mass.max())) / best.mass
        level = self._second_highest_level()
        if share < 0.5 and part < 0.5 and best.root > 0.0:
            spare = 3.0 * (math.sqrt(best.value / KAPPA) / (1.0 - share) - best.root) / KAPPA
            level = min(level, (best.level + spare / best.mass) / (1.0 - part) * (1.0 + 1e-12))
        cut = (best.base + level) * self._scale * (1.0 + 1e-12)
        rows = np.flatnonzero(self._costs <= cut if cut < math.inf else self._costs < math.inf)
        ordered: Rows = rows[np.argsort(self._costs[rows], kind="stable")]
        return ordered, level

    def _second_highest_level(self) -> float:
        """A level never exceeded, counted from the cheapest cost, if any one of all people moves or leaves.

        As for `central.highest_level`: each person alone bounds the level, and so does the better of any two.
        """
        costs, mass = self._own(np.arange(self._costs.size)), self._mass(np.arange(self._costs.size))
        if costs.size < 2:
            return math.inf
        alone = np.partition(1.0 / mass + KAPPA * np.square(np.cbrt(costs)), 1)[1]
        level = np.partition(costs + 3.0 * math.sqrt(alone / KAPPA) / (KAPPA * mass), 1)[1]
        return float(level - costs.min())

    def _only_basin(self) -> tuple[int, int] | None:
        """The people between whose costs ``τ`` lies for every pair whose cost is not below the person's own, or None.

        ``h`` falls where ``(κG/3)³·G ≤ a·G``. Moving one person up takes at most ``u(τ − ψ_1)`` from ``G``, leaves
        ``a ≥ ψ_1``, and changes ``a·G`` by at most ``uτ·min(τ/4, τ − ψ_1)``. Where few are active the value, at least
        one over their mass, is too large to count. Past those, ``h`` must surely fall, then be unsure, then surely
        rise (the last two perhaps only beyond the dearest); and ``a > m/4`` for the largest mean ``m`` that one person
        can make, makes the unsure part and what follows hold one minimum only.
        """
        sums, best = self._sums, self._best
        if sums.offset.size <= _FEW or best.root == 0.0 or self._highest == math.inf:
            return None
        most = float(self._sorted_mass.max())
        share = float(best.weights(sums.offset, self._sorted_mass).max())
        if share > 0.1:
            return None
        level = sums.base + sums.offset
        scaled = sums.offset * sums.first - sums.second + sums.base * sums.gain
        blur = most * level * np.minimum(0.25 * level, sums.offset)
        falling = (_SLOPE * sums.gain**3 <= sums.base) | (_SLOPE * sums.gain**4 <= scaled - blur)
        rising = _SLOPE * np.maximum(sums.gain - most * sums.offset, 0.0) ** 4 > scaled + blur
        count = int(np.searchsorted(sums.total + most, (1.0 - share) ** 2 / best.value))
        if sums.base == 0.0 and np.count_nonzero(sums.offset == 0.0) > count:
            return None  # to add no noise may become best
        unsure = np.flatnonzero(~falling[count:] & ~rising[count:]) + count
        first = int(unsure[0]) if unsure.size else int(np.argmin(np.append(falling[count:], False))) + count
        last = int(unsure[-1]) if unsure.size else first - 1
        in_order = bool(falling[count:first].all()) and bool(rising[last + 1 :].all())
        if not in_order or first <= count:
            return None
        before, all_mass = first - 1, float(sums.total[-1])
        lowest = sums.base
        if sums.gain[before] > 0.0:
            lowest = max(lowest, float((scaled[before] - blur[before]) / sums.gain[before]))
        mean = sums.base + max(
            (float(sums.first[-1]) + most * self._highest) / all_mass, float(sums.first[-1]) / (all_mass - most)
        )
        self._everybody = first == sums.offset.size
        return None if lowest <= 0.25 * mean else (before, last + 2)

    # -- solving -------------------------------------------------------------------------------------------------------

    def _follow(self, rows: Rows, moved: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The one minimum of each pair, by active-set iteration from the present optimum."""
        assert self._window is not None
        base = self._sums.base
        own, mass = self._own(rows) - base, self._mass(rows)
        return follow(self._sums, self._window, self._best, own, mass, moved - base, highest=self._highest)

    def _all_or_all_others(self, rows: Rows, moved: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Where ``h`` falls at everybody's cost, all others are active: the better of all with and without the person.

        Nothing lies below; the piece up to her cost and the one beyond it may each hold a minimum.
        """
        sums = self._sums
        own, mass = self._own(rows) - sums.base, self._mass(rows)
        to = np.minimum(moved - sums.base, self._highest)
        gone = mass * (own <= sums.offset[-1])  # nobody dearer than the contenders is in the sums
        best = np.full(rows.size, np.inf), np.zeros(rows.size), np.zeros(rows.size)
        for there in (0.0, 1.0):
            total = sums.total[-1] - gone + there * mass
            first = sums.first[-1] - gone * own + there * mass * to
            mean = first / total
            spread = np.maximum(sums.second[-1] - gone * own * own + there * mass * to * to - first * mean, 0.0)
            value, root, level = _piece(sums.base, total, mean, spread)
            better = (value < best[0]) & ((to <= level) | (there == 0.0))
            loss = there * mass * np.maximum(level - to, 0.0) * (KAPPA / 3.0) / root * (CUBE_ROOT_4 / root)
            for kept, found in zip(best, (value, loss, value - (2.0 * KAPPA / 3.0) * root * root), strict=True):
                kept[better] = found[better]
        return best

    def _everywhere(self, rows: Rows, moved: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The best over all pieces of each pair; a matrix row is the sorted population with one cost replaced."""
        people, mass, own_mass = self._populations(rows, moved)
        lowest = people[:, :1]
        with np.errstate(invalid="ignore"):
            offset = np.where(people < np.inf, np.minimum(people - lowest, _BEYOND), 0.0)
        pair, piece = _pieces_with_a_minimum(people, offset, mass)
        inside = np.arange(people.shape[1]) <= piece[:, None]
        weight, place = np.where(inside, mass[pair], 0.0), offset[pair]
        total = weight.sum(axis=1)
        mean = (weight * place).sum(axis=1) / total
        spread = (weight * (place - mean[:, None]) ** 2).sum(axis=1)
        found = _piece(lowest[pair, 0], total, mean, spread)
        best = np.lexsort((found[0], pair))
        best = best[np.flatnonzero(np.diff(pair[best], prepend=-1))]  # the first of each pair is its least
        value, root, level = np.full(rows.size, np.inf), np.zeros(rows.size), np.zeros(rows.size)
        value[pair[best]], root[pair[best]], level[pair[best]] = (part[best] for part in found)
        free = np.where(people == 0.0, mass, 0.0).sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            silent = 1.0 / free < value
            share = own_mass * np.maximum(level - np.minimum(moved - lowest[:, 0], 1e300), 0.0)
            loss = share * (KAPPA / 3.0) / root * (CUBE_ROOT_4 / root)
            mse = value - (2.0 * KAPPA / 3.0) * root * root
            value = np.where(silent, 1.0 / free, value)
        loss = np.where(silent, np.where(moved == 0.0, np.inf, 0.0), np.where(moved < np.inf, loss, 0.0))
        return value, loss, np.where(silent | (value == np.inf), value, mse)

    def _populations(self, rows: Rows, moved: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Costs and masses, sorted along each row, with the person's cost replaced; and her mass."""
        own_mass = self._mass(rows)
        people = np.repeat(np.append(self._sorted, np.inf)[None, :], rows.size, axis=0)
        mass = np.repeat(np.append(self._sorted_mass, 0.0)[None, :], rows.size, axis=0)
        place = np.full(self._costs.size, self._order.size)
        place[self._order] = np.arange(self._order.size)
        here = np.arange(rows.size)
        people[here, place[rows]], mass[here, place[rows]] = moved, own_mass
        order = people.argsort(axis=1, kind="stable")
        return np.take_along_axis(people, order, axis=1), np.take_along_axis(mass, order, axis=1), own_mass


def follow(
    sums: Sums,
    window: tuple[int, int],
    start: Optimum,
    own: FloatArray,
    mass: FloatArray,
    moved: FloatArray,
    *,
    highest: float = 0.0,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Value, loss and error when ``mass`` moves from ``own`` to ``moved`` (offsets from the base), for every entry.

    The level must be known to stay between the costs of the people ``window``, or, where that ends with the dearest,
    below ``highest``.
    """
    value, loss, mse = np.empty(own.size), np.empty(own.size), np.empty(own.size)
    pending = np.arange(own.size)
    first_one = window[0]
    near_level = sums.offset[first_one : window[1]]
    to = np.minimum(moved, 1e300)
    level, root = np.full(own.size, start.level), np.full(own.size, start.root)
    for round_ in range(10):
        if round_ == 9:  # the few that go to and fro between two neighbouring pieces
            level = _level(sums, window, own, mass, to, highest)
        count = near_level.searchsorted(level, side="right")
        present = to < level
        index, removed, added = count + (first_one - 1), mass * (own <= level), mass * present
        near = np.where(present, to, 0.0)
        total = sums.total[index] - removed + added
        first = sums.first[index] - removed * own + added * near
        mean = first / total
        spread = sums.second[index] - removed * own * own + added * near * near - first * mean
        np.maximum(spread, 0.0, out=spread)
        root = _larger_root(sums.base + mean, (KAPPA / 3.0) * spread, root)
        level = mean + (3.0 / KAPPA) * root / total
        done = (near_level.searchsorted(level, side="right") == count) & ((to < level) == present) | (round_ == 9)
        square, which = root * root, pending[done]
        best = 1.0 / total + (KAPPA * KAPPA / 9.0) * spread / square + KAPPA * square
        share = added * np.maximum(level - near, 0.0) * (KAPPA / 3.0) / root
        value[which], loss[which] = best[done], (share * CUBE_ROOT_4 / root)[done]
        mse[which] = (best - (2.0 * KAPPA / 3.0) * square)[done]
        if which.size == pending.size:
            break
        left = ~done
        pending, own, mass, to, level, root = (x[left] for x in (pending, own, mass, to, level, root))
    return value, loss, mse


def _level(
    sums: Sums, window: tuple[int, int], own: FloatArray, mass: FloatArray, to: FloatArray, highest: float
) -> FloatArray:
    """The level at which ``κ·G = 3·a^{1/3}``, by bisection in the window, where the difference increases."""
    last = min(window[1], sums.offset.size - 1)
    end = max(float(sums.offset[last]), highest if window[1] >= sums.offset.size else 0.0)
    low, high = np.full(own.size, sums.offset[window[0]]), np.full(own.size, end)
    for _ in range(70):
        level = 0.5 * (low + high)
        index = sums.offset.searchsorted(level, side="right") - 1
        out, into = mass * np.maximum(level - own, 0.0), mass * np.maximum(level - to, 0.0)
        gain = sums.total[index] * level - sums.first[index] - out + into
        inner = level * sums.first[index] - sums.second[index] - out * own + np.where(into > 0.0, into * to, 0.0)
        falling = _SLOPE * gain**4 <= sums.base * gain + inner
        low, high = np.where(falling, level, low), np.where(falling, high, level)
    middle: FloatArray = 0.5 * (low + high)
    return middle


def _pieces_with_a_minimum(people: FloatArray, offset: FloatArray, mass: FloatArray) -> tuple[Rows, Rows]:
    """Row and number of every piece that holds a minimum, or a hump that may; see :mod:`hushbid.allocation.central`."""
    base = np.where(people[:, :1] < np.inf, people[:, :1], 0.0)
    total = mass.cumsum(axis=1)
    weighted = mass * offset
    first = weighted.cumsum(axis=1)
    second = (weighted * offset).cumsum(axis=1)
    gain = total * offset - first
    scaled = base * gain
    scaled[:, 1:] += offset[:, 1:] * first[:, :-1] - second[:, :-1]
    there = people < np.inf
    falling = there & (_SLOPE * np.square(np.square(gain)) <= scaled)
    after = np.zeros_like(falling)
    after[:, :-1] = falling[:, 1:]
    minimum = falling & ~after
    with np.errstate(divide="ignore", invalid="ignore"):
        quarter = 0.25 * (base + first / total)
        left = np.where(gain > 0.0, scaled / gain, base)
        right = np.full_like(left, np.inf)
        right[:, :-1] = np.where(there[:, 1:], left[:, 1:], np.inf)
        hump = there & ~falling & ~after & (left < quarter) & (quarter < right)
        if hump.any():
            hump &= 3.0 * quarter * np.cbrt(quarter) > (KAPPA / 3.0) * (second - first * first / total)
            minimum |= hump
    row, piece = np.nonzero(minimum)
    return row, piece


def _piece(
    base: FloatArray | float, total: FloatArray, mean: FloatArray, spread: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Value, root and level of the minimum of each piece; an infinite value where it has none."""
    high, constant = base + mean, (KAPPA / 3.0) * spread
    exists = (3.0 * (high / 4.0) ** (4.0 / 3.0) >= constant) & (high > 0.0)
    root = _larger_root(np.where(exists, high, 1.0), np.where(exists, constant, 0.0), np.cbrt(high))
    square = root * root
    with np.errstate(divide="ignore", invalid="ignore"):
        value = np.where(exists, 1.0 / total + (KAPPA * KAPPA / 9.0) * spread / square + KAPPA * square, np.inf)
    return value, root, mean + (3.0 / KAPPA) * root / total


def _larger_root(mean: FloatArray, constant: FloatArray, start: FloatArray) -> FloatArray:
    """The larger root of ``b⁴ − mean·b + constant``, by Newton's method from ``start``."""
    b = start.copy()
    for _ in range(80):
        cube = b * b * b
        slope = 4.0 * cube - mean
        step = np.where(slope > 0.0, (b * (cube - mean) + constant) / slope, 0.0)
        b -= step
        if not (np.abs(step) > 1e-13 * b).any():  # the next step would be its square
            break
    return b
