"""Keys to people's values: one per campaign, in files outside the database, destroyed after the release. Where people
are to be paid has keys of its own: neither end of a key is the other's.

A value is stored as AES-256-GCM under its campaign's key, bound to campaign and participant, so a ciphertext that was
moved elsewhere does not decrypt. Once the key is gone, neither the database file, its write-ahead log nor any backup
yields a value. ``NAME.destroyed`` stays behind: a destroyed key is never made anew, so a database restored from a
backup cannot collect values again for a campaign that is over.

Answers that are given with a price have keys of their own, beside these (`hushbid.server.answer_keys`).

What cannot be promised: that a solid-state disk or a copying file system forgets the key's bytes at once. Keep the
folder on an encrypted disk.
"""

import os
import re
import secrets
import threading
from pathlib import Path
from typing import Literal

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from hushbid.common.durable import sync, write_whole
from hushbid.errors import CampaignError, Conflict
from hushbid.server.answer_keys import AnswerKeys

_KEY_BYTES, _NONCE_BYTES = 32, 12
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
