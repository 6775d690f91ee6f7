"""Who gave up how much privacy: the distribution of privacy losses, and the schedule behind it."""

import math
from dataclasses import dataclass

from markupsafe import Markup

from hushbid.common.numbers import NBSP, at_most
from hushbid.disclosure import Release
from hushbid.languages import noted
from hushbid.mechanism import Menu, Outcome
from hushbid.report import schedule_chart
from hushbid.report.language import count, factor_at_most, number, people, percent, say
from hushbid.report.material import Material
from hushbid.report.suppression import (
    SMALLEST_CHART,
    Histogram,
    coarse,
    enough_for_chart,
    few_missing,
    few_words,
    fewest,
    histogram,
    quantiles,
    too_few,
)
from hushbid.report.svg import Chart, Drawing, Scale, Table, flag, plot
from hushbid.report.svg import histogram as bars_between

ANCHOR, TITLE = "privacy", noted("Who gave up how much privacy")
_LARGEST_POWER = 700.0
_LEVELS = (0.1, 0.25, 0.5, 0.75, 0.9)


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivacyFacts:
    """Who gave up how much."""

    largest: float
    """Nobody loses more than this (rounded up)."""

    unlimited: int
    """How many people are promised nothing: an infinite loss."""

    cap: float | None
    """The cap on everybody's loss."""

    quantiles: tuple[tuple[float, float], ...]
    """(level, quantile) of the losses of those bought from; empty if they are too few."""

    median: float | None
    """Of the same; None if they are too few."""

    histogram: Histogram | None
    """Of the losses of those bought from; None if they are too few."""

    curves: tuple[schedule_chart.Curve, ...]
    """The schedule; empty if people are too few."""

    withheld: str
    """Why charts are missing; empty if none is."""

    checked: tuple[int, int, int] | None
    """For how many people the promise was verified before release: in integers, in fractions, by the sampler.

    None before a release, and where it would tell how many of few did not deliver.
    """

    before: float = 0.1
    """How likely something about a person seems before the release, for an example of the risk."""

    @property
    def after(self) -> float:
        """How likely the release can make the same seem, at most: odds grow by a factor of exp(ε)."""
        odds = math.exp(self.largest) * self.before / (1.0 - self.before) if self.largest < _LARGEST_POWER else math.inf
        return at_most(1.0 - 1.0 / (1.0 + odds))


def facts_of(material: Material) -> PrivacyFacts:
    """What may be shown of a campaign's losses."""
    return privacy_facts(material.outcome, material.menu, material.release)


def privacy_facts(outcome: Outcome, menu: Menu | None = None, release: Release | None = None) -> PrivacyFacts:
    """The losses of those bought from, as far as enough people are behind them."""
    losses = outcome.privacy_loss[outcome.privacy_loss > 0.0]
    finite = losses[losses < math.inf]
    few = too_few(fewest(outcome))
    levels = () if few else quantiles(finite, _LEVELS)
    return PrivacyFacts(
        largest=_largest(outcome),
        unlimited=losses.size - finite.size,
        cap=_cap(outcome),
        quantiles=levels,
        median=dict(levels).get(0.5),
        histogram=None if few else histogram(finite),
        curves=schedule_chart.curves_of(outcome, menu),
        withheld=_withheld(outcome, finite.size),
        checked=_checked(release),
    )


def _withheld(outcome: Outcome, people: int) -> str:
    """Why charts are missing, if they are: few people in all, or in a stratum, whose loss follows from the others'."""
    if not enough_for_chart(people):
        return say(
            "Fewer than {number} people were bought from, so a chart could show what one of them bid.",
            number=SMALLEST_CHART,
        )
    return few_words(in_stratum=True) if too_few(fewest(outcome)) else ""


def _cap(outcome: Outcome) -> float | None:
    """What nobody may lose more than, whatever she stated; None if somebody's loss is not limited."""
    largest = outcome.market.for_people(outcome.bids.size).largest_cap
    return largest if largest < math.inf else None


def _largest(outcome: Outcome) -> float:
    """What nobody loses more than; where few people are behind it, the cap, or a coarse bound if there is none."""
    cap = _cap(outcome)
    if too_few(fewest(outcome)) and cap is not None:
        return at_most(cap)
    return coarse(at_most(float(outcome.privacy_loss.max(initial=0.0))), fewest(outcome))


def _checked(release: Release | None) -> tuple[int, int, int] | None:
    """For how many people the promise was verified. That may tell how many delivered, so not if few did not."""
    if release is None or few_missing(len(release.dropped_out)):
        return None
    return release.check.people, release.check.people_in_fractions, release.check.people_mapped


def chart(facts: PrivacyFacts, bought_from: int, *, delivered: bool) -> Chart:
    """How many people lose how much."""
    assert facts.histogram is not None
    bars = facts.histogram
    rows = [
        (say("{low} to {high}", low=number(first), high=number(last)), count(inside))
        for first, last, inside in zip(bars.edges, bars.edges[1:], bars.counts, strict=False)
    ]
    return Chart(
        name="losses",
        title=say("Privacy loss of the {people} bought from", people=people(bought_from))
        if delivered
        else say("Privacy loss promised to the {people} bought from", people=people(bought_from)),
        description=say(
            "A histogram. Half of those bought from lose at most {median}; nobody loses more than {largest}.",
            median=number(at_most(facts.median or 0.0, 3)),
            largest=number(facts.largest),
        ),
        draw=lambda width: _histogram(bars, facts.median, facts.cap, width),
        table=Table(head=(say("Privacy loss ε"), say("People")), rows=tuple(rows)),
    )


def _histogram(bars: Histogram, median: float | None, cap: float | None, width: float) -> Drawing:
    def inside(x: Scale, y: Scale) -> list[Markup]:
        marks = bars_between(x, y, bars.edges, bars.heights, "s1 gap")
        if median is not None:
            marks += flag(x(median), y, width, say("median {median}", median=number(median)), "mark")
        if cap is not None and cap <= bars.edges[-1] * (1 + 1e-9):
            marks += flag(x(cap), y, width, say("cap {cap}", cap=number(cap)), "dash", row=1)
        return marks

    titles = say("privacy loss ε of those bought from"), say("people per {width} of ε", width=number(bars.width))
    return plot(width, (0.0, *bars.edges), bars.heights, titles, inside, bottom=240.0)


def quantile_table(facts: PrivacyFacts) -> Table:
    """Which part of those bought from loses at most how much."""
    rows = [
        (say("{part} lose at most", part=percent(level)), number(at_most(value, 3)), f"×{NBSP}{factor_at_most(value)}")
        for level, value in facts.quantiles
    ]
    rows.append((say("Nobody loses more than"), number(facts.largest), f"×{NBSP}{factor_at_most(facts.largest)}"))
    return Table(head=(say("Of those bought from"), "ε", say("Odds change by at most")), rows=tuple(rows))
