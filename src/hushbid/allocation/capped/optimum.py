"""Where the optimum under caps is, among as few people as possible: of many, a sample tells where to stop looking."""

import math

import numpy as np

from hushbid.allocation.capped.crowds import Crowd, OneCap, Variants, Various
from hushbid.allocation.capped.levels import Aim, Points, solve_levels
from hushbid.allocation.capped.people import People
from hushbid.allocation.capped.price import search
from hushbid.allocation.capped.problem import Scaled
from hushbid.arrays import FloatArray, IndexArray

_SELECT_ABOVE = 1 << 15
_SAMPLE = 1 << 13
_CLOSED = 3e-10
"""A cut loses nothing if value and bound are that close."""


def _cuts(scaled: Scaled, buyable: IndexArray) -> list[float]:
    """Costs below which everybody bought from may be, ever higher; a sample proposes the first."""
    if buyable.size <= _SELECT_ABOVE:
        return [math.inf]
    step = buyable.size // _SAMPLE
    sample = buyable[::step]
    sample = sample[np.argsort(scaled.costs[sample], kind="stable")]
    picked = scaled.people(sample)
    level = _level_of_sample(scaled, picked, buyable.size / sample.size)
    count = int(picked.offset.searchsorted(level))
    # four standard deviations of the sample's count, and some, to spare; then ever more
    spare, cuts = count + int(4.0 * math.sqrt(count)) + 16, []
    while spare < sample.size:
        cuts.append(float(scaled.costs[sample[spare]]))
        spare *= 2
    return [*cuts, math.inf]


def _level_of_sample(scaled: Scaled, picked: People, heavier: float) -> float:
    """The level if each of some people stood for many: their variance is that much smaller, and so are the units."""
    price = scaled.aim.kind == "price"
    factor = heavier**1.5 if price else 1.0
    offset, cap = picked.offset * factor, picked.cap * math.sqrt(heavier)
    crowd: Crowd = Various(scaled.base * factor, People.of(offset, picked.mass, cap))
    if scaled.alike:
        crowd = OneCap(scaled.base * factor, offset, float(cap[0]))
    variants = Variants(crowd)
    if price:
        return float(search(variants, *start(variants)).points.level[0]) / factor
    number = scaled.aim.number * (heavier if scaled.aim.kind == "accuracy" else heavier**-0.5)
    middle = np.array([offset[offset.size // 2]])
    return float(solve_levels(variants, Aim(scaled.aim.kind, number), middle, np.ones(1)).level[0])


def below(scaled: Scaled, buyable: IndexArray, cut: float) -> tuple[IndexArray, float]:
    """The people below a cost, sorted, and that cost as a level."""
    rows = buyable if cut == math.inf else buyable[scaled.costs[buyable] < cut]
    rows = rows[np.argsort(scaled.costs[rows], kind="stable")]
    return rows, cut / scaled.scale - scaled.base


def best_level(scaled: Scaled, buyable: IndexArray) -> tuple[IndexArray, Points]:
    """The level and rate of an accuracy or a budget, and the people among whom everybody bought from is."""
    for cut in _cuts(scaled, buyable):
        rows, top = below(scaled, buyable, cut)
        variants = Variants(scaled.crowd(rows, top))
        if cut < math.inf and _too_few(scaled, rows):
            continue
        offset = variants.crowd.people.offset
        points = solve_levels(variants, scaled.aim, np.array([offset[offset.size // 2]]), np.ones(1))
        if points.level[0] <= top:
            break
    return rows, points


def _too_few(scaled: Scaled, rows: IndexArray) -> bool:
    """Whether these people alone cannot meet the goal."""
    losses, error = scaled.weight(rows)
    if scaled.aim.kind == "accuracy":
        return error >= scaled.aim.number
    return float((scaled.costs[rows] * losses).sum()) / scaled.scale <= scaled.aim.number


def best_price(scaled: Scaled, buyable: IndexArray) -> tuple[IndexArray, Points, float, float]:
    """The best purchase that somebody is paid for, its value and the bound that no other is below."""
    for cut in _cuts(scaled, buyable):
        rows, top = below(scaled, buyable, cut)
        variants = Variants(scaled.crowd(rows, top))
        begin = start(variants)
        if not begin[1][0] > 0.0:  # everybody asks for nothing
            nothing = np.zeros(1)
            return rows, Points(nothing, nothing, variants.totals(nothing, nothing), scaled.base), math.inf, math.inf
        found = search(variants, *begin)
        value, bound = float(found.value[0]), float(found.bound[0])
        if bound >= value * (1.0 - _CLOSED) or cut == math.inf:
            break
    return rows, found.points, value, bound


def start(variants: Variants) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Between which ``S`` all purchases lie that somebody is paid for and that beat one which is attained.

    One person alone gives a value ``J``. Then ``2/S² ≤ J``; and whoever is paid costs at most ``2·MSE/S``.
    """
    base, people = variants.crowd.base, variants.crowd.people
    here = alone(people, base)
    costs = base + people.offset
    paid = np.where(costs > 0.0, costs, np.inf)
    if variants.without is None or variants.moved is None:
        value, cheapest = np.array([here.min()]), np.array([paid.min()])
    else:
        value = np.minimum(_least_without(here, variants.without), alone(variants.moved, base))
        there = base + variants.moved.offset
        moved = np.where((variants.moved.mass > 0.0) & (there > 0.0), there, np.inf)
        cheapest = np.minimum(_least_without(paid, variants.without), moved)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.sqrt(2.0 / value), np.where(value < np.inf, 2.0 * value / cheapest, 0.0), value


def alone(people: People, base: float) -> FloatArray:
    """What each person alone costs at her best; infinite for who is not there."""
    costs = base + people.offset
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        loss = np.minimum(np.cbrt(4.0 / costs), people.cap)
        value = 2.0 / (loss * loss) + 1.0 / people.mass + np.where(costs > 0.0, costs * loss, 0.0)
    return np.where(people.mass > 0.0, value, np.inf)


def _least_without(values: FloatArray, without: IndexArray) -> FloatArray:
    """The least of all but one."""
    first = int(values.argmin())
    others = float(np.delete(values, first).min(initial=np.inf))
    return np.where(without == first, others, values[first])
