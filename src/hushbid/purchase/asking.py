"""What the commands say about an estimate that is drawn once: whose it is, which wave, and what was made up."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hushbid.arrays import rows_text
from hushbid.disclosure.once_question import LAST_WAVE, as_question
from hushbid.disclosure.once_store import account, refuse_old_claims
from hushbid.errors import InputError

if TYPE_CHECKING:
    from hushbid.disclosure import Answer
    from hushbid.purchase.campaign_file import Campaign
    from hushbid.record import Record

MADE_UP = "made up: nobody in this campaign was promised anything, and its estimate may be one of many draws"
"""Stamped into the record of a campaign that is exempt from drawing once."""

MADE_UP_NOTICE = (
    "This campaign is made up: nobody in it was promised anything. Its estimate is drawn anew at every run, which would"
    " tell too much about real people."
)
BEFORE = "This estimate was drawn by an earlier run; it is shown again, not drawn again."
QUESTION = "the mean"
"""What is asked if nobody says what."""

_OLD_FOLDER = "claims"


def store_beside(folder: Path) -> Path:
    """The account's store; refused if an earlier version kept its claims in a folder of the results."""
    refuse_old_claims(folder / _OLD_FOLDER)
    return account()


def wave_stamps(wave: int, before: int) -> list[str]:
    """What a record says of a question that was asked before; nothing if it was not."""
    if wave == 1 and before == 0:
        return []
    times = "once" if before == 1 else f"{before} times"
    known = f"{times} before, and what they lose adds up" if before else "never before by this account"
    return [f"wave {wave}: this question was answered from these people's data {known}"]


def asked_notes(question: str, wave: int) -> list[str]:
    """How a record says what is asked, for a release from it."""
    return [f"question: {question}", f"wave: {wave}"]


def asked_by(record: "Record", question: str | None, wave: int | None) -> tuple[str, int]:
    """What is asked, and in which wave: as the record says, or else as the options do."""
    stated, number = _note(record, "question: "), _note(record, "wave: ") or ""
    if stated is not None and question is not None and as_question(stated) != as_question(question):
        raise InputError(f"--question must be that of the record, {stated!r}, or be left out, got {question!r}.")
    if number.isdecimal() and len(number) > len(str(LAST_WAVE)):
        raise InputError(f"The record's wave must be a whole number from 1 to {LAST_WAVE}.")
    if number.isdecimal() and wave is not None and int(number) != wave:
        raise InputError(f"--wave must be that of the record, {number}, or be left out, got {wave}.")
    return stated or question or QUESTION, int(number) if number.isdecimal() else wave or 1


def _note(record: "Record", start: str) -> str | None:
    """The first note that begins so; notices of the campaign's own come after ours."""
    return next((note.removeprefix(start) for note in record.notes if note.startswith(start)), None)


def stamps_of(campaign: "Campaign", answer: "Answer | None") -> list[str]:
    """What record and summary say of an estimate that is made up, or not the first one."""
    if campaign.made_up:
        return [MADE_UP]
    return [] if answer is None else wave_stamps(campaign.wave, answer.waves_before)


def estimate_origin(campaign: "Campaign", answer: "Answer") -> dict[str, Any]:
    """Of which wave an estimate is, and whether it is made up."""
    return {"wave": campaign.wave, "waves_before": answer.waves_before, "made_up": campaign.made_up}


def refuse_unsaid_late(late: tuple[int, ...], people: int, said: str | None, where: str = "data.late") -> None:
    """Somebody has to say what is paid for data that came too late."""
    if not late or said is not None:
        return
    which = np.zeros(people, dtype=np.bool_)
    which[list(late)] = True
    raise InputError(
        f"Data came after the estimate was drawn, from the people in {rows_text(which)} of the reports (counted from"
        f' 0). They cannot be used any more; {where} must say what is paid for them: "paid" or "unpaid".'
    )
