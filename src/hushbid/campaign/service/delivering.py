"""After the decision: data come in, sealed before they are stored. The first delivery counts."""

import hashlib
import math
import struct
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hushbid.campaign.domain import rules
from hushbid.campaign.domain.entities import Campaign, Participant
from hushbid.campaign.domain.states import CampaignState, ParticipantState
from hushbid.campaign.domain.views import ParticipationView
from hushbid.campaign.service.context import Context
from hushbid.campaign.service.reporting import of_link
from hushbid.campaign.service.shown import participation_view
from hushbid.campaign.store import events, ledger, participants
from hushbid.campaign.store.transaction import Transaction
from hushbid.disclosure import PrivatizedValue
from hushbid.disclosure.local import grid_bits
from hushbid.disclosure.wire import as_ratio
from hushbid.errors import Conflict, DataError, InputError
from hushbid.record.canonical import canonical, parsed

_DOUBLE = struct.Struct("<d")


def deliver(tx: Transaction, context: Context, token: str, given: object) -> ParticipationView:
    """Store a value (central) or a message (local); the same one again changes nothing, another one is refused."""
    campaign, participant = of_link(tx, token)
    if campaign.state is CampaignState.DELIVERING and participant.state is ParticipantState.DELIVERED:
        _require_same(context, campaign, participant, given)
        return participation_view(campaign, participant)
    rules.require_deliveries_taken(campaign, tx.now)
    rules.require_may_deliver(participant)
    delivery = context.vault.seal(campaign.id, participant.id, _encoded(campaign, participant, given))
    changed = replace(participant, state=ParticipantState.DELIVERED, delivery=delivery, delivered_at=tx.now)
    participants.delivered(tx, token, changed)
    if campaign.settings.setting == "local" and participant.person_id is not None:
        assert participant.promised is not None
        ledger.settle(  # what was sent has been given up, whether it will be used or not
            tx.writing,
            campaign.id,
            participant.person_id,
            kind="delivered",
            amount=participant.promised,
            at=tx.at,
        )
    body = {"participant": participant.id, "sealed": hashlib.sha256(delivery).hexdigest()}
    events.append(tx, campaign.id, "delivered", body)
    return participation_view(campaign, changed)


def opened(context: Context, campaign: Campaign, participant: Participant) -> float | dict[str, Any]:
    """What a participant delivered, for the release only."""
    assert participant.delivery is not None
    content = context.vault.open(campaign.id, participant.id, participant.delivery)
    if campaign.settings.setting == "central":
        return float(_DOUBLE.unpack(content)[0])
    return parsed(content)


def _require_same(context: Context, campaign: Campaign, participant: Participant, given: object) -> None:
    assert participant.delivery is not None
    first = context.vault.open(campaign.id, participant.id, participant.delivery)
    if first != _encoded(campaign, participant, given):
        raise Conflict("Something else was delivered before, and the first delivery stands.")


def _encoded(campaign: Campaign, participant: Participant, given: object) -> bytes:
    """What is sealed; a central value always has the same length."""
    if campaign.settings.setting == "central":
        return _DOUBLE.pack(_checked_value(campaign, given))
    return canonical(_checked_message(participant, given).to_dict())


def _checked_value(campaign: Campaign, given: object) -> float:
    low, high = campaign.settings.bounds
    problem = f"value must be a number from {low:g} to {high:g}."
    if isinstance(given, bool) or not isinstance(given, (int, float)):
        raise DataError(problem)
    try:
        value = float(given) + 0.0
    except OverflowError:
        value = math.inf
    if not low <= value <= high:
        raise DataError(problem)
    return value


def _checked_message(participant: Participant, given: object) -> PrivatizedValue:
    assert participant.promised is not None
    if not isinstance(given, (Mapping, PrivatizedValue)):
        raise DataError("message must be one made by privatize: the value itself must not be sent.")
    try:
        message = PrivatizedValue.from_dict(given.to_dict() if isinstance(given, PrivatizedValue) else given)
    except InputError as problem:
        raise DataError(f"message cannot be read: {problem}") from None
    if message.epsilon != as_ratio(participant.promised):
        raise DataError("message must be made with exactly the privacy loss that was promised.")
    if message.grid_bits != grid_bits(participant.promised):
        raise DataError(f"message must be on the grid of {grid_bits(participant.promised)} bits.")
    return message
