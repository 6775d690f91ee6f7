"""What the campaign was protected against, and what other degrees of protection would have cost and saved."""

from dataclasses import dataclass, replace

from markupsafe import Markup

from hushbid.common.money import Currency
from hushbid.common.numbers import at_most, with_unit
from hushbid.mechanism import Outcome
from hushbid.mechanism.protection import RELATIONS, Protection, protections
from hushbid.report.language import count, money, number, say
from hushbid.report.suppression import fewest_in, too_few
from hushbid.report.svg import Chart, Drawing, Part, Table, axis_y, dot, label, line, margin_for, round_scale, rule

_DRAWN = (0.0, 0.05, 0.1, 0.3)
_COLOURS = ("1", "2", "4", "3")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtectionFacts:
    """Protection against a relation between price and datum; all errors are standard errors in data units."""

    max_correlation: float
    """How close a relation the campaign was protected against; 0: none."""

    population: int
    """How many people the mean is about."""

    roster_stated: bool
    """Whether that number was fixed before anybody bid."""

    unrelated: float
    """The error if price and datum are unrelated."""

    worst: float
    """The error at worst under the relation that was allowed for."""

    if_weak: float
    """The error at worst if the relation is 0.1."""

    if_moderate: float
    """The error at worst if it is 0.3."""

    others: tuple[Protection, ...]
    """The same bids under other degrees of protection; empty where too few people would be bought from."""


def protection_facts(outcome: Outcome) -> ProtectionFacts:
    """What the decision was protected against; everybody is taken to deliver."""
    population, relation = outcome.population, outcome.market.max_correlation
    # answers by coin are not bought under any protection
    degrees = [relation] if outcome.market.strategy.response else sorted({*RELATIONS, relation})
    others = protections(population, outcome.bids, degrees)
    (here,) = (one for one in others if one.max_correlation == relation)
    return ProtectionFacts(
        max_correlation=relation,
        population=population.roster,
        roster_stated=outcome.market.population is not None,
        unrelated=outcome.standard_error,
        worst=outcome.worst_standard_error,
        if_weak=_error(here, 0.1),
        if_moderate=_error(here, 0.3),
        others=() if any(too_few(int(one.bought_from)) for one in others) or _few_unprotected(outcome) else others,
    )


def _few_unprotected(outcome: Outcome) -> bool:
    """Whether too few people of a stratum are bought from without any protection, which spreads purchases out."""
    population = outcome.population
    if population.strata is None:
        return False
    unprotected = replace(population, bias=0.0).allocation(outcome.virtual_costs, outcome.tie_order)
    return too_few(fewest_in(population.strata, unprotected.privacy_loss))


def _error(one: Protection, true: float) -> float:
    """The worst standard error of a purchase if the relation really is that close."""
    return one.standard_errors[RELATIONS.index(true)]


def relations() -> list[Part]:
    """The relations that are drawn."""
    return [Part(_relation(true), 0, f"s{colour}") for true, colour in zip(_DRAWN, _COLOURS, strict=True)]


def _relation(true: float) -> str:
    return say("unrelated") if true == 0.0 else say("a relation of {relation}", relation=number(true))


def chart(facts: ProtectionFacts, unit: str, currency: Currency | None) -> Chart:
    """The worst error against the degree of protection, for several true relations."""
    first, last = facts.others[0], facts.others[-1]
    return Chart(
        name="protection",
        title=say("What protection costs, and what it saves"),
        description=say(
            "Lines over the degree of protection: if the relation really is 0.1, the worst standard error goes"
            " from {first}"
            " to {last}.",
            first=with_unit(number(_error(first, 0.1)), unit),
            last=with_unit(number(_error(last, 0.1)), unit),
        ),
        draw=lambda width: _lines(facts, unit, width),
        table=table(facts, unit, currency),
    )


def table(facts: ProtectionFacts, unit: str, currency: Currency | None) -> Table:
    """One row per degree of protection."""
    head = (say("Protected up to"), say("Bought from"), say("Paid, on average"), say("Largest ε"))
    errors = tuple(say("Worst standard error, {relation}", relation=_relation(true)) for true in _DRAWN)
    rows = tuple(
        (
            number(one.max_correlation)
            + (say(" (this campaign)") if one.max_correlation == facts.max_correlation else ""),
            count(int(one.bought_from)),
            money(one.payment, currency),
            number(at_most(one.largest_loss, 3)),
            *(with_unit(number(_error(one, true)), unit) for true in _DRAWN),
        )
        for one in facts.others
    )
    return Table(head=(*head, *errors), rows=rows)


def _lines(facts: ProtectionFacts, unit: str, width: float) -> Drawing:
    rows = facts.others
    y = round_scale([max(one.standard_errors) for one in rows], 220, 34)
    left, right = margin_for(y), width - 24
    places = [left + 24 + (right - left - 24) * k / max(len(rows) - 1, 1) for k in range(len(rows))]
    marks: list[Markup] = axis_y(y, left, width - 14, say("worst standard error") + (f", {unit}" if unit else ""))
    for place, one in zip(places, rows, strict=True):
        own = one.max_correlation == facts.max_correlation
        if own:
            marks.append(rule(place, y.start, place, y.end, "dash"))
        marks.append(label(place, 240, number(one.max_correlation), "strong" if own else "", anchor="middle"))
    for true, colour in zip(_DRAWN, _COLOURS, strict=True):
        points = [(place, y(_error(one, true))) for place, one in zip(places, rows, strict=True)]
        marks += [line(points, f"l{colour}"), *(dot(px, py, 3, f"s{colour}") for px, py in points)]
    marks.append(label((left + right) / 2, 262, say("protected up to a relation of …"), "quiet", anchor="middle"))
    return Drawing(width=width, height=272, marks=tuple(marks))
