"""Central against local, on the same bids."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from markupsafe import Markup

from hushbid.allocation import Accuracy, Price
from hushbid.common.money import Currency
from hushbid.common.numbers import NBSP, at_most, with_unit
from hushbid.errors import HushbidError, InputError
from hushbid.languages import noted
from hushbid.mechanism import Market, Outcome
from hushbid.report.language import count, level_text, lowered, money, number, people, say
from hushbid.report.material import Material, planned_error
from hushbid.report.suppression import SMALLEST_CELL, fewest, too_few
from hushbid.report.svg import NARROW, Chart, Drawing, Table, box, label, text_width

_REPEATED = noted(
    "variance must be one number in the local setting: with one per person the optimum is NP-hard to find."
)
"""Why the other setting may not be computed, in the words of the refusal."""

ANCHOR, TITLE = "settings", noted("Central against local")


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingFacts:
    """One way of buying the same data."""

    name: str
    """What it is called in tables."""

    bought_from: int
    """People with a positive privacy loss."""

    largest_loss: float
    """Nobody loses more (rounded up)."""

    standard_error: float
    """Root mean squared error of the estimate, at worst."""

    error_name: str
    """What it is called: at worst, where a relation was allowed for."""

    half_width: float | None
    """Half the interval; None for a survey, whose questions have one each."""

    total: float
    """All payments."""

    objective: float | None
    """Error weight times squared error plus virtual payments; None if the goal is not a price."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonFacts:
    """Central against local, on the same bids."""

    settings: tuple[SettingFacts, ...]
    """The campaign's own, then the other one with the same cap, then, if there is a cap, the other one without."""

    missing: str
    """Why there is no comparison; empty if there is one."""

    unlimited: bool = False
    """Whether the other setting is without the cap or the limits of this one, which do not go with it."""


Measure = tuple[str, Callable[[SettingFacts], float], Callable[[float], str]]
"""What is compared: its name, how to get it, how to write it."""


def facts_of(material: Material) -> ComparisonFacts:
    """This campaign against the other setting, or why they are not compared."""
    outcome, other, level = material.outcome, material.comparison, material.level
    if too_few(fewest(outcome)):
        return ComparisonFacts(settings=(), missing=_few_either_way(outcome))
    here = setting_facts(outcome, say(outcome.market.setting), level)
    if other == "omit":
        return ComparisonFacts(settings=(here,), missing=say("The other setting was not computed."))
    if other == "compute" and (missing := _not_solved(outcome)):
        return ComparisonFacts(settings=(here,), missing=missing)
    if other == "compute":
        try:
            other = elsewhere(outcome)
        except HushbidError as problem:
            missing = _by_setting(
                outcome,
                say("The central setting cannot be computed: {problem}", problem=say(str(problem))),
                say("The local setting cannot be computed: {problem}", problem=say(str(problem))),
            )
            return ComparisonFacts(settings=(here,), missing=missing)
    if other.market.setting == outcome.market.setting or not np.array_equal(other.bids, outcome.bids):
        raise InputError("comparison must be the outcome of the other setting on the same bids.", field="comparison")
    settings, decided = [here, setting_facts(other, say(other.market.setting), level)], [other]
    if other.market.max_privacy_loss is not None and isinstance(other.market.goal, Price):
        free = again(other, max_privacy_loss=None)
        decided.append(free)
        settings.append(setting_facts(free, say("{setting}, no cap", setting=say(other.market.setting)), level))
    if any(too_few(fewest(one)) for one in decided):
        return ComparisonFacts(settings=(here,), missing=_few_either_way(outcome))
    unlimited = outcome.population.has_caps and not other.population.has_caps
    return ComparisonFacts(settings=tuple(settings), missing="", unlimited=unlimited)


def _few_either_way(outcome: Outcome) -> str:
    if outcome.market.stratified is None:
        return say(
            "One way, fewer than {few} people are bought from: this could show what one of them bid.",
            few=SMALLEST_CELL,
        )
    return say(
        "One way, fewer than {few} people are bought from in one of the strata: this could show what one of them bid.",
        few=SMALLEST_CELL,
    )


def _by_setting(outcome: Outcome, central: str, local: str) -> str:
    """What is said of the other setting, whichever that is."""
    return central if outcome.market.strategy.other == "central" else local


def _not_solved(outcome: Outcome) -> str:
    """Why the other setting has no purchase to compare with; empty if it has one."""
    market = outcome.market
    if isinstance(market.goal, Price):
        return ""
    if market.stratified is not None:
        return _by_setting(
            outcome,
            say("For a combination of strata the best purchase in the central setting is known for a price only."),
            say("For a combination of strata the best purchase in the local setting is known for a price only."),
        )
    if market.survey is not None and not isinstance(market.stated_goal, Accuracy):
        return _by_setting(
            outcome,
            say("For several questions and a budget there is no standard error to ask of the central setting."),
            say("For several questions and a budget there is no standard error to ask of the local setting."),
        )
    return ""


def elsewhere(outcome: Outcome) -> Outcome:
    """The other setting on an outcome's bids: at the same price for the error, or for the same accuracy.

    Limits that people stated do not go with the local setting, nor does a cap with an accuracy there: it is then
    without.
    """
    setting, goal = outcome.market.strategy.other, outcome.market.stated_goal
    if isinstance(goal, Price):
        return again(outcome, setting=setting)
    aim = goal if isinstance(goal, Accuracy) else Accuracy(outcome.worst_standard_error)
    try:
        return again(outcome, setting=setting, goal=aim)
    except InputError:
        return again(outcome, setting=setting, goal=aim, max_privacy_loss=None)


def again(outcome: Outcome, **changes: object) -> Outcome:
    """What is decided about an outcome's bids in a market that differs by so much."""
    changed: Market = replace(outcome.market, **changes)  # type: ignore[arg-type]
    limits = None if changed.strategy.sends_messages else outcome.limits
    return changed.acquire(outcome.bids, limits=limits, tie_key=outcome.tie_order)


def setting_facts(outcome: Outcome, name: str, level: float) -> SettingFacts:
    """What is compared of an outcome."""
    return SettingFacts(
        name=name,
        bought_from=outcome.active,
        largest_loss=at_most(float(outcome.privacy_loss.max(initial=0.0))),
        standard_error=outcome.worst_standard_error,
        error_name=say("Standard error, at worst") if outcome.market.max_correlation > 0.0 else say("Standard error"),
        half_width=_half_width(outcome, level),
        total=outcome.total_payment,
        objective=outcome.objective if isinstance(outcome.market.goal, Price) else None,
    )


def _half_width(outcome: Outcome, level: float) -> float | None:
    error = planned_error(outcome)
    if outcome.market.survey is not None:
        return None
    return math.inf if error is None else error.half_width(level)


def chart(settings: Sequence[SettingFacts], *, unit: str, currency: Currency | None, level: float) -> Chart:
    """One block of bars per measure, each on its own scale."""
    measures = _measures(settings[0].error_name, unit, currency)
    return Chart(
        name="settings",
        title=say("The same bids, bought both ways"),
        description=say("Bars: {listed}.", listed="; ".join(_compared(settings, measure) for measure in measures)),
        draw=lambda width: _bars(settings, measures, width),
        table=table(settings, say("Setting"), unit=unit, currency=currency, level=level),
    )


def _measures(error_name: str, unit: str, currency: Currency | None) -> tuple[Measure, ...]:
    return (
        (error_name, lambda one: one.standard_error, lambda value: with_unit(number(value), unit)),
        (say("Total payment"), lambda one: one.total, lambda value: money(value, currency)),
        (say("Largest privacy loss"), lambda one: one.largest_loss, lambda value: f"ε{NBSP}≤{NBSP}{number(value)}"),
        (say("Bought from"), lambda one: float(one.bought_from), lambda value: people(int(value))),
    )


def _compared(settings: Sequence[SettingFacts], measure: Measure) -> str:
    name, get, write = measure
    return f"{lowered(name)} " + ", ".join(f"{one.name} {write(get(one))}" for one in settings)


def _bars(settings: Sequence[SettingFacts], measures: Sequence[Measure], width: float) -> Drawing:
    narrow = width == NARROW
    left = 0.0 if narrow else 190.0
    marks: list[Markup] = []
    top = 0.0
    for name, get, write in measures:
        values = [get(one) for one in settings]
        largest = max(values) or 1.0
        if narrow:
            marks.append(label(0, top + 14, name, "strong"))
            top += 22
        else:
            marks.append(label(left - 14, top + 29, name, anchor="end"))
        for place, (one, value) in enumerate(zip(settings, values, strict=True)):
            words = f"{one.name} {write(value)}"
            room = width - left - text_width(words) - 14
            length = max(room * value / largest, 1.0) if value < float("inf") else room
            y = top + 22.0 * place
            marks += [
                box(left, y + 2, length, 16, f"s{place + 1}", radius=2),
                label(left + length + 7, y + 15, words, "quiet"),
            ]
        top += 22.0 * len(settings) + 18.0
    return Drawing(width=width, height=top - 10, marks=tuple(marks))


def table(
    settings: Sequence[SettingFacts], corner: str, *, unit: str, currency: Currency | None, level: float
) -> Table:
    """Ways of buying side by side."""

    def row(name: str, get: Callable[[SettingFacts], str]) -> tuple[str, ...]:
        return (name, *(get(one) for one in settings))

    return Table(
        head=(corner, *(one.name for one in settings)),
        rows=(
            row(say("Bought from"), lambda one: count(one.bought_from)),
            row(say("Largest privacy loss, at most"), lambda one: number(one.largest_loss)),
            row(settings[0].error_name, lambda one: with_unit(number(one.standard_error), unit)),
            *(
                [
                    row(
                        say("Half of the {level} interval", level=level_text(level)),
                        lambda one: with_unit(number(one.half_width or 0), unit),
                    )
                ]
                if all(one.half_width is not None for one in settings)
                else []
            ),
            row(say("Total payment"), lambda one: money(one.total, currency)),
            *(
                [row(say("Error and payments together"), lambda one: money(one.objective or 0.0, currency))]
                if all(one.objective is not None for one in settings)
                else []
            ),
        ),
    )


def dearer(one: SettingFacts, chosen: SettingFacts, currency: Currency | None) -> str:
    """How much more, or less, another way costs: with the error, where that has a price, else in payments."""
    more = one.total - chosen.total
    if one.objective is not None and chosen.objective is not None:
        more = one.objective - chosen.objective
    amount = money(abs(more), currency)
    return say("{amount} more", amount=amount) if more >= 0 else say("{amount} less", amount=amount)
