"""What a page says above everything, what a record notes and stamps of it, and how these are read again.

A note of ours is a name, a colon and its values, ``waves before: 3``; each stands there at most once, before the
notices that the campaign words itself. So a page can be written from a record in any language.
"""

import re
from typing import Literal

from hushbid.disclosure.ledger.question import LAST_WAVE, as_question
from hushbid.errors import InputError
from hushbid.languages import Sentence, noted, noted_plural
from hushbid.record import Record

SYNTHETIC = Sentence(
    noted(
        "This campaign is synthetic: nobody in it was promised anything. Its estimate is drawn again at every run,"
        " which would tell too much about real people."
    )
)
SIMULATED = Sentence(noted("The data are simulated: noise was added by the platform, not by people's own devices."))

SYNTHETIC_STAMP = "synthetic: nobody in this campaign was promised anything, and its estimate may be one of many draws"
_NOTES = {
    "prior": r"\{.*",
    "campaign": ".*",
    "question": ".*",
    "campaign file sha256": "[0-9a-f]{64}",
    "wave": r"\d{1,999}",
    "waves before": r"\d{1,9}",
    "late data": r"(\d{1,9}) (paid|unpaid)",
    "stratum": r"one of (\d{1,9}) of (.*)",
}
"""The notes that are not notices of the campaign's own, by name."""


def noted_in(record: Record) -> tuple[dict[str, re.Match[str]], list[str]]:
    """Return what a record notes, by the names of notes, and the campaign's own notices."""
    ours: dict[str, re.Match[str]] = {}
    own = []
    for note in record.notes:
        name, _, value = note.partition(": ")
        found = re.fullmatch(_NOTES[name], value, flags=re.DOTALL) if name in _NOTES else None
        if found is None or name in ours:
            own.append(note)
        else:
            ours[name] = found
    return ours, own


def wave_notices(wave: int, before: int) -> list[Sentence]:
    """What is said of a question that was asked before; nothing if it was not."""
    if wave == 1 and before == 0:
        return []
    if before == 0:
        message = noted(
            "Wave {wave}: this question was answered from these people's data never before by this account."
        )
    elif before == 1:
        message = noted(
            "Wave {wave}: this question was answered from these people's data once before, and what they lose adds up."
        )
    else:
        message = noted(
            "Wave {wave}: this question was answered from these people's data {before} times before, and what they"
            " lose adds up."
        )
    return [Sentence(message, {"wave": wave, "before": before})]


def late_notice(people: int, paid: Literal["paid", "unpaid"]) -> Sentence:
    """What is said of data that came after the estimate was drawn."""
    if paid == "paid":
        return noted_plural(
            "Late: the data of {number:,} person came after the estimate was drawn and were not used; they are paid.",
            "Late: the data of {number:,} people came after the estimate was drawn and were not used; they are paid.",
            people,
            number=people,
        )
    return noted_plural(
        "Late: the data of {number:,} person came after the estimate was drawn and were not used; they are unpaid.",
        "Late: the data of {number:,} people came after the estimate was drawn and were not used; they are unpaid.",
        people,
        number=people,
    )


def stratum_notice(campaign: str, count: int) -> Sentence:
    """What a reader of one stratum has to know."""
    return noted_plural(
        "This is the only stratum of the campaign {campaign}, each of which has an estimate of its own.",
        "This is one of {count} strata of the campaign {campaign}, each of which has an estimate of its own.",
        count,
        campaign=campaign,
        count=count,
    )


def as_stamp(notice: Sentence) -> str:
    """A notice as a record stamps it: in English, without capital and full stop."""
    text = str(notice).removesuffix(".")
    return f"{text[0].lower()}{text[1:]}"


def stratum_note(campaign: str, count: int) -> str:
    """How a record notes that it is about one stratum."""
    return f"stratum: one of {count} of {campaign}"


def release_notes(
    wave: int, before: int, late: int, paid: Literal["paid", "unpaid"] | None, *, synthetic: bool
) -> list[str]:
    """How a record notes what is to be said of its release."""
    asked_again = not synthetic and wave_notices(wave, before)
    return [
        *([f"waves before: {before}"] if asked_again else []),
        *([f"late data: {late} {paid}"] if late else []),
    ]


def notices_of(record: Record, *, synthetic: bool) -> list[str | Sentence]:
    """The sentences above everything: ours that follow from the notes, and the campaign's own."""
    notes, own = noted_in(record)
    found: list[str | Sentence] = [SYNTHETIC] if synthetic else []
    if "stratum" in notes:
        count, campaign = notes["stratum"].groups()
        found.append(stratum_notice(campaign, int(count)))
    simulated = str(SIMULATED) in own
    if simulated:
        own.remove(str(SIMULATED))
    found += own
    if "wave" in notes and "waves before" in notes:
        found += wave_notices(int(notes["wave"][0]), int(notes["waves before"][0]))
    if "late data" in notes:
        number, paid = notes["late data"].groups()
        found.append(late_notice(int(number), "paid" if paid == "paid" else "unpaid"))
    return [*found, *([SIMULATED] if simulated else [])]


# -- what a record says of the question -------------------------------------------------------------------------------


def wave_stamps(wave: int, before: int) -> list[str]:
    """What a record says of a question that was asked before; nothing if it was not."""
    return [as_stamp(notice) for notice in wave_notices(wave, before)]


def is_synthetic(record: Record) -> bool:
    """Whether a record says that nobody in it was promised anything."""
    return SYNTHETIC_STAMP in record.stamps


def asked_notes(question: str, wave: int) -> list[str]:
    """How a record says what is asked, for a release from it; `asked_by` reads it."""
    return [f"question: {question}", f"wave: {wave}"]


def asked_by(record: Record, question: str | None, wave: int | None) -> tuple[str, int]:
    """What is asked, and in which wave: as the record says, or else as given."""
    notes, _ = noted_in(record)
    stated = notes["question"][0] if "question" in notes else None
    number = int(notes["wave"][0]) if "wave" in notes else None
    if stated is not None and question is not None and as_question(stated) != as_question(question):
        message = f"question must be that of the record, {stated!r}, or be left out, got {question!r}."
        raise InputError(message, field="question")
    if number is not None and number > LAST_WAVE:
        raise InputError(f"The record's wave must be a whole number from 1 to {LAST_WAVE}.")
    if number is not None and wave not in (None, number):
        raise InputError(f"wave must be that of the record, {number}, or be left out, got {wave}.", field="wave")
    return stated or question or "the mean", number or wave or 1
