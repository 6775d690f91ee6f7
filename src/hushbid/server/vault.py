"""Keys to people's values, outside the database: one per campaign, or one for each person's answers.

**A campaign's key.** A value is stored as AES-256-GCM under its campaign's key, bound to campaign and participant, so a
ciphertext that was moved elsewhere does not decrypt. Once the key is gone, neither the database file, its write-ahead
log nor any backup yields a value. ``NAME.destroyed`` stays behind: a destroyed key is never made again, so a database
restored from a backup cannot collect values again for a campaign that is over. Where people are to be paid has keys of
its own: neither end of a key is the other's.

**Answers that come with a price.** Where people come once (`CampaignSettings.single_visit`), their answers lie here
before anybody knows whether they are bought. So every person's answers are sealed with a key of their own, AES-256-GCM,
bound to campaign and participant, and what is not bought loses its key unopened. ``NAME.answers`` holds the keys, 32
bytes each, in places that are used once; the sealed answers say in which place their key lies.

- A key is durable before the transaction that stores what it seals: one `AnswerKeys.settle` for all that commit
  together.
- To destroy keys is to overwrite their places with zeros, durably; of many at once with a single synchronisation. A
  place lies within one sector, so after a crash a key is there or gone, never half of it.
- Answers that are replaced get a new key in a new place; the old one is destroyed once the new answers are stored.
- A key that no stored answers need was left by a crash, or came back with a copy of the file: `AnswerKeys.keep_only`
  destroys it.

What cannot be promised: that a solid-state disk or a copying file system forgets overwritten bytes at once, or that
nobody copied a file while the keys were there. Keep the folder on an encrypted disk.
"""

import os
import re
import secrets
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from hushbid.common.durable import sync, write_whole
from hushbid.errors import CampaignError, Conflict

_KEY_BYTES, _NONCE_BYTES, _PLACE_BYTES = 32, 12, 4
_GONE = bytes(_KEY_BYTES)


class AnswerKeys:
    """The keys to people's answers in one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._next: dict[str, int] = {}
        self._unsettled: dict[str, dict[int, bytes]] = {}

    def create(self, campaign: str) -> None:
        """Make a campaign's file, durably, unless it has one."""
        with self._lock:
            if not self._path(campaign).exists():
                write_whole(self._path(campaign), b"")

    def seal(self, campaign: str, participant: str, value: bytes) -> bytes:
        """Answers that only a new key opens, for this participant only; good for nothing before `settle`."""
        key, nonce = secrets.token_bytes(_KEY_BYTES), secrets.token_bytes(_NONCE_BYTES)
        with self._lock:
            if campaign not in self._next:
                if self._mark(campaign).exists():
                    raise self._missing(campaign)
                self._next[campaign] = -(-self._size(campaign) // _KEY_BYTES)  # a place that a crash tore is not used
            place = self._next[campaign]
            self._next[campaign] += 1
            self._unsettled.setdefault(campaign, {})[place] = key
        where = place.to_bytes(_PLACE_BYTES, "big")
        return where + nonce + AESGCM(key).encrypt(nonce, value, _bound_to(campaign, participant, where))

    def settle(self) -> None:
        """Make every new key durable, before what it seals is."""
        with self._lock:
            while self._unsettled:
                campaign, keys = self._unsettled.popitem()  # if it fails, what they seal is not stored either
                with self._written(campaign) as file:
                    for place, key in keys.items():
                        _write(file, key, place * _KEY_BYTES)

    def open(self, campaign: str, participant: str, sealed: bytes) -> bytes | None:
        """The inverse of `seal`; None if the key is gone."""
        where, nonce, ciphertext = _parts(sealed)
        key = self._key(campaign, where)
        if key is None:
            return None
        try:
            return AESGCM(key).decrypt(nonce, ciphertext, _bound_to(campaign, participant, where))
        except InvalidTag:
            told = f"The answers of participant {participant} cannot be opened: they or their key were changed."
            raise CampaignError(told) from None

    def lost(self, campaign: str, sealed: Mapping[str, bytes]) -> set[str]:
        """The names of those whose answers have no key any more."""
        return {name for name, content in sealed.items() if self._key(campaign, _parts(content)[0]) is None}

    def destroy(self, campaign: str, sealed: Iterable[bytes]) -> None:
        """Destroy the keys to these answers; harmless if that was done before."""
        with self._lock:
            self._overwrite(campaign, sorted({_place(_parts(one)[0]) for one in sealed}))

    def keep_only(self, campaign: str, sealed: Iterable[bytes]) -> None:
        """Destroy all keys but those to these answers; new ones that are not settled are left alone."""
        kept = {_place(_parts(one)[0]) for one in sealed}
        with self._lock:
            content = self._content(campaign)
            there = [
                place
                for place in range(-(-len(content) // _KEY_BYTES))
                if place not in kept and any(content[place * _KEY_BYTES : (place + 1) * _KEY_BYTES])
            ]
            self._overwrite(campaign, there)

    def destroy_all(self, campaign: str) -> None:
        """Destroy a campaign's keys with their file; harmless if there is none."""
        with self._lock:
            path = self._path(campaign)
            self._unsettled.pop(campaign, None)
            self._next.pop(campaign, None)
            if path.exists():
                self._overwrite(campaign, list(range(-(-self._size(campaign) // _KEY_BYTES))))
                path.unlink()
                sync(self._folder)

    # -- within --------------------------------------------------------------------------------------------------------

    def _key(self, campaign: str, where: bytes) -> bytes | None:
        with self._lock:
            if self._mark(campaign).exists():  # a file that came back from a copy is still destroyed
                return None
            place = _place(where)
            unsettled = self._unsettled.get(campaign, {}).get(place)
            if unsettled is not None:
                return unsettled
            try:
                with self._path(campaign).open("rb") as file:
                    file.seek(place * _KEY_BYTES)
                    key = file.read(_KEY_BYTES)
            except FileNotFoundError:
                return None
        return key if len(key) == _KEY_BYTES and key != _GONE else None

    def _overwrite(self, campaign: str, places: list[int]) -> None:
        """Overwrite places with zeros, durably; those beyond the end hold nothing."""
        end = -(-self._size(campaign, missing=0) // _KEY_BYTES)
        there = [place for place in places if place < end]
        if there:
            with self._written(campaign) as file:
                for first, many in _runs(there):
                    _write(file, _GONE * many, first * _KEY_BYTES)

    @contextmanager
    def _written(self, campaign: str) -> Iterator[int]:
        """A campaign's file, which is durable afterwards."""
        try:
            file = os.open(self._path(campaign), os.O_WRONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            raise self._missing(campaign) from None
        try:
            yield file
            os.fsync(file)
        finally:
            os.close(file)

    def _content(self, campaign: str) -> bytes:
        try:
            return self._path(campaign).read_bytes()
        except FileNotFoundError:
            return b""

    def _size(self, campaign: str, *, missing: int | None = None) -> int:
        try:
            return self._path(campaign).stat().st_size
        except FileNotFoundError:
            if missing is not None:
                return missing
            raise self._missing(campaign) from None

    def _missing(self, campaign: str) -> CampaignError:
        return CampaignError(f"The keys to the answers of campaign {campaign} are not there.")

    def _path(self, campaign: str) -> Path:
        return self._folder / f"{campaign}.answers"

    def _mark(self, campaign: str) -> Path:
        return self._folder / f"{campaign}.destroyed"


def _parts(sealed: bytes) -> tuple[bytes, bytes, bytes]:
    """Where the key is, the nonce, and what is encrypted."""
    end = _PLACE_BYTES + _NONCE_BYTES
    return sealed[:_PLACE_BYTES], sealed[_PLACE_BYTES:end], sealed[end:]


def _place(where: bytes) -> int:
    return int.from_bytes(where, "big")


def _bound_to(campaign: str, participant: str, where: bytes) -> bytes:
    return f"hushbid answers 1\n{campaign}\n{participant}\n{_place(where)}".encode()


def _runs(places: list[int]) -> Iterator[tuple[int, int]]:
    """Neighbouring places, in order, as their first and how many."""
    first, many = places[0], 0
    for place in places:
        if place != first + many:
            yield first, many
            first, many = place, 0
        many += 1
    yield first, many


def _write(file: int, content: bytes, at: int) -> None:
    while content:
        done = os.pwrite(file, content, at)
        content, at = content[done:], at + done


_NAME = re.compile(r"[a-z0-9]{1,64}")


class Vault:
    """The keys in one folder to one kind of content."""

    def __init__(self, folder: Path, *, to: Literal["value", "payout"] = "value") -> None:
        """``to`` what they are: what is sealed as one kind opens as no other."""
        self.answers = AnswerKeys(folder)
        """The keys to answers that are given with a price."""

        self._folder = folder
        self._to = to
        self._known: dict[str, AESGCM] = {}
        self._lock = threading.Lock()

    def create(self, campaign: str) -> None:
        """Make a campaign's key, durably, unless it has one; refused if it had one that was destroyed."""
        with self._lock:
            self._require_never_destroyed(campaign)
            if not self._path(campaign).exists():
                write_whole(self._path(campaign), secrets.token_bytes(_KEY_BYTES))  # before any value is sealed

    def create_for_answers(self, campaign: str) -> None:
        """Make the place for the keys to a campaign's answers, likewise."""
        with self._lock:
            self._require_never_destroyed(campaign)
            self.answers.create(self._name(campaign))

    def seal(self, campaign: str, participant: str, value: bytes) -> bytes:
        """A value that only this campaign's key opens, for this participant only."""
        nonce = secrets.token_bytes(_NONCE_BYTES)
        return nonce + self._cipher(campaign).encrypt(nonce, value, self._bound_to(campaign, participant))

    def open(self, campaign: str, participant: str, sealed: bytes) -> bytes:
        """The inverse of `seal`."""
        nonce, ciphertext = sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:]
        try:
            return self._cipher(campaign).decrypt(nonce, ciphertext, self._bound_to(campaign, participant))
        except InvalidTag:
            raise CampaignError(
                f"The {self._to} of participant {participant} cannot be opened: it or the key of campaign {campaign}"
                " was changed."
            ) from None

    def holds(self, campaign: str) -> bool:
        """Whether the campaign's key is there."""
        return self._path(campaign).exists()

    def was_destroyed(self, campaign: str) -> bool:
        """Whether the campaign's key was destroyed."""
        return self._mark(campaign).exists()

    def destroy(self, campaign: str) -> None:
        """Destroy a campaign's key for ever, and all to its answers; harmless if that was done before."""
        with self._lock:
            self._known.pop(campaign, None)
            # the mark first: after a crash in between the key counts as destroyed
            if not self._mark(campaign).exists():
                write_whole(self._mark(campaign), b"")
            path = self._path(campaign)
            if path.exists():
                # overwritten before its name goes, for what that is worth
                descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
                try:
                    os.write(descriptor, bytes(_KEY_BYTES))
                    os.fsync(descriptor)
                finally:
                    os.close(descriptor)
                path.unlink()
                sync(self._folder)
            self.answers.destroy_all(self._name(campaign))

    def _require_never_destroyed(self, campaign: str) -> None:
        if self._mark(campaign).exists():
            raise Conflict(f"The key of campaign {campaign} was destroyed: it is over, and takes no more values.")

    def _cipher(self, campaign: str) -> AESGCM:
        with self._lock:
            if campaign not in self._known:
                try:
                    key = self._path(campaign).read_bytes()
                except FileNotFoundError:
                    raise CampaignError(f"The key of campaign {campaign} is not there.") from None
                # a key that came back from a backup is still a destroyed one
                if len(key) != _KEY_BYTES or self._mark(campaign).exists():
                    raise CampaignError(f"The key of campaign {campaign} is destroyed or damaged.")
                self._known[campaign] = AESGCM(key)
            return self._known[campaign]

    def _path(self, campaign: str) -> Path:
        return self._folder / f"{self._name(campaign)}.key"

    def _mark(self, campaign: str) -> Path:
        return self._folder / f"{self._name(campaign)}.destroyed"

    def _name(self, campaign: str) -> str:
        if not _NAME.fullmatch(campaign):
            raise CampaignError("A campaign's identifier must be small letters and digits.")
        return campaign if self._to == "value" else f"{campaign}-{self._to}"

    def _bound_to(self, campaign: str, participant: str) -> bytes:
        return f"hushbid {self._to} 1\n{campaign}\n{participant}".encode()
