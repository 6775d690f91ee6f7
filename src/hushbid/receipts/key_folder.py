"""A server's signing keys in a folder: the secret of the key in use, and the public list of all.

::

    keys.json         the list (`hushbid.receipts.keys`), replaced in one step
    NUMBER.pem        the secret half of the key in use, for its owner's eyes only
    lock              held while a key is made, so that two never become the newest at once

A secret is written before the list names it and removed once its successor is listed, so a crash at any moment leaves a
list whose newest key can sign. Give copies of ``keys.json`` away; never the rest.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from hushbid.common.documents import canonical, parsed, read_content, write_content
from hushbid.common.durable import locked, open_lock, require_locks
from hushbid.errors import OutputExists, RecordError
from hushbid.receipts.keys import KeyList, SigningKey, first_list, rotated

LIST = "keys.json"


class KeyFolder:
    """The keys in one folder; reads it again each time, so that a rotation is noticed without a restart."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    @property
    def exists(self) -> bool:
        """Whether a key has been made here."""
        return (self.path / LIST).exists()

    def create(self, *, at: datetime | None = None) -> KeyList:
        """Make the first key; refused if there is one."""
        with self._locked():
            if self.exists:
                raise OutputExists(f"{self.path} has a key already; rotate it to get another.")
            key = SigningKey.create()
            self._write_secret(1, key)
            return self._write_list(first_list(key, at=at or datetime.now(UTC)))

    def listed(self) -> KeyList:
        """The public list."""
        if not self.exists:
            raise RecordError(f"{self.path} has no signing key; 'hushbid keys create' makes one.")
        return KeyList.from_dict(parsed(read_content(self.path / LIST)))

    def current(self) -> SigningKey:
        """The key in use."""
        listed = self.listed()
        try:
            key = self._read_secret(listed.newest.number)
        except RecordError:
            listed = self.listed()  # somebody may have rotated between the two readings
            key = self._read_secret(listed.newest.number)
        if key.public != listed.newest.public_key:
            raise RecordError(f"{self._secret(listed.newest.number)} does not hold the key that {LIST} names.")
        return key

    def rotate(self, *, leaked: bool = False, at: datetime | None = None) -> KeyList:
        """Make a new key and let it take over; the old one endorses it, or is withdrawn if it ``leaked``."""
        with self._locked():
            listed = self.listed()
            old = None if leaked else self.current()
            new = SigningKey.create()
            number = listed.newest.number + 1
            self._write_secret(number, new)  # before the list names it
            changed = self._write_list(rotated(listed, old, new, at=at or datetime.now(UTC), leaked=leaked))
            self._secret(number - 1).unlink(missing_ok=True)  # once its successor is listed
            return changed

    def _secret(self, number: int) -> Path:
        return self.path / f"{number}.pem"

    def _read_secret(self, number: int) -> SigningKey:
        return SigningKey.from_pem(read_content(self._secret(number)))

    def _write_secret(self, number: int, key: SigningKey) -> None:
        # A file of that number is left from a crash before its key was listed: nothing was ever signed with it.
        write_content(self._secret(number), key.to_pem(), overwrite=True)

    def _write_list(self, listed: KeyList) -> KeyList:
        write_content(self.path / LIST, canonical(listed.to_dict()) + b"\n", overwrite=True)
        return listed

    @contextmanager
    def _locked(self) -> Iterator[None]:
        require_locks("Making a key", RecordError)
        try:
            self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
            descriptor = open_lock(self.path / "lock")
        except OSError as problem:
            raise RecordError(f"{self.path} cannot be used for keys: {problem.strerror}.") from None
        with locked(descriptor):
            yield
