"""Inviting people to a draft, and taking somebody off its list again."""

import csv
import hashlib
import io
import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from fastapi import APIRouter, Request, Response

from hushbid.errors import Conflict, HushbidError, InputError, NotFound, ServerFailed
from hushbid.server.api.exports import Csv, download
from hushbid.server.domain.settings import MOST_PEOPLE
from hushbid.server.domain.views import CampaignView, Invitation, Principal
from hushbid.server.pages.numbers import Unreadable
from hushbid.server.pages.visit import Form, Visit, analyst, base_address, require_id
from hushbid.server.service import Service
from hushbid.server.service.idempotency import Repeatable
from hushbid.tables import harmless

router = APIRouter(include_in_schema=False)
People = int | list[tuple[str, str | None, str | None]] | None
"""How many, or everybody's id, group and stratum; None if links that were made before are to be shown."""

_FIRST_COLUMN = frozenset({"id", "ids", "email", "e-mail", "external_id", "participant", "kennung"})


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
    people: People = None
    try:
        people = _invited(form, strata=view.settings.strata is not None)
        digest = form.text("digest") or _digest(people)
        asked = visit.repeatable(form, "page invite", found, digest, encode=_encoded)
        links = await visit.app.run(_links, service, asked, visit.who, found, people)
    except ServerFailed:
        raise
    except Unreadable as unreadable:
        sentence = visit.texts(unreadable.text, most=visit.write.number(MOST_PEOPLE, 9))
        return _invite_page(visit, view, typed=typed, problem=sentence, status=422)
    except HushbidError as refused:
        sentence = visit.texts(f"uninvited.{_why(view, people, refused)}", number=str((refused.row or 0) + 1))
        return _invite_page(visit, view, typed=typed, problem=sentence, status=422)
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


@router.get("/campaigns/{campaign}/people/{person}/remove")
async def ask_remove(request: Request, campaign: str, person: str) -> Response:
    """Ask whether somebody shall really be taken off the list."""
    visit = await analyst(request)
    service, found = visit.app.service, require_id(campaign)
    view = await visit.app.run(service.campaign, visit.who, found)
    try:
        her = await visit.app.run(service.person, visit.who, found, require_id(person))
    except NotFound:
        return visit.go(f"/campaigns/{found}/people?told=gone")
    return visit.page("staff/remove.html", view=view, person=her, tab="people")


@router.post("/campaigns/{campaign}/people/{person}/remove")
async def remove(request: Request, campaign: str, person: str) -> Response:
    """Take somebody off the list."""
    visit = await analyst(request)
    await visit.form()
    found, told = require_id(campaign), ""
    try:
        await visit.app.run(visit.app.service.remove, visit.who, found, require_id(person))
    except Conflict:
        told = "?told=refused"
    except NotFound:
        told = "?told=gone"
    return visit.go(f"/campaigns/{found}/people{told}")


def _invite_page(
    visit: Visit,
    view: CampaignView,
    *,
    typed: Mapping[str, str] | None = None,
    problem: str | None = None,
    status: int = 200,
) -> Response:
    return visit.page(
        "staff/invite.html",
        status=status,
        here=f"/campaigns/{view.id}/participants",
        view=view,
        typed=typed or {"count": "", "people": ""},
        problem=problem,
        once=secrets.token_urlsafe(24),
        tab="overview",
    )


def _why(view: CampaignView, people: People, refused: HushbidError) -> str:
    """Which text says why people were not invited; that of a row, if one is to blame."""
    settings, row = view.settings, refused.row
    if isinstance(refused, Conflict):
        return "known"
    if isinstance(people, int):
        return "by_id"
    if row is None or people is None or row >= len(people):
        return "list" if refused.field == "people" else "gone"
    label, group, stratum = people[row]
    if (group or "") not in (settings.groups or ("",)):
        return "group"
    if (stratum or "") not in (("",) if settings.strata is None else settings.strata.names):
        return "stratum"
    others = [one[0].casefold() for one in people[:row]]
    return "again" if label.casefold() in others else "id"


def _invited(form: Form, *, strata: bool) -> People:
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
    people: People,
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
