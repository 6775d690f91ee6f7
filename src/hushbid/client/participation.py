"""One participant's side of a campaign.

What leaves the process is hers to decide, so it never depends on what the server claims: `deliver_privately` adds noise
whatever the campaign says, `deliver_value` is the only way in which a value leaves as it is, and both refuse a campaign
of the other setting, and an offer that does not cover what she said her privacy costs her.
"""

import hashlib
import secrets
from types import TracebackType
from typing import Any, TypeVar

from hushbid.client.calls import Conversation, Work, asking_object, get, put, say
from hushbid.client.keeping import Keeper, MessageFolder
from hushbid.client.transport import ATTEMPTS, AsyncTransport, Transport
from hushbid.client.views import Participation, split_link
from hushbid.errors import DataError, InputError, NotAllowed, RecordError
from hushbid.record.receipt import Receipt
from hushbid.record.signing import KeyList
from hushbid.record.trust import verify_receipt

T = TypeVar("T")
_ROUNDING = 1e-9


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
        """``keeper`` stores the noisy value; a folder of the account's own if none is given."""
        self._talk = _Participant(token, keeper)
        self._transport = Transport(url, token=token, attempts=attempts, **more)

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

    def report(self, sensitivity: float) -> Participation:
        """Say what one unit of privacy loss costs her; may be said anew until reporting closes."""
        return self._transport.run(self._talk.report(sensitivity))

    def decline(self) -> Participation:
        """Take no part."""
        return self._transport.run(self._talk.decline())

    def deliver_privately(
        self, value: float, *, at_most: float | None = None, offer: Participation | None = None
    ) -> Participation:
        """Add noise here and send the result; the first noisy value is kept, and sent on every later call.

        Refused before anything is drawn if the campaign promises a privacy loss above ``at_most``. ``offer`` is what
        `participation` said before, if she has looked; otherwise it is asked for.
        """
        return self._transport.run(self._talk.deliver_privately(value, at_most, offer))

    def deliver_value(
        self, value: float, *, at_most: float | None = None, offer: Participation | None = None
    ) -> Participation:
        """Send the value as it is to a platform that she trusts to add the noise; refused in a local campaign."""
        return self._transport.run(self._talk.deliver_value(value, at_most, offer))

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
    """The same, waiting for nobody; many share one `AsyncTransport`, which whoever made it closes."""

    def __init__(self, transport: AsyncTransport, token: str, *, keeper: Keeper | None = None) -> None:
        self._talk = _Participant(token, keeper)
        self._token = token
        self._transport = transport

    async def participation(self) -> Participation:
        """Where the campaign and she stand."""
        return await self._run(self._talk.participation())

    async def menu(self) -> dict[str, Any]:
        """What she may expect for each sensitivity she could report."""
        return await self._run(self._talk.menu())

    async def report(self, sensitivity: float) -> Participation:
        """Say what one unit of privacy loss costs her."""
        return await self._run(self._talk.report(sensitivity))

    async def decline(self) -> Participation:
        """Take no part."""
        return await self._run(self._talk.decline())

    async def deliver_privately(
        self, value: float, *, at_most: float | None = None, offer: Participation | None = None
    ) -> Participation:
        """Add noise here and send the result, the same on every later call."""
        return await self._run(self._talk.deliver_privately(value, at_most, offer))

    async def deliver_value(
        self, value: float, *, at_most: float | None = None, offer: Participation | None = None
    ) -> Participation:
        """Send the value as it is; refused in a local campaign."""
        return await self._run(self._talk.deliver_value(value, at_most, offer))

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

    async def _run(self, conversation: Conversation[T]) -> T:
        return await self._transport.run(conversation, token=self._token)


class _Participant:
    """The conversations, without the waiting."""

    def __init__(self, token: str, keeper: Keeper | None) -> None:
        self._token = token
        self._keeper = keeper or MessageFolder()
        self._reported: float | None = None

    def participation(self) -> Conversation[Participation]:
        return Participation.from_dict((yield get("/participation")))

    def menu(self) -> Conversation[dict[str, Any]]:
        return asking_object(get("/participation/menu"))

    def report(self, sensitivity: float) -> Conversation[Participation]:
        if isinstance(sensitivity, bool) or not isinstance(sensitivity, (int, float)) or not 0 <= sensitivity < 1e300:
            raise InputError("sensitivity must be a finite number of at least 0.")
        view = Participation.from_dict((yield put("/participation/report", {"sensitivity": float(sensitivity)})))
        self._reported = float(sensitivity)
        return view

    def decline(self) -> Conversation[Participation]:
        return Participation.from_dict((yield say("/participation/decline")))

    def deliver_privately(
        self, value: float, at_most: float | None, offer: Participation | None
    ) -> Conversation[Participation]:
        view, loss = yield from self._promise("local", at_most, offer)
        number = _datum(value)
        message = yield Work(lambda: self._keeper.message(self._token, number, loss, view.bounds))
        content = {"message": message.to_dict(), "nonce": self._nonce()}
        return Participation.from_dict((yield put("/participation/delivery", content)))

    def deliver_value(
        self, value: float, at_most: float | None, offer: Participation | None
    ) -> Conversation[Participation]:
        view, _ = yield from self._promise("central", at_most, offer)
        number = _datum(value)
        low, high = view.bounds
        if not low <= number <= high:
            raise DataError(f"Your value must lie in the public range from {low:g} to {high:g}.")
        content = {"value": number, "nonce": secrets.token_hex(16)}
        return Participation.from_dict((yield put("/participation/delivery", content)))

    def withdraw(self) -> Conversation[Participation]:
        return Participation.from_dict((yield say("/participation/withdrawal")))

    def receipt(self, fingerprint: str | None) -> Conversation[Receipt]:
        receipt = Receipt.from_dict((yield get("/participation/receipt")))
        keys = None
        if fingerprint is not None:
            keys = KeyList.from_dict((yield get("/keys")))
        found = verify_receipt(receipt, fingerprint=fingerprint, keys=keys)
        if not found.ok:
            raise RecordError(f"The receipt is not to be relied on: {found.summary()}")
        return receipt

    def export(self) -> Conversation[dict[str, Any]]:
        return asking_object(get("/participation/export"))

    def ledger(self) -> Conversation[dict[str, Any]]:
        return asking_object(get("/participation/ledger"))

    def _nonce(self) -> str:
        """The name of her one noisy value's delivery, the same on every call: as random as her secret."""
        return hashlib.sha256(f"hushbid delivery\n{self._token}".encode()).hexdigest()[:32]

    def _promise(
        self, setting: str, at_most: float | None, offer: Participation | None
    ) -> Conversation[tuple[Participation, float]]:
        """What she is promised, if the campaign is of that setting and the offer is good enough for her."""
        view = offer if offer is not None else (yield from self.participation())
        if view.setting != setting:
            raise NotAllowed(f"This campaign is {view.setting}, not {setting}: nothing was sent.")
        if not view.promised:
            raise NotAllowed("No data of yours are wanted, or it is not decided yet: nothing was sent.")
        if at_most is not None and not view.promised <= at_most:
            raise NotAllowed(f"The campaign would cost you a privacy loss above {at_most:g}: nothing was sent.")
        price = self._reported if self._reported is not None else view.report
        if price is None or view.payment is None or view.payment < (1.0 - _ROUNDING) * view.cost(price):
            raise NotAllowed("The offer does not cover what you said your privacy costs you: nothing was sent.")
        return view, view.promised


def _datum(value: float) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value != value:
        raise DataError("Your value must be a number.")
    return float(value)
