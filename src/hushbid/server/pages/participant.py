"""A participant's pages. What she typed is confidential: it is never part of an address."""

import asyncio
import json
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from typing import Any

from fastapi import APIRouter, Request, Response
from starlette.datastructures import FormData

from hushbid.errors import Conflict, InputError, NotAllowed
from hushbid.server.http.auth import CSRF_HEADER
from hushbid.server.http.downloads import download
from hushbid.server.http.schemas import Body, answer
from hushbid.server.model.states import CampaignState, ParticipantState
from hushbid.server.model.views import MenuView, ParticipationView
from hushbid.server.pages import answering, choice, consent, pictures
from hushbid.server.pages.answering import SINGLE_VISIT_STAGES, answers_page, given_in
from hushbid.server.pages.entry import entry_page
from hushbid.server.pages.estimates import shown_estimates
from hushbid.server.pages.request import Form, OpenLinkFirst, PageRequest, anybody, base_address, participant
from hushbid.server.pages.wording import FormError, languages, sureness
from hushbid.server.service import Service
from hushbid.server.service.bodies import Delivery

router = APIRouter(include_in_schema=False)
_DELIVERY = Body(Delivery)
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
    """One request of a participant: what came with its form, and where she stands."""

    visit: PageRequest
    form: Form
    view: ParticipationView
    stage: str

    @property
    def has_agreed(self) -> bool:
        """Whether she may name a price here; whoever named one before agreements were stored had agreed then."""
        return self.view.agreement is not None or self.view.bid is not None

    def require_stage(self, *stages: str) -> None:
        """Refuse what comes too late or twice."""
        if self.stage not in stages:
            raise _Stays("refused.moved_on", 409)

    def require_bidding(self) -> None:
        """Refuse a price that comes too late, or before she has agreed."""
        self.require_stage("invited", "bid")
        if not self.has_agreed:
            raise _Stays("consent.tick", 422)


class _Stays(Exception):
    """She stays where she stands, and is told why."""

    def __init__(self, notice: str, status: int) -> None:
        super().__init__(notice)
        self.notice, self.status = notice, status


Do = Callable[[_Turn], Awaitable[Response]]


def _page(method: str, path: str) -> Callable[[Do], Do]:
    """Register a page of hers; what the service refuses because something has moved on shows where she stands."""

    def register(do: Do) -> Do:
        async def handle(request: Request) -> Response:
            visit = await participant(request)
            form = await visit.form() if method == "POST" else Form(FormData())
            view = await visit.ask(lambda service: service.participation(visit.token))
            turn = _Turn(visit=visit, form=form, view=view, stage=stage_of(view, visit.app.service.clock()))
            try:
                return await do(turn)
            except Conflict:
                return await _standing(visit, notice="refused.moved_on", status=409)
            except _Stays as stays:
                return await _standing(visit, notice=stays.notice, status=stays.status)

        router.add_api_route(path, handle, methods=[method], name=do.__name__)
        return do

    return register


@router.get("/p")
async def home(request: Request) -> Response:
    """Where she stands, and what she can do next."""
    try:
        visit = await participant(request)
    except OpenLinkFirst:
        return entry_page(await anybody(request))
    return await _standing(visit)


async def _standing(visit: PageRequest, *, notice: str | None = None, status: int = 200, **more: Any) -> Response:
    view = await visit.ask(lambda service: service.participation(visit.token))
    stage, step = stage_of(view, visit.app.service.clock()), choice.step_of(view)
    values: dict[str, Any] = {
        "view": view,
        "ways": await visit.ask(lambda service: service.devices(visit.token)),
        "stage": stage,
        "notice": notice,
        "sureness": sureness,
        "visit_stages": SINGLE_VISIT_STAGES,
        "asked": answering.empty(visit, view),
        "survey": _survey(view),
        "paying": None,
        "step": step,
        "price": None if view.bid is None else view.bid * step,
        "estimates": shown_estimates(visit.texts, visit.write, view.estimate, view.bounds, view.unit),
        **more,
    }
    template = "participant/standing.html"
    if stage == "invited":
        told = await visit.ask(lambda service: consent.told_by(service, visit.token, visit.texts, view))
        values |= {"told": told, **consent.article(told.document, view.bid_by, view.deliver_by)}
        template = "participant/consent.html"
    elif stage == "offer":
        assert view.promised is not None
        # the nonce names the delivery that this page's form makes
        values |= {"bar": pictures.sure_bar(sureness(view.promised)), "nonce": secrets.token_hex(16)}
        template = "participant/offer.html"
    elif view.payout != "none":
        values["paying"] = await visit.ask(lambda service: service.payout(visit.token))
    return visit.page(template, status=status, here="/p", **values)


def _survey(view: ParticipationView) -> str | None:
    """What decides about a message in the local setting, for the page's scripts; None where it is one number."""
    survey = {"questions": view.questions, "groups": view.noise_groups}
    return json.dumps(survey) if view.questions else None


# -- the agreement -----------------------------------------------------------------------------------------------------


@_page("POST", "/p/agree")
async def agree(turn: _Turn) -> Response:
    """Agree to what the page said in its language; then her price is asked for."""
    visit, form = turn.visit, turn.form
    turn.require_stage("invited")
    if not form.ticked("agreed"):
        raise _Stays("consent.tick", 422)
    texts = languages().get(form.text("language"), visit.texts)
    told = await visit.ask(lambda service: consent.told_by(service, visit.token, texts, turn.view))
    if form.text("version") != told.version:
        raise _Stays("consent.changed", 409)
    stated: dict[str, Any] = {"version": told.version, "language": texts.language, "told": told.passages}
    await visit.ask(lambda service: service.agree(visit.token, **stated))
    return visit.go("/p/choice")


@_page("GET", "/p/agreement")
async def agreed_to(turn: _Turn) -> Response:
    """What she agreed to, word by word."""
    visit, view = turn.visit, turn.view
    found = await visit.ask(lambda service: service.agreed_to(visit.token))
    if found is None or view.agreement is None:
        return visit.go("/p")
    shown = consent.article(found, view.bid_by, view.deliver_by)
    return visit.page("participant/agreement.html", view=view, **shown)


async def sample_page(visit: PageRequest, page: str) -> Response:
    """A page as somebody who is made up sees it: the service of the visit knows her, and can change nothing."""
    view = await visit.ask(lambda service: service.participation(visit.token))
    if page == "offer" and view.single_visit:
        return answers_page(visit, view, price=_Answer(typed=""))
    if page == "choice":
        return await _choice_page(visit, view, _Answer(typed=""))
    return await _standing(visit)


# -- the choice --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    """What she typed, and what it means if it can be read."""

    typed: str
    bid: float | None = None
    problem: str | None = None
    typed_limit: str = ""
    limit: float | None = None
    limit_problem: str | None = None

    @property
    def is_readable(self) -> bool:
        """Whether all of it means something."""
        return self.bid is not None and self.problem is None and self.limit_problem is None


@_page("GET", "/p/choice")
async def choose(turn: _Turn) -> Response:
    """Ask for her price."""
    visit, view = turn.visit, turn.view
    if turn.stage not in ("invited", "bid"):
        return visit.go("/p")
    turn.require_bidding()
    typed = "" if view.bid is None else visit.write.typed(round(view.bid * choice.step_of(view), 10))
    limit = "" if view.limit is None else visit.write.typed(choice.sureness_typed(view.limit))
    given = _Answer(typed=typed, bid=view.bid, typed_limit=limit, limit=view.limit)
    return await _choice_page(visit, view, given)


@_page("POST", "/p/choice")
async def show_choice(turn: _Turn) -> Response:
    """Show what a price means, without bidding it."""
    turn.require_bidding()
    given = _answer(turn)
    return await _choice_page(turn.visit, turn.view, given, status=200 if given.is_readable else 422)


@_page("POST", "/p/bid")
async def bid(turn: _Turn) -> Response:
    """Bid the price."""
    visit, view, given = turn.visit, turn.view, _answer(turn)
    turn.require_bidding()
    if not given.is_readable:
        return await _choice_page(visit, view, given, status=422)
    if view.single_visit and view.delivered_at is None and turn.stage == "invited":
        return answers_page(visit, view, price=given)
    await asyncio.wrap_future(visit.app.service.bid.soon(visit.token, given.bid, limit=given.limit))
    return visit.go("/p")


@_page("GET", "/p/answers")
async def change_answers(turn: _Turn) -> Response:
    """Ask for other answers in the place of those that she gave with her price."""
    if not turn.view.single_visit or turn.stage != "bid":
        return turn.visit.go("/p")
    return answers_page(turn.visit, turn.view)


@_page("POST", "/p/answers")
async def bid_with_answers(turn: _Turn) -> Response:
    """Take price and answers together, or other answers for the price that stands."""
    visit, view = turn.visit, turn.view
    turn.require_stage(*(("invited", "bid") if view.single_visit else ()))
    price = _answer(turn) if view.bid is None else None
    turn.require_bidding()
    if price is not None and not price.is_readable:
        return await _choice_page(visit, view, price, status=422)
    asked = answering.filled(visit, view, turn.form)
    if any(one.problem for one in asked):
        return answers_page(visit, view, price=price, asked=asked, status=422)
    said, limit = (view.bid, view.limit) if price is None else (price.bid, price.limit)
    given, nonce = given_in(view, asked), turn.form.text("nonce")
    sent = visit.app.service.bid.soon(visit.token, said, limit=limit, given=given, nonce=nonce)
    await asyncio.wrap_future(sent)
    return visit.go("/p")


def _answer(turn: _Turn) -> _Answer:
    """What she typed; a limit that cannot be read does not keep the price from being shown."""
    visit, view, form = turn.visit, turn.view, turn.form
    given = _priced(visit, view, form.text("price")[:100])
    typed = form.text("limit")[:100] if view.takes_limits else ""
    if not typed.strip():
        return given
    try:
        limit = choice.limit_of(visit.write.read(typed))
    except FormError as problem:
        return replace(given, typed_limit=typed, limit_problem=visit.texts.coded(problem.code))
    if limit is None:
        return replace(
            given,
            typed_limit=typed,
            limit_problem=visit.texts("This must be a number from 50 up and below 100, or be left empty."),
        )
    return replace(given, typed_limit=typed, limit=limit)


def _priced(visit: PageRequest, view: ParticipationView, typed: str) -> _Answer:
    step = choice.step_of(view)
    try:
        price = visit.write.read(typed)
    except FormError as problem:
        return _Answer(typed=typed, problem=visit.texts.coded(problem.code))
    least = Decimal(repr(view.smallest_bid)) * Decimal(repr(step))
    bid = choice.bid_of(price, step)
    if price < least or bid < view.smallest_bid or bid > 1e12:
        shown = visit.write.amount(float(least), view.currency, view.decimals)
        return _Answer(typed=typed, problem=visit.texts("The price must be a number from {least} up.", least=shown))
    return _Answer(typed=typed, bid=bid)


async def _choice_page(visit: PageRequest, view: ParticipationView, given: _Answer, *, status: int = 200) -> Response:
    menu: MenuView = await visit.ask(lambda service: service.menu(visit.token))
    asked = await visit.ask(lambda service: service.consent(visit.token, language=visit.texts.language))
    stated, several = asked.document["stated"], len(view.questions) > 1
    step, largest = choice.step_of(view), view.largest_bought
    anchors = choice.anchors(menu, step)
    suggested = given.bid if given.bid is not None else menu.bids[menu.usual // 2]
    price = given.bid * step if given.bid is not None else None
    write = visit.write
    risk = consent.contrast_of(visit.texts, stated, step, several=several, brief=True).to_dict()["texts"]
    return visit.page(
        "participant/choice.html",
        status=status,
        here="/p/choice",
        view=view,
        survey=_survey(view),
        menu=menu,
        plain_menu=json.dumps(choice.plain_menu(menu)),
        step=step,
        given=given,
        anchors=anchors,
        means=choice.consequence(menu, suggested, step, largest=largest) if given.bid is not None else None,
        rows=choice.table(menu, step, largest=largest),
        around=choice.around(menu, suggested, step, largest=largest),
        truth=suggested,
        halves=choice.steps_below_and_above(step, view.max_privacy_loss),
        contrast=risk,
        dots=consent.contrast_dots(risk, step),
        chart=pictures.menu_chart(visit.texts, write, menu, step, price=price, currency=view.currency),
    )


# -- saying no ---------------------------------------------------------------------------------------------------------


def _asked_first(path: str, stages: set[str] | None, act: Callable[[Service, str], object] | None) -> None:
    """Register a step that is asked about on a page of its own, in these stages or all, and then taken."""
    what = path.rpartition("/")[2]

    async def ask(turn: _Turn) -> Response:
        if stages is not None and turn.stage not in stages:
            return turn.visit.go("/p")
        return turn.visit.page("participant/confirm_leaving.html", what=what, view=turn.view, stage=turn.stage)

    async def take(turn: _Turn) -> Response:
        assert act is not None
        await turn.visit.ask(lambda service: act(service, turn.visit.token))
        return turn.visit.go("/p")

    _page("GET", path)(ask)
    if act is not None:
        _page("POST", path)(take)


_MAY_WITHDRAW = {"bid", "bid_late", "offer", "offer_late", "delivered"}
_asked_first("/p/decline", {"invited"}, lambda service, token: service.decline(token))
_asked_first("/p/withdraw", _MAY_WITHDRAW, lambda service, token: service.withdraw(token))
_asked_first("/p/others", None, lambda service, token: service.end_other_devices(token))
_asked_first("/p/leave", None, None)  # taken in `entry`, also without a secret that opens anything


# -- delivery ----------------------------------------------------------------------------------------------------------


@_page("POST", "/p/deliver")
async def deliver_value(turn: _Turn) -> Response:
    """Take a value or answers, in the central setting only: in the local one the page never sends them."""
    visit, view, nonce = turn.visit, turn.view, turn.form.text("nonce")
    if view.setting != "central":
        raise NotAllowed("In this campaign noise is added in the browser: the value itself must not be sent.")
    turn.require_stage("offer", "delivered")
    # what comes again is not looked at
    asked = answering.filled(visit, view, turn.form) if turn.stage == "offer" else []
    if any(one.problem for one in asked):
        return await _standing(visit, status=422, asked=asked)
    if asked and not turn.form.ticked("sure"):
        return visit.page("participant/confirm_value.html", here="/p", view=view, asked=asked, nonce=nonce)
    given = given_in(view, asked) if asked else None
    await asyncio.wrap_future(visit.app.service.deliver.soon(visit.token, given, nonce=nonce))
    return visit.go("/p")


@router.put("/p/delivery")
async def deliver_message(request: Request) -> Response:
    """Take what the browser made of a value: the same body as the API's, from the page's script."""
    visit = await participant(request)
    visit.require_unforged(request.headers.get(CSRF_HEADER, ""))
    given = await _DELIVERY.received(request)
    if given.message is None:
        raise InputError("message must be one made by privatize: the value itself must not be sent.", field="message")
    await asyncio.wrap_future(visit.app.service.deliver.soon(visit.token, given.message, nonce=given.nonce))
    return answer({"delivered": True})


# -- another device ----------------------------------------------------------------------------------------------------


@_page("GET", "/p/device")
async def other_device(turn: _Turn) -> Response:
    """Say how she can go on with another device."""
    return await _device_page(turn, None)


@_page("POST", "/p/device")
async def make_link(turn: _Turn) -> Response:
    """Make a link for another device, and show it this once."""
    made = await turn.visit.ask(lambda service: service.own_link(turn.visit.token))
    return await _device_page(turn, f"{base_address(turn.visit)}/p#{made.token}")


async def _device_page(turn: _Turn, link: str | None) -> Response:
    visit = turn.visit
    ways = await visit.ask(lambda service: service.devices(visit.token))
    return visit.page("participant/device.html", view=turn.view, ways=ways, link=link)


# -- to take away ------------------------------------------------------------------------------------------------------


@_page("GET", "/p/receipt")
async def receipt(turn: _Turn) -> Response:
    """Her signed receipt, as a file."""
    try:
        found = await turn.visit.ask(lambda service: service.receipt(turn.visit.token))
    except Conflict:
        raise _Stays("refused.no_receipt", 409) from None
    return Response(found.to_json(), media_type="application/json", headers=download("hushbid-receipt.json"))


@_page("GET", "/p/export")
async def export(turn: _Turn) -> Response:
    """All that is stored about her, as a file."""
    found = answer(await turn.visit.ask(lambda service: service.export(turn.visit.token)))
    found.headers.update(download("hushbid-personal-data.json"))
    return found


@_page("GET", "/p/given-up")
async def given_up(turn: _Turn) -> Response:
    """What she has given up over all campaigns."""
    privacy_account = await turn.visit.ask(lambda service: service.personal_account(turn.visit.token))
    bar = pictures.sure_bar(sureness(privacy_account.given_up))
    return turn.visit.page("participant/given_up.html", privacy_account=privacy_account, view=turn.view, bar=bar)
