"""Drafting a campaign: a form that is kept as it is typed, whatever it says, and a forecast in words.

Whatever is sent is kept first (`hushbid.server.service.forms`), then the browser is sent to a page that shows it: so
Back, Reload and a change of language never lose anything and never send anything again. ``check=yes`` in a page's
address shows what is wrong, field by field; ``look=yes`` shows the forecast.
"""

import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from fastapi import APIRouter, Request, Response
from starlette.exceptions import HTTPException

from hushbid.errors import Conflict, HushbidError, ServerFailed
from hushbid.server.http.schemas import answer
from hushbid.server.model.forms import KeptForm, is_form_id
from hushbid.server.model.views import CampaignView
from hushbid.server.pages import pictures
from hushbid.server.pages.carrying import log_in_with
from hushbid.server.pages.forecast_words import Forecast, forecast_words
from hushbid.server.pages.form_goal import OWN, PRIVACY, RELATIONS
from hushbid.server.pages.form_options import unavailable
from hushbid.server.pages.form_prices import PilotRefused, fitted_pilot
from hushbid.server.pages.form_questions import KINDS, PARTS, pressed, question_count, stratum_count
from hushbid.server.pages.request import Form, LogInFirst, PageRequest, analyst, require_id
from hushbid.server.pages.settings_form import (
    EMPTY,
    Filled,
    as_typed,
    filled,
    first_form,
    in_language,
    told,
    typed_fields,
)
from hushbid.server.pages.wording import FormError, languages

router = APIRouter(include_in_schema=False)
_OPEN = {  # the folded parts of the form, and which fields are in each
    "experts": ("currency", "decimals", "retention_days", "spending_limit"),
    "told": ("consent_", "observer", "statement"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """One form, wherever it is: new, or about a draft."""

    id: str
    fields: Mapping[str, str]
    """As they are typed in the page's language."""

    view: CampaignView | None
    """The draft that it is about."""

    kept: KeptForm | None = None

    @property
    def here(self) -> str:
        """Where it can be seen."""
        return f"/campaigns/new/{self.id}" if self.view is None else f"/campaigns/{self.view.id}/edit"


# -- seen --------------------------------------------------------------------------------------------------------------


@router.get("/campaigns/new")
async def new(request: Request) -> Response:
    """An empty form, with values that are a fair beginning."""
    visit = await analyst(request)
    return await _page(visit, Sheet(id=_new_id(), fields=first_form(visit.write), view=None))


@router.get("/campaigns/new/{form}")
async def go_on(request: Request, form: str) -> Response:
    """A form that was begun."""
    visit = await analyst(request)
    if not is_form_id(form):
        raise HTTPException(404)
    kept = await visit.app.run(visit.app.service.form, visit.who, form)
    if kept is not None and kept.campaign is not None:
        return visit.go(f"/campaigns/{kept.campaign}/edit")
    if kept is None or kept.fields is None:
        return visit.go("/campaigns/new")
    return await _page(visit, Sheet(id=form, fields=_shown(visit, kept), view=None, kept=kept))


@router.get("/campaigns/{campaign}/edit")
async def edit(request: Request, campaign: str) -> Response:
    """The form with a draft's settings, or with what was typed since they were saved."""
    visit = await analyst(request)
    service, found = visit.app.service, require_id(campaign)
    view = await visit.app.run(service.campaign, visit.who, found)
    if view.state.value != "draft":
        return visit.go(f"/campaigns/{found}")
    kept = await visit.app.run(service.form_about, visit.who, found)
    if kept is not None:
        return await _page(visit, Sheet(id=kept.id, fields=_shown(visit, kept), view=view, kept=kept))
    people = sum(view.people.values()) or view.planned_people or EMPTY["people"]
    typed = {**as_typed(view.settings, visit.write), "people": str(people)}
    return await _page(visit, Sheet(id=_new_id(), fields=typed, view=view))


def _shown(visit: PageRequest, kept: KeptForm) -> dict[str, str]:
    """What was typed, in the page's language."""
    return in_language(kept.fields or {}, kept.language, visit.write)


def _new_id() -> str:
    return f"f{secrets.token_hex(10)}"


# -- sent --------------------------------------------------------------------------------------------------------------


@router.post("/campaigns/new")
async def create(request: Request) -> Response:
    """Keep a form, and do what its button says."""
    return await _sent(request, None)


@router.post("/campaigns/{campaign}/edit")
async def change(request: Request, campaign: str) -> Response:
    """Keep a form about a draft, and do what its button says."""
    return await _sent(request, require_id(campaign))


@router.post("/campaigns/{campaign}/pilot")
async def take_pilot(request: Request, campaign: str) -> Response:
    """Fit a prior to the pilot that came with a form; "new" stands for a form that is about no draft."""
    return await _sent(request, None if campaign == "new" else require_id(campaign), pilot=True)


@router.post("/campaigns/{campaign}/keep")
async def keep(request: Request, campaign: str) -> Response:
    """Keep what was typed so far, for the page's script."""
    visit = await analyst(request)
    form = await visit.form()
    try:
        about = None if campaign == "new" else require_id(campaign)
        kept = await _keep(visit, form, typed_fields(form.all()), about, seen=_seen(visit, form.text("seen")))
    except Conflict:  # it has opened meanwhile
        return answer({"kept": None})
    return answer({"kept": visit.write.moment(kept.changed_at), "here": f"/campaigns/new/{kept.id}"})


@router.post("/campaigns/preview")
async def live_preview(request: Request) -> Response:
    """What a form that is just being filled in would lead to, for the page's script."""
    visit = await analyst(request)
    form = await visit.form()
    latest: dict[str, int] = request.app.state.__dict__.setdefault("previews", {})
    number = latest[visit.who.id] = latest.get(visit.who.id, 0) + 1
    found = await _forecast(visit, typed_fields(form.all()), wanted=lambda: latest[visit.who.id] == number)
    return answer(asdict(found))


async def _sent(request: Request, campaign: str | None, *, pilot: bool = False) -> Response:
    try:
        visit = await analyst(request)
    except LogInFirst:
        return await log_in_with(request, campaign)
    form = await visit.form()
    typed, action = typed_fields(form.all()), form.text("action")
    changed = pressed(typed, action)
    if changed is not None:
        typed = changed[0]
    query = ""
    if pilot:
        typed, query = await _with_pilot(visit, form, typed)
    try:
        kept = await _keep(visit, form, typed, campaign)
        here = f"/campaigns/new/{kept.id}" if kept.campaign is None else f"/campaigns/{kept.campaign}/edit"
        if changed is not None:
            return visit.go(f"{here}#{changed[1]}")
        if pilot:
            return visit.go(f"{here}{query}#prices")
        return await _done(visit, typed, kept, action, here)
    except ServerFailed:
        raise
    except Conflict:  # it is no draft any more: its page says so
        return visit.go("/campaigns" if campaign is None else f"/campaigns/{campaign}")


async def _done(visit: PageRequest, typed: Mapping[str, str], kept: KeptForm, action: str, here: str) -> Response:
    """What a button says, once what was typed is kept."""
    service, (what, _, language) = visit.app.service, action.partition(":")
    if what == "language" and language in languages():
        return visit.go(f"{here}?lang={language}")
    if what == "forget":
        await visit.app.run(service.forget_form, visit.who, kept.id)
        return visit.go("/campaigns" if kept.campaign is None else f"/campaigns/{kept.campaign}")
    if what != "save":
        return visit.go(f"{here}?look=yes#preview")
    given = filled(typed, visit.write, least=_least(visit), now=service.clock())
    if given.settings is None:
        return visit.go(f"{here}?check=yes#problems")
    view = await visit.app.run(service.save_form, visit.who, kept.id, given.settings, people=given.people)
    return visit.go(f"/campaigns/{view.id}")


async def _keep(
    visit: PageRequest, form: Form, typed: Mapping[str, str], campaign: str | None, *, seen: datetime | None = None
) -> KeptForm:
    given = form.text("form")
    return await visit.app.run(
        visit.app.service.keep_form,
        visit.who,
        given if is_form_id(given) else _new_id(),
        typed,
        language=visit.texts.language,
        campaign_id=campaign,
        seen=seen,
    )


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


# -- the page ----------------------------------------------------------------------------------------------------------


async def _page(visit: PageRequest, sheet: Sheet) -> Response:
    asked, typed = visit.request.query_params, {**dict.fromkeys(EMPTY, ""), **sheet.fields}
    now = visit.app.service.clock()
    given = filled(typed, visit.write, least=_least(visit), now=now) if asked.get("check") == "yes" else Filled()
    forecast = await _forecast(visit, typed) if asked.get("look") == "yes" else None
    problems = {**given.problems, **_pilot_problem(visit)}
    return visit.page(
        "staff/draft.html",
        here=sheet.here,
        sheet=sheet,
        view=sheet.view,
        typed=typed,
        questions=[_part(typed, "q", place, PARTS) for place in range(question_count(typed))],
        strata=[_part(typed, "s", place, ("name", "weight")) for place in range(stratum_count(typed))],
        kinds=KINDS,
        privacy=PRIVACY,
        relations=RELATIONS,
        own=OWN,
        unavailable=unavailable(typed),
        p=problems,
        open={part: any(name.startswith(fields) for name in problems) for part, fields in _OPEN.items()},
        forecast=forecast,
        chart=_price_chart(visit, typed),
        seen=visit.app.service.clock().isoformat(),
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


def _price_chart(visit: PageRequest, typed: Mapping[str, str]) -> Any:
    try:
        low, high = (float(visit.write.read(typed[name])) for name in ("price_low", "price_high"))
    except FormError:
        low, high = 0.5, 5.0
    if not 0.0 < low < high:
        low, high = 0.5, 5.0
    decimals = int(typed["decimals"]) if typed["decimals"] in tuple("0123456") else 2
    currency = typed["currency"][:3]
    return pictures.price_chart(visit.texts, visit.write, low, high, currency=currency, decimals=decimals)


async def _forecast(visit: PageRequest, typed: Mapping[str, str], *, wanted: Any = lambda: True) -> Forecast:
    """The forecast in words, or why there is none; texts that people will read need not be there yet."""
    given = filled(_named(typed), visit.write, least=_least(visit))
    if given.settings is None:
        return Forecast(
            problem=visit.texts("The forecast appears here once questions, people, goal and prices can be read.")
        )
    settings, people, service = given.settings, given.people, visit.app.service
    try:
        found = await visit.app.compute(
            visit.who, lambda: service.answers_ahead(settings, people) if wanted() else None
        )
    except HushbidError as refused:
        return Forecast(problem=told(refused, typed, visit.texts)[1])
    if found is None:
        return Forecast()
    return forecast_words(visit, settings, *found)


def _named(typed: Mapping[str, str]) -> dict[str, str]:
    """A form in which every question has a name."""
    names = {f"q-{place}-name": str(place + 1) for place in range(question_count(typed))}
    missing = {name: text for name, text in names.items() if not typed.get(name, "").strip()}
    return {**typed, **missing, "title": typed.get("title", "").strip() or "?"}
