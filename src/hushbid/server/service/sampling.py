"""A campaign as somebody who is made up would see it: for its analyst, before anybody is asked. Changes nothing.

She is the first of so many people as a forecast counts with, asks for the price in the middle, and is offered what such
a price leads to on average over a few simulated campaigns.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from hushbid.common.documents import content_hash
from hushbid.server.model.agreement import Passage
from hushbid.server.model.entities import Campaign, Participant
from hushbid.server.model.states import CampaignState, ParticipantState
from hushbid.server.model.views import ConsentView, MenuView, ParticipationView, Principal
from hushbid.server.service.agreeing import consent_view
from hushbid.server.service.forecast import sample_menu
from hushbid.server.service.use_case import ServiceContext, steps
from hushbid.server.service.views_of import participation_view
from hushbid.server.service.what_if import people_like
from hushbid.server.store import campaigns, participants

_USUAL, _MOST = 100, 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """What she sees."""

    invited: ParticipationView
    """Before she has named a price."""

    offered: ParticipationView
    """When it is decided that something is bought from her."""

    menu: MenuView
    campaign: Campaign
    participant: Participant

    def consent(self, secret: str, *, language: str, told: Sequence[Passage] = ()) -> ConsentView:
        """What she would be asked to agree to."""
        return consent_view(self.campaign, self.participant, language=language, told=told)


@steps(by="analyst")
def sample(context: ServiceContext, who: Principal, campaign_id: str) -> Sample:
    """A campaign in the eyes of somebody who does not exist."""
    with context.read() as connection:
        campaign = campaigns.get(connection, campaign_id)
        people = participants.count(connection, campaign_id) or _USUAL
    counted = max(min(people, _MOST), 2, len(campaign.settings.weights))
    menu = sample_menu(campaign.settings, counted)
    bid, promised, payment = _offer(menu, campaign.settings.currency.decimals)
    her = _synthetic(campaign, counted)
    offered = replace(
        her,
        state=ParticipantState.PROMISED,
        bid=bid,
        bid_at=context.clock(),
        promised=promised,
        payment=payment,
    )
    opened = replace(campaign, opened_at=context.clock())
    return Sample(
        invited=participation_view(replace(opened, state=CampaignState.BIDDING), her),
        offered=participation_view(replace(opened, state=CampaignState.DELIVERING), offered),
        menu=menu,
        campaign=campaign,
        participant=her,
    )


def _offer(menu: MenuView, decimals: int) -> tuple[float, float, int]:
    """The price in the middle, or the dearest below it at which anything is bought, and what it leads to."""
    place = menu.usual // 2
    while place > 0 and menu.chance[place] <= 0.0:
        place -= 1
    chance = max(menu.chance[place], 1e-9)
    payment = math.ceil(menu.payment[place] / chance * 10.0**decimals)
    return menu.bids[place], float(np.clip(menu.privacy_loss[place] / chance, 1e-6, None)), max(payment, 1)


def _synthetic(campaign: Campaign, people: int) -> Participant:
    """Somebody who has done nothing; her pseudonym is another one for other settings."""
    groups, strata = people_like(campaign.settings, people)
    known = {
        "id": f"sample{content_hash(campaign.settings.to_dict())[:20]}",
        "campaign_id": campaign.id,
        "number": 1,
        "label": "",
        "group_name": groups[0],
        "stratum": strata[0] if strata else None,
        "state": ParticipantState.INVITED,
        "salt": b"",
        "paid": 0,
        **dict.fromkeys(("renewed", "own_links", "own_links_used"), ()),
    }
    values = {one.name: None for one in fields(Participant)} | known
    return Participant(**values)  # type: ignore[arg-type]
