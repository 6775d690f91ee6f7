"""What a participant's device keeps: the secret it exchanged her link for, the terms she bid on, and the noisy
value it sends.

The secret lies under the hash of the link. It is drawn here and stored before it is sent, so an exchange whose answer
got lost can be repeated.

The terms decide how much noise is added, so they are stored before the bid is sent and a server cannot change them
afterwards: it may promise less privacy loss than she was shown, never more, and no other range, questions, setting or
currency.

Two different noisy values of one datum tell more than one. So the first is stored before it is sent, with the terms
under the server's address and what the server calls campaign and participant: a renewed link, or one of her own, finds
it. What a link named first it names for ever: a server that claims another campaign or participant for that link gets
the stored message, or a refusal, but no second draw. What is left: a new link together with a false name for
the campaign or for her. This device cannot know that they are the same, and each such pretence costs another ε.
"""

import hashlib
import json
import math
import os
import re
import secrets
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

from hushbid.common.durable import write_whole
from hushbid.disclosure import privatize, privatize_answers
from hushbid.errors import ReleaseError
from hushbid.questions import Layout, Question, question_from_dict

Bounds = tuple[float, float]
Survey = tuple[tuple[Question, ...], Layout]
"""The questions, and how they share a privacy loss."""

Given = Sequence[object] | Mapping[str, object]
"""Answers in the questions' order, or by their names."""

SECRET_PREFIX = "hb_d_"
_PLACE = re.compile("value-[0-9a-f]{32}")


class Message(Protocol):
    """A value or answers with noise, safe to send once."""

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What a person agreed to when she bid."""

    setting: str
    """Where the noise is added: central or local."""

    bounds: Bounds | None
    """The public range of the data; None where there were questions."""

    largest_loss: float
    """The largest privacy loss she was shown, or the smaller one she named."""

    price: float | None = field(repr=False)
    """What one unit of privacy loss costs her; None if this device does not know it."""

    currency: str | None = None
    """Of the price; None if it was not kept."""

    decimals: int | None = None
    """One unit of the currency is ``10**decimals`` minor units; None if it was not kept."""

    questions: tuple[Question, ...] = ()
    """What was asked, where it was more than one number."""

    @property
    def asked(self) -> tuple[Bounds | None, tuple[Question, ...]]:
        """What her data are: one number in a range, or answers to questions."""
        return self.bounds, self.questions

    def to_json(self) -> str:
        """The terms as they are kept."""
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        asked = {"questions": [one.to_dict() for one in self.questions]} if self.questions else {}
        return json.dumps({name: value for name, value in values.items() if name != "questions"} | asked)

    @classmethod
    def from_json(cls, text: str) -> "Terms":
        """The inverse of `to_json`; what is damaged is some error."""
        found = json.loads(text)
        questions = tuple(question_from_dict(one) for one in found.pop("questions", ()))
        bounds = found.pop("bounds")
        if (bounds is None) != bool(questions):
            raise ValueError
        if bounds is not None:
            low, high = map(float, bounds)
            bounds = (low, high)
        terms = cls(**found, bounds=bounds, questions=questions)
        if not math.isfinite(terms.largest_loss):
            raise ValueError
        return terms


class Keeper(Protocol):
    """Keeps a person's terms, and draws her secret and her noisy value once."""

    def secret(self, token: str) -> str:
        """The secret that this device exchanges a link for; drawn now if there is none."""

    def place(self, token: str, name: str) -> str:
        """The name (`place_name`) that a link was first seen with; this one if it is new."""

    def agree(self, place: str, terms: Terms) -> None:
        """Keep terms in the place of those kept before."""

    def terms(self, place: str) -> Terms | None:
        """The terms kept last for this campaign and participant."""

    def message(self, place: str, value: float, privacy_loss: float, bounds: Bounds) -> Message:
        """The first noisy value that was drawn for this campaign and participant; drawn now if there is none."""

    def answers(self, place: str, answers: Given, privacy_loss: float, survey: Survey) -> Message:
        """The same for the answers to a survey, all in one message."""


class MessageFolder:
    """Keeps secrets, terms and messages as files, which survive the process, for the owner's eyes only."""

    def __init__(self, path: str | Path | None = None) -> None:
        """The folder is ``HUSHBID_STORE``, or one of the account's own, if none is given."""
        self.path = default_folder() if path is None else Path(path)

    def secret(self, token: str) -> str:
        """The secret in the file, or a new one, stored durably before it is returned; the first one wins."""
        path = self.path / f"{_name(token)}.secret"
        try:
            if not path.exists():
                with suppress(FileExistsError):
                    self._write(path, new_secret(), first=True)  # of two at once, one wins
            found = path.read_text("ascii")
        except (OSError, ValueError):
            found = ""
        if not found.startswith(SECRET_PREFIX):
            raise ReleaseError(f"{path} cannot be read, and holds the secret that your link was exchanged for.")
        return found

    def place(self, token: str, name: str) -> str:
        """The name in the link's file; this one if the link is new."""
        path = self.path / f"{_name(token)}.place"
        try:
            if not path.exists():
                with suppress(FileExistsError):
                    self._write(path, name, first=True)
            found = path.read_text("ascii")
        except (OSError, ValueError):
            found = ""
        if not _PLACE.fullmatch(found):
            raise ReleaseError(f"{path} cannot be read, and says which noisy value belongs to your link: restore it.")
        return found

    def agree(self, place: str, terms: Terms) -> None:
        """Write the terms durably; a crash leaves the old ones or the new ones."""
        self._write(self._terms(place), terms.to_json())

    def _write(self, path: Path, text: str, *, first: bool = False) -> None:
        """Write a file durably, whole or not at all; ``first`` leaves one that is there."""
        self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_whole(path, text.encode("ascii"), replace=not first)

    def terms(self, place: str) -> Terms | None:
        """The terms in the file; damaged ones are refused, never guessed."""
        path = self._terms(place)
        try:
            return Terms.from_json(path.read_text("ascii"))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError, KeyError, AttributeError, OverflowError):
            raise ReleaseError(f"{path} cannot be read, and says how much you agreed to: restore it.") from None

    def _terms(self, place: str) -> Path:
        return self.path / f"{place}.terms"

    def message(self, place: str, value: float, privacy_loss: float, bounds: Bounds) -> Message:
        """The message in the file, or a new one, stored durably before it is returned."""
        return privatize(value, privacy_loss, bounds, store=self.path / place)

    def answers(self, place: str, answers: Given, privacy_loss: float, survey: Survey) -> Message:
        """The message in the file, or a new one, stored durably before it is returned."""
        questions, layout = survey
        return privatize_answers(answers, privacy_loss, questions, layout=layout, store=self.path / place)


class MessageMemory:
    """Keeps all of it while the process lives: for programs that play people who do not exist."""

    def __init__(self) -> None:
        self._secrets: dict[str, str] = {}
        self._places: dict[str, str] = {}
        self._kept: dict[str, tuple[float, Bounds | Survey, Message]] = {}
        self._terms: dict[str, Terms] = {}
        self._lock = threading.Lock()

    def secret(self, token: str) -> str:
        """The secret in memory, or a new one."""
        with self._lock:
            return self._secrets.setdefault(token, new_secret())

    def place(self, token: str, name: str) -> str:
        """The name in memory, or this one."""
        with self._lock:
            return self._places.setdefault(token, name)

    def agree(self, place: str, terms: Terms) -> None:
        """Keep the terms."""
        self._terms[place] = terms

    def terms(self, place: str) -> Terms | None:
        """The terms kept."""
        return self._terms.get(place)

    def message(self, place: str, value: float, privacy_loss: float, bounds: Bounds) -> Message:
        """The message in memory, or a new one."""
        return self._once(place, privacy_loss, bounds, lambda: privatize(value, privacy_loss, bounds))

    def answers(self, place: str, answers: Given, privacy_loss: float, survey: Survey) -> Message:
        """The message in memory, or a new one."""
        questions, layout = survey
        return self._once(
            place, privacy_loss, survey, lambda: privatize_answers(answers, privacy_loss, questions, layout=layout)
        )

    def _once(self, place: str, privacy_loss: float, asked: Bounds | Survey, draw: Callable[[], Message]) -> Message:
        with self._lock:
            kept = self._kept.get(place)
            if kept is None:
                kept = self._kept[place] = (privacy_loss, asked, draw())
        if kept[:2] != (privacy_loss, asked):
            told = "A value was privatized before with another privacy loss or other bounds, or for other questions."
            raise ReleaseError(told)
        return kept[2]


def new_secret() -> str:
    """256 random bits, by which a server knows this device."""
    return SECRET_PREFIX + secrets.token_urlsafe(32)


def default_folder() -> Path:
    """Where they are kept if nobody says otherwise."""
    named = os.environ.get("HUSHBID_STORE")
    if named:
        return Path(named)
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "hushbid" / "values"


def place_name(url: str, campaign: str, participant: str) -> str:
    """A name for what is kept for a participant of a campaign on a server: no link and no secret is part of it.

    >>> place_name("https://Example.org:443", "c1", "p1") == place_name("https://example.org/", "c1", "p1")
    True
    """
    parts = urlsplit(url)
    port = "" if parts.port in (None, 80, 443) else f":{parts.port}"
    named = json.dumps([f"{parts.hostname}{port}{parts.path.rstrip('/')}", campaign, participant])
    return f"value-{hashlib.sha256(named.encode()).hexdigest()[:32]}"


def _name(token: str) -> str:
    return f"link-{hashlib.sha256(token.encode()).hexdigest()[:32]}"
