"""One participant's side of a campaign.

A link opens once: before anything else the client exchanges it for a secret of its own, which the keeper draws and
keeps before it is sent. So this device alone can repeat the exchange, and whoever else holds the link, an analyst above
all, cannot speak for her.

What leaves the process is hers to decide, so it never depends on what the server claims: `report` keeps what she was
shown before it sends anything, and nothing that decides how much noise is added is taken from the server later on.
`deliver_privately` adds noise whatever the campaign says, `deliver_value` is the only way in which a value leaves as it
is, and both refuse a campaign of the other setting, another range or currency than she was shown, a privacy loss above
the largest she was shown, and an offer that does not cover what she said her privacy costs her.
"""

import hashlib
import math
import secrets
from dataclasses import replace
from types import TracebackType
from typing import Any, TypeVar

from hushbid.arrays import as_bounds
from hushbid.client.calls import Call, Conversation, Work, an_object, delete, get, post, put, say, strange
from hushbid.client.messages import Bounds, Keeper, MessageFolder, Terms, place_name
from hushbid.client.transport import ATTEMPTS, AsyncTransport, Transport
from hushbid.client.views import Participation, link_to, split_link
from hushbid.errors import DataError, InputError, NotAllowed, RecordError
from hushbid.receipts.keys import KeyList
from hushbid.receipts.receipt import Receipt
from hushbid.verification.receipts import verify_receipt

T = TypeVar("T")
_ROUNDING = 1e-9
_LEAST_LIMIT = 1e-6  # what a server takes; refused before anything is kept, or it would bind this device alone
_LARGEST_SHOWN = 100.0  # what a campaign on a server may ask for at most; more would be no privacy at all


class ParticipantClient:
    """Speaks for one participant and waits for the answers.

    with ParticipantClient.from_link("https://example.org/p#SECRET") as me:
        me.report(1.25)
        # once the campaign has decided:
        if me.participation().wanted:
            me.deliver_privately(7.5)          # the noise is added here
        receipt = me.receipt(fingerprint="...")
    """

    def __init__(
        self, url: str, token: str, *, keeper: Keeper | None = None, attempts: int = ATTEMPTS, **more: Any
    ) -> None:
        """``keeper`` stores her secret, terms and noisy value; a folder of the account's own if none is given."""
        self._transport = Transport(url, attempts=attempts, **more)
        self._talk = _Participant(self._transport.url, token, keeper)

    @classmethod
    def from_link(cls, link: str, **more: Any) -> "ParticipantClient":
        """The client for a personal link."""
        url, token = split_link(link)
        return cls(url, token, **more)

    def participation(self) -> Participation:
        """Where the campaign and she stand."""
        return self._transport.run(self._talk.participation())

    def menu(self) -> dict[str, Any]:
        """What she may expect for each sensitivity she could report."""
        return self._transport.run(self._talk.menu())

    def report(
        self,
        sensitivity: float,
        *,
        limit: float | None = None,
        at_most: float | None = None,
        offer: Participation | None = None,
    ) -> Participation:
        """Say what one unit of privacy loss costs her; may be said anew until reporting closes.

        ``limit`` is the largest loss that she accepts, which the campaign is told and keeps to, if it takes limits
        (`Participation.takes_limits`); the last report counts, with its limit or without one.

        Before it is sent, the price, the range, the setting and the largest privacy loss that the campaign shows, or
        her limit, are kept here, and no delivery goes beyond them. ``at_most`` names a smaller loss that only this
        device knows, for programs that show nobody what the campaign says. Once a smaller loss was named, only naming
        another agrees to more. ``offer`` is what `participation` said before.
        """
        return self._transport.run(self._talk.report(sensitivity, limit, at_most, offer))

    def decline(self) -> Participation:
        """Take no part."""
        return self._transport.run(self._talk.decline())

    def deliver_privately(
        self,
        value: float,
        *,
        at_most: float | None = None,
        bounds: Bounds | None = None,
        offer: Participation | None = None,
    ) -> Participation:
        """Add noise here and send the result; the first noisy value is kept, and sent on every later call.

        Refused before anything is drawn if the campaign promises a privacy loss above the largest she was shown when
        she reported, or above ``at_most``. On a device that she did not report from, ``at_most`` and ``bounds`` must
        be given. ``offer`` is what `participation` said before, if she has looked; otherwise it is asked for.
        """
        return self._transport.run(self._talk.deliver_privately(value, at_most, bounds, offer))

    def deliver_value(
        self,
        value: float,
        *,
        at_most: float | None = None,
        bounds: Bounds | None = None,
        offer: Participation | None = None,
    ) -> Participation:
        """Send the value as it is to a platform that she trusts to add the noise; refused in a local campaign."""
        return self._transport.run(self._talk.deliver_value(value, at_most, bounds, offer))

    def withdraw(self) -> Participation:
        """Take report and value back; possible until the estimate is drawn."""
        return self._transport.run(self._talk.withdraw())

    def receipt(self, *, fingerprint: str | None = None) -> Receipt:
        """Her receipt, checked: against itself, and against the fingerprint of a key she trusts."""
        return self._transport.run(self._talk.receipt(fingerprint))

    def export(self) -> dict[str, Any]:
        """All that the server holds about her."""
        return self._transport.run(self._talk.export())

    def ledger(self) -> dict[str, Any]:
        """What she has given up in all campaigns of this server."""
        return self._transport.run(self._talk.ledger())

    def own_link(self) -> str:
        """A link for another device of hers, which opens once; one that she made before and did not use ends."""
        return self._transport.run(self._talk.own_link())

    def devices(self) -> dict[str, Any]:
        """Where her part is open, since when, and when links for other devices were made and used."""
        return self._transport.run(self._talk.devices())

    def end_other_devices(self) -> dict[str, Any]:
        """End every other device, and links that nobody has used; what is left, as `devices` says it."""
        return self._transport.run(self._talk.end_other_devices())

    def close(self) -> None:
        """Close the connection."""
        self._transport.close()

    def __enter__(self) -> "ParticipantClient":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class AsyncParticipantClient:
    """A `ParticipantClient` that waits for nobody; many share one `AsyncTransport`, which whoever made it closes."""

    def __init__(self, transport: AsyncTransport, token: str, *, keeper: Keeper | None = None) -> None:
        self._talk = _Participant(transport.url, token, keeper)
        self._transport = transport

    async def participation(self) -> Participation:
        """Where the campaign and she stand."""
        return await self._run(self._talk.participation())

    async def menu(self) -> dict[str, Any]:
        """What she may expect for each sensitivity she could report."""
        return await self._run(self._talk.menu())

    async def report(
        self,
        sensitivity: float,
        *,
        limit: float | None = None,
        at_most: float | None = None,
        offer: Participation | None = None,
    ) -> Participation:
        """Say what one unit of privacy loss costs her and perhaps what she accepts at most; keep what she was shown."""
        return await self._run(self._talk.report(sensitivity, limit, at_most, offer))

    async def decline(self) -> Participation:
        """Take no part."""
        return await self._run(self._talk.decline())

    async def deliver_privately(
        self,
        value: float,
        *,
        at_most: float | None = None,
        bounds: Bounds | None = None,
        offer: Participation | None = None,
    ) -> Participation:
        """Add noise here and send the result, the same on every later call."""
        return await self._run(self._talk.deliver_privately(value, at_most, bounds, offer))

    async def deliver_value(
        self,
        value: float,
        *,
        at_most: float | None = None,
        bounds: Bounds | None = None,
        offer: Participation | None = None,
    ) -> Participation:
        """Send the value as it is; refused in a local campaign."""
        return await self._run(self._talk.deliver_value(value, at_most, bounds, offer))

    async def withdraw(self) -> Participation:
        """Take report and value back."""
        return await self._run(self._talk.withdraw())

    async def receipt(self, *, fingerprint: str | None = None) -> Receipt:
        """Her receipt, checked."""
        return await self._run(self._talk.receipt(fingerprint))

    async def export(self) -> dict[str, Any]:
        """All that the server holds about her."""
        return await self._run(self._talk.export())

    async def ledger(self) -> dict[str, Any]:
        """What she has given up in all campaigns of this server."""
        return await self._run(self._talk.ledger())

    async def own_link(self) -> str:
        """A link for another device of hers, which opens once."""
        return await self._run(self._talk.own_link())

    async def devices(self) -> dict[str, Any]:
        """Where her part is open."""
        return await self._run(self._talk.devices())

    async def end_other_devices(self) -> dict[str, Any]:
        """End every other device."""
        return await self._run(self._talk.end_other_devices())

    async def _run(self, conversation: Conversation[T]) -> T:
        return await self._transport.run(conversation)


class _Participant:
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

    def report(
        self, sensitivity: float, limit: float | None, at_most: float | None, offer: Participation | None
    ) -> Conversation[Participation]:
        if isinstance(sensitivity, bool) or not isinstance(sensitivity, (int, float)) or not 0 <= sensitivity < 1e300:
            raise InputError("sensitivity must be a finite number of at least 0.", field="sensitivity")
        limit, at_most = _limit(limit, "limit", least=_LEAST_LIMIT), _limit(at_most)
        named = [most for most in (limit, at_most) if most is not None]
        view = offer if offer is not None else (yield from self.participation())
        if limit is not None and not view.takes_limits:
            raise NotAllowed("This campaign takes no limits: nothing was sent.")
        if view.campaign_state == "reporting":  # otherwise the server refuses, and she has agreed to nothing
            place = yield from self._place(view)
            kept = yield Work(lambda: self._keeper.terms(place))
            # agreed to, durably, before the server hears anything
            terms = _terms(view, kept, float(sensitivity), min(named, default=None))
            yield Work(lambda: self._keeper.agree(place, terms))
        content = {"sensitivity": float(sensitivity), **({} if limit is None else {"limit": limit})}
        told = yield from self._ask(put("/participation/report", content))
        return Participation.from_dict(told)

    def decline(self) -> Conversation[Participation]:
        return Participation.from_dict((yield from self._ask(say("/participation/decline"))))

    def deliver_privately(
        self, value: float, at_most: float | None, bounds: Bounds | None, offer: Participation | None
    ) -> Conversation[Participation]:
        view = offer if offer is not None else (yield from self.participation())
        agreed, loss = yield from self._promise("local", at_most, bounds, view)
        number = _datum(value)
        place = yield from self._place(view)
        message = yield Work(lambda: self._keeper.message(place, number, loss, agreed.bounds))
        # the delivery's name follows from her secret: every attempt has the same
        name = hashlib.sha256(f"hushbid delivery\n{(yield from self._entered())}".encode()).hexdigest()
        content = {
            "message": message.to_dict(),
            "nonce": name[:32],
        }  # one noisy value, one name, as random as her secret
        return Participation.from_dict((yield from self._ask(put("/participation/delivery", content))))

    def deliver_value(
        self, value: float, at_most: float | None, bounds: Bounds | None, offer: Participation | None
    ) -> Conversation[Participation]:
        view = offer if offer is not None else (yield from self.participation())
        agreed, _ = yield from self._promise("central", at_most, bounds, view)
        number = _datum(value)
        low, high = agreed.bounds
        # by the range she agreed to: the server must not learn a value outside it
        if not low <= number <= high:
            raise DataError(f"Your value must lie in the public range from {low:g} to {high:g}.")
        content = {"value": number, "nonce": secrets.token_hex(16)}
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
        return receipt

    def export(self) -> Conversation[dict[str, Any]]:
        return self._object(get("/participation/export"))

    def ledger(self) -> Conversation[dict[str, Any]]:
        return self._object(get("/participation/ledger"))

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

    def _promise(
        self, setting: str, at_most: float | None, bounds: Bounds | None, view: Participation
    ) -> Conversation[tuple[Terms, float]]:
        """The terms and what she is promised, if the campaign still keeps to them and the offer is good enough."""
        at_most = _limit(at_most)
        if view.setting != setting:
            raise NotAllowed(f"This campaign is {view.setting}, not {setting}: nothing was sent.")
        if not view.promised:
            raise NotAllowed("No data of yours are wanted, or it is not decided yet: nothing was sent.")
        place = yield from self._place(view)
        # what she agreed to, from her own device
        kept = yield Work(lambda: self._keeper.terms(place))
        # another device: what decides on noise must come from her, not from the server
        if kept is None:
            if at_most is None or bounds is None:
                raise NotAllowed(
                    "This device does not know what you agreed to, because you did not report from it: give at_most,"
                    " the largest privacy loss you were shown, and bounds, the range of the data. Nothing was sent."
                )
            kept = Terms(setting=setting, bounds=_range(bounds), largest_loss=at_most, price=view.report)
        # the campaign must not have changed since
        if kept.setting != setting:
            raise NotAllowed(f"You reported to a {kept.setting} campaign, and now it is {setting}: nothing was sent.")
        if view.bounds != kept.bounds:
            raise NotAllowed("The campaign names another range of the data than you agreed to: nothing was sent.")
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


def _terms(view: Participation, kept: Terms | None, price: float, at_most: float | None) -> Terms:
    """What she agrees to by reporting now; once she has, only she can agree to more."""
    if kept is not None and (kept.setting, kept.bounds) != (view.setting, view.bounds):
        raise NotAllowed("The campaign names another setting or range than when you first reported: nothing was sent.")
    _require_currency(view, kept)
    # the least of what is shown and what she names or, if she names nothing, agreed to before
    limits = [limit for limit in (view.max_privacy_loss, at_most) if limit is not None]
    if kept is not None and at_most is None:
        limits.append(kept.largest_loss)
    if not limits or not 0.0 < min(limits) <= _LARGEST_SHOWN:
        raise NotAllowed(
            f"The campaign names no largest privacy loss from 0 to {_LARGEST_SHOWN:g}: nothing was sent. You may name"
            " yours with at_most."
        )
    return Terms(
        setting=view.setting,
        bounds=view.bounds,
        largest_loss=min(limits),
        price=price,
        currency=view.currency,
        decimals=view.decimals,
    )


def _require_currency(view: Participation, kept: Terms | None) -> None:
    """Refuse other money than her price was named in; earlier versions kept none."""
    if (
        kept is not None
        and kept.currency is not None
        and (kept.currency, kept.decimals) != (view.currency, view.decimals)
    ):
        raise NotAllowed("The campaign names another currency than you named your price in: nothing was sent.")


def _limit(at_most: float | None, name: str = "at_most", *, least: float = math.ulp(0.0)) -> float | None:
    if at_most is None:
        return None
    if isinstance(at_most, bool) or not isinstance(at_most, (int, float)) or not least <= at_most < math.inf:
        what = "a positive number" if least < _LEAST_LIMIT else f"a finite number from {least:g} up"
        raise InputError(f"{name} must be {what}, got {at_most!r}.", field=name)
    return float(at_most)


def _range(bounds: Bounds) -> Bounds:
    return as_bounds(bounds)


def _datum(value: float) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value != value:
        raise DataError("Your value must be a number.")
    return float(value)
