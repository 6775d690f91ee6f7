"""What other caps on everybody's privacy loss would have cost: the best purchase that keeps each of them.

The truth stays everybody's best bid. A cap can only make the purchase worse in the sense of its goal: more error and
payments together, more money for the same error, or a larger error for the same money.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from markupsafe import Markup

from hushbid.allocation import Accuracy, HardBudget, Price
from hushbid.common.money import Currency
from hushbid.common.numbers import with_unit
from hushbid.errors import InputError, MarketError
from hushbid.languages import noted
from hushbid.mechanism import Outcome
from hushbid.report.language import currency_words, money, number, say
from hushbid.report.material import Material
from hushbid.report.sections import settings
from hushbid.report.suppression import enough_for_chart, fewest_in, too_few
from hushbid.report.svg import Chart, Drawing, Scale, Table, area, flag, line, plot

ANCHOR, TITLE = "cap", noted("What a cap costs")

_POINTS, _POINTS_OF_MANY, _MANY = 20, 10, 200_000
_DEAREST = 0.5
"""Caps that add more than this part of the cost are left out: they would flatten the rest of the curve."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CapFacts:
    """What capping everybody's privacy loss costs."""

    capped: settings.SettingFacts | None
    """The campaign as it is; None without a cap."""

    uncapped: settings.SettingFacts | None
    """The campaign as it would have been without its cap."""

    reached: int
    """How many people would have lost more without the cap."""

    curve: tuple[tuple[float, float, float], ...]
    """For other caps: (cap, standard error, objective); empty if people are too few, or there is none to compare."""

    costs_money: bool
    """Whether a cap costs money; if not, for a budget, it costs accuracy."""

    solved: bool = True
    """Whether the best purchase under a cap is known for such a campaign."""

    shared: bool = False
    """Whether people share in a menu, under a hard budget; then the purchase is not the best one under the cap."""


def facts_of(material: Material) -> CapFacts:
    """The campaign with its cap and without, and what other caps would have cost."""
    outcome = material.outcome
    curve, population = cap_curve(outcome), outcome.population
    costs_money = isinstance(population.goal, (Price, Accuracy))
    if not population.has_caps or too_few(material.fewest):
        solved = population.strata is None or isinstance(population.goal, Price)
        return CapFacts(capped=None, uncapped=None, reached=0, curve=curve, costs_money=costs_money, solved=solved)
    free = replace(outcome.market, max_privacy_loss=None).acquire(outcome.bids, tie_key=outcome.tie_order)
    return CapFacts(
        capped=settings.setting_facts(
            outcome, say("with") if outcome.limits is not None else say("with the cap"), material.level
        ),
        uncapped=settings.setting_facts(free, say("without"), material.level),
        reached=int(np.count_nonzero(free.privacy_loss > population.cap)),
        curve=curve,
        costs_money=costs_money,
        shared=isinstance(population.goal, HardBudget),
    )


def cap_curve(outcome: Outcome) -> tuple[tuple[float, float, float], ...]:
    """(cap, standard error, objective), caps ascending to the largest loss without one; empty for too few people."""
    population = outcome.population.without_caps()
    if isinstance(population.goal, HardBudget) or not outcome.active:
        return ()
    free = population.allocation(outcome.virtual_costs, outcome.tie_order)
    losses = free.privacy_loss[free.privacy_loss > 0.0]
    if population.strata is not None and too_few(fewest_in(population.strata, free.privacy_loss)):
        return ()
    if not enough_for_chart(losses.size) or not np.isfinite(losses).all():
        return ()
    if population.setting.response or (population.setting.sends_messages and isinstance(population.goal, Accuracy)):
        return ()  # refused there
    largest = float(losses.max())
    points: list[tuple[float, float, float]] = []
    # from no cap downwards, until it costs too much to be of interest; each point is a purchase from everybody
    count = _POINTS if outcome.bids.size <= _MANY else _POINTS_OF_MANY
    for part in np.linspace(1.0, 0.0, count, endpoint=False).tolist():
        try:
            capped = replace(population, cap=part * largest)
            bought = capped.allocation(outcome.virtual_costs, outcome.tie_order)
        except (InputError, MarketError):  # refused with strata, or out of reach
            break
        objective = capped.objective_of(bought)
        if points and objective > (1.0 + _DEAREST) * points[0][2]:
            break
        points.append((part * largest, math.sqrt(capped.worst_error(bought.mse) * capped.unit), objective))
    return tuple(reversed(points))


def chart(facts: CapFacts, cap: float | None, currency: Currency | None, unit: str) -> Chart:
    """What each cap adds to the cost, or, for a budget, to the error."""
    best = min(objective for _, _, objective in facts.curve)
    shown = facts.curve[:: max(len(facts.curve) // 8, 1)]
    name = say("Extra cost") if facts.costs_money else say("Extra error")
    rows = tuple(
        (
            number(level),
            with_unit(number(error), unit),
            money(objective - best, currency) if facts.costs_money else with_unit(number(error - best**0.5), unit),
        )
        for level, error, objective in shown
    )
    return Chart(
        name="caps",
        title=say("The lower the cap, the dearer the error")
        if facts.costs_money
        else say("The lower the cap, the larger the error"),
        description=say(
            "{name} against the cap: it falls to nothing at ε = {cap}.", name=name, cap=number(facts.curve[-1][0])
        ),
        draw=lambda width: _extra_cost(facts, cap, currency_words(currency) if facts.costs_money else unit, width),
        table=Table(head=(say("Cap on ε"), say("Standard error"), name), rows=rows),
    )


def _extra_cost(facts: CapFacts, cap: float | None, unit: str, width: float) -> Drawing:
    curve = facts.curve
    best, last = min(objective for _, _, objective in curve), curve[-1][0]
    extra = [objective - best if facts.costs_money else error - best**0.5 for _, error, objective in curve]

    def inside(x: Scale, y: Scale) -> list[Markup]:
        points = [(x(level), y(more)) for (level, _, _), more in zip(curve, extra, strict=True)]
        marks = [area(points, [(place, y(0)) for place, _ in points], "band1"), line(points, "l1")]
        if cap is not None and cap <= x.high:
            marks += flag(x(cap), y, width, say("this campaign: cap {cap}", cap=number(cap)), "dash")
        return marks

    what = say("extra cost") if facts.costs_money else say("extra standard error")
    titles = say("cap on everybody's ε"), f"{what}{f', {unit}' if unit else ''}"
    return plot(width, (0.0, last, min(cap or 0.0, 1.25 * last)), extra, titles, inside)
