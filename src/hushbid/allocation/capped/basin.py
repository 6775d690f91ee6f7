"""Whether a price under caps has one stationary point only, whoever's cost is raised.

Raising a cost lowers no value, and what is attained without her bounds the optimum then: so every optimum has its ``S``
where the bounds of the search do not exceed that value. There, with mass, mean and centred second moment ``U, m, Q`` of
those inside and ``E`` of those at the cap of every stratum, ``S³Φ'`` has the slope

    Σ_g (2λ_g·E_g/U_g + 3λ_g·m_g·S² − 2Q_g·S³),

and jumps up where nobody of a stratum is inside. If the slope is positive, ``Φ`` has one stationary point there at
most, and one that is found is the optimum. Without strata there is one, of size 1.
"""

import math
from dataclasses import dataclass

import numpy as np

from hushbid.allocation.capped.crowds import Crowd, Variants
from hushbid.allocation.capped.parts import Lines, Parts, fill
from hushbid.allocation.capped.price import bounds
from hushbid.arrays import FloatArray

_ROUNDS = 7
_FAR = 1.3
_NEAR = 4.0
"""Strata whose worst values are so many times as far from the present one share a range."""


@dataclass(frozen=True, slots=True)
class Basin:
    """A stationary point of a population in which one cost is raised is its optimum, if it is in here."""

    worst: float
    """Its value is at most this."""

    low: float
    high: float
    """Its ``S`` is between these."""


def basins(parts: Parts, seen: Lines, levels: list[float], rate: float) -> list[Basin | None]:
    """For each stratum, where the optima lie if one of its people's cost is raised; None where that is not proved.

    ``parts`` is one population, ``seen`` the lines of its search, the levels and the rate are its optimum.
    """
    crowds = [one.crowd for one in parts.each]
    present, worst = _worst_without(parts.sizes, crowds, levels, rate)
    # one person's move that changes too much leaves nothing that the bounds could rule out
    worst = np.minimum(worst, _FAR * present)
    found: list[Basin | None] = [None] * len(crowds)
    left = np.argsort(-worst).tolist()
    while left:
        most = float(worst[left[0]])
        together = [g for g in left if worst[g] - present >= (most - present) / _NEAR]
        left = [g for g in left if g not in together]
        ends = _range_below(parts, seen, most)
        if ends is None:
            continue
        low, high = ends
        still = [_slope(size, crowd, low, high, moves=False) for size, crowd in zip(parts.sizes, crowds, strict=True)]
        for g in together:
            moved = _slope(parts.sizes[g], crowds[g], low, high, moves=True)
            if moved + sum(still[:g]) + sum(still[g + 1 :]) > 0.0:
                found[g] = Basin(most, low, high)
    return found


def _worst_without(
    sizes: list[float], crowds: list[Crowd], levels: list[float], rate: float
) -> tuple[float, FloatArray]:
    """The value now, and the largest, in each stratum, that is attained when one person's loss becomes zero.

    The others of her stratum stay as they are, and all other strata give less in proportion.
    """
    losses = [crowd.people.losses(level, rate) for crowd, level in zip(crowds, levels, strict=True)]
    squares = [loss * loss / crowd.people.mass for crowd, loss in zip(crowds, losses, strict=True)]
    bills = [(crowd.base + crowd.people.offset) * loss for crowd, loss in zip(crowds, losses, strict=True)]
    total = sum(float(loss.sum()) for loss in losses)
    sum_squares, sum_bills = (np.array([float(one.sum()) for one in each]) for each in (squares, bills))
    all_squares, all_bills = float(sum_squares.sum()), float(sum_bills.sum())
    worst = np.full(len(sizes), math.inf)
    for g, size in enumerate(sizes):
        kept = 1.0 - losses[g] / (size * total)
        if not float(kept.min()) > 1e-9:
            continue
        elsewhere, bill = all_squares - sum_squares[g], all_bills - sum_bills[g]
        error = (2.0 + kept * kept * elsewhere + (sum_squares[g] - squares[g])) / (total * kept) ** 2
        values = error + kept * bill + (sum_bills[g] - bills[g])
        worst[g] = float(values.max()) * (1.0 + 1e-12)
    return (2.0 + all_squares) / (total * total) + all_bills, worst


def _range_below(parts: Parts, seen: Lines, worst: float) -> tuple[float, float] | None:
    """The ``S`` between which no bound exceeds a value; None where rounding leaves none."""
    seen = seen.take(np.argsort(seen.at, kind="stable"))
    seen = seen.take(np.flatnonzero(np.diff(seen.at, append=np.inf) > 1e-9 * seen.at))
    for _ in range(_ROUNDS):
        left, right = seen.take(np.arange(seen.at.size - 1)), seen.take(np.arange(1, seen.at.size))
        open_ = np.flatnonzero(bounds(left, right, parts.base)[0] <= worst)
        if open_.size == 0:
            return None
        # only the two outermost matter, and only if they are wide
        outer = np.unique(open_[[0, -1]])
        outer = outer[(right.at - left.at)[outer] > 1e-3 * left.at[outer]]
        if outer.size == 0:
            break
        middle = np.sqrt(left.at[outer] * right.at[outer])
        seen = seen.joined(fill(parts, np.zeros(outer.size, dtype=np.intp), middle))
        seen = seen.take(np.argsort(seen.at, kind="stable"))
    left, right = seen.take(np.arange(seen.at.size - 1)), seen.take(np.arange(1, seen.at.size))
    open_ = np.flatnonzero(bounds(left, right, parts.base)[0] <= worst)
    return (float(left.at[open_[0]]), float(right.at[open_[-1]])) if open_.size else None


def _slope(size: float, crowd: Crowd, low: float, high: float, *, moves: bool) -> float:
    """A stratum adds at least this to the slope, over ``S²``, while ``S`` is between two values; perhaps one moves."""
    slow, fast = 0.5 * low * low, 0.5 * high * high
    levels = _levels(crowd, (size * low, fast), (size * high, slow), moves=moves)
    if levels is None:
        return -math.inf
    people, (least, highest) = crowd.people, levels
    costs = crowd.base + people.offset
    capped_low, capped_high = people.groups(least, slow)[1], people.groups(highest, fast)[1]
    sure = people.groups(least, slow)[0] & ~capped_high
    perhaps = (people.offset < highest) & ~capped_low
    mass = float(people.mass[perhaps].sum())
    if mass == 0.0:  # nobody is inside, or who moves alone
        return 3.0 * size * crowd.base + 1e-300
    most = float(people.mass.max()) if moves else 0.0
    # the mean of those inside at least, their second moment at most, whoever moves
    weighted = people.mass * costs
    away = float(weighted[perhaps].max()) if moves else 0.0
    mean = max((float(weighted[sure].sum()) - away) / (mass + most), crowd.base)
    centre = float(weighted[perhaps].sum()) / mass
    far = max(abs(crowd.base + highest - centre), abs(centre - crowd.base))
    second = float((people.mass * (costs - centre) ** 2)[perhaps].sum()) + most * far * far
    # who is inside has a cost at most ``e/(ρu)`` below the level
    band = float((people.cap / (slow * people.mass)).max())
    second = min(second, 0.25 * (mass + most) * band * band)
    used = float(people.cap[capped_low].sum()) - (float(people.cap[capped_low].max(initial=0.0)) if moves else 0.0)
    return 2.0 * size * max(used, 0.0) / ((mass + most) * high**2) + 3.0 * size * mean - 2.0 * second * high


def _levels(
    crowd: Crowd, least: tuple[float, float], most: tuple[float, float], *, moves: bool
) -> tuple[float, float] | None:
    """Levels that are never left between two targets and rates, perhaps with one person away; None if not known."""
    people, (wanted, slow) = crowd.people, most
    low = _filled(crowd, *least)
    caps, target = float(people.cap.sum()), wanted
    for _ in range(30):
        if target >= caps * (1.0 - 1e-9):
            # nearly everybody is at her cap: beside somebody who is not, nobody's level is above hers
            highest = float((people.offset + people.cap / (slow * people.mass)).max())
            return (low, highest) if crowd.top == math.inf and highest < math.inf else None
        level = _filled(crowd, target, slow)
        losses = people.losses(level, slow)
        if not moves or float(losses.sum()) - float(losses.max()) >= wanted:
            return low, level
        target = wanted + 1.5 * float(losses.max())
    return None


def _filled(crowd: Crowd, target: float, rate: float) -> float:
    """The level at which losses at a rate add up to a target."""
    everybody = np.zeros(1, dtype=np.intp)
    level = Variants(crowd).levels(np.array([rate]), np.array([target]), everybody)[0]
    return min(float(level), crowd.top)
