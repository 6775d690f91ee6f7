"""Inviting people to a draft, new links for who lost theirs, and taking somebody off the list again."""

import csv
import hashlib
import io
import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from fastapi import APIRouter, Response

from hushbid.errors import Conflict, HushbidError, InputError, NotFound, ServerFailed
from hushbid.server.http.downloads import Csv, download, table
from hushbid.server.model.settings import MOST_PEOPLE
from hushbid.server.model.views import CampaignView, Invitation
from hushbid.server.pages.request import Form, analyst, base_address, keep_aside, kept_aside
from hushbid.server.pages.staff import CampaignTurn, campaign_page
from hushbid.server.pages.wording import FormError
from hushbid.server.service.use_case import IdempotencyKey

router = APIRouter(include_in_schema=False)
People = int | list[tuple[str, str | None, str | None]]
"""How many, or everybody's id, group and stratum."""

_FIRST_COLUMN = frozenset({"id", "ids", "email", "e-mail", "external_id", "participant", "kennung"})


@campaign_page(router, "GET /participants", analyst)
async def invite_page(turn: CampaignTurn) -> Response:
    """Ask whom to invite."""
    return _invite_page(turn, {})


@campaign_page(router, "GET /participants/{kept}", analyst)
async def invite_again(turn: CampaignTurn, kept: str) -> Response:
    """Ask again whom to invite, with what was typed and why nobody was."""
    before = kept_aside(turn.visit, kept)
    return turn.go("/participants") if before is None else _invite_page(turn, before)


@campaign_page(router, "POST /participants", analyst)
async def invite(turn: CampaignTurn) -> Response:
    """Make links, and send the browser to where they are shown: the same ones under the same key, within a day."""
    visit, form, service, found = turn.visit, turn.form, turn.service, turn.id
    people: People | None = None
    try:
        people = _invited(form, strata=turn.view.whole.strata is not None)
        names = ("page invite", found, hashlib.sha256(json.dumps(people).encode()).hexdigest())
        asked = visit.once(form, *names, encode=_encoded)
        chosen: dict[str, Any] = {"count": people} if isinstance(people, int) else {"people": people}
        await visit.app.run(lambda: service.invite.once(asked, visit.who, found, **chosen))
    except ServerFailed:
        raise
    except FormError as unreadable:
        at = "count" if unreadable.code == "invite.whole" else ""
        return _again(turn, unreadable.code, at=at, most=MOST_PEOPLE)
    except HushbidError as refused:
        why = _why(turn.view, people, refused)
        at = "count" if isinstance(people, int) else "file" if form.file else "people"
        return _again(turn, f"uninvited.{why}", at=at, number=(refused.row or 0) + 1)
    return turn.go(f"/links/{keep_aside(visit, once=form.text('once'), asked=names)}")


@campaign_page(router, "GET /links/{kept}", analyst)
async def links(turn: CampaignTurn, kept: str) -> Response:
    """Links that this session has just made."""
    made = await _made(turn, kept)
    if made is None:
        return turn.go("/people?told=links")
    here = f"/campaigns/{turn.id}/links/{kept}"
    if isinstance(made, list):
        return turn.page("staff/links.html", links=made, here=here, tab="overview")
    return turn.page("staff/renewed.html", one=made, here=here, tab="people")


@campaign_page(router, "GET /links/{kept}/file", analyst)
async def links_file(turn: CampaignTurn, kept: str) -> Response:
    """The same links as a file."""
    made = await _made(turn, kept)
    if not isinstance(made, list):
        return turn.go("/people?told=links")
    columns = {name: [one[name] or "" for one in made] for name in ("id", "label", "group", "link")}
    return Csv(table(columns, "csv"), headers=download(f"{turn.id}-links.csv"))


@campaign_page(router, "GET /people/{person}/link", analyst)
async def ask_renew(turn: CampaignTurn, person: str) -> Response:
    """Ask whether somebody who lost her link shall have a new one."""
    return await _asked_about(turn, person, "staff/renew.html")


@campaign_page(router, "POST /people/{person}/link", analyst)
async def renew(turn: CampaignTurn, person: str) -> Response:
    """Make a new link for somebody, and send the browser to where it is shown."""
    visit, form, service = turn.visit, turn.form, turn.service
    names = ("page renew", turn.id, person)
    try:
        label = str((await turn.ask(service.person, person)).label)
        asked = visit.once(form, *names, encode=_encoded)
        await visit.app.run(lambda: service.renew_link.once(asked, visit.who, turn.id, label))
    except FormError:
        return turn.go(f"/people/{person}/link")
    except (Conflict, NotFound) as refused:
        return turn.go(f"/people?told={'gone' if isinstance(refused, NotFound) else 'busy'}")
    return turn.go(f"/links/{keep_aside(visit, once=form.text('once'), asked=names)}")


@campaign_page(router, "GET /people/{person}/remove", analyst)
async def ask_remove(turn: CampaignTurn, person: str) -> Response:
    """Ask whether somebody shall really be taken off the list."""
    return await _asked_about(turn, person, "staff/remove.html")


@campaign_page(router, "POST /people/{person}/remove", analyst)
async def remove(turn: CampaignTurn, person: str) -> Response:
    """Take somebody off the list."""
    try:
        await turn.ask(turn.service.remove, person)
    except (Conflict, NotFound) as refused:
        return turn.go(f"/people?told={'gone' if isinstance(refused, NotFound) else 'refused'}")
    return turn.go("/people")


async def _asked_about(turn: CampaignTurn, person: str, template: str) -> Response:
    try:
        found = await turn.ask(turn.service.person, person)
    except NotFound:
        return turn.go("/people?told=gone")
    return turn.page(template, person=found, once=secrets.token_urlsafe(24), tab="people")


def _invite_page(turn: CampaignTurn, before: Mapping[str, Any]) -> Response:
    if turn.view.state.value != "draft":
        return turn.go()
    told, write = before.get("told"), turn.visit.write
    sentence = told and turn.visit.texts.coded(
        told, **{name: write.number(n, 9) for name, n in before["numbers"].items()}
    )
    return turn.page(
        "staff/invite.html",
        typed=before.get("typed", {"count": "", "people": ""}),
        p={**dict.fromkeys(("", "people", "file", "count")), before.get("at", ""): sentence},
        once=secrets.token_urlsafe(24),
        tab="overview",
    )


def _again(turn: CampaignTurn, told: str, *, at: str, **numbers: int) -> Response:
    """Send the browser to the form with what was typed, and what is wrong with which field."""
    typed = {name: turn.form.text(name) for name in ("count", "people")}
    return turn.go(f"/participants/{keep_aside(turn.visit, told=told, at=at, typed=typed, numbers=numbers)}")


async def _made(turn: CampaignTurn, kept: str) -> Any:
    """The links, or the one link, that a form of this session has made; None if they are not kept any more."""
    visit, before = turn.visit, kept_aside(turn.visit, kept)
    if before is None or before["asked"][1] != turn.id:
        return None
    asked = IdempotencyKey(
        who=visit.who.id, key=before["once"], asked="\n".join(before["asked"]).encode(), encode=_encoded
    )
    answer = await visit.app.run(turn.service.answered, asked)
    if answer is None:
        return None
    base, found = base_address(visit), json.loads(answer)
    shown = [{**one, "link": f"{base}/p#{one['token']}"} for one in (found if isinstance(found, list) else [found])]
    return shown if isinstance(found, list) else shown[0]


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
