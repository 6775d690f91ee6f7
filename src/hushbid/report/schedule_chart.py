"""The schedule: privacy loss and payment against what a person bids.

Where people differ by nothing but their bids one curve prices everybody; under a prior for each group there is one
curve per group, and where strata are combined one per stratum. It is evaluated on an even grid, so that it shows no
bid. Where variances, limits or user weights differ from person to person, averages over neighbouring bids take
its place.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from markupsafe import Markup

from hushbid.common.arrays import FloatArray, IndexArray
from hushbid.common.money import Currency
from hushbid.languages import noted
from hushbid.mechanism import Group, Menu, Outcome, Population
from hushbid.report.language import currency_words, number, say
from hushbid.report.suppression import SMALLEST_CELL, enough_for_chart, fewest, round_step, too_few
from hushbid.report.svg import Chart, Drawing, Part, Scale, Table, area, line, plot

_STEPS = 100
_AVERAGES = 24
_MOST_CURVES = 4
_TABLE_ROWS = 13
PAYMENT_PARTS = (
    Part(noted("compensation: her price times her ε"), 0.0, "s1"),
    Part(noted("information rent"), 0.0, "s2"),
)
"""What the colours under one curve of payments mean."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """Privacy loss and payment against what a person bids."""

    name: str
    """The group, the stratum or both that the curve is for; empty if it is everybody's."""

    bids: tuple[float, ...]
    """Bids, ascending, on a grid that is nobody's."""

    privacy_loss: tuple[float, ...]
    """At each bid."""

    compensation: tuple[float, ...]
    """Bid times privacy loss."""

    rent: tuple[float, ...]
    """Information rent."""

    other: tuple[float, ...]
    """The rest of the payment, from valuing the estimate."""

    kind: Literal["exact", "average", "expected"]
    """Through everybody's decision; averages over neighbouring bids; or simulated before anybody bid."""


def curves_of(outcome: Outcome, menu: Menu | None = None) -> tuple[Curve, ...]:
    """The schedule of an outcome; from ``menu``, which is nobody's, where too few people are behind it."""
    curves: list[Curve] = []
    kinds = [] if too_few(fewest(outcome)) else _kinds(outcome.population)
    for group in sorted(kinds, key=lambda group: -group.size):
        if _enough(outcome, group.rows):
            alike = outcome.population.take(group.rows).alike_in_groups
            curves.append(_exact(outcome, group) if alike else _averages(outcome, group))
    curves = [curve for curve in curves if len(curve.bids) > 1]  # all bids equal: one point is no curve
    if not curves and menu is not None and _finite(menu.privacy_loss, menu.payment):
        return (_expected(menu),)
    return tuple(curves[:_MOST_CURVES])


def _kinds(population: Population) -> list[Group]:
    """Who has one schedule: the people of a prior, and where strata are combined those of them in one stratum."""
    strata = population.strata
    if strata is None:
        return list(population.groups)
    found = []
    for group in population.groups:
        for code, stratum in enumerate(strata.names):
            name = f"{group.name}, {stratum}" if group.name else stratum
            found.append(replace(group, name=name, who=group.rows[strata.codes[group.rows] == code]))
    return found


def _enough(outcome: Outcome, rows: IndexArray) -> bool:
    losses = outcome.privacy_loss[rows]
    return enough_for_chart(int(np.count_nonzero(losses))) and _finite(
        losses, outcome.payments[rows], outcome.bids[rows]
    )


def _finite(*arrays: FloatArray) -> bool:
    return all(bool(np.isfinite(array).all()) for array in arrays)


def _exact(outcome: Outcome, group: Group) -> Curve:
    """Straight lines through everybody's decision, read off at round bids and ending beyond the last purchase."""
    rows = group.rows
    everybody, bought = outcome.bids[rows], outcome.privacy_loss[rows] > 0.0
    low, last = float(everybody.min()), float(everybody[bought].max())
    end = min(float(everybody.max()), group.prior.support[1], last + 0.25 * (last - low))
    rows = rows[everybody <= end]
    bids, first = np.unique(outcome.bids[rows], return_index=True)
    rows = rows[first]
    step = round_step((end - low) / _STEPS if end > low else (low or 1.0) / _STEPS)
    grid: FloatArray = step * np.arange(
        math.ceil(low / step - 1e-9), math.floor(end / step + 1e-9) + 1, dtype=np.float64
    )
    loss, rent = (np.interp(grid, bids, column[rows]) for column in (outcome.privacy_loss, outcome.information_rent))
    rest = outcome.payments[rows] - bids * outcome.privacy_loss[rows] - outcome.information_rent[rows]
    return _curve(group.name, grid, loss, grid * loss, rent, np.interp(grid, bids, rest), "exact")


def _averages(outcome: Outcome, group: Group) -> Curve:
    order = group.rows[np.argsort(outcome.bids[group.rows], kind="stable")]
    parts = np.array_split(order, max(2, min(_AVERAGES, order.size // max(SMALLEST_CELL, 1))))
    # not the mean bid times the mean loss: what they differ by would look like a payment for something else
    compensation = outcome.bids * outcome.privacy_loss
    columns = (outcome.bids, outcome.privacy_loss, compensation, outcome.information_rent, outcome.payments)
    bids, loss, paid, rent, payment = (np.array([column[part].mean() for part in parts]) for column in columns)
    return _curve(group.name, bids, loss, paid, rent, payment - paid - rent, "average")


def _expected(menu: Menu) -> Curve:
    compensation = menu.bids * menu.privacy_loss
    gain = menu.payment - compensation
    return _curve("", menu.bids, menu.privacy_loss, compensation, gain, np.zeros_like(gain), "expected")


def _curve(
    name: str,
    bids: FloatArray,
    loss: FloatArray,
    compensation: FloatArray,
    rent: FloatArray,
    other: FloatArray,
    kind: str,
) -> Curve:
    scale = float(np.max(np.abs(compensation + rent), initial=0.0))
    other = np.where(np.abs(other) <= 1e-9 * scale, 0.0, other)
    return Curve(
        name=name,
        bids=_rounded(bids),
        privacy_loss=_rounded(loss),
        compensation=_rounded(compensation),
        rent=_rounded(rent),
        other=_rounded(other),
        kind=kind,  # type: ignore[arg-type]
    )


def _rounded(values: FloatArray) -> tuple[float, ...]:
    """Four digits of the largest: enough for a picture, too few to work backwards from."""
    largest = float(np.max(np.abs(values), initial=0.0))
    if largest == 0.0:
        return tuple(0.0 for _ in range(values.size))
    decimals = 3 - math.floor(math.log10(largest))
    return tuple(round(value, decimals) for value in values.tolist())


def loss_chart(curves: Sequence[Curve], currency: Currency | None) -> Chart:
    """Privacy loss against what a person bids."""
    first = curves[0]
    return Chart(
        name="schedule-loss",
        title=say("The more a person asks, the less is bought from her"),
        description=say(
            "Privacy loss against the price asked: from {loss} at {price}, falling with what is asked.",
            loss=number(first.privacy_loss[0]),
            price=number(first.bids[0]),
        ),
        draw=lambda width: _losses(curves, currency, width),
    )


def _losses(curves: Sequence[Curve], currency: Currency | None, width: float) -> Drawing:
    def inside(x: Scale, y: Scale) -> list[Markup]:
        marks = []
        for place, curve in enumerate(curves):
            points = [(x(c), y(loss)) for c, loss in zip(curve.bids, curve.privacy_loss, strict=True)]
            if len(curves) == 1:
                marks.append(area(points, [(x(c), y(0)) for c in curve.bids], "band1"))
            marks.append(line(points, f"l{place % 4 + 1}"))
        return marks

    losses = [value for curve in curves for value in curve.privacy_loss]
    return plot(width, _bids(curves), losses, (_bid_title(currency), say("privacy loss ε")), inside)


def payment_chart(curves: Sequence[Curve], currency: Currency | None) -> Chart:
    """Payment against what a person bids: divided into compensation and rent for one curve, in total for several."""
    return Chart(
        name="schedule-payment",
        title=say("What she is paid, and what for"),
        description=say("Payment against the price asked: compensation, and information rent on top of it."),
        draw=lambda width: _payments(curves, currency, width),
        table=_table(curves),
    )


def _payments(curves: Sequence[Curve], currency: Currency | None, width: float) -> Drawing:
    totals = [[sum(parts) for parts in zip(c.compensation, c.rent, c.other, strict=True)] for c in curves]
    tops = [pay + rent for c in curves for pay, rent in zip(c.compensation, c.rent, strict=True)]

    def inside(x: Scale, y: Scale) -> list[Markup]:
        marks = []
        for place, (curve, total) in enumerate(zip(curves, totals, strict=True)):
            across = [x(c) for c in curve.bids]
            if len(curves) > 1:
                marks.append(line([(a, y(v)) for a, v in zip(across, total, strict=True)], f"l{place % 4 + 1}"))
                continue
            floor = [(a, y(0)) for a in across]
            paid = [(a, y(v)) for a, v in zip(across, curve.compensation, strict=True)]
            roof = [(a, y(p + r)) for a, p, r in zip(across, curve.compensation, curve.rent, strict=True)]
            marks += [area(paid, floor, "s1"), area(roof, paid, "s2")]
            marks.append(line([(a, y(v)) for a, v in zip(across, total, strict=True)], "l0 thin"))
        return marks

    titles = _bid_title(currency), say("payment, {currency}", currency=currency_words(currency))
    return plot(width, _bids(curves), [*tops, *(value for total in totals for value in total)], titles, inside)


def _bids(curves: Sequence[Curve]) -> list[float]:
    return [end for curve in curves for end in (curve.bids[0], curve.bids[-1])]


def _bid_title(currency: Currency | None) -> str:
    return say("what a person asks for one unit of ε, {currency}", currency=currency_words(currency))


def _table(curves: Sequence[Curve]) -> Table:
    rows = []
    for curve in curves:
        step = max((len(curve.bids) - 1) // (_TABLE_ROWS - 1), 1)
        for k in range(0, len(curve.bids), step):
            name = f"{curve.name}: " if curve.name else ""
            total = curve.compensation[k] + curve.rent[k] + curve.other[k]
            figures = (curve.privacy_loss[k], total, curve.compensation[k], curve.rent[k])
            rows.append((f"{name}{number(curve.bids[k])}", *(number(value) for value in figures)))
    return Table(
        head=(say("Asked per unit of ε"), "ε", say("Payment"), say("Compensation"), say("Rent")), rows=tuple(rows)
    )
