"""The sections of a report about who was bought from and whether that misleads: facts in, elements out."""

from hushbid.report.charts import Part, legend
from hushbid.report.charts_compare import groups_chart, selection_chart
from hushbid.report.html import Child, Markup, join
from hushbid.report.model import Report, SelectionFacts
from hushbid.report.sections import bold, paragraph, withheld
from hushbid.report.sections_settled import delivered_words, everybody_delivered
from hushbid.report.suppression import FEW, SMALLEST_CELL, SMALLEST_CHART
from hushbid.report.svg import Table, figure, numbers, plain_table, scrolling
from hushbid.wording import NBSP, count, number, people, percent, with_unit


def groups_section(report: Report) -> Markup:
    """Who was bought from, by group."""
    if report.bought_from == 0:
        return paragraph("Nobody.")
    precise = "."
    if report.selection is not None:
        equals = number(report.selection.effective_people)
        condition = "" if everybody_delivered(report) else ", if all of them deliver"
        precise = f": it is as precise as one in which {equals} people count the same{condition}."
    opening = paragraph(
        "Data were bought from " if everybody_delivered(report) else "It was decided to buy data from ",
        bold(f"{count(report.bought_from)} of {people(report.people)}"),
        f" ({percent(report.bought_from / report.people)}){delivered_words(report)}. The estimate counts people by how"
        " much was bought from them",
        precise,
    )
    if report.groups is None:
        return join([opening, paragraph("No groups were recorded, so nothing can be said about who they are.")])
    if not report.groups:
        return join(
            [opening, withheld(f"The groups are too small: each needs {SMALLEST_CHART} people, and they have fewer.")]
        )
    rows = report.groups
    hidden = any(row.share_of_weight is None for row in rows)
    head = (
        "Group",
        "People",
        "Bought from",
        "Share of people",
        "Share of the estimate",
        "Share of payments",
        "ε per person",
    )
    table = Table(
        head=head,
        rows=tuple(
            (
                row.name,
                count(row.people),
                f"{count(row.bought_from)} ({percent(row.bought_from / row.people)})",
                percent(row.share_of_people),
                *(_or_withheld(share) for share in (row.share_of_weight, row.share_of_payment)),
                "withheld" if row.mean_loss is None else number(row.mean_loss),
            )
            for row in rows
        ),
    )
    caption: list[Child] = [
        "Hollow: the group's share of all who reported. Filled: its share of the estimate. Where they are far apart,"
        " the group speaks louder, or more quietly, than its number."
    ]
    if hidden:
        caption.append(f" Amounts are withheld where fewer than {SMALLEST_CELL} people are behind them.")
    chart = figure(
        lambda width: groups_chart(rows, width),
        name="groups",
        title="Who the estimate listens to",
        description="For each group its share of people and its share of the estimate; the table has the numbers.",
        caption=caption,
    )
    return join([opening, chart, scrolling(plain_table(table, class_="wide-table"), name="Groups")])


def _or_withheld(share: float | None) -> str:
    return "withheld" if share is None else percent(share)


def selection_section(report: Report) -> Markup:
    """Which correlation between price and datum would move the estimate by half an interval."""
    facts, unit = report.selection, report.unit
    if report.bought_from == 0:
        return paragraph("Nothing was bought, so nothing can mislead.")
    if facts is None:
        return withheld(FEW)
    if not facts.shift_per_correlation:
        return paragraph("Everybody has the same weight in the estimate, so prices cannot mislead it.")
    half = with_unit(number(facts.half_width, 2), unit)
    opening = paragraph(
        "People who ask little count more. That is harmless unless what they ask has to do with what their data say:"
        " if those who ask much are ill more often, the estimate is too rosy. Nothing in a campaign can measure this,"
        " since the data of those who were not bought from are never seen. What can be said is how strong the"
        " relation would have to be.",
    )
    if facts.any_shape is None:
        return join(
            [
                opening,
                paragraph(bold(f"Not even a perfect relation could move the estimate by half an interval ({half}).")),
            ]
        )
    linear = (
        [
            "A correlation of ",
            bold(f"±{NBSP}{number(facts.linear, 2)}"),
            f" between what people ask and what their data say would move the estimate by half an interval ({half}).",
        ]
        if facts.linear is not None
        else [
            "No straight-line relation between what people ask and their data could move it by half an interval"
            f" ({half})."
        ]
    )
    answer = paragraph(
        linear,
        " If the relation is not a straight line, it is the correlation between a person's weight and her datum that"
        f" counts, and ±{NBSP}",
        bold(number(facts.any_shape, 2)),
        " of that is enough. For comparison: 0.1 is usually called weak, 0.3 moderate, 0.5 strong.",
        _direction(facts),
        class_="answer",
    )
    parts: list[Part] = [
        ("a straight-line relation with the price", 0, "s1", ""),
        ("a relation of any shape, by weight", 0, "s2", ""),
    ]
    chart = figure(
        lambda width: selection_chart(facts, unit, width),
        name="selection",
        title="How far a relation between price and datum would move the estimate",
        description=(
            f"Two lines from zero. The interval's half-width, {half}, is reached at a correlation of"
            f" {number(facts.any_shape, 2)} between weight and datum"
            + (f" and at {number(facts.linear, 2)} between price and datum." if facts.linear is not None else ".")
        ),
        caption=legend(parts if facts.linear is not None else parts[1:]),
    )
    formula = numbers(
        Table(
            head=("Bias = n · cov(weight, datum)", "Value"),
            rows=(
                ("Standard deviation of the data (declared)", with_unit(number(facts.spread), unit)),
                ("People reporting, n", count(report.people)),
                ("People as if all counted the same, 1 / Σ w²", number(facts.effective_people)),
                (
                    "Unevenness of the weights, √(n Σ w² − 1)",
                    number(facts.shift_per_correlation / facts.spread if facts.spread else 0.0),
                ),
                (
                    "Correlation of weight and price",
                    "—" if facts.weight_cost_correlation is None else number(facts.weight_cost_correlation),
                ),
                ("Half the interval", half),
            ),
        ),
        name="How the correlation is computed",
        summary="How this is computed",
    )
    return join([opening, answer, chart, formula])


def _direction(facts: SelectionFacts) -> str:
    between = facts.weight_cost_correlation
    if between is None or between >= 0.0:
        return ""
    return " If people with larger data ask more, the estimate is too low; if they ask less, too high."
