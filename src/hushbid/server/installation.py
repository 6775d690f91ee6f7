"""The folder of an installation::

    hushbid.sqlite3     the database, unless it is PostgreSQL
    folder.format       which format and version it is; another one is refused by name
    installation        a random name, which the database holds too: the two belong together
    keys/identity.key   turns external ids into persons; without it nobody can tell who is who
    keys/signing/       the keys receipts are signed with (`hushbid.receipts.key_folder`)
    keys/data/          one key per campaign to people's values (`hushbid.server.vault`), or one for everybody's answers
                        (`hushbid.server.vault`), and one to where they are paid, until each is destroyed; and a
                        mark for each decision and release that stands in claims/
    claims/             decisions and releases, each drawn once and never again (`hushbid.disclosure.ledger.files`)
    privacy-cap         the most that anybody may give up over all campaigns, if there is a limit
    lock                held by the server that runs here

A backup holds the database only. Keys and claims stay where they are, so going back to an older database can neither
bring a destroyed key back nor permit a second release.

What was decided, drawn or withdrawn stands in the claims folder once and for all. That something was decided or drawn
is marked beside the keys as well, and every start marks what a crash left unmarked. A claims folder that
was emptied, or put back from an older copy, is then found out, instead of a second decision or a second estimate; so is
one that lacks what the database says was decided or drawn.
"""

import hashlib
import hmac
import math
import secrets
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from hushbid.common.durable import sync, write_whole
from hushbid.errors import CampaignError, Unwritable
from hushbid.receipts.key_folder import KeyFolder
from hushbid.server.failpoints import Crash, no_crash
from hushbid.server.model.entities import Campaign
from hushbid.server.model.settings import LEAST_PEOPLE
from hushbid.server.model.states import CampaignState
from hushbid.server.vault import Vault

_KEY_BYTES = 32
_DECISION, _RELEASE, _SUFFIX = "decision-", "release-", ".json"
_WITHDRAWN = "withdrawn-"
_MARK = ".stands"
_FORMAT = "hushbid server folder, version 3\n"


@dataclass(frozen=True, slots=True)
class DataDir:
    """An installation's folder."""

    path: Path

    @classmethod
    def at(cls, path: str | Path) -> "DataDir":
        """The installation in a folder: created there if there is none, refused if a part of it is missing.

        A new identity key would forget what everybody has given up, a new claims folder what was released. (Single
        claims that are missing are found out by `require_all_standing`.)
        """
        home = cls(Path(path).resolve())
        try:
            if not home._name.exists():
                home._create()
            known = home._format.read_text("utf-8") if home._format.exists() else None
        except OSError as problem:
            raise Unwritable(f"The folder {home.path} cannot be used: {problem.strerror}.") from None
        # what another version decided and drew cannot be read here, and must not be decided or drawn again
        if known != _FORMAT:
            raise CampaignError(
                f"{home.path} was made by {'an older' if known is None else 'another'} version of"
                f" Hushbid: {home._format.name} must say {_FORMAT.strip()!r}. Use it with the version that made it, or"
                " start with a new folder and an empty database."
            )
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
        if not self._format.exists():
            write_whole(self._format, _FORMAT.encode())
        for file in (self._identity, self._name):
            if not file.exists():
                write_whole(file, secrets.token_hex(_KEY_BYTES).encode())

    @property
    def _format(self) -> Path:
        return self.path / "folder.format"

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


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Installation:
    """What every use case may need beside the database: the folder, its keys, and the limits that hold."""

    home: DataDir
    vault: Vault
    payouts: Vault
    """The keys to where people are to be paid."""

    identity_key: bytes
    privacy_cap: float | None
    """Nobody may give up more than this over all campaigns; None if there is no limit."""

    crash: Crash
    least_people: int
    """Nothing is bought with fewer bids, whatever a campaign's settings say."""

    @classmethod
    def of(cls, home: DataDir, *, crash: Crash = no_crash, least_people: int = LEAST_PEOPLE) -> "Installation":
        """The installation in a folder, with the limit that was said last."""
        return cls(
            home=home,
            vault=Vault(home.data_keys),
            payouts=Vault(home.data_keys, to="payout"),
            identity_key=home.identity_key(),
            privacy_cap=home.privacy_cap(),
            crash=crash,
            least_people=least_people,
        )

    def identity(self, external_id: str) -> str:
        """The identity behind an external id such as an address: the same for all its ways of writing."""
        name = unicodedata.normalize("NFKC", external_id).casefold().strip()
        return hmac.new(self.identity_key, name.encode(), hashlib.sha256).hexdigest()


# -- what stands in the claims folder ----------------------------------------------------------------------------------


def decision_name(campaign_id: str) -> str:
    """The name under which a campaign's decision stands."""
    return f"{_DECISION}{campaign_id}"


def release_name(campaign_id: str) -> str:
    """The name under which a campaign's release stands."""
    return f"{_RELEASE}{campaign_id}"


def release_stands(home: DataDir, campaign_id: str) -> bool:
    """Whether a campaign's estimate has been drawn."""
    return (home.claims / f"{release_name(campaign_id)}{_SUFFIX}").exists()


def mark_standing(home: DataDir, name: str) -> None:
    """Note beside the keys that a decision or a release stands; before anybody sees any of it."""
    mark = home.data_keys / f"{name}{_MARK}"
    if not mark.exists():
        write_whole(mark, b"")


def require_standing(home: DataDir, name: str) -> None:
    """Refuse to go on if a decision or a release is marked and no longer there."""
    if (home.data_keys / f"{name}{_MARK}").exists():
        _require_claim(home, name)


def require_all_standing(home: DataDir, known: Iterable[Campaign]) -> None:
    """Refuse to start if anything is missing that is marked, or that the database says was decided or drawn; then mark
    all that is there, which a crash may have prevented."""
    # marked, or decided by the database, and gone: refuse
    for mark in sorted(home.data_keys.glob(f"*{_MARK}")):
        _require_claim(home, mark.name.removesuffix(_MARK))
    for campaign in known:
        if campaign.state.is_decided:
            _require_claim(home, decision_name(campaign.id))
        if campaign.state in (CampaignState.RELEASED, CampaignState.CLOSED):
            _require_claim(home, release_name(campaign.id))
    # there but not marked: a crash came between
    for kind in (_DECISION, _RELEASE):
        for claim in sorted(home.claims.glob(f"{kind}*{_SUFFIX}")):
            mark_standing(home, claim.name.removesuffix(_SUFFIX))


def _require_claim(home: DataDir, name: str) -> None:
    claim = home.claims / f"{name}{_SUFFIX}"
    if not claim.exists():
        raise CampaignError(f"{claim} is missing, and must not be made anew: restore the folder of claims.")


def decided(home: DataDir) -> list[str]:
    """The campaigns whose decision stands."""
    found = sorted(path.name for path in home.claims.glob(f"{_DECISION}*{_SUFFIX}"))
    return [name.removeprefix(_DECISION).removesuffix(_SUFFIX) for name in found]


def mark_withdrawn(home: DataDir, participant_id: str) -> None:
    """Note durably that somebody withdrew."""
    mark = home.claims / f"{_WITHDRAWN}{participant_id}"
    if not mark.exists():
        write_whole(mark, b"")


def all_withdrawn(home: DataDir) -> set[str]:
    """The pseudonyms of everybody who ever withdrew."""
    return {path.name.removeprefix(_WITHDRAWN) for path in home.claims.glob(f"{_WITHDRAWN}*")}
