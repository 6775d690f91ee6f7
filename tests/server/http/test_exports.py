"""What can be taken away: payments, the log, the record, the report; each readable by what it is for."""

import csv
import io
import re
import sys
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from hushbid.client import AnalystClient, MessageMemory, ParticipantClient
from hushbid.receipts.log import read_log
from hushbid.record import Record
from hushbid.server.http.downloads import XLSX, payments_table
from hushbid.server.model.payment_views import PaymentFile, PaymentRow
from hushbid.verification.receipts import verify_log
from hushbid.verification.verifying import verify
from tests.extent import each
from tests.server.http.support import Live, sentence
from tests.server.pages.support import Visitor, words
from tests.server.support import PASSWORD, Play, decided, drafted, opened, released


def rows_in(text: str) -> list[dict[str, str]]:
    """The rows of a file, by the names of its columns."""
    return list(csv.DictReader(io.StringIO(text)))


def test_the_record_the_log_and_the_report_are_what_the_tools_read(both: Live) -> None:
    play = released(both.service, 5)
    with both.client(both.auditor) as client:
        record = client.get(f"/campaigns/{play.id}/record")
        assert verify(Record.from_dict(record.json())).ok
        assert record.headers["content-disposition"] == f'attachment; filename="{play.id}-record.json"'
        log = client.get(f"/campaigns/{play.id}/events.jsonl")
        assert log.headers["content-type"] == "application/jsonl"
        root = client.get(f"/campaigns/{play.id}/public").json()["root"]
        assert verify_log(read_log(log.content), root=root).ok
        report = client.get(f"/campaigns/{play.id}/report")
        assert report.headers["content-type"].startswith("text/html")
        assert "default-src 'none'" in report.headers["content-security-policy"]
        assert "Hours of sleep" in report.text
        estimate = client.get(f"/campaigns/{play.id}/release").json()
        assert 0 <= estimate["estimate"] <= 10 or estimate["estimate"] is not None


def test_what_does_not_exist_yet_is_not_found(shared: Live) -> None:
    play = opened(shared.service)
    with shared.client(shared.analyst) as client:
        for name in ("record", "release", "report"):
            sentence(client.get(f"/campaigns/{play.id}/{name}"), 404)
    with shared.client(play.token(0)) as client:
        sentence(client.get("/participation/receipt"), 409)
    with shared.client(drafted(shared.service).token(0)) as client:
        assert client.get("/participation/menu").status_code in (404, 409)


def test_payments_add_up_and_survive_a_spreadsheet(both: Live) -> None:
    play = released(both.service, ["=1+1", "ann, the first", '"quoted"'], participation_fee=1.5)
    with both.client(both.analyst) as client:
        rows = rows_in(client.get(f"/campaigns/{play.id}/payments.csv").text)
        view = client.get(f"/campaigns/{play.id}").json()
        assert [row["label"] for row in rows] == ["'=1+1", "ann, the first", '"quoted"']
        assert sum(100 * Decimal(row["due"]) for row in rows) == view["due"] == view["total_payment"] + 3 * 150
        assert [row["fee"] for row in rows] == ["1.50"] * 3  # euros, as in every other column
        paid = client.post(f"/campaigns/{play.id}/payments", json={"labels": ["=1+1"]}).json()["paid"]
        assert [one["label"] for one in paid] == ["=1+1"]
        rows = rows_in(client.get(f"/campaigns/{play.id}/payments.csv").text)
        assert [float(row["due"]) == 0 for row in rows] == [True, False, False]


@each(
    ("label", "shown"),
    [
        ("+49 170 1234567", "+49 170 1234567"),
        ("-5", "-5"),
        ("+cmd|calc", "'+cmd|calc"),
        ("@sum(A1)", "'@sum(A1)"),
        ("=1", "'=1"),
        ("", ""),
        ("a=b", "a=b"),
    ],
)
def test_no_label_becomes_a_formula(label: str, shown: str) -> None:
    row = PaymentRow(
        id="p1",
        label=label,
        payment=5,
        fee=0,
        paid=0,
        due=5,
        currency="JPY",
        decimals=0,
        paid_at=datetime(2026, 1, 1, tzinfo=UTC),
    )
    [read] = rows_in(payments_table(PaymentFile(payout="none", rows=(row,), handles={}), "csv").decode())
    assert (read["label"], read["due"]) == (shown, "5")


def test_every_amount_is_in_units_of_the_currency_with_all_its_digits() -> None:
    row = PaymentRow(id="p", label="a", payment=1, fee=20, paid=0, due=1007, currency="KWD", decimals=3, paid_at=None)
    [read] = rows_in(payments_table(PaymentFile(payout="none", rows=(row,), handles={}), "csv").decode())
    assert [read[name] for name in ("payment", "fee", "paid", "due")] == ["0.001", "0.020", "0.000", "1.007"]


def told(live: Live, play: Play) -> str:
    """A campaign's report in words."""
    with live.client(live.auditor) as client:
        return words(client.get(f"/campaigns/{play.id}/report"))


def test_the_report_states_what_is_owed_to_those_who_delivered_with_fees(shared: Live) -> None:
    play = decided(shared.service, 40, participation_fee=1, buyer_weight=5_000.0)
    decided_total = play.view.total_payment
    assert "Fees for taking part come to EUR 40.00. Nothing of what is owed has been marked as paid." in told(
        shared, play
    )
    assert "each due when she delivers" in told(shared, play)
    play.deliver(range(15))
    play.release()
    owed = sum(row.payment for row in shared.service.payments(play.who, play.id))
    assert owed < decided_total
    shown = told(shared, play)
    assert f"EUR {owed / 100:,.2f} is owed for the data of 15 of the 40 of 40 people it was bought from" in shown
    assert f"Owed EUR {(owed + 4000) / 100:,.2f}" in shown
    assert "15 delivered" in shown
    assert "No account is kept" not in shown
    assert "The server keeps an account of them over its campaigns" in shown
    for false in ("It cost EUR", "Data were bought from", "Paid in all", "paid to"):
        assert false not in shown
    shared.service.mark_paid(play.who, play.id, None)
    assert f"Paid EUR {(owed + 4000) / 100:,.2f}" in told(shared, play)
    assert "All that is owed has been marked as paid." in told(shared, play)


def test_the_report_does_not_tell_what_a_few_who_dropped_out_were_to_be_paid(shared: Live) -> None:
    play = decided(shared.service, 40, buyer_weight=5_000.0)
    play.deliver(range(1, 40))
    play.release()
    shared.service.mark_paid(play.who, play.id, [play.links[5].label])
    owed = [row.payment for row in shared.service.payments(play.who, play.id)]
    shown = told(shared, play)
    assert f"Payments of EUR {play.view.total_payment / 100:,.2f} were decided for 40 of 40 people" in shown
    assert "not all did, and less is owed" in shown
    assert "A part of what is owed has been marked as paid." in shown
    assert f"{sum(owed) / 100:,.2f}" not in shown
    assert "39 delivered" not in shown
    assert "fewer than 20 did not deliver" in shown


def test_the_report_of_a_campaign_that_nobody_delivered_to_says_so(shared: Live) -> None:
    play = decided(shared.service, 6, participation_fee=1)
    play.release(accept_nobody=True)
    shown = told(shared, play)
    assert "Nobody who was bought from delivered, so there is no estimate, and there will be none." in shown
    assert (
        "EUR 0.00 is owed for the data of 0 of the 6 of 6 people it was bought from."
        " Fees for taking part come to EUR 6.00." in shown
    )
    assert "released yet" not in shown


def test_the_report_tells_what_was_asked_when_and_who_took_no_part_but_no_small_number(shared: Live) -> None:
    play = opened(shared.service, 90, participation_fee=1, buyer_weight=5_000.0)
    play.bid(range(45))
    for row in range(45, 67):
        shared.service.decline(play.token(row))
    shared.service.withdraw(play.token(0))
    play.decide()
    play.deliver(range(1, 23))
    shown = told(shared, play)
    assert "Everybody was asked: How many hours did you sleep last night?" in shown
    assert "Opened 2026-03-01, 12:00 UTC" in shown
    assert "People invited 90 named a price that counts 44" in shown
    # one withdrew: she is told together with others, and so are the fees, which would tell it
    assert "declined 22" not in shown
    assert "did not answer 23 " in shown
    assert "declined, withdrew before the decision or were excluded by the privacy account 23" in shown
    assert "What fees for taking part come to is not told" in shown
    assert "EUR 44.00" not in shown
    assert "Fee for taking part, for each whose price counts EUR 1.00" in shown
    assert "Who of those bought from did not deliver is not told here." in shown
    play.release()
    shown = told(shared, play)
    assert "bought from, and dropped out 22" in shown
    assert "Released 2026-03-01" in shown
    with shared.client(shared.analyst) as client:
        german = words(client.get(f"/campaigns/{play.id}/report?language=de"))
        sentence(client.get(f"/campaigns/{play.id}/report?language=fr"), 422)
    assert "Veröffentlicht 01.03.2026" in german
    assert "antworteten nicht 23 " in german
    assert "von ihnen wurde gekauft, und sie lieferten nicht 22" in german
    assert "je Person, deren Preis zählt 1,00 EUR" in german
    with Visitor(shared.url, **{"Accept-Language": "de"}) as visitor:
        visitor.log_in("ann", PASSWORD)
        assert words(visitor.get(f"/campaigns/{play.id}/report")) == german
        assert f"/api/v1/campaigns/{play.id}/report?language=de" in visitor.get(f"/campaigns/{play.id}").text


def test_the_page_about_paying_people_is_played(shared: Live) -> None:
    page = (Path(__file__).parents[3] / "docs" / "how-to" / "conduct-a-campaign.md").read_text(encoding="utf-8")
    [script] = re.findall(r"```py\n(owed = .*?)```", page, flags=re.DOTALL)
    play = released(shared.service, ["ann@example.org", "bob@example.org"], payout="email")
    with ParticipantClient.from_link(f"{shared.url}/p#{play.fresh(0)}", keeper=MessageMemory()) as me:
        assert me.state_payout("ann@example.com")["shown"] == "\u2022\u2022\u2022\u2022.com"
        assert me.remove_payout()["shown"] is None
        assert me.state_payout("ann@example.org") == me.payout()
    with AnalystClient(shared.url, token=shared.analyst) as analyst:
        names: dict[str, Any] = {"analyst": analyst, "campaign": play.id}
        exec(script, names)
    [ann, bob] = rows_in(names["owed"])
    assert (ann["email"], bob["email"]) == ("ann@example.org", "")
    assert re.findall(r"`(\w+)`", page.split("| column |")[1].split("\n\n")[0])[:9] == list(ann)[:9]
    assert [row["label"] for row in rows_in(names["letters"])] == ["bob@example.org"]
    assert play.view.paid > 0 < play.view.due


def test_without_the_package_for_workbooks_one_sentence_says_so_and_nothing_was_taken(
    shared: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    play = released(shared.service, 2, payout="email")
    shared.service.state_payout(play.token(0), "ann@example.org")
    with shared.client(shared.analyst) as client:
        book = client.get(f"/campaigns/{play.id}/payments.xlsx")
        assert book.headers["content-type"] == XLSX
        assert book.headers["cache-control"] == "no-store"
        monkeypatch.setitem(sys.modules, "xlsxwriter", None)
        for name in ("payments.xlsx", "awaited.xlsx"):
            assert "pip install '.[xlsx]' in a checkout" in sentence(client.get(f"/campaigns/{play.id}/{name}"), 501)
        assert client.get(f"/campaigns/{play.id}/awaited.csv?what=everything").status_code == 422
    assert [event.kind for event in shared.service.events(play.who, play.id)].count("payouts-taken") == 1
