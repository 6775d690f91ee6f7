"""Files to take away: payments as CSV, the log as lines, the report as a page."""

import csv
import io
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from fastapi import Response

from hushbid.documents import parsed
from hushbid.receipts.log import to_lines
from hushbid.record import Record
from hushbid.server.domain.views import PaymentRow, Principal
from hushbid.server.service import Service
from hushbid.tables import harmless

JSON_LINES = "application/jsonl"
_AT_ONCE = 1000
_COLUMNS = ("id", "label", "payment", "fee", "paid", "due", "currency", "paid_at")
_AGREED = ("id", "label", "at", "version", "language")
REPORT_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'; sandbox"


class Csv(Response):
    """A table."""

    media_type = "text/csv"


class JsonLines(Response):
    """One JSON object per line."""

    media_type = JSON_LINES


class ReportPage(Response):
    """A page that loads and runs nothing."""

    media_type = "text/html"


def download(name: str) -> dict[str, str]:
    """Headers that make a browser save a file under a name."""
    return {"Content-Disposition": f'attachment; filename="{name}"'}


def payments_csv(rows: Iterable[PaymentRow]) -> str:
    """One line per person; every amount is in units of the currency, with its decimals: 12.34 for 1,234 cents."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(_COLUMNS)
    for row in rows:
        amounts = (in_units(minor, row.decimals) for minor in (row.payment, row.fee, row.paid, row.due))
        paid_at = "" if row.paid_at is None else row.paid_at.isoformat()
        writer.writerow((row.id, harmless(row.label or ""), *amounts, row.currency, paid_at))
    return text.getvalue()


def agreements_csv(found: Mapping[str, Any]) -> str:
    """One line per person who agreed: pseudonym, label, time, version and language; auditors' lines have no label."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(_AGREED)
    for row in found["agreements"]:
        writer.writerow((row["id"], harmless(row.get("label", "")), row["at"], row["version"], row["language"]))
    return text.getvalue()


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


def report_page(service: Service, who: Principal, campaign: str) -> str:
    """The report on a campaign's record, as one page."""
    from hushbid.report import Settlement, build_report, render_report  # loads what draws

    record = Record.from_dict(parsed(service.record(who, campaign)))
    view, account = service.campaign(who, campaign), service.account(who, campaign)
    settings, units = view.settings, 10**view.settings.decimals
    report = build_report(
        record.outcome,
        record.release,
        campaign_name=settings.title,
        unit=settings.unit,
        money=record.money,
        spending_ceiling=None if settings.spending_ceiling is None else settings.spending_ceiling / units,
        settlement=Settlement(
            delivered=account.delivered,
            payments=account.payments / units,
            fees=account.fees / units,
            paid=account.paid / units,
            over=view.state.is_over,
        ),
        groups=record.groups,
        comparison="omit",
        record_name=f"{campaign}-record.json",
        record_hash=record.hash,
    )
    return render_report(report)
