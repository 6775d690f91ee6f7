"""What a participant does: bid, decline, withdraw, deliver; and what she sees and can take with her.

Of several bids the last one counts. Data come in after the decision, sealed before they are stored, and the first
delivery counts; the answers to several questions are one delivery, all or nothing. Whoever delivers again is answered
without a look at the value, neither the stored one nor the one she sends: an answer that depended on them would tell,
guess by guess, what is sealed. That an acknowledgement got lost is seen by the random nonce that a client draws for a
delivery and sends with every attempt at it; of the nonce a hash is stored. Where people come once, the answers come in
with the bid (`hushbid.server.service.sealing`); then the last ones count, and are told apart by their nonce
likewise.
"""

import hashlib
import hmac
import math
from dataclasses import asdict, replace
from datetime import datetime
from fractions import Fraction
from typing import Any

from sqlalchemy import Connection

from hushbid.errors import BidError, Conflict
from hushbid.receipts.keys import SigningKey
from hushbid.receipts.log import bid_commitment
from hushbid.receipts.merkle import Tree
from hushbid.receipts.receipt import Receipt, issue, new_salt
from hushbid.server.installation import Installation, mark_withdrawn
from hushbid.server.model import rules
from hushbid.server.model.entities import Campaign, Participant
from hushbid.server.model.settings import LEAST_LOSS
from hushbid.server.model.states import CampaignState, ParticipantState
from hushbid.server.model.views import MenuView, ParticipationView, PersonalAccount
from hushbid.server.service import bodies, sealing
from hushbid.server.service.ending import body_of, tree_over
from hushbid.server.service.use_case import Route, ServiceContext, changes, reads, steps, submits
from hushbid.server.service.views_of import menu_view, own_view, participation_view
from hushbid.server.store import campaigns, events, links, participants, privacy_account
from hushbid.server.store.database import Transaction
from hushbid.server.store.schema import stamp


@submits("bid", Route("PUT /participation/bid", "Bid", by="secret", body=bodies.Bid))
def bid(
    tx: Transaction,
    secret: str,
    bid: object,
    *,
    limit: object = None,
    given: object = None,
    nonce: object = None,
) -> ParticipationView:
    """Store a price per unit of privacy loss, with the largest loss that is accepted, if there is one.

    It may be changed until bidding closes, and the last one counts: one without a limit takes an earlier limit back.
    Where the campaign wants both in one visit, the value or the answers come with the first bid, are sealed, and are
    destroyed unopened unless they are bought; a later bid replaces them under another nonce, or leaves them.
    """
    campaign, participant = acting(tx, secret)
    rules.require_bids_taken(campaign, tx.now)
    rules.require_may_answer(participant)
    rules.require_agreement(campaign, participant)
    value = _checked(campaign, participant, bid)
    most = _checked_limit(campaign, limit)
    sealed = sealing.sealed_with_bid(tx, campaign, participant, given, nonce)
    same = participant.state is ParticipantState.BID and (participant.bid, participant.loss_limit) == (
        value,
        most,
    )
    if same and sealed is None:
        return participation_view(campaign, participant)
    kind = "bid" if participant.bid is None else "bid-changed"
    changed = replace(participant, state=ParticipantState.BID, bid=value, loss_limit=most, bid_at=tx.now)
    # the log holds a commitment only: the salt stays with her
    body = {
        "participant": participant.id,
        "bid_commitment": bid_commitment(participant.id, value, participant.salt, limit=most),
    }
    if sealed is not None:
        changed = replace(changed, delivery=sealed.content, delivery_nonce=sealed.nonce, delivered_at=tx.now)
        body["sealed"] = hashlib.sha256(sealed.content).hexdigest()
        participants.store_sealed(tx, changed, secret)
        sealing.destroy_after(tx, campaign, participant)  # what was replaced
    participants.store(tx, changed, "state", "bid", "loss_limit", "bid_at")
    events.append(tx, campaign.id, kind, body)
    return participation_view(campaign, changed)


@changes("decline", Route("POST /participation/decline", "Decline", by="secret"))
def decline(tx: Transaction, secret: str) -> ParticipationView:
    """Take no part; saying so again changes nothing."""
    campaign, participant = acting(tx, secret)
    if participant.state is ParticipantState.DECLINED:
        return participation_view(campaign, participant)
    rules.require_bids_taken(campaign, tx.now)
    rules.require_may_answer(participant)
    if participant.state is ParticipantState.BID:
        raise Conflict("It is not possible to decline after a bid: withdraw instead.")
    participants.change(tx.connection, participant.id, state=ParticipantState.DECLINED)
    if participant.person_id is not None:
        privacy_account.free(tx.connection, campaign.id, person_id=participant.person_id)
    events.append(tx, campaign.id, "declined", {"participant": participant.id})
    return participation_view(campaign, replace(participant, state=ParticipantState.DECLINED))


@changes("withdraw", Route("POST /participation/withdrawal", "Withdraw", by="secret"))
def withdraw(tx: Transaction, secret: str) -> ParticipationView:
    """Erase what was given: before the decision the bid, after it the data; saying so again changes nothing.

    Possible until the estimate is drawn.

    A mark outside the database makes sure that going back to a backup does not bring it back.
    """
    campaign, participant = acting(tx, secret)
    if participant.state is ParticipantState.WITHDRAWN:
        return participation_view(campaign, participant)
    rules.require_may_withdraw(campaign, participant)
    mark_withdrawn(tx.installation.home, participant.id)
    return participation_view(campaign, withdrawn(tx, campaign, participant))


def withdrawn(tx: Transaction, campaign: Campaign, participant: Participant) -> Participant:
    """Let somebody's withdrawal take effect.

    The record keeps the bid of somebody who withdraws after the decision: others' payments followed from it. In the
    local setting a message that was sent has cost its privacy loss, so the privacy account keeps it.
    """
    state, connection = ParticipantState.WITHDRAWN, tx.connection
    tx.erases = True
    gone: dict[str, Any] = {**participants.NOTHING_GIVEN}
    if campaign.state is CampaignState.BIDDING:
        # without the salt nobody can open the commitment that the log holds
        gone |= {"bid": None, "loss_limit": None, "salt": new_salt()}
    changed = replace(participant, state=state, **gone)
    participants.change(connection, participant.id, state=state, **gone)
    sealing.destroy_after(tx, campaign, participant)
    sent = campaign.settings.market.setting == "local" and participant.delivered_at is not None
    if participant.person_id is not None and not sent:
        privacy_account.free(connection, campaign.id, person_id=participant.person_id)
    events.append(tx, campaign.id, "withdrawn", {"participant": participant.id})
    if not rules.due(campaign, changed):
        forget_payout(tx, campaign, participant)
    return changed


def forget_payout(tx: Transaction, campaign: Campaign, participant: Participant) -> None:
    """Remove where somebody is to be paid, and say so if she had said it."""
    if participants.remove_payout(tx.connection, participant.id):
        tx.erases = True
        events.append(tx, campaign.id, "payout-removed", {"participant": participant.id})


def acting(tx: Transaction, secret: str) -> tuple[Campaign, Participant]:
    """The campaign and the participant that a secret belongs to with which something may be changed."""
    participant = participants.acting(tx, secret)
    campaign = campaigns.of_participant(tx, participant)
    rules.require_opened(campaign)
    return campaign, participant


def _checked(campaign: Campaign, participant: Participant, bid: object) -> float:
    lowest = campaign.settings.prior_of(participant.group_name).smallest_bid
    value = rules.finite(bid)
    if value is None or value < lowest:
        kind = "a finite number" if rules.is_number(bid) else "a number"
        raise BidError(f"bid must be {kind} from {lowest:g} up.", field="bid")
    return value


def _checked_limit(campaign: Campaign, limit: object) -> float | None:
    """The largest loss that she accepts; an error names what is allowed, never what she said."""
    if limit is None:
        return None
    if not campaign.settings.takes_limits:
        raise BidError("limit must be left out: in this campaign nobody can state one.", field="limit")
    value = rules.finite(limit)
    if value is None or (value < LEAST_LOSS and value != 0.0):
        problem = f"limit must be 0, to sell nothing, or a finite number from {LEAST_LOSS:g} up, or be left out."
        raise BidError(problem, field="limit")
    return value


@submits("delivery", Route("PUT /participation/delivery", "Deliver", by="secret", body=bodies.Delivery))
def deliver(tx: Transaction, secret: str, given: object, *, nonce: object) -> ParticipationView:
    """Store what is bought: a value or answers (central), or a message with noise (local).

    The first delivery counts: again with its nonce changes nothing, another is refused.
    """
    name = sealing.checked_nonce(nonce)
    campaign, participant = acting(tx, secret)
    if campaign.settings.server.single_visit:
        raise Conflict("It is not possible to deliver: in this campaign answers are given together with the price.")
    # again: the nonce alone tells a repetition from a second delivery
    if participant.state is ParticipantState.DELIVERED:
        if not hmac.compare_digest(participant.delivery_nonce or "", name):
            raise Conflict("Something was delivered before, and the first delivery stands.")
        return participation_view(campaign, participant)
    rules.require_deliveries_taken(campaign, tx.now)
    rules.require_may_deliver(participant)
    # sealed before it is stored; the log gets a hash of the ciphertext
    delivery = tx.installation.vault.seal(campaign.id, participant.id, sealing.encoded(campaign, participant, given))
    changed = replace(
        participant, state=ParticipantState.DELIVERED, delivery=delivery, delivery_nonce=name, delivered_at=tx.now
    )
    participants.store_sealed(tx, changed, secret, "state")
    if campaign.settings.market.setting == "local" and participant.person_id is not None:
        assert participant.promised is not None
        privacy_account.settle(  # what was sent has been given up, whether it will be used or not
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


@reads(Route("GET /participation", "Where do I stand?", by="secret"))
def read_own(connection: Connection, secret: str) -> ParticipationView:
    """Return the campaign and the participant's state in it."""
    holder = participants.holder(connection, secret)
    return own_view(connection, campaigns.get(connection, holder.participant.campaign_id), holder)


@reads(Route("GET /participation/menu", "What may I expect?", by="secret"))
def read_menu(connection: Connection, secret: str) -> MenuView:
    """Return expected privacy loss and payment for each possible bid."""
    participant = participants.by_secret(connection, secret)
    campaign = campaigns.get(connection, participant.campaign_id)
    return menu_view(campaign, participant.group_name, participant.stratum)


def receipt(connection: Connection, secret: str, *, tree_of: "TreeOf", key: SigningKey) -> Receipt:
    """A participant's signed receipt, once the campaign is over."""
    participant = participants.by_secret(connection, secret)
    campaign = campaigns.get(connection, participant.campaign_id)
    if campaign.root is None or campaign.root_event is None:
        raise Conflict("There is no receipt yet: the campaign is not over.")
    tree, places = tree_of(connection, campaign)
    head = events.head_at(connection, campaign.id, campaign.root_event)
    return issue(body_of(campaign, participant), tree=tree, index=places[participant.id], event=head, key=key)


@steps(Route("GET /participation/privacy-account", "What have I given up?", by="secret"))
def personal_account(context: ServiceContext, secret: str) -> PersonalAccount:
    """Return the participant's privacy loss over all campaigns of this server, as far as it knows who they are."""
    with context.read() as connection:
        return _privacy_account(connection, context.installation, participants.by_secret(connection, secret))


def _privacy_account(connection: Connection, installation: Installation, participant: Participant) -> PersonalAccount:
    rows = [] if participant.person_id is None else privacy_account.of_person(connection, participant.person_id)
    # exactly, and rounded up to be shown
    lost = sum((Fraction(row.amount) for row in rows if row.kind == "delivered"), Fraction(0))
    total = sum((Fraction(row.amount) for row in rows), Fraction(0))
    return PersonalAccount(
        rows=tuple(rows),
        given_up=_rounded_up(lost),
        reserved=_rounded_up(total - lost),
        total=_rounded_up(total),
        cap=installation.privacy_cap,
    )


_EXPORTED = ("id", "label", "stratum", "number", "state", "bid", "bid_at", "delivered_at", "paid", "paid_at")
_AGREED = ("agreed_at", "agreed_version", "agreed_language")
_OF_LINKS = ("made_by", "reads_only", "made_at", "used_at", "ended_at")


@steps()
def export(context: ServiceContext, secret: str) -> dict[str, Any]:
    """Return all that the server holds about the participant in this campaign, with their privacy account.

    Their value is not in it: it is sealed, and is opened for nothing but the release.
    """
    with context.read() as connection:
        holder = participants.holder(connection, secret)
        participant = holder.participant
        campaign = campaigns.get(connection, participant.campaign_id)
        gave_up = _privacy_account(connection, context.installation, participant)
        found = {
            "campaign": {"id": campaign.id, "title": campaign.settings.title, "state": campaign.state},
            "participant": {
                **_named(participant, *_EXPORTED, *_AGREED),
                "group": participant.group_name,
                "limit": participant.loss_limit,
                "value_is_stored_sealed": participant.delivery is not None,
                "salt": participant.salt.hex(),
                "payout_is_stored_sealed": participants.payout(connection, participant.id) is not None,
                **_named(campaign, "key_destroyed_at", "payouts_destroyed_at"),
            },
            "agreed_to": participants.consent(connection, campaign.id, participant.agreed_version),
            "view": asdict(own_view(connection, campaign, holder)),
            "links": [_named(link, *_OF_LINKS) for link in links.of_participant(connection, participant.id)],
            "events": [event.to_dict() for event in events.about(connection, participant.id)],
            "privacy_account": {"person": participant.person_id, **asdict(gave_up)},
        }
    plain: dict[str, Any] = _plain(found)
    return {"format": "hushbid-personal-data", "version": 1, **plain}


def _named(source: object, *names: str) -> dict[str, Any]:
    return {name: getattr(source, name) for name in names}


def _plain(value: Any) -> Any:
    """A value as it goes into a file: times as they are stored."""
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    return stamp(value) if isinstance(value, datetime) else value


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


def _rounded_up(total: Fraction) -> float:
    value = float(total)
    return value if Fraction(value) >= total else math.nextafter(value, math.inf)
