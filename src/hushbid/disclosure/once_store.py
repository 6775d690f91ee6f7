"""The account's store: every estimate that was ever drawn, each under what was asked of whom.

For a folder there are, beside the three files of each claim (`hushbid.disclosure.once_files`)::

    store.key     32 random bytes, made once: names and fingerprints are hashes under it and tell nothing without it
    store.lock    held around looking for a claim and drawing, so that of two who ask at once one draws
    seen-DATA     which claim was drawn from some data, by their fingerprint, so that no other one is
    alike-ANSWERS-NAME   the same by a fingerprint without ids; for whoever asks, or asked, without them

A claim's name is ``ids-PEOPLE-QUESTION-WAVE``, or ``data-...`` where people have no ids and are known by their data.
Not in it, on purpose, are payments, tolerances, the order of rows and the folder of the results: changing one of these
does not make it another question. What was promised stands inside; whoever asks again with the same promise gets what
is stored, and with another one a refusal.
"""

import hashlib
import json
import math
import os
import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hushbid.codec import header_problem
from hushbid.disclosure.once_files import (
    drawing_of,
    drawn_once,
    locked_file,
    stored,
    usable,
    was_drawn,
)
from hushbid.disclosure.once_question import Ask
from hushbid.disclosure.relation import Relation
from hushbid.durable import make_folder, write_whole
from hushbid.errors import AlreadyReleased, ReleaseError

VARIABLE = "HUSHBID_CLAIMS"
_KEY, _LOCK, _KEY_BYTES = "store.key", "store.lock", 32
_HEADER = {"format": "hushbid claim", "version": 2}
_OLD = re.compile(r"[0-9a-f]{64}\.(json|claim|draft)")
_NAME = re.compile(r"(ids|data)-[0-9a-f]{32}-[0-9a-f]{32}-[0-9]{1,7}")
_SEEN, _ALIKE = "seen-", "alike-"
_CLAIMS = ("*.json", "*.claim", "*.draft", f"{_SEEN}*", f"{_ALIKE}*")
_SUMS = ("losses", "marked"), ("variances", "marked_variances")
"""What was promised where only sums are known: a plain one, and one that ids weigh."""
_ROUNDING = 1e-8
"""Sums of losses that differ by less, relative to their size, are equal: engines add up in different orders."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """What is asked of whom, and what was promised, under a key."""

    people: str
    """``ids-`` or ``data-`` and a hash."""

    question: str
    wave: int
    data: str
    answers: str
    setting: str
    bounds: tuple[float, float]
    losses: float
    marked: float
    variances: float
    marked_variances: float
    relation: Relation | None
    survey: str | None
    """A hash of a survey's questions and of how they share everybody's loss; None where one number is asked for."""

    strata: str | None
    """A hash of which combination of stratum means is estimated and who is in which; None where it is one mean."""

    exact: str | None
    """A hash of everybody's losses and variance to the last bit; None where only sums are known."""

    @classmethod
    def of(cls, ask: Ask, key: bytes) -> "Marks":
        """Of something asked."""
        tally = ask.tally
        kind, people = ("ids", tally.people) if ask.by_ids else ("data", tally.data)
        return cls(
            people=f"{kind}-{_keyed(key, kind, people.to_bytes(32, 'little'))}",
            question=_keyed(key, "question", ask.question.encode("utf-8", "surrogatepass")),
            wave=ask.wave,
            data=_keyed(key, "data delivered", tally.data.to_bytes(32, "little")),
            answers=_keyed(key, "answers", tally.answers.to_bytes(32, "little")),
            setting=ask.setting,
            bounds=ask.bounds,
            losses=tally.losses,
            marked=tally.marked,
            variances=tally.variances,
            marked_variances=tally.marked_variances,
            relation=ask.relation,
            survey=_keyed(key, "survey", json.dumps(ask.survey).encode()) if ask.survey else None,
            strata=_keyed(key, "strata", json.dumps([*ask.strata, tally.strata]).encode()) if ask.strata else None,
            exact=None if ask.exact is None else _keyed(key, "losses", ask.exact),
        )

    @property
    def name(self) -> str:
        """The name of the claim."""
        return f"{self.people}-{self.question}-{self.wave}"

    @property
    def nameless(self) -> bool:
        """Whether people are known by their data alone."""
        return _is_nameless(self.people)

    def data_prints(self) -> dict[str, str]:
        """By which data are compared: with ids, and without."""
        return {"print": self.data, "answers": self.answers}

    def promises(self) -> dict[str, Any]:
        """What was promised, as it is stored; a relation, questions and strata only where there are some."""
        relation = {} if self.relation is None else {"relation": [self.relation.spread, self.relation.roster]}
        survey = {} if self.survey is None else {"survey": self.survey}
        return {
            "setting": self.setting,
            "bounds": list(self.bounds),
            "losses": self.losses,
            "marked": self.marked,
            "variances": self.variances,
            "marked_variances": self.marked_variances,
            **relation,
            **survey,
            **({} if self.strata is None else {"strata": self.strata}),
            "exact": self.exact,
        }

    def promised_alike(self, promise: Mapping[str, Any]) -> bool:
        """Whether this is what a claim says was promised: to the last bit if both know it, else up to rounding."""
        if not self._same_terms(promise) or self.strata != promise.get("strata"):
            return False
        if not self._equally_related(promise):
            return False
        if self.exact is not None and promise["exact"] is not None:
            return bool(self.exact == promise["exact"])
        return all(self._equal(promise, plain, name) for plain, marked in _SUMS for name in (plain, marked))

    def might_be(self, promise: Mapping[str, Any]) -> bool:
        """Whether it may have been promised to the same people, for all that can be said without ids."""
        return self._same_terms(promise) and self._equal(promise, "losses", "losses")

    def _same_terms(self, promise: Mapping[str, Any]) -> bool:
        """Whether the setting is the same, and the range or, of a survey, the questions."""
        stated = [promise["setting"], promise["bounds"], promise.get("survey")]
        return [self.setting, list(self.bounds), self.survey] == stated

    def _equally_related(self, promise: Mapping[str, Any]) -> bool:
        """Whether price and datum may be as closely related, among as many people."""
        spread, roster = promise.get("relation", (0.0, None))
        if self.relation is None:
            return roster is None
        return bool(self.relation.roster == roster and math.isclose(self.relation.spread, spread, rel_tol=_ROUNDING))

    def _equal(self, promise: Mapping[str, Any], plain: str, name: str) -> bool:
        room = _ROUNDING * max(getattr(self, plain), promise[plain])
        return math.isclose(getattr(self, name), promise[name], abs_tol=room)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """What stands for something that was asked."""

    release: dict[str, Any]
    """As it was stored."""

    name: str
    """The claim's."""

    before: bool
    """Whether it had been drawn before."""

    same_data: bool
    """Whether the data are those it was drawn from."""

    delivered: int
    """How many people's data it was drawn from."""

    waves_before: int
    """How many other waves of the question had been drawn from these people when it was."""

    fits: Callable[[int], bool]
    """Whether a sum of hashes is that of the data it was drawn from."""


def account() -> Path:
    """The folder of this account's claims: ``HUSHBID_CLAIMS``, or one that all campaigns of the account share."""
    given = os.environ.get(VARIABLE, "")
    if given:
        if not Path(given).is_absolute():
            raise ReleaseError(
                f"{VARIABLE} must be an absolute path, or every folder would have its own, got {given!r}."
            )
        return Path(given)
    state = Path(os.environ.get("XDG_STATE_HOME", ""))
    try:
        home = state if state.is_absolute() else Path.home() / ".local" / "state"
    except RuntimeError:
        raise ReleaseError(f"This account has no home folder: set {VARIABLE} to the folder of its claims.") from None
    return home / "hushbid" / "claims"


def refuse_old_claims(folder: Path) -> None:
    """A folder of claims that were named by what was promised cannot say what was asked of whom."""
    with usable(folder):
        names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    if any(_OLD.fullmatch(name) for name in names):
        raise AlreadyReleased(
            f"{folder} holds an estimate that an earlier version drew, whose claim does not say what was asked of whom:"
            " nothing is drawn beside it. Keep its results; another question, or other people, needs another folder."
        )


def settle(folder: Path, ask: Ask, draw: Callable[[str], Mapping[str, Any]]) -> Settled:
    """What stands for something asked: what a claim holds, or else what is drawn now, under its name, and stored."""
    refuse_old_claims(folder)
    with usable(folder):
        make_folder(folder)
        with locked_file(folder / _LOCK):
            return _settle(folder, _key(folder), ask, draw)


def _settle(folder: Path, key: bytes, ask: Ask, draw: Callable[[str], Mapping[str, Any]]) -> Settled:
    ours, drawn = Marks.of(ask, key), False
    claim = stored(folder, ours.name)
    if claim is None:
        # before anything is drawn: these data or people under another name
        _refuse_neighbours(folder, ours)
        _mark_data(folder, ours)

        def first() -> dict[str, Any]:
            nonlocal drawn
            drawn = True
            return {
                **_HEADER,
                "question": ask.question,
                "wave": ours.wave,
                "waves_before": _waves(folder, ours),
                "promise": ours.promises(),
                "data": {"delivered": ask.tally.delivered, **ours.data_prints()},
                "release": dict(draw(ours.name)),
            }

        claim = drawn_once(folder, ours.name, first)
    _refuse_no_claim(folder, ours.name, claim)
    # asked before: only the same promises get the same answer
    if not drawn and not ours.promised_alike(claim["promise"]):
        raise AlreadyReleased(
            "This was asked of these people before, under other promises (setting, bounds or questions, strata,"
            " variance, relation or privacy losses), and answered: a second estimate from their data would cost them"
            " their privacy twice, so it is refused, force=True or not. Go back to the market and the reports of that"
            " release. Another question has another text; a later wave of this one, with new data, says so: wave = 2."
        )
    return Settled(
        release=claim["release"],
        name=ours.name,
        before=not drawn,
        same_data=claim["data"]["print"] == ours.data,
        delivered=claim["data"]["delivered"],
        waves_before=claim["waves_before"],
        fits=lambda data: bool(_keyed(key, "data delivered", data.to_bytes(32, "little")) == claim["data"]["print"]),
    )


def refuse_neighbour(ours: Marks, name: str, data: Mapping[str, Any], promise: Mapping[str, Any]) -> None:
    """Refuse to draw if another claim shows that these very data, or people who may be these, were drawn from."""
    people, question, wave = name.rsplit("-", 2)
    nameless = ours.nameless or _is_nameless(people)
    # these very data, with ids or without
    if data["print"] == ours.data or (nameless and data["answers"] == ours.answers):
        raise _same_data()
    # the same question to people who may be the same
    if nameless and (question, wave) == (ours.question, str(ours.wave)) and ours.might_be(promise):
        raise AlreadyReleased(
            "The same was asked of people who were promised the same, and answered from other data; an estimate is"
            " drawn once. One of the two times these are people without ids, so they may be the same ones. If they are"
            " others, give the ids of both; if it is another question, its text."
        )


def _is_nameless(people: str) -> bool:
    return people.startswith("data-")


def _same_data() -> AlreadyReleased:
    return AlreadyReleased(
        "An estimate has been drawn from these very data under another question or wave, or with other people beside"
        " them, or with ids where there are none now, or without; a second one would cost people their privacy twice."
        " Ask again as it was asked. Data of another question, or of a later wave, are collected for it."
    )


def _refuse_neighbours(folder: Path, ours: Marks) -> None:
    # by the data alone, where ids are missing on either side
    for mark in folder.glob(f"{_ALIKE}{ours.answers}-*"):
        name = mark.name.removeprefix(f"{_ALIKE}{ours.answers}-")
        if name != ours.name and (ours.nameless or _is_nameless(name)) and was_drawn(folder, name):
            raise _same_data()
    # by question and wave, where ids are missing on either side
    whose = "*" if ours.nameless else "data-*"
    for path in sorted(folder.glob(f"{whose}-{ours.question}-{ours.wave}.claim")):
        claim = None if path.stem == ours.name else drawing_of(folder, path.stem)
        if claim is not None:
            _refuse_no_claim(folder, path.stem, claim)
            refuse_neighbour(ours, path.stem, claim["data"], claim["promise"])


def _refuse_no_claim(folder: Path, name: str, claim: Mapping[str, Any]) -> None:
    """What is whole but was not written by this version is not guessed at."""
    other = header_problem(claim, "claim", _HEADER)
    if other is not None:
        raise ReleaseError(f"{folder / name}.json is neither returned nor replaced. {other}")
    promise, data = claim.get("promise"), claim.get("data")
    is_one = (
        isinstance(promise, dict)
        and {"setting", "bounds", "exact"} <= promise.keys()
        and all(type(promise.get(sum)) is float for pair in _SUMS for sum in pair)
        and _is_relation(promise.get("relation", [0.0, 0]))
        and type(promise.get("survey", "")) is type(promise.get("strata", "")) is str
        and isinstance(data, dict)
        and all(type(data.get(print)) is str for print in ("print", "answers"))
        and type(data.get("delivered")) is type(claim.get("waves_before")) is int
        and isinstance(claim.get("release"), dict)
    )
    if not is_one:
        raise ReleaseError(f"{folder / name}.json is no claim of this version; it is neither returned nor replaced.")


def _is_relation(stated: object) -> bool:
    return isinstance(stated, list) and [*map(type, stated)] == [float, int]


def _mark_data(folder: Path, ours: Marks) -> None:
    """Note which claim draws from these data, before it does; refuse if another one has. The lock is held."""
    mark, alike = folder / f"{_SEEN}{ours.data}", folder / f"{_ALIKE}{ours.answers}-{ours.name}"
    name = mark.read_text(encoding="ascii", errors="replace") if mark.exists() else None
    # data belong to the claim that was drawn from them first
    if name is not None and name != ours.name:
        if not re.fullmatch(_NAME, name) or was_drawn(folder, name):
            raise _same_data()
        mark.unlink()  # whoever left it died before anything was drawn
    if name != ours.name:
        write_whole(mark, ours.name.encode())
    if not alike.exists():
        write_whole(alike, b"")


def _waves(folder: Path, ours: Marks) -> int:
    return sum(path.stem != ours.name for path in folder.glob(f"{ours.people}-{ours.question}-*.json"))


def _keyed(key: bytes, purpose: str, content: bytes) -> str:
    head = json.dumps(purpose).encode()
    return hashlib.blake2b(head + content, digest_size=16, key=key).hexdigest()


# -- the key -----------------------------------------------------------------------------------------------------------


def _key(folder: Path) -> bytes:
    """The store's secret, made at the first use. The lock is held."""
    path = folder / _KEY
    try:
        key = path.read_bytes()
    except FileNotFoundError:
        # a new key would not recognise what was drawn under the old one
        if any(True for pattern in _CLAIMS for _ in folder.glob(pattern)):
            raise ReleaseError(
                f"{folder} holds claims but has lost {_KEY}, without which nobody can tell what they are about: nothing"
                " is drawn. Put the key back."
            ) from None
        write_whole(path, secrets.token_bytes(_KEY_BYTES))
        key = path.read_bytes()
    if len(key) != _KEY_BYTES:
        raise ReleaseError(f"{path} is damaged: it must hold {_KEY_BYTES} bytes. Nothing is drawn without it.")
    return key
