"""Keys to answers that are given together with a price: one for each, in one file for each campaign.

Where people come once (`CampaignSettings.single_visit`), their answers lie here before anybody knows whether they are
bought. So every person's answers are sealed with a key of their own, AES-256-GCM, bound to campaign and participant,
and what is not bought loses its key unopened. ``NAME.answers`` holds the keys, 32 bytes each, in places that are used
once; the sealed answers say in which place their key lies. Neither the database nor a backup holds a key.

- A key is durable before the transaction that stores what it seals: one `settle` for all that commit together.
- To destroy keys is to overwrite their places with zeros, durably; of many at once with a single synchronisation. A
  place lies within one sector, so after a crash a key is there or gone, never half of it.
- Answers that are replaced get a new key in a new place; the old one is destroyed once the new answers are stored.
- A key that no stored answers need was left by a crash, or came back with a copy of the file: `keep_only` destroys it.

What cannot be promised is the same as for a campaign's key (`hushbid.server.vault`): that a solid-state disk or a
copying file system forgets overwritten bytes at once, or that nobody copied the file while the keys were there.
"""

import os
import secrets
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from hushbid.common.durable import sync, write_whole
from hushbid.errors import CampaignError

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
