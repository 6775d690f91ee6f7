"""The one estimate: what is asked of whom, drawn once, and what is stamped of it."""

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hushbid.campaign.deciding import Decision
from hushbid.campaign.notices import (
    SYNTHETIC_STAMP,
    asked_by,
    is_synthetic,
    wave_stamps,
)
from hushbid.campaign.people import Delivered, People, delivered_in, rows_of
from hushbid.campaign.telling import UNSAID
from hushbid.campaign.terms import Campaign
from hushbid.common.arrays import id_texts, rows_text
from hushbid.common.documents import parsed
from hushbid.disclosure import Answer, release_once, release_synthetic
from hushbid.disclosure.ledger.once import named
from hushbid.disclosure.ledger.question import as_question
from hushbid.disclosure.ledger.store import ledger_folder, refuse_former
from hushbid.errors import AlreadyReleased, InputError, RecordError
from hushbid.mechanism import Outcome
from hushbid.mechanism.releasing import plan_of
from hushbid.mechanism.rounding import ROUNDING_ACCEPTED, takes_too_much
from hushbid.record import read
from hushbid.record.folder import present

INFINITE = "infinite privacy loss accepted"
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
        stamps.append(INFINITE)
    return [*stamps, *decision.flags]
