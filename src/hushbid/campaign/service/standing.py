"""What stands outside the database, once and for all, in the claims folder: decisions, releases, withdrawals.

That something was decided or drawn is marked beside the keys as well. A claims folder that was emptied, or put back
from an older copy, is then found out, instead of a second decision or a second estimate.
"""

from hushbid.campaign.home import Home, write_durably
from hushbid.errors import CampaignError

_DECISION, _RELEASE, _SUFFIX = "decision-", "release-", ".json"
_WITHDRAWN = "withdrawn-"
_MARK = ".stands"


def decision_name(campaign_id: str) -> str:
    """The name under which a campaign's decision stands."""
    return f"{_DECISION}{campaign_id}"


def release_name(campaign_id: str) -> str:
    """The name under which a campaign's release stands."""
    return f"{_RELEASE}{campaign_id}"


def release_stands(home: Home, campaign_id: str) -> bool:
    """Whether a campaign's estimate has been drawn."""
    return (home.claims / f"{release_name(campaign_id)}{_SUFFIX}").exists()


def mark_standing(home: Home, name: str) -> None:
    """Note beside the keys that a decision or a release stands; before anybody sees any of it."""
    mark = home.data_keys / f"{name}{_MARK}"
    if not mark.exists():
        write_durably(mark, b"")


def require_standing(home: Home, name: str | None = None) -> None:
    """Refuse to go on where something that was decided or drawn is no longer there: this, or anything at all."""
    marks = sorted(home.data_keys.glob(f"*{_MARK}")) if name is None else [home.data_keys / f"{name}{_MARK}"]
    for mark in marks:
        claim = home.claims / f"{mark.name.removesuffix(_MARK)}{_SUFFIX}"
        if mark.exists() and not claim.exists():
            raise CampaignError(f"{claim} is missing, and must not be made anew: restore the folder of claims.")


def decided(home: Home) -> list[str]:
    """The campaigns whose decision stands."""
    found = sorted(path.name for path in home.claims.glob(f"{_DECISION}*{_SUFFIX}"))
    return [name.removeprefix(_DECISION).removesuffix(_SUFFIX) for name in found]


def mark_withdrawn(home: Home, participant_id: str) -> None:
    """Note durably that somebody withdrew."""
    mark = home.claims / f"{_WITHDRAWN}{participant_id}"
    if not mark.exists():
        write_durably(mark, b"")


def all_withdrawn(home: Home) -> set[str]:
    """The pseudonyms of everybody who ever withdrew."""
    return {path.name.removeprefix(_WITHDRAWN) for path in home.claims.glob(f"{_WITHDRAWN}*")}
