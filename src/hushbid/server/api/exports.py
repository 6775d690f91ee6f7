"""Files to take away: payments and who is awaited as CSV and Excel, the log as lines, the report as a page."""

import io
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, Literal

from fastapi import Response

from hushbid.common.documents import parsed
from hushbid.common.tables import table_writer
from hushbid.receipts.log import to_lines
from hushbid.record import Record
from hushbid.server.domain.payment_views import AwaitedRow, PaymentFile
from hushbid.server.domain.views import Principal
from hushbid.server.service import Service

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


def agreements_table(found: Mapping[str, Any]) -> bytes:
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
    settings, units, people = view.settings, 10**view.settings.decimals, view.people
    # who withdrew after the decision is in the record, as are all others whose bids counted
    counted = (people.get(state, 0) for state in ("not_bought", "promised", "delivered", "dropped"))
    left = int(record.outcome.bids.size) - sum(counted)
    report = build_report(
        record.outcome,
        record.release,
        title=settings.title,
        unit=settings.unit,
        money=record.money,
        spending_limit=settings.spending_limit,
        settlement=Settlement(
            delivered=account.delivered,
            payments=account.payments / units,
            fees=account.fees / units,
            paid=account.paid / units,
            over=view.state.is_over,
            left=people.get("withdrawn", 0) if settings.participation_fee else 0,
        ),
        conduct=Conduct(
            question=settings.question,
            opened_at=view.opened_at,
            decided_at=view.allocated_at,
            released_at=view.released_at,
            fee=settings.participation_fee / units,
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
