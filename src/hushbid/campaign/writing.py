"""What is written of a purchase: tables of decisions and payments, the estimate, the record, the report, a summary.

Every file is staged; the last of them, which tells that all are there, last.
"""

import hashlib
import json
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hushbid.campaign.deciding import Decided, Everybody
from hushbid.campaign.notices import SIMULATED, SYNTHETIC, release_notes, stratum_note, stratum_notice, wave_notices
from hushbid.campaign.people import Reading
from hushbid.campaign.releasing import asked_notes
from hushbid.campaign.results import campaign_estimate, payment_columns, summary
from hushbid.campaign.terms import Campaign
from hushbid.common.documents import plain
from hushbid.common.staging import Staging, Write
from hushbid.common.tables import Raw, table_writer
from hushbid.disclosure import Answer
from hushbid.languages import Sentence
from hushbid.record import Record
from hushbid.record.folder import place_of_folder
from hushbid.report import AuditLine, Report, build_report, render_report

if TYPE_CHECKING:
    from hushbid.campaign.on_engine import Staged
    from hushbid.engine import Priced


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
        """In the campaign's folder; an engine writes Parquet."""
        on_engine = reading.engine != "memory"
        end = "parquet" if on_engine else campaign.decisions_format
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


def write_tables(
    files: Staging,
    names: Names,
    campaign: Campaign,
    decided: Decided,
    priced: "Priced | None",
    answer: Answer | None,
) -> list[Path]:
    """Stage decisions, payments and the estimate; decisions that an engine wrote are staged already."""
    paths, everybody = [names.decisions], decided.everybody
    synthetic: dict[str, Raw] = {}
    if everybody is not None and campaign.synthetic:
        synthetic = {"synthetic": ["yes"] * len(everybody.people)}
    if everybody is not None:
        files.add(names.decisions, table_writer(names.decisions, {**everybody.columns(), **synthetic}))
    if answer is not None:
        paths += [names.payments, names.estimate]
        if everybody is None:
            _write_payments_on_engine(files, names.payments, campaign, priced, answer)
        else:
            owed = payment_columns(everybody, answer, late_is_paid=campaign.late == "paid")
            files.add(names.payments, table_writer(names.payments, {**owed, **synthetic}))
        files.add(names.estimate, _json_writer(campaign_estimate(campaign, answer)))
    return paths


def write_documents(
    files: Staging,
    names: Names,
    campaign: Campaign,
    decided: Decided,
    answer: Answer | None,
    record: Record | None,
    stamps: list[str],
    page: Future[Report] | None,
) -> list[Path]:
    """Stage the report and the record, if there are any, and where an engine decided a summary."""
    paths = []
    if record is not None:
        if page is not None:
            paths.append(names.report)
            written = _rendered(page.result(), record, record.place(names.record).name).encode()
            files.add(names.report, lambda file: file.write(written))
        paths.append(record.stage(files, names.record))
    if names.summary is not None:
        paths.append(names.summary)
        files.add(names.summary, _json_writer(summary(campaign, decided, answer, stamps)))
    return paths


def stage_on_engine(
    files: Staging,
    path: Path,
    campaign: Campaign,
    decided: Decided,
    priced: "Priced",
    answer: Answer | None,
    stamps: list[str],
) -> "Staged":
    """Stage the record of people whom an engine kept."""
    from hushbid.campaign.on_engine import stage_record  # engines are loaded where one is asked for

    return stage_record(
        files,
        path,
        priced,
        decided,
        group=campaign.bids.group,
        data=None if campaign.data is None else campaign.data.names,
        release=None if answer is None else answer.release,
        stamps=stamps,
        notes=notes_of(campaign, answer),
    )


def _write_payments_on_engine(
    files: Staging, path: Path, campaign: Campaign, priced: "Priced | None", answer: Answer
) -> None:
    from hushbid.engine.payouts import checked, due

    assert priced is not None
    assert campaign.data is not None
    # as in memory: without drop-outs the payments are those that were decided
    mse = answer.release.error.mse if answer.release.absent else priced.summary.mse
    frame = due(priced, campaign.data.names, campaign.currency, mse=mse, synthetic=campaign.synthetic)
    checked(files.make(path, lambda place: priced.write(frame, place)), priced)


def _json_writer(values: Mapping[str, Any]) -> Write:
    content = json.dumps(plain(values), indent=2) + "\n"
    return lambda file: file.write(content.encode())


def page_of(
    campaign: Campaign,
    decided: Decided,
    everybody: Everybody,
    answer: Answer | None,
    audits: tuple[AuditLine, ...],
) -> Report:
    """All that the report of a campaign shows, but for the hash of the record."""
    notices: list[str | Sentence] = [SYNTHETIC] if campaign.synthetic else []
    notices += [] if campaign.part_of is None else [stratum_notice(*campaign.part_of)]
    notices += campaign.notices
    if not campaign.synthetic and answer is not None:
        notices += wave_notices(campaign.wave, answer.waves_before)
    if campaign.data is not None and campaign.data.kind == "simulated_values":
        notices.append(SIMULATED)
    return build_report(
        everybody.outcome,
        None if answer is None else answer.release,
        title=campaign.title,
        question=campaign.question,
        unit=campaign.unit,
        money=everybody.money,
        groups=everybody.people.groups,
        audits=audits,
        prior_from_participants=bool(decided.origin.get("overlap")),
        spending_limit=campaign.spending_limit,
        notices=notices,
        date=date.today().isoformat(),
        level=campaign.level,
    )


def _rendered(report: Report, record: Record, name: str) -> str:
    return str(render_report(replace(report, verify=replace(report.verify, record_name=name, record_hash=record.hash))))


def notes_of(campaign: Campaign, answer: Answer | None) -> list[str]:
    """What a record says of a campaign beside its decisions."""
    notes = [f"campaign: {campaign.title}", *asked_notes(campaign.question, campaign.wave)]
    if campaign.path is not None and campaign.path.exists():
        notes.append(f"campaign file sha256: {hashlib.sha256(campaign.path.read_bytes()).hexdigest()}")
    if campaign.part_of is not None:
        notes.append(stratum_note(*campaign.part_of))
    if answer is not None:
        notes += release_notes(campaign.wave, answer.waves_before, 0, None, synthetic=campaign.synthetic)
    if campaign.data is not None and campaign.data.kind == "simulated_values":
        notes.append(str(SIMULATED))
    return [*notes, *campaign.notices]
