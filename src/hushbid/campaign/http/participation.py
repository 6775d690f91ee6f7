"""One participant's side. Her token is looked up in the transaction that uses it; nothing here takes an identifier, so
nothing here can be asked for somebody else's."""

import asyncio
from collections.abc import Awaitable, Callable
from hashlib import sha256
from typing import TypeVar

from fastapi import APIRouter, Request, Response

from hushbid.campaign.domain.views import MenuView, ParticipationView, PersonalLedger
from hushbid.campaign.http import exports
from hushbid.campaign.http.callers import link, not_logged_in
from hushbid.campaign.http.once import Key, once
from hushbid.campaign.http.openapi import problems
from hushbid.campaign.http.shell import PREFIX, Shell, shell_of
from hushbid.campaign.http.wire import Delivery, Report, answer, body_of, received
from hushbid.campaign.service import Service
from hushbid.errors import NotAllowed, NotFound

T = TypeVar("T")
router = APIRouter(prefix=f"{PREFIX}/participation", tags=["participation"])
_READ = problems(401, 403, 404, 409)
_CHANGE = problems(401, 403, 409, 422)
_OBJECT = {"application/json": {"schema": {"type": "object"}}}


# The two that everybody uses come first: addresses are compared one after the other.


@router.put(
    "/report", response_model=ParticipationView, responses=_CHANGE, summary="Report", openapi_extra=body_of(Report)
)
async def report(request: Request) -> Response:
    """Say what one unit of privacy loss costs; may be said anew until reporting closes, and the last one counts."""
    token = await link(request)
    shell = shell_of(request)
    given = await received(request, Report)
    promise = shell.service.report_soon(token, given.sensitivity)
    return answer(await _known(shell, token, asyncio.wrap_future(promise)))


@router.put(
    "/delivery",
    response_model=ParticipationView,
    responses=_CHANGE,
    summary="Deliver",
    openapi_extra=body_of(Delivery),
)
async def deliver(request: Request) -> Response:
    """Deliver what is bought. The first delivery counts: again with its nonce changes nothing, another is refused."""
    token = await link(request)
    shell = shell_of(request)
    given = await received(request, Delivery)
    promise = shell.service.deliver_soon(token, given.content, nonce=given.nonce)
    return answer(await _known(shell, token, asyncio.wrap_future(promise)))


@router.get("", response_model=ParticipationView, responses=_READ, summary="Where do I stand?")
async def participation(request: Request) -> Response:
    """The campaign, and where the participant stands in it."""
    token = await link(request)
    return answer(await _ask(request, token, lambda service: service.participation(token)))


@router.get("/menu", response_model=MenuView, responses=_READ, summary="What may I expect?")
async def menu(request: Request) -> Response:
    """Expected privacy loss and payment for each sensitivity she could report."""
    token = await link(request)
    return answer(await _ask(request, token, lambda service: service.menu(token)))


@router.post("/decline", response_model=ParticipationView, responses=_CHANGE, summary="Decline")
async def decline(request: Request, key: Key = None) -> Response:
    """Take no part."""
    token = await link(request)
    shell = shell_of(request)
    asked = once(request, _holder(token), key, lambda: shell.service.decline(token))
    return await _known(shell, token, asked)


@router.post("/withdrawal", response_model=ParticipationView, responses=_CHANGE, summary="Withdraw")
async def withdraw(request: Request, key: Key = None) -> Response:
    """Take back what was given; possible until the estimate is drawn."""
    token = await link(request)
    shell = shell_of(request)
    asked = once(request, _holder(token), key, lambda: shell.service.withdraw(token))
    return await _known(shell, token, asked)


@router.get(
    "/receipt",
    response_class=Response,
    responses={200: {"description": "The receipt.", "content": _OBJECT}, **_READ},
    summary="Download the receipt",
)
async def receipt(request: Request) -> Response:
    """The signed receipt, as `hushbid verify` reads it, once the campaign is over."""
    token = await link(request)
    found = await _ask(request, token, lambda service: service.receipt(token))
    return Response(found.to_json(), media_type="application/json", headers=exports.download("receipt.json"))


@router.get(
    "/export",
    response_class=Response,
    responses={200: {"description": "Personal data.", "content": _OBJECT}, **_READ},
    summary="Download personal data",
)
async def export(request: Request) -> Response:
    """All that the server holds about her, but her sealed value, which nobody can read."""
    token = await link(request)
    return answer(await _ask(request, token, lambda service: service.export(token)))


@router.get("/ledger", response_model=PersonalLedger, responses=_READ, summary="What have I given up?")
async def ledger(request: Request) -> Response:
    """What she has given up in all campaigns of this server."""
    token = await link(request)
    return answer(await _ask(request, token, lambda service: service.personal_ledger(token)))


async def _ask(request: Request, token: str, ask: Callable[[Service], T]) -> T:
    shell = shell_of(request)
    return await _known(shell, token, shell.run(lambda: ask(shell.service)))


async def _known(shell: Shell, token: str, asked: Awaitable[T]) -> T:
    """Wait for an answer; if nothing was found, tell a link that is not valid from a thing that is not there."""
    try:
        return await asked
    except NotFound:
        try:
            await shell.run(lambda: shell.service.principal_of(token))
        except NotAllowed as refused:
            raise not_logged_in(str(refused)) from None
        raise


def _holder(token: str) -> str:
    """A name for whoever holds a link, by which her repeated requests are told from others'."""
    return sha256(token.encode()).hexdigest()
