"""Taking somebody off a draft's list: she leaves no trace but an event, and her link opens nothing any more.

Only before a campaign opens: from then on the mean is about everybody on the list, and who is on it is not for the
analyst to decide any more. Somebody who wants to leave then declines or withdraws herself.
"""

from sqlalchemy import Connection

from hushbid.errors import Conflict
from hushbid.server.domain import rules
from hushbid.server.domain.states import CampaignState
from hushbid.server.domain.views import CampaignView, ParticipantView, Principal
from hushbid.server.service.views_of import campaign_view, participant_view
from hushbid.server.store import campaigns, events, links, participants
from hushbid.server.store.database import Transaction


def person(connection: Connection, who: Principal, campaign_id: str, participant_id: str) -> ParticipantView:
    """Somebody on a campaign's list, by her pseudonym."""
    rules.require_analyst(who)
    campaign = campaigns.get(connection, campaign_id)
    return participant_view(campaign, participants.get(connection, campaign_id, participant_id), labelled=True)


def remove(tx: Transaction, who: Principal, campaign_id: str, participant_id: str) -> CampaignView:
    """Remove a person from a draft, by their pseudonym, with their link and all that was opened with it.

    Refused once the campaign has opened.
    """
    rules.require_analyst(who)
    campaign = campaigns.get(tx.connection, campaign_id)
    if campaign.state is not CampaignState.DRAFT:
        raise Conflict(
            "Nobody can be removed once the campaign has opened: the average is about everybody on the list. Whoever"
            " does not want to take part declines or withdraws herself."
        )
    participant = participants.get(tx.connection, campaign_id, participant_id)
    links.remove(tx.connection, participant.id)
    participants.remove(tx, participant.id)
    tx.erases = True
    events.append(tx, campaign_id, "removed", {"participant": participant.id})
    return campaign_view(tx.connection, campaign)
