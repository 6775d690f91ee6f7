"""What stands outside the database, once and for all, in the claims folder: decisions, releases, withdrawals.

That something was decided or drawn is marked beside the keys as well, and every start marks what it finds there from
older versions. A claims folder that was emptied, or put back from an older copy, is then found out, instead of a second
decision or a second estimate; so is one that lacks what the database says was decided or drawn.
"""

from collections.abc import Iterable

from hushbid.durable import write_whole
from hushbid.errors import CampaignError
from hushbid.server.domain.entities import Campaign
from hushbid.server.domain.states import CampaignState
from hushbid.server.installation import Home

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
        write_whole(mark, b"")


def require_standing(home: Home, name: str) -> None:
    """Refuse to go on if a decision or a release is marked and no longer there."""
    if (home.data_keys / f"{name}{_MARK}").exists():
        _require_claim(home, name)


def require_all_standing(home: Home, known: Iterable[Campaign]) -> None:
    """Refuse to start if anything is missing that is marked, or that the database says was decided or drawn; then mark
    all that is there, which older versions did not."""
    # marked, or decided by the database, and gone: refuse
    for mark in sorted(home.data_keys.glob(f"*{_MARK}")):
        _require_claim(home, mark.name.removesuffix(_MARK))
    for campaign in known:
        if campaign.state.is_decided:
            _require_claim(home, decision_name(campaign.id))
        if campaign.state in (CampaignState.RELEASED, CampaignState.CLOSED):
            _require_claim(home, release_name(campaign.id))
    # there but not marked: of an older version
    for kind in (_DECISION, _RELEASE):
        for claim in sorted(home.claims.glob(f"{kind}*{_SUFFIX}")):
            mark_standing(home, claim.name.removesuffix(_SUFFIX))


def _require_claim(home: Home, name: str) -> None:
    claim = home.claims / f"{name}{_SUFFIX}"
    if not claim.exists():
        raise CampaignError(f"{claim} is missing, and must not be made anew: restore the folder of claims.")


def decided(home: Home) -> list[str]:
    """The campaigns whose decision stands."""
    found = sorted(path.name for path in home.claims.glob(f"{_DECISION}*{_SUFFIX}"))
    return [name.removeprefix(_DECISION).removesuffix(_SUFFIX) for name in found]


def mark_withdrawn(home: Home, participant_id: str) -> None:
    """Note durably that somebody withdrew."""
    mark = home.claims / f"{_WITHDRAWN}{participant_id}"
    if not mark.exists():
        write_whole(mark, b"")


def all_withdrawn(home: Home) -> set[str]:
    """The pseudonyms of everybody who ever withdrew."""
    return {path.name.removeprefix(_WITHDRAWN) for path in home.claims.glob(f"{_WITHDRAWN}*")}
