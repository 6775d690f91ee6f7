"""A participant's pages. What she typed is confidential: it is never part of an address."""

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from fastapi import Response
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError

from hushbid.errors import Conflict, InputError, NotAllowed
from hushbid.server.http.auth import CSRF_HEADER
from hushbid.server.http.downloads import download
from hushbid.server.http.schemas import answer
from hushbid.server.model.states import CampaignState, ParticipantState
from hushbid.server.model.views import ParticipationView
from hushbid.server.pages import answering, consent
from hushbid.server.pages.answering import Price, answers_page, choice_page, given_in, price_before, price_typed
from hushbid.server.pages.choice import step_of
from hushbid.server.pages.entry import entry_page
from hushbid.server.pages.estimates import shown_estimates
from hushbid.server.pages.request import PageRequest, base_address, page, participant, perhaps_participant
from hushbid.server.pages.wording import languages, sureness
from hushbid.server.service import Service
from hushbid.server.service.bodies import Delivery

_LONGEST_HANDLE = 1000
_C, _P = CampaignState, ParticipantState
_LEFT = {_P.EXCLUDED: "excluded", _P.DECLINED: "declined", _P.WITHDRAWN: "withdrawn"}
_ENDED = {_C.CANCELLED: "cancelled", _C.ALLOCATING: "deciding", _C.NOTHING_BOUGHT: "nothing_bought"}
_LATER = {_C.RELEASING: "releasing", _C.UNDELIVERED: "undelivered"}


def stage_of(view: ParticipationView, now: datetime) -> str:
    """Where a person stands, in the words of the pages."""
    if view.campaign_state is _C.DRAFT:
        return "unopened"
    if view.state in _LEFT:
        return _LEFT[view.state]
    if view.campaign_state is _C.BIDDING:
        late = view.bid_by is not None and now >= view.bid_by
        if view.state is _P.BID:
            return "bid_late" if late else "bid"
        return "late" if late else "invited"
    if view.campaign_state in _ENDED:
        return _ENDED[view.campaign_state]
    if view.state in (_P.ABSENT, _P.NOT_BOUGHT):
        return str(view.state.value)
    if view.campaign_state is _C.DELIVERING:
        if view.state is _P.DELIVERED:
            return "delivered"
        return "offer_late" if view.deliver_by is not None and now >= view.deliver_by else "offer"
    if view.campaign_state in _LATER:
        return _LATER[view.campaign_state]
    return "done" if view.state is _P.DELIVERED else "dropped"


# -- where she stands --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Turn:
    """One request of a participant, and where she stands."""

    visit: PageRequest
    view: ParticipationView
    stage: str

    def require_stage(self, *stages: str) -> None:
        """Refuse what comes too late or twice."""
        if self.stage not in stages:
            raise _Stays("refused.moved_on", 409)

    def require_bidding(self) -> None:
        """Refuse a price that comes too late, or before she has agreed; a price that was named before says she has."""
        self.require_stage("invited", "bid")
        if self.view.agreement is None and self.view.bid is None:
            raise _Stays("consent.tick", 422)


class _Stays(Exception):
    """She stays where she stands, and is told why."""

    def __init__(self, notice: str, status: int) -> None:
        super().__init__(notice)
        self.notice, self.status = notice, status


Do = Callable[[_Turn], Awaitable[Response]]


def _page(address: str) -> Callable[[Do], Do]:
    """Register a page of hers; what the service refuses because something has moved on shows where she stands."""

    def register(do: Do) -> Do:
        async def act(visit: PageRequest) -> Response:
            view = await visit.ask(visit.service.participation)
            try:
                return await do(_Turn(visit=visit, view=view, stage=stage_of(view, visit.service.clock())))
            except Conflict:
                return await _standing(visit, notice="refused.moved_on", status=409)
            except _Stays as stays:
                return await _standing(visit, notice=stays.notice, status=stays.status)

        page(address, participant)(act)
        return do

    return register


@page("GET /p", perhaps_participant)
async def home(visit: PageRequest) -> Response:
    """Where she stands, and what she can do next."""
    return entry_page(visit) if visit.secret is None else await _standing(visit)


async def _standing(visit: PageRequest, *, notice: str | None = None, status: int = 200, **more: Any) -> Response:
    view = await visit.ask(visit.service.participation)
    stage, step = stage_of(view, visit.service.clock()), step_of(view)
    values: dict[str, Any] = {
        "view": view,
        "ways": await visit.ask(visit.service.devices),
        "stage": stage,
        "notice": notice,
        "visit_stages": answering.SINGLE_VISIT_STAGES,
        "asked": answering.empty(visit, view),
        "survey": answering.survey_of(view),
        "paying": None,
        "step": step,
        "price": None if view.bid is None else view.bid * step,
        "estimates": shown_estimates(visit.texts, visit.write, view.estimate, view.bounds, view.unit),
        **more,
    }
    template = "participant/standing.html"
    if stage == "invited":
        told = await visit.app.run(consent.told_by, visit.service, visit.token, visit.texts, view)
        values |= {"told": told, **consent.article(told.document, view.bid_by, view.deliver_by)}
        template = "participant/consent.html"
    elif stage == "offer":
        assert view.promised is not None
        # the nonce names the delivery that this page's form makes
        values |= {"share": sureness(view.promised), "nonce": secrets.token_hex(16)}
        template = "participant/offer.html"
    elif view.payout != "none":
        values["paying"] = await visit.ask(visit.service.payout)
    return visit.page(template, status=status, here="/p", **values)


async def sample_page(visit: PageRequest, which: str) -> Response:
    """A page as somebody who is made up sees it: the service of the visit knows her, and can change nothing."""
    view = await visit.ask(visit.service.participation)
    if which == "offer" and view.single_visit:
        return answers_page(visit, view, price=Price())
    return await (choice_page(visit, view, Price()) if which == "choice" else _standing(visit))


# -- the agreement -----------------------------------------------------------------------------------------------------


@_page("POST /p/agree")
async def agree(turn: _Turn) -> Response:
    """Agree to what the page said in its language; then her price is asked for."""
    visit, form = turn.visit, turn.visit.form
    turn.require_stage("invited")
    if not form.ticked("agreed"):
        raise _Stays("consent.tick", 422)
    texts = languages().get(form.text("language"), visit.texts)
    told = await visit.app.run(consent.told_by, visit.service, visit.token, texts, turn.view)
    if form.text("version") != told.version:
        raise _Stays("consent.changed", 409)
    await visit.ask(visit.service.agree, version=told.version, language=texts.language, told=told.passages)
    return visit.go("/p/choice")


@_page("GET /p/agreement")
async def agreed_to(turn: _Turn) -> Response:
    """What she agreed to, word by word."""
    visit, view = turn.visit, turn.view
    found = await visit.ask(visit.service.agreed_to)
    if found is None or view.agreement is None:
        return visit.go("/p")
    shown = consent.article(found, view.bid_by, view.deliver_by)
    return visit.page("participant/agreement.html", view=view, **shown)


# -- the choice --------------------------------------------------------------------------------------------------------


@_page("GET /p/choice")
async def choose(turn: _Turn) -> Response:
    """Ask for her price."""
    if turn.stage not in ("invited", "bid"):
        return turn.visit.go("/p")
    turn.require_bidding()
    return await choice_page(turn.visit, turn.view, price_before(turn.visit, turn.view))


@_page("POST /p/choice")
async def show_choice(turn: _Turn) -> Response:
    """Show what a price means, without bidding it."""
    turn.require_bidding()
    given = price_typed(turn.visit, turn.view)
    return await choice_page(turn.visit, turn.view, given, status=200 if given.is_readable else 422)


@_page("POST /p/bid")
async def bid(turn: _Turn) -> Response:
    """Bid the price."""
    visit, view, given = turn.visit, turn.view, price_typed(turn.visit, turn.view)
    turn.require_bidding()
    if not given.is_readable:
        return await choice_page(visit, view, given, status=422)
    if view.single_visit and view.delivered_at is None and turn.stage == "invited":
        return answers_page(visit, view, price=given)
    return await _submitted(visit, visit.service.bid.soon(visit.token, given.bid, limit=given.limit))


async def _submitted(visit: PageRequest, submitted: "Future[Any]") -> Response:
    await asyncio.wrap_future(submitted)
    return visit.go("/p")


@_page("GET /p/answers")
async def change_answers(turn: _Turn) -> Response:
    """Ask for other answers in the place of those that she gave with her price."""
    if not turn.view.single_visit or turn.stage != "bid":
        return turn.visit.go("/p")
    return answers_page(turn.visit, turn.view)


@_page("POST /p/answers")
async def bid_with_answers(turn: _Turn) -> Response:
    """Take price and answers together, or other answers for the price that stands."""
    visit, view = turn.visit, turn.view
    turn.require_stage(*(("invited", "bid") if view.single_visit else ()))
    price = price_typed(visit, view) if view.bid is None else None
    turn.require_bidding()
    if price is not None and not price.is_readable:
        return await choice_page(visit, view, price, status=422)
    asked = answering.filled(visit, view)
    if any(one.problem for one in asked):
        return answers_page(visit, view, price=price, asked=asked, status=422)
    said, limit = (view.bid, view.limit) if price is None else (price.bid, price.limit)
    named = {"given": given_in(view, asked), "nonce": visit.form.text("nonce")}
    return await _submitted(visit, visit.service.bid.soon(visit.token, said, limit=limit, **named))


# -- saying no ---------------------------------------------------------------------------------------------------------


def _asked_first(path: str, stages: set[str] | None, act: Callable[[Service, str], object] | None) -> None:
    """Register a step that is asked about on a page of its own, in these stages or all, and then taken."""

    async def ask(turn: _Turn) -> Response:
        if stages is not None and turn.stage not in stages:
            return turn.visit.go("/p")
        what = path.rpartition("/")[2]
        return turn.visit.page("participant/confirm_leaving.html", what=what, view=turn.view, stage=turn.stage)

    async def take(turn: _Turn) -> Response:
        assert act is not None
        await turn.visit.app.run(act, turn.visit.service, turn.visit.token)
        return turn.visit.go("/p")

    _page(f"GET {path}")(ask)
    if act is not None:
        _page(f"POST {path}")(take)


_MAY_WITHDRAW = {"bid", "bid_late", "offer", "offer_late", "delivered"}
_asked_first("/p/decline", {"invited"}, lambda service, secret: service.decline(secret))
_asked_first("/p/withdraw", _MAY_WITHDRAW, lambda service, secret: service.withdraw(secret))
_asked_first("/p/others", None, lambda service, secret: service.end_other_devices(secret))
_asked_first("/p/leave", None, None)  # taken in `entry`, also without a secret that opens anything


# -- delivery ----------------------------------------------------------------------------------------------------------


@_page("POST /p/deliver")
async def deliver_value(turn: _Turn) -> Response:
    """Take a value or answers, in the central setting only: in the local one the page never sends them."""
    visit, view, nonce = turn.visit, turn.view, turn.visit.form.text("nonce")
    if view.setting != "central":
        raise NotAllowed("In this campaign noise is added in the browser: the value itself must not be sent.")
    turn.require_stage("offer", "delivered")
    # what comes again is not looked at
    asked = answering.filled(visit, view) if turn.stage == "offer" else []
    if any(one.problem for one in asked):
        return await _standing(visit, status=422, asked=asked)
    if asked and not visit.form.ticked("sure"):
        return visit.page("participant/confirm_value.html", here="/p", view=view, asked=asked, nonce=nonce)
    given = given_in(view, asked) if asked else None
    return await _submitted(visit, visit.service.deliver.soon(visit.token, given, nonce=nonce))


@page("PUT /p/delivery", participant)
async def deliver_message(visit: PageRequest) -> Response:
    """Take what the browser made of a value: the same body as the API's, from the page's script."""
    visit.require_unforged(visit.request.headers.get(CSRF_HEADER, ""))
    try:
        given = Delivery.model_validate_json(await visit.request.body())
    except ValidationError as wrong:
        found = wrong.errors(include_url=False, include_input=False)
        raise RequestValidationError([{**one, "loc": ("body", *one["loc"])} for one in found]) from None
    if given.message is None:
        raise InputError("message must be one made by privatize: the value itself must not be sent.", field="message")
    await asyncio.wrap_future(visit.service.deliver.soon(visit.token, given.message, nonce=given.nonce))
    return answer({"delivered": True})


# -- another device ----------------------------------------------------------------------------------------------------


@_page("GET /p/device")
async def other_device(turn: _Turn) -> Response:
    """Say how she can go on with another device."""
    return await _device_page(turn, None)


@_page("POST /p/device")
async def make_link(turn: _Turn) -> Response:
    """Make a link for another device, and show it this once."""
    made = await turn.visit.ask(turn.visit.service.own_link)
    return await _device_page(turn, f"{base_address(turn.visit)}/p#{made.token}")


async def _device_page(turn: _Turn, link: str | None) -> Response:
    ways = await turn.visit.ask(turn.visit.service.devices)
    return turn.visit.page("participant/device.html", view=turn.view, ways=ways, link=link)


# -- where she is to be paid -------------------------------------------------------------------------------------------


@page("GET /p/payout", participant)
async def ask_payout(visit: PageRequest) -> Response:
    """Ask where she is to be paid, and show what is stored, masked."""
    return await _payout_page(visit)


@page("POST /p/payout", participant)
async def store_payout(visit: PageRequest) -> Response:
    """Store it, or forget it; what she typed is not shown again when it is refused."""
    try:
        if visit.form.text("do") == "forget":
            await visit.ask(visit.service.remove_payout)
        else:
            await visit.ask(visit.service.state_payout, visit.form.text("handle")[:_LONGEST_HANDLE])
    except InputError:
        return await _payout_page(visit, wrong=True, status=422)
    except Conflict:
        return await _payout_page(visit, notice="refused.moved_on", status=409)
    return visit.go("/p#payout")


async def _payout_page(
    visit: PageRequest, *, wrong: bool = False, notice: str | None = None, status: int = 200
) -> Response:
    view = await visit.ask(visit.service.participation)
    if view.payout == "none":
        return visit.go("/p")
    problem = visit.texts.coded(f"payout.wrong_{view.payout}") if wrong else None
    paying = await visit.ask(visit.service.payout)
    values = {"view": view, "paying": paying, "notice": notice, "problem": problem}
    return visit.page("participant/payout.html", status=status, here="/p/payout", **values)


# -- to take away ------------------------------------------------------------------------------------------------------


@_page("GET /p/receipt")
async def receipt(turn: _Turn) -> Response:
    """Her signed receipt, as a file."""
    try:
        found = await turn.visit.ask(turn.visit.service.receipt)
    except Conflict:
        raise _Stays("refused.no_receipt", 409) from None
    return Response(found.to_json(), media_type="application/json", headers=download("hushbid-receipt.json"))


@_page("GET /p/export")
async def export(turn: _Turn) -> Response:
    """All that is stored about her, as a file."""
    found = answer(await turn.visit.ask(turn.visit.service.export))
    found.headers.update(download("hushbid-personal-data.json"))
    return found


@_page("GET /p/given-up")
async def given_up(turn: _Turn) -> Response:
    """What she has given up over all campaigns."""
    found = await turn.visit.ask(turn.visit.service.personal_account)
    share = sureness(found.given_up)
    return turn.visit.page("participant/given_up.html", privacy_account=found, view=turn.view, share=share)
