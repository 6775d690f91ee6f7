"""The sections of a report about what was learnt, what it cost and what was given up: facts in, elements out."""

import math

from hushbid.money import money, money_at_most
from hushbid.report.charts import (
    Part,
    curve_legend,
    estimate_chart,
    legend,
    loss_chart,
    parts_chart,
    payment_chart,
    schedule_chart,
)
from hushbid.report.html import Child, Markup, element, join
from hushbid.report.model import CostParts, Curve, Report
from hushbid.report.sections_settled import everybody_delivered, no_estimate_ever, settled_sentence
from hushbid.report.suppression import FEW, SMALLEST_CELL, SMALLEST_CHART
from hushbid.report.svg import Table, figure, plain_table
from hushbid.wording import (
    NBSP,
    at_most,
    count,
    decimals_for,
    factor_at_most,
    fixed,
    interval,
    level_text,
    number,
    people,
    percent,
    with_unit,
)

_TABLE_ROWS = 13


def paragraph(*words: Child, class_: str | None = None) -> Markup:
    """A paragraph."""
    return element("p", *words, class_=class_)


def withheld(reason: str) -> Markup:
    """What stands in the place of a chart that is not shown."""
    return element("p", element("b", "Not shown. "), reason, class_="withheld")


def bold(text: str) -> Markup:
    """What a hurried reader should see."""
    return element("b", text)


# -- 1 ---------------------------------------------------------------------------------------------------------------


def estimate_section(report: Report) -> Markup:
    """The estimate with its interval, and where the uncertainty comes from."""
    facts, unit = report.estimate, report.unit
    if not math.isfinite(facts.half_width):
        return paragraph("Nothing was bought, so there is no estimate: nobody reported within the range of the prior.")
    half = with_unit(_rounded_up(facts.half_width), unit)
    if no_estimate_ever(report):
        return paragraph("Nobody who was bought from delivered, so there is no estimate, and there will be none.")
    if facts.value is None:
        opening = paragraph(
            "No estimate has been released yet. If everybody who was bought from delivers, it will come with an"
            f" interval of ±{NBSP}",
            bold(half),
            f" at {level_text(facts.level)} confidence.",
        )
        return join([opening, _uncertainty(report)])
    value = facts.value
    text, low, high = interval(value, facts.half_width)
    description = (
        f"A number line. The estimate is {with_unit(text, unit)}; the {level_text(facts.level)} interval goes from"
        f" {low} to {high}. The public range goes from {number(facts.bounds[0], 6)} to {number(facts.bounds[1], 6)}."
    )
    rows = [(percent(level), *interval(value, width)[1:]) for level, width in facts.bands]
    rows += [(level_text(facts.level), low, high), ("Estimate", text, "")]
    chart = figure(
        lambda width: estimate_chart(value, facts, unit, width),
        name="estimate",
        title=f"{report.quantity[:1].upper()}{report.quantity[1:]}, and how far off the estimate may be",
        description=description,
        caption=_bands_caption(report),
        table=Table(head=("Confidence", "From", "To"), rows=tuple(rows)),
    )
    meaning = paragraph(
        "Were the whole campaign repeated, intervals made like this one would contain ",
        report.quantity,
        f" at least {level_text(facts.level)} of the time, at this sample size and whatever the data look like, as long"
        " as the ",
        element("a", "assumptions", href="#assumptions"),
        " hold. The estimate is not squeezed into the public range, since that would bias it.",
    )
    return join([chart, meaning, _dropped_out(report), _uncertainty(report)])


def _bands_caption(report: Report) -> str:
    levels = [percent(level) for level, _ in sorted(report.estimate.bands)] + [level_text(report.estimate.level)]
    return f"From the inside out: where the truth lies with {', '.join(levels[:-1])} and {levels[-1]} confidence."


def _dropped_out(report: Report) -> Markup | None:
    missing = report.estimate.dropped_out
    if missing == 0:
        return None
    told = f"Fewer than {SMALLEST_CHART} people" if missing is None else f"{count(missing)} people"
    return paragraph(
        f"{told} who were bought from did not deliver their data. Everything in this section accounts for that;"
        " comparisons with other ways to buy are as if everybody had delivered."
    )


def _uncertainty(report: Report) -> Markup:
    noise = report.estimate.noise_share
    parts: list[Part] = [
        ("Noise, added for privacy", noise, "s1", percent(noise)),
        ("Chance, from asking only some people", 1.0 - noise, "s2", percent(1.0 - noise)),
    ]
    chart = figure(
        lambda width: parts_chart(parts, width),
        name="uncertainty",
        title="Where the uncertainty comes from",
        description=f"Of the squared error, {parts[0][3]} is noise added for privacy and {parts[1][3]} is chance.",
        caption=legend(parts),
    )
    return join(
        [
            chart,
            paragraph(
                "The standard error is ",
                bold(with_unit(number(report.estimate.standard_error, 3), report.unit)),
                ". It follows from the declared variance and the noise, never from the data.",
            ),
        ]
    )


def _rounded_up(half_width: float) -> str:
    decimals = decimals_for(half_width)
    return fixed(math.ceil(half_width * 10.0**decimals) / 10.0**decimals, decimals)


# -- 2 ---------------------------------------------------------------------------------------------------------------


def cost_section(report: Report) -> Markup:
    """What was paid, divided into compensation and rent, and why no truthful purchase costs less."""
    cost, currency = report.cost, report.currency
    if report.bought_from == 0:
        return paragraph("Nothing was bought and nobody is paid.")
    if cost.parts is None or cost.paid is None:
        return join([withheld(FEW), _kinds_of_pay(report)])
    amounts = [
        ("Compensation for privacy given up", cost.parts.compensation, "s1"),
        ("Information rent", cost.parts.rent, "s2"),
        ("Because people value the estimate too", cost.parts.error_term, "s4"),
        ("Rounding up to whole coins", cost.parts.rounding or 0.0, "s3"),
    ]
    parts: list[Part] = [
        (name, amount, color, money(amount, currency))
        for place, (name, amount, color) in enumerate(amounts)
        if amount or place < 2
    ]
    how = "in all" if everybody_delivered(report) else "decided"
    listed = ", ".join(f"{name.lower()} {words}" for name, _, _, words in parts)
    chart = figure(
        lambda width: parts_chart(parts, width),
        name="cost",
        title=f"{money(cost.paid, currency)} {how}, and what it is for",
        description=f"A bar divided into: {listed}.",
        caption=legend(parts),
    )
    signs, prices = _signs(report, cost.parts), _prices(report, cost.parts)
    due = _settled(report) or _not_due(report)
    return join([chart, due, _kinds_of_pay(report), signs, prices, _certificate(report, cost.parts)])


def _kinds_of_pay(report: Report) -> Markup:
    return paragraph(
        element("b", "Compensation"),
        " is what giving up privacy costs people by their own account: the price each named for a unit of ε, times"
        " the ε bought from her. ",
        element("b", "Information rent"),
        " comes on top because only she knows that price. Were everybody paid just what she asks, everybody would"
        " ask for more; the rent is exactly what makes the truth her best report, whatever the others say. No"
        f" misreport can gain anybody more than {money_at_most(report.cost.incentive_error, report.currency)}.",
    )


def _not_due(report: Report) -> Markup | None:
    """Amounts after drop-outs would tell, by subtraction, what those few were to be paid."""
    if everybody_delivered(report):
        return None
    return paragraph(
        "Amounts are those decided before delivery. Where people who did not deliver are not paid, less is paid out."
    )


def _settled(report: Report) -> Markup | None:
    """What is owed by the account of whoever keeps it."""
    return None if report.cost.settled is None else paragraph(settled_sentence(report))


def _signs(report: Report, parts: CostParts) -> Markup | None:
    payers, currency = report.cost.payers, report.currency
    if parts.error_term >= 0 and not payers:
        return None
    paying = f"{people(payers)} pay instead of being paid. " if payers else ""
    return paragraph(
        f"{paying}People value the estimate as well, by the weight they were declared to have; over everybody that"
        f" changes payments by {money(parts.error_term, currency)}. Parts below zero have a bar of their own."
    )


def _prices(report: Report, parts: CostParts) -> Markup:
    cost, currency, paid = report.cost, report.currency, report.cost.paid or 0.0
    finite = 0.0 < parts.total_loss < math.inf
    rows = [
        ("In all" if everybody_delivered(report) else "Decided in all", money(paid, currency)),
        ("Per person bought from", money(paid / report.bought_from, currency)),
        ("Per unit of ε, everything included", money(paid / parts.total_loss, currency) if finite else "—"),
        ("… of which people asked", money(parts.compensation / parts.total_loss, currency) if finite else "—"),
        ("Rent as a share of compensation and rent", percent(parts.rent / ((parts.compensation + parts.rent) or 1.0))),
    ]
    if cost.spending_ceiling is not None:
        rows.insert(1, ("Spending ceiling", money(cost.spending_ceiling, currency)))
    return plain_table(Table(head=("Prices", "Amount"), rows=tuple(rows)), class_="figures")


def _certificate(report: Report, parts: CostParts) -> Markup:
    currency, bound = report.currency, parts.lower_bound
    gap = (parts.objective - bound) / bound if bound > 0 else 0.0
    verdict = "The two agree: nothing cheaper exists." if gap < 1e-6 else f"It is {percent(gap)} above that bound"
    if gap >= 1e-6:
        verdict += ", because of the cap." if report.privacy.cap is not None else "."
    return paragraph(
        element("b", "Why these people and not others. "),
        "A unit of somebody's privacy costs the buyer her price and the rent it causes. The purchase minimises that"
        " cost together with the cost of error, as the buyer values it: ",
        money(parts.objective, currency),
        ". A bound that is computed without looking at the answer says that no truthful purchase has less than ",
        money(bound, currency),
        f". {verdict}",
    )


# -- 3 ---------------------------------------------------------------------------------------------------------------


def privacy_section(report: Report) -> Markup:
    """The distribution of privacy losses and the schedule."""
    facts = report.privacy
    if report.bought_from == 0:
        return paragraph("Nobody gives up any privacy.")
    shown = [_meaning(report), _losses(report), *_schedule(report)]
    if facts.checked:
        everybody, fractions, sampler = facts.checked
        more = f"; for {people(sampler)} the sampler's own bound was compared as well" if sampler else ""
        shown.append(
            paragraph(
                f"Before any noise was drawn, every promise ({people(everybody)}) was checked in whole-number"
                f" arithmetic, and {count(fractions)} of them again with exact fractions{more}. None was exceeded."
            )
        )
    return join(shown)


def _meaning(report: Report) -> Markup:
    largest = report.privacy.largest
    if math.isinf(largest):
        return paragraph(
            bold(f"{people(report.privacy.unlimited)} accepted an unlimited privacy loss: "),
            "the promise protects them from nothing.",
        )
    claim = "Nobody was promised to lose more than " if report.privacy_failed else "Nobody loses more than "
    seen = "the estimate" if report.setting == "central" else "what her device sends"
    spared = report.people - report.bought_from
    broken = [bold("An audit found this broken; what follows is what was promised. ")] if report.privacy_failed else []
    return paragraph(
        broken,
        f"{people(spared)} of {count(report.people)} lose nothing at all. "
        if spared
        else "Some privacy is bought from everybody. ",
        claim,
        bold(f"ε{NBSP}={NBSP}{number(largest)}"),
        f": {seen} is at most {factor_at_most(largest)} times as likely with a person's datum as with any other in"
        " its place, so that is the most by which her taking part changes the odds of anything one might believe about"
        " her. What other people's data tell about her, they tell whether she takes part or not. At"
        f" ε{NBSP}={NBSP}0.1 that factor is 1.1, at ε{NBSP}={NBSP}1 it is 2.7; from about ε{NBSP}={NBSP}5 on, the word"
        " privacy is generous.",
    )


def _losses(report: Report) -> Markup:
    facts = report.privacy
    if facts.histogram is None or facts.median is None:
        return withheld(facts.withheld)
    bars, median = facts.histogram, facts.median
    quantile_rows = [
        (f"{percent(level)} lose at most", number(at_most(value, 3)), f"×{NBSP}{factor_at_most(value)}")
        for level, value in facts.quantiles
    ]
    quantile_rows.append(("Nobody loses more than", number(facts.largest), f"×{NBSP}{factor_at_most(facts.largest)}"))
    rows = [
        (f"{number(first)} to {number(last)}", count(inside))
        for first, last, inside in zip(bars.edges, bars.edges[1:], bars.counts, strict=False)
    ]
    chart = figure(
        lambda width: loss_chart(bars, median, facts.cap, width),
        name="losses",
        title=f"Privacy loss {'of' if everybody_delivered(report) else 'promised to'} the {people(report.bought_from)}"
        " bought from",
        description=(
            f"A histogram. Half of those bought from lose at most {number(at_most(median, 3))}; nobody loses more than"
            f" {number(facts.largest)}."
        ),
        caption=f"Areas are people. Every bar stands for at least {SMALLEST_CELL}, so bars differ in width.",
        table=Table(head=("Privacy loss ε", "People"), rows=tuple(rows)),
    )
    head = ("Of those bought from", "ε", "Odds change by at most")
    return join([chart, plain_table(Table(head=head, rows=tuple(quantile_rows)), class_="figures")])


def _schedule(report: Report) -> list[Child]:
    curves, currency = report.privacy.curves, report.currency
    if not curves:
        return [element("h3", "The schedule"), withheld(report.privacy.withheld or _NO_CURVE)]
    first = curves[0]
    ends = f"from {number(first.privacy_loss[0])} at {number(first.reports[0])}, falling with what is asked"
    kinds = {
        "exact": "One curve prices everybody: the same report, the same decision.",
        "average": "Averages over neighbouring reports, because people differ in more than what they report.",
        "expected": (
            "Simulated from the prior, before anybody reported: fewer than 20 people were bought from, so the real"
            " schedule is not shown."
        ),
    }
    several = len(curves) > 1
    table = _schedule_table(curves, report)
    loss = figure(
        lambda width: schedule_chart(curves, currency, width),
        name="schedule-loss",
        title="The more a person asks, the less is bought from her",
        description=f"Privacy loss against the reported price: {ends}.",
        caption=[kinds[first.kind] if not several else "One curve per group.", curve_legend(curves)],
    )
    parts: list[Part] = [
        ("compensation: her price times her ε", 0.0, "s1", ""),
        ("information rent", 0.0, "s2", ""),
    ]
    note = "The line is the payment, which also counts what the estimate is worth to her." if any(first.other) else None
    pay = figure(
        lambda width: payment_chart(curves, currency, width),
        name="schedule-payment",
        title="What she is paid, and what for",
        description="Payment against the reported price: compensation, and information rent on top of it.",
        caption=[curve_legend(curves) if several else legend(parts), note],
        table=table,
    )
    return [element("h3", "The schedule"), loss, pay]


_NO_CURVE = "No group has enough people for a curve that would not show what one of them reported."


def _schedule_table(curves: tuple[Curve, ...], report: Report) -> Table:
    rows = []
    for curve in curves:
        step = max((len(curve.reports) - 1) // (_TABLE_ROWS - 1), 1)
        for k in range(0, len(curve.reports), step):
            name = f"{curve.name}: " if curve.name else ""
            total = curve.compensation[k] + curve.rent[k] + curve.other[k]
            figures = (curve.privacy_loss[k], total, curve.compensation[k], curve.rent[k])
            rows.append((f"{name}{number(curve.reports[k])}", *(number(value) for value in figures)))
    head = ("Asked per unit of ε", "ε", "Payment", "Compensation", "Rent")
    return Table(head=head, rows=tuple(rows))
