"""Where a participant's device keeps the noisy value it sends, so that it never draws a second one.

Two different noisy values of one datum tell more than one. So the first is stored before it is sent, under a name that
depends on nothing the server says: the hash of the participant's own secret. A server that claims another campaign,
pseudonym, range or privacy loss later on gets the stored message, or a refusal, but no second draw.
"""

import hashlib
import os
import threading
from pathlib import Path
from typing import Protocol

from hushbid.disclosure import PrivatizedValue, privatize
from hushbid.errors import ReleaseError

Bounds = tuple[float, float]


class Keeper(Protocol):
    """Draws a person's noisy value once."""

    def message(self, token: str, value: float, privacy_loss: float, bounds: Bounds) -> PrivatizedValue:
        """The first noisy value that was drawn for this secret; drawn now if there is none."""


class MessageFolder:
    """Keeps messages as files, which survive the process, for the owner's eyes only."""

    def __init__(self, path: str | Path | None = None) -> None:
        """The folder is ``HUSHBID_STORE``, or one of the account's own, if none is given."""
        self.path = default_folder() if path is None else Path(path)

    def message(self, token: str, value: float, privacy_loss: float, bounds: Bounds) -> PrivatizedValue:
        """The message in the file, or a new one, stored durably before it is returned."""
        return privatize(value, privacy_loss, bounds, store=self.path / _name(token))


class MessageMemory:
    """Keeps messages while the process lives: for programs that play people who do not exist."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[float, Bounds, PrivatizedValue]] = {}
        self._lock = threading.Lock()

    def message(self, token: str, value: float, privacy_loss: float, bounds: Bounds) -> PrivatizedValue:
        """The message in memory, or a new one."""
        with self._lock:
            kept = self._kept.get(token)
            if kept is None:
                kept = self._kept[token] = (privacy_loss, bounds, privatize(value, privacy_loss, bounds))
        if kept[:2] != (privacy_loss, bounds):
            raise ReleaseError("A value was privatized before with another privacy loss or other bounds.")
        return kept[2]


def default_folder() -> Path:
    """Where messages are kept if nobody says otherwise."""
    named = os.environ.get("HUSHBID_STORE")
    if named:
        return Path(named)
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "hushbid" / "values"


def _name(token: str) -> str:
    return f"link-{hashlib.sha256(token.encode()).hexdigest()[:32]}"
