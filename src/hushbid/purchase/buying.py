"""A campaign from its file to its results: read, buy, release, record, report, whoever reads the people.

Everything is computed before anything takes its name, and then appears together. The one exception is the estimate: it
is drawn once and kept in the account's store, under what is asked of whom, before anybody sees it, so that whatever
happens afterwards, and whatever options and folders are given, asking again gives the same one.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from hushbid.audit.suite import audits_of
from hushbid.disclosure import Answer
from hushbid.documents import plain
from hushbid.durable import Staging, Write, refuse_clashes, refuse_existing
from hushbid.engine import Priced
from hushbid.engine import releasing as on_sums
from hushbid.engine.payouts import checked, due
from hushbid.errors import InputError, MissingExtra
from hushbid.mechanism import Market
from hushbid.mechanism.market import plan_of
from hushbid.money import amounts_due
from hushbid.purchase.campaign_file import Campaign, DataSource, read_campaign
from hushbid.purchase.deciding import LARGEST_RECORD, Decided, Everybody, Step, Wanted, decide, record_of, record_writer
from hushbid.purchase.on_engine import PASSES, price_on_engine, taken_here, write_decisions
from hushbid.purchase.people import AT_ONCE, Delivered, People, Reading, read_answers, read_data
from hushbid.purchase.releasing import (
    MADE_UP_NOTICE,
    Asked,
    answer_from,
    asked_notes,
    stamps_of,
    store_beside,
    wave_stamps,
)
from hushbid.purchase.results import Purchase, campaign_estimate, summary
from hushbid.record import Record
from hushbid.report import AuditLine, build_report, render_report
from hushbid.report.sections.audits import lines_of
from hushbid.tables import Column, table_writer

_SIMULATED = "The data are simulated: noise was added by the platform, not by people's own devices."


def steps_of(reading: Reading) -> int:
    """How many steps `buy` tells of, at most."""
    return 4 + (2 if reading.engine == "memory" else PASSES)


def buy(
    campaign: Campaign | str | Path,
    *,
    reports: Any = None,
    data: Any = None,
    reading: Reading = AT_ONCE,
    audit: bool = True,
    force: bool = False,
    estimate_needed: bool = True,
    step: Step = lambda told: None,
) -> Purchase:
    """Run a campaign, and write what it comes to into its folder.

    Parameters
    ----------
    campaign
        A campaign, or its file.
    reports, data
        Stand in for the files that a campaign file names: arrays by column name, or a frame, which an engine reads and
        which holds the reports and the data.
    reading
        Who reads the people, and what becomes of rows that cannot be priced.
    audit
        Whether our own claims are attacked for the report.
    force
        Files may be written again; the estimate is not drawn again.
    estimate_needed
        If not, a missing package that draws noise leaves the estimate out.
    step
        Told what is done next.
    """
    # read what is wanted, and refuse at once what cannot be done or would be lost
    wanted = campaign
    if not isinstance(wanted, Campaign):
        wanted = read_campaign(Path(wanted), reports=reports, data=data)
    if not isinstance(wanted.reports.file, str | Path | Mapping) and reading.engine == "memory":
        reading = replace(reading, engine="auto")  # a frame says itself which engine reads it
    refuse_clashes(wanted.outputs, wanted.inputs)
    if reading.engine != "memory":
        _refuse_other_table(wanted)
    names = _Names.of(wanted, reading)
    if not force:
        refuse_existing([names.last])
    # buy; from here on files wait under temporary names and appear together
    with Staging(force=force) as files:
        bought = _read_and_decide(wanted, reading, files, names, step)
        decided, everybody = bought.decided, bought.decided.everybody
        step("releasing")
        answer, strangers, missing = None, 0, ""
        if wanted.data is not None and decided.figures.active:
            try:
                answer, strangers = _answer(wanted, bought)
            except MissingExtra as problem:
                if estimate_needed:
                    raise
                missing = str(problem)
        # everywhere the same is said of safeguards that were overridden
        stamps = stamps_of(decided, _asked(wanted), answer)
        step("recording")
        record = None
        if everybody is not None:
            release = None if answer is None else answer.release
            record = record_of(everybody, decided.origin, release, stamps=stamps, notes=_notes(wanted))
        step("auditing")
        audits: tuple[AuditLine, ...] = ()
        if audit and everybody is not None and decided.figures.active and wanted.data is not None:
            audits = lines_of(audits_of(everybody.outcome), everybody.outcome)
        step("writing")
        paths = _write(files, names, wanted, bought, answer, record, stamps, audits)
    return Purchase(
        campaign=wanted,
        decided=decided,
        answer=answer,
        record=record,
        stamps=tuple(stamps),
        strangers=strangers,
        missing=missing,
        audits=audits,
        files=tuple(paths),
    )


# -- read and decide ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Bought:
    """What was decided, and where the data are."""

    decided: Decided
    delivered: Delivered | None
    """Everybody's data, if they were read with the reports."""

    priced: Priced | None
    """The engine's table."""


def _read_and_decide(campaign: Campaign, reading: Reading, files: Staging, names: "_Names", step: Step) -> _Bought:
    """On an engine everybody is taken here, if so many fit; else it writes its decisions itself."""
    source = campaign.reports
    wanted = Wanted(
        reports=source.file,
        id=source.id,
        sensitivity=source.sensitivity,
        group=source.group,
        stratum=None if campaign.strata is None else campaign.strata.column,
        limit=source.limit,
        prior=campaign.prior,
        market=campaign.market_for,
        currency=campaign.currency,
        ceiling=campaign.ceiling,
        accept_pilot_overlap=campaign.accept_pilot_overlap,
    )
    if names.summary is None:
        return _Bought(decided=decide(wanted, reading, step), delivered=None, priced=None)

    found = price_on_engine(wanted, reading, step)
    priced = found.priced
    if priced.summary.people > LARGEST_RECORD:
        paid = write_decisions(priced, files, names.decisions, wanted, step, made_up=campaign.made_up)
        return _Bought(decided=found.decided(paid), delivered=None, priced=priced)
    step("taking everybody to one place")
    here = taken_here(priced, wanted, None if campaign.data is None else campaign.data.names)
    return _Bought(decided=found.decided(here.paid, here.everybody), delivered=here.delivered, priced=priced)


def _refuse_other_table(campaign: Campaign) -> None:
    """An engine does not join: the data must stand beside the reports."""
    data = campaign.data
    if data is not None and not _same_table(data.file, campaign.reports.file):
        columns = f"a column {data.names[0]!r}" if data.columns is None else "a column for each question"
        raise InputError(
            f"{campaign.path}: on an engine data.file must be the table of reports.file, with"
            f" {columns} of data; join the two first, or use engine='memory'.",
            field="data.file",
        )
    if data is not None and data.kind == "simulated_values":
        raise InputError(f"{campaign.path}: data.kind 'simulated_values' needs engine='memory'.", field="data.kind")


def _same_table(one: Any, other: Any) -> bool:
    if isinstance(one, str | Path) and isinstance(other, str | Path):
        return Path(one).resolve() == Path(other).resolve()
    return one is other


# -- the one estimate --------------------------------------------------------------------------------------------------


def _answer(campaign: Campaign, bought: _Bought) -> tuple[Answer, int]:
    """The estimate, and how many people in the data did not report."""
    source, everybody = campaign.data, bought.decided.everybody
    assert source is not None
    if everybody is None:
        assert bought.priced is not None
        return _answer_from_sums(campaign, bought.priced, source.names), 0
    people = everybody.people
    found = bought.delivered
    if found is None:
        found = _delivered(source, people, everybody.outcome.market)
    plan = plan_of(everybody.outcome, from_engine=everybody.from_engine)
    answer = answer_from(plan, found.data, _asked(campaign), people, campaign.folder, late_field="data.late")
    return answer, found.strangers


def _delivered(source: DataSource, people: People, market: Market) -> Delivered:
    """What the file of data holds: answers to a survey, or one datum or message of each person."""
    if market.survey is not None and source.columns is not None:
        return read_answers(source.file, people, id_column=source.id, columns=source.columns, questions=market.survey)
    return read_data(source.file, people, id_column=source.id, value=source.value, kind=source.kind)


def _asked(campaign: Campaign) -> Asked:
    return Asked(
        question=campaign.quantity,
        wave=campaign.wave,
        made_up=campaign.made_up,
        simulated=campaign.data is not None and campaign.data.kind == "simulated_values",
        accept_infinite_loss=campaign.accept_infinite_loss,
        late=None if campaign.data is None else campaign.data.late,
    )


def _answer_from_sums(campaign: Campaign, priced: Priced, columns: tuple[str, ...]) -> Answer:
    if campaign.made_up:
        return on_sums.release_made_up(priced, columns)
    claims = store_beside(campaign.folder)
    return on_sums.answer(priced, columns, claims=claims, question=campaign.quantity, wave=campaign.wave)


# -- what is written ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Names:
    """What the files are called."""

    decisions: Path
    payments: Path
    estimate: Path
    report: Path
    record: Path
    summary: Path | None
    """Written where an engine decided."""

    @classmethod
    def of(cls, campaign: Campaign, reading: Reading) -> "_Names":
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
    names: _Names,
    campaign: Campaign,
    bought: _Bought,
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
        files.add(names.estimate, _json_writer(campaign_estimate(campaign, answer)))
    if everybody is not None and record is not None:
        if campaign.data is not None:
            paths.append(names.report)
            page = _report(campaign, bought.decided, everybody, answer, record, audits)
            files.add(names.report, lambda file: file.write(page.encode()))
        paths.append(names.record)
        files.add(names.record, record_writer(record))
    if names.summary is not None:
        paths.append(names.summary)
        files.add(names.summary, _json_writer(summary(campaign, bought.decided, answer, stamps)))
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


def _json_writer(values: Mapping[str, Any]) -> Write:
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
