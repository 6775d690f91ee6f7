"""One participant's side. Her secret is looked up in the transaction that uses it; nothing here takes an identifier, so
nothing here can be asked for somebody else's."""

import asyncio
from collections.abc import Awaitable, Callable
from hashlib import sha256
from typing import Any, Literal, TypeVar

from fastapi import APIRouter, Request, Response

from hushbid.errors import InputError
from hushbid.server.api import exports
from hushbid.server.api.auth import link_of, not_logged_in, secret_of
from hushbid.server.api.idempotency import Key, Once
from hushbid.server.api.schemas import (
    Agreeing,
    Bid,
    Delivery,
    Exchange,
    PayoutHandle,
    answer,
    body_of,
    problems,
    received,
)
from hushbid.server.api.state import PREFIX, app_of, operation_id
from hushbid.server.domain.access import NoEntry
from hushbid.server.domain.payment_views import PayoutView
from hushbid.server.domain.views import ConsentView, DevicesView, MenuView, OwnLink, ParticipationView, PersonalAccount
from hushbid.server.service import Service
from hushbid.server.service.use_case import Asked

T = TypeVar("T")
router = APIRouter(prefix=f"{PREFIX}/participation", tags=["participation"], generate_unique_id_function=operation_id)
_READ = problems(401, 403, 404, 409)
_CHANGE = problems(401, 403, 409, 422)
_OBJECT = {"application/json": {"schema": {"type": "object"}}}


# The two that everybody uses come first: addresses are compared one after the other.


@router.put("/bid", response_model=ParticipationView, responses=_CHANGE, summary="Bid", openapi_extra=body_of(Bid))
async def bid(request: Request) -> Response:
    """Say what one unit of privacy loss costs, and perhaps the largest loss that is accepted; may be said anew until
    bidding closes, and the last one counts: one without a limit takes an earlier limit back. Where the campaign wants
    both in one visit, her value or answers come with it, and are destroyed unopened unless they are bought."""
    secret = await secret_of(request)
    app = app_of(request)
    given = await received(request, Bid)
    promise = app.service.bid.soon(secret, given.bid, limit=given.limit, given=given.given, nonce=given.nonce)
    return answer(await _known(asyncio.wrap_future(promise)))


@router.put(
    "/delivery",
    response_model=ParticipationView,
    responses=_CHANGE,
    summary="Deliver",
    openapi_extra=body_of(Delivery),
)
async def deliver(request: Request) -> Response:
    """Deliver what is bought. The first delivery counts: again with its nonce changes nothing, another is refused."""
    secret = await secret_of(request)
    app = app_of(request)
    given = await received(request, Delivery)
    promise = app.service.deliver.soon(secret, given.content, nonce=given.nonce)
    return answer(await _known(asyncio.wrap_future(promise)))


@router.put(
    "/secret",
    response_model=ParticipationView,
    responses=_CHANGE,
    summary="Exchange a link for a secret",
    openapi_extra=body_of(Exchange),
)
async def enter(request: Request) -> Response:
    """Exchange a link, sent as the bearer token, for a secret that the device drew. The link opens nothing from then
    on; the same exchange again, because its answer got lost, gets the same answer."""
    link = await link_of(request)
    app = app_of(request)
    given = await received(request, Exchange)
    promise = app.service.enter.soon(link, given.secret)
    return answer(await _known(asyncio.wrap_future(promise)))


@router.post("/link", response_model=OwnLink, responses=_CHANGE, summary="Make a link for another device")
async def own_link(request: Request, key: Key = None) -> Response:
    """A link for another device of hers, shown this once; one that she made before and did not use ends. The log, her
    devices and her receipt show that it was made, and that it was used."""
    return await _once(request, key, app_of(request).service.own_link)


@router.get("/devices", response_model=DevicesView, responses=_READ, summary="Where is my part open?")
async def devices(request: Request) -> Response:
    """On how many devices her part is open, since when, and when links for other devices were made and used."""
    secret = await secret_of(request)
    return answer(await _ask(request, lambda service: service.devices(secret)))


@router.delete("/devices", response_model=DevicesView, responses=_CHANGE, summary="End all other devices")
async def end_other_devices(request: Request, key: Key = None) -> Response:
    """End every other secret of hers and every link that nobody has used; logged. After a delivery only the device that
    delivered, and those it let in later, may."""
    return await _once(request, key, app_of(request).service.end_other_devices)


@router.delete("/secret", status_code=204, responses=_CHANGE, summary="Leave")
async def leave(request: Request) -> Response:
    """End this device's own secret, with the link that it was exchanged for."""
    secret = await secret_of(request)
    await _ask(request, lambda service: service.leave(secret))
    return Response(status_code=204)


@router.get("", response_model=ParticipationView, responses=_READ, summary="Where do I stand?")
async def participation(request: Request) -> Response:
    """The campaign, and where the participant stands in it."""
    secret = await secret_of(request)
    return answer(await _ask(request, lambda service: service.participation(secret)))


@router.get("/menu", response_model=MenuView, responses=_READ, summary="What may I expect?")
async def menu(request: Request) -> Response:
    """Expected privacy loss and payment for each bid she could make."""
    secret = await secret_of(request)
    return answer(await _ask(request, lambda service: service.menu(secret)))


@router.get(
    "/consent",
    response_model=ConsentView,
    responses=problems(401, 403, 404, 409, 422),
    summary="What am I asked to agree to?",
)
async def consent(request: Request, language: Literal["en", "de"] = "en") -> Response:
    """What the campaign states, with the analyst's own text in that language, as a document with its version."""
    secret = await secret_of(request)
    if [name for name, _ in request.query_params.multi_items()] not in ([], ["language"]):
        raise InputError("language is the only thing that can be asked for, and once.", field="language")
    return answer(await _ask(request, lambda service: service.consent(secret, language=language)))


@router.put(
    "/agreement",
    response_model=ParticipationView,
    responses=_CHANGE,
    summary="Agree",
    openapi_extra=body_of(Agreeing),
)
async def agree(request: Request) -> Response:
    """Agree to the document of that version; refused if it is not the one that is stated now. Needed before a bid
    where `must_agree` is true. The last agreement counts; the same one again changes nothing."""
    secret = await secret_of(request)
    given = await received(request, Agreeing)

    def act(service: Service) -> ParticipationView:
        return service.agree(secret, version=given.version, language=given.language)

    return answer(await _ask(request, act))


@router.post("/decline", response_model=ParticipationView, responses=_CHANGE, summary="Decline")
async def decline(request: Request, key: Key = None) -> Response:
    """Take no part."""
    return await _once(request, key, app_of(request).service.decline)


@router.post("/withdrawal", response_model=ParticipationView, responses=_CHANGE, summary="Withdraw")
async def withdraw(request: Request, key: Key = None) -> Response:
    """Take back what was given; possible until the estimate is drawn."""
    return await _once(request, key, app_of(request).service.withdraw)


@router.get("/payout", response_model=PayoutView, responses=_READ, summary="Where am I paid?")
async def payout(request: Request) -> Response:
    """Whether it is stored where she is to be paid, its last characters, and when it is destroyed."""
    secret = await secret_of(request)
    return answer(await _ask(request, lambda service: service.payout(secret)))


@router.put(
    "/payout",
    response_model=PayoutView,
    responses=_CHANGE,
    summary="Say where to pay me",
    openapi_extra=body_of(PayoutHandle),
)
async def state_payout(request: Request) -> Response:
    """Say where she is to be paid, if the campaign asks; sealed, for the payer only. Once she has bid, and again
    until she is marked as paid: the last one counts."""
    secret = await secret_of(request)
    given = await received(request, PayoutHandle)
    return answer(await _ask(request, lambda service: service.state_payout(secret, given.payout)))


@router.delete("/payout", response_model=PayoutView, responses=_CHANGE, summary="Forget where to pay me")
async def remove_payout(request: Request) -> Response:
    """Remove what she said; again changes nothing."""
    secret = await secret_of(request)
    return answer(await _ask(request, lambda service: service.remove_payout(secret)))


@router.get(
    "/receipt",
    response_class=Response,
    responses={200: {"description": "The receipt.", "content": _OBJECT}, **_READ},
    summary="Download the receipt",
)
async def receipt(request: Request) -> Response:
    """The signed receipt, as `hushbid verify` reads it, once the campaign is over."""
    secret = await secret_of(request)
    found = await _ask(request, lambda service: service.receipt(secret))
    return Response(found.to_json(), media_type="application/json", headers=exports.download("receipt.json"))


@router.get(
    "/export",
    response_class=Response,
    responses={200: {"description": "Personal data.", "content": _OBJECT}, **_READ},
    summary="Download personal data",
)
async def export(request: Request) -> Response:
    """All that the server holds about her, but her sealed value, which nobody can read."""
    secret = await secret_of(request)
    return answer(await _ask(request, lambda service: service.export(secret)))


@router.get("/privacy-account", response_model=PersonalAccount, responses=_READ, summary="What have I given up?")
async def privacy_account(request: Request) -> Response:
    """What she has given up in all campaigns of this server."""
    secret = await secret_of(request)
    return answer(await _ask(request, lambda service: service.personal_account(secret)))


async def _ask(request: Request, ask: Callable[[Service], T]) -> T:
    app = app_of(request)
    return await _known(app.run(ask, app.service))


async def _once(request: Request, key: str | None, use_case: Asked[[str], Any]) -> Response:
    """Carry a request out once; a secret that has ended gets nothing, also no answer that it got before."""
    secret = await secret_of(request)
    if key is not None:
        await _ask(request, lambda service: service.require_open(secret))
    return await _known(Once(request, _holder(secret), key).do(use_case, secret))


async def _known(asked: Awaitable[T]) -> T:
    """Wait for an answer; whoever came with what opens nothing is nobody."""
    try:
        return await asked
    except NoEntry as refused:
        raise not_logged_in(str(refused), refused) from None


def _holder(secret: str) -> str:
    """A name for whoever holds a secret, by which her repeated requests are told from others'."""
    return sha256(secret.encode()).hexdigest()
