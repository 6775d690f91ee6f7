"""Pictures for notebooks, of the report's kit: leave one as the last line of a cell.

    from hushbid.report import charts

    charts.frontier(plan)
    charts.schedule(outcome, show="payment")

What is shown of people follows the rules of reports (`suppression`): where too few are behind a picture, a sentence is
in its place. ``str(chart.wide)`` is the picture for a page that has the style, ``chart._repr_svg_()`` a whole SVG file.
"""

import math
from dataclasses import replace
from typing import Literal

import numpy as np
from markupsafe import Markup

from hushbid.baselines import Comparison
from hushbid.disclosure.error import FEW_IN_STRATUM
from hushbid.errors import InputError
from hushbid.mechanism import Menu, Outcome, Plan, Simulation
from hushbid.report.language import number
from hushbid.report.schedule_chart import curves_of, loss_chart, payment_chart
from hushbid.report.sections import baselines as baseline_section
from hushbid.report.sections import privacy
from hushbid.report.suppression import SMALLEST_CHART, fewest, too_few
from hushbid.report.svg import (
    WIDE,
    Chart,
    Drawing,
    Scale,
    Table,
    below,
    dot,
    flag,
    histogram,
    label,
    line,
    line_legend,
    plot,
)

_FEW = f"Withheld: with fewer than {SMALLEST_CHART} people this could show what one of them bid."
_FIGURES = {
    "total_payment": "total payment",
    "mse": "mean squared error if unrelated",
    "worst_mse": "mean squared error at worst",
    "objective": "objective",
    "buyer_cost": "cost to the buyer",
    "share_bought": "share bought from",
    "largest_loss": "largest privacy loss",
}
_BOTTOM = 240.0


def frontier(plan: Plan) -> Chart:
    """Error against money: what campaigns come to with the goal as stated (filled), with more and with less."""
    _must_be(plan, Plan, "plan")
    title = f"Error against money, {plan.n:,} people"
    points = [one for one in plan.frontier if math.isfinite(one.payment) and math.isfinite(one.standard_error)]
    if not points:
        return _sentence(title, "This goal has no frontier.")
    stated = [one.goal == plan.market.stated_goal for one in points]

    def inside(x: Scale, y: Scale) -> list[Markup]:
        places = [(x(one.payment), y(one.standard_error)) for one in points]
        dots = [dot(*at, 5, "s1" if filled else "hollow") for at, filled in zip(places, stated, strict=True)]
        return [line(places, "l1"), *dots]

    def draw(width: float) -> Drawing:
        across, up = [one.payment for one in points], [one.standard_error for one in points]
        titles = "expected total payment", "standard error"
        return plot(width, across, up, titles, inside, bottom=_BOTTOM, is_round=True)

    rows = tuple((number(one.payment), number(one.standard_error)) for one in points)
    listed = "; ".join(f"{error} for {paid}" for paid, error in rows)
    table = Table(head=("Expected total payment", "Standard error"), rows=rows)
    return Chart(name="frontier", title=title, description=f"A line: {listed}.", draw=draw, table=table)


def schedule(
    outcome: Outcome, *, menu: Menu | None = None, show: Literal["privacy_loss", "payment"] = "privacy_loss"
) -> Chart:
    """Privacy loss, or payment, against what a person bids; a line for each of the four largest groups or strata.

    As in a report: read off at round bids, from at least 20 people bought from; with fewer, from ``menu``, made by
    ``market.menu``, which nobody's bid is behind.
    """
    _must_be(outcome, Outcome, "outcome")
    if show not in ("privacy_loss", "payment"):
        raise InputError(f"show must be 'privacy_loss' or 'payment', got {show!r}.", field="show")
    curves = curves_of(outcome, menu)
    if not curves:
        in_stratum = outcome.market.strata and too_few(fewest(outcome))
        return _sentence("The schedule", FEW_IN_STRATUM if in_stratum else _FEW)
    chart = (loss_chart if show == "privacy_loss" else payment_chart)(curves, None)
    if not curves[0].name:
        return chart
    names = line_legend([curve.name for curve in curves])
    return replace(chart, draw=lambda width: below(names, chart.draw(width)))


def losses(outcome: Outcome) -> Chart:
    """How many people lose how much privacy, of those bought from: bars of round width with at least 5 people each."""
    _must_be(outcome, Outcome, "outcome")
    facts = privacy.privacy_facts(outcome)
    if facts.histogram is None:
        infinite = np.isinf(outcome.privacy_loss).any() and not facts.withheld
        return _sentence("Privacy losses", "There is no scale for an unlimited loss." if infinite else facts.withheld)
    return privacy.chart(facts, outcome.active, delivered=False)


def baselines(comparison: Comparison) -> Chart:
    """What every way to buy pays for our accuracy, ours on top; grey are those that nobody could really use."""
    _must_be(comparison, Comparison, "comparison")
    if comparison.withheld:
        return _sentence("What the same accuracy would have cost", _FEW)
    rows = [baseline_section.baseline_facts(row) for row in (comparison.ours, *comparison.baselines)]
    return baseline_section.chart(rows, None, "")


def simulation(found: Simulation, name: str = "total_payment") -> Chart:
    """The distribution of a figure over simulated campaigns, its mean, and what one campaign of 20 exceeds."""
    _must_be(found, Simulation, "found")
    if name not in _FIGURES:
        raise InputError(f"name must be one of {', '.join(_FIGURES)}, got {name!r}.", field="name")
    values = getattr(found, name)
    finite = values[np.isfinite(values)]
    left_out = f", {values.size - finite.size} without an estimate left out" if finite.size < values.size else ""
    title = f"{values.size} simulated campaigns of {found.n:,} people{left_out}"
    if not finite.size:
        return _sentence(title, "In no campaign anything was bought.")
    counts, edges = np.histogram(finite, bins=min(max(round(math.sqrt(finite.size)), 8), 40))
    flags = {"mean": float(finite.mean()), "exceeded in one of 20": found.quantile(name).value}

    def draw(width: float) -> Drawing:
        def inside(x: Scale, y: Scale) -> list[Markup]:
            marks = histogram(x, y, edges.tolist(), counts.tolist(), "s1 gap")
            for row, (words, value) in enumerate(flags.items()):
                if math.isfinite(value):
                    marks += flag(x(value), y, width, words, "dash" if row else "mark", row=row)
            return marks

        across = [*edges.tolist(), *filter(math.isfinite, flags.values())]
        titles = _FIGURES[name], "campaigns"
        return plot(width, across, counts.tolist(), titles, inside, bottom=_BOTTOM, is_round=True)

    listed = ", ".join(f"{words} {number(value)}" for words, value in flags.items())
    rows = tuple(
        (f"{number(first)} to {number(last)}", str(count))
        for first, last, count in zip(edges.tolist(), edges[1:].tolist(), counts.tolist(), strict=False)
    )
    table = Table(head=(_FIGURES[name].capitalize(), "Campaigns"), rows=rows)
    return Chart(name="simulation", title=title, description=f"A histogram: {listed}.", draw=draw, table=table)


def _must_be(given: object, kind: type, name: str) -> None:
    if not isinstance(given, kind):
        raise InputError(f"{name} must be a {kind.__name__}, got {type(given).__name__}.", field=name)


def _sentence(title: str, text: str) -> Chart:
    """In the place of a picture."""
    marks: tuple[Markup, ...] = (label(0, 16, text),)
    return Chart(
        name="withheld", title=title, description=text, draw=lambda _: Drawing(width=WIDE, height=24, marks=marks)
    )
