"""Drafting a campaign with a look ahead, and inviting people to it."""

import csv
import hashlib
import io
import json
import math
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from fastapi import APIRouter, Request, Response

from hushbid.errors import Conflict, HushbidError, InputError, ServerFailed
from hushbid.server.api.exports import Csv, download
from hushbid.server.api.schemas import answer
from hushbid.server.domain.settings import MOST_PEOPLE, CampaignSettings
from hushbid.server.domain.views import CampaignView, Invitation, MenuView, Preview, Principal
from hushbid.server.pages import pictures
from hushbid.server.pages.numbers import Unreadable
from hushbid.server.pages.settings_form import EMPTY, Filled, as_typed, filled
from hushbid.server.pages.visit import Form, Visit, analyst, base_address, require_id
from hushbid.server.service import Service
from hushbid.server.service.idempotency import Repeatable
from hushbid.tables import harmless

router = APIRouter(include_in_schema=False)
_FIRST_COLUMN = frozenset({"id", "ids", "email", "e-mail", "external_id", "participant", "kennung"})


# -- the draft ---------------------------------------------------------------------------------------------------------


@router.get("/campaigns/new")
async def new(request: Request) -> Response:
    """An empty form, with values that are a fair beginning."""
    visit = await analyst(request)
    return _form_page(visit, None, {**EMPTY, "max_relation": visit.write.typed(float(EMPTY["max_relation"]))})


@router.get("/campaigns/{campaign}/edit")
async def edit(request: Request, campaign: str) -> Response:
    """The form with a draft's settings."""
    visit = await analyst(request)
    service, found = visit.app.service, require_id(campaign)
    view = await visit.app.run(service.campaign, visit.who, found)
    if view.state.value != "draft" or view.settings.questions or view.settings.strata:  # the form knows neither
        return visit.go(f"/campaigns/{found}")
    typed = as_typed(view.settings, visit.write)
    people = sum(view.people.values())
    return _form_page(visit, view, {**typed, "people": str(people or EMPTY["people"])})


@router.post("/campaigns/new")
async def create(request: Request) -> Response:
    """Store a new draft, or show what it would lead to."""
    return await _sent(await analyst(request), None)


@router.post("/campaigns/{campaign}/edit")
async def change(request: Request, campaign: str) -> Response:
    """Store a draft's settings, or show what they would lead to."""
    visit = await analyst(request)
    service, found = visit.app.service, require_id(campaign)
    view = await visit.app.run(service.campaign, visit.who, found)
    if view.settings.questions or view.settings.strata:
        told = "This draft asks several questions, or has strata: change it through the HTTP interface."
        raise Conflict(told, field="questions" if view.settings.questions else "strata")
    return await _sent(visit, view)


@router.post("/campaigns/preview")
async def live_preview(request: Request) -> Response:
    """What a form that is just being filled in would lead to, for the page's script."""
    visit = await analyst(request)
    form = await visit.form()
    given = filled(form.all(), visit.write)
    if given.settings is None:
        return answer({"problem": given.first_problem(visit.texts), "texts": {}})
    latest: dict[str, int] = request.app.state.__dict__.setdefault("previews", {})
    number = latest[visit.who.id] = latest.get(visit.who.id, 0) + 1
    try:
        found = await _looked_ahead(visit, given, wanted=lambda: latest[visit.who.id] == number)
    except HushbidError as refused:
        return answer({"problem": str(refused), "texts": {}})
    if found is None:
        return answer({"problem": None, "texts": {}})
    return answer({"problem": None, "texts": preview_texts(visit, given.settings, found)})


async def _sent(visit: Visit, view: CampaignView | None) -> Response:
    form = await visit.form()
    typed = dict(form.all())
    given = filled(typed, visit.write)
    if given.settings is None:
        return _form_page(visit, view, typed, given=given, status=422)
    settings, service, who = given.settings, visit.app.service, visit.who
    try:
        if form.text("action") == "preview":
            found = await _looked_ahead(visit, given)
            menu = await visit.app.compute(service.sketch_menu, settings, given.people)
            return _form_page(visit, view, typed, given=given, preview=found, menu=menu)
        if view is not None:
            campaign = (await visit.app.run(service.change, who, view.id, settings)).id
        else:
            campaign = await _stored(visit, form, settings)
    except ServerFailed:
        raise
    except HushbidError as refused:
        return _form_page(visit, view, typed, given=given, problem=str(refused), status=409)
    return visit.go(f"/campaigns/{campaign}")


async def _stored(visit: Visit, form: Form, settings: CampaignSettings) -> str:
    """Store a draft once, however often the same form arrives."""
    service = visit.app.service
    what = json.dumps(settings.to_dict(), sort_keys=True)
    try:
        asked = visit.repeatable(form, "page draft", what, encode=lambda view: str(view.id).encode())
    except Unreadable:  # a form without its key is as good: at worst there are two drafts
        return (await visit.app.run(service.draft, visit.who, settings)).id
    found, _ = await visit.app.run(service.once, asked, service.draft, visit.who, settings)
    return found.decode()


def _form_page(
    visit: Visit,
    view: CampaignView | None,
    typed: Mapping[str, str],
    *,
    given: Filled | None = None,
    preview: Preview | None = None,
    menu: MenuView | None = None,
    problem: str | None = None,
    status: int = 200,
) -> Response:
    chart = texts = None
    if preview is not None and given is not None and given.settings is not None:
        texts = preview_texts(visit, given.settings, preview)
        if menu is not None:
            currency = given.settings.currency
            chart = pictures.menu_chart(visit.texts, visit.write, menu, 1.0, price=None, currency=currency)
    return visit.page(
        "staff/draft.html",
        status=status,
        here="/campaigns/new" if view is None else f"/campaigns/{view.id}/edit",
        view=view,
        typed={**dict.fromkeys(EMPTY, ""), **typed},
        problems={} if given is None else given.problems,
        problem=problem,
        preview=preview,
        preview_texts=texts,
        chart=chart,
        once=typed.get("once") or secrets.token_urlsafe(24),
        tab="campaigns",
    )


async def _looked_ahead(visit: Visit, given: Filled, *, wanted: Callable[[], bool] = lambda: True) -> Preview | None:
    """Look ahead, unless nobody wants to know any more when it is its turn: she has typed on."""
    settings, people, service = given.settings, given.people, visit.app.service
    assert settings is not None
    groups: int | Sequence[str | None] = people
    if settings.groups:
        groups = [settings.groups[k % len(settings.groups)] for k in range(people)]
    return await visit.app.compute(lambda: service.preview(settings, groups) if wanted() else None)


def preview_texts(visit: Visit, settings: CampaignSettings, found: Preview) -> dict[str, str]:
    """A look ahead in words, by the name of the place on the page that shows each."""
    write, t, spending = visit.write, visit.texts, found.spending
    unit = f" {settings.unit}" if settings.unit else ""

    def money(minor: int) -> str:
        return write.money(minor, settings.currency, settings.decimals)

    def rough(minor: int) -> str:
        return write.roughly(minor, settings.currency, settings.decimals, most=spending.at_worst)

    bought = found.share_bought * spending.people
    each = (spending.expected - spending.fees - spending.people) / bought if bought > 0 else 0.0

    def error(found: float | None) -> str:
        return t("preview.no_error") if found is None else f"± {write.number(found, 2)}{unit}"

    return {
        "expected": rough(spending.expected),
        "high": rough(spending.in_95_of_100),
        "worst": t("preview.unbounded") if spending.at_worst is None else money(spending.at_worst),
        "error": error(found.standard_error),
        "error_worst": error(found.worst_standard_error) if settings.max_relation else t("preview.not_protected"),
        "share": write.percent(found.share_bought),
        "each": write.roughly(math.ceil(max(each, 0.0)), settings.currency, settings.decimals),
        "basis": t("preview.basis", people=write.number(spending.people, 9), repetitions=str(spending.repetitions)),
        "ceiling": t("preview.above_ceiling") if found.above_ceiling else "",
    }


# -- inviting ----------------------------------------------------------------------------------------------------------


@router.get("/campaigns/{campaign}/participants")
async def invite_page(request: Request, campaign: str) -> Response:
    """Ask whom to invite."""
    visit = await analyst(request)
    service, found = visit.app.service, require_id(campaign)
    view = await visit.app.run(service.campaign, visit.who, found)
    return _invite_page(visit, view) if view.state.value == "draft" else visit.go(f"/campaigns/{found}")


@router.post("/campaigns/{campaign}/participants")
async def invite(request: Request, campaign: str) -> Response:
    """Make links, and show or download them: again under the same key, within a day."""
    visit = await analyst(request)
    form = await visit.form()
    service, found = visit.app.service, require_id(campaign)
    view = await visit.app.run(service.campaign, visit.who, found)
    typed = {name: form.text(name) for name in ("count", "people")}
    try:
        people = _invited(form, strata=view.settings.strata is not None)
        digest = form.text("digest") or _digest(people)
        asked = visit.repeatable(form, "page invite", found, digest, encode=_encoded)
        links = await visit.app.run(_links, service, asked, visit.who, found, people)
    except ServerFailed:
        raise
    except Unreadable as refused:
        sentence = visit.texts(refused.text, most=visit.write.number(MOST_PEOPLE, 9))
        return _invite_page(visit, view, typed=typed, problem=sentence, language=None, status=422)
    except HushbidError as refused:
        return _invite_page(visit, view, typed=typed, problem=str(refused), status=422)
    shown = [{**one, "link": f"{base_address(visit)}/p#{one['token']}"} for one in links]
    if form.text("as") == "csv":
        return Csv(_links_csv(shown), headers=download(f"{found}-links.csv"))
    return visit.page(
        "staff/links.html",
        here=f"/campaigns/{found}",
        view=view,
        links=shown,
        once=form.text("once"),
        digest=digest,
        tab="overview",
    )


def _invite_page(
    visit: Visit,
    view: CampaignView,
    *,
    typed: Mapping[str, str] | None = None,
    problem: str | None = None,
    language: str | None = "en",
    status: int = 200,
) -> Response:
    return visit.page(
        "staff/invite.html",
        status=status,
        here=f"/campaigns/{view.id}/participants",
        view=view,
        typed=typed or {"count": "", "people": ""},
        problem=problem,
        problem_language=language,
        once=secrets.token_urlsafe(24),
        tab="overview",
    )


def _invited(form: Form, *, strata: bool) -> int | list[tuple[str, str | None, str | None]] | None:
    """How many, or who; None if the form only asks for links that were made before.

    Exactly one of the three must be filled in: nothing that was typed is left aside.
    """
    if form.text("digest"):
        return None
    ids, count = form.text("people").strip(), form.text("count").strip()
    if sum(map(bool, (ids, form.file, count))) != 1:
        raise Unreadable("invite.one")
    if not count:
        return people_of(form.file.decode("utf-8-sig", "replace") if form.file else ids, strata=strata)
    if not (count.isascii() and count.isdigit() and len(count) <= 6 and 1 <= int(count) <= MOST_PEOPLE):
        raise Unreadable("invite.whole")
    return int(count)


def people_of(text: str, *, strata: bool = False) -> list[tuple[str, str | None, str | None]]:
    """Ids, and groups and strata if there are any, from a table or a list: one person a line, an optional head.

    The column called ``stratum`` has strata, or else the last of two or three in a campaign with strata; any other
    second column has groups.

    >>> people_of("id,group\\nann@x.org,nights\\n\\nbob@x.org,days")
    [('ann@x.org', 'nights', None), ('bob@x.org', 'days', None)]
    >>> people_of("id,stratum\\nann@x.org,old"), people_of("bob@x.org,days,young", strata=True)
    ([('ann@x.org', None, 'old')], [('bob@x.org', 'days', 'young')])
    """
    delimiter = ";" if text.count(";") > text.count(",") else "\t" if "\t" in text else ","
    try:
        rows = [row for row in csv.reader(io.StringIO(text), delimiter=delimiter) if any(cell.strip() for cell in row)]
    except csv.Error:
        raise InputError(
            "people must be one id a line, or a table with the columns id and group.", field="people"
        ) from None
    stratum = 1 if strata and rows and len(rows[0]) == 2 else 2
    if rows and rows[0][0].strip().casefold() in _FIRST_COLUMN:
        head = [cell.strip().casefold() for cell in rows[0]]
        stratum = head.index("stratum") if "stratum" in head else stratum
        del rows[0]
    group = 2 if stratum == 1 else 1
    if not rows:
        raise InputError("people must have at least one id.", field="people")
    if len(rows) > MOST_PEOPLE:
        raise InputError(f"people must be at most {MOST_PEOPLE}, got {len(rows)}.", field="people")
    return [(row[0].strip(), _cell(row, group), _cell(row, stratum)) for row in rows]


def _cell(row: Sequence[str], place: int) -> str | None:
    return row[place].strip() or None if place < len(row) else None


def _links(
    service: Service,
    asked: Repeatable,
    who: Principal,
    campaign: str,
    people: int | list[tuple[str, str | None, str | None]] | None,
) -> list[dict[str, Any]]:
    """Make links once for one form; the same form again gives the same links."""
    if people is None:
        before = service.answered(asked)
        if before is None:
            raise InputError("The links are not kept any more: invite the people again, or renew single links.")
        found = before
    elif isinstance(people, int):
        found, _ = service.once(asked, service.invite, who, campaign, count=people)
    else:
        found, _ = service.once(asked, service.invite, who, campaign, people=people)
    links: list[dict[str, Any]] = json.loads(found)
    return links


def _encoded(made: tuple[Invitation, ...]) -> bytes:
    return json.dumps([asdict(one) for one in made]).encode()


def _digest(people: object) -> str:
    return hashlib.sha256(json.dumps(people).encode()).hexdigest()


def _links_csv(links: Sequence[Mapping[str, Any]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(("id", "label", "group", "link"))
    writer.writerows((one["id"], harmless(one["label"]), harmless(one["group"] or ""), one["link"]) for one in links)
    return text.getvalue()
