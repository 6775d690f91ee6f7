"""Inviting people to a draft, new links for who lost theirs, and taking somebody off the list again."""

import csv
import hashlib
import io
import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from fastapi import APIRouter, Request, Response

from hushbid.common.tables import harmless
from hushbid.errors import Conflict, HushbidError, InputError, NotFound, ServerFailed
from hushbid.server.http.downloads import Csv, download
from hushbid.server.model.settings import MOST_PEOPLE
from hushbid.server.model.views import CampaignView, Invitation
from hushbid.server.pages.request import Form, PageRequest, analyst, base_address, keep_aside, kept_aside, require_id
from hushbid.server.pages.wording import FormError
from hushbid.server.service.use_case import IdempotencyKey

router = APIRouter(include_in_schema=False)
People = int | list[tuple[str, str | None, str | None]]
"""How many, or everybody's id, group and stratum."""

_FIRST_COLUMN = frozenset({"id", "ids", "email", "e-mail", "external_id", "participant", "kennung"})


@router.get("/campaigns/{campaign}/participants")
async def invite_page(request: Request, campaign: str) -> Response:
    """Ask whom to invite."""
    return await _invite_page(await analyst(request), require_id(campaign), {})


@router.get("/campaigns/{campaign}/participants/{kept}")
async def invite_again(request: Request, campaign: str, kept: str) -> Response:
    """Ask again whom to invite, with what was typed and why nobody was."""
    visit = await analyst(request)
    before = kept_aside(visit, kept)
    if before is None:
        return visit.go(f"/campaigns/{require_id(campaign)}/participants")
    return await _invite_page(visit, require_id(campaign), before)


@router.post("/campaigns/{campaign}/participants")
async def invite(request: Request, campaign: str) -> Response:
    """Make links, and send the browser to where they are shown: the same ones under the same key, within a day."""
    visit = await analyst(request)
    form = await visit.form()
    service, found = visit.app.service, require_id(campaign)
    view = await visit.app.run(service.campaign, visit.who, found)
    people: People | None = None
    try:
        people = _invited(form, strata=view.whole.strata is not None)
        names = ("page invite", found, _digest(people))
        asked = visit.once(form, *names, encode=_encoded)
        chosen: dict[str, Any] = {"count": people} if isinstance(people, int) else {"people": people}
        await visit.app.run(lambda: service.invite.once(asked, visit.who, found, **chosen))
    except ServerFailed:
        raise
    except FormError as unreadable:
        at = "count" if unreadable.code == "invite.whole" else ""
        return _again(visit, found, form, unreadable.code, at=at, most=MOST_PEOPLE)
    except HushbidError as refused:
        why = _why(view, people, refused)
        at = "count" if isinstance(people, int) else "file" if form.file else "people"
        return _again(visit, found, form, f"uninvited.{why}", at=at, number=(refused.row or 0) + 1)
    return visit.go(f"/campaigns/{found}/links/{keep_aside(visit, once=form.text('once'), asked=names)}")


@router.get("/campaigns/{campaign}/links/{kept}")
async def links(request: Request, campaign: str, kept: str) -> Response:
    """Links that this session has just made."""
    visit = await analyst(request)
    found = require_id(campaign)
    made = await _made(visit, found, kept)
    if made is None:
        return visit.go(f"/campaigns/{found}/people?told=links")
    view = await visit.app.run(visit.app.service.campaign, visit.who, found)
    here = f"/campaigns/{found}/links/{kept}"
    if isinstance(made, list):
        return visit.page("staff/links.html", view=view, links=made, here=here, tab="overview")
    return visit.page("staff/renewed.html", view=view, one=made, here=here, tab="people")


@router.get("/campaigns/{campaign}/links/{kept}/file")
async def links_file(request: Request, campaign: str, kept: str) -> Response:
    """The same links as a file."""
    visit = await analyst(request)
    found = require_id(campaign)
    made = await _made(visit, found, kept)
    if not isinstance(made, list):
        return visit.go(f"/campaigns/{found}/people?told=links")
    return Csv(_links_csv(made), headers=download(f"{found}-links.csv"))


@router.get("/campaigns/{campaign}/people/{person}/link")
async def ask_renew(request: Request, campaign: str, person: str) -> Response:
    """Ask whether somebody who lost her link shall have a new one."""
    return await _asked_about(await analyst(request), campaign, person, "staff/renew.html")


@router.post("/campaigns/{campaign}/people/{person}/link")
async def renew(request: Request, campaign: str, person: str) -> Response:
    """Make a new link for somebody, and send the browser to where it is shown."""
    visit = await analyst(request)
    form, found, service = await visit.form(), require_id(campaign), visit.app.service
    names = ("page renew", found, require_id(person))
    try:
        her = await visit.app.run(service.person, visit.who, found, person)
        assert her.label is not None
        asked, label = visit.once(form, *names, encode=_encoded), her.label
        await visit.app.run(lambda: service.renew_link.once(asked, visit.who, found, label))
    except FormError:
        return visit.go(f"/campaigns/{found}/people/{person}/link")
    except Conflict:
        return visit.go(f"/campaigns/{found}/people?told=busy")
    except NotFound:
        return visit.go(f"/campaigns/{found}/people?told=gone")
    return visit.go(f"/campaigns/{found}/links/{keep_aside(visit, once=form.text('once'), asked=names)}")


@router.get("/campaigns/{campaign}/people/{person}/remove")
async def ask_remove(request: Request, campaign: str, person: str) -> Response:
    """Ask whether somebody shall really be taken off the list."""
    return await _asked_about(await analyst(request), campaign, person, "staff/remove.html")


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


async def _asked_about(visit: PageRequest, campaign: str, person: str, template: str) -> Response:
    service, found = visit.app.service, require_id(campaign)
    view = await visit.app.run(service.campaign, visit.who, found)
    try:
        her = await visit.app.run(service.person, visit.who, found, require_id(person))
    except NotFound:
        return visit.go(f"/campaigns/{found}/people?told=gone")
    return visit.page(template, view=view, person=her, once=secrets.token_urlsafe(24), tab="people")


async def _invite_page(visit: PageRequest, campaign: str, before: Mapping[str, Any]) -> Response:
    view = await visit.app.run(visit.app.service.campaign, visit.who, campaign)
    if view.state.value != "draft":
        return visit.go(f"/campaigns/{campaign}")
    told = before.get("told")
    sentence = told and visit.texts.coded(
        told, **{name: visit.write.number(n, 9) for name, n in before["numbers"].items()}
    )
    return visit.page(
        "staff/invite.html",
        view=view,
        typed=before.get("typed", {"count": "", "people": ""}),
        p={**dict.fromkeys(("", "people", "file", "count")), before.get("at", ""): sentence},
        once=secrets.token_urlsafe(24),
        tab="overview",
    )


def _again(visit: PageRequest, campaign: str, form: Form, told: str, *, at: str, **numbers: int) -> Response:
    """Send the browser to the form with what was typed, and what is wrong with which field."""
    typed = {name: form.text(name) for name in ("count", "people")}
    name = keep_aside(visit, told=told, at=at, typed=typed, numbers=numbers)
    return visit.go(f"/campaigns/{campaign}/participants/{name}")


async def _made(visit: PageRequest, campaign: str, kept: str) -> Any:
    """The links, or the one link, that a form of this session has made; None if they are not kept any more."""
    before = kept_aside(visit, kept)
    if before is None or before["asked"][1] != campaign:
        return None
    asked = IdempotencyKey(
        who=visit.who.id, key=before["once"], asked="\n".join(before["asked"]).encode(), encode=_encoded
    )
    answer = await visit.app.run(visit.app.service.answered, asked)
    if answer is None:
        return None
    base, found = base_address(visit), json.loads(answer)
    if isinstance(found, dict):
        return {**found, "link": f"{base}/p#{found['token']}"}
    return [{**one, "link": f"{base}/p#{one['token']}"} for one in found]


def _why(view: CampaignView, people: People | None, refused: HushbidError) -> str:
    """Which text says why people were not invited; that of a row, if one is to blame."""
    settings, row = view.whole, refused.row
    if isinstance(refused, Conflict):
        return "known"
    if isinstance(people, int):
        return "by_id"
    if row is None or people is None or row >= len(people):
        return "list"
    label, group, stratum = people[row]
    if (group or "") not in (settings.groups or ("",)):
        return "group"
    if (stratum or "") not in (settings.weights or ("",)):
        return "stratum"
    others = [one[0].casefold() for one in people[:row]]
    return "again" if label.casefold() in others else "id"


def _invited(form: Form, *, strata: bool) -> People:
    """How many, or who. Exactly one of the three must be filled in: nothing that was typed is left aside."""
    ids, count = form.text("people").strip(), form.text("count").strip()
    if sum(map(bool, (ids, form.file, count))) != 1:
        raise FormError("invite.one")
    if not count:
        return people_of(form.file.decode("utf-8-sig", "replace") if form.file else ids, strata=strata)
    if not (count.isascii() and count.isdigit() and len(count) <= 6 and 1 <= int(count) <= MOST_PEOPLE):
        raise FormError("invite.whole")
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


def _encoded(made: Invitation | tuple[Invitation, ...]) -> bytes:
    return json.dumps([asdict(one) for one in made] if isinstance(made, tuple) else asdict(made)).encode()


def _digest(people: object) -> str:
    return hashlib.sha256(json.dumps(people).encode()).hexdigest()


def _links_csv(links: Sequence[Mapping[str, Any]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(("id", "label", "group", "link"))
    writer.writerows((one["id"], harmless(one["label"]), harmless(one["group"] or ""), one["link"]) for one in links)
    return text.getvalue()
