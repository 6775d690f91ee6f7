"""The one estimate: what is asked of whom, drawn once, and what is said of it.

A purchase draws it right after its decisions (`answer_from`), ``hushbid release`` from a record of them
(`release_recorded`). What was made up or accepted by name is stamped, and what a record says of the question in its
notes is written and read here.
"""

import math
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from hushbid.campaign.deciding import Decided, Step
from hushbid.campaign.notices import as_stamp, late_notice, release_notes, wave_notices
from hushbid.campaign.people import Delivered, Kind, People, read_answers, read_data, rows_of
from hushbid.campaign.spec import BidsTable
from hushbid.campaign.telling import BEFORE, UNSAID, estimate_facts, estimate_text, late_text, moved_text
from hushbid.campaign.terms import Campaign, DataSource, data_source
from hushbid.common.arrays import FloatArray, id_texts, rows_text
from hushbid.common.documents import parsed
from hushbid.common.money import NO_CURRENCY
from hushbid.common.staging import Staging, refuse_existing
from hushbid.disclosure import Answer, release_once, release_synthetic
from hushbid.disclosure.ledger.once import Named
from hushbid.disclosure.ledger.question import LAST_WAVE, as_question
from hushbid.disclosure.ledger.store import ledger_folder, refuse_former
from hushbid.disclosure.promises import ReleasePlan
from hushbid.errors import AlreadyReleased, InputError, RecordError
from hushbid.mechanism import Market
from hushbid.mechanism.releasing import plan_of
from hushbid.mechanism.rounding import ROUNDING_ACCEPTED, takes_too_much
from hushbid.priors.pilot import PriorSource
from hushbid.record import Record, read
from hushbid.record.folder import present

_INFINITE = "infinite privacy loss accepted"
_SYNTHETIC = "made up: nobody in this campaign was promised anything, and its estimate may be one of many draws"
_QUESTION, _WAVE = "question: ", "wave: "

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
        """Refuse results beside which an earlier version kept its claims."""
        if self.folder is not None:
            refuse_former(self.folder / _FORMER_FOLDER)

    def refuse_other_estimate(self, asked: Campaign, bids: FloatArray, ids: Sequence[str] | None) -> None:
        """Refuse to replace a record of an estimate that the ledger, perhaps a new one, does not know."""
        try:
            there = None if self.record is None else present(self.record)
            found = None if there is None else read(there)
        except (OSError, RecordError):  # there is none, or none that can be read
            return
        if found is None or found.release is None or is_synthetic(found):
            return
        question, wave = asked_by(found, None, None)
        same = ids is not None and found.ids is not None and set(ids) == set(id_texts(found.ids))
        same = same or np.array_equal(np.sort(bids), np.sort(found.outcome.bids))
        if same and (as_question(question), wave) == (as_question(asked.question), asked.wave):
            raise self._unknown(there, asked)

    def refuse_other_summary(self, asked: Campaign, people: int) -> None:
        """The same where a summary takes the place of a record."""
        try:
            found = {} if self.summary is None else parsed(self.summary.read_bytes())
        except (OSError, RecordError):
            return
        release, decided = found.get("release"), found.get("decided")
        if not isinstance(release, dict) or not isinstance(decided, dict) or release.get("synthetic") is True:
            return
        stated = (as_question(str(found.get("question")) or UNSAID), release.get("wave"), decided.get("people"))
        if stated == (as_question(asked.question), asked.wave, people):
            raise self._unknown(self.summary, asked)

    def _unknown(self, path: Path | None, asked: Campaign) -> AlreadyReleased:
        return AlreadyReleased(
            f"{path} holds an estimate of these people (question {asked.question!r}, wave {asked.wave}) that the"
            f" release ledger {ledger_folder(self.ledger)} does not know. Drawing again would double the privacy loss."
            " Use the ledger that it was drawn with (--ledger, or HUSHBID_LEDGER), or collect new data as wave"
            f" {asked.wave + 1}."
        )


def answer_from(
    plan: ReleasePlan,
    data: object,
    asked: Campaign,
    people: People,
    place: Place,
    *,
    names: Future[Named] | None = None,
    late_field: str = "late",
) -> Answer:
    """Return the estimate, drawn once; if data came late, ``late_field`` has to say what is paid for them.

    ``names`` are the people's ids, if they are being hashed already.
    """
    answer = drawn_from(plan, data, asked, people, place, names)
    refuse_unsaid_late(answer.late, len(people), asked.late, late_field)
    return answer


def drawn_from(
    plan: ReleasePlan,
    data: object,
    asked: Campaign,
    people: People,
    place: Place,
    names: Future[Named] | None = None,
) -> Answer:
    """Draw the estimate, once, and keep it in the release ledger before it is shown."""
    accepted, simulated = asked.accept_infinite_loss, asked.simulated
    with rows_of(people.source, people.lines):
        if asked.synthetic:
            return release_synthetic(
                plan,
                data,
                question=asked.question,
                wave=asked.wave,
                ids=people.ids,
                ledger=place.ledger,
                accept_infinite_loss=accepted,
                simulated=simulated,
            )
        place.refuse_former()
        return release_once(
            plan,
            data,
            question=asked.question,
            wave=asked.wave,
            ids=people.ids if names is None else names.result(),
            ledger=place.ledger,
            accept_infinite_loss=accepted,
            simulated=simulated,
            before_first=lambda: place.refuse_other_estimate(asked, people.bids, people.ids),
        )


def refuse_unsaid_late(late: Sequence[int], people: int, said: str | None, field: str) -> None:
    """Somebody has to say what is paid for data that came too late."""
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


# -- what is stamped and noted -----------------------------------------------------------------------------------------


def stamps_of(decided: Decided, asked: Campaign | None = None, answer: Answer | None = None) -> list[str]:
    """What is to be said, wherever a purchase is recorded or told of, about safeguards that were overridden."""
    stamps = []
    if asked is not None and asked.synthetic:
        stamps.append(_SYNTHETIC)
    elif asked is not None and answer is not None:
        stamps += wave_stamps(asked.wave, answer.waves_before)
    known = decided.origin.get("overlap")
    if known:
        stamps.append(f"prior fitted on participants: {known} of those who bid were in the pilot")
    if takes_too_much(decided.market.goal):
        stamps.append(ROUNDING_ACCEPTED)
    if answer is not None and math.isinf(decided.figures.largest_privacy_loss):
        stamps.append(_INFINITE)
    if decided.everybody is not None:
        stamps += decided.everybody.outcome.flags
    return stamps


def wave_stamps(wave: int, before: int) -> list[str]:
    """What a record says of a question that was asked before; nothing if it was not."""
    return [as_stamp(notice) for notice in wave_notices(wave, before)]


def is_synthetic(record: Record) -> bool:
    """Whether a record says that nobody in it was promised anything."""
    return _SYNTHETIC in record.stamps


def asked_notes(question: str, wave: int) -> list[str]:
    """How a record says what is asked, for a release from it; `asked_by` reads it."""
    return [f"{_QUESTION}{question}", f"{_WAVE}{wave}"]


def asked_by(record: Record, question: str | None, wave: int | None) -> tuple[str, int]:
    """What is asked, and in which wave: as the record says, or else as given."""
    stated, number = _note(record, _QUESTION), _note(record, _WAVE) or ""
    if stated is not None and question is not None and as_question(stated) != as_question(question):
        told = f"question must be that of the record, {stated!r}, or be left out, got {question!r}."
        raise InputError(told, field="question")
    if number.isdecimal() and len(number) > len(str(LAST_WAVE)):
        raise InputError(f"The record's wave must be a whole number from 1 to {LAST_WAVE}.")
    if number.isdecimal() and wave is not None and int(number) != wave:
        raise InputError(f"wave must be that of the record, {number}, or be left out, got {wave}.", field="wave")
    return stated or question or UNSAID, int(number) if number.isdecimal() else wave or 1


def _note(record: Record, start: str) -> str | None:
    """The first note that begins so; notices of the campaign's own come after ours."""
    return next((note.removeprefix(start) for note in record.notes if note.startswith(start)), None)


# -- from a record -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Released:
    """What a release from a record came to."""

    answer: Answer
    """The estimate and how it came about."""

    asked: Campaign
    """What was asked."""

    record: Record
    """The record with the estimate in it."""

    path: Path | None
    """Where it was written; None if the record that was read held the estimate already."""

    level: float
    """How sure the interval is to be."""

    data_notes: tuple[str, ...] = ()
    """Sentences about how the data were read, where that was a choice: their encoding, decimal commas."""

    def facts(self) -> dict[str, Any]:
        """For programs; nothing in it belongs to one person."""
        facts, answer = estimate_facts(self.answer.release, self.level), self.answer
        facts |= {"drawn_before": answer.before, "late": len(answer.late)}
        facts |= {"stamps": list(self.record.stamps), "record": self.path, "reading_notes": list(self.data_notes)}
        facts["synthetic"] = facts["public"]["synthetic"] = self.asked.synthetic
        return facts

    def text(self) -> str:
        """For people."""
        lines = [*self.data_notes, estimate_text(self.answer.release, self.level, self.asked.question)]
        lines += moved_text(self.answer.release)
        if self.answer.before:
            lines.append(BEFORE)
        if self.answer.late:
            lines.append(f"{late_text(self.answer)}, and they are {self.asked.late}.")
        lines += [f"STAMPED in the record: {stamp}." for stamp in self.record.stamps]
        if self.path is not None:
            lines.append(f"Written: {self.path}.")
        return "\n".join(lines)


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
    step: Step = lambda told: None,
) -> Released:
    """Draw the estimate that a record paid for, once, and write a record that holds it to ``out``."""
    step("reading the record")
    record = read(path)
    question, wave = asked_by(record, question, wave)
    asked = _campaign_of(record, data, id_column, value_column, simulated_values=simulated_values, late=late)
    asked = replace(asked, question=question, wave=wave, accept_infinite_loss=accept_infinite_loss)
    if not force:
        refuse_existing([record.place(out)])
    if record.release is not None:
        answer = Answer(release=record.release, before=True, late=(), waves_before=0)
        return Released(answer=answer, asked=asked, record=record, path=None, level=level)
    ids = None if record.ids is None else id_texts(record.ids)
    people = People(source=str(path), ids=ids, id_column=ids or [], bids=record.outcome.bids, groups=None)
    step("reading the data")
    assert asked.data is not None
    found = delivered_in(asked.data, people, record.outcome.market)
    step("drawing")
    place = Place(ledger=ledger, folder=path.parent, record=out)
    answer = answer_from(plan_of(record.outcome), found.data, asked, people, place)
    step("writing")
    notes = release_notes(asked.wave, answer.waves_before, len(answer.late), asked.late, synthetic=asked.synthetic)
    whole = record.with_release(answer.release, stamps=_stamps_of_release(record, asked, answer), notes=notes)
    with Staging(force=force) as files:
        path = whole.stage(files, out)
    return Released(answer=answer, asked=asked, record=whole, path=path, level=level, data_notes=found.notes)


def _campaign_of(
    record: Record, data: Any, id_column: str, value_column: str | None, *, simulated_values: bool, late: Any
) -> Campaign:
    """Return what is left of a record's campaign: what is asked, and where the data are."""
    market = record.outcome.market
    if simulated_values and not market.strategy.sends_messages:
        raise InputError(
            "simulated_values is for the local setting; in the central one the data are values.",
            field="simulated_values",
        )
    kind: Kind | None = "simulated_values" if simulated_values else None
    if market.survey is not None and value_column is not None and not (market.strategy.sends_messages and kind is None):
        told = "value_column must be left out for a survey: each question's column is called as the question is."
        raise InputError(told, field="value_column")
    return Campaign(
        synthetic=is_synthetic(record),
        prior=PriorSource(priors={}),
        market={},
        currency=NO_CURRENCY,
        bids=BidsTable(),
        data=data_source(market, data, id=id_column, value=value_column, kind=kind, late=late),
    )


def delivered_in(source: DataSource, people: People, market: Market) -> Delivered:
    """Return what the file of data holds: answers to a survey, or one datum or message of each person."""
    if market.survey is not None and source.answers:
        return read_answers(source.file, people, id_column=source.id, columns=source.names, questions=market.survey)
    return read_data(source.file, people, id_column=source.id, value=source.names[0], kind=source.kind)


def _stamps_of_release(record: Record, asked: Campaign, answer: Answer) -> list[str]:
    """What is stamped beside what the record of the decisions says already."""
    stamps = [] if asked.synthetic else wave_stamps(asked.wave, answer.waves_before)
    if np.isinf(record.outcome.privacy_loss).any():
        stamps.append(_INFINITE)
    if answer.late and asked.late is not None:
        stamps.append(as_stamp(late_notice(len(answer.late), asked.late)))
    return stamps
