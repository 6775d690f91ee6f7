"""Drafting a campaign: a form that is kept as it is typed, whatever it says, and a forecast in words.

A draft is what was typed. Whatever is sent is kept first (`hushbid.server.service.drafts`), then the browser is sent to
a page that shows it: so Back, Reload and a change of language never lose anything and never send anything again.
``check=yes`` in a page's address shows what is wrong, field by field; ``look=yes`` shows the forecast. The page of a
new draft gives it its name, so a form that arrives twice makes one draft.

A form that is sent after the session has ended is carried through the log-in. Only what came from a page of ours is
carried (browsers say so), and nothing is stored before the log-in: until then it stands in the log-in form.
"""

import json
import secrets
import tomllib
from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from functools import partial
from typing import Any

from fastapi import APIRouter, Request, Response
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException

from hushbid.errors import Conflict, HushbidError
from hushbid.server.http.schemas import answer
from hushbid.server.model.settings import NOT_HERE, refused_here
from hushbid.server.model.views import CampaignView
from hushbid.server.pages import pictures
from hushbid.server.pages.draft_form import (
    EMPTY,
    OWN,
    PLACES,
    PRIVACY,
    RELATIONS,
    Filled,
    as_typed,
    decimals_of,
    filled,
    first_form,
    in_language,
    said,
    typed_fields,
    unavailable,
)
from hushbid.server.pages.forecast_words import Forecast, forecast_words
from hushbid.server.pages.form_prices import MOST_BYTES, PilotRefused, fitted_pilot
from hushbid.server.pages.form_rows import KINDS, PARTS, pressed, question_count, stratum_count
from hushbid.server.pages.request import Form, LogInFirst, PageRequest, analyst, require_id, stranger
from hushbid.server.pages.wording import FormError, languages

router = APIRouter(include_in_schema=False)
_OPEN = {  # the folded parts of the form, and which fields are in each
    "experts": ("currency", "decimals", "retention_days", "spending_limit"),
    "told": ("consent_", "observer", "statement"),
}
_MOST_FIELDS = 2_000
_LONGEST_CARRIED = 500_000


# -- seen --------------------------------------------------------------------------------------------------------------


@router.get("/campaigns/new")
async def new(request: Request) -> Response:
    """An empty form, with values that are a fair beginning."""
    visit = await analyst(request)
    return await _page(visit, f"c{secrets.token_hex(10)}", first_form(visit.write))


@router.get("/campaigns/{campaign}/edit")
async def edit(request: Request, campaign: str) -> Response:
    """The form of a draft, as it was typed or as its settings would be."""
    visit = await analyst(request)
    service, found = visit.app.service, require_id(campaign)
    view = await visit.app.run(service.campaign, visit.who, found)
    if view.state.value != "draft":
        return visit.go(f"/campaigns/{found}")
    typed = await visit.app.run(service.typed_draft, visit.who, found)
    fields = (
        as_typed(view.whole.to_dict(), visit.write)
        if typed is None
        else in_language(typed.fields, typed.language, visit.write)
    )
    if view.people and (typed is None or fields.get("people", "").isdigit()):  # what cannot be read stays as it is
        fields["people"] = str(sum(view.people.values()))
    return await _page(visit, found, fields, view=view, kept=None if typed is None else typed.at)


# -- sent --------------------------------------------------------------------------------------------------------------


@router.post("/campaigns/{campaign}/edit")
async def change(request: Request, campaign: str) -> Response:
    """Keep a form, and do what its button says."""
    return await _sent(request, require_id(campaign))


@router.post("/campaigns/{campaign}/pilot")
async def take_pilot(request: Request, campaign: str) -> Response:
    """Fit a prior to the pilot that came with a form."""
    return await _sent(request, require_id(campaign), pilot=True)


@router.post("/campaigns/{campaign}/import")
async def take_file(request: Request, campaign: str) -> Response:
    """Keep what a campaign file states as a draft, unless it states what a server cannot do."""
    visit, found = await analyst(request), require_id(campaign)
    content = (await visit.form()).file
    try:
        values = tomllib.loads(content.decode("utf-8-sig")) if len(content) <= MOST_BYTES else {}
        typed = as_typed(values, visit.write) if values else {}
    except (ValueError, TypeError, AttributeError, RecursionError):
        typed = {}
    if not typed:
        return visit.go("/campaigns/new?file=unreadable")
    if unfit := refused_here(values):
        return visit.go(f"/campaigns/new?file={','.join(unfit)}")
    complete = await _keep(visit, found, typed_fields(typed))
    return visit.go(f"/campaigns/{found}" if complete else f"/campaigns/{found}/edit?check=yes#problems")


@router.post("/campaigns/{campaign}/keep")
async def keep(request: Request, campaign: str) -> Response:
    """Keep what was typed so far, for the page's script."""
    visit, found = await analyst(request), require_id(campaign)
    form = await visit.form()
    try:
        await _keep(visit, found, typed_fields(form.all()), seen=_seen(visit, form.text("seen")))
    except Conflict:  # it has opened meanwhile
        return answer({"kept": None})
    return answer({"kept": visit.write.moment(visit.app.service.clock()), "here": f"/campaigns/{found}/edit"})


@router.post("/campaigns/preview")
async def live_preview(request: Request) -> Response:
    """What a form that is just being filled in would lead to, for the page's script."""
    visit = await analyst(request)
    form = await visit.form()
    latest: dict[str, int] = request.app.state.__dict__.setdefault("previews", {})
    number = latest[visit.who.id] = latest.get(visit.who.id, 0) + 1
    found = await _forecast(visit, typed_fields(form.all()), wanted=lambda: latest[visit.who.id] == number)
    return answer(asdict(found))


async def _sent(request: Request, campaign: str, *, pilot: bool = False) -> Response:
    try:
        visit = await analyst(request)
    except LogInFirst:
        return await _log_in_with(request, campaign)
    form = await visit.form()
    typed, action = typed_fields(form.all()), form.text("action")
    changed, here, query = pressed(typed, action), f"/campaigns/{campaign}/edit", ""
    if changed is not None:
        typed = changed[0]
    if pilot:
        typed, query = await _with_pilot(visit, form, typed)
    try:
        complete = await _keep(visit, campaign, typed)
    except Conflict:  # it is no draft any more: its page says so
        return visit.go(f"/campaigns/{campaign}")
    what, _, language = action.partition(":")
    if changed is not None:
        return visit.go(f"{here}#{changed[1]}")
    if pilot:
        return visit.go(f"{here}{query}#prices")
    if what == "language" and language in languages():
        return visit.go(f"{here}?lang={language}")
    if what != "save":
        return visit.go(f"{here}?look=yes#preview")
    return visit.go(f"/campaigns/{campaign}" if complete else f"{here}?check=yes#problems")


async def _keep(visit: PageRequest, campaign: str, typed: Mapping[str, str], *, seen: datetime | None = None) -> bool:
    """Keep what was typed; whether it is a complete draft."""
    service, language = visit.app.service, visit.texts.language
    settings = filled(typed, visit.write, least=_least(visit), now=service.clock()).settings
    keep = partial(service.keep_draft, visit.who, campaign, typed, language=language, settings=settings, seen=seen)
    await visit.app.run(keep)
    return settings is not None


async def _with_pilot(visit: PageRequest, form: Form, typed: Mapping[str, str]) -> tuple[dict[str, str], str]:
    """What was typed, with the prior that a pilot speaks for; or the name of what is wrong with its file."""
    try:
        fitted = await visit.app.compute(visit.who, fitted_pilot, form.file)
    except PilotRefused as refused:
        values = "".join(f"&{name}={value}" for name, value in refused.values.items())
        return {**typed, "prices": "pilot"}, f"?pilot={refused.code.removeprefix('form.')}{values}"
    return {**typed, "prices": "pilot", "pilot": fitted.prior, "pilot_people": str(fitted.people)}, ""


def _seen(visit: PageRequest, text: str) -> datetime:
    """When the page was shown on which something was typed; now, if it does not say so."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return visit.app.service.clock()
    return found if found.tzinfo is not None else visit.app.service.clock()


def _least(visit: PageRequest) -> int:
    return visit.app.service.installation.least_people


# -- carried through a log-in ------------------------------------------------------------------------------------------


async def _log_in_with(request: Request, campaign: str) -> Response:
    """The page to log in at, with the form that was sent in it; refused as ever if it may not have been our page's."""
    if request.headers.get("sec-fetch-site") != "same-origin":
        raise LogInFirst
    visit = stranger(request)
    async with request.form(max_files=1, max_fields=_MOST_FIELDS) as content:
        sent = {name: value for name, value in content.items() if not isinstance(value, UploadFile)}
    text = json.dumps({"campaign": campaign, "fields": typed_fields(sent)})
    told = visit.texts("Your session had ended. Log in again on this page: what you typed comes with you.")
    return visit.page("staff/login.html", here="/login", problem=told, name="", next="", carried=text)


async def taken_up(visit: PageRequest, text: str) -> str | None:
    """Keep the form that was carried through a log-in; where it can be seen, None if there is nothing to keep."""
    try:
        found = json.loads(text[:_LONGEST_CARRIED])
        campaign = require_id(str(found["campaign"]))
        fields = typed_fields({str(name): str(value) for name, value in found["fields"].items()})
        await _keep(visit, campaign, fields)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, HTTPException, HushbidError):
        return None  # nothing was carried; or the draft has opened meanwhile, or who logged in is no analyst
    return f"/campaigns/{campaign}/edit"


# -- the page ----------------------------------------------------------------------------------------------------------


async def _page(
    visit: PageRequest,
    campaign: str,
    fields: Mapping[str, str],
    *,
    view: CampaignView | None = None,
    kept: datetime | None = None,
) -> Response:
    asked, typed = visit.request.query_params, {**dict.fromkeys(EMPTY, ""), **fields}
    now = visit.app.service.clock()
    given = filled(typed, visit.write, least=_least(visit), now=now) if asked.get("check") == "yes" else Filled()
    forecast = await _forecast(visit, typed) if asked.get("look") == "yes" else None
    problems = {**given.problems, **_pilot_problem(visit), **_file_problem(visit)}
    return visit.page(
        "staff/draft.html",
        here=f"/campaigns/{campaign}/edit",
        campaign=campaign,
        view=view,
        kept=kept,
        typed=typed,
        questions=[_part(typed, "q", place, PARTS) for place in range(question_count(typed))],
        strata=[_part(typed, "s", place, ("name", "weight")) for place in range(stratum_count(typed))],
        kinds=KINDS,
        privacy=PRIVACY,
        relations=RELATIONS,
        own=OWN,
        unavailable=unavailable(typed),
        p=problems,
        places=PLACES,
        open={part: any(name.startswith(fields) for name in problems) for part, fields in _OPEN.items()},
        forecast=forecast,
        chart=_price_chart(visit, typed),
        decimals=decimals_of(typed),
        seen=now.isoformat(),
        tab="campaigns",
    )


def _part(typed: Mapping[str, str], letter: str, place: int, parts: tuple[str, ...]) -> dict[str, Any]:
    """One question or stratum as it was typed."""
    return {"at": f"{letter}-{place}", **{part: typed.get(f"{letter}-{place}-{part}", "") for part in parts}}


def _pilot_problem(visit: PageRequest) -> dict[str, str]:
    """What was wrong with a pilot's file, which was not kept."""
    asked = visit.request.query_params
    name = f"form.{asked.get('pilot', '')}"
    if not name.startswith("form.pilot_") or name not in visit.texts:
        return {}
    numbers = {key: asked.get(key, "?")[:9] for key in ("row", "least", "got", "most")}
    return {"pilot_file": visit.texts.coded(name, **numbers)}


def _file_problem(visit: PageRequest) -> dict[str, str]:
    """What was wrong with a campaign file, which was not kept."""
    told = visit.request.query_params.get("file", "")
    if not told:
        return {}
    unfit = [name for name in told.split(",") if name in NOT_HERE]
    code = "form.file_unfit" if unfit else "form.file_unreadable"
    return {"campaign_file": visit.texts.coded(code, **({"fields": ", ".join(unfit)} if unfit else {}))}


def _price_chart(visit: PageRequest, typed: Mapping[str, str]) -> Any:
    try:
        low, high = (float(visit.write.read(typed[name])) for name in ("price_low", "price_high"))
    except FormError:
        low, high = 0.5, 5.0
    if not 0.0 < low < high:
        low, high = 0.5, 5.0
    currency, decimals = typed["currency"][:3], decimals_of(typed)
    return pictures.price_chart(visit.texts, visit.write, low, high, currency=currency, decimals=decimals)


async def _forecast(visit: PageRequest, typed: Mapping[str, str], *, wanted: Any = lambda: True) -> Forecast:
    """The forecast in words, or why there is none; texts that people will read need not be there yet."""
    given = filled(_named(typed), visit.write, least=_least(visit))
    if given.settings is None:
        return Forecast(
            problem=visit.texts("The forecast appears here once questions, people, goal and prices can be read.")
        )
    settings, service = given.settings, visit.app.service
    people = settings.market.population or 1
    try:
        found = await visit.app.compute(
            visit.who, lambda: service.answers_ahead(settings, people) if wanted() else None
        )
    except HushbidError as refused:
        return Forecast(problem=said(refused.field or "", visit.texts))
    if found is None:
        return Forecast()
    return forecast_words(visit, settings, *found)


def _named(typed: Mapping[str, str]) -> dict[str, str]:
    """A form in which every question has a name."""
    names = {f"q-{place}-name": str(place + 1) for place in range(question_count(typed))}
    missing = {name: text for name, text in names.items() if not typed.get(name, "").strip()}
    return {**typed, **missing, "title": typed.get("title", "").strip() or "?"}
