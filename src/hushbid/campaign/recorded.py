"""A purchase from its record: the one estimate that it paid for, drawn once, and its report page again.

A record holds the decisions, the payments, the release, and in its notes the campaign's title, its question, its wave
and its notices. It does not hold the unit of the data, the date, the spending limit, how sure the interval was to be,
what the audits found, nor what a server knows of payments made. The caller states the first four, and audits again.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from hushbid.campaign.deciding import Step
from hushbid.campaign.notices import (
    as_stamp,
    asked_by,
    is_synthetic,
    late_notice,
    noted_in,
    notices_of,
    release_notes,
    wave_stamps,
)
from hushbid.campaign.people import DataSource, People
from hushbid.campaign.releasing import INFINITE, Place, release
from hushbid.campaign.spec import CampaignSpec, DataTable, MarketTable, OutputTable
from hushbid.campaign.telling import answer_lines, campaign_estimate
from hushbid.campaign.terms import Campaign
from hushbid.common.arrays import id_texts
from hushbid.common.money import NO_CURRENCY
from hushbid.common.staging import Staging, refuse_existing
from hushbid.disclosure import Answer
from hushbid.errors import InputError
from hushbid.priors.pilot import PriorSource
from hushbid.record import Record, read
from hushbid.report import AuditLine, build_report, render_report

_OVERLAP = "prior fitted on participants"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class ReleasedRecord:
    """What a release from a record came to."""

    answer: Answer
    campaign: Campaign
    """What was asked."""

    record: Record
    """The record with the estimate in it."""

    path: Path | None = None
    """Where it was written; None if the record that was read held the estimate already."""

    notes: tuple[str, ...] = ()
    """How the data were read, where that was a choice: their encoding, decimal commas."""

    def facts(self) -> dict[str, Any]:
        """Return figures for programs, none of which belongs to one person."""
        answer = self.answer
        facts = {**campaign_estimate(self.campaign, answer), "drawn_before": answer.before, "late": len(answer.late)}
        return facts | {"stamps": list(self.record.stamps), "record": self.path, "reading_notes": list(self.notes)}

    def text(self) -> str:
        """Return the same in sentences."""
        lines = [*self.notes, *answer_lines(self.campaign, self.answer)]
        lines += [f"STAMPED in the record: {stamp}." for stamp in self.record.stamps]
        return "\n".join(lines if self.path is None else [*lines, f"Written: {self.path}."])


def people_of(record: Record, source: str) -> People:
    """Return who bid, as a record has them."""
    ids = None if record.ids is None else id_texts(record.ids)
    groups = None if record.groups is None else list(record.groups)
    return People(source=source, ids=ids, id_column=ids or [], bids=record.outcome.bids, groups=groups)


def release_recorded(
    path: Path,
    data: Any,
    *,
    out: Path,
    id_column: str = "id",
    value_column: str | None = None,
    simulated_values: bool = False,
    question: str | None = None,
    wave: int | None = None,
    late: Literal["paid", "unpaid"] | None = None,
    accept_infinite_loss: bool = False,
    level: float = 0.95,
    ledger: Path | None = None,
    force: bool = False,
    step: Step = lambda message: None,
) -> ReleasedRecord:
    """Draw the estimate that a record paid for, once, and write a record that holds it to ``out``."""
    step("reading the record")
    record = read(path)
    question, wave = asked_by(record, question, wave)
    asked = _campaign_of(record, data, id_column, value_column, simulated_values=simulated_values, late=late).stating(
        question=question,
        wave=wave,
        market=MarketTable.model_construct(accept_infinite_loss=accept_infinite_loss),
        output=OutputTable(level=level),
    )
    if not force:
        refuse_existing([record.place(out)])
    if record.release is not None:
        answer = Answer(release=record.release, before=True, late=(), waves_before=0)
        return ReleasedRecord(answer=answer, campaign=asked, record=record)
    step("reading the data and drawing")
    place = Place(ledger=ledger, folder=path.parent, record=out)
    found = release(asked, people_of(record, str(path)), record.outcome, place, late_field="late")
    assert found.answer is not None
    answer = found.answer
    step("writing")
    notes = release_notes(wave, answer.waves_before, len(answer.late), late, synthetic=asked.spec.synthetic)
    stamps = [] if asked.spec.synthetic else wave_stamps(wave, answer.waves_before)
    stamps += [INFINITE] * bool(np.isinf(record.outcome.privacy_loss).any())
    stamps += [as_stamp(late_notice(len(answer.late), late))] if answer.late and late is not None else []
    whole = record.with_release(answer.release, stamps=stamps, notes=notes)
    with Staging(force=force) as files:
        written = whole.stage(files, out)
    return ReleasedRecord(answer=answer, campaign=asked, record=whole, path=written, notes=found.notes)


def _campaign_of(
    record: Record, data: Any, id_column: str, value_column: str | None, *, simulated_values: bool, late: Any
) -> Campaign:
    """Return what is left of a record's campaign: where the data are, and whether they are synthetic."""
    market = record.outcome.market
    if simulated_values and not market.strategy.sends_messages:
        raise InputError(
            "simulated_values is for the local setting; in the central one the data are values.",
            field="simulated_values",
        )
    kind = "simulated_values" if simulated_values else None
    if market.survey is not None and value_column is not None and not (market.strategy.sends_messages and kind is None):
        message = "value_column must be left out for a survey: each question's column is called as the question is."
        raise InputError(message, field="value_column")
    table = DataTable.model_construct(id=id_column, value=value_column, kind=kind, late=late)
    asked = [one.name for one in market.survey or ()]
    return Campaign(
        spec=CampaignSpec.model_construct(synthetic=is_synthetic(record)),
        prior=PriorSource(priors={}),
        market={},
        currency=NO_CURRENCY,
        data=DataSource.of(table, data, setting=market.setting, questions=asked),
    )


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
