"""What analysts ask: drafting campaigns, inviting people, each step of a campaign's life; auditors may read it all."""

from collections.abc import Callable
from typing import Any, Literal

from fastapi import APIRouter, Request, Response

from hushbid.common.documents import canonical
from hushbid.errors import NotFound
from hushbid.server.api import exports
from hushbid.server.api.auth import Analyst, Staff
from hushbid.server.api.idempotency import Key, Once
from hushbid.server.api.schemas import (
    CampaignId,
    Cancelling,
    Closing,
    Cursor,
    Event,
    Form,
    Invitations,
    Invite,
    Limit,
    Paid,
    ParticipantId,
    Payees,
    People,
    PreviewOf,
    Releasing,
    Renewal,
    Unpaid,
    Unpaying,
    answer,
    body_of,
    problems,
    received,
)
from hushbid.server.api.state import PREFIX, app_of, operation_id
from hushbid.server.domain.payment_views import AccountView, Awaited
from hushbid.server.domain.settings import CampaignSettings, Title
from hushbid.server.domain.views import (
    AccountRow,
    CampaignView,
    Invitation,
    JobView,
    Page,
    ParticipantView,
    Preview,
    Principal,
)
from hushbid.server.service import Service
from hushbid.server.service.views_of import place_of

router = APIRouter(prefix=PREFIX, tags=["campaigns"], generate_unique_id_function=operation_id)
_READ = problems(401, 403, 404, 422)
_CHANGE = problems(401, 403, 404, 409, 422)
_WORKBOOK = problems(401, 403, 404, 422, 501)
_HUNDRED = 100


# -- drafting ----------------------------------------------------------------------------------------------------------


@router.post("/campaigns", status_code=201, response_model=CampaignView, responses=_CHANGE, summary="Draft a campaign")
async def draft(request: Request, caller: Analyst, given: CampaignSettings, key: Key = None) -> Response:
    """Begin a campaign that only analysts and auditors know of."""
    service, who = app_of(request).service, caller.who
    return await Once(request, who.id, key, status=201).do(service.draft, who, given)


class Copy(Form):
    """What is new about a copy."""

    title: Title
    """What people call it."""


@router.post(
    "/campaigns/{campaign}/copy",
    status_code=201,
    response_model=CampaignView,
    responses=_CHANGE,
    summary="Copy a campaign",
)
async def copy(request: Request, caller: Analyst, campaign: CampaignId, given: Copy, key: Key = None) -> Response:
    """Begin a draft with the settings of another campaign, in whatever state that is; it has no people yet."""
    service, who = app_of(request).service, caller.who
    return await Once(request, who.id, key, status=201).do(service.copy, who, campaign, given.title)


@router.put("/campaigns/{campaign}", response_model=CampaignView, responses=_CHANGE, summary="Change a draft")
async def change(request: Request, caller: Analyst, campaign: CampaignId, given: CampaignSettings) -> Response:
    """Replace a draft's settings, all of them."""
    return await _tell(request, lambda service: service.change(caller.who, campaign, given))


@router.delete("/campaigns/{campaign}", status_code=204, responses=_CHANGE, summary="Discard a draft")
async def discard(request: Request, caller: Analyst, campaign: CampaignId, key: Key = None) -> Response:
    """Throw a draft away, with everybody who was invited."""
    service, who = app_of(request).service, caller.who
    return await Once(request, who.id, key, status=204).do(service.discard, who, campaign)


@router.post("/preview", response_model=Preview, responses=_CHANGE, summary="Look ahead without storing anything")
async def preview_settings(request: Request, caller: Analyst, given: PreviewOf) -> Response:
    """What a campaign with these settings may cost and how precise it would be. Takes some seconds."""
    app = app_of(request)
    return answer(await app.compute(caller.who, app.service.preview, given.settings, given.people))


@router.post("/campaigns/{campaign}/preview", response_model=Preview, responses=_CHANGE, summary="Look ahead")
async def preview(request: Request, caller: Analyst, campaign: CampaignId, given: People | None = None) -> Response:
    """What a campaign may cost and how precise it would be. Changes nothing; takes some seconds."""
    app = app_of(request)
    people = None if given is None else given.people
    return answer(await app.compute(caller.who, app.service.preview_campaign, caller.who, campaign, people))


@router.post(
    "/campaigns/{campaign}/participants",
    status_code=201,
    response_model=Invitations,
    responses=_CHANGE,
    summary="Invite people",
    openapi_extra=body_of(Invite),
)
async def invite(request: Request, caller: Analyst, campaign: CampaignId, key: Key = None) -> Response:
    """Make personal links, shown this once. Takes up to 32 MiB, read only once it is clear who sends them."""
    given = await received(request, Invite)
    people = None if given.people is None else [(one.id, one.group, one.stratum) for one in given.people]
    service, who = app_of(request).service, caller.who
    return await Once(request, who.id, key, status=201, shape=lambda found: {"invitations": found}).do(
        service.invite, who, campaign, count=given.count, people=people
    )


@router.delete(
    "/campaigns/{campaign}/participants/{participant}",
    response_model=CampaignView,
    responses=_CHANGE,
    summary="Remove somebody",
)
async def remove(
    request: Request, caller: Analyst, campaign: CampaignId, participant: ParticipantId, key: Key = None
) -> Response:
    """Take somebody off a draft's list, by her pseudonym, with her link; refused once the campaign has opened."""
    service, who = app_of(request).service, caller.who
    return await Once(request, who.id, key).do(service.remove, who, campaign, participant)


# -- each step of its life ---------------------------------------------------------------------------------------------


@router.post(
    "/campaigns/{campaign}/open",
    status_code=202,
    response_model=JobView,
    responses=_CHANGE,
    summary="Open for bids",
)
async def open_campaign(request: Request, caller: Analyst, campaign: CampaignId, key: Key = None) -> Response:
    """Compute costs and prices in the background, and then let people bid.

    The job fails, and the draft stays one, if some bids could make it cost more than its spending limit.
    """
    service, who = app_of(request).service, caller.who
    return await Once(request, who.id, key, status=202).do(service.open, who, campaign)


@router.post(
    "/campaigns/{campaign}/close-bidding",
    status_code=202,
    response_model=JobView,
    responses=_CHANGE,
    summary="Close bidding",
)
async def close_bidding(request: Request, caller: Analyst, campaign: CampaignId, key: Key = None) -> Response:
    """Take no more bids, and decide in the background."""
    service, who = app_of(request).service, caller.who
    return await Once(request, who.id, key, status=202).do(service.close_bidding, who, campaign)


@router.post(
    "/campaigns/{campaign}/release",
    status_code=202,
    response_model=JobView,
    responses=_CHANGE,
    summary="Release the estimate",
)
async def release(
    request: Request, caller: Analyst, campaign: CampaignId, given: Releasing | None = None, key: Key = None
) -> Response:
    """Take no more data, and draw the estimate, once and for ever, in the background."""
    service, who = app_of(request).service, caller.who
    nobody = given is not None and given.accept_nobody
    return await Once(request, who.id, key, status=202).do(service.release, who, campaign, accept_nobody=nobody)


@router.post("/campaigns/{campaign}/payments", response_model=Paid, responses=_CHANGE, summary="Mark as paid")
async def mark_paid(
    request: Request, caller: Analyst, campaign: CampaignId, given: Payees | None = None, key: Key = None
) -> Response:
    """Say that people were paid what was due to them: these, or everybody; refused if it is not the total that you
    name. It can be taken back."""
    service, who = app_of(request).service, caller.who
    asked = given or Payees()
    return await Once(request, who.id, key, shape=lambda found: {"paid": found}).do(
        service.mark_paid, who, campaign, asked.labels, total=asked.total
    )


@router.post(
    "/campaigns/{campaign}/unpaid", response_model=Unpaid, responses=_CHANGE, summary="Take marks as paid back"
)
async def mark_unpaid(
    request: Request, caller: Analyst, campaign: CampaignId, given: Unpaying, key: Key = None
) -> Response:
    """Say that these people were not paid after all; who was not marked is left as she is. Logged."""
    service, who = app_of(request).service, caller.who
    return await Once(request, who.id, key, shape=lambda found: {"unpaid": found}).do(
        service.mark_unpaid, who, campaign, given.labels
    )


@router.post(
    "/campaigns/{campaign}/links", status_code=201, response_model=Invitation, responses=_CHANGE, summary="Renew a link"
)
async def renew_link(
    request: Request, caller: Analyst, campaign: CampaignId, given: Renewal, key: Key = None
) -> Response:
    """A new link for somebody who lost hers; the old one is worth nothing from now on."""
    service, who = app_of(request).service, caller.who
    return await Once(request, who.id, key, status=201).do(service.renew_link, who, campaign, given.label)


@router.post("/campaigns/{campaign}/close", response_model=CampaignView, responses=_CHANGE, summary="Close a campaign")
async def close(
    request: Request, caller: Analyst, campaign: CampaignId, given: Closing | None = None, key: Key = None
) -> Response:
    """End a campaign whose estimate is out; whoever is unpaid must be accepted by name."""
    service, who = app_of(request).service, caller.who
    unpaid = given is not None and given.accept_unpaid
    return await Once(request, who.id, key).do(service.close_campaign, who, campaign, accept_unpaid=unpaid)


@router.post(
    "/campaigns/{campaign}/cancel", response_model=CampaignView, responses=_CHANGE, summary="Cancel a campaign"
)
async def cancel(
    request: Request, caller: Analyst, campaign: CampaignId, given: Cancelling | None = None, key: Key = None
) -> Response:
    """Give a campaign up before people have been told what is bought from them."""
    service, who = app_of(request).service, caller.who
    reason = (given or Cancelling()).reason
    return await Once(request, who.id, key).do(service.cancel, who, campaign, reason)


# -- reading -----------------------------------------------------------------------------------------------------------


@router.get("/campaigns", response_model=Page[CampaignView], responses=_READ, summary="List campaigns")
async def list_campaigns(request: Request, caller: Staff, limit: Limit = _HUNDRED, cursor: Cursor = None) -> Response:
    """All campaigns, newest first."""
    return await _tell(request, lambda service: service.campaigns(caller.who, cursor=cursor, limit=limit))


@router.get("/campaigns/{campaign}", response_model=CampaignView, responses=_READ, summary="Read a campaign")
async def campaign(request: Request, caller: Staff, campaign: CampaignId) -> Response:
    """One campaign, with how many people stand where."""
    return await _tell(request, lambda service: service.campaign(caller.who, campaign))


@router.get(
    "/campaigns/{campaign}/participants",
    response_model=Page[ParticipantView],
    responses=_READ,
    summary="List participants",
)
async def list_participants(
    request: Request, caller: Staff, campaign: CampaignId, limit: Limit = _HUNDRED, cursor: Cursor = None
) -> Response:
    """Everybody's state, in the order of invitation; auditors see pseudonyms only."""
    return await _tell(request, lambda service: service.participants(caller.who, campaign, cursor=cursor, limit=limit))


@router.get("/campaigns/{campaign}/jobs", response_model=Page[JobView], responses=_READ, summary="List background work")
async def list_jobs(
    request: Request, caller: Staff, campaign: CampaignId, limit: Limit = _HUNDRED, cursor: Cursor = None
) -> Response:
    """Allocations and releases, with their progress; the latest last."""
    return await _tell(request, lambda service: _jobs(service, caller.who, campaign, cursor=cursor, limit=limit))


@router.get("/campaigns/{campaign}/events", response_model=Page[Event], responses=_READ, summary="Read the log")
async def list_events(
    request: Request, caller: Staff, campaign: CampaignId, limit: Limit = _HUNDRED, cursor: Cursor = None
) -> Response:
    """What happened, each line chained to the one before."""
    return await _tell(request, lambda service: _events(service, caller.who, campaign, cursor=cursor, limit=limit))


@router.get(
    "/campaigns/{campaign}/events.jsonl",
    response_class=exports.JsonLines,
    responses={200: {"content": {exports.JSON_LINES: {"schema": {"type": "string"}}}}, **_READ},
    summary="Download the log",
)
async def download_events(request: Request, caller: Staff, campaign: CampaignId) -> Response:
    """The whole log as `hushbid verify` reads it, one event per line."""
    app = app_of(request)
    lines = await app.run(exports.log_lines, app.service, caller.who, campaign)
    return exports.JsonLines(lines, headers=exports.download(f"{campaign}-log.jsonl"))


@router.get(
    "/campaigns/{campaign}/record",
    response_class=Response,
    responses={
        200: {"description": "The record.", "content": {"application/json": {"schema": {"type": "object"}}}},
        **_READ,
    },
    summary="Download the record",
)
async def record(request: Request, caller: Staff, campaign: CampaignId) -> Response:
    """Everybody's bid, privacy loss and payment by pseudonym, as `hushbid verify` reads it; once it is decided."""
    app = app_of(request)
    content = await app.run(app.service.record, caller.who, campaign)
    return Response(content, media_type="application/json", headers=exports.download(f"{campaign}-record.json"))


@router.get(
    "/campaigns/{campaign}/release",
    response_class=Response,
    responses={
        200: {"description": "The estimate.", "content": {"application/json": {"schema": {"type": "object"}}}},
        **_READ,
    },
    summary="Read the estimate",
)
async def estimate(request: Request, caller: Staff, campaign: CampaignId) -> Response:
    """The estimate with its error, once it is released."""

    def read(service: Service) -> dict[str, Any]:
        found = service.campaign(caller.who, campaign).release
        if found is None:
            raise NotFound("There is no estimate: none was released yet.")
        return found

    return await _tell(request, read)


@router.get(
    "/campaigns/{campaign}/report",
    response_class=exports.ReportPage,
    responses={200: {"content": {"text/html": {"schema": {"type": "string"}}}}, **_READ},
    summary="Download the report",
)
async def download_report(
    request: Request, caller: Staff, campaign: CampaignId, language: Literal["en", "de"] = "en"
) -> Response:
    """One page about the campaign for people, which loads nothing; once it is decided. In English or in German."""
    app = app_of(request)
    found = await app.compute(caller.who, exports.report_page, app.service, caller.who, campaign, language)
    headers = exports.download(f"{campaign}-report.html")
    return exports.ReportPage(found, headers={**headers, "Content-Security-Policy": exports.REPORT_POLICY})


@router.get(
    "/campaigns/{campaign}/payments.csv",
    response_class=exports.Csv,
    responses={200: {"content": {"text/csv": {"schema": {"type": "string"}}}}, **_READ},
    summary="Download payments",
)
async def payments(request: Request, caller: Analyst, campaign: CampaignId) -> Response:
    """Who is or was owed what, by name and reference, and where to pay whoever is still owed something, if the campaign
    asked: the log says that you took it. Auditors find amounts by pseudonym among participants and in the record."""
    return await _payments(request, caller.who, campaign, "csv")


@router.get(
    "/campaigns/{campaign}/payments.xlsx",
    response_class=exports.Workbook,
    responses={200: {"content": {exports.XLSX: {"schema": {"type": "string", "format": "binary"}}}}, **_WORKBOOK},
    summary="Download payments for a spreadsheet",
)
async def payments_workbook(request: Request, caller: Analyst, campaign: CampaignId) -> Response:
    """The same as an Excel workbook; needs the extra `xlsx` on the server."""
    return await _payments(request, caller.who, campaign, "xlsx")


@router.get(
    "/campaigns/{campaign}/awaited.csv",
    response_class=exports.Csv,
    responses={200: {"content": {"text/csv": {"schema": {"type": "string"}}}}, **_READ},
    summary="Download who is awaited",
)
async def awaited(request: Request, caller: Analyst, campaign: CampaignId, what: Awaited | None = None) -> Response:
    """Exactly who is awaited for a bid, a delivery, where to pay her, or her payment: one line for each, for
    letters. Links are not in it, since the server does not have them."""
    return await _awaited(request, caller.who, campaign, what, "csv")


@router.get(
    "/campaigns/{campaign}/awaited.xlsx",
    response_class=exports.Workbook,
    responses={200: {"content": {exports.XLSX: {"schema": {"type": "string", "format": "binary"}}}}, **_WORKBOOK},
    summary="Download who is awaited for a spreadsheet",
)
async def awaited_workbook(
    request: Request, caller: Analyst, campaign: CampaignId, what: Awaited | None = None
) -> Response:
    """The same as an Excel workbook; needs the extra `xlsx` on the server."""
    return await _awaited(request, caller.who, campaign, what, "xlsx")


@router.get("/campaigns/{campaign}/account", response_model=AccountView, responses=_READ, summary="Read the account")
async def account(request: Request, caller: Staff, campaign: CampaignId) -> Response:
    """What the campaign owes, how that follows from what was decided, and what is marked as paid."""
    app = app_of(request)
    return answer(await app.compute(caller.who, app.service.account, caller.who, campaign))


@router.get(
    "/campaigns/{campaign}/agreements.csv",
    response_class=exports.Csv,
    responses={200: {"content": {"text/csv": {"schema": {"type": "string"}}}}, **_READ},
    summary="Download agreements",
)
async def agreements_table(request: Request, caller: Staff, campaign: CampaignId) -> Response:
    """Who agreed to which version when, in which language; for auditors by pseudonym only."""
    app = app_of(request)
    found = await app.run(app.service.agreements, caller.who, campaign)
    return exports.table_response(exports.agreements_table(found), f"{campaign}-agreements", "csv")


@router.get(
    "/campaigns/{campaign}/agreements.json",
    response_class=Response,
    responses={
        200: {"description": "Agreements.", "content": {"application/json": {"schema": {"type": "object"}}}},
        **_READ,
    },
    summary="Download agreements with what was agreed to",
)
async def agreements(request: Request, caller: Staff, campaign: CampaignId) -> Response:
    """The same, with every document that somebody agreed to, word by word, under its version."""
    app = app_of(request)
    found = await app.run(app.service.agreements, caller.who, campaign)
    content = canonical(found) + b"\n"
    return Response(content, media_type="application/json", headers=exports.download(f"{campaign}-agreements.json"))


@router.get("/privacy-account", response_model=Page[AccountRow], responses=_READ, summary="Read the privacy account")
async def read_privacy_account(
    request: Request, caller: Staff, limit: Limit = _HUNDRED, cursor: Cursor = None
) -> Response:
    """What each person has given up in each campaign, by pseudonym."""
    return await _tell(request, lambda service: service.privacy_account(caller.who, cursor=cursor, limit=limit))


async def _tell(request: Request, ask: Callable[[Service], Any]) -> Response:
    app = app_of(request)
    return answer(await app.run(ask, app.service))


async def _payments(request: Request, who: Principal, campaign: str, ending: exports.Ending) -> Response:
    app = app_of(request)
    exports.require_writable(ending)  # before the log says that it was taken
    found = await app.run(app.service.payment_file, who, campaign)
    content = await app.run(exports.payments_table, found, ending)
    return exports.table_response(content, f"{campaign}-payments", ending)


async def _awaited(
    request: Request, who: Principal, campaign: str, what: Awaited | None, ending: exports.Ending
) -> Response:
    app = app_of(request)
    rows = await app.run(app.service.awaited, who, campaign, what)
    content = await app.run(exports.awaited_table, rows, ending)
    return exports.table_response(content, f"{campaign}-awaited{'' if what is None else f'-{what}'}", ending)


def _jobs(service: Service, who: Principal, campaign: str, *, cursor: str | None, limit: int) -> Page[JobView]:
    oldest_first = service.jobs(who, campaign)[::-1]
    start = place_of(cursor)
    end = start + limit
    return Page(items=oldest_first[start:end], cursor=str(end) if end < len(oldest_first) else None)


def _events(service: Service, who: Principal, campaign: str, *, cursor: str | None, limit: int) -> Page[dict[str, Any]]:
    found = service.events(who, campaign, after=place_of(cursor), limit=limit)
    more = len(found) == limit and service.events(who, campaign, after=found[-1].number, limit=1)
    return Page(items=tuple(event.to_dict() for event in found), cursor=str(found[-1].number) if more else None)
