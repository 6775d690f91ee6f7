"""What is said between one participant's device and a server, without the waiting.

What leaves the device is hers to decide, so it never depends on what the server claims (`hushbid.client.participant`):
what she agreed to is kept before she bids, and looked up before she delivers.
"""

import hashlib
import math
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from hushbid.client.calls import Call, Conversation, Work, an_object, delete, get, post, put, say, strange
from hushbid.client.messages import Bounds, Given, Keeper, Message, MessageFolder, Terms, place_name
from hushbid.client.views import Participation, link_to
from hushbid.common.arrays import as_bounds
from hushbid.common.documents import content_hash
from hushbid.disclosure.answers import codes_of
from hushbid.errors import DataError, InputError, NotAllowed, RecordError
from hushbid.questions import Question, as_questions
from hushbid.receipts.keys import KeyList
from hushbid.receipts.receipt import Receipt, questions_hash
from hushbid.verification.receipts import verify_receipt

Datum = float | Given
"""A number, or answers to questions."""

_ROUNDING = 1e-9
_LEAST_LIMIT = 1e-6  # what a server takes; refused before anything is kept, or it would bind this device alone
_LARGEST_SHOWN = 100.0  # what a campaign on a server may ask for at most; more would be no privacy at all


class Own(NamedTuple):
    """What she says herself on a device that she did not bid from."""

    at_most: float | None
    """The largest privacy loss."""

    bounds: Bounds | None
    """The range of the data, or"""

    questions: Sequence[Question] | None
    """the questions."""


class Talk:
    """The conversations, without the waiting."""

    def __init__(self, url: str, token: str, keeper: Keeper | None) -> None:
        self._url = url
        self._token = token
        self._keeper = keeper or MessageFolder()
        self._secret: str | None = None

    def participation(self) -> Conversation[Participation]:
        return Participation.from_dict((yield from self._ask(get("/participation"))))

    def menu(self) -> Conversation[dict[str, Any]]:
        return self._object(get("/participation/menu"))

    def consent(self, language: str) -> Conversation[dict[str, Any]]:
        return self._object(get(f"/participation/consent?language={_language(language)}"))

    def agree(self, document: Mapping[str, Any]) -> Conversation[Participation]:
        if not isinstance(document, Mapping) or "language" not in document:
            raise InputError("document must be one that consent gave.", field="document")
        # computed here: what is agreed to is what she has before her, whatever the server calls it
        content = {"version": content_hash(document), "language": _language(document["language"])}
        return Participation.from_dict((yield from self._ask(put("/participation/agreement", content))))

    def bid(
        self,
        bid: float,
        limit: float | None,
        at_most: float | None,
        offer: Participation | None,
        value: Datum | None = None,
    ) -> Conversation[Participation]:
        if isinstance(bid, bool) or not isinstance(bid, (int, float)) or not 0 <= bid < 1e300:
            raise InputError("bid must be a finite number of at least 0.", field="bid")
        limit, at_most = _limit(limit, "limit", least=_LEAST_LIMIT), _limit(at_most)
        named = [most for most in (limit, at_most) if most is not None]
        view = offer if offer is not None else (yield from self.participation())
        if limit is not None and not view.takes_limits:
            raise NotAllowed("This campaign takes no limits: nothing was sent.")
        _require_visits(view, value)
        data = _with_bid(view, value)
        if view.campaign_state == "bidding":  # otherwise the server refuses, and she has agreed to nothing
            place = yield from self._place(view)
            kept = yield Work(lambda: self._keeper.terms(place))
            # agreed to, durably, before the server hears anything
            terms = _terms(view, kept, float(bid), min(named, default=None))
            yield Work(lambda: self._keeper.agree(place, terms))
        content = {"bid": float(bid), **({} if limit is None else {"limit": limit}), **data}
        told = yield from self._ask(put("/participation/bid", content))
        return Participation.from_dict(told)

    def decline(self) -> Conversation[Participation]:
        return Participation.from_dict((yield from self._ask(say("/participation/decline"))))

    def deliver_privately(self, value: Datum, own: Own, offer: Participation | None) -> Conversation[Participation]:
        view = offer if offer is not None else (yield from self.participation())
        agreed, loss = yield from self._promise("local", own, view)
        draw = self._drawing(agreed, view, value, loss)
        place = yield from self._place(view)
        message = yield Work(lambda: draw(place))
        # the delivery's name follows from her secret: every attempt has the same
        name = hashlib.sha256(f"hushbid delivery\n{(yield from self._entered())}".encode()).hexdigest()
        content = {
            "message": message.to_dict(),
            "nonce": name[:32],
        }  # one noisy value, one name, as random as her secret
        return Participation.from_dict((yield from self._ask(put("/participation/delivery", content))))

    def deliver_value(self, value: Datum, own: Own, offer: Participation | None) -> Conversation[Participation]:
        view = offer if offer is not None else (yield from self.participation())
        agreed, _ = yield from self._promise("central", own, view)
        # by the ranges she agreed to: the server must not learn a value outside them
        sent = (
            {"value": _within(value, agreed.bounds)}
            if agreed.bounds
            else {"answers": _answers(value, agreed.questions)}
        )
        content = {**sent, "nonce": secrets.token_hex(16)}
        return Participation.from_dict((yield from self._ask(put("/participation/delivery", content))))

    def withdraw(self) -> Conversation[Participation]:
        return Participation.from_dict((yield from self._ask(say("/participation/withdrawal"))))

    def receipt(self, fingerprint: str | None) -> Conversation[Receipt]:
        receipt = Receipt.from_dict((yield from self._ask(get("/participation/receipt"))))
        keys = None
        if fingerprint is not None:
            keys = KeyList.from_dict((yield get("/keys")))
        # checked here: the server's word that it is in order counts for nothing
        found = verify_receipt(receipt, fingerprint=fingerprint, keys=keys)
        if not found.ok:
            raise RecordError(f"The receipt is not to be relied on: {found.summary()}")
        yield from self._require_same_questions(receipt)
        return receipt

    def payout(self) -> Conversation[dict[str, Any]]:
        return self._object(get("/participation/payout"))

    def state_payout(self, handle: str) -> Conversation[dict[str, Any]]:
        return self._object(put("/participation/payout", {"payout": handle}))

    def remove_payout(self) -> Conversation[dict[str, Any]]:
        return self._object(delete("/participation/payout"))

    def export(self) -> Conversation[dict[str, Any]]:
        return self._object(get("/participation/export"))

    def privacy_account(self) -> Conversation[dict[str, Any]]:
        return self._object(get("/participation/privacy-account"))

    def devices(self) -> Conversation[dict[str, Any]]:
        return self._object(get("/participation/devices"))

    def end_other_devices(self) -> Conversation[dict[str, Any]]:
        return self._object(delete("/participation/devices"))

    def own_link(self) -> Conversation[str]:
        told = yield from self._object(post("/participation/link"))
        if not isinstance(told.get("token"), str):
            raise strange("The server gave no link")
        return link_to(self._url, told["token"])

    def _ask(self, call: Call) -> Conversation[Any]:
        """Ask for something with her secret."""
        return (yield replace(call, bearer=(yield from self._entered())))

    def _entered(self) -> Conversation[str]:
        """Her secret, for which the link is exchanged at first use; again in another process, which changes nothing."""
        if self._secret is None:
            # kept before it is sent, so that a lost answer can be asked for again
            secret: str = yield Work(lambda: self._keeper.secret(self._token))
            yield replace(put("/participation/secret", {"secret": secret}), bearer=self._token)
            self._secret = secret
        return self._secret

    def _place(self, view: Participation) -> Conversation[str]:
        """Under which name her terms and her noisy value are kept."""
        name = place_name(self._url, view.campaign, view.participant)
        place: str = yield Work(lambda: self._keeper.place(self._token, name))
        return place

    def _object(self, call: Call) -> Conversation[dict[str, Any]]:
        return an_object((yield from self._ask(call)))

    def _require_same_questions(self, receipt: Receipt) -> Conversation[None]:
        """Refuse a receipt about other questions than she agreed to on this device."""
        name = place_name(self._url, receipt.body.campaign, receipt.body.participant)
        place: str = yield Work(lambda: self._keeper.place(self._token, name))
        kept = yield Work(lambda: self._keeper.terms(place))
        if kept is not None and receipt.body.questions != questions_hash(kept.questions):
            raise RecordError("The receipt is about other questions than you agreed to.")

    def _drawing(self, agreed: Terms, view: Participation, value: Datum, loss: float) -> Callable[[str], Message]:
        """How her noisy value or answers are drawn, for what she agreed to. How questions share the loss is no matter:
        all of them together never cost more."""
        if agreed.bounds is not None:
            number, bounds = _datum(value), agreed.bounds
            return lambda place: self._keeper.message(place, number, loss, bounds)
        assert view.layout is not None  # as there are questions, the same ones
        answers, survey = _answers(value, agreed.questions), (agreed.questions, view.layout)
        return lambda place: self._keeper.answers(place, answers, loss, survey)

    def _promise(self, setting: str, own: Own, view: Participation) -> Conversation[tuple[Terms, float]]:
        """The terms and what she is promised, if the campaign still keeps to them and the offer is good enough."""
        at_most = _limit(own.at_most)
        if view.setting != setting:
            raise NotAllowed(f"This campaign is {view.setting}, not {setting}: nothing was sent.")
        if not view.promised:
            raise NotAllowed("No data of yours are wanted, or it is not decided yet: nothing was sent.")
        place = yield from self._place(view)
        # what she agreed to, from her own device
        kept = yield Work(lambda: self._keeper.terms(place))
        # another device: what decides on noise must come from her, not from the server
        if kept is None:
            if at_most is None or (own.bounds is None) == (own.questions is None):
                raise NotAllowed(
                    "This device does not know what you agreed to, because you did not bid from it: give at_most,"
                    " the largest privacy loss you were shown, and bounds, the range of the data, or the questions."
                    " Nothing was sent."
                )
            kept = Terms(
                setting=setting,
                bounds=None if own.bounds is None else as_bounds(own.bounds),
                questions=() if own.questions is None else as_questions(own.questions),
                largest_loss=at_most,
                price=view.bid,
            )
        # the campaign must not have changed since
        if kept.setting != setting:
            raise NotAllowed(f"You bid in a {kept.setting} campaign, and now it is {setting}: nothing was sent.")
        if (view.bounds, view.questions) != kept.asked:
            what = "other questions" if kept.questions or view.questions else "another range of the data"
            raise NotAllowed(f"The campaign names {what} than you agreed to: nothing was sent.")
        _require_currency(view, kept)
        # nor cost more privacy than she was shown
        most = kept.largest_loss if at_most is None else min(kept.largest_loss, at_most)
        if not view.promised <= most:
            raise NotAllowed(f"The campaign would cost you a privacy loss above {most:g}: nothing was sent.")
        # nor pay less than she said it costs her
        price = kept.price
        if price is None or view.payment is None or view.payment < (1.0 - _ROUNDING) * view.cost(price):
            raise NotAllowed("The offer does not cover what you said your privacy costs you: nothing was sent.")
        return kept, view.promised


def _require_visits(view: Participation, value: Datum | None) -> None:
    """Refuse a value that is not asked for, or a bid without one that is."""
    if value is not None and (view.setting != "central" or not view.single_visit):
        raise NotAllowed("This campaign does not ask for data together with the price: nothing was sent.")
    if value is None and view.single_visit and view.state != "bid":
        raise NotAllowed("This campaign asks for data together with the price: give value. Nothing was sent.")


def _with_bid(view: Participation, value: Datum | None) -> dict[str, Any]:
    """Her value or answers as they are sent with a bid, under a name that every attempt has."""
    if value is None:
        return {}
    asked = view.bounds
    sent = {"value": _within(value, asked)} if asked else {"answers": _answers(value, view.questions)}
    return {**sent, "nonce": secrets.token_hex(16)}


def _terms(view: Participation, kept: Terms | None, price: float, at_most: float | None) -> Terms:
    """What she agrees to by bidding now; once she has, only she can agree to more."""
    if kept is not None and (kept.setting, kept.asked) != (view.setting, (view.bounds, view.questions)):
        what = "setting, range or questions" if kept.questions or view.questions else "setting or range"
        raise NotAllowed(f"The campaign names another {what} than when you first bid: nothing was sent.")
    _require_currency(view, kept)
    # the least of what is shown and what she names or, if she names nothing, agreed to before
    limits = [limit for limit in (view.max_privacy_loss, at_most) if limit is not None]
    if kept is not None and at_most is None:
        limits.append(kept.largest_loss)
    largest = min(limits, default=math.inf)
    nothing = largest == 0.0 != view.max_privacy_loss  # she may sell nothing, but no campaign asks for that
    if not (0.0 < largest <= _LARGEST_SHOWN or nothing):
        raise NotAllowed(
            f"The campaign names no largest privacy loss from 0 to {_LARGEST_SHOWN:g}: nothing was sent. You may name"
            " yours with at_most."
        )
    return Terms(
        setting=view.setting,
        bounds=view.bounds,
        questions=view.questions,
        largest_loss=largest,
        price=price,
        currency=view.currency,
        decimals=view.decimals,
    )


def _require_currency(view: Participation, kept: Terms | None) -> None:
    """Refuse other money than her price was named in, where this device knows it."""
    if (
        kept is not None
        and kept.currency is not None
        and (kept.currency, kept.decimals) != (view.currency, view.decimals)
    ):
        raise NotAllowed("The campaign names another currency than you named your price in: nothing was sent.")


def _limit(at_most: float | None, name: str = "at_most", *, least: float = math.ulp(0.0)) -> float | None:
    if at_most is None:
        return None
    nothing = least == _LEAST_LIMIT and at_most == 0
    if (
        isinstance(at_most, bool)
        or not isinstance(at_most, (int, float))
        or not (least <= at_most < math.inf or nothing)
    ):
        what = (
            "a positive number" if least < _LEAST_LIMIT else f"0, to sell nothing, or a finite number from {least:g} up"
        )
        raise InputError(f"{name} must be {what}, got {at_most!r}.", field=name)
    return float(at_most)


def _datum(value: Datum) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value != value:
        raise DataError("Your value must be a number.")
    return float(value)


def _within(value: Datum, bounds: Bounds) -> float:
    number, (low, high) = _datum(value), bounds
    if not low <= number <= high:
        raise DataError(f"Your value must lie in the public range from {low:g} to {high:g}.")
    return number


def _language(language: object) -> str:
    if language not in ("en", "de"):
        raise InputError(f"language must be en or de, got {str(language)[:20]!r}.", field="language")
    return str(language)


def _answers(value: Datum, questions: Sequence[Question]) -> dict[str, object]:
    """Her answers by the questions' names, as they may be sent; an error names the question, never the answer."""
    if isinstance(value, Mapping):
        given = dict(value)
    elif isinstance(value, Sequence) and not isinstance(value, (str, bytes)) and len(value) == len(questions):
        given = dict(zip((one.name for one in questions), value, strict=True))
    else:
        raise DataError("Your answers must be one to each question, in their order or by their names.")
    try:
        codes_of(questions, given)
    except DataError as problem:
        raise DataError(f"{problem} Nothing was sent.", field=problem.field) from None
    return given
