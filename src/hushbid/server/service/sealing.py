"""What is sealed of a person's data, with which key, and the one place where it is opened.

Where people come twice, data come in when it is decided what is bought, under the campaign's key. Where they come once,
answers come in with the price, each under a key of its own, which is destroyed unopened unless they are bought. Nothing
that a person is answered depends on what is sealed, nor on what they send in its place.

In the local setting a device sends a message with noise, made for exactly what was promised. It is checked when it
comes in, by the same reader as at the release, so that a wrong one is refused at once and a right one can follow; once
it is sealed nobody looks at it before the release.
"""

import hmac
import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from hushbid.common.documents import canonical, parsed
from hushbid.disclosure import ReleasePlan
from hushbid.disclosure.local import grid_bits
from hushbid.disclosure.promises import about
from hushbid.disclosure.received import read_messages
from hushbid.errors import DataError, InputError
from hushbid.server.installation import Installation
from hushbid.server.model import rules
from hushbid.server.model.answers import codes_of
from hushbid.server.model.entities import Campaign, Participant
from hushbid.server.model.settings import CampaignSettings
from hushbid.server.store.database import Transaction
from hushbid.server.store.schema import hashed

_DOUBLE = struct.Struct("<d")
_NONCE = re.compile(r"[0-9a-f]{32}", flags=re.ASCII)


@dataclass(frozen=True, slots=True, repr=False)
class Sealed:
    """New answers, sealed, and what is stored of their nonce."""

    content: bytes
    nonce: str


def sealed_with_bid(
    tx: Transaction, campaign: Campaign, participant: Participant, given: object, nonce: object
) -> Sealed | None:
    """The answers that came with a bid, under a new key; None if there are none to be stored.

    Those that come again with their nonce are not looked at. Refused are answers where people come twice, and a first
    bid without them where people come once.
    """
    name = "answers" if campaign.settings.asked else "value"
    if not campaign.settings.server.single_visit:
        if given is not None:
            told = f"{name} must be left out of a bid: this campaign asks for data after its decision."
            raise DataError(told, field=name)
        return None
    if given is None:
        if participant.delivery is None:
            told = f"{name} must be given together with bid: this campaign asks for both in one visit."
            raise DataError(told, field=name)
        return None
    stored = checked_nonce(nonce)
    if participant.delivery is not None and hmac.compare_digest(participant.delivery_nonce or "", stored):
        return None
    content = encoded(campaign, participant, given)
    return Sealed(tx.installation.vault.answers.seal(campaign.id, participant.id, content), stored)


def destroy_after(tx: Transaction, campaign: Campaign, participant: Participant) -> None:
    """Destroy the key to answers that somebody had given, as soon as it is durable that they are not wanted."""
    if campaign.settings.server.single_visit and participant.delivery is not None:
        answers = tx.installation.vault.answers
        tx.then.append(partial(answers.destroy, campaign.id, [participant.delivery]))


def opened(
    installation: Installation, campaign: Campaign, participant: Participant
) -> float | list[float] | dict[str, Any] | None:
    """What a participant delivered, for the release only: a value, her answers, or a message; None if the key of her
    own is gone, and she has dropped out."""
    assert participant.delivery is not None
    vault = installation.vault
    if campaign.settings.server.single_visit:
        found = vault.answers.open(campaign.id, participant.id, participant.delivery)
        if found is None:
            return None
        content = found
    else:
        content = vault.open(campaign.id, participant.id, participant.delivery)
    if campaign.settings.market.setting != "central":
        return parsed(content)
    numbers = [float(number) for (number,) in _DOUBLE.iter_unpack(content)]
    return numbers if campaign.settings.asked else numbers[0]


def checked_nonce(nonce: object) -> str:
    """What is stored of a nonce."""
    if not isinstance(nonce, str) or not _NONCE.fullmatch(nonce):
        raise InputError(
            "nonce must be 32 hexadecimal digits 0-9 and a-f, drawn at random for this delivery.", field="nonce"
        )
    return hashed(nonce)


def encoded(campaign: Campaign, participant: Participant, given: object) -> bytes:
    """What is sealed; what is sealed in the central setting always has the same length, whatever she says."""
    settings = campaign.settings
    if settings.market.setting != "central":
        assert participant.promised is not None
        return canonical(checked_message(settings, participant.promised, given))
    numbers = codes_of(settings.asked, given) if settings.asked else [_checked_value(campaign, given)]
    return b"".join(map(_DOUBLE.pack, numbers))


def _checked_value(campaign: Campaign, given: object) -> float:
    low, high = campaign.settings.bounds
    value = rules.finite(given)
    if value is None or not low <= value <= high:
        raise DataError(f"value must be a number from {low:g} to {high:g}.", field="value")
    return value


def checked_message(settings: CampaignSettings, promised: float, given: object) -> dict[str, Any]:
    """A message about a value, or about all answers, as it is sealed; refused unless made for what was promised."""
    message = given if isinstance(given, Mapping) else getattr(given, "to_dict", dict)()
    if not message:
        raise DataError("message must be one made by privatize: the value itself must not be sent.", field="message")
    # as the release of this one message alone would read it
    asked = about(settings.asked, settings.layout, settings.market.bounds)
    plan = ReleasePlan.of([promised], setting="local", key="one", **asked)
    try:
        [found] = read_messages(plan, [dict(message)])
    except InputError as problem:
        raise _unreadable(problem) from None
    assert found is not None
    bits = grid_bits(promised, plan.layout.groups)
    if found.kind != "response" and found.grid_bits != bits:
        raise DataError(f"message must be on the grid of {bits} bits.", field="message")
    return found.to_dict()


def _unreadable(problem: InputError) -> DataError:
    if problem.field == "message":
        return DataError(str(problem), field="message")
    return DataError(f"message cannot be read: {problem}", field="message")
