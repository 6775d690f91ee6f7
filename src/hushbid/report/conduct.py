"""How a server's campaign was carried out: what was asked and when, and who took no part in it, or left.

Small numbers are told together with others (`hushbid.report.suppression`). How many took no part in all follows from
how many were invited and how many bid, which everybody may know. Of those bought from, who left is counted where
it is told how many delivered (`hushbid.report.sections.cost`).
"""

from dataclasses import dataclass
from datetime import UTC, datetime

from hushbid.common.money import Currency
from hushbid.common.numbers import NBSP
from hushbid.report.language import count, money, say
from hushbid.report.material import Material
from hushbid.report.rendering import plain
from hushbid.report.sections.cost import settled_facts
from hushbid.report.suppression import told_together
from hushbid.report.svg import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Conduct:
    """What a server knows of how its campaign went. Counts are of people; confidential."""

    question: str
    """What everybody was asked, or what the questions are about."""

    opened_at: datetime | None
    decided_at: datetime | None
    released_at: datetime | None

    fee: float
    """For everybody whose bid counts, in units of the currency."""

    invited: int
    silent: int
    """Did not answer."""

    declined: int
    excluded: int
    """Would have given up too much over all campaigns."""

    withdrew_before: int
    """Before the decision, so that their bids do not count."""

    withdrew_after: int
    """After the decision."""

    dropped: int
    """Did not deliver."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConductFacts:
    """How a campaign was carried out, as far as it may be shown."""

    question: str
    questions: tuple[str, ...]
    """The names of several questions; empty if one number was asked for."""

    dates: tuple[tuple[str, str], ...]
    """What happened when, in UTC."""

    fee: float
    """For everybody whose bid counts."""

    invited: int
    bids: int
    apart: tuple[tuple[str, int], ...]
    """Why others took no part, small numbers told together."""

    left: tuple[tuple[str, int], ...] | None
    """What became of those who did not deliver; None where that is withheld, or not over."""


def conduct_facts(conduct: Conduct, material: Material) -> ConductFacts:
    """What may be shown of how a campaign went."""
    outcome = material.outcome
    survey = outcome.market.survey or ()
    moments = (
        (say("Opened"), conduct.opened_at),
        (say("Decided"), conduct.decided_at),
        (say("Released"), conduct.released_at),
    )
    told = None if material.settlement is None else settled_facts(material.settlement, outcome.active)
    counted = told is not None and told.delivered is not None
    return ConductFacts(
        question=plain(conduct.question),
        questions=tuple(plain(one.name) for one in survey),
        dates=tuple((name, _utc(moment)) for name, moment in moments if moment is not None),
        fee=conduct.fee,
        invited=conduct.invited,
        bids=int(outcome.bids.size),
        apart=told_together(
            {
                say("did not answer"): conduct.silent,
                say("declined"): conduct.declined,
                say("withdrew before the decision"): conduct.withdrew_before,
                say("were excluded by the privacy account"): conduct.excluded,
            }
        ),
        left=told_together(
            {say("dropped out"): conduct.dropped, say("withdrew after the decision"): conduct.withdrew_after}
        )
        if counted
        else None,
    )


def table(facts: ConductFacts, currency: Currency | None) -> Table:
    """Dates and numbers, one a line."""
    rows = [
        *facts.dates,
        (say("People invited"), count(facts.invited)),
        (say("named a price that counts"), count(facts.bids)),
        *((name, count(people)) for name, people in facts.apart),
        *((say("bought from, and {name}", name=name), count(people)) for name, people in facts.left or ()),
    ]
    if facts.fee:
        rows.append((say("Fee for taking part, for each whose price counts"), money(facts.fee, currency)))
    return Table(head=(say("When and who"), ""), rows=tuple(rows))


def _utc(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime(say("%Y-%m-%d, %H:%M") + f"{NBSP}UTC")
