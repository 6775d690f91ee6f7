"""The one estimate: what is asked of whom, drawn once, and what is stamped of it.

A purchase draws it right after its decisions (`release`), ``hushbid release`` from a record of them
(`release_recorded`).
"""

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from hushbid.campaign.deciding import Decision, Step
from hushbid.campaign.notices import (
    SYNTHETIC_STAMP,
    as_stamp,
    asked_by,
    is_synthetic,
    late_notice,
    release_notes,
    wave_stamps,
)
from hushbid.campaign.people import DataSource, Delivered, People, delivered_in, rows_of
from hushbid.campaign.spec import CampaignSpec, DataTable, MarketTable, OutputTable
from hushbid.campaign.telling import BEFORE, UNSAID, estimate_facts, estimate_text, late_text, moved_text
from hushbid.campaign.terms import Campaign
from hushbid.common.arrays import id_texts, rows_text
from hushbid.common.documents import parsed
from hushbid.common.money import NO_CURRENCY
from hushbid.common.staging import Staging, refuse_existing
from hushbid.disclosure import Answer, release_once, release_synthetic
from hushbid.disclosure.ledger.once import named
from hushbid.disclosure.ledger.question import as_question
from hushbid.disclosure.ledger.store import ledger_folder, refuse_former
from hushbid.errors import AlreadyReleased, InputError, RecordError
from hushbid.mechanism import Outcome
from hushbid.mechanism.releasing import plan_of
from hushbid.mechanism.rounding import ROUNDING_ACCEPTED, takes_too_much
from hushbid.priors.pilot import PriorSource
from hushbid.record import Record, read
from hushbid.record.folder import present

_INFINITE = "infinite privacy loss accepted"
_FORMER_FOLDER = "claims"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where an estimate is kept, and where results of an earlier run may be."""

    ledger: Path | None
    """The release ledger; None for the user's."""

    folder: Path | None = None
    """The folder of the results; None if none are written."""

    record: Path | None = None
    """The record that the results would replace."""

    summary: Path | None = None
    """What takes the place of a record where an engine decided about very many people."""

    def refuse_former(self) -> None:
        """Refuse results next to which an earlier version kept its claims."""
        if self.folder is not None:
            refuse_former(self.folder / _FORMER_FOLDER)

    def refuse_other_estimate(self, asked: Campaign, people: People) -> None:
        """Refuse to replace a record of an estimate that the ledger, perhaps a new one, does not know."""
        try:
            there = None if self.record is None else present(self.record)
            found = None if there is None else read(there)
        except (OSError, RecordError):  # there is none, or none that can be read
            return
        if found is None or found.release is None or is_synthetic(found):
            return
        same = people.ids is not None and found.ids is not None and set(people.ids) == set(id_texts(found.ids))
        if same or np.array_equal(np.sort(people.bids), np.sort(found.outcome.bids)):
            self._refuse_same(there, asked, *asked_by(found, None, None))

    def refuse_other_summary(self, asked: Campaign, people: int) -> None:
        """The same where a summary takes the place of a record."""
        try:
            found = {} if self.summary is None else parsed(self.summary.read_bytes())
        except (OSError, RecordError):
            return
        release, decided = found.get("release"), found.get("decided")
        if not isinstance(release, dict) or not isinstance(decided, dict) or release.get("synthetic") is True:
            return
        if decided.get("people") == people:
            self._refuse_same(self.summary, asked, str(found.get("question")) or UNSAID, release.get("wave"))

    def _refuse_same(self, path: Path | None, asked: Campaign, question: str, wave: object) -> None:
        now = asked.spec.wave
        if (as_question(question), wave) == (as_question(asked.question), now):
            raise AlreadyReleased(
                f"{path} holds an estimate of these people (question {asked.question!r}, wave {now}) that the"
                f" release ledger {ledger_folder(self.ledger)} does not know. Drawing again would double the privacy"
                " loss. Use the ledger that it was drawn with (--ledger, or HUSHBID_LEDGER), or collect new data as"
                f" wave {now + 1}."
            )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Released:
    """The estimate, if there is one, and what is to be said about the data."""

    answer: Answer | None = None
    """The estimate and how it came about."""

    strangers: int = 0
    """How many people in the data did not bid."""

    missing: str = ""
    """Why there is no estimate although there are data."""

    notes: tuple[str, ...] = ()
    """How the data were read, where that was a choice: their encoding, decimal commas."""


def release(
    campaign: Campaign,
    people: People,
    outcome: Outcome,
    place: Place,
    *,
    delivered: Delivered | None = None,
    from_engine: bool = False,
    late_field: str | None,
) -> Released:
    """Draw the estimate, once, and keep it in the release ledger before it is shown.

    If data came late, ``late_field`` has to say what is paid for them, unless it is None.
    """
    assert campaign.data is not None
    # ids are hashed in a thread: that is Python's work, and reading data mostly is not
    with ThreadPoolExecutor(max_workers=1) as thread:
        names = None if people.ids is None or campaign.spec.synthetic else thread.submit(named, people.ids)
        found = delivered or delivered_in(campaign.data, people, outcome.market.survey)
        asked: dict[str, Any] = {
            "question": campaign.question,
            "wave": campaign.spec.wave,
            "ledger": place.ledger,
            "accept_infinite_loss": campaign.spec.market.accept_infinite_loss,
            "simulated": campaign.simulated,
        }
        plan = plan_of(outcome, from_engine=from_engine)
        with rows_of(people.source, people.lines):
            if campaign.spec.synthetic:
                answer = release_synthetic(plan, found.data, ids=people.ids, **asked)
            else:
                place.refuse_former()
                answer = release_once(
                    plan,
                    found.data,
                    ids=None if names is None else names.result(),
                    before_first=lambda: place.refuse_other_estimate(campaign, people),
                    **asked,
                )
    if late_field is not None:
        refuse_unsaid_late(answer.late, len(people), campaign.late, late_field)
    return Released(answer=answer, strangers=found.strangers, notes=found.notes)


def refuse_unsaid_late(late: Sequence[int], people: int, said: str | None, field: str) -> None:
    """Refuse data that came too late unless it is said what is paid for them."""
    if not late or said is not None:
        return
    which = np.zeros(people, dtype=np.bool_)
    which[list(late)] = True
    raise InputError(
        f"Data came after the estimate was drawn, from the people in {rows_text(which)} of the bids (counted from"
        f' 0). They cannot be used any more; {field} must say what is paid for them: "paid" or "unpaid".',
        field=field,
        row=late[0],
    )


def stamps_of(decision: Decision, asked: Campaign | None = None, answer: Answer | None = None) -> list[str]:
    """Return what is said, wherever a purchase is recorded, about safeguards that were overridden."""
    stamps = []
    if asked is not None and asked.spec.synthetic:
        stamps.append(SYNTHETIC_STAMP)
    elif asked is not None and answer is not None:
        stamps += wave_stamps(asked.spec.wave, answer.waves_before)
    if known := decision.origin.get("overlap"):
        stamps.append(f"prior fitted on participants: {known} of those who bid were in the pilot")
    if takes_too_much(decision.market.goal):
        stamps.append(ROUNDING_ACCEPTED)
    if answer is not None and math.isinf(decision.figures.largest_privacy_loss):
        stamps.append(_INFINITE)
    return stamps + list(() if decision.everybody is None else decision.everybody.outcome.flags)


# -- from a record -----------------------------------------------------------------------------------------------------


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
        facts, answer = estimate_facts(self.answer.release, self.campaign.spec.output.level), self.answer
        facts |= {"drawn_before": answer.before, "late": len(answer.late)}
        facts |= {"stamps": list(self.record.stamps), "record": self.path, "reading_notes": list(self.notes)}
        facts["synthetic"] = facts["public"]["synthetic"] = self.campaign.spec.synthetic
        return facts

    def text(self) -> str:
        """Return the same in sentences."""
        release, late = self.answer.release, self.answer.late
        lines = [*self.notes, estimate_text(release, self.campaign.spec.output.level, self.campaign.question)]
        lines += [*moved_text(release), *[BEFORE] * self.answer.before]
        lines += [f"{late_text(self.answer)}, and they are {self.campaign.late}."] * bool(late)
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
    stamps += [_INFINITE] * bool(np.isinf(record.outcome.privacy_loss).any())
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
