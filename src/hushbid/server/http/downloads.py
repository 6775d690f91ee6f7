"""Files to take away, and the routes that answer with one: receipts, keys, the log, the record, tables, the report."""

import io
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Literal

from fastapi import Request, Response

from hushbid import __version__
from hushbid.common.documents import canonical, parsed
from hushbid.common.tables import table_writer
from hushbid.errors import NotFound
from hushbid.receipts.log import to_lines
from hushbid.record import Record
from hushbid.server.http.auth import ApiRoute, app_of, caller_of
from hushbid.server.http.routes import CampaignId, Handler, Language, api_route
from hushbid.server.http.schemas import Health, answer
from hushbid.server.model.payment_views import Awaited, AwaitedRow, PaymentFile
from hushbid.server.model.views import Principal
from hushbid.server.service import Service
from hushbid.server.service.use_case import Role

JSON_LINES = "application/jsonl"
_AT_ONCE = 1000
_AGREED = ("id", "label", "at", "version", "language")
_AMOUNTS = ("payment", "fee", "paid", "due")
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
_DIGITS = 10**15  # of a number, which is what a spreadsheet keeps
Ending = Literal["csv", "xlsx"]
"""Of a table's name: which format it has."""
REPORT_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'; sandbox"


class Csv(Response):
    """A table."""

    media_type = "text/csv"


class Workbook(Response):
    """A table for spreadsheets."""

    media_type = XLSX


class JsonLines(Response):
    """One JSON object per line."""

    media_type = JSON_LINES


class ReportPage(Response):
    """A page that loads and runs nothing."""

    media_type = "text/html"


def download(name: str) -> dict[str, str]:
    """Headers that make a browser save a file under a name."""
    return {"Content-Disposition": f'attachment; filename="{name}"'}


def payments_table(found: PaymentFile, ending: Ending) -> bytes:
    """One line per person; every amount in units of the currency, with its decimals, 12.34 for 1,234 cents, and again
    in minor units. Where people were asked where to pay them, that stands last."""
    rows = found.rows
    amounts = {name: [_amount(getattr(row, name), row.decimals, ending) for row in rows] for name in _AMOUNTS}
    columns: dict[str, list[Any]] = {
        "id": [row.id for row in rows],
        "label": [row.label for row in rows],
        **amounts,
        "currency": [row.currency for row in rows],
        "paid_at": ["" if row.paid_at is None else row.paid_at.isoformat() for row in rows],
        "reference": [row.reference for row in rows],
        **{f"{name}_minor": [getattr(row, name) for row in rows] for name in _AMOUNTS},
    }
    if found.payout != "none":
        columns[found.payout] = [found.handles.get(row.id, "") for row in rows]
    return table(columns, ending)


def awaited_table(rows: Sequence[AwaitedRow], ending: Ending) -> bytes:
    """One line per person and what she is awaited for."""
    return table(
        {
            "label": [row.label for row in rows],
            "id": [row.id for row in rows],
            "awaited": [row.awaited for row in rows],
            "state": [row.state.value for row in rows],
            "deadline": ["" if row.deadline is None else row.deadline.isoformat() for row in rows],
            "due": [_amount(row.due, row.decimals, ending) for row in rows],
            "currency": [row.currency for row in rows],
        },
        ending,
    )


def require_writable(ending: Ending) -> None:
    """Refuse a format whose package is not installed."""
    table_writer(f"table.{ending}", {})


def table(columns: Mapping[str, list[Any]], ending: Ending) -> bytes:
    """A table in the format that the ending says; no text in it is a formula."""
    file = io.BytesIO()
    table_writer(f"table.{ending}", columns)(file)
    return file.getvalue()


def table_response(content: bytes, name: str, ending: Ending) -> Response:
    """A table to be saved."""
    kind = Workbook if ending == "xlsx" else Csv
    return kind(content, headers={**download(f"{name}.{ending}"), "Cache-Control": "no-store"})


def _amount(minor: int, decimals: int, ending: Ending) -> str | float:
    """For a spreadsheet a number, if it keeps all its digits."""
    text = in_units(minor, decimals)
    return float(text) if ending == "xlsx" and abs(minor) < _DIGITS else text


def agreements_csv(found: Mapping[str, Any]) -> bytes:
    """One line per person who agreed: pseudonym, label, time, version and language; auditors' lines have no label."""
    rows = found["agreements"]
    return table({name: [row.get(name, "") for row in rows] for name in _AGREED}, "csv")


def in_units(minor: int, decimals: int) -> str:
    """An amount of minor units in units of its currency, exactly.

    >>> in_units(1007, 3), in_units(-5, 2), in_units(1500, 0)
    ('1.007', '-0.05', '1500')
    """
    return str(Decimal(minor).scaleb(-decimals).quantize(Decimal(1).scaleb(-decimals)))


def log_lines(service: Service, who: Principal, campaign: str) -> bytes:
    """A campaign's whole log."""
    parts: list[bytes] = []
    after = 0
    while True:
        found = service.events(who, campaign, after=after, limit=_AT_ONCE)
        parts.append(to_lines(found))
        if len(found) < _AT_ONCE:
            return b"".join(parts)
        after = found[-1].number


def report_page(service: Service, who: Principal, campaign: str, language: str = "en") -> str:
    """The report on a campaign's record, as one page in a language."""
    from hushbid.report import Conduct, Settlement, build_report, render_report  # loads what draws

    record = Record.from_dict(parsed(service.record(who, campaign)))
    view, account = service.campaign(who, campaign), service.account(who, campaign)
    settings, units, people = view.whole, 10**view.whole.currency.decimals, view.people
    # who withdrew after the decision is in the record, as are all others whose bids counted
    counted = (people.get(state, 0) for state in ("not_bought", "promised", "delivered", "dropped"))
    left = int(record.outcome.bids.size) - sum(counted)
    report = build_report(
        record.outcome,
        record.release,
        title=settings.title,
        unit=settings.unit or "",
        money=record.money,
        spending_limit=settings.money.spending_limit,
        settlement=Settlement(
            delivered=account.delivered,
            payments=account.payments / units,
            fees=account.fees / units,
            paid=account.paid / units,
            over=view.state.is_over,
            left=people.get("withdrawn", 0) if settings.fee_minor else 0,
        ),
        conduct=Conduct(
            question=settings.question,
            opened_at=view.opened_at,
            decided_at=view.allocated_at,
            released_at=view.released_at,
            fee=settings.fee_minor / units,
            invited=sum(people.values()),
            silent=people.get("absent", 0),
            declined=people.get("declined", 0),
            excluded=people.get("excluded", 0),
            withdrew_before=people.get("withdrawn", 0) - left,
            withdrew_after=left,
            dropped=people.get("dropped", 0),
        ),
        groups=record.groups,
        comparison="omit",
        record_name=f"{campaign}-record.json",
        record_hash=record.hash,
        language=language,
    )
    return render_report(report)


ROUTES: list[ApiRoute] = []
_OBJECT: dict[str, Any] = {"application/json": {"schema": {"type": "object"}}}
_WORKBOOK = (401, 403, 404, 422, 501)


def _file(
    address: str, *, by: Role, summary: str, holds: type[Response] | str, refusals: tuple[int, ...] | None = None
) -> Callable[[Handler], Handler]:
    """Register what answers with a file of that class, or with a JSON object that is described so."""
    if isinstance(holds, str):
        kind, found = Response, {"description": holds, "content": _OBJECT}
    else:
        binary = {"format": "binary"} if holds is Workbook else {}
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
    return Response(found.to_json(), media_type="application/json", headers=download("receipt.json"))


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


@_file("GET /campaigns/{campaign}/events.jsonl", by="staff", summary="Download the log", holds=JsonLines)
async def download_events(request: Request, campaign: CampaignId) -> Response:
    """The whole log as `hushbid verify` reads it, one event per line."""
    app = app_of(request)
    lines = await app.run(log_lines, app.service, caller_of(request).staff, campaign)
    return JsonLines(lines, headers=download(f"{campaign}-log.jsonl"))


@_file("GET /campaigns/{campaign}/record", by="staff", summary="Download the record", holds="The record.")
async def record(request: Request, campaign: CampaignId) -> Response:
    """Everybody's bid, privacy loss and payment by pseudonym, as `hushbid verify` reads it; once it is decided."""
    app = app_of(request)
    content = await app.run(app.service.record, caller_of(request).staff, campaign)
    return Response(content, media_type="application/json", headers=download(f"{campaign}-record.json"))


@_file("GET /campaigns/{campaign}/release", by="staff", summary="Read the estimate", holds="The estimate.")
async def estimate(request: Request, campaign: CampaignId) -> Response:
    """The estimate with its error, once it is released."""
    app = app_of(request)
    found = (await app.run(app.service.campaign, caller_of(request).staff, campaign)).release
    if found is None:
        raise NotFound("There is no estimate: none was released yet.")
    return answer(found)


@_file("GET /campaigns/{campaign}/report", by="staff", summary="Download the report", holds=ReportPage)
async def download_report(request: Request, campaign: CampaignId, language: Language = "en") -> Response:
    """One page about the campaign for people, which loads nothing; once it is decided. In English or in German."""
    app, who = app_of(request), caller_of(request).staff
    found = await app.compute(who, report_page, app.service, who, campaign, language)
    headers = download(f"{campaign}-report.html")
    return ReportPage(found, headers={**headers, "Content-Security-Policy": REPORT_POLICY})


@_file("GET /campaigns/{campaign}/payments.csv", by="analyst", summary="Download payments", holds=Csv)
async def payments(request: Request, campaign: CampaignId) -> Response:
    """Who is or was owed what, by name and reference, and where to pay whoever is still owed something, if the campaign
    asked: the log says that you took it. Auditors find amounts by pseudonym among participants and in the record."""
    return await _payments(request, campaign, "csv")


@_file(
    "GET /campaigns/{campaign}/payments.xlsx",
    by="analyst",
    summary="Download payments for a spreadsheet",
    holds=Workbook,
    refusals=_WORKBOOK,
)
async def payments_workbook(request: Request, campaign: CampaignId) -> Response:
    """The same as an Excel workbook; needs the extra `xlsx` on the server."""
    return await _payments(request, campaign, "xlsx")


@_file("GET /campaigns/{campaign}/awaited.csv", by="analyst", summary="Download who is awaited", holds=Csv)
async def awaited(request: Request, campaign: CampaignId, what: Awaited | None = None) -> Response:
    """Exactly who is awaited for a bid, a delivery, where to pay her, or her payment: one line for each, for
    letters. Links are not in it, since the server does not have them."""
    return await _awaited(request, campaign, what, "csv")


@_file(
    "GET /campaigns/{campaign}/awaited.xlsx",
    by="analyst",
    summary="Download who is awaited for a spreadsheet",
    holds=Workbook,
    refusals=_WORKBOOK,
)
async def awaited_workbook(request: Request, campaign: CampaignId, what: Awaited | None = None) -> Response:
    """The same as an Excel workbook; needs the extra `xlsx` on the server."""
    return await _awaited(request, campaign, what, "xlsx")


@_file("GET /campaigns/{campaign}/agreements.csv", by="staff", summary="Download agreements", holds=Csv)
async def agreements_table(request: Request, campaign: CampaignId) -> Response:
    """Who agreed to which version when, in which language; for auditors by pseudonym only."""
    app = app_of(request)
    found = await app.run(app.service.agreements, caller_of(request).staff, campaign)
    return table_response(agreements_csv(found), f"{campaign}-agreements", "csv")


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
    return Response(content, media_type="application/json", headers=download(f"{campaign}-agreements.json"))


async def _payments(request: Request, campaign: str, ending: Ending) -> Response:
    app = app_of(request)
    require_writable(ending)  # before the log says that it was taken
    found = await app.run(app.service.payment_file, caller_of(request).staff, campaign)
    content = await app.run(payments_table, found, ending)
    return table_response(content, f"{campaign}-payments", ending)


async def _awaited(request: Request, campaign: str, what: Awaited | None, ending: Ending) -> Response:
    app = app_of(request)
    rows = await app.run(app.service.awaited, caller_of(request).staff, campaign, what)
    content = await app.run(awaited_table, rows, ending)
    return table_response(content, f"{campaign}-awaited{'' if what is None else f'-{what}'}", ending)
