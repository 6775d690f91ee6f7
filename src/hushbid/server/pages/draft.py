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
from typing import Any

from fastapi import Request, Response
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException

from hushbid.errors import Conflict, HushbidError
from hushbid.server.http.schemas import answer
from hushbid.server.model.checks import LONGEST
from hushbid.server.model.settings import NOT_HERE, refused_here
from hushbid.server.pages import pictures
from hushbid.server.pages.draft_form import (
    Filled,
    as_typed,
    decimals_of,
    filled,
    first_form,
    in_language,
    label_of,
    said,
    typed_fields,
    unavailable,
)
from hushbid.server.pages.forecast_words import Forecast, forecast_words
from hushbid.server.pages.form_fields import (
    AMOUNTS,
    ASKED,
    EMPTY,
    OWN,
    PLACES,
    PRIVACY,
    RELATIONS,
    choices_for,
    kind_of,
)
from hushbid.server.pages.form_prices import MOST_BYTES, PilotRefused, fitted_pilot
from hushbid.server.pages.form_rows import KINDS, pressed, rows_of
from hushbid.server.pages.request import MOST_FIELDS, LogInFirst, PageRequest, analyst, page, require_id, stranger
from hushbid.server.pages.wording import FormError, languages

_FOLDED = ("ethics", "example", "more")
"""Parts of the form that are open where something is wrong in them, or was typed that is not usual."""

_LONGEST_CARRIED = 500_000


# -- seen --------------------------------------------------------------------------------------------------------------


@page("GET /campaigns/new", analyst)
async def new(visit: PageRequest) -> Response:
    """An empty form, with values that are a fair beginning."""
    return await _page(visit, f"c{secrets.token_hex(10)}", first_form(visit.write))


@page("GET /campaigns/{campaign}/edit", analyst)
async def edit(visit: PageRequest) -> Response:
    """The form of a draft, as it was typed or as its settings would be."""
    view = visit.found = await visit.ask(visit.service.campaign)
    if view.state.value != "draft":
        return visit.go()
    typed = await visit.ask(visit.service.typed_draft)
    fields = (
        as_typed(view.whole.to_dict(), visit.write)
        if typed is None
        else in_language(typed.fields, typed.language, visit.write)
    )
    if view.people and (typed is None or fields.get("people", "").isdigit()):  # what cannot be read stays as it is
        fields["people"] = str(sum(view.people.values()))
    return await _page(visit, visit.campaign, fields, kept=None if typed is None else typed.at)


# -- sent --------------------------------------------------------------------------------------------------------------


async def _drafter(request: Request) -> PageRequest:
    """An analyst who sends the form, or who did before the session ended: then the form comes through the log-in.

    Refused as ever if it may not have been our page's.
    """
    try:
        return await analyst(request)
    except LogInFirst:
        if request.headers.get("sec-fetch-site") != "same-origin":
            raise
    visit = stranger(request)
    async with request.form(max_files=1, max_fields=MOST_FIELDS) as content:
        sent = {name: value for name, value in content.items() if not isinstance(value, UploadFile)}
    text = json.dumps({"campaign": require_id(request.path_params["campaign"]), "fields": typed_fields(sent)})
    told = visit.texts("Your session had ended. Log in again on this page: what you typed comes with you.")
    raise LogInFirst(visit.page("staff/login.html", here="/login", problem=told, name="", next="", carried=text))


@page("POST /campaigns/{campaign}/edit", _drafter)
async def change(visit: PageRequest) -> Response:
    """Keep a form, and do what its button says."""
    action = visit.form.text("action")
    changed = pressed(typed_fields(visit.form.all()), action)
    typed, place = (typed_fields(visit.form.all()), "") if changed is None else changed
    try:
        complete = await _keep(visit, typed)
    except Conflict:  # it is no draft any more: its page says so
        return visit.go()
    what, _, language = action.partition(":")
    if changed is not None:
        return visit.go(f"edit#{place}")
    if what == "language" and language in languages():
        return visit.go(f"edit?lang={language}")
    if what != "save":
        return visit.go("edit?look=yes#preview")
    return visit.go("" if complete else "edit?check=yes#problems")


@page("POST /campaigns/{campaign}/pilot", _drafter)
async def take_pilot(visit: PageRequest) -> Response:
    """Fit a prior to the pilot that came with a form; or say what is wrong with its file."""
    typed, query = {**typed_fields(visit.form.all()), "prices": "pilot"}, ""
    try:
        fitted = await visit.app.compute(visit.who, fitted_pilot, visit.form.file)
        typed |= {"pilot": fitted.prior, "pilot_people": str(fitted.people)}
    except PilotRefused as refused:
        values = "".join(f"&{name}={value}" for name, value in refused.values.items())
        query = f"?pilot={refused.code.removeprefix('form.')}{values}"
    try:
        await _keep(visit, typed)
    except Conflict:
        return visit.go()
    return visit.go(f"edit{query}#prices")


@page("POST /campaigns/{campaign}/import", analyst)
async def take_file(visit: PageRequest) -> Response:
    """Keep what a campaign file states as a draft, unless it states what a server cannot do."""
    content, typed = visit.form.file, {}
    try:
        values = tomllib.loads(content.decode("utf-8-sig")) if len(content) <= MOST_BYTES else {}
        typed = as_typed(values, visit.write) if values else {}
    except (ValueError, TypeError, AttributeError, RecursionError):
        pass
    if not typed:
        return visit.go("/campaigns/new?file=unreadable")
    if unfit := refused_here(values):
        return visit.go(f"/campaigns/new?file={','.join(unfit)}")
    return visit.go("" if await _keep(visit, typed_fields(typed)) else "edit?check=yes#problems")


@page("POST /campaigns/{campaign}/keep", analyst)
async def keep(visit: PageRequest) -> Response:
    """Keep what was typed so far, for the page's script."""
    try:
        await _keep(visit, typed_fields(visit.form.all()), seen=_seen(visit, visit.form.text("seen")))
    except Conflict:  # it has opened meanwhile
        return answer({"kept": None})
    here = f"/campaigns/{visit.campaign}/edit"
    return answer({"kept": visit.write.moment(visit.service.clock()), "here": here})


@page("POST /campaigns/preview", analyst)
async def live_preview(visit: PageRequest) -> Response:
    """What a form that is just being filled in would lead to, for the page's script."""
    latest: dict[str, int] = visit.request.app.state.__dict__.setdefault("previews", {})
    number = latest[visit.who.id] = latest.get(visit.who.id, 0) + 1
    typed = typed_fields(visit.form.all())
    return answer(asdict(await _forecast(visit, typed, wanted=lambda: latest[visit.who.id] == number)))


async def _keep(visit: PageRequest, typed: Mapping[str, str], *, seen: datetime | None = None) -> bool:
    """Keep what was typed; whether it is a complete draft."""
    settings = filled(typed, visit.write, least=_least(visit), now=visit.service.clock()).settings
    await visit.ask(visit.service.keep_draft, typed, language=visit.texts.language, settings=settings, seen=seen)
    return settings is not None


def _seen(visit: PageRequest, text: str) -> datetime:
    """When the page was shown on which something was typed; now, if it does not say so."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return visit.service.clock()
    return found if found.tzinfo is not None else visit.service.clock()


def _least(visit: PageRequest) -> int:
    return visit.service.installation.least_people


async def taken_up(visit: PageRequest, text: str) -> str | None:
    """Keep the form that was carried through a log-in; where it can be seen, None if there is nothing to keep."""
    try:
        found = json.loads(text[:_LONGEST_CARRIED])
        visit.campaign = require_id(str(found["campaign"]))
        await _keep(visit, typed_fields({str(name): str(value) for name, value in found["fields"].items()}))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, HTTPException, HushbidError):
        return None  # nothing was carried; or the draft has opened meanwhile, or who logged in is no analyst
    return f"/campaigns/{visit.campaign}/edit"


# -- the page ----------------------------------------------------------------------------------------------------------


async def _page(
    visit: PageRequest, campaign: str, fields: Mapping[str, str], *, kept: datetime | None = None
) -> Response:
    asked, typed, now = visit.query, {**dict.fromkeys(EMPTY, ""), **fields}, visit.service.clock()
    given = filled(typed, visit.write, least=_least(visit), now=now) if asked.get("check") == "yes" else Filled()
    forecast = await _forecast(visit, typed) if asked.get("look") == "yes" else None
    problems = {**given.problems, **_pilot_problem(visit), **_file_problem(visit)}
    rows = {
        letter: [{"at": f"{letter}-{place}", **one} for place, one in enumerate(rows_of(typed, letter))]
        for letter in "qs"
    }
    return visit.page(
        "staff/draft.html",
        here=f"/campaigns/{campaign}/edit",
        campaign=campaign,
        kept=kept,
        typed=typed,
        questions=rows["q"],
        strata=rows["s"],
        kinds=KINDS,
        kind_of=kind_of,
        choices_for=choices_for,
        amounts=AMOUNTS,
        longest=LONGEST,
        asked=ASKED,
        privacy=PRIVACY,
        relations=RELATIONS,
        own=OWN,
        unavailable=unavailable(typed),
        p=problems,
        places=PLACES,
        labels={name: label_of(name, typed, visit.texts) for name in problems if name != "form"},
        open={part: _is_open(part, typed, problems) for part in _FOLDED},
        forecast=forecast,
        chart=_price_chart(visit, typed),
        decimals=decimals_of(typed),
        seen=now.isoformat(),
        tab="campaigns",
    )


def _is_open(part: str, typed: Mapping[str, str], problems: Mapping[str, str]) -> bool:
    names = [*ASKED[part], *(name for name in typed if part == "ethics" and name.startswith("consent_text_"))]
    return any(name in problems or (part != "more" and typed[name]) for name in names)


def _pilot_problem(visit: PageRequest) -> dict[str, str]:
    """What was wrong with a pilot's file, which was not kept."""
    asked = visit.query
    name = f"form.{asked.get('pilot', '')}"
    if not name.startswith("form.pilot_") or name not in visit.texts:
        return {}
    numbers = {key: asked.get(key, "?")[:9] for key in ("row", "least", "got", "most")}
    return {"pilot_file": visit.texts.coded(name, **numbers)}


def _file_problem(visit: PageRequest) -> dict[str, str]:
    """What was wrong with a campaign file, which was not kept."""
    told = visit.query.get("file", "")
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
    settings, service = given.settings, visit.service
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
    names = {f"q-{place}-name": str(place + 1) for place in range(len(rows_of(typed, "q")))}
    missing = {name: text for name, text in names.items() if not typed.get(name, "").strip()}
    return {**typed, **missing, "title": typed.get("title", "").strip() or "?"}
