"""One participant's side of a campaign.

A link opens once: before anything else the client exchanges it for a secret of its own, which the keeper draws and
keeps before it is sent. So this device alone can repeat the exchange, and whoever else holds the link, an analyst above
all, cannot speak for her.

What leaves the process is hers to decide, so it never depends on what the server claims: `bid` keeps what she was
shown before it sends anything, and nothing that decides how much noise is added is taken from the server later on.
`deliver_privately` adds noise whatever the campaign says. A value leaves as it is in two ways only: by `deliver_value`,
and with a bid that is given one, where a campaign asks for both in one visit. Deliveries refuse a campaign of the
other setting, another range, questions or currency than she was shown, a privacy loss above the largest she was shown,
and an offer that does not cover what she said her privacy costs her. The answers to several questions leave together,
or none of them.
"""

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, TypeVar

from hushbid.client.calls import Conversation
from hushbid.client.conversation import Datum, Own, Talk
from hushbid.client.messages import Bounds, Keeper
from hushbid.client.transport import ATTEMPTS, AsyncTransport, Transport
from hushbid.client.views import Participation, split_link
from hushbid.questions import Question
from hushbid.receipts.receipt import Receipt

T = TypeVar("T")


class ParticipantClient:
    """Speaks for one participant and waits for the answers.

    with ParticipantClient.from_link("https://example.org/p#SECRET") as me:
        me.bid(1.25)
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
        self._talk = Talk(self._transport.url, token, keeper)

    @classmethod
    def from_link(cls, link: str, **more: Any) -> "ParticipantClient":
        """The client for a personal link."""
        url, token = split_link(link)
        return cls(url, token, **more)

    def participation(self) -> Participation:
        """Where the campaign and she stand."""
        return self._transport.run(self._talk.participation())

    def menu(self) -> dict[str, Any]:
        """What she may expect for each bid she could make."""
        return self._transport.run(self._talk.menu())

    def consent(self, language: str = "en") -> dict[str, Any]:
        """What she is asked to agree to: a ``document``, in which the analyst's own text is in that language, its
        ``version``, and whether an agreement is ``required`` before she may bid."""
        return self._transport.run(self._talk.consent(language))

    def agree(self, document: Mapping[str, Any]) -> Participation:
        """Agree to a document that `consent` gave and that she has read; the last agreement counts.

        Never done unasked: where an agreement is required, `bid` is refused without one.
        """
        return self._transport.run(self._talk.agree(document))

    def bid(
        self,
        bid: float,
        *,
        value: Datum | None = None,
        limit: float | None = None,
        at_most: float | None = None,
        offer: Participation | None = None,
    ) -> Participation:
        """Say what one unit of privacy loss costs her; may be said anew until bidding closes.

        ``value`` is her value, or her answers, where a central campaign asks for them together with the price
        (`Participation.single_visit`). They leave as they are, sealed on arrival and opened only if they are bought; so
        what is promised cannot be looked at before. A later bid without it leaves them as they are, one with it
        replaces them.

        ``limit`` is the largest loss that she accepts, which the campaign is told and keeps to, if it takes limits
        (`Participation.takes_limits`); the last bid counts, with its limit or without one.

        Before it is sent, the price, the range, the setting and the largest privacy loss that the campaign shows, or
        her limit, are kept here, and no delivery goes beyond them. ``at_most`` names a smaller loss that only this
        device knows, for programs that show nobody what the campaign says. Once a smaller loss was named, only naming
        another agrees to more. ``offer`` is what `participation` said before.
        """
        return self._transport.run(self._talk.bid(bid, limit, at_most, offer, value))

    def decline(self) -> Participation:
        """Take no part."""
        return self._transport.run(self._talk.decline())

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

        Where the campaign has questions, the value is her answers, in the questions' order or by their names; all of
        them are in one message, and none may be left open.

        Refused before anything is drawn if the campaign promises a privacy loss above the largest she was shown when
        she bid, or above ``at_most``. On a device that she did not bid from, ``at_most`` and ``bounds``, or
        ``questions``, must be given. ``offer`` is what `participation` said before, if she has looked; otherwise it is
        asked for.
        """
        return self._transport.run(self._talk.deliver_privately(value, Own(at_most, bounds, questions), offer))

    def deliver_value(
        self,
        value: Datum,
        *,
        at_most: float | None = None,
        bounds: Bounds | None = None,
        questions: Sequence[Question] | None = None,
        offer: Participation | None = None,
    ) -> Participation:
        """Send the value, or her answers, as they are to a platform that she trusts to add the noise; refused in a
        local campaign."""
        return self._transport.run(self._talk.deliver_value(value, Own(at_most, bounds, questions), offer))

    def withdraw(self) -> Participation:
        """Take bid and value back; possible until the estimate is drawn."""
        return self._transport.run(self._talk.withdraw())

    def receipt(self, *, fingerprint: str | None = None) -> Receipt:
        """Her receipt, checked: against itself, and against the fingerprint of a key she trusts."""
        return self._transport.run(self._talk.receipt(fingerprint))

    def payout(self) -> dict[str, Any]:
        """Whether it is stored where she is to be paid, its last characters, and when it is destroyed."""
        return self._transport.run(self._talk.payout())

    def state_payout(self, handle: str) -> dict[str, Any]:
        """Say where she is to be paid, as the campaign asks; until she is marked as paid."""
        return self._transport.run(self._talk.state_payout(handle))

    def remove_payout(self) -> dict[str, Any]:
        """Let the server forget where she is to be paid."""
        return self._transport.run(self._talk.remove_payout())

    def export(self) -> dict[str, Any]:
        """All that the server holds about her."""
        return self._transport.run(self._talk.export())

    def privacy_account(self) -> dict[str, Any]:
        """What she has given up in all campaigns of this server."""
        return self._transport.run(self._talk.privacy_account())

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
        self._talk = Talk(transport.url, token, keeper)
        self._transport = transport

    async def participation(self) -> Participation:
        """Where the campaign and she stand."""
        return await self._run(self._talk.participation())

    async def menu(self) -> dict[str, Any]:
        """What she may expect for each bid she could make."""
        return await self._run(self._talk.menu())

    async def consent(self, language: str = "en") -> dict[str, Any]:
        """What she is asked to agree to."""
        return await self._run(self._talk.consent(language))

    async def agree(self, document: Mapping[str, Any]) -> Participation:
        """Agree to a document that `consent` gave."""
        return await self._run(self._talk.agree(document))

    async def bid(
        self,
        bid: float,
        *,
        value: Datum | None = None,
        limit: float | None = None,
        at_most: float | None = None,
        offer: Participation | None = None,
    ) -> Participation:
        """Say what one unit of privacy loss costs her and perhaps what she accepts at most; keep what she was shown."""
        return await self._run(self._talk.bid(bid, limit, at_most, offer, value))

    async def decline(self) -> Participation:
        """Take no part."""
        return await self._run(self._talk.decline())

    async def deliver_privately(
        self,
        value: Datum,
        *,
        at_most: float | None = None,
        bounds: Bounds | None = None,
        questions: Sequence[Question] | None = None,
        offer: Participation | None = None,
    ) -> Participation:
        """Add noise here and send the result, the same on every later call."""
        return await self._run(self._talk.deliver_privately(value, Own(at_most, bounds, questions), offer))

    async def deliver_value(
        self,
        value: Datum,
        *,
        at_most: float | None = None,
        bounds: Bounds | None = None,
        questions: Sequence[Question] | None = None,
        offer: Participation | None = None,
    ) -> Participation:
        """Send the value as it is; refused in a local campaign."""
        return await self._run(self._talk.deliver_value(value, Own(at_most, bounds, questions), offer))

    async def withdraw(self) -> Participation:
        """Take bid and value back."""
        return await self._run(self._talk.withdraw())

    async def receipt(self, *, fingerprint: str | None = None) -> Receipt:
        """Her receipt, checked."""
        return await self._run(self._talk.receipt(fingerprint))

    async def payout(self) -> dict[str, Any]:
        """What is stored of where she is to be paid."""
        return await self._run(self._talk.payout())

    async def state_payout(self, handle: str) -> dict[str, Any]:
        """Say where she is to be paid."""
        return await self._run(self._talk.state_payout(handle))

    async def remove_payout(self) -> dict[str, Any]:
        """Let the server forget where she is to be paid."""
        return await self._run(self._talk.remove_payout())

    async def export(self) -> dict[str, Any]:
        """All that the server holds about her."""
        return await self._run(self._talk.export())

    async def privacy_account(self) -> dict[str, Any]:
        """What she has given up in all campaigns of this server."""
        return await self._run(self._talk.privacy_account())

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
