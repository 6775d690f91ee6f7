"""A campaign from its file to its results: what ``run`` does, and ``demo`` on people it made up.

Everything is computed before anything is written, and then written together. The one exception is the estimate: it is
drawn once and kept in the account's store, under what is asked of whom, before anybody sees it, so that whatever
happens afterwards, and whatever options and folders are given, asking again gives the same one.
"""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hushbid import wording
from hushbid.audit.suite import audits_of
from hushbid.disclosure import Answer, Release, release_made_up, release_once
from hushbid.documents import plain
from hushbid.durable import Staging, refuse_existing
from hushbid.errors import MissingExtra
from hushbid.mechanism.market import plan_of
from hushbid.purchase.asking import (
    BEFORE,
    MADE_UP_NOTICE,
    asked_notes,
    estimate_origin,
    refuse_unsaid_late,
    stamps_of,
    store_beside,
)
from hushbid.purchase.campaign_file import Campaign
from hushbid.purchase.deciding import Purchase, decide, record_of, record_writer, refuse_above_ceiling
from hushbid.purchase.people import AT_ONCE, Reading, read_data, read_people, rows_of
from hushbid.record import Record
from hushbid.report import AuditLine, build_report, render_report
from hushbid.report.sections.audits import lines_of
from hushbid.tables import Column, table_writer
from hushbid.wording import at_most, estimate_figures, interval

if TYPE_CHECKING:
    from hushbid.engine import TableRelease

STEPS = 6
_PUBLIC_LEVEL = 0.95
_SIMULATED = "The data are simulated: noise was added by the platform, not by people's own devices."


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Results:
    """What a campaign came to."""

    campaign: Campaign
    purchase: Purchase
    answer: Answer | None
    """The estimate and how it came about; None if there is none."""

    record: Record
    strangers: int
    """People in the data who did not report."""

    missing: str
    """Why there is no estimate although there are data; empty if there is one."""

    audits: tuple[AuditLine, ...]
    files: tuple[Path, ...]

    @property
    def release(self) -> Release | None:
        """The one estimate."""
        return None if self.answer is None else self.answer.release

    @property
    def failed(self) -> int:
        """How many audits found a fault."""
        return sum(audit.verdict == "failed" for audit in self.audits)

    def facts(self) -> dict[str, Any]:
        """For programs; nothing in it belongs to one person."""
        facts: dict[str, Any] = {"campaign": self.campaign.name, **self.purchase.facts()}
        if self.answer is not None:
            facts["estimate"] = campaign_estimate(self.campaign, self.answer)
            facts["drawn_before"] = self.answer.before
            facts["late"] = len(self.answer.late)
        facts["made_up"] = self.campaign.made_up
        facts["stamps"] = list(self.record.stamps)
        facts["audits_failed"] = self.failed
        facts["record_hash"] = self.record.hash
        facts["files"] = [str(path) for path in self.files]
        return facts

    def text(self) -> str:
        """For people."""
        lines = [self.purchase.text()]
        if self.answer is not None:
            campaign, answer = self.campaign, self.answer
            lines.append(estimate_text(answer.release, campaign.level, campaign.quantity, campaign.unit))
            if answer.before:
                lines.append(BEFORE)
            if answer.late and campaign.data is not None:
                lines.append(
                    f"{wording.people(len(answer.late))} delivered after it was drawn: their data were not used, they"
                    f" are {campaign.data.late}, and the table of payments names them."
                )
        if self.missing:
            lines.append(f"No estimate: {self.missing}")
        if self.strangers:
            lines.append(f"{wording.people(self.strangers)} in the data did not report; their data were not used.")
        if self.failed:
            lines.append(f"WARNING: {self.failed} audit{'s' * (self.failed > 1)} failed; see the report.")
        lines += [f"STAMPED in the record: {stamp}." for stamp in self.record.stamps]
        names = ", ".join(path.name for path in self.files)
        lines.append(f"Written to {self.campaign.folder}: {names}.")
        if self.campaign.data is None:
            lines.append(_next_step(self.campaign))
        return "\n".join(lines)


def conduct(
    campaign: Campaign,
    *,
    force: bool,
    audit: bool,
    step: Callable[[str], object],
    estimate_needed: bool = True,
    reading: Reading = AT_ONCE,
) -> Results:
    """Run a campaign."""
    final = campaign.folder / ("record.json" if campaign.data else "outcome.json")
    if not force:
        refuse_existing([final])
    step("reading the reports")
    source = campaign.reports
    people = read_people(
        source.file,
        id_column=source.id,
        sensitivity=source.sensitivity,
        group=source.group,
        reading=reading,
        priors=campaign.prior.priors,
    )
    origin = campaign.prior.origin(people.ids, accepted=campaign.accept_pilot_overlap)
    step("deciding")
    with rows_of(people.source):
        market = campaign.market_for(people.groups)
    purchase = decide(people, market, campaign.currency)
    refuse_above_ceiling(purchase, campaign.ceiling)
    step("releasing")
    answer, strangers, missing = None, 0, ""
    if campaign.data is not None and purchase.outcome.active:
        try:
            answer, strangers = _release(campaign, purchase)
        except MissingExtra as problem:
            if estimate_needed:
                raise
            missing = str(problem)
    step("recording")
    release = None if answer is None else answer.release
    record = record_of(purchase, origin, release, _notes(campaign), stamps_of(campaign, answer))
    step("auditing")
    audits: tuple[AuditLine, ...] = ()
    if audit and purchase.outcome.active and campaign.data is not None:
        audits = lines_of(audits_of(purchase.outcome), purchase.outcome)
    step("writing")
    with Staging(force=force) as files:
        paths = _write(files, campaign, purchase, answer, record, audits)
    return Results(
        campaign=campaign,
        purchase=purchase,
        answer=answer,
        record=record,
        strangers=strangers,
        missing=missing,
        audits=audits,
        files=tuple(paths),
    )


# -- the one estimate --------------------------------------------------------------------------------------------------


def _release(campaign: Campaign, purchase: Purchase) -> tuple[Answer, int]:
    source, people = campaign.data, purchase.people
    assert source is not None
    found = read_data(source.file, people, id_column=source.id, value=source.value, kind=source.kind)
    plan, simulated = plan_of(purchase.outcome), source.kind == "simulated_values"
    accepted = campaign.accept_infinite_loss
    with rows_of(people.source):
        if campaign.made_up:
            return release_made_up(
                plan, found.data, accept_infinite_loss=accepted, simulated=simulated
            ), found.strangers
        answer = release_once(
            plan,
            found.data,
            question=campaign.quantity,
            wave=campaign.wave,
            ids=people.ids,
            claims=store_beside(campaign.folder),
            accept_infinite_loss=accepted,
            simulated=simulated,
        )
    refuse_unsaid_late(answer.late, len(people), source.late)
    return answer, found.strangers


def campaign_estimate(campaign: Campaign, answer: Answer) -> dict[str, Any]:
    """The estimate of a campaign: of which wave it is, and whether it is made up."""
    facts = estimate_facts(answer.release, campaign.level)
    return {**facts, **estimate_origin(campaign, answer), "public": {**facts["public"], "made_up": campaign.made_up}}


def estimate_facts(release: Release, level: float) -> dict[str, Any]:
    """The estimate with its interval, and the part of it that may be shown to anybody."""
    return {
        **estimate_and_error(release, level),
        "dropped_out": len(release.dropped_out),
        "public": public_part(release),
    }


def estimate_and_error(release: "Release | TableRelease", level: float) -> dict[str, Any]:
    """The estimate, its interval and its error, with no digits far below the error; the record keeps all."""
    ends = release.interval(level)
    estimate, low, high = estimate_figures(release.estimate, (ends[1] - ends[0]) / 2.0)
    interval_ = {"level": level, "low": low, "high": high}
    return {"estimate": estimate, "interval": interval_, "standard_error": at_most(release.standard_error, 3)}


def public_part(release: "Release | TableRelease") -> dict[str, Any]:
    """What may be shown to anybody; the estimate has the digits that its planned error deserves."""
    planned = release.planned_error.half_width(_PUBLIC_LEVEL)
    return {**release.public(), "estimate": estimate_figures(release.estimate, planned)[0]}


def estimate_text(release: Release, level: float, quantity: str = "the mean", unit: str = "") -> str:
    """The estimate in a sentence."""
    return interval_text(release.estimate, release.interval(level), level, quantity, unit, len(release.dropped_out))


def interval_text(
    estimate: float, ends: tuple[float, float], level: float, quantity: str, unit: str, dropped_out: int
) -> str:
    """An estimate and its interval in a sentence, and who is missing in another."""
    value, lower, upper = interval(estimate, (ends[1] - ends[0]) / 2.0)
    sentence = (
        f"Estimate of {quantity}: {value}{' ' * bool(unit)}{unit}, {100 * level:g} % interval {lower} to {upper}."
    )
    gone = f" {wording.people(dropped_out)} did not deliver; the interval allows for it."
    return sentence + gone * (dropped_out > 0)


# -- what is written ---------------------------------------------------------------------------------------------------


def _write(
    files: Staging,
    campaign: Campaign,
    purchase: Purchase,
    answer: Answer | None,
    record: Record,
    audits: tuple[AuditLine, ...],
) -> list[Path]:
    """Stage every file; the record last, so that where it is, all are."""
    folder, end = campaign.folder, campaign.decisions_format
    paths = [folder / f"decisions.{end}"]
    made_up: dict[str, Column] = {"made_up": ["yes"] * len(purchase.people)} if campaign.made_up else {}
    files.add(paths[-1], table_writer(paths[-1], {**purchase.columns(), **made_up}))
    if answer is not None:
        paths.append(folder / f"payments.{end}")
        late = campaign.data.late if campaign.data is not None else None
        due = payment_columns(purchase, answer, late_is_paid=late == "paid")
        files.add(paths[-1], table_writer(paths[-1], {**due, **made_up}))
        paths.append(folder / "estimate.json")
        content = json.dumps(plain(campaign_estimate(campaign, answer)), indent=2) + "\n"
        files.add(paths[-1], lambda file: file.write(content.encode()))
    if campaign.data is not None:
        paths.append(folder / "report.html")
        page = _report(campaign, purchase, answer, record, audits)
        files.add(paths[-1], lambda file: file.write(page.encode()))
    paths.append(folder / ("record.json" if campaign.data else "outcome.json"))
    files.add(paths[-1], record_writer(record))
    return paths


def payment_columns(purchase: Purchase, answer: Answer, *, late_is_paid: bool) -> dict[str, Column]:
    """What is to be paid, now that data were delivered or not: nothing to those who did not deliver.

    If people value the estimate and some dropped out, its error has grown, and with it what they are owed. Whoever
    delivered late is paid like the others, or like those who did not deliver.
    """
    outcome, money, release = purchase.outcome, purchase.money, answer.release
    asked = outcome.privacy_loss > 0.0
    gone, late = (np.zeros(len(purchase.people), dtype=bool) for _ in range(2))
    gone[list(release.dropped_out)] = True
    late[list(answer.late)] = True
    due = money.payments.copy()
    if gone.any():
        weight = np.broadcast_to(np.asarray(outcome.market.user_weight, dtype=float), gone.shape)
        due = purchase.currency.minor_units(outcome.payments + weight * (release.error.mse - outcome.mse))
        due[gone & ~late if late_is_paid else gone] = 0
    return {
        "id": purchase.people.id_column,
        "payment_minor": due,
        "currency": [purchase.currency.code] * len(purchase.people),
        "delivered": np.where(late, "late", np.where(gone, "no", np.where(asked, "yes", "not asked"))).tolist(),
    }


def _report(
    campaign: Campaign, purchase: Purchase, answer: Answer | None, record: Record, audits: tuple[AuditLine, ...]
) -> str:
    notices = [MADE_UP_NOTICE, *campaign.notices] if campaign.made_up else list(campaign.notices)
    if not campaign.made_up:
        notices += [f"{stamp[0].upper()}{stamp[1:]}." for stamp in stamps_of(campaign, answer)]
    if campaign.data is not None and campaign.data.kind == "simulated_values":
        notices.append(_SIMULATED)
    report = build_report(
        purchase.outcome,
        None if answer is None else answer.release,
        campaign_name=campaign.name,
        quantity=campaign.quantity,
        unit=campaign.unit,
        currency=campaign.currency,
        groups=purchase.people.groups,
        audits=audits,
        prior_from_participants=any(stamp.startswith("prior fitted") for stamp in record.stamps),
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


def _next_step(campaign: Campaign) -> str:
    if campaign.market["setting"] == "local":
        low, high = campaign.market["bounds"]
        return (
            "Next: tell each person her privacy loss. On her own machine she runs hushbid privatize --campaign"
            f" {json.dumps(campaign.name)} --privacy-loss HERS --at-most AGREED --bounds {low:g},{high:g}. Then add"
            " [data] with their messages to the campaign file and run it again."
        )
    return "Next: collect the data, add [data] to the campaign file and run it again."
