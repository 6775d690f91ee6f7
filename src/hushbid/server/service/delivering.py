"""After the decision: data come in, sealed before they are stored. The first delivery counts.

Whoever delivers again is answered without a look at the value, neither the stored one nor the one she sends: an answer
that depended on them would tell, guess by guess, what is sealed. That an acknowledgement got lost is seen by the random
nonce that a client draws for a delivery and sends with every attempt at it; of the nonce a hash is stored.
"""

import hashlib
import hmac
import math
import re
import struct
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hushbid.disclosure import PrivatizedValue
from hushbid.disclosure.local import grid_bits
from hushbid.disclosure.message import as_ratio
from hushbid.documents import canonical, parsed
from hushbid.errors import Conflict, DataError, InputError
from hushbid.server.domain import rules
from hushbid.server.domain.entities import Campaign, Participant
from hushbid.server.domain.states import ParticipantState
from hushbid.server.domain.views import ParticipationView
from hushbid.server.service.context import Context
from hushbid.server.service.participation import acting
from hushbid.server.service.views_of import participation_view
from hushbid.server.store import events, ledger, participants
from hushbid.server.store.rows import hashed
from hushbid.server.store.transaction import Transaction

_DOUBLE = struct.Struct("<d")
_NONCE = re.compile(r"[0-9a-f]{32}", flags=re.ASCII)


def deliver(tx: Transaction, context: Context, secret: str, given: object, nonce: object) -> ParticipationView:
    """Store a value (central) or a message (local); again with the same nonce changes nothing, another is refused."""
    name = _checked_nonce(nonce)
    campaign, participant = acting(tx, secret)
    # again: the nonce alone tells a repetition from a second delivery
    if participant.state is ParticipantState.DELIVERED:
        if not hmac.compare_digest(participant.delivery_nonce or "", name):
            raise Conflict("Something was delivered before, and the first delivery stands.")
        return participation_view(campaign, participant)
    rules.require_deliveries_taken(campaign, tx.now)
    rules.require_may_deliver(participant)
    # sealed before it is stored; the log gets a hash of the ciphertext
    delivery = context.vault.seal(campaign.id, participant.id, _encoded(campaign, participant, given))
    changed = replace(
        participant, state=ParticipantState.DELIVERED, delivery=delivery, delivery_nonce=name, delivered_at=tx.now
    )
    participants.delivered(tx, changed, secret)
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


def _checked_nonce(nonce: object) -> str:
    """What is stored of a nonce."""
    if not isinstance(nonce, str) or not _NONCE.fullmatch(nonce):
        raise InputError(
            "nonce must be 32 hexadecimal digits 0-9 and a-f, drawn at random for this delivery.", field="nonce"
        )
    return hashed(nonce)


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
        raise DataError("message must be one made by privatize: the value itself must not be sent.", field="message")
    try:
        message = PrivatizedValue.from_dict(given.to_dict() if isinstance(given, PrivatizedValue) else given)
    except InputError as problem:
        raise DataError(f"message cannot be read: {problem}", field="message") from None
    if message.epsilon != as_ratio(participant.promised):
        raise DataError("message must be made with exactly the privacy loss that was promised.", field="message")
    if message.grid_bits != grid_bits(participant.promised):
        raise DataError(f"message must be on the grid of {grid_bits(participant.promised)} bits.", field="message")
    return message
