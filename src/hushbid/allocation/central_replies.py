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
from hushbid.allocation.problem import TINY, lifted, normal_scale
from hushbid.allocation.reply_rules import Replies
from hushbid.arrays import BoolArray, FloatArray, IndexArray

_CHUNK = 1 << 14
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
        self._scale = normal_scale(error_weight, self._unit)
        costs = lifted(costs, TINY * self._scale)
        self._costs, self._cheapest = costs, float(costs.min())
        self._base = self._cheapest / self._scale
        self._everybody = False
        with np.errstate(over="ignore"):
            self._order, self._highest = self._contenders()
            self._sorted, self._sorted_mass = costs[self._order], self._mass(self._order)
            offset = self._offset(self._sorted)
            self._sums = Sums.of(self._base, offset, self._sorted_mass)
            self._best = best_of_pieces(self._base, offset, self._sorted_mass)
            self._window = self._only_basin()

    def _offset(self, costs: FloatArray) -> FloatArray:
        """How far costs are above the cheapest, in normal form; subtracting first keeps close costs apart."""
        offset = costs - self._cheapest
        offset /= self._scale
        return np.minimum(offset, _BEYOND, out=offset)

    def _mass(self, rows: IndexArray) -> FloatArray:
        return np.ones(rows.size) if isinstance(self._variance, float) else self._unit / self._variance[rows]

    def at(self, rows: IndexArray, costs: FloatArray) -> Replies:
        """The optimum if person ``rows[j]`` had cost ``costs[j]`` (``inf``: were not there), for every j."""
        costs = lifted(costs, TINY * self._scale)
        value, loss, mse = np.empty(rows.size), np.empty(rows.size), np.empty(rows.size)
        solve = self._follow if self._window is not None else self._all_or_all_others if self._everybody else None
        dense = max(_DENSE // (self._sorted.size + 1), 1)
        with np.errstate(over="ignore"):
            for start in range(0, rows.size, _CHUNK):
                chunk = slice(start, start + _CHUNK)
                who, moved = rows[chunk], costs[chunk]
                own = self._costs[who]
                # `_only_basin` speaks of raised costs only
                slow = np.arange(who.size) if solve is None else np.flatnonzero(moved < own)
                if solve is not None and slow.size == 0:
                    value[chunk], loss[chunk], mse[chunk] = solve(who, own, moved)
                elif solve is not None:
                    quick = np.flatnonzero(moved >= own)
                    value[start + quick], loss[start + quick], mse[start + quick] = solve(
                        who[quick], own[quick], moved[quick]
                    )
                for first in range(0, slow.size, dense):
                    some = slow[first : first + dense]
                    value[start + some], loss[start + some], mse[start + some] = self._everywhere(
                        who[some], moved[some]
                    )
        value *= self._error_weight * self._unit
        loss /= math.sqrt(self._unit)
        np.maximum(mse, 0.0, out=mse)
        mse *= self._unit
        return Replies(value, loss, mse)

    # -- who can matter ------------------------------------------------------------------------------------------------

    def _contenders(self) -> tuple[IndexArray, float]:
        """Rows, cheapest first, that may be active when any one person's cost changes, and a level never exceeded.

        Without person i the value ``h/(1 − w_i)²`` is attained (share her weight among the others), so at the optimum
        ``κ·G(τ) = 3b ≤ 3·√(h/κ)/(1 − w_i)``. That bounds τ, since past the present level ``G`` grows at least at the
        rate ``U`` and one person takes at most ``u(τ − ψ_1)`` from it.
        """
        mass = None if isinstance(self._variance, float) else self._unit / self._variance
        chosen, best = contenders(self._costs, mass, scale=self._scale)
        active = np.arange(self._costs.size) if chosen is None else chosen
        share = float(best.weights(self._offset(self._costs[active]), self._mass(active)).max())
        part = (1.0 if mass is None else float(mass.max())) / best.mass
        level = self._second_highest_level(
            active
        )  # two bounds on the level, the second only if nobody is half of everything
        if share < 0.5 and part < 0.5 and best.root > 0.0:
            spare = 3.0 * (math.sqrt(best.value / KAPPA) / (1.0 - share) - best.root) / KAPPA
            level = min(level, (best.level + spare / best.mass) / (1.0 - part) * (1.0 + 1e-12))
        cut = (best.base + level) * self._scale * (1.0 + 1e-12)
        rows = np.flatnonzero(self._costs <= cut if cut < math.inf else self._costs < math.inf)
        ordered: IndexArray = rows[np.argsort(self._costs[rows], kind="stable")]
        return ordered, level

    def _second_highest_level(self, active: IndexArray) -> float:
        """A level never exceeded, counted from the cheapest cost, if any one of all people moves or leaves.

        Those who may be active are all whose costs are below a cut, so the cheapest are among them.

        Each person alone bounds the level, as in :mod:`hushbid.allocation.central`, and so does the better of any two.
        """
        if self._costs.size < 2:
            return math.inf
        if isinstance(self._variance, float):  # the second cheapest gives the second least of both
            some = self._costs[active] if active.size > 1 else self._costs
            cheapest, second = (float(cost) / self._scale for cost in np.partition(some, 1)[:2])
            root = math.sqrt((1.0 + KAPPA * second ** (2.0 / 3.0)) / KAPPA)
            return float(second + 3.0 * root / KAPPA - cheapest)
        costs, mass = self._costs / self._scale, self._unit / self._variance
        # second least, as the one with the least may be the one who leaves
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
        if share > 0.1:  # one person's move changes too much for the bounds to be worth anything
            return None
        # the sign of h' at everybody's cost, sure whoever moves up
        level = sums.base + sums.offset
        scaled = sums.offset * sums.first - sums.second + sums.base * sums.gain
        blur = most * level * np.minimum(0.25 * level, sums.offset)
        falling = (_SLOPE * sums.gain**3 <= sums.base) | (_SLOPE * sums.gain**4 <= scaled - blur)
        rising = _SLOPE * np.maximum(sums.gain - most * sums.offset, 0.0) ** 4 > scaled + blur
        # the first so many are too few to be optimal: 1/U exceeds what is attained without her
        count = int(np.searchsorted(sums.total + most, (1.0 - share) ** 2 / best.value))
        if sums.base == 0.0 and np.count_nonzero(sums.offset == 0.0) > count:
            return None  # to add no noise may become best
        # surely falls, then unsure, then surely rises
        unsure = np.flatnonzero(~falling[count:] & ~rising[count:]) + count
        first = int(unsure[0]) if unsure.size else int(np.argmin(np.append(falling[count:], False))) + count
        last = int(unsure[-1]) if unsure.size else first - 1
        in_order = bool(falling[count:first].all()) and bool(rising[last + 1 :].all())
        if not in_order or first <= count:
            return None
        # one minimum only: a at the left end of the unsure part against a quarter of the largest mean
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

    def _follow(
        self, rows: IndexArray, own: FloatArray, moved: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The one minimum of each pair, by active-set iteration from the present optimum."""
        assert self._window is not None
        mass = None if isinstance(self._variance, float) else self._mass(rows)
        return follow(
            self._sums,
            self._window,
            self._best,
            self._offset(own),
            mass,
            self._offset(moved),
            highest=self._highest,
        )

    def _all_or_all_others(
        self, rows: IndexArray, own: FloatArray, moved: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Where ``h`` falls at everybody's cost, all others are active: the better of all with and without the person.

        Nothing lies below; the piece up to her cost and the one beyond it may each hold a minimum.
        """
        sums = self._sums
        own, mass = self._offset(own), self._mass(rows)
        to = np.minimum(self._offset(moved), self._highest)
        gone = mass * (own <= sums.offset[-1])  # nobody dearer than the contenders is in the sums
        best = np.full(rows.size, np.inf), np.zeros(rows.size), np.zeros(rows.size)
        for there in (0.0, 1.0):
            total = sums.total[-1] - gone + there * mass
            first = sums.first[-1] - gone * own + there * mass * to
            mean = first / total
            spread = np.maximum(sums.second[-1] - gone * own * own + there * mass * to * to - first * mean, 0.0)
            value, root, level = _piece(sums.base, total, mean, spread)
            better = (value < best[0]) & ((to <= level) | (there == 0.0))  # only with her below the level
            loss = there * mass * np.maximum(level - to, 0.0) * (KAPPA / 3.0) / root * (CUBE_ROOT_4 / root)
            for kept, found in zip(best, (value, loss, value - (2.0 * KAPPA / 3.0) * root * root), strict=True):
                kept[better] = found[better]
        return best

    def _everywhere(self, rows: IndexArray, moved: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The best over all pieces of each pair; a matrix row is the sorted population with one cost replaced."""
        people, mass, own_mass = self._populations(rows, moved)
        lowest = people[:, :1]
        base = lowest / self._scale
        with np.errstate(invalid="ignore"):
            offset = np.where(people < np.inf, np.minimum((people - lowest) / self._scale, _BEYOND), 0.0)
            to = np.where(moved < np.inf, np.minimum((moved - lowest[:, 0]) / self._scale, 1e300), 1e300)
        pair, piece = _pieces_with_a_minimum(base, people < np.inf, offset, mass)
        inside = np.arange(people.shape[1]) <= piece[:, None]  # moments about each piece's own mean
        weight, place = np.where(inside, mass[pair], 0.0), offset[pair]
        total = weight.sum(axis=1)
        mean = (weight * place).sum(axis=1) / total
        spread = (weight * (place - mean[:, None]) ** 2).sum(axis=1)
        found = _piece(base[pair, 0], total, mean, spread)
        best = np.lexsort((found[0], pair))
        best = best[np.flatnonzero(np.diff(pair[best], prepend=-1))]  # the first of each pair is its least
        value, root, level = np.full(rows.size, np.inf), np.zeros(rows.size), np.zeros(rows.size)
        value[pair[best]], root[pair[best]], level[pair[best]] = (part[best] for part in found)
        free = np.where(people == 0.0, mass, 0.0).sum(axis=1)  # one more candidate: no noise at all
        with np.errstate(divide="ignore", invalid="ignore"):
            silent = 1.0 / free < value
            share = own_mass * np.maximum(level - to, 0.0)
            loss = share * (KAPPA / 3.0) / root * (CUBE_ROOT_4 / root)
            mse = value - (2.0 * KAPPA / 3.0) * root * root
            value = np.where(silent, 1.0 / free, value)
        loss = np.where(silent, np.where(moved == 0.0, np.inf, 0.0), np.where(moved < np.inf, loss, 0.0))
        return value, loss, np.where(silent | (value == np.inf), value, mse)

    def _populations(self, rows: IndexArray, moved: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Costs and masses, sorted along each row, with the person's cost replaced; and her mass."""
        own_mass = self._mass(rows)
        people = np.repeat(np.append(self._sorted, np.inf)[None, :], rows.size, axis=0)
        mass = np.repeat(np.append(self._sorted_mass, 0.0)[None, :], rows.size, axis=0)
        place = np.full(self._costs.size, self._order.size)  # who is no contender has the last place, which is empty
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
    mass: FloatArray | None,
    moved: FloatArray,
    *,
    highest: float = 0.0,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Value, loss and error when ``mass`` (1 if None) moves from ``own`` to ``moved``, offsets from the base.

    The level must be known to stay between the costs of the people ``window``, or, where that ends with the dearest,
    below ``highest``.
    """
    value, loss, mse = np.empty(own.size), np.empty(own.size), np.empty(own.size)
    pending: IndexArray | slice = slice(None)
    first_one = window[0]
    near_level = sums.offset[first_one : window[1]]
    to = np.minimum(moved, 1e300)
    level: FloatArray | float = start.level  # one level for all to begin with
    root = np.full(own.size, start.root)
    for round_ in range(10):
        if round_ == 9:  # the few that go to and fro between two neighbouring pieces
            level = _level(sums, window, own, np.ones(own.size) if mass is None else mass, to, highest)
        count = near_level.searchsorted(level, side="right")  # step 1: the piece the level lies in
        present = to < level
        index, removed, added = count + (first_one - 1), (own <= level).astype(float), present.astype(float)
        if mass is not None:
            removed *= mass
            added *= mass
        near = np.where(present, to, 0.0)  # step 2: its sums, less her at her own cost, plus her at the other
        out, into = removed * own, added * near
        total = (sums.total[index] - removed) + added
        first = (sums.first[index] - out) + into
        mean = first / total
        out *= own
        into *= near
        spread = (sums.second[index] - out) + into
        spread -= first * mean
        np.maximum(spread, 0.0, out=spread)
        root = _larger_root(sums.base + mean, (KAPPA / 3.0) * spread, root)  # step 3: its minimum
        level = mean + (3.0 / KAPPA) * root / total
        # step 4: done where the minimum lies in the piece it was solved for
        done = (near_level.searchsorted(level, side="right") == count) & ((to < level) == present)
        square = root * root
        best = 1.0 / total + (KAPPA * KAPPA / 9.0) * spread / square + KAPPA * square
        lost = added * np.maximum(level - near, 0.0) * (KAPPA * CUBE_ROOT_4 / 3.0) / square
        error = best - (2.0 * KAPPA / 3.0) * square
        if round_ == 9 or done.all():
            value[pending], loss[pending], mse[pending] = best, lost, error
            break
        everybody = np.arange(value.size)[pending]  # put the finished away and go on with the others
        which, left = everybody[done], ~done
        value[which], loss[which], mse[which] = best[done], lost[done], error[done]
        pending = everybody[left]
        own, to, level, root = own[left], to[left], np.asarray(level)[left], root[left]
        mass = None if mass is None else mass[left]
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


def _pieces_with_a_minimum(
    lowest: FloatArray, there: BoolArray, offset: FloatArray, mass: FloatArray
) -> tuple[IndexArray, IndexArray]:
    """Row and number of every piece that holds a minimum, or a hump that may; see :mod:`hushbid.allocation.central`."""
    base = np.where(lowest < np.inf, lowest, 0.0)
    total = mass.cumsum(axis=1)
    weighted = mass * offset
    first = weighted.cumsum(axis=1)
    second = (weighted * offset).cumsum(axis=1)
    gain = total * offset - first
    scaled = base * gain  # a·G; at her own cost a person adds nothing to it, so her own terms are left out
    scaled[:, 1:] += offset[:, 1:] * first[:, :-1] - second[:, :-1]
    falling = there & (_SLOPE * np.square(np.square(gain)) <= scaled)
    after = np.zeros_like(falling)  # h falls at the left end and rises at the right
    after[:, :-1] = falling[:, 1:]
    minimum = falling & ~after
    # h rises at both ends, but falls between if it falls at a = m/4
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
        step = b * (cube - mean) + constant
        if slope.min(initial=1.0) > 0.0:
            step /= slope
        else:
            with np.errstate(invalid="ignore"):  # where nothing is finite there is no root either
                step = np.where(slope > 0.0, step / np.where(slope > 0.0, slope, 1.0), 0.0)
        b -= step
        if not (np.abs(step) > 1e-13 * b).any():  # the next step would be its square
            break
    return b
