"""Where the optimum under caps is, among as few people as possible: of many, a sample tells where to stop looking."""

import math
from collections.abc import Iterator

import numpy as np

from hushbid.allocation.capped.crowds import OneCap, Variants
from hushbid.allocation.capped.levels import Points, newton, solve_levels
from hushbid.allocation.capped.people import People
from hushbid.allocation.capped.price import PRICE, search
from hushbid.allocation.capped.problem import Guess, Scaled
from hushbid.arrays import FloatArray, IndexArray
from hushbid.errors import Unreachable

SELECT_ABOVE = 1 << 15
_SAMPLE = 1 << 13
_FIRST = 256
_CLOSED = 3e-10
"""A cut loses nothing if value and bound are that close."""


def few(scaled: Scaled) -> Iterator[tuple[IndexArray, float, Guess]]:
    """Ever more of the cheapest people, sorted, if there are many; the cost below which they are, as a level; a guess.

    In a sample, each of whom stands for many, the level is looked for at which caps allow as much as is best without.
    """
    costs = scaled.costs
    if costs.size <= SELECT_ABOVE:
        return
    step = costs.size // _SAMPLE
    ordered = np.sort(costs[::step])
    ordered = ordered[: int(ordered.searchsorted(scaled.most, side="right"))]
    spare, guess = _FIRST, (1.0, 1.0)
    if scaled.uncapped is not None and ordered.size:
        rate, total = scaled.uncapped
        offset, nobody = scaled.offsets(ordered), np.zeros(1, dtype=np.intp)
        everybody = np.arange(0, costs.size, step)
        cap, mass = float(np.median(scaled.caps_of(everybody))), float(scaled.masses(everybody).mean())
        crowd = OneCap(scaled.base, offset, min(cap, total))
        target = min(total / step, 0.999 * crowd.cap * offset.size)
        level = float(Variants(crowd).levels(np.array([rate * mass]), np.array([target]), nobody)[0])
        count, guess = int(offset.searchsorted(level)), (level, rate)
        # four standard deviations of the sample's count, and some, to spare
        spare = count + int(4.0 * math.sqrt(count)) + 8
    while spare < ordered.size:
        cut = float(ordered[spare])
        rows = np.flatnonzero(costs < cut)
        rows = rows[np.argsort(costs[rows], kind="stable")]
        yield rows, cut / scaled.scale - scaled.base, guess
        spare *= 2


def best_level(scaled: Scaled, rows: IndexArray, top: float, guess: Guess) -> Points | None:
    """The level and rate of an accuracy or a budget among some people; None if they are too few."""
    if top < math.inf and _too_few(scaled, rows):
        return None
    variants = Variants(scaled.crowd(rows, top))
    points = solve_levels(variants, scaled.aim, *(np.array([one]) for one in guess))
    return points if points.level[0] <= top else None


def _too_few(scaled: Scaled, rows: IndexArray) -> bool:
    """Whether these people alone cannot meet the goal."""
    losses, error = scaled.weight(rows)
    if scaled.aim.kind == "accuracy":
        return error >= scaled.aim.number
    return _expense(scaled, rows, losses) <= scaled.aim.number


def _expense(scaled: Scaled, rows: IndexArray, losses: FloatArray) -> float:
    """What losses cost."""
    return float((scaled.costs[rows] * losses).sum()) / scaled.scale


def best_price(
    scaled: Scaled, rows: IndexArray, top: float, guess: Guess | None = None
) -> tuple[Points, float, float] | None:
    """The best purchase that somebody is paid for, its value and the bound that no other is below; None if too few."""
    variants = Variants(scaled.crowd(rows, top))
    begin = start(variants, guess)
    if not begin[1][0] > 0.0:  # everybody asks for nothing
        nothing = np.zeros(1)
        return Points(nothing, nothing, variants.totals(nothing, nothing), scaled.base), math.inf, math.inf
    people = variants.crowd.people
    # who buys more than all these may give pays more than they all cost
    if top < math.inf and not float(((scaled.base + people.offset) * people.cap).sum()) > float(begin[2][0]):
        return None
    found = search(variants, *begin)
    value, bound = float(found.value[0]), float(found.bound[0])
    return (found.points, value, bound) if top == math.inf or bound >= value * (1.0 - _CLOSED) else None


def price_optimum(scaled: Scaled) -> tuple[IndexArray, Points, float, float]:
    """Rows among which everybody bought from is, their best level and rate, its value and the bound for all others."""
    for rows, top, guess in few(scaled):
        found = best_price(scaled, rows, top, guess)
        if found is not None:
            return rows, *found
    rows, _ = all_buyable(scaled)
    found = best_price(scaled, rows, math.inf)
    assert found is not None
    return rows, *found


def level_optimum(scaled: Scaled) -> tuple[IndexArray, Points] | None:
    """Rows among which everybody bought from is, and their level and rate; None if it takes all that caps allow."""
    for rows, top, guess in few(scaled):
        points = best_level(scaled, rows, top, guess)
        if points is not None:
            return rows, points
    rows, guess = all_buyable(scaled)
    losses, error = scaled.weight(rows)
    if scaled.aim.kind == "accuracy":
        if error > scaled.aim.number * (1.0 + 1e-15):
            raise Unreachable(
                f"standard_error must be at least {math.sqrt(error * scaled.unit):.6g}, the least that these"
                f" {rows.size} people's data reach under max_loss,"
                f" got {math.sqrt(scaled.aim.number * scaled.unit):g}.",
                field="standard_error",
            )
        if error >= scaled.aim.number * (1.0 - 1e-14):
            return None
    elif bool((losses < math.inf).all()) and _expense(scaled, rows, losses) <= scaled.aim.number:
        return None
    points = best_level(scaled, rows, math.inf, guess)
    assert points is not None
    return rows, points


def all_buyable(scaled: Scaled) -> tuple[IndexArray, Guess]:
    """Everybody who can be bought from, sorted, and a guess of level and rate."""
    rows = scaled.buyable
    rows = rows[np.argsort(scaled.costs[rows], kind="stable")]
    return rows, (float(scaled.offsets(scaled.costs[rows[rows.size // 2]])), 1.0)


def start(variants: Variants, guess: tuple[float, float] | None = None) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Between which ``S`` all purchases lie that somebody is paid for and that beat one which is attained.

    One person alone gives a value ``J``, or a guess of level and rate. Then ``2/S² ≤ J``; whoever is paid costs at most
    ``2·MSE/S``; and all together cost no more than ``J``.
    """
    base, people = variants.crowd.base, variants.crowd.people
    here = alone(people, base)
    costs = base + people.offset
    paid = np.where(costs > 0.0, costs, np.inf)
    if variants.without is None or variants.moved is None:
        value, cheapest = np.array([here.min()]), np.array([paid.min()])
        if guess is not None:
            level, rate = (np.array([one]) for one in guess)
            guessed = newton(variants, PRICE, level, rate)[0]
            value = np.fmin(value, guessed.mse + guessed.expense)
    else:
        value = np.minimum(_least_without(here, variants.without), alone(variants.moved, base))
        there = base + variants.moved.offset
        moved = np.where((variants.moved.mass > 0.0) & (there > 0.0), there, np.inf)
        cheapest = np.minimum(_least_without(paid, variants.without), moved)
    with np.errstate(divide="ignore", invalid="ignore"):
        high = np.where(value < np.inf, 2.0 * value / cheapest, 0.0)
        # the cheapest at their caps cost as little as anybody, one more person besides
        bills = np.where(costs > 0.0, costs * people.cap, 0.0).cumsum()
        count = np.minimum(bills.searchsorted(value, side="right"), bills.size - 1)
        most = people.cap.cumsum()[count] + (0.0 if variants.moved is None else variants.moved.cap)
        return np.sqrt(2.0 / value), np.minimum(high, most), value


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
