"""Files to take away, and the routes that answer with one: receipts, keys, the log, the record, tables, the report."""

import io
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from functools import partial
from typing import Any, Literal, TypeVar

from fastapi import Request, Response

from hushbid import __version__
from hushbid.common.documents import canonical, parsed
from hushbid.common.tables import table_writer
from hushbid.errors import NotFound
from hushbid.receipts.log import to_lines
from hushbid.record import Record
from hushbid.server.http.auth import ApiRoute, app_of, caller_of
from hushbid.server.http.routes import api_route, signed
from hushbid.server.http.schemas import Health, answer
from hushbid.server.model.access import Role
from hushbid.server.model.payment_views import Awaited, AwaitedRow, PaymentFile
from hushbid.server.model.views import Principal
from hushbid.server.service import Service
from hushbid.server.service.use_case import Route

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


_FORMATS: dict[Ending, type[Response]] = {"csv": Csv, "xlsx": Workbook}
_WORKBOOK = "The same as an Excel workbook; needs the extra `xlsx` on the server."


class Toml(Response):
    """A campaign file."""

    media_type = "application/toml"


class JsonLines(Response):
    """One JSON object per line."""

    media_type = "application/jsonl"


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
    columns = {
        **_columns(rows, ("id", "label")),
        **_columns(rows, _AMOUNTS, lambda amount, row: _amount(amount, row.decimals, ending)),
        **_columns(rows, ("currency", "paid_at", "reference")),
        **{f"{name}_minor": [getattr(row, name) for row in rows] for name in _AMOUNTS},
    }
    if found.payout != "none":
        columns[found.payout] = [found.handles.get(row.id, "") for row in rows]
    return table(columns, ending)


def awaited_table(rows: Sequence[AwaitedRow], ending: Ending) -> bytes:
    """One line per person and what they are awaited for."""
    due = _columns(rows, ("due",), lambda amount, row: _amount(amount, row.decimals, ending))
    columns = _columns(rows, ("label", "id", "awaited", "state", "deadline"))
    return table({**columns, **due, **_columns(rows, ("currency",))}, ending)


def _columns(
    rows: Sequence[Any], names: Sequence[str], shown: Callable[[Any, Any], Any] = lambda value, row: _text(value)
) -> dict[str, list[Any]]:
    return {name: [shown(getattr(row, name), row) for row in rows] for name in names}


def _text(value: Any) -> Any:
    """A time as it is written, nothing for what is missing."""
    return "" if value is None else value.isoformat() if isinstance(value, datetime) else str(value)


def table(columns: Mapping[str, list[Any]], ending: Ending) -> bytes:
    """A table in the format that the ending says; no text in it is a formula."""
    file = io.BytesIO()
    table_writer(f"table.{ending}", columns)(file)
    return file.getvalue()


def _amount(minor: int, decimals: int, ending: Ending) -> str | float:
    """For a spreadsheet a number, if it keeps all its digits."""
    text = in_units(minor, decimals)
    return float(text) if ending == "xlsx" and abs(minor) < _DIGITS else text


def in_units(minor: int, decimals: int) -> str:
    """An amount of minor units in units of its currency, exactly.

    >>> in_units(1007, 3), in_units(-5, 2), in_units(1500, 0)
    ('1.007', '-0.05', '1500')
    """
    return str(Decimal(minor).scaleb(-decimals).quantize(Decimal(1).scaleb(-decimals)))


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
Made = TypeVar("Made", bound=Callable[..., Response])
Filled = TypeVar("Filled", bound=Callable[..., bytes])


def _file(route: Route, *, holds: type[Response] | str, **more: Any) -> Callable[[Made], Made]:
    """Register what answers with a file of that class, or with a JSON object that is described so.

    It gets the service, who asks unless anybody may, and what the route names in path and query.
    """
    if isinstance(holds, str):
        kind, found = Response, {"description": holds, "content": _OBJECT}
    else:
        binary = {"format": "binary"} if holds is Workbook else {}
        kind, found = holds, {"content": {str(holds.media_type): {"schema": {"type": "string", **binary}}}}

    def register(make: Made) -> Made:
        async def handle(request: Request, **given: Any) -> Response:
            app, caller = app_of(request), caller_of(request)
            named = [given.pop(one) for one in route.names]
            do = partial(make, app.service, *(() if route.by == "anybody" else (caller.who,)), *named, **given)
            return await (app.compute(caller.staff, do) if route.computes else app.run(do))

        told = {"name": make.__name__, "description": make.__doc__, "by": route.by, "summary": route.summary, **more}
        handler = signed(handle, route)
        ROUTES.append(api_route(route.address, handler, response_class=kind, responses={200: found}, **told))
        return make

    return register


def _table(name: str, summary: str, *, by: Role, query: tuple[str, ...] = ()) -> Callable[[Filled], Filled]:
    """Register what fills a campaign's table of that name, which is to be had as CSV and as an Excel workbook.

    It gets the service, who asks, the campaign, the ending, and what is named in the query.
    """

    def register(fill: Filled) -> Filled:
        for ending, kind in _FORMATS.items():

            def make(
                service: Service, who: Principal, campaign: str, _ending: Ending = ending, **asked: Any
            ) -> Response:
                table_writer(f"table.{_ending}", {})  # refuses a format whose package is missing, before all else
                content = fill(service, who, campaign, _ending, **asked)
                saved = "".join(f"-{value}" for value in asked.values() if value is not None)
                headers = {**download(f"{campaign}-{name}{saved}.{_ending}"), "Cache-Control": "no-store"}
                return _FORMATS[_ending](content, headers=headers)

            told: dict[str, Any] = {"name": name, "description": fill.__doc__}
            if kind is Workbook:
                told = {"name": f"{name}_workbook", "description": _WORKBOOK, "refusals": (401, 403, 404, 422, 501)}
            about = f"{summary} for a spreadsheet" if kind is Workbook else summary
            address = f"GET /campaigns/{{campaign}}/{name}.{ending}"
            _file(Route(address, about, by=by, query=query), holds=kind, **told)(make)
        return fill

    return register


# -- for one participant -----------------------------------------------------------------------------------------------


@_file(Route("GET /participation/receipt", "Download the receipt", by="secret"), holds="The receipt.")
def receipt(service: Service, secret: str) -> Response:
    """The signed receipt, as `hushbid verify` reads it, once the campaign is over."""
    return _json(service.receipt(secret).to_json(), "receipt.json")


@_file(Route("GET /participation/export", "Download personal data", by="secret"), holds="Personal data.")
def export(service: Service, secret: str) -> Response:
    """All that the server holds about the participant, but the sealed value, which nobody can read."""
    return answer(service.export(secret))


# -- for everybody -----------------------------------------------------------------------------------------------------


async def health() -> Response:
    """That the server answers."""
    return answer({"status": "ok", "version": __version__})


ROUTES.append(api_route("GET /health", health, by="anybody", summary="Are you there?", response_model=Health))


@_file(Route("GET /keys", "List the keys that sign receipts", by="anybody"), holds="The list of keys.")
def keys(service: Service) -> Response:
    """All keys there have been, as `hushbid verify --keys` reads them."""
    return answer(service.keys().to_dict())


# -- for analysts and auditors -----------------------------------------------------------------------------------------


@_file(Route("GET /campaigns/{campaign}/events.jsonl", "Download the log", by="staff"), holds=JsonLines)
def download_events(service: Service, who: Principal, campaign: str) -> Response:
    """The whole log as `hushbid verify` reads it, one event per line."""
    return JsonLines(to_lines(service.events(who, campaign)), headers=download(f"{campaign}-log.jsonl"))


@_file(Route("GET /campaigns/{campaign}/campaign.toml", "Download the campaign file", by="staff"), holds=Toml)
def campaign_file(service: Service, who: Principal, campaign: str) -> Response:
    """The settings as a campaign file, which `hushbid plan` reads and any server imports as a draft."""
    from hushbid.campaign.drafting import draft_text

    settings = service.campaign(who, campaign).whole
    return Toml(draft_text({**settings.to_dict(), "bids": {"file": "bids.csv"}}), headers=download(f"{campaign}.toml"))


@_file(Route("GET /campaigns/{campaign}/record", "Download the record", by="staff"), holds="The record.")
def record(service: Service, who: Principal, campaign: str) -> Response:
    """Everybody's bid, privacy loss and payment by pseudonym, as `hushbid verify` reads it; once it is decided."""
    return _json(service.record(who, campaign), f"{campaign}-record.json")


@_file(Route("GET /campaigns/{campaign}/release", "Read the estimate", by="staff"), holds="The estimate.")
def estimate(service: Service, who: Principal, campaign: str) -> Response:
    """The estimate with its error, once it is released."""
    found = service.campaign(who, campaign).release
    if found is None:
        raise NotFound("There is no estimate: none was released yet.")
    return answer(found)


@_file(
    Route("GET /campaigns/{campaign}/report", "Download the report", by="staff", query=("language",), computes=True),
    holds=ReportPage,
)
def download_report(service: Service, who: Principal, campaign: str, language: str = "en") -> Response:
    """One page about the campaign for people, which loads nothing; once it is decided. In English or in German."""
    headers = {**download(f"{campaign}-report.html"), "Content-Security-Policy": REPORT_POLICY}
    return ReportPage(report_page(service, who, campaign, language), headers=headers)


@_table("payments", "Download payments", by="analyst")
def payments(service: Service, who: Principal, campaign: str, ending: Ending) -> bytes:
    """Who is or was owed what, by name and reference, and where to pay people who are still owed something, if the
    campaign asked: the log says that you took it. Auditors find amounts by pseudonym among participants
    and in the record."""
    return payments_table(service.payment_file(who, campaign), ending)


@_table("awaited", "Download who is awaited", by="analyst", query=("what",))
def awaited(service: Service, who: Principal, campaign: str, ending: Ending, what: Awaited | None = None) -> bytes:
    """Exactly who is awaited for a bid, a delivery, payment details, or a payment: one line for each, for
    letters. Links are not in it, since the server does not have them."""
    return awaited_table(service.awaited(who, campaign, what), ending)


@_table("agreements", "Download agreements", by="staff")
def agreements_table(service: Service, who: Principal, campaign: str, ending: Ending) -> bytes:
    """Who agreed to which version when, in which language; for auditors by pseudonym only."""
    rows = service.agreements(who, campaign)["agreements"]
    return table({name: [row.get(name, "") for row in rows] for name in _AGREED}, ending)


@_file(
    Route("GET /campaigns/{campaign}/agreements.json", "Download agreements with what was agreed to", by="staff"),
    holds="Agreements.",
)
def agreements_with_texts(service: Service, who: Principal, campaign: str) -> Response:
    """The same, with every document that was agreed to, word by word, under its version."""
    return _json(canonical(service.agreements(who, campaign)) + b"\n", f"{campaign}-agreements.json")


def _json(content: bytes | str, name: str) -> Response:
    return Response(content, media_type="application/json", headers=download(name))
