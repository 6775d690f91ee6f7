"""Whether a price under caps has one stationary point only, whoever's cost is raised.

Raising a cost lowers no value, and what is attained without her bounds the optimum then: so every optimum has its ``S``
where the bounds of the search do not exceed the largest of these values. There, with mass, mean and centred second
moment ``U, m, Q`` of those inside and ``E`` of those at the cap, ``S³Φ'`` has the slope ``2E/U + 3mS² − 2QS³``. If that
is positive whoever moves, ``Φ`` has one stationary point there at most, and one that is found is the optimum.
"""

import math

import numpy as np

from hushbid.allocation.capped.crowds import Crowd, Variants
from hushbid.allocation.capped.optimum import start
from hushbid.allocation.capped.price import Lines, bounds, fill, search
from hushbid.arrays import FloatArray

_ROUNDS = 7
_FAR = 1.3


def only_basin(crowd: Crowd, level: float, rate: float) -> tuple[float, float] | None:
    """Between which ``S`` all optima lie if any one person's cost is raised, each the only stationary one; or None."""
    present, worst = _worst_without(crowd, level, rate)
    if not worst < _FAR * present:  # one person's move changes too much for the bounds to be worth anything
        return None
    ends = _range_below(crowd, worst)
    levels = _levels(crowd, *ends)
    if levels is None:
        return None
    people, (low, high) = crowd.people, levels
    slow, fast = 0.5 * ends[0] ** 2, 0.5 * ends[1] ** 2
    costs = crowd.base + people.offset
    capped_low, capped_high = people.groups(low, slow)[1], people.groups(high, fast)[1]
    sure = people.groups(low, slow)[0] & ~capped_high
    perhaps = (people.offset < high) & ~capped_low
    mass = float(people.mass[perhaps].sum())
    if mass == 0.0:
        return ends
    most = float(people.mass.max())
    # the mean of those inside at least, their second moment at most, whoever moves
    weighted = people.mass * costs
    mean = max((float(weighted[sure].sum()) - float(weighted[perhaps].max())) / (mass + most), crowd.base)
    centre = float(weighted[perhaps].sum()) / mass
    far = max(abs(crowd.base + high - centre), abs(centre - crowd.base))
    second = float((people.mass * (costs - centre) ** 2)[perhaps].sum()) + most * far * far
    # who is inside has a cost at most ``e/(ρu)`` below the level
    band = float((people.cap / (slow * people.mass)).max())
    second = min(second, 0.25 * (mass + most) * band * band)
    used = max(float(people.cap[capped_low].sum()) - float(people.cap[capped_low].max(initial=0.0)), 0.0)
    slope = 2.0 * used / ((mass + most) * ends[1] ** 2) + 3.0 * mean - 2.0 * second * ends[1]
    return ends if slope > 0.0 else None


def _worst_without(crowd: Crowd, level: float, rate: float) -> tuple[float, float]:
    """The value now, and the largest that is attained when one person's loss becomes zero and the others' stay."""
    people = crowd.people
    losses = people.losses(level, rate)
    squares = losses * losses / people.mass
    total, all_squares = float(losses.sum()), float(squares.sum())
    bills = (crowd.base + people.offset) * losses
    left = total - losses
    present = (2.0 + all_squares) / (total * total) + float(bills.sum())
    if not float(left.min()) > 1e-9 * total:
        return present, float("inf")
    values: FloatArray = (2.0 + all_squares - squares) / (left * left) + (float(bills.sum()) - bills)
    return present, float(values.max()) * (1.0 + 1e-12)


def _range_below(crowd: Crowd, worst: float) -> tuple[float, float]:
    """The ``S`` between which no bound exceeds a value."""
    variants = Variants(crowd)
    seen: Lines = search(variants, *start(variants)).lines
    seen = seen.take(np.argsort(seen.at, kind="stable"))
    seen = seen.take(np.flatnonzero(np.diff(seen.at, append=np.inf) > 1e-9 * seen.at))
    for _ in range(_ROUNDS):
        left, right = seen.take(np.arange(seen.at.size - 1)), seen.take(np.arange(1, seen.at.size))
        open_ = np.flatnonzero(bounds(left, right, crowd.base)[0] <= worst)
        # only the two outermost matter, and only if they are wide
        outer = np.unique(open_[[0, -1]])
        outer = outer[(right.at - left.at)[outer] > 1e-3 * left.at[outer]]
        if outer.size == 0:
            break
        middle = np.sqrt(left.at[outer] * right.at[outer])
        seen = seen.joined(fill(variants, np.zeros(outer.size, dtype=np.intp), middle, middle))
        seen = seen.take(np.argsort(seen.at, kind="stable"))
    left, right = seen.take(np.arange(seen.at.size - 1)), seen.take(np.arange(1, seen.at.size))
    open_ = np.flatnonzero(bounds(left, right, crowd.base)[0] <= worst)
    return float(left.at[open_[0]]), float(right.at[open_[-1]])


def _levels(crowd: Crowd, low: float, high: float) -> tuple[float, float] | None:
    """Levels that are never left while ``S`` stays between two values and one person is away; None if not known."""
    people, slow, fast = crowd.people, 0.5 * low * low, 0.5 * high * high
    least = float(_filled(crowd, fast, low))
    caps = float(people.cap.sum())
    target = high
    for _ in range(30):
        if target >= caps * (1.0 - 1e-9):
            # nearly everybody is at her cap: beside somebody who is not, nobody's level is above hers
            most = float((people.offset + people.cap / (slow * people.mass)).max())
            return (least, most) if crowd.top == math.inf and most < math.inf else None
        level = float(_filled(crowd, slow, target))
        losses = people.losses(level, slow)
        if float(losses.sum()) - float(losses.max()) >= high:
            return least, level
        target = high + 1.5 * float(losses.max())
    return None


def _filled(crowd: Crowd, rate: float, target: float) -> float:
    """The level at which losses at a rate add up to a target."""
    at = np.array([np.sqrt(2.0 * rate)])
    lines = fill(Variants(crowd), np.zeros(1, dtype=np.intp), at, np.array([target]))
    return float(lines.level[0])
