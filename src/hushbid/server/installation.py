"""The folder of an installation::

    hushbid.sqlite3     the database, unless it is PostgreSQL
    installation        a random name, which the database holds too: the two belong together
    keys/identity.key   turns external ids into persons; without it nobody can tell who is who
    keys/signing/       the keys receipts are signed with (`hushbid.receipts.key_folder`)
    keys/data/          one key per campaign to people's values, until it is destroyed (`hushbid.server.vault`), and
                        a mark for each decision and release that stands in claims/
    claims/             decisions and releases, each drawn once and never again (`hushbid.disclosure.claims`)
    privacy-cap         the most that anybody may give up over all campaigns, if there is a limit
    lock                held by the server that runs here

A backup holds the database only. Keys and claims stay where they are, so going back to an older database can neither
bring a destroyed key back nor permit a second release.
"""

import math
import secrets
from dataclasses import dataclass
from pathlib import Path

from hushbid.durable import sync, write_whole
from hushbid.errors import CampaignError
from hushbid.receipts.key_folder import KeyFolder

_KEY_BYTES = 32


@dataclass(frozen=True, slots=True)
class Home:
    """An installation's folder."""

    path: Path

    @classmethod
    def at(cls, path: str | Path) -> "Home":
        """The installation in a folder: created there if there is none, refused if a part of it is missing.

        A new identity key would forget what everybody has given up, a new claims folder what was released. (Single
        claims that are missing are found out by `hushbid.server.service.standing`.)
        """
        home = cls(Path(path).resolve())
        try:
            if not home._name.exists():
                home._create()
        except OSError as problem:
            raise CampaignError(f"The folder {home.path} cannot be used: {problem.strerror}.") from None
        # what must never be made anew is only ever restored
        for part in (home.claims, home.data_keys, home._identity, home.keys / "signing"):
            if not part.exists():
                raise CampaignError(f"{part} is missing, and must not be made anew: restore it.")
        return home

    def _create(self) -> None:
        """Everything that is missing; the name comes last, so that a creation that was interrupted is taken up."""
        for folder in (self.path, self.keys, self.data_keys, self.claims):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not self.signing.exists:
            self.signing.create()
        for file in (self._identity, self._name):
            if not file.exists():
                write_whole(file, secrets.token_hex(_KEY_BYTES).encode())

    @property
    def _name(self) -> Path:
        return self.path / "installation"

    @property
    def _identity(self) -> Path:
        return self.keys / "identity.key"

    @property
    def database(self) -> Path:
        """The SQLite file."""
        return self.path / "hushbid.sqlite3"

    @property
    def keys(self) -> Path:
        """All keys."""
        return self.path / "keys"

    @property
    def data_keys(self) -> Path:
        """The keys to people's values."""
        return self.keys / "data"

    @property
    def signing(self) -> KeyFolder:
        """The keys receipts are signed with."""
        return KeyFolder(self.keys / "signing")

    @property
    def claims(self) -> Path:
        """What was decided and drawn, once."""
        return self.path / "claims"

    def name(self) -> str:
        """The installation's random name."""
        return self._read(self._name).hex()

    def identity_key(self) -> bytes:
        """The key that turns external ids into persons."""
        return self._read(self._identity)

    def privacy_cap(self) -> float | None:
        """The most that anybody may give up over all campaigns, as it was said last; None if there is no limit."""
        try:
            found = float(self._cap.read_text("ascii"))
        except FileNotFoundError:
            return None
        except (OSError, ValueError):
            found = math.nan
        if not 0.0 < found < math.inf:
            raise CampaignError(f"{self._cap} is damaged: say the limit again.")
        return found

    def keep_privacy_cap(self, cap: float | None) -> None:
        """Let a limit hold from now on, also for a server that is started without saying it, or with an old backup."""
        if cap is None:
            self._cap.unlink(missing_ok=True)
            sync(self.path)
            return
        write_whole(self._cap, repr(float(cap)).encode(), replace=True)

    @property
    def _cap(self) -> Path:
        return self.path / "privacy-cap"

    def _read(self, path: Path) -> bytes:
        try:
            content = bytes.fromhex(path.read_text("ascii"))
        except (OSError, ValueError):
            raise CampaignError(f"{path} cannot be read, and must not be made anew: restore it.") from None
        if len(content) != _KEY_BYTES:
            raise CampaignError(f"{path} is damaged, and must not be made anew: restore it.")
        return content
