"""What a participant's device keeps: the secret it exchanged the link for, the terms of the bid, and the noisy value.

The secret is stored under the hash of the link. It is drawn here and stored before it is sent, so an exchange whose
answer got lost can be repeated.

The terms decide how much noise is added, so they are stored before the bid is sent and a server cannot change them
afterwards: it may promise less privacy loss than was shown, never more, and no other range, questions, setting or
currency.

Two different noisy values of one datum reveal more than one. So the first is stored before it is sent, with the terms
under the server's address and what the server calls campaign and participant: a renewed link, or one for another
device, finds it. The names that came first with a link stay with it: a server that claims another campaign or
participant for that link gets the stored message, or a refusal, but no second draw. What is left: a new link together
with a false name for the campaign or the participant. This device cannot know that they are the same, and each such
pretence costs another ε.
"""

import hashlib
import json
import math
import os
import re
import secrets
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import NamedTuple, Protocol
from urllib.parse import urlsplit

from hushbid.common.durable import write_whole
from hushbid.disclosure import Message, privatize, privatize_answers
from hushbid.errors import ReleaseError
from hushbid.questions import Layout, Question, question_from_dict

Bounds = tuple[float, float]
Datum = float | Sequence[object] | Mapping[str, object]
"""A number, or answers in the questions' order or by their names."""

SECRET_PREFIX = "hb_d_"
_PLACE = re.compile("value-[0-9a-f]{32}")


class Survey(NamedTuple):
    """What is asked, where it is more than one number."""

    questions: tuple[Question, ...]
    """The questions."""

    layout: Layout
    """How they share a privacy loss."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What a person agreed to with their bid."""

    setting: str
    """Where the noise is added: central or local."""

    bounds: Bounds | None
    """The public range of the data; None where there were questions."""

    largest_loss: float
    """The largest privacy loss that was shown, or the smaller one they named."""

    price: float | None = field(repr=False)
    """What one unit of privacy loss costs them; None if this device does not know it."""

    currency: str | None = None
    """Of the price; None if it was not kept."""

    decimals: int | None = None
    """One unit of the currency is ``10**decimals`` minor units; None if it was not kept."""

    questions: tuple[Question, ...] = ()
    """What was asked, where it was more than one number."""

    @property
    def asked(self) -> tuple[Bounds | None, tuple[Question, ...]]:
        """Return what the data are: one number in a range, or answers to questions."""
        return self.bounds, self.questions

    def to_json(self) -> str:
        """Return the terms as text."""
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        asked = {"questions": [one.to_dict() for one in self.questions]} if self.questions else {}
        return json.dumps({name: value for name, value in values.items() if name != "questions"} | asked)

    @classmethod
    def from_json(cls, text: str) -> "Terms":
        """Read what `to_json` wrote; damaged text is some error."""
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
    """Keeps a person's terms, and draws their secret and their noisy value once; durably before it returns them."""

    def secret(self, token: str) -> str:
        """Return the secret that this device exchanges a link for; draw it if there is none."""

    def place(self, token: str, name: str) -> str:
        """Return the name (`place_name`) that a link was first seen with; this one if the link is new."""

    def agree(self, place: str, terms: Terms) -> None:
        """Keep terms, instead of those kept before."""

    def terms(self, place: str) -> Terms | None:
        """Return the terms kept last for this campaign and participant."""

    def message(self, place: str, value: Datum, privacy_loss: float, asked: Bounds | Survey) -> Message:
        """Return the first noisy value, or answers, of this campaign and participant; draw it if there is none."""


class MessageFolder:
    """Keeps secrets, terms and messages as files, which survive the process and which only the owner can read."""

    def __init__(self, path: str | Path | None = None) -> None:
        """The folder is ``HUSHBID_STORE``, or the account's own, if none is given."""
        self.path = default_folder() if path is None else Path(path)

    def secret(self, token: str) -> str:
        path = self.path / f"{_name(token)}.secret"
        secret = self._first(path, new_secret())
        if not secret.startswith(SECRET_PREFIX):
            raise ReleaseError(f"{path} cannot be read, and holds the secret that your link was exchanged for.")
        return secret

    def place(self, token: str, name: str) -> str:
        path = self.path / f"{_name(token)}.place"
        place = self._first(path, name)
        if not _PLACE.fullmatch(place):
            raise ReleaseError(f"{path} cannot be read, and says which noisy value belongs to your link: restore it.")
        return place

    def agree(self, place: str, terms: Terms) -> None:
        self._write(self.path / f"{place}.terms", terms.to_json())

    def terms(self, place: str) -> Terms | None:
        path = self.path / f"{place}.terms"
        try:
            return Terms.from_json(path.read_text("ascii"))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError, KeyError, AttributeError, OverflowError):  # never guessed
            raise ReleaseError(f"{path} cannot be read, and says how much you agreed to: restore it.") from None

    def message(self, place: str, value: Datum, privacy_loss: float, asked: Bounds | Survey) -> Message:
        return _draw(value, privacy_loss, asked, store=self.path / place)

    def _first(self, path: Path, text: str) -> str:
        """Return what a file holds, this text if it is new; nothing if it cannot be read."""
        try:
            if not path.exists():
                with suppress(FileExistsError):  # of two processes at once, one wins
                    self._write(path, text, replace=False)
            return path.read_text("ascii")
        except (OSError, ValueError):
            return ""

    def _write(self, path: Path, text: str, *, replace: bool = True) -> None:
        """Write a file durably, whole or not at all."""
        self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_whole(path, text.encode("ascii"), replace=replace)


class MessageMemory:
    """Keeps all of it while the process lives, for programs that simulate participants."""

    def __init__(self) -> None:
        self._texts: dict[tuple[str, str], str] = {}
        self._messages: dict[str, tuple[float, Bounds | Survey, Message]] = {}
        self._terms: dict[str, Terms] = {}
        self._lock = threading.Lock()

    def secret(self, token: str) -> str:
        with self._lock:
            return self._texts.setdefault(("secret", token), new_secret())

    def place(self, token: str, name: str) -> str:
        with self._lock:
            return self._texts.setdefault(("place", token), name)

    def agree(self, place: str, terms: Terms) -> None:
        self._terms[place] = terms

    def terms(self, place: str) -> Terms | None:
        return self._terms.get(place)

    def message(self, place: str, value: Datum, privacy_loss: float, asked: Bounds | Survey) -> Message:
        with self._lock:
            if place not in self._messages:
                self._messages[place] = (privacy_loss, asked, _draw(value, privacy_loss, asked))
            *before, message = self._messages[place]
        if before != [privacy_loss, asked]:
            raise ReleaseError(
                "A value was privatized before with another privacy loss or other bounds, or for other questions."
            )
        return message


def _draw(value: Datum, privacy_loss: float, asked: Bounds | Survey, store: Path | None = None) -> Message:
    """Add noise to a number, or to answers, once if there is a place to store the result in."""
    if isinstance(asked, Survey):
        assert not isinstance(value, (int, float))
        return privatize_answers(value, privacy_loss, asked.questions, layout=asked.layout, store=store)
    assert isinstance(value, (int, float))
    return privatize(value, privacy_loss, asked, store=store)


def new_secret() -> str:
    """Draw 256 random bits, by which a server recognises this device."""
    return SECRET_PREFIX + secrets.token_urlsafe(32)


def default_folder() -> Path:
    """Return the folder to use if none is given."""
    named = os.environ.get("HUSHBID_STORE")
    if named:
        return Path(named)
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "hushbid" / "values"


def place_name(url: str, campaign: str, participant: str) -> str:
    """Name what is kept for a participant of a campaign on a server; no link and no secret is part of the name.

    >>> place_name("https://Example.org:443", "c1", "p1") == place_name("https://example.org/", "c1", "p1")
    True
    """
    parts = urlsplit(url)
    port = "" if parts.port in (None, 80, 443) else f":{parts.port}"
    named = json.dumps([f"{parts.hostname}{port}{parts.path.rstrip('/')}", campaign, participant])
    return f"value-{hashlib.sha256(named.encode()).hexdigest()[:32]}"


def _name(token: str) -> str:
    return f"link-{hashlib.sha256(token.encode()).hexdigest()[:32]}"
