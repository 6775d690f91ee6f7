"""What answers with a file, or with what is no view: receipts, keys, the log, the record, tables, the report."""

from collections.abc import Callable
from typing import Any

from fastapi import Request, Response

from hushbid import __version__
from hushbid.common.documents import canonical
from hushbid.errors import NotFound
from hushbid.server.api import exports
from hushbid.server.api.routes import CampaignId, Guarded, Handler, Language, api_route, caller_of
from hushbid.server.api.schemas import Health, answer
from hushbid.server.api.state import app_of
from hushbid.server.domain.payment_views import Awaited
from hushbid.server.service.route import Role

ROUTES: list[Guarded] = []
_OBJECT: dict[str, Any] = {"application/json": {"schema": {"type": "object"}}}
_WORKBOOK = (401, 403, 404, 422, 501)


def _file(
    address: str, *, by: Role, summary: str, holds: type[Response] | str, refusals: tuple[int, ...] | None = None
) -> Callable[[Handler], Handler]:
    """Register what answers with a file of that class, or with a JSON object that is described so."""
    if isinstance(holds, str):
        kind, found = Response, {"description": holds, "content": _OBJECT}
    else:
        binary = {"format": "binary"} if holds is exports.Workbook else {}
        kind, found = holds, {"content": {str(holds.media_type): {"schema": {"type": "string", **binary}}}}

    def register(handler: Handler) -> Handler:
        ROUTES.append(
            api_route(
                address,
                handler,
                by=by,
                summary=summary,
                response_class=kind,
                responses={200: found},
                refusals=refusals,
            )
        )
        return handler

    return register


# -- for one participant -----------------------------------------------------------------------------------------------


@_file("GET /participation/receipt", by="secret", summary="Download the receipt", holds="The receipt.")
async def receipt(request: Request) -> Response:
    """The signed receipt, as `hushbid verify` reads it, once the campaign is over."""
    app = app_of(request)
    found = await app.run(app.service.receipt, caller_of(request).secret)
    return Response(found.to_json(), media_type="application/json", headers=exports.download("receipt.json"))


@_file("GET /participation/export", by="secret", summary="Download personal data", holds="Personal data.")
async def export(request: Request) -> Response:
    """All that the server holds about the participant, but the sealed value, which nobody can read."""
    app = app_of(request)
    return answer(await app.run(app.service.export, caller_of(request).secret))


# -- for everybody -----------------------------------------------------------------------------------------------------


async def health() -> Response:
    """That the server answers."""
    return answer({"status": "ok", "version": __version__})


ROUTES.append(api_route("GET /health", health, by="anybody", summary="Are you there?", response_model=Health))


@_file("GET /keys", by="anybody", summary="List the keys that sign receipts", holds="The list of keys.")
async def keys(request: Request) -> Response:
    """All keys there have been, as `hushbid verify --keys` reads them."""
    app = app_of(request)
    return answer((await app.run(app.service.keys)).to_dict())


# -- for analysts and auditors -----------------------------------------------------------------------------------------


@_file("GET /campaigns/{campaign}/events.jsonl", by="staff", summary="Download the log", holds=exports.JsonLines)
async def download_events(request: Request, campaign: CampaignId) -> Response:
    """The whole log as `hushbid verify` reads it, one event per line."""
    app = app_of(request)
    lines = await app.run(exports.log_lines, app.service, caller_of(request).staff, campaign)
    return exports.JsonLines(lines, headers=exports.download(f"{campaign}-log.jsonl"))


@_file("GET /campaigns/{campaign}/record", by="staff", summary="Download the record", holds="The record.")
async def record(request: Request, campaign: CampaignId) -> Response:
    """Everybody's bid, privacy loss and payment by pseudonym, as `hushbid verify` reads it; once it is decided."""
    app = app_of(request)
    content = await app.run(app.service.record, caller_of(request).staff, campaign)
    return Response(content, media_type="application/json", headers=exports.download(f"{campaign}-record.json"))


@_file("GET /campaigns/{campaign}/release", by="staff", summary="Read the estimate", holds="The estimate.")
async def estimate(request: Request, campaign: CampaignId) -> Response:
    """The estimate with its error, once it is released."""
    app = app_of(request)
    found = (await app.run(app.service.campaign, caller_of(request).staff, campaign)).release
    if found is None:
        raise NotFound("There is no estimate: none was released yet.")
    return answer(found)


@_file("GET /campaigns/{campaign}/report", by="staff", summary="Download the report", holds=exports.ReportPage)
async def download_report(request: Request, campaign: CampaignId, language: Language = "en") -> Response:
    """One page about the campaign for people, which loads nothing; once it is decided. In English or in German."""
    app, who = app_of(request), caller_of(request).staff
    found = await app.compute(who, exports.report_page, app.service, who, campaign, language)
    headers = exports.download(f"{campaign}-report.html")
    return exports.ReportPage(found, headers={**headers, "Content-Security-Policy": exports.REPORT_POLICY})


@_file("GET /campaigns/{campaign}/payments.csv", by="analyst", summary="Download payments", holds=exports.Csv)
async def payments(request: Request, campaign: CampaignId) -> Response:
    """Who is or was owed what, by name and reference, and where to pay whoever is still owed something, if the campaign
    asked: the log says that you took it. Auditors find amounts by pseudonym among participants and in the record."""
    return await _payments(request, campaign, "csv")


@_file(
    "GET /campaigns/{campaign}/payments.xlsx",
    by="analyst",
    summary="Download payments for a spreadsheet",
    holds=exports.Workbook,
    refusals=_WORKBOOK,
)
async def payments_workbook(request: Request, campaign: CampaignId) -> Response:
    """The same as an Excel workbook; needs the extra `xlsx` on the server."""
    return await _payments(request, campaign, "xlsx")


@_file("GET /campaigns/{campaign}/awaited.csv", by="analyst", summary="Download who is awaited", holds=exports.Csv)
async def awaited(request: Request, campaign: CampaignId, what: Awaited | None = None) -> Response:
    """Exactly who is awaited for a bid, a delivery, where to pay her, or her payment: one line for each, for
    letters. Links are not in it, since the server does not have them."""
    return await _awaited(request, campaign, what, "csv")


@_file(
    "GET /campaigns/{campaign}/awaited.xlsx",
    by="analyst",
    summary="Download who is awaited for a spreadsheet",
    holds=exports.Workbook,
    refusals=_WORKBOOK,
)
async def awaited_workbook(request: Request, campaign: CampaignId, what: Awaited | None = None) -> Response:
    """The same as an Excel workbook; needs the extra `xlsx` on the server."""
    return await _awaited(request, campaign, what, "xlsx")


@_file("GET /campaigns/{campaign}/agreements.csv", by="staff", summary="Download agreements", holds=exports.Csv)
async def agreements_table(request: Request, campaign: CampaignId) -> Response:
    """Who agreed to which version when, in which language; for auditors by pseudonym only."""
    app = app_of(request)
    found = await app.run(app.service.agreements, caller_of(request).staff, campaign)
    return exports.table_response(exports.agreements_table(found), f"{campaign}-agreements", "csv")


@_file(
    "GET /campaigns/{campaign}/agreements.json",
    by="staff",
    summary="Download agreements with what was agreed to",
    holds="Agreements.",
)
async def agreements(request: Request, campaign: CampaignId) -> Response:
    """The same, with every document that somebody agreed to, word by word, under its version."""
    app = app_of(request)
    found = await app.run(app.service.agreements, caller_of(request).staff, campaign)
    content = canonical(found) + b"\n"
    return Response(content, media_type="application/json", headers=exports.download(f"{campaign}-agreements.json"))


async def _payments(request: Request, campaign: str, ending: exports.Ending) -> Response:
    app = app_of(request)
    exports.require_writable(ending)  # before the log says that it was taken
    found = await app.run(app.service.payment_file, caller_of(request).staff, campaign)
    content = await app.run(exports.payments_table, found, ending)
    return exports.table_response(content, f"{campaign}-payments", ending)


async def _awaited(request: Request, campaign: str, what: Awaited | None, ending: exports.Ending) -> Response:
    app = app_of(request)
    rows = await app.run(app.service.awaited, caller_of(request).staff, campaign, what)
    content = await app.run(exports.awaited_table, rows, ending)
    return exports.table_response(content, f"{campaign}-awaited{'' if what is None else f'-{what}'}", ending)
