"""What stands outside the database, once and for all, in the claims folder: decisions, releases, withdrawals."""

from hushbid.campaign.home import Home, write_durably

_DECISION, _RELEASE, _SUFFIX = "decision-", "release-", ".json"
_WITHDRAWN = "withdrawn-"


def decision_name(campaign_id: str) -> str:
    """The name under which a campaign's decision stands."""
    return f"{_DECISION}{campaign_id}"


def release_name(campaign_id: str) -> str:
    """The name under which a campaign's release stands."""
    return f"{_RELEASE}{campaign_id}"


def release_stands(home: Home, campaign_id: str) -> bool:
    """Whether a campaign's estimate has been drawn."""
    return (home.claims / f"{release_name(campaign_id)}{_SUFFIX}").exists()


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
