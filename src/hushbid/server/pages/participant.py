"""A participant's pages. What she typed is confidential: it is never part of an address."""

import asyncio
import json
import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from typing import Any

from fastapi import APIRouter, Request, Response

from hushbid.errors import Conflict, InputError, NotAllowed
from hushbid.server.http.auth import CSRF_HEADER
from hushbid.server.http.downloads import download
from hushbid.server.http.schemas import Body, answer
from hushbid.server.model.answers import Answers
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
    stage = stage_of(view, visit.app.service.clock())
    values: dict[str, Any] = {
        "view": view,
        "ways": await visit.ask(lambda service: service.devices(visit.token)),
        "stage": stage,
        "notice": notice,
        "sureness": sureness,
        "visit_stages": SINGLE_VISIT_STAGES,
        **_given(visit, view),
    }
    if stage == "invited":
        told = await visit.ask(lambda service: consent.told_by(service, visit.token, visit.texts, view))
        values |= consent.article(told.document, view.bid_by, view.deliver_by)
        return visit.page("participant/consent.html", status=status, here="/p", told=told, **values, **more)
    if stage == "offer":
        assert view.promised is not None
        values |= {"typed": "", "problem": None, "bar": pictures.sure_bar(sureness(view.promised))}
        values |= {"asked": answering.empty(view), "survey": _survey(view), **more}
        values["nonce"] = secrets.token_hex(16)  # names the delivery that this page's form makes
        return visit.page("participant/offer.html", status=status, here="/p", **values)
    if view.setting == "local":  # answers may be kept in the browser until the offer is known
        values |= {"asked": answering.empty(view) or answering.one_value(visit, view), "survey": _survey(view)}
    asks = view.payout != "none"
    values["paying"] = await visit.ask(lambda service: service.payout(visit.token)) if asks else None
    return visit.page("participant/standing.html", status=status, here="/p", **values, **more)


def _survey(view: ParticipationView) -> str | None:
    """What decides about a message in the local setting, for the page's scripts; None where it is one number."""
    survey = {"questions": view.questions, "groups": view.noise_groups}
    return json.dumps(survey) if view.questions else None


def _given(visit: PageRequest, view: ParticipationView) -> dict[str, Any]:
    """Numbers that several pages show."""
    step = choice.step_of(view)
    estimates = shown_estimates(visit.texts, visit.write, view.estimate, view.bounds, view.unit)
    return {"step": step, "price": None if view.bid is None else view.bid * step, "estimates": estimates}


# -- the agreement -----------------------------------------------------------------------------------------------------


@router.post("/p/agree")
async def agree(request: Request) -> Response:
    """Agree to what the page said in its language; then her price is asked for."""
    visit = await participant(request)
    form = await visit.form()
    view = await visit.ask(lambda service: service.participation(visit.token))
    if stage_of(view, visit.app.service.clock()) != "invited":
        return await _standing(visit, notice="refused.moved_on", status=409)
    if not form.ticked("agreed"):
        return await _standing(visit, notice="consent.tick", status=422)
    texts = languages().get(form.text("language"), visit.texts)
    told = await visit.ask(lambda service: consent.told_by(service, visit.token, texts, view))
    if form.text("version") != told.version:
        return await _standing(visit, notice="consent.changed", status=409)

    def act(service: Service, token: str) -> object:
        return service.agree(token, version=told.version, language=texts.language, told=told.passages)

    return await _doing(request, act, then="/p/choice")


@router.get("/p/agreement")
async def agreed_to(request: Request) -> Response:
    """What she agreed to, word by word."""
    visit = await participant(request)
    view = await visit.ask(lambda service: service.participation(visit.token))
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


@router.get("/p/choice")
async def choose(request: Request) -> Response:
    """Ask for her price."""
    visit = await participant(request)
    view = await visit.ask(lambda service: service.participation(visit.token))
    if stage_of(view, visit.app.service.clock()) not in ("invited", "bid"):
        return visit.go("/p")
    if not _has_agreed(view):
        return await _standing(visit, notice="consent.tick", status=422)
    typed = "" if view.bid is None else visit.write.typed(round(view.bid * choice.step_of(view), 10))
    limit = "" if view.limit is None else visit.write.typed(choice.sureness_typed(view.limit))
    given = _Answer(typed=typed, bid=view.bid, typed_limit=limit, limit=view.limit)
    return await _choice_page(visit, view, given)


@router.post("/p/choice")
async def show_choice(request: Request) -> Response:
    """Show what a price means, without bidding it."""
    visit = await participant(request)
    form = await visit.form()
    view = await visit.ask(lambda service: service.participation(visit.token))
    if stage_of(view, visit.app.service.clock()) not in ("invited", "bid"):
        return await _standing(visit, notice="refused.moved_on", status=409)
    if not _has_agreed(view):
        return await _standing(visit, notice="consent.tick", status=422)
    given = _answer(visit, view, form)
    return await _choice_page(visit, view, given, status=200 if given.is_readable else 422)


@router.post("/p/bid")
async def bid(request: Request) -> Response:
    """Bid the price."""
    visit = await participant(request)
    form = await visit.form()
    view = await visit.ask(lambda service: service.participation(visit.token))
    given = _answer(visit, view, form)
    if stage_of(view, visit.app.service.clock()) not in ("invited", "bid"):
        return await _standing(visit, notice="refused.moved_on", status=409)
    if not _has_agreed(view):
        return await _standing(visit, notice="consent.tick", status=422)
    if not given.is_readable:
        return await _choice_page(visit, view, given, status=422)
    if view.single_visit and view.delivered_at is None and stage_of(view, visit.app.service.clock()) == "invited":
        return answers_page(visit, view, price=given)
    try:
        await asyncio.wrap_future(visit.app.service.bid.soon(visit.token, given.bid, limit=given.limit))
    except Conflict:
        return await _standing(visit, notice="refused.moved_on", status=409)
    return visit.go("/p")


@router.get("/p/answers")
async def change_answers(request: Request) -> Response:
    """Ask for other answers in the place of those that she gave with her price."""
    visit = await participant(request)
    view = await visit.ask(lambda service: service.participation(visit.token))
    if not view.single_visit or stage_of(view, visit.app.service.clock()) != "bid":
        return visit.go("/p")
    return answers_page(visit, view)


@router.post("/p/answers")
async def bid_with_answers(request: Request) -> Response:
    """Take price and answers together, or other answers for the price that stands."""
    visit = await participant(request)
    form = await visit.form()
    view = await visit.ask(lambda service: service.participation(visit.token))
    if not view.single_visit or stage_of(view, visit.app.service.clock()) not in ("invited", "bid"):
        return await _standing(visit, notice="refused.moved_on", status=409)
    price = _answer(visit, view, form) if view.bid is None else None
    if not _has_agreed(view):
        return await _standing(visit, notice="consent.tick", status=422)
    if price is not None and not price.is_readable:
        return await _choice_page(visit, view, price, status=422)
    asked = answering.filled(visit, view, form)
    if any(one.problem for one in asked):
        return answers_page(visit, view, price=price, asked=asked, status=422)
    said, limit = (view.bid, view.limit) if price is None else (price.bid, price.limit)
    given, nonce = given_in(view, asked), form.text("nonce")
    try:
        sent = visit.app.service.bid.soon(visit.token, said, limit=limit, given=given, nonce=nonce)
        await asyncio.wrap_future(sent)
    except Conflict:
        return await _standing(visit, notice="refused.moved_on", status=409)
    return visit.go("/p")


def _has_agreed(view: ParticipationView) -> bool:
    """Whether she may name a price here; whoever named one before agreements were stored had agreed then."""
    return view.agreement is not None or view.bid is not None


def _answer(visit: PageRequest, view: ParticipationView, form: Form) -> _Answer:
    """What she typed; a limit that cannot be read does not keep the price from being shown."""
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


@router.get("/p/decline")
async def ask_decline(request: Request) -> Response:
    """Ask whether she really does not want to take part."""
    return await _asking(request, "decline", {"invited"})


@router.post("/p/decline")
async def decline(request: Request) -> Response:
    """Take no part."""
    return await _doing(request, lambda service, token: service.decline(token))


@router.get("/p/withdraw")
async def ask_withdraw(request: Request) -> Response:
    """Ask whether she really wants to take everything back."""
    return await _asking(request, "withdraw", {"bid", "bid_late", "offer", "offer_late", "delivered"})


@router.post("/p/withdraw")
async def withdraw(request: Request) -> Response:
    """Take everything back."""
    return await _doing(request, lambda service, token: service.withdraw(token))


async def _asking(request: Request, what: str, stages: set[str] | None) -> Response:
    visit = await participant(request)
    view = await visit.ask(lambda service: service.participation(visit.token))
    stage = stage_of(view, visit.app.service.clock())
    if stages is not None and stage not in stages:
        return visit.go("/p")
    return visit.page("participant/confirm_leaving.html", what=what, view=view, stage=stage)


async def _doing(request: Request, do: Callable[[Service, str], object], *, then: str = "/p") -> Response:
    visit = await participant(request)
    await visit.form()
    try:
        await visit.ask(lambda service: do(service, visit.token))
    except Conflict:
        return await _standing(visit, notice="refused.moved_on", status=409)
    return visit.go(then)


# -- delivery ----------------------------------------------------------------------------------------------------------


@router.post("/p/deliver")
async def deliver_value(request: Request) -> Response:
    """Take a value, in the central setting only: in the local one the page never sends it."""
    visit = await participant(request)
    form = await visit.form()
    view = await visit.ask(lambda service: service.participation(visit.token))
    if view.setting != "central":
        raise NotAllowed("In this campaign noise is added in the browser: the value itself must not be sent.")
    awaited = stage_of(view, visit.app.service.clock()) == "offer"
    if view.bounds is None:
        return await _deliver_answers(visit, view, form, awaited=awaited)
    typed = form.text("value")[:100]
    low, high = view.bounds
    try:
        value = _value(visit, view, typed) if awaited else None  # what comes too late is not looked at
        if value is not None and not form.ticked("sure"):
            return visit.page(
                "participant/confirm_value.html", here="/p", view=view, value=value, asked=(), nonce=form.text("nonce")
            )
        promise = visit.app.service.deliver.soon(visit.token, value, nonce=form.text("nonce"))
        await asyncio.wrap_future(promise)
    except FormError as refused:
        problem = visit.texts.coded(refused.code, low=visit.write.number(low, 12), high=visit.write.number(high, 12))
        return await _standing(visit, status=422, typed=typed, problem=problem)
    except Conflict:
        return await _standing(visit, notice="refused.moved_on", status=409)
    return visit.go("/p")


async def _deliver_answers(visit: PageRequest, view: ParticipationView, form: Form, *, awaited: bool) -> Response:
    """Take the answers to several questions, all or none."""
    asked = answering.filled(visit, view, form) if awaited else []  # what comes too late is not looked at
    if any(one.problem for one in asked):
        return await _standing(visit, status=422, asked=asked)
    nonce = form.text("nonce")
    if awaited and not form.ticked("sure"):
        return visit.page("participant/confirm_value.html", here="/p", view=view, asked=asked, nonce=nonce)
    given = Answers({one.question["name"]: one.answer for one in asked})
    try:
        await asyncio.wrap_future(visit.app.service.deliver.soon(visit.token, given, nonce=nonce))
    except Conflict:
        return await _standing(visit, notice="refused.moved_on", status=409)
    return visit.go("/p")


def _value(visit: PageRequest, view: ParticipationView, typed: str) -> float:
    assert view.bounds is not None
    low, high = view.bounds
    value = float(visit.write.read(typed))
    if not low <= value <= high:
        raise FormError("offer.out_of_range")
    return value


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


@router.get("/p/device")
async def other_device(request: Request) -> Response:
    """Say how she can go on with another device."""
    visit = await participant(request)
    view = await visit.ask(lambda service: service.participation(visit.token))
    ways = await visit.ask(lambda service: service.devices(visit.token))
    return visit.page("participant/device.html", view=view, ways=ways, link=None)


@router.post("/p/device")
async def make_link(request: Request) -> Response:
    """Make a link for another device, and show it this once."""
    visit = await participant(request)
    await visit.form()
    try:
        made = await visit.ask(lambda service: service.own_link(visit.token))
    except Conflict:
        return await _standing(visit, notice="refused.moved_on", status=409)
    view = await visit.ask(lambda service: service.participation(visit.token))
    ways = await visit.ask(lambda service: service.devices(visit.token))
    link = f"{base_address(visit)}/p#{made.token}"
    return visit.page("participant/device.html", view=view, ways=ways, link=link)


@router.get("/p/others")
async def ask_end_others(request: Request) -> Response:
    """Ask whether she really wants to end all other devices."""
    return await _asking(request, "others", None)


@router.post("/p/others")
async def end_others(request: Request) -> Response:
    """End all other devices."""
    return await _doing(request, lambda service, token: service.end_other_devices(token))


@router.get("/p/leave")
async def ask_leave(request: Request) -> Response:
    """Say what leaving ends, and how to come back."""
    return await _asking(request, "leave", None)


# -- to take away ------------------------------------------------------------------------------------------------------


@router.get("/p/receipt")
async def receipt(request: Request) -> Response:
    """Her signed receipt, as a file."""
    visit = await participant(request)
    try:
        found = await visit.ask(lambda service: service.receipt(visit.token))
    except Conflict:
        return await _standing(visit, notice="refused.no_receipt", status=409)
    return Response(found.to_json(), media_type="application/json", headers=download("hushbid-receipt.json"))


@router.get("/p/export")
async def export(request: Request) -> Response:
    """All that is stored about her, as a file."""
    visit = await participant(request)
    found = answer(await visit.ask(lambda service: service.export(visit.token)))
    found.headers.update(download("hushbid-personal-data.json"))
    return found


@router.get("/p/given-up")
async def given_up(request: Request) -> Response:
    """What she has given up over all campaigns."""
    visit = await participant(request)
    privacy_account = await visit.ask(lambda service: service.personal_account(visit.token))
    view = await visit.ask(lambda service: service.participation(visit.token))
    bar = pictures.sure_bar(sureness(privacy_account.given_up))
    return visit.page("participant/given_up.html", privacy_account=privacy_account, view=view, bar=bar)
