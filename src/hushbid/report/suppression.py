"""What may be said about people without saying anything about a person.

A privacy loss or a payment tells what somebody bid, so a report that leaves the house holds none. Five rules:

1. A chart or a list of quantiles is drawn from at least `SMALLEST_CHART` people, or not at all.
2. A bar of a histogram stands for at least `SMALLEST_CELL` people, bars with fewer are joined to their neighbours; and
   a quantile has as many on either side.
3. A group has at least `SMALLEST_CHART` people; smaller ones are pooled, together with the smallest large one if the
   pool would be too small. Amounts of a group in which fewer than `SMALLEST_CELL` people were bought from are
   withheld, and those of a second group if the first could be had by subtraction. The same holds for all people
   together: then no amount is told, and errors and the largest loss are rounded up to a coarse step. Where strata are
   combined, it holds as soon as one of them has so few: what all of a stratum lose follows from any other's, as their
   weights are to each other, and from the errors.
4. Where some of those bought from did not deliver, but fewer than `SMALLEST_CHART`, they are not counted, and nothing
   is told that changes with their number.
5. How many declined, withdrew or did not answer is told for each only where that is nobody or `SMALLEST_CHART` people;
   smaller numbers are told together with others. Whoever knows what all but one did would otherwise know the last
   one's. Fees are not told where they would tell such a number.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hushbid.common.arrays import BoolArray, FloatArray, IndexArray
from hushbid.disclosure.error import FEWEST_IN_CHART, FEWEST_PEOPLE
from hushbid.errors import InputError
from hushbid.estimation import Strata
from hushbid.languages import noted
from hushbid.mechanism import Outcome
from hushbid.report.language import say
from hushbid.report.rendering import plain

SMALLEST_CHART = FEWEST_IN_CHART
"""No chart, quantile or group is shown that fewer people are behind."""

SMALLEST_CELL = FEWEST_PEOPLE
"""No bar and no group's amount is shown that fewer people are behind."""

NOT_STATED = noted("Not stated")
_LONGEST_POOL = 40
_FEWEST_BARS, _MOST_BARS = 8, 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Histogram:
    """Counts between round edges."""

    edges: tuple[float, ...]
    """One more than counts; bars may differ in width."""

    counts: tuple[int, ...]
    """People in each bar, at least `SMALLEST_CELL`."""

    width: float
    """The width of a bar that was not joined to others."""

    @property
    def heights(self) -> tuple[float, ...]:
        """People per `width`: what to draw, so that areas are people."""
        spans = np.diff(self.edges)
        return tuple((np.asarray(self.counts) * self.width / spans).tolist())


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRow:
    """One group of people; shares are of everybody."""

    name: str
    """The group's name, or that of the pool."""

    people: int
    """How many bid."""

    bought_from: int
    """How many have a positive privacy loss."""

    share_of_people: float
    """Part of all who bid."""

    share_of_weight: float | None
    """Part of the estimate that rests on this group; None if withheld."""

    share_of_payment: float | None
    """Part of all payments; None if withheld, or if payments do not all have one sign."""

    mean_loss: float | None
    """Privacy loss per person of the group, those who lose nothing included; None if withheld."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Labels:
    """Everybody's group."""

    names: tuple[str, ...]
    """The groups."""

    codes: IndexArray
    """For each person the place of her group among the names."""


def too_few(bought_from: int) -> bool:
    """Whether sums over those bought from would tell what one of them bid."""
    return 0 < bought_from < SMALLEST_CELL


def few_words(*, in_stratum: bool) -> str:
    """Why something is withheld: too few people were bought from, in all or in one of the strata."""
    if in_stratum:
        return say(
            "Fewer than {number} people of a stratum were bought from, so this could show what one of them bid.",
            number=SMALLEST_CELL,
        )
    return say(
        "Fewer than {number} people were bought from, so this could show what one of them bid.", number=SMALLEST_CELL
    )


def fewest(outcome: Outcome) -> int:
    """How many people were bought from in the smallest stratum; of all where there are none. Of 0, all are 0."""
    strata = outcome.market.stratified
    return outcome.active if strata is None else fewest_in(strata, outcome.privacy_loss)


def fewest_in(strata: Strata, losses: FloatArray) -> int:
    """How many people of the smallest stratum lose something."""
    return int(np.bincount(strata.codes[losses > 0.0], minlength=strata.count).min())


def enough_for_chart(people: int) -> bool:
    """Whether a chart, or what is compared in one, hides each of the people behind it."""
    return people >= SMALLEST_CHART


def few_missing(missing: int) -> bool:
    """Whether a number or a sum without those who did not deliver would tell about one of them."""
    return 0 < missing < SMALLEST_CHART


def told_together(counts: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    """Counts of people by what they did: each is large, or is told together with others, in the order they came in.

    >>> told_together({"declined": 30, "withdrew": 2, "did not answer": 50, "were excluded": 0})
    (('did not answer', 50), ('declined, withdrew or were excluded', 32))
    """
    small = {name for name, people in counts.items() if 0 < people < SMALLEST_CHART}
    if not small:
        return tuple((name, people) for name, people in counts.items() if people)
    # with those of whom there is nobody: that, too, would tell which of them the others are
    pool = small | {name for name, people in counts.items() if not people}
    for name in sorted(counts.keys() - pool, key=lambda name: counts[name]):
        if sum(counts[one] for one in pool) < SMALLEST_CHART:
            pool.add(name)
    *first, last = (name for name in counts if name in pool)
    words = say("{first} or {last}", first=", ".join(first), last=last) if first else last
    apart = ((name, people) for name, people in counts.items() if name not in pool)
    return (*apart, (words, sum(counts[name] for name in pool)))


def coarse(value: float, bought_from: int) -> float:
    """An error or a loss that few people are behind, rounded up to 1, 2, 2.5 or 5 times a power of ten."""
    return round_step(value) if too_few(bought_from) and 0.0 < value < math.inf else value


def histogram(values: FloatArray) -> Histogram | None:
    """Counts in bars of round width that are joined until each has enough people; None for too few people."""
    if values.size < SMALLEST_CHART or not np.isfinite(values).all():
        return None
    bars = min(max(round(math.sqrt(values.size)), _FEWEST_BARS), _MOST_BARS)
    low, high = float(values.min()), float(values.max())
    width = round_step((high - low) / bars if high > low else max(abs(high), 1.0) / bars)
    # round edges, with room for the last digits of the ends
    first = math.floor(low / width + 1e-9)
    last = max(math.ceil(high / width - 1e-9), first + 1)
    edges = np.arange(first, last + 1) * width
    place = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, edges.size - 2)
    # bars are joined to the right until each has enough people, the rest to the last
    kept, counts, waiting = [float(edges[0])], [], 0
    for bar, inside in enumerate(np.bincount(place, minlength=edges.size - 1).tolist()):
        waiting += inside
        if waiting >= SMALLEST_CELL:
            kept.append(float(edges[bar + 1]))
            counts.append(waiting)
            waiting = 0
    if waiting:
        counts[-1] += waiting
    kept[-1] = float(edges[-1])
    return Histogram(edges=tuple(float(f"{edge:.12g}") for edge in kept), counts=tuple(counts), width=width)


def round_step(size: float) -> float:
    """The smallest of 1, 2, 2.5, 5 times a power of ten that is at least ``size``."""
    power = 10.0 ** math.floor(math.log10(size))
    return next(step * power for step in (1.0, 2.0, 2.5, 5.0, 10.0) if step * power >= size * (1 - 1e-9))


def quantiles(values: FloatArray, levels: Sequence[float]) -> tuple[tuple[float, float], ...]:
    """(level, quantile) of many people's numbers, for the levels with enough people on both sides; () for too few."""
    if values.size < SMALLEST_CHART or not np.isfinite(values).all():
        return ()
    safe = [level for level in levels if min(level, 1.0 - level) * values.size >= SMALLEST_CELL]
    return tuple((level, float(np.quantile(values, level))) for level in safe)


def as_labels(groups: Sequence[object] | NDArray[np.generic], people: int) -> Labels:
    """Everybody's group by a name fit to be shown; what is missing is a group of its own."""
    values = list(groups.tolist() if isinstance(groups, np.ndarray) else groups)
    if len(values) != people:
        raise InputError(f"groups must have one entry per person ({people}), got {len(values)}.", field="groups")
    known: dict[object, int] = {}
    names: dict[str, int] = {}

    def code_of(value: object) -> int:
        name = say(NOT_STATED) if _missing(value) else plain(value) or say(NOT_STATED)
        known[value] = names.setdefault(name, len(names))
        return known[value]

    codes = [known[value] if value in known else code_of(value) for value in values]
    return Labels(names=tuple(names), codes=np.array(codes, dtype=np.intp))


def group_rows(outcome: Outcome, labels: Labels) -> tuple[GroupRow, ...]:
    """Everybody's numbers added up by group, largest group first; empty if all would be one pool."""
    names, place = list(labels.names), labels.codes
    pooled = pool(np.bincount(place, minlength=len(names)))
    if pooled.all():
        return ()
    if pooled.any():
        place = np.where(pooled[place], len(names), place)
        names.append(_pool_name(sorted(name for name, inside in zip(names, pooled, strict=True) if inside)))
    # shares of a sum make sense only if all have one sign
    total = outcome.total_payment if (outcome.payments >= 0.0).all() else 0.0
    shown = np.flatnonzero(np.bincount(place, minlength=len(names))).tolist()
    size = np.abs(outcome.weights) / (np.abs(outcome.weights).sum() or 1.0)
    rows = [_row(outcome, size, names[index], place == index, total) for index in shown]
    told = [_without_amounts(row) for row in rows] if too_few(fewest(outcome)) else _withheld(rows)
    return tuple(sorted(told, key=lambda row: (-row.people, row.name)))


def _pool_name(names: list[str]) -> str:
    joined = ", ".join(names)
    if len(joined) <= _LONGEST_POOL:
        return say("{names} (pooled)", names=joined)
    return say("{count} smaller groups, pooled", count=len(names))


def _missing(value: object) -> bool:
    return value is None or value != value or type(value).__name__ == "NAType"  # NaN is the value that is not itself


def pool(people: IndexArray) -> BoolArray:
    """Which groups are pooled: all small ones, and large ones, the smallest first, until the pool is large enough."""
    pooled = people < SMALLEST_CHART
    if pooled.any():
        for index in np.argsort(people, kind="stable").tolist():
            if people[pooled].sum() >= SMALLEST_CHART:
                break
            pooled[index] = True
    return np.asarray(pooled)


def _row(outcome: Outcome, size: FloatArray, name: str, inside: BoolArray, total: float) -> GroupRow:
    people, loss = int(inside.sum()), outcome.privacy_loss[inside]
    return GroupRow(
        name=name,
        people=people,
        bought_from=int(np.count_nonzero(loss)),
        share_of_people=people / outcome.bids.size,
        share_of_weight=float(size[inside].sum()),
        share_of_payment=float(outcome.payments[inside].sum()) / total if total > 0.0 else None,
        mean_loss=float(loss.mean()),
    )


def _withheld(rows: list[GroupRow]) -> list[GroupRow]:
    """The rows without the amounts that too few people are behind, directly or by subtraction."""
    # one hidden amount alone follows from the total: hide the next smallest too
    hidden = {index for index, row in enumerate(rows) if too_few(row.bought_from)}
    buying = sorted((row.bought_from, index) for index, row in enumerate(rows) if row.bought_from)
    for _, index in buying:
        if not hidden or (len(hidden) > 1 and sum(rows[one].bought_from for one in hidden) >= SMALLEST_CELL):
            break
        hidden.add(index)
    return [_without_amounts(row) if index in hidden else row for index, row in enumerate(rows)]


def _without_amounts(row: GroupRow) -> GroupRow:
    return replace(row, share_of_weight=None, share_of_payment=None, mean_loss=None)
