"""The section of a report about other ways to buy: facts in, elements out."""

import math

from hushbid.money import money
from hushbid.report.charts_compare import rivals_chart
from hushbid.report.html import Child, Markup, element, join
from hushbid.report.model import Report, RivalFacts
from hushbid.report.sections import bold, paragraph, withheld
from hushbid.report.svg import Table, figure
from hushbid.wording import number, percent, with_unit

_OUT_OF_REACH = "out of reach"


def rivals_section(report: Report) -> Markup:
    """What the same accuracy would have cost elsewhere, and what accuracy the same money would have bought."""
    if report.bought_from == 0:
        return paragraph("Nothing was bought, so there is no price to compare.")
    if report.rivals.missing:
        return withheld(report.rivals.missing)
    ours, *others = report.rivals.rows
    chart = figure(
        lambda width: rivals_chart(report.rivals.rows, report.currency, width),
        name="rivals",
        title="What the same accuracy would have cost",
        description="Bars: " + "; ".join(f"{row.name}: {_payment(row, report)}" for row in report.rivals.rows) + ".",
        caption=[
            "Blue: this campaign. Orange: other ways under which the truth is everybody's best report and joining pays."
            " Grey: what no buyer can have, because people would not tell their price, or would not join."
            " Before rounding to coins."
        ],
        table=Table(
            head=("Way to buy", "Truth is best", "Joining pays", "Pays for our accuracy", "Error for our money"),
            rows=tuple(_row(row, report) for row in report.rivals.rows),
        ),
    )
    return join([_conclusion(ours, others, report), chart, _explained(others)])


def _conclusion(ours: RivalFacts, others: list[RivalFacts], report: Report) -> Markup:
    real = [row for row in others if row.is_real and math.isfinite(row.payment)]
    if not real:
        return paragraph("No other truthful and voluntary way to buy that we know reaches this accuracy here.")
    best = min(real, key=lambda row: row.payment)
    more = best.payment / ours.payment - 1.0
    difference = f"{percent(abs(more))} {'more' if more >= 0 else 'less'}"
    return paragraph(
        "Of the other truthful and voluntary ways to buy, the cheapest here is ",
        bold(best.name),
        f". For the accuracy of this campaign it would have paid {money(best.payment, report.currency)}, ",
        bold(difference),
        f"; with the money of this campaign it would have reached a standard error of {_error(best, report)} instead of"
        f" {_error(ours, report)}. ",
        "Were it not for the cap, this" if report.privacy.cap is not None else "This",
        " campaign's way would be the cheapest"
        if report.privacy.cap is not None
        else " campaign's way is the cheapest",
        " on average over the prior. On one set of reports another can come out ahead, the more so as its terms were"
        " chosen here by looking at the reports, which a real one may not.",
    )


def _explained(others: list[RivalFacts]) -> Markup:
    words: list[Child] = [
        element(
            "li",
            bold("The first best"),
            ": a buyer who knows everybody's price and pays just that. What it saves"
            " is what people's knowing their own price costs.",
        ),
        element(
            "li",
            bold("The paper's estimators"),
            ": this campaign's purchase with the simpler estimator of the paper behind Hushbid.",
        ),
        element("li", bold("A posted price"), ": one price and one ε, take it or leave it, the best for the prior."),
        element(
            "li",
            bold("A fixed-accuracy auction"),
            ": the lowest bidders sell the same ε at the first price that was turned down (Ghosh and Roth 2011).",
        ),
        element("li", bold("The same loss for all"), ": everybody sells the same ε, at a price that satisfies all."),
        element("li", bold("No privacy"), ": data are taken as they are, and nobody is paid."),
    ]
    notes = [
        paragraph(f"{row.name[:1].upper()}{row.name[1:]}: {row.note}", class_="small") for row in others if row.note
    ]
    return join([element("details", element("summary", "What these are"), element("ul", words), notes)])


def _row(row: RivalFacts, report: Report) -> tuple[str, ...]:
    truthful, voluntary = ("yes" if answer else "no" for answer in (row.truthful, row.voluntary))
    return row.name, truthful, voluntary, _payment(row, report), _error(row, report)


def _payment(row: RivalFacts, report: Report) -> str:
    return money(row.payment, report.currency) if math.isfinite(row.payment) else _OUT_OF_REACH


def _error(row: RivalFacts, report: Report) -> str:
    finite = math.isfinite(row.standard_error)
    return with_unit(number(row.standard_error), report.unit) if finite else _OUT_OF_REACH
