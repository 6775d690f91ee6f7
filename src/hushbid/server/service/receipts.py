"""Receipts: one for everybody who was invited, under one root, when a campaign is over (`hushbid.receipts.receipt`)."""

from collections.abc import Sequence

from hushbid.receipts.merkle import Tree
from hushbid.receipts.receipt import Body, tree_of
from hushbid.server.domain import rules
from hushbid.server.domain.entities import Campaign, Participant


def body_of(campaign: Campaign, participant: Participant) -> Body:
    """What a participant's receipt says; the same bytes whenever it is asked for after the campaign is over."""
    return Body(
        campaign=campaign.id,
        participant=participant.id,
        state=participant.state.value,
        report=participant.report,
        promised=participant.promised,
        delivered=participant.delivered_loss,
        payment=rules.payment_owed(participant),
        fee=rules.fee_owed(campaign, participant),
        currency=campaign.settings.currency,
        decimals=campaign.settings.decimals,
        salt=participant.salt,  # keeps others from guessing her entry in the tree
        renewed=participant.renewed,
        own_links=participant.own_links,
        own_links_used=participant.own_links_used,
    )


def tree_over(campaign: Campaign, everybody: Sequence[Participant]) -> Tree:
    """The tree over everybody's receipt."""
    return tree_of([body_of(campaign, participant) for participant in everybody])
