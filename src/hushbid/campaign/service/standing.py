"""What stands outside the database, once and for all: a campaign's decision and its release, in the claims folder."""

from hushbid.campaign.home import Home

_DECISION, _RELEASE, _SUFFIX = "decision-", "release-", ".json"


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
