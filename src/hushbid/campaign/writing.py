"""What is written of a purchase: tables of decisions and payments, the estimate, the record, the report, a summary.

Every file is staged; the last of them, which tells that all are there, last.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

from hushbid.campaign.deciding import Decision, DecisionInMemory, Step, prior_note
from hushbid.campaign.notices import (
    SIMULATED,
    SYNTHETIC,
    asked_notes,
    release_notes,
    stratum_note,
    stratum_notice,
    wave_notices,
)
from hushbid.campaign.people import Reading
from hushbid.campaign.releasing import Released, stamps_of
from hushbid.campaign.results import Purchase, payment_columns, summary
from hushbid.campaign.telling import campaign_estimate
from hushbid.campaign.terms import Campaign
from hushbid.common.documents import plain
from hushbid.common.staging import Staging, Write
from hushbid.common.tables import Raw, table_writer
from hushbid.disclosure import Answer
from hushbid.languages import Sentence
from hushbid.record import Record
from hushbid.record.folder import place_of_folder
from hushbid.report import AuditLine, Report, build_report, render_report
from hushbid.report.sections.audits import lines_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """What the files are called."""

    decisions: Path
    payments: Path
    estimate: Path
    report: Path
    record: Path
    summary: Path | None
    """Written where an engine decided."""

    @classmethod
    def of(cls, campaign: Campaign, folder: Path, reading: Reading) -> "Names":
        """Name files in the campaign's folder; an engine writes Parquet."""
        on_engine = reading.engine != "memory"
        end = "parquet" if on_engine else campaign.spec.output.decisions
        figures = folder / ("summary.json" if campaign.data else "decided.json")
        return cls(
            decisions=folder / f"decisions.{end}",
            payments=folder / f"payments.{end}",
            estimate=folder / "estimate.json",
            report=folder / "report.html",
            record=folder / ("record.json" if campaign.data else "outcome.json"),
            summary=figures if on_engine else None,
        )

    @property
    def last(self) -> tuple[Path, ...]:
        """Where one of these is, all are."""
        return (self.record, place_of_folder(self.record)) if self.summary is None else (self.summary,)


def complete(
    files: Staging,
    names: Names | None,
    campaign: Campaign,
    decision: Decision,
    released: Released,
    *,
    audit: bool,
    step: Step,
) -> Purchase:
    """Attack a purchase, record it, and let its files wait for their names, the last of them last."""
    answer, stamps = released.answer, stamps_of(decision, campaign, released.answer)
    step("auditing")
    audits = _audited(campaign, decision) if audit else ()
    step("writing")
    paths: list[Path] = []
    record, record_hash, unrecorded = None, None, ""
    # the report is computed in a thread; tables come first, which Python's lock does not hold up
    with ThreadPoolExecutor(max_workers=1) as thread:
        page = None
        if names is not None and isinstance(decision, DecisionInMemory) and campaign.data is not None:
            page = thread.submit(_page, campaign, decision, answer, audits)
        if names is not None:
            paths += _stage_tables(files, names, campaign, decision, answer)
        step("recording")
        notes = notes_of(campaign, answer)
        if isinstance(decision, DecisionInMemory):
            record = record_of(decision, answer, stamps=stamps, notes=notes)
            record_hash = record.hash
            if names is not None:
                paths += _stage_report(files, names, record, page)
        elif names is not None:
            from hushbid.campaign.on_engine import stage_record

            place, record_hash, unrecorded = stage_record(
                files, names.record, campaign, decision, answer, stamps=stamps, notes=notes
            )
            paths += [] if place is None else [place]
        if names is not None and names.summary is not None:
            files.add(names.summary, _json_writer(summary(campaign, decision, answer, stamps)))
            paths.append(names.summary)
    return Purchase(
        campaign=campaign,
        decided=decision,
        released=released,
        record=record,
        record_hash=record_hash,
        unrecorded=unrecorded,
        stamps=tuple(stamps),
        audits=audits,
        files=tuple(paths),
    )


def _audited(campaign: Campaign, decision: Decision) -> tuple[AuditLine, ...]:
    if campaign.data is None or not decision.figures.active or not isinstance(decision, DecisionInMemory):
        return ()
    from hushbid.audit.suite import audits_of  # late: with all that attacks take it is much to load

    return lines_of(audits_of(decision.outcome), decision.outcome)


def _stage_report(files: Staging, names: Names, record: Record, page: Future[Report] | None) -> Iterator[Path]:
    """Stage the report, if there is one, and the record, which is named in it."""
    if page is not None:
        verify = replace(page.result().verify, record_name=record.place(names.record).name, record_hash=record.hash)
        content = str(render_report(replace(page.result(), verify=verify))).encode()
        files.add(names.report, lambda file: file.write(content))
        yield names.report
    yield record.stage(files, names.record)


def record_of(
    decision: DecisionInMemory, answer: Answer | None = None, *, stamps: Sequence[str], notes: Sequence[str] = ()
) -> Record:
    """Return the record of a purchase, with stamps that tell of safeguards that were overridden."""
    return Record.of(
        decision.outcome,
        None if answer is None else answer.release,
        ids=decision.people.ids,
        groups=decision.people.groups,
        money=decision.money,
        stamps=stamps,
        notes=[prior_note(decision.origin), *notes],
    )


def _stage_tables(
    files: Staging, names: Names, campaign: Campaign, decision: Decision, answer: Answer | None
) -> list[Path]:
    """Stage decisions, payments and the estimate; decisions that an engine wrote are staged already."""
    synthetic: dict[str, Raw] = {"synthetic": ["yes"] * decision.figures.people} if campaign.spec.synthetic else {}
    if isinstance(decision, DecisionInMemory):
        files.add(names.decisions, table_writer(names.decisions, {**decision.columns(), **synthetic}))
    if answer is None:
        return [names.decisions]
    if isinstance(decision, DecisionInMemory):
        owed = payment_columns(decision, answer, late_is_paid=campaign.late == "paid")
        files.add(names.payments, table_writer(names.payments, {**owed, **synthetic}))
    else:
        from hushbid.campaign.on_engine import write_payments

        write_payments(files, names.payments, campaign, decision, answer)
    files.add(names.estimate, _json_writer(campaign_estimate(campaign, answer)))
    return [names.decisions, names.payments, names.estimate]


def _json_writer(values: Mapping[str, Any]) -> Write:
    content = json.dumps(plain(values), indent=2) + "\n"
    return lambda file: file.write(content.encode())


def _page(
    campaign: Campaign, decision: DecisionInMemory, answer: Answer | None, audits: tuple[AuditLine, ...]
) -> Report:
    """All that the report of a campaign shows, but for the hash of the record."""
    notices: list[str | Sentence] = [SYNTHETIC] if campaign.spec.synthetic else []
    notices += [] if campaign.part_of is None else [stratum_notice(*campaign.part_of)]
    notices += campaign.spec.notices
    if not campaign.spec.synthetic and answer is not None:
        notices += wave_notices(campaign.spec.wave, answer.waves_before)
    if campaign.data is not None and campaign.data.kind == "simulated_values":
        notices.append(SIMULATED)
    return build_report(
        decision.outcome,
        None if answer is None else answer.release,
        title=campaign.title,
        question=campaign.question,
        unit=campaign.unit,
        money=decision.money,
        groups=decision.people.groups,
        audits=audits,
        prior_from_participants=bool(decision.origin.get("overlap")),
        spending_limit=campaign.spec.money.spending_limit,
        notices=notices,
        date=date.today().isoformat(),
        level=campaign.spec.output.level,
    )


def notes_of(campaign: Campaign, answer: Answer | None) -> list[str]:
    """Return what a record says of a campaign besides its decisions."""
    notes = [f"campaign: {campaign.title}", *asked_notes(campaign.question, campaign.spec.wave)]
    if campaign.path is not None and campaign.path.exists():
        notes.append(f"campaign file sha256: {hashlib.sha256(campaign.path.read_bytes()).hexdigest()}")
    if campaign.part_of is not None:
        notes.append(stratum_note(*campaign.part_of))
    if answer is not None:
        notes += release_notes(campaign.spec.wave, answer.waves_before, 0, None, synthetic=campaign.spec.synthetic)
    if campaign.data is not None and campaign.data.kind == "simulated_values":
        notes.append(str(SIMULATED))
    return [*notes, *campaign.spec.notices]
