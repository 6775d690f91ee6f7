"""What other ways of buying would have paid for the same accuracy, and how far the same money would have gone."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from hushbid.allocation import Price
from hushbid.baselines import ComparisonRow, compare
from hushbid.common.money import Currency
from hushbid.common.numbers import with_unit
from hushbid.errors import HushbidError
from hushbid.languages import noted
from hushbid.mechanism import Outcome
from hushbid.report.language import money, number, percent, say
from hushbid.report.material import Material
from hushbid.report.suppression import SMALLEST_CHART, enough_for_chart
from hushbid.report.svg import NARROW, Chart, Drawing, Table, box, label, rule, text_width

ANCHOR, TITLE = "baselines", noted("Other ways to buy")

MOST_PEOPLE = 20_000
"""With more, searching every baseline's terms takes longer than the campaign itself."""

_LONGEST_BAR = 4.0
"""A baseline who pays more than so many times as much gets a broken bar, or the others would be too short to
compare."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineFacts:
    """Another way to buy from the same people."""

    name: str
    """What it is called."""

    truthful: bool
    """Whether the truth is everybody's best bid under it."""

    voluntary: bool
    """Whether nobody is worse off for joining."""

    payment: float
    """What it would have paid for this campaign's accuracy; infinite if it cannot reach it."""

    standard_error: float
    """What it would have reached with this campaign's money; infinite if it cannot run on it."""

    note: str
    """What a reader should know; may be empty."""

    @property
    def is_real(self) -> bool:
        """Whether a buyer could have chosen it: people would have told their price, and joined."""
        return self.truthful and self.voluntary


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselinesFacts:
    """This campaign's way to buy against others, on the same bids."""

    rows: tuple[BaselineFacts, ...]
    """This campaign's own first; empty if they are not shown."""

    missing: str
    """Why they are not; empty if they are."""

    price_goal: bool = True
    """Whether the campaign stated a price for the error, so that nothing is cheaper on average."""


def facts_of(material: Material) -> BaselinesFacts:
    """Ours and every baseline on the same bids, or why they are not shown."""
    outcome = material.outcome
    missing = _missing(outcome)
    if missing:
        return BaselinesFacts(rows=(), missing=missing)
    try:
        found = compare(outcome.market, outcome.bids)
    except HushbidError as problem:
        return BaselinesFacts(
            rows=(), missing=say("Other ways to buy cannot be computed here: {problem}", problem=say(str(problem)))
        )
    rows = tuple(baseline_facts(row) for row in (found.ours, *found.baselines))
    return BaselinesFacts(rows=rows, missing="", price_goal=isinstance(outcome.market.goal, Price))


def _missing(outcome: Outcome) -> str:
    if not enough_for_chart(outcome.active):
        return say(
            "With fewer than {few} people, what others would pay could show what one of them bid.",
            few=SMALLEST_CHART,
        )
    if outcome.market.stratified is not None:
        return say("The other ways to buy estimate one mean of everybody, and no combination of strata.")
    if outcome.bids.size > MOST_PEOPLE:
        return say(
            "For more than {most:,} people this takes longer than the campaign; the command hushbid compare does it.",
            most=MOST_PEOPLE,
        )
    if isinstance(outcome.population.cap, np.ndarray):
        return say("Everybody has a limit of her own here, and the other ways to buy take the same loss from many.")
    if not 0.0 < outcome.total_payment < math.inf:
        return say("People pay on balance, or without limit, so there is no price to compare.")
    return ""


def baseline_facts(row: ComparisonRow) -> BaselineFacts:
    """One way to buy in the page's language."""
    return BaselineFacts(
        name=say(row.name),
        truthful=row.truthful,
        voluntary=row.voluntary,
        payment=row.payment_for_same_error,
        standard_error=math.sqrt(row.error_for_same_payment),
        note=say(row.note) if row.note else "",
    )


def cheapest(facts: BaselinesFacts) -> BaselineFacts | None:
    """Of the others, if one is truthful, voluntary and reaches this accuracy."""
    real = [row for row in facts.rows[1:] if row.is_real and math.isfinite(row.payment)]
    return min(real, key=lambda row: row.payment) if real else None


def difference(best: BaselineFacts, ours: BaselineFacts) -> str:
    """How much more, or less, another way pays."""
    more = best.payment / ours.payment - 1.0
    part = percent(abs(more))
    return say("{part} more", part=part) if more >= 0 else say("{part} less", part=part)


def payment(row: BaselineFacts, currency: Currency | None) -> str:
    """What a way pays for our accuracy."""
    return money(row.payment, currency) if math.isfinite(row.payment) else say("out of reach")


def error(row: BaselineFacts, unit: str) -> str:
    """The standard error that a way reaches with our money."""
    return with_unit(number(row.standard_error), unit) if math.isfinite(row.standard_error) else say("out of reach")


def chart(rows: Sequence[BaselineFacts], currency: Currency | None, unit: str) -> Chart:
    """One bar per way to buy: what it pays for the same accuracy."""
    return Chart(
        name="baselines",
        title=say("What the same accuracy would have cost"),
        description=say("Bars: {listed}.", listed="; ".join(f"{row.name}: {payment(row, currency)}" for row in rows)),
        draw=lambda width: _bars(rows, currency, width),
        table=Table(
            head=(
                say("Way to buy"),
                say("Truth is best"),
                say("Joining pays"),
                say("Pays for our accuracy"),
                say("Error for our money"),
            ),
            rows=tuple(
                (row.name, _yes(row.truthful), _yes(row.voluntary), payment(row, currency), error(row, unit))
                for row in rows
            ),
        ),
    )


def _yes(answer: bool) -> str:
    return say("yes") if answer else say("no")


def _bars(rows: Sequence[BaselineFacts], currency: Currency | None, width: float) -> Drawing:
    narrow = width == NARROW
    left = 0.0 if narrow else max(text_width(row.name) for row in rows) + 16.0
    step = 44.0 if narrow else 28.0
    finite = [row.payment for row in rows if math.isfinite(row.payment)]
    largest = min(max(finite), _LONGEST_BAR * rows[0].payment)
    room = width - left - max(text_width(money(amount, currency)) for amount in finite) - 14
    marks: list[Markup] = []
    for place, row in enumerate(rows):
        y = step * place + (20.0 if narrow else 0.0)
        weight = "strong" if place == 0 else ""
        side = "start" if narrow else "end"
        marks.append(label(0 if narrow else left - 12, y + (-4 if narrow else 15), row.name, weight, anchor=side))
        reached = math.isfinite(row.payment)
        length = min(max(room * row.payment / largest, 1.5), room) if reached else 0.0
        words = payment(row, currency)
        class_ = "s1" if place == 0 else "s2" if row.is_real else "s5"
        if reached:
            marks.append(box(left, y + 2, length, 16, class_, radius=2))
        if reached and row.payment > largest:  # a broken bar
            marks += [rule(left + length - at, y + 20, left + length - at + 8, y, "gap") for at in (24, 19)]
        marks.append(label(left + length + (7 if reached else 0), y + 15, words, "quiet"))
    return Drawing(width=width, height=step * len(rows), marks=tuple(marks))
