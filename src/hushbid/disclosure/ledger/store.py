"""The release ledger: every estimate that was ever drawn, each under what was asked of whom.

In its folder there are, beside the three files of each entry (`hushbid.disclosure.ledger.files`)::

    ledger.format   which format and version it is; another one is refused by name
    ledger.key      32 random bytes, made once: names and fingerprints are hashes under it
    ledger.lock     held around looking for an entry and drawing, so that of two who ask at once one draws
    seen-ids-DATA   which entry was drawn from some data, by a fingerprint of ids and values (seen-data-DATA: of values,
                    where people have no ids), so that no other one is: one for all that was delivered, and one for
                    each question whose column is not constant

An entry's name is ``ids-PEOPLE-QUESTION-WAVE``, or ``data-...`` where people have no ids and are known by their data.
Not in it, on purpose, are payments, tolerances, the order of rows and the folder of the results: changing one of these
does not make it another question. What was promised is inside: asking again with the same promise returns what is
stored, and with another one is refused.
"""

import json
import os
import re
import secrets
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from hushbid.common.arrays import BoolArray, HashArray
from hushbid.common.codec import Codec, header_problem
from hushbid.common.durable import make_folder, write_whole
from hushbid.disclosure.ledger.files import (
    drawing_of,
    drawn_once,
    locked_file,
    stored,
    usable,
    was_drawn,
)
from hushbid.disclosure.ledger.marks import Earlier, Keyed, Marks, Stated
from hushbid.disclosure.ledger.question import Ask
from hushbid.errors import AlreadyReleased, InputError, LedgerError, RecordError

VARIABLE = "HUSHBID_LEDGER"
_FORMER_VARIABLE, _FORMER_FOLDER, _FORMER_KEY = "HUSHBID_CLAIMS", "claims", "store.key"
_FORMAT, _KEY, _LOCK, _KEY_BYTES = "ledger.format", "ledger.key", "ledger.lock", 32
_LEDGER = {"format": "hushbid release ledger", "version": 5}
_OLD = re.compile(r"[0-9a-f]{64}\.(json|claim|draft)")
_NAME = re.compile(r"(ids|data)-[0-9a-f]{32}-[0-9a-f]{32}-[0-9]{1,7}")
_SEEN = "seen-"
_ENTRIES = ("ids-*", "data-*", f"{_SEEN}*", "alike-*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One estimate that was drawn."""

    stated: Stated
    """What was asked and promised, and of which data."""

    waves_before: int
    """How many other waves of the question had been drawn from these people when it was."""

    release: Mapping[str, Any]
    """What was drawn, without anybody's figures."""

    def refused(self, why: str) -> AlreadyReleased:
        """Refuse to draw, for one of the reasons in `REFUSALS`."""
        return self.stated.asked.refused(why)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Mark:
    """Which entry was drawn from some data."""

    entry: str
    drawn: Earlier
    setting: str
    losses: float

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.entry):
            raise RecordError("entry must be the name of one.")


_ENTRY = Codec(Entry, "ledger entry", header={"format": "hushbid ledger entry", "version": 5})
_MARK = Codec(_Mark, "mark")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """What stands for something that was asked."""

    entry: Entry
    """What was drawn."""

    name: str
    """The entry's."""

    before: bool
    """Whether it had been drawn before."""

    same_data: bool
    """Whether the data are those it was drawn from."""

    key: Keyed
    """The ledger's."""

    def fits(self, data: int) -> bool:
        """Return whether a sum of hashes is that of the data it was drawn from."""
        kind = self.name.partition("-")[0]
        return self.key.fingerprint(kind, data) == self.entry.stated.data

    def were_absent(self, digests: HashArray) -> BoolArray:
        """Return who of these people should have delivered before it was drawn and did not."""
        absent = frozenset(self.entry.stated.absent or ())
        return np.array([name in absent for name in self.key.people(digests)], dtype=np.bool_)


# -- where it is -------------------------------------------------------------------------------------------------------


def ledger_folder(given: str | Path | None = None) -> Path:
    """Return the folder of the release ledger: as given, or else `account`."""
    if given is None:
        return account().resolve()
    if not isinstance(given, str | Path) or not str(given):
        told = repr(given) if isinstance(given, str) else type(given).__name__
        raise InputError(f"ledger must be the path of a folder, got {told}.", field="ledger")
    if "\0" in str(given):
        raise InputError("ledger must be the path of a folder, without a zero character.", field="ledger")
    return Path(given).resolve()


def account() -> Path:
    """Return the ledger of this user: ``HUSHBID_LEDGER``, or a folder that all campaigns of the user share."""
    given = os.environ.get(VARIABLE, "")
    if given:
        if not Path(given).is_absolute():
            raise LedgerError(
                f"{VARIABLE} must be an absolute path, or every folder would have its own, got {given!r}."
            )
        return Path(given)
    former = os.environ.get(_FORMER_VARIABLE, "")
    if former:
        raise LedgerError(
            f"{_FORMER_VARIABLE} is set to {former!r}, but the folder is named by {VARIABLE} now. What an earlier"
            " version drew is not recognised, so nothing is drawn until the variable is renamed or removed."
        )
    state = Path(os.environ.get("XDG_STATE_HOME", ""))
    try:
        home = state if state.is_absolute() else Path.home() / ".local" / "state"
    except RuntimeError:
        raise LedgerError(f"This account has no home folder: set {VARIABLE} to the folder of its ledger.") from None
    refuse_former(home / "hushbid" / _FORMER_FOLDER)
    return home / "hushbid" / "ledger"


def is_ledger(folder: Path) -> bool:
    """Whether a release ledger is in a folder."""
    with usable(folder):
        return (folder / _FORMAT).exists()


def refuse_former(folder: Path) -> None:
    """Refuse a folder of claims that an earlier version kept: this version cannot recognise what was drawn."""
    with usable(folder):
        names = {path.name for path in folder.iterdir()} if folder.is_dir() else set[str]()
    old = any(_OLD.fullmatch(name) for name in names) or _FORMER_KEY in names
    if old or (_FORMAT not in names and any(_NAME.match(name) or name.startswith(_SEEN) for name in names)):
        raise AlreadyReleased(
            f"{folder} holds estimates of an earlier version of Hushbid, a store of claims, whose fingerprints this"
            " version cannot compare: nothing is drawn beside it. Keep it with its results, away from here, and ask for"
            " new data only."
        )


# -- looking and drawing -----------------------------------------------------------------------------------------------


def settle(
    folder: Path, ask: Ask, draw: Callable[[str], Mapping[str, Any]], before_first: Callable[[], None] = lambda: None
) -> Settled:
    """Return what an entry holds for something asked, or else draw it now, under its name, and store it.

    ``before_first`` is called if there is no entry, before anything is drawn; it may refuse.
    """
    refuse_former(folder)
    with usable(folder):
        make_folder(folder)
        with locked_file(folder / _LOCK):
            return _settle(folder, _open(folder), ask, draw, before_first)


def refuse_released(folder: Path, ask: Ask, *, by_losses: bool = False) -> None:
    """Refuse to simulate with people or data of a real release; ``by_losses`` also with what was promised to them."""
    refuse_former(folder)
    if not is_ledger(folder):
        return
    with usable(folder):
        ours = _marks(folder, _open(folder), ask)
        entry = drawing_of(folder, ours.name)
        if entry is not None:
            raise _entry(folder, ours.name, entry).refused("not synthetic")
        for mark in _seen(folder, "*") if by_losses else ():
            if ours.stated.promise.same_losses(mark.setting, mark.losses) and was_drawn(folder, mark.entry):
                raise mark.drawn.refused("not synthetic")
        _refuse_neighbours(folder, ours)


def _settle(
    folder: Path,
    key: Keyed,
    ask: Ask,
    draw: Callable[[str], Mapping[str, Any]],
    before_first: Callable[[], None],
) -> Settled:
    ours, drawn = _marks(folder, key, ask), False
    found = stored(folder, ours.name)
    if found is None:
        # before anything is drawn: these data or people under another name
        _refuse_neighbours(folder, ours)
        if not was_drawn(folder, ours.name):
            before_first()
        _mark_data(folder, ours)

        def first() -> dict[str, Any]:
            nonlocal drawn
            drawn = True
            return _ENTRY.write(Entry(stated=ours.stated, waves_before=_waves(folder, ours), release=draw(ours.name)))

        found = drawn_once(folder, ours.name, first)
    entry = _entry(folder, ours.name, found)
    # asked before: only the same promises get the same answer
    if not drawn and not ours.stated.promise.same_as(entry.stated.promise):
        raise entry.refused("other promises")
    return Settled(
        entry=entry,
        name=ours.name,
        before=not drawn,
        same_data=entry.stated.data == ours.stated.data,
        key=key,
    )


def _marks(folder: Path, key: Keyed, ask: Ask) -> Marks:
    """Key something asked; without ids only if anything was drawn so, since each fingerprint takes a while."""
    nameless = any(True for _ in folder.glob(f"{_SEEN}data-*"))
    return Marks.of(ask, key, datetime.now(UTC).date(), answers=nameless)


def _refuse_neighbours(folder: Path, ours: Marks) -> None:
    # these data, all of them or a column, under another name; with ids also as they were drawn from without
    for kind, prints in ((ours.kind, ours.seen), ("data", () if ours.nameless else ours.answers)):
        for print in prints:
            mark = _mark_in(folder / f"{_SEEN}{kind}-{print}")
            if mark is not None and mark.entry != ours.name and was_drawn(folder, mark.entry):
                raise mark.drawn.refused("same data" if print == prints[0] else "same answers")
    # by question and wave, where ids are missing on either side
    whose = "*" if ours.nameless else "data-*"
    for path in sorted(folder.glob(f"{whose}-{ours.question}-{ours.stated.asked.wave}.claim")):
        found = None if path.stem == ours.name else drawing_of(folder, path.stem)
        if found is not None:
            entry = _entry(folder, path.stem, found)
            if ours.stated.promise.may_be(entry.stated.promise):
                raise entry.refused("maybe the same people")
    # values alone are not kept where there were ids: people are known by what they were promised
    for mark in _seen(folder, "ids") if ours.nameless else ():
        if ours.stated.promise.same_losses(mark.setting, mark.losses) and was_drawn(folder, mark.entry):
            raise mark.drawn.refused("maybe the same people")


def _entry(folder: Path, name: str, drawing: Mapping[str, Any]) -> Entry:
    """Read an entry; what is whole but was not written by this version is not guessed at."""
    try:
        return _ENTRY.read(drawing)
    except RecordError as problem:
        raise LedgerError(
            f"{folder / name}.json is no entry of this version; it is neither returned nor replaced. {problem}"
        ) from problem


def _waves(folder: Path, ours: Marks) -> int:
    return sum(path.stem != ours.name for path in folder.glob(f"{ours.people}-{ours.question}-*.json"))


# -- which data were drawn from ----------------------------------------------------------------------------------------


def _seen(folder: Path, kind: str) -> Iterator[_Mark]:
    for path in sorted(folder.glob(f"{_SEEN}{kind}-*")):
        mark = _mark_in(path)
        if mark is not None:
            yield mark


def _mark_in(path: Path) -> _Mark | None:
    try:
        return _MARK.read(json.loads(path.read_bytes()))
    except FileNotFoundError:
        return None
    except (ValueError, RecordError) as problem:
        raise LedgerError(
            f"{path} is damaged; nothing is drawn while it cannot say which data were drawn from."
        ) from problem


def _mark_data(folder: Path, ours: Marks) -> None:
    """Note which entry draws from these data, before it does; one that drew from them was refused. The lock is held."""
    promise = ours.stated.promise
    mark = _Mark(entry=ours.name, drawn=ours.stated.asked, setting=promise.setting, losses=promise.losses)
    for print in ours.seen:
        path = folder / f"{_SEEN}{ours.kind}-{print}"
        there = _mark_in(path)
        if there is None or there.entry != ours.name:
            # whose it was died before anything was drawn
            write_whole(path, json.dumps(_MARK.write(mark)).encode(), replace=there is not None)


# -- the folder --------------------------------------------------------------------------------------------------------


def _open(folder: Path) -> Keyed:
    """The ledger's key; both are made at the first use. The lock is held."""
    header = folder / _FORMAT
    try:
        stated = json.loads(header.read_bytes())
    except FileNotFoundError:
        # refused before, if it holds anything
        write_whole(header, json.dumps(_LEDGER).encode())
        stated = _LEDGER
    except ValueError:
        stated = None
    other = header_problem(stated if isinstance(stated, dict) else {}, "release ledger", _LEDGER)
    if other is not None:
        raise LedgerError(f"{folder} cannot be used by this version of Hushbid, and nothing is drawn. {other}")
    return Keyed(_key(folder))


def _key(folder: Path) -> bytes:
    """The ledger's secret."""
    path = folder / _KEY
    try:
        key = path.read_bytes()
    except FileNotFoundError:
        # a new key would not recognise what was drawn under the old one
        if any(True for pattern in _ENTRIES for _ in folder.glob(pattern)):
            raise LedgerError(
                f"{folder} holds entries but has lost {_KEY}, without which nothing can say what they are about."
                " Nothing is drawn. Put the key back."
            ) from None
        write_whole(path, secrets.token_bytes(_KEY_BYTES))
        key = path.read_bytes()
    if len(key) != _KEY_BYTES:
        raise LedgerError(f"{path} is damaged: it must hold {_KEY_BYTES} bytes. Nothing is drawn without it.")
    return key
