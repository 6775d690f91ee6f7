"""One participant's side of a campaign.

A link opens once: before anything else the client exchanges it for a secret, which the keeper draws and keeps before it
is sent. So this device alone can repeat the exchange, and nobody else who holds the link, above all the analyst,
can speak for the participant.

What leaves the process never depends on what the server claims: `bid` keeps what was shown before it sends anything,
and nothing that decides how much noise is added is taken from the server later on. `deliver_privately` adds
noise whatever the campaign says. A value leaves as it is in two ways only: by `deliver_value`, and with a bid that is
given one, where a campaign asks for both in one visit. Deliveries refuse a campaign of the other setting, other
questions, another range or currency than was shown, a privacy loss above the largest that was shown, and an offer that
does not cover the participant's price. The answers to several questions leave together, or none of them.
"""

import hashlib
import secrets
from collections.abc import Mapping, Sequence
from typing import Any

from hushbid.client.guards import (
    agreed_terms,
    checked_answers,
    checked_at_most,
    checked_language,
    checked_limit,
    checked_number,
    checked_price,
    plain_datum,
    require_askable,
    require_good_offer,
    require_open_offer,
    stated_terms,
)
from hushbid.client.messages import Bounds, Datum, Keeper, MessageFolder, Survey, Terms, place_name
from hushbid.client.refusals import an_object, strange
from hushbid.client.transport import Transport
from hushbid.client.views import Participation, link_to, split_link
from hushbid.common.documents import content_hash
from hushbid.errors import InputError, RecordError
from hushbid.questions import Question
from hushbid.receipts.keys import KeyList
from hushbid.receipts.receipt import Receipt, questions_hash
from hushbid.verification.receipts import verify_receipt


class ParticipantClient:
    """Speaks for one participant.

    with ParticipantClient.from_link("https://example.org/p#SECRET") as me:
        me.bid(1.25)
        # once the campaign has decided:
        if me.participation().wanted:
            me.deliver_privately(7.5)          # the noise is added here
        receipt = me.receipt(fingerprint="...")
    """

    def __init__(
        self, url: str, token: str, *, keeper: Keeper | None = None, transport: Transport | None = None, **more: Any
    ) -> None:
        """``keeper`` stores secret, terms and noisy value, in a folder of the account if none is given.

        Programs that simulate many participants share a ``transport``, which they close themselves; otherwise ``more``
        are the options of a new one.
        """
        self._transport = Transport(url, **more) if transport is None else transport
        self._shares_transport = transport is not None
        self._url, self._token = self._transport.url, token
        self._keeper: Keeper = MessageFolder() if keeper is None else keeper
        self._secret: str | None = None

    @classmethod
    def from_link(cls, link: str, **more: Any) -> "ParticipantClient":
        """Return the client for a personal link."""
        url, token = split_link(link)
        return cls(url, token, **more)

    # reading and agreeing ---------------------------------------------------------------------------------------------

    def participation(self) -> Participation:
        """Return the state of the campaign and of the participant."""
        return self._view("participation")

    def menu(self) -> dict[str, Any]:
        """Return what to expect for each possible bid."""
        return self._object("menu")

    def consent(self, language: str = "en") -> dict[str, Any]:
        """Return what is to be agreed to: a ``document``, in which the analyst's own text is in that language, its
        ``version``, and whether an agreement is ``required`` before a bid."""
        return self._object("consent", query={"language": checked_language(language)})

    def agree(self, document: Mapping[str, Any]) -> Participation:
        """Agree to a document that `consent` returned and that the participant has read; the last agreement counts.

        Never done unasked: where an agreement is required, `bid` is refused without one.
        """
        if not isinstance(document, Mapping) or "language" not in document:
            raise InputError("document must be one that consent gave.", field="document")
        # computed here: what is agreed to is this text, whatever version the server calls it
        content = {"version": content_hash(document), "language": checked_language(document["language"])}
        return self._view("agree", content)

    # bidding and delivering -------------------------------------------------------------------------------------------

    def bid(
        self,
        bid: float,
        *,
        value: Datum | None = None,
        limit: float | None = None,
        at_most: float | None = None,
        offer: Participation | None = None,
    ) -> Participation:
        """Name the price of one unit of privacy loss; it may be changed until bidding closes.

        ``value`` is the value, or the answers, where a central campaign asks for them together with the price
        (`Participation.single_visit`). They leave as they are, sealed on arrival and opened only if they are bought; so
        what is promised cannot be looked at before. A later bid without it leaves them as they are, one with it
        replaces them.

        ``limit`` is the largest loss that the participant accepts, which the campaign knows and keeps to, if it takes
        limits (`Participation.takes_limits`); the last bid counts, with its limit or without one.

        Before it is sent, the price, the range, the setting and the largest privacy loss that the campaign shows, or
        the limit, are kept here, and no delivery goes beyond them. ``at_most`` names a smaller loss that only this
        device knows, for programs that show nobody what the campaign says. Once a smaller loss was named, only naming
        another agrees to more. ``offer`` is what `participation` returned before.
        """
        price, limit, at_most = checked_price(bid), checked_limit(limit), checked_at_most(at_most)
        view = offer or self.participation()
        require_askable(view, value=value, limit=limit)
        content: dict[str, Any] = {"bid": price} if limit is None else {"bid": price, "limit": limit}
        if value is not None:
            content |= {**plain_datum(value, view.bounds, view.questions), "nonce": secrets.token_hex(16)}
        # agreed to, durably, before the server hears anything; out of season it refuses, and nothing is agreed to
        if view.campaign_state == "bidding":
            place = self._place(view.campaign, view.participant)
            named = min((most for most in (limit, at_most) if most is not None), default=None)
            self._keeper.agree(place, agreed_terms(view, self._keeper.terms(place), price=price, at_most=named))
        return self._view("bid", content)

    def decline(self) -> Participation:
        """Decline to take part."""
        return self._view("decline")

    def deliver_privately(
        self,
        value: Datum,
        *,
        at_most: float | None = None,
        bounds: Bounds | None = None,
        questions: Sequence[Question] | None = None,
        offer: Participation | None = None,
    ) -> Participation:
        """Add noise here and send the result; the first noisy value is kept, and sent on every later call.

        Where the campaign has questions, the value is the answers, in the questions' order or by their names; all of
        them are in one message, and none may be left open.

        Refused before anything is drawn if the campaign promises a privacy loss above the largest that was shown
        before the bid, or above ``at_most``. On a device without a bid, ``at_most`` and ``bounds``, or
        ``questions``, must be given. ``offer`` is what `participation` returned before; otherwise it is asked for.
        """
        at_most, view = checked_at_most(at_most), offer or self.participation()
        loss = require_open_offer(view, "local")
        place, terms = self._terms(view, at_most, bounds, questions)
        require_good_offer(view, terms, loss=loss, at_most=at_most)
        if terms.bounds is not None:
            message = self._keeper.message(place, checked_number(value), loss, terms.bounds)
        else:
            # how questions share the loss is the server's choice: all of them together never cost more
            assert view.layout is not None
            answers = checked_answers(value, terms.questions)
            message = self._keeper.message(place, answers, loss, Survey(terms.questions, view.layout))
        # named after the secret, so that every attempt delivers under the same name
        name = hashlib.sha256(f"hushbid delivery\n{self._entered()}".encode()).hexdigest()[:32]
        return self._view("deliver", {"message": message.to_dict(), "nonce": name})

    def deliver_value(
        self,
        value: Datum,
        *,
        at_most: float | None = None,
        bounds: Bounds | None = None,
        questions: Sequence[Question] | None = None,
        offer: Participation | None = None,
    ) -> Participation:
        """Send the value, or the answers, as they are to a platform that is trusted to add the noise; refused in a
        local campaign."""
        at_most, view = checked_at_most(at_most), offer or self.participation()
        loss = require_open_offer(view, "central")
        _, terms = self._terms(view, at_most, bounds, questions)
        require_good_offer(view, terms, loss=loss, at_most=at_most)
        # within the range that was agreed to: the server must not learn a value outside it
        datum = plain_datum(value, terms.bounds, terms.questions)
        return self._view("deliver", {**datum, "nonce": secrets.token_hex(16)})

    def withdraw(self) -> Participation:
        """Take bid and value back; possible until the estimate is drawn."""
        return self._view("withdraw")

    # afterwards -------------------------------------------------------------------------------------------------------

    def receipt(self, *, fingerprint: str | None = None) -> Receipt:
        """Return the receipt, checked: against itself, the terms kept here, and the fingerprint of a trusted key."""
        receipt = Receipt.from_dict(self._ask("receipt"))
        keys = None if fingerprint is None else KeyList.from_dict(self._transport.ask("keys"))
        # checked here: the server's word that it is in order counts for nothing
        found = verify_receipt(receipt, fingerprint=fingerprint, keys=keys)
        if not found.ok:
            raise RecordError(f"The receipt is not to be relied on: {found.summary()}")
        kept = self._keeper.terms(self._place(receipt.body.campaign, receipt.body.participant))
        if kept is not None and receipt.body.questions != questions_hash(kept.questions):
            raise RecordError("The receipt is about other questions than you agreed to.")
        return receipt

    def payout(self) -> dict[str, Any]:
        """Return whether payment details are stored, their last characters, and when they are destroyed."""
        return self._object("payout")

    def state_payout(self, handle: str) -> dict[str, Any]:
        """Add payment details, as the campaign asks for them; possible until the payment is marked."""
        return self._object("state_payout", {"payout": handle})

    def remove_payout(self) -> dict[str, Any]:
        """Delete the payment details."""
        return self._object("remove_payout")

    def export(self) -> dict[str, Any]:
        """Return all that the server holds about the participant."""
        return self._object("export")

    def privacy_account(self) -> dict[str, Any]:
        """Return the privacy loss over all campaigns of this server."""
        return self._object("personal_account")

    def own_link(self) -> str:
        """Make a link for another device, which opens once; an earlier one that was not used ends."""
        answer = self._object("own_link")
        if not isinstance(answer.get("token"), str):
            raise strange("The server gave no link")
        return link_to(self._url, answer["token"])

    def devices(self) -> dict[str, Any]:
        """Return on which devices the part is open, since when, and when links for others were made and used."""
        return self._object("devices")

    def end_other_devices(self) -> dict[str, Any]:
        """End every other device, and links that were not used; return what is left, as `devices` does."""
        return self._object("end_other_devices")

    def close(self) -> None:
        """Close the connection, unless it is shared."""
        if not self._shares_transport:
            self._transport.close()

    def __enter__(self) -> "ParticipantClient":
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()

    # what all of them use ---------------------------------------------------------------------------------------------

    def _view(self, name: str, content: Mapping[str, Any] | None = None) -> Participation:
        return Participation.from_dict(self._ask(name, content))

    def _object(self, name: str, content: Mapping[str, Any] | None = None, **more: Any) -> dict[str, Any]:
        return an_object(self._ask(name, content, **more))

    def _ask(self, name: str, content: Mapping[str, Any] | None = None, **more: Any) -> Any:
        return self._transport.ask(name, content=content, bearer=self._entered(), **more)

    def _entered(self) -> str:
        """Return the secret, for which the link is exchanged at first use; in another process again, for the same."""
        if self._secret is None:
            # kept before it is sent, so that the exchange can be repeated if its answer gets lost
            secret = self._keeper.secret(self._token)
            self._transport.ask("enter", content={"secret": secret}, bearer=self._token)
            self._secret = secret
        return self._secret

    def _place(self, campaign: str, participant: str) -> str:
        """Return under which name terms and noisy value are kept."""
        return self._keeper.place(self._token, place_name(self._url, campaign, participant))

    def _terms(
        self, view: Participation, at_most: float | None, bounds: Bounds | None, questions: Sequence[Question] | None
    ) -> tuple[str, Terms]:
        """Return the terms of the bid, from this device or from the caller, and where they are kept."""
        place = self._place(view.campaign, view.participant)
        terms = self._keeper.terms(place)
        if terms is None:
            terms = stated_terms(view, at_most=at_most, bounds=bounds, questions=questions)
        return place, terms
