"""What a purchase leaves behind: its record, what our own attacks on it found, and its files.

Decisions and, with data, what is to be paid, the estimate, the record and a report; of people whom an engine keeps to
itself a summary in the place of the last two. All wait under temporary names until everything is there.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from hushbid.audit.suite import audits_of
from hushbid.disclosure import Answer
from hushbid.documents import plain
from hushbid.durable import Staging, Write
from hushbid.engine import Priced
from hushbid.engine.payouts import checked, due
from hushbid.money import amounts_due
from hushbid.purchase.campaign_file import Campaign
from hushbid.purchase.deciding import Decided, Everybody, Step, record_of, record_writer
from hushbid.purchase.people import Delivered, Reading
from hushbid.purchase.releasing import MADE_UP_NOTICE, Asked, asked_notes, stamps_of, wave_stamps
from hushbid.purchase.results import Purchase, campaign_estimate, summary
from hushbid.record import Record
from hushbid.report import AuditLine, build_report, render_report
from hushbid.report.sections.audits import lines_of
from hushbid.tables import Column, table_writer

_SIMULATED = "The data are simulated: noise was added by the platform, not by people's own devices."


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Bought:
    """What was decided, and where the data are."""

    decided: Decided
    delivered: Delivered | None
    """Everybody's data, if they were read with the reports."""

    priced: Priced | None
    """The engine's table."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Drawn:
    """The estimate, if there is one."""

    answer: Answer | None = None
    strangers: int = 0
    """How many people in the data did not report."""

    missing: str = ""
    """Why there is no estimate although there are data."""


def asked_of(campaign: Campaign) -> Asked:
    """What a campaign asks, and what it accepts by name."""
    return Asked(
        question=campaign.quantity,
        wave=campaign.wave,
        made_up=campaign.made_up,
        simulated=campaign.data is not None and campaign.data.kind == "simulated_values",
        accept_infinite_loss=campaign.accept_infinite_loss,
        late=None if campaign.data is None else campaign.data.late,
    )


def complete(
    files: Staging, names: "Names", campaign: Campaign, bought: Bought, drawn: Drawn, *, audit: bool, step: Step
) -> Purchase:
    """Record a purchase, attack it, and let its files wait for their names."""
    decided, everybody, answer = bought.decided, bought.decided.everybody, drawn.answer
    # everywhere the same is said of safeguards that were overridden
    stamps = stamps_of(decided, asked_of(campaign), answer)
    step("recording")
    record = None
    if everybody is not None:
        release = None if answer is None else answer.release
        record = record_of(everybody, decided.origin, release, stamps=stamps, notes=_notes(campaign))
    step("auditing")
    audits: tuple[AuditLine, ...] = ()
    if audit and everybody is not None and decided.figures.active and campaign.data is not None:
        audits = lines_of(audits_of(everybody.outcome), everybody.outcome)
    step("writing")
    paths = _write(files, names, campaign, bought, answer, record, stamps, audits)
    return Purchase(
        campaign=campaign,
        decided=decided,
        answer=answer,
        record=record,
        stamps=tuple(stamps),
        strangers=drawn.strangers,
        missing=drawn.missing,
        audits=audits,
        files=tuple(paths),
    )


# -- files -------------------------------------------------------------------------------------------------------------


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
    def of(cls, campaign: Campaign, reading: Reading) -> "Names":
        """Of a campaign whose people are read so."""
        on_engine = reading.engine != "memory"
        folder, end = campaign.folder, "parquet" if on_engine else campaign.decisions_format
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
    def last(self) -> Path:
        """Where it is, all are."""
        return self.summary or self.record


def _write(
    files: Staging,
    names: Names,
    campaign: Campaign,
    bought: Bought,
    answer: Answer | None,
    record: Record | None,
    stamps: list[str],
    audits: tuple[AuditLine, ...],
) -> list[Path]:
    """Stage every file, the last of them last; decisions that an engine wrote are staged already."""
    paths, everybody = [names.decisions], bought.decided.everybody
    made_up: dict[str, Column] = {}
    if everybody is not None and campaign.made_up:
        made_up = {"made_up": ["yes"] * len(everybody.people)}
    if everybody is not None:
        files.add(names.decisions, table_writer(names.decisions, {**everybody.columns(), **made_up}))
    if answer is not None:
        paths += [names.payments, names.estimate]
        if everybody is None:
            _write_payments_on_engine(files, names.payments, campaign, bought.priced, answer)
        else:
            late = campaign.data.late if campaign.data is not None else None
            owed = payment_columns(everybody, answer, late_is_paid=late == "paid")
            files.add(names.payments, table_writer(names.payments, {**owed, **made_up}))
        files.add(names.estimate, json_writer(campaign_estimate(campaign, answer)))
    if everybody is not None and record is not None:
        if campaign.data is not None:
            paths.append(names.report)
            page = _report(campaign, bought.decided, everybody, answer, record, audits)
            files.add(names.report, lambda file: file.write(page.encode()))
        paths.append(names.record)
        files.add(names.record, record_writer(record))
    if names.summary is not None:
        paths.append(names.summary)
        files.add(names.summary, json_writer(summary(campaign, bought.decided, answer, stamps)))
    return paths


def _write_payments_on_engine(
    files: Staging, path: Path, campaign: Campaign, priced: Priced | None, answer: Answer
) -> None:
    assert priced is not None
    assert campaign.data is not None
    # as in memory: without drop-outs the payments are those that were decided
    mse = answer.release.error.mse if answer.release.absent else priced.summary.mse
    frame = due(priced, campaign.data.names, campaign.currency, mse=mse, made_up=campaign.made_up)
    checked(files.make(path, lambda place: priced.write(frame, place)), priced)


def json_writer(values: Mapping[str, Any]) -> Write:
    content = json.dumps(plain(values), indent=2) + "\n"
    return lambda file: file.write(content.encode())


def payment_columns(everybody: Everybody, answer: Answer, *, late_is_paid: bool) -> dict[str, Column]:
    """What is to be paid, now that data were delivered or not: nothing to those who did not deliver.

    If people value the estimate and some dropped out, its error has grown, and with it what they are owed. Whoever
    delivered late is paid like the others, or like those who did not deliver.
    """
    outcome, money, release = everybody.outcome, everybody.money, answer.release
    asked = outcome.privacy_loss > 0.0
    gone, late = (np.zeros(len(everybody.people), dtype=bool) for _ in range(2))
    gone[list(release.dropped_out)] = True
    late[list(answer.late)] = True
    owed = money.payments
    if gone.any():
        worse = outcome.population.user_weights() * (release.error.mse - outcome.mse)
        owed = amounts_due(outcome.payments, worse, gone & ~late if late_is_paid else gone, money.decimals)
    return {
        everybody.people.id_name: everybody.people.id_column,
        "payment_minor": owed,
        "currency": [money.currency] * len(everybody.people),
        "delivered": np.where(late, "late", np.where(gone, "no", np.where(asked, "yes", "not asked"))).tolist(),
    }


def _report(
    campaign: Campaign,
    decided: Decided,
    everybody: Everybody,
    answer: Answer | None,
    record: Record,
    audits: tuple[AuditLine, ...],
) -> str:
    notices = [MADE_UP_NOTICE, *campaign.notices] if campaign.made_up else list(campaign.notices)
    if not campaign.made_up and answer is not None:
        told = wave_stamps(campaign.wave, answer.waves_before)
        notices += [f"{stamp[0].upper()}{stamp[1:]}." for stamp in told]
    if campaign.data is not None and campaign.data.kind == "simulated_values":
        notices.append(_SIMULATED)
    report = build_report(
        everybody.outcome,
        None if answer is None else answer.release,
        campaign_name=campaign.name,
        quantity=campaign.quantity,
        unit=campaign.unit,
        money=everybody.money,
        groups=everybody.people.groups,
        audits=audits,
        prior_from_participants=bool(decided.origin.get("overlap")),
        spending_ceiling=campaign.ceiling,
        notices=notices,
        record_hash=record.hash,
        date=date.today().isoformat(),
        level=campaign.level,
    )
    return str(render_report(report))


def _notes(campaign: Campaign) -> list[str]:
    notes = [f"campaign: {campaign.name}", *asked_notes(campaign.quantity, campaign.wave)]
    if campaign.path.exists():
        notes.append(f"campaign file sha256: {hashlib.sha256(campaign.path.read_bytes()).hexdigest()}")
    if campaign.data is not None and campaign.data.kind == "simulated_values":
        notes.append(_SIMULATED)
    return [*notes, *campaign.notices]
