"""The report page again, from a record: what the page of the purchase said, as far as the record knows it.

A record holds the decisions, the payments, the release, and in its notes the campaign's title, its question, its wave
and its notices. It does not hold the unit of the data, the date, the spending limit, how sure the interval was to be,
what the audits found, nor what a server knows of payments made. Whoever asks for the page states the first four, and
the audits are run again.
"""

from dataclasses import dataclass
from pathlib import Path

from hushbid.campaign.notices import notices_of
from hushbid.campaign.releasing import asked_by, is_synthetic
from hushbid.errors import InputError
from hushbid.languages import ENGLISH
from hushbid.record import Record
from hushbid.report import AuditLine, build_report, render_report

_CAMPAIGN = "campaign: "
_OVERLAP = "prior fitted on participants"


@dataclass(frozen=True, slots=True, kw_only=True)
class Unrecorded:
    """What a record does not say of its campaign."""

    title: str | None = None
    """What people call it; None for what the record says, which of a server's campaign is its number."""

    question: str | None = None
    """What is estimated, if the record does not say."""

    unit: str = ""
    """The unit of the data."""

    date: str = ""
    """When it was carried out, as it is to be shown."""

    spending_limit: float | None = None
    """More than this was not to be spent."""

    level: float = 0.95
    """How sure the interval is to be."""

    language: str = ENGLISH
    """What the page is to be written in."""


def recorded_page(record: Record, told: Unrecorded, *, audits: tuple[AuditLine, ...], file: str) -> str:
    """The page, as HTML; ``file`` is what the record is called there."""
    question = question_of(record, told)
    report = build_report(
        record.outcome,
        record.release,
        title=_title(record, told.title),
        question=question,
        unit=told.unit,
        money=record.money,
        groups=record.groups,
        audits=audits,
        prior_from_participants=any(stamp.startswith(_OVERLAP) for stamp in record.stamps),
        spending_limit=told.spending_limit,
        notices=notices_of(record, synthetic=is_synthetic(record)),
        record_name=Path(file).name,
        record_hash=record.hash,
        date=told.date,
        level=told.level,
        language=told.language,
    )
    return str(render_report(report))


def question_of(record: Record, told: Unrecorded) -> str:
    """The question that the page is about; what contradicts the record is refused."""
    question, _ = asked_by(record, told.question, None)
    if record.outcome.market.survey is not None and told.unit:
        raise InputError("unit cannot be stated of a survey, each of whose questions has its own.", field="unit")
    return question


def _title(record: Record, given: str | None) -> str:
    found = next((note.removeprefix(_CAMPAIGN) for note in record.notes if note.startswith(_CAMPAIGN)), None)
    return given or found or "A campaign"
