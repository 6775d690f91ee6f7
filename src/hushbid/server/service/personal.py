"""What a participant can take with her: her receipt, everything stored about her, what she gave up altogether."""

import math
from dataclasses import asdict
from datetime import datetime
from fractions import Fraction
from typing import Any

from sqlalchemy import Connection

from hushbid.errors import Conflict
from hushbid.receipts.keys import SigningKey
from hushbid.receipts.merkle import Tree
from hushbid.receipts.receipt import Receipt, issue
from hushbid.server.domain.access import Link
from hushbid.server.domain.entities import Campaign, Participant
from hushbid.server.domain.views import PersonalLedger
from hushbid.server.service.context import Context
from hushbid.server.service.receipts import body_of, tree_over
from hushbid.server.service.views_of import own_view
from hushbid.server.store import campaigns, events, ledger, links, participants
from hushbid.server.store.rows import stamp


def receipt(connection: Connection, secret: str, *, tree_of: "TreeOf", key: SigningKey) -> Receipt:
    """A participant's signed receipt, once the campaign is over."""
    participant = participants.by_secret(connection, secret)
    campaign = campaigns.get(connection, participant.campaign_id)
    if campaign.root is None or campaign.root_event is None:
        raise Conflict("There is no receipt yet: the campaign is not over.")
    tree, places = tree_of(connection, campaign)
    head = events.head_at(connection, campaign.id, campaign.root_event)
    return issue(body_of(campaign, participant), tree=tree, index=places[participant.id], event=head, key=key)


def personal_ledger(connection: Connection, context: Context, secret: str) -> PersonalLedger:
    """What the person behind a secret has given up over all campaigns, as far as the server can tell who she is."""
    participant = participants.by_secret(connection, secret)
    rows = [] if participant.person_id is None else ledger.of_person(connection, participant.person_id)
    # exactly, and rounded up to be shown
    lost = sum((Fraction(row.amount) for row in rows if row.kind == "delivered"), Fraction(0))
    held = sum((Fraction(row.amount) for row in rows if row.kind != "delivered"), Fraction(0))
    return PersonalLedger(
        rows=tuple(rows),
        given_up=_rounded_up(lost),
        reserved=_rounded_up(held),
        total=_rounded_up(lost + held),
        cap=context.privacy_cap,
    )


def export(connection: Connection, context: Context, secret: str) -> dict[str, Any]:
    """Everything that is stored about the person behind a secret in this campaign, and what the ledger says of her.

    Her value is not in it: it is sealed, and is opened for nothing but the release.
    """
    holder = participants.holder(connection, secret)
    participant = holder.participant
    campaign = campaigns.get(connection, participant.campaign_id)
    gave_up = personal_ledger(connection, context, secret)
    return {
        "format": "hushbid-personal-data",
        "version": 1,
        "campaign": {"id": campaign.id, "title": campaign.settings.title, "state": campaign.state.value},
        "participant": _stored(campaign, participant),
        "view": _plain(asdict(own_view(connection, campaign, holder))),
        "links": [_shown(link) for link in links.of_participant(connection, participant.id)],
        "events": [event.to_dict() for event in events.about(connection, participant.id)],
        "ledger": {
            "person": participant.person_id,
            "rows": [_plain(asdict(row)) for row in gave_up.rows],
            "given_up": gave_up.given_up,
            "reserved": gave_up.reserved,
            "total": gave_up.total,
            "cap": gave_up.cap,
        },
    }


class TreeOf:
    """The receipts' trees, the last few kept in memory: they never change once a campaign is over."""

    def __init__(self, most: int = 8) -> None:
        self._most = most
        self._known: dict[str, tuple[Tree, dict[str, int]]] = {}

    def __call__(self, connection: Connection, campaign: Campaign) -> tuple[Tree, dict[str, int]]:
        """The tree of a campaign that is over, and everybody's place in it."""
        if campaign.id not in self._known:
            everybody = participants.everybody(connection, campaign.id)
            places = {one.id: place for place, one in enumerate(everybody)}
            # the oldest go first
            while len(self._known) >= self._most:
                self._known.pop(next(iter(self._known)), None)
            self._known[campaign.id] = tree_over(campaign, everybody), places
        return self._known[campaign.id]


def _stored(campaign: Campaign, participant: Participant) -> dict[str, Any]:
    return {
        "id": participant.id,
        "label": participant.label,
        "group": participant.group_name,
        "number": participant.number,
        "state": participant.state.value,
        "report": participant.report,
        "reported_at": None if participant.reported_at is None else stamp(participant.reported_at),
        "delivered_at": None if participant.delivered_at is None else stamp(participant.delivered_at),
        "value_is_stored_sealed": participant.delivery is not None,
        "key_destroyed_at": None if campaign.key_destroyed_at is None else stamp(campaign.key_destroyed_at),
        "paid": participant.paid,
        "paid_at": None if participant.paid_at is None else stamp(participant.paid_at),
        "salt": participant.salt.hex(),
    }


def _shown(link: Link) -> dict[str, Any]:
    times = {name: getattr(link, name) for name in ("made_at", "used_at", "ended_at")}
    plain = {name: None if time is None else stamp(time) for name, time in times.items()}
    return {"made_by": link.made_by, "reads_only": link.reads_only, **plain}


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    return {name: _text(value) for name, value in values.items()}


def _text(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_text(one) for one in value]
    return stamp(value) if isinstance(value, datetime) else value


def _rounded_up(total: Fraction) -> float:
    value = float(total)
    return value if Fraction(value) >= total else math.nextafter(value, math.inf)
