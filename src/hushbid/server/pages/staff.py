"""What analysts and auditors look at: all campaigns, and one's people, log, audit and report; the privacy account.

Auditors see it without names. Attacks on a campaign's claims run in the background.
"""

import asyncio
from functools import partial

from fastapi import Response

from hushbid.errors import NotFound
from hushbid.report.sections.audits import AuditLine
from hushbid.server.http import downloads
from hushbid.server.model.views import CampaignView
from hushbid.server.pages import pictures
from hushbid.server.pages.estimates import estimate_value, shown_estimates
from hushbid.server.pages.request import PageRequest, anybody, campaign_page, page, staff

_PAGE, _MOST_KEPT = 100, 32


class Attacks:
    """Attacks under way and done, by campaign and state; kept in memory, since anybody can repeat them."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], asyncio.Task[tuple[AuditLine, ...]]] = {}

    @classmethod
    def of(cls, visit: PageRequest) -> "Attacks":
        """Return those of the server that a visitor came to."""
        found = visit.request.app.state.__dict__.setdefault("attacks", cls())
        assert isinstance(found, Attacks)
        return found

    def begin(self, visit: PageRequest) -> None:
        """Attack a campaign, unless that is happening already."""
        key = (visit.view.id, visit.view.state.value)
        task = self._known.get(key)
        if task is not None and not (task.done() and (task.cancelled() or task.exception() is not None)):
            return
        while len(self._known) >= _MOST_KEPT:
            self._known.pop(next(iter(self._known)))
        self._known[key] = asyncio.create_task(visit.compute(visit.service.attacks))

    def found(self, view: CampaignView) -> tuple[bool, tuple[AuditLine, ...] | None]:
        """Whether an attack is under way, and what came of it if it is over."""
        task = self._known.get((view.id, view.state.value))
        if task is None or not task.done():
            return task is not None, None
        return False, None if task.cancelled() or task.exception() is not None else task.result()


@page("GET /campaigns", staff)
async def campaigns(visit: PageRequest) -> Response:
    """All campaigns, newest first."""
    found = await visit.ask(visit.service.campaigns, cursor=visit.query.get("cursor"), limit=_PAGE)
    estimates = {
        one.id: estimate_value(visit.write, one.release, one.whole.market.bounds, one.whole.unit or "")
        for one in found.items
        if one.release is not None
    }
    return visit.page("staff/campaigns.html", page=found, estimates=estimates, tab="campaigns")


@campaign_page("GET people", staff)
async def people(visit: PageRequest) -> Response:
    """Everybody's state, in the order of invitation."""
    found = await visit.ask(visit.service.participants, cursor=visit.query.get("cursor"), limit=_PAGE)
    return visit.page(
        "staff/people.html",
        told=visit.query.get("told"),
        page=found,
        tab="people",
        states=pictures.STATE_COLOURS,
        money=visit.money(),
    )


@campaign_page("GET log", staff)
async def log(visit: PageRequest) -> Response:
    """What happened, each line chained to the one before."""
    found = await visit.ask(visit.service.page_of_events, cursor=visit.query.get("cursor"), limit=_PAGE)
    return visit.page("staff/log.html", events=found.items, more=found.cursor, tab="log")


@campaign_page("GET audit", staff)
async def audit(visit: PageRequest) -> Response:
    """Whether what the server says holds: record, log and root; and what came of attacks on the claims themselves."""
    try:
        checks = await visit.compute(visit.service.checks)
    except NotFound:
        checks = {}
    attacking, attacks = Attacks.of(visit).found(visit.view)
    statuses = [check.status for some in checks.values() for check in some]
    return visit.page(
        "staff/audit.html",
        decided=bool(checks),
        checks=checks,
        failed=statuses.count("fails"),
        incomplete=statuses.count("incomplete"),
        attacking=attacking,
        attacks=attacks,
        tab="audit",
    )


@campaign_page("POST audit", staff)
async def attack(visit: PageRequest) -> Response:
    """Attack the claims themselves, in the background."""
    if visit.view.total_payment is not None:
        Attacks.of(visit).begin(visit)
    return visit.go("audit#attack")


@campaign_page("GET report", staff)
async def report(visit: PageRequest) -> Response:
    """The report for buyers and regulators: a page of its own, which loads and runs nothing."""
    shown = await visit.compute(partial(downloads.report_page, visit.service), visit.texts.language)
    return downloads.ReportPage(shown, headers={"Content-Security-Policy": downloads.REPORT_POLICY})


@page("GET /privacy-account", staff)
async def privacy_account(visit: PageRequest) -> Response:
    """What each person has given up in each campaign, by pseudonym."""
    found = await visit.ask(visit.service.privacy_account, cursor=visit.query.get("cursor"), limit=_PAGE)
    return visit.page("staff/privacy_account.html", page=found, tab="privacy_account")


@page("GET /c/{campaign}", anybody)
async def public(visit: PageRequest) -> Response:
    """What everybody may see of a campaign."""
    view = await visit.app.run(visit.service.public, visit.campaign)
    keys = await visit.app.run(visit.service.keys)
    estimates = shown_estimates(visit.texts, visit.write, view.release, view.bounds, view.unit)
    return visit.page("public.html", view=view, fingerprint=keys.newest.fingerprint, estimates=estimates)
