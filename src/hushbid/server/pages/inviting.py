"""Inviting people to a draft, new links for who lost theirs, and taking somebody off the list again."""

import csv
import hashlib
import io
import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from fastapi import Response

from hushbid.errors import Conflict, HushbidError, InputError, NotFound, ServerFailed
from hushbid.server.http.downloads import Csv, download, table
from hushbid.server.model.settings import MOST_PEOPLE
from hushbid.server.model.views import Invitation
from hushbid.server.pages.request import PageRequest, analyst, base_address, campaign_page
from hushbid.server.pages.wording import FormError
from hushbid.server.service.use_case import IdempotencyKey

People = int | list[tuple[str, str | None, str | None]]
"""How many, or everybody's id, group and stratum."""

_FIRST_COLUMN = frozenset({"id", "ids", "email", "e-mail", "external_id", "participant", "kennung"})


@campaign_page("GET participants", analyst)
async def invite_page(visit: PageRequest) -> Response:
    """Ask whom to invite."""
    return _invite_page(visit, {})


@campaign_page("GET participants/{kept}", analyst)
async def invite_again(visit: PageRequest, kept: str) -> Response:
    """Ask again whom to invite, with what was typed and why nobody was."""
    before = visit.kept(kept)
    return visit.go("participants") if before is None else _invite_page(visit, before)


@campaign_page("POST participants", analyst)
async def invite(visit: PageRequest) -> Response:
    """Make links, and send the browser to where they are shown: the same ones under the same key, within a day."""
    form, people = visit.form, None
    try:
        people = _invited(visit)
        names = ("page invite", visit.campaign, hashlib.sha256(json.dumps(people).encode()).hexdigest())
        chosen: dict[str, Any] = {"count": people} if isinstance(people, int) else {"people": people}
        await visit.once(visit.service.invite, asked=names, encode=_encoded, **chosen)
    except ServerFailed:
        raise
    except (FormError, HushbidError) as refused:
        told, at = _why(visit, people, refused)
        numbers = {"most": MOST_PEOPLE, "number": (getattr(refused, "row", None) or 0) + 1}
        typed = {name: form.text(name) for name in ("count", "people")}
        return visit.go(f"participants/{visit.keep(told=told, at=at, typed=typed, numbers=numbers)}")
    return visit.go(f"links/{visit.keep(once=form.text('once'), asked=names)}")


@campaign_page("GET links/{kept}", analyst)
async def links(visit: PageRequest, kept: str) -> Response:
    """Links that this session has just made."""
    made = await _made(visit, kept)
    if made is None:
        return visit.go("people?told=links")
    here = f"/campaigns/{visit.campaign}/links/{kept}"
    if isinstance(made, list):
        return visit.page("staff/links.html", links=made, here=here, tab="overview")
    return visit.page("staff/renewed.html", one=made, here=here, tab="people")


@campaign_page("GET links/{kept}/file", analyst)
async def links_file(visit: PageRequest, kept: str) -> Response:
    """The same links as a file."""
    made = await _made(visit, kept)
    if not isinstance(made, list):
        return visit.go("people?told=links")
    columns = {name: [one[name] or "" for one in made] for name in ("id", "label", "group", "link")}
    return Csv(table(columns, "csv"), headers=download(f"{visit.campaign}-links.csv"))


@campaign_page("GET people/{person}/link", analyst)
async def ask_renew(visit: PageRequest, person: str) -> Response:
    """Ask whether somebody who lost her link shall have a new one."""
    return await _asked_about(visit, person, "staff/renew.html")


@campaign_page("POST people/{person}/link", analyst)
async def renew(visit: PageRequest, person: str) -> Response:
    """Make a new link for somebody, and send the browser to where it is shown."""
    names = ("page renew", visit.campaign, person)
    try:
        label = str((await visit.ask(visit.service.person, person)).label)
        await visit.once(visit.service.renew_link, label, asked=names, encode=_encoded)
    except FormError:
        return visit.go(f"people/{person}/link")
    except (Conflict, NotFound) as refused:
        return visit.go(f"people?told={'gone' if isinstance(refused, NotFound) else 'busy'}")
    return visit.go(f"links/{visit.keep(once=visit.form.text('once'), asked=names)}")


@campaign_page("GET people/{person}/remove", analyst)
async def ask_remove(visit: PageRequest, person: str) -> Response:
    """Ask whether somebody shall really be taken off the list."""
    return await _asked_about(visit, person, "staff/remove.html")


@campaign_page("POST people/{person}/remove", analyst)
async def remove(visit: PageRequest, person: str) -> Response:
    """Take somebody off the list."""
    try:
        await visit.ask(visit.service.remove, person)
    except (Conflict, NotFound) as refused:
        return visit.go(f"people?told={'gone' if isinstance(refused, NotFound) else 'refused'}")
    return visit.go("people")


async def _asked_about(visit: PageRequest, person: str, template: str) -> Response:
    try:
        found = await visit.ask(visit.service.person, person)
    except NotFound:
        return visit.go("people?told=gone")
    return visit.page(template, person=found, once=secrets.token_urlsafe(24), tab="people")


def _invite_page(visit: PageRequest, before: Mapping[str, Any]) -> Response:
    if visit.view.state.value != "draft":
        return visit.go()
    told, numbers = before.get("told"), before.get("numbers", {})
    sentence = told and visit.texts.coded(told, **{name: visit.write.number(n, 9) for name, n in numbers.items()})
    return visit.page(
        "staff/invite.html",
        typed=before.get("typed", {"count": "", "people": ""}),
        p={**dict.fromkeys(("", "people", "file", "count")), before.get("at", ""): sentence},
        once=secrets.token_urlsafe(24),
        tab="overview",
    )


async def _made(visit: PageRequest, kept: str) -> Any:
    """The links, or the one link, that a form of this session has made; None if they are not kept any more."""
    before = visit.kept(kept)
    if before is None or before["asked"][1] != visit.campaign:
        return None
    asked = "\n".join(before["asked"]).encode()
    key = IdempotencyKey(who=visit.who.id, key=before["once"], asked=asked, encode=_encoded)
    answer = await visit.app.run(visit.service.answered, key)
    if answer is None:
        return None
    base, found = base_address(visit), json.loads(answer)
    shown = [{**one, "link": f"{base}/p#{one['token']}"} for one in (found if isinstance(found, list) else [found])]
    return shown if isinstance(found, list) else shown[0]


def _why(visit: PageRequest, people: People | None, refused: FormError | HushbidError) -> tuple[str, str]:
    """Which text says why people were not invited, that of a row if one is to blame; and at which field."""
    if isinstance(refused, FormError):
        return refused.code, "count" if refused.code == "invite.whole" else ""
    at = "count" if isinstance(people, int) else "file" if visit.form.file else "people"
    settings, row = visit.view.whole, refused.row
    if isinstance(refused, Conflict):
        return "uninvited.known", at
    if isinstance(people, int):
        return "uninvited.by_id", at
    if row is None or people is None or row >= len(people):
        return "uninvited.list", at
    label, group, stratum = people[row]
    if (group or "") not in (settings.groups or ("",)):
        return "uninvited.group", at
    if (stratum or "") not in (settings.weights or ("",)):
        return "uninvited.stratum", at
    others = [one[0].casefold() for one in people[:row]]
    return f"uninvited.{'again' if label.casefold() in others else 'id'}", at


def _invited(visit: PageRequest) -> People:
    """How many, or who. Exactly one of the three must be filled in: nothing that was typed is left aside."""
    ids, file, count = visit.form.text("people").strip(), visit.form.file, visit.form.text("count").strip()
    if sum(map(bool, (ids, file, count))) != 1:
        raise FormError("invite.one")
    if not count:
        strata = visit.view.whole.strata is not None
        return people_of(file.decode("utf-8-sig", "replace") if file else ids, strata=strata)
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
