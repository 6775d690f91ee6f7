"""The report page again, from a record: what the page of the purchase said, as far as the record knows it.

A record holds the decisions, the payments, the release, and in its notes the campaign's title, its question, its wave
and its notices. It does not hold the unit of the data, the date, the spending limit, how sure the interval was to be,
what the audits found, nor what a server knows of payments made. The caller states the first four, and audits again.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from hushbid.campaign.notices import asked_by, is_synthetic, noted_in, notices_of
from hushbid.errors import InputError
from hushbid.record import Record
from hushbid.report import AuditLine, build_report, render_report

_OVERLAP = "prior fitted on participants"


def recorded_page(
    record: Record,
    *,
    audits: Callable[[], tuple[AuditLine, ...]],
    file: str,
    title: str | None = None,
    question: str | None = None,
    unit: str = "",
    **said: Any,
) -> str:
    """Return the page, as HTML; ``file`` is what the record is called there, ``said`` the rest that it does not hold.

    What contradicts the record is refused before ``audits`` are run.
    """
    question, _ = asked_by(record, question, None)
    if record.outcome.market.survey is not None and unit:
        raise InputError("unit cannot be stated of a survey, each of whose questions has its own.", field="unit")
    notes, _ = noted_in(record)
    report = build_report(
        record.outcome,
        record.release,
        title=title or ("campaign" in notes and notes["campaign"][0]) or "A campaign",
        question=question,
        unit=unit,
        money=record.money,
        groups=record.groups,
        audits=audits(),
        prior_from_participants=any(stamp.startswith(_OVERLAP) for stamp in record.stamps),
        notices=notices_of(record, synthetic=is_synthetic(record)),
        record_name=Path(file).name,
        record_hash=record.hash,
        **said,
    )
    return str(render_report(report))
