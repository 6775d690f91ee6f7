"""Where people are paid is for the payer's eyes only, and ends on schedule; what is paid adds up, and can be undone."""

import csv
import io
from typing import Any

import pytest
from openpyxl import load_workbook

from hushbid.common.documents import parsed
from hushbid.common.tables import read_table
from hushbid.errors import CampaignError, Conflict, NotAllowed, NotFound
from hushbid.receipts.log import Event
from hushbid.record import Record
from hushbid.server.http.downloads import awaited_table, payments_table
from hushbid.server.model.payment_views import AccountView
from hushbid.server.model.states import ParticipantState
from hushbid.server.service import Service
from hushbid.verification.receipts import verify_log
from tests.server.support import Installation, Play, decided, opened, released

IBANS = ("DE89370400440532013000", "GB29NWBK60161331926819", "FR1420041010050500013M02606")


def kinds(play: Play) -> list[str]:
    return [event.kind for event in log(play)]


def log(play: Play) -> tuple[Event, ...]:
    return play.service.events(play.who, play.id)


def taken(play: Play) -> dict[str, str]:
    """What an analyst finds in the payments file, by label."""
    found = play.service.payment_file(play.who, play.id)
    labels = {row.id: row.label for row in found.rows}
    return {labels[one]: handle for one, handle in found.handles.items()}


def test_a_handle_is_stored_shown_masked_taken_by_analysts_alone_and_destroyed(installation: Installation) -> None:
    with installation.start() as service:
        play = opened(service, 3, payout="iban", payout_days=2, participation_fee=1)
        key = installation.folder / "keys" / "data" / f"{play.id}-payout.key"
        with pytest.raises(Conflict, match="name your price first"):
            service.state_payout(play.token(0), IBANS[0])
        play.bid()
        service.state_payout(play.token(0), IBANS[1])
        seen = service.state_payout(play.token(0), "de89 3704 0044 0532 0130 00")
        assert (seen.shown, seen.may_state, seen.ends_at) == ("\u2022\u2022\u2022\u20223000", True, None)
        play.decide()
        play.deliver()
        service.state_payout(play.token(1), IBANS[1])
        label = play.links[0].label
        assert taken(play) == {label: IBANS[0], play.links[1].label: IBANS[1]}
        last = log(play)[-1]
        assert (last.kind, last.body["by"]) == ("payouts-taken", "ann")
        assert last.body["participants"] == sorted((play.links[0].id, play.links[1].id))
        # she is paid: nobody needs it any more, and it cannot be changed
        service.mark_paid(play.who, play.id, [label])
        assert taken(play) == {play.links[1].label: IBANS[1]}
        with pytest.raises(Conflict, match="marked as paid"):
            service.state_payout(play.token(0), IBANS[2])
        service.mark_unpaid(play.who, play.id, [label])
        assert label in taken(play)
        play.release()
        assert key.exists(), "the end of the key to values is not its end"
        assert service.payout(play.token(0)).ends_at is not None
        installation.clock.pass_(days=2)
        service.tick()
        service.tick()
        assert not key.exists()
        assert kinds(play).count("payouts-destroyed") == 1
        assert taken(play) == {}
        after = service.payout(play.token(0))
        assert (after.shown, after.may_state, after.destroyed_at is None) == (None, False, False)
        assert service.export(play.token(0))["participant"]["payouts_destroyed_at"]
        with pytest.raises(Conflict, match="was destroyed"):
            service.state_payout(play.token(1), IBANS[1])
        assert verify_log(log(play)).ok


def test_withdrawing_removes_a_handle_unless_something_is_due(service: Service) -> None:
    for keeps in (False, True):
        play = opened(service, 3, payout="email", participation_fee=1, fee_after_withdrawal=keeps)
        play.bid()
        service.state_payout(play.token(0), "ann@example.org")
        service.withdraw(play.token(0))
        assert (service.payout(play.token(0)).shown is not None) is keeps
        assert ("payout-removed" in kinds(play)) is not keeps
        assert service.export(play.token(0))["participant"]["payout_is_stored_sealed"] is keeps


def test_nobody_is_asked_where_it_is_of_no_use_and_whoever_said_it_can_take_it_back(service: Service) -> None:
    silent = decided(service, 3)
    with pytest.raises(Conflict, match="does not ask"):
        service.state_payout(silent.token(0), "ann@example.org")
    play = decided(service, 3, payout="panel")
    service.state_payout(play.token(0), "R-17")
    service.remove_payout(play.token(0))
    service.remove_payout(play.token(0))
    assert kinds(play).count("payout-removed") == 1
    play.deliver([1, 2])
    play.release()
    with pytest.raises(Conflict, match="nothing is due to you"):
        service.state_payout(play.token(0), "R-17")
    reading = service.renew_link(play.who, play.id, play.links[1].label)
    assert reading.reads_only
    service.enter(reading.token, "hb_d_" + "r" * 43)
    with pytest.raises(NotAllowed):
        service.state_payout("hb_d_" + "r" * 43, "R-18")


def test_a_restored_key_opens_nothing_and_a_lost_one_leaves_the_payments(installation: Installation) -> None:
    with installation.start() as service:
        play = released(service, 2, payout="email")
        service.state_payout(play.token(0), "ann@example.org")
        (installation.folder / "keys" / "data" / f"{play.id}-payout.key").unlink()
        assert taken(play) == {}
        assert service.payout(play.token(0)).shown is None
        assert len(service.payment_file(play.who, play.id).rows) == 2


def test_a_key_whose_end_was_not_written_down_is_ended_again(installation: Installation) -> None:
    def dies(point: str) -> None:
        if point == "payouts.end.before-commit":
            raise CampaignError("Killed.")

    with installation.start(crash=dies) as service:
        play = released(service, 2, payout="email", payout_days=1)
        service.state_payout(play.token(0), "ann@example.org")
        installation.clock.pass_(days=1)
        with pytest.raises(CampaignError):
            service.tick()
        assert play.view.payouts_destroyed_at is None
        assert service.payout(play.token(0)).shown is None, "the key is gone"
    with installation.start() as service:
        again = play.on(service)
        service.tick()
        assert again.view.payouts_destroyed_at is not None
        assert kinds(again).count("payouts-destroyed") == 1


# -- marks, totals, files ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module", name="paid")
def _paid(common: Service) -> Play:
    """Six people with all fates: one withdrew after she was paid, one dropped out, one was marked as paid."""
    play = decided(common, 6, participation_fee=1.5, payout="email")
    play.deliver([0, 1, 2, 3])
    common.mark_paid(play.who, play.id, [play.links[0].label, play.links[1].label])
    common.withdraw(play.token(0))
    common.state_payout(play.token(2), "=cmd@example.org")
    play.release()
    return play


@pytest.mark.parametrize("common", ["sqlite"], indirect=True)
def test_totals_reconcile_with_the_rows_and_with_the_record(paid: Play) -> None:
    account, rows = paid.service.account(paid.who, paid.id), paid.service.payments(paid.who, paid.id)
    record = Record.from_dict(parsed(paid.service.record(paid.who, paid.id)))
    assert record.money is not None
    assert account.promised == record.money.total == paid.view.total_payment
    assert account.promised - account.dropped - account.withdrawn - account.awaited == account.payments
    assert account.payments == sum(row.payment for row in rows) > 0
    assert (account.fees, account.owed) == (5 * 150, account.payments + account.fees)
    assert account.fees == sum(row.fee for row in rows)
    assert account.owed + account.above == account.paid + account.due
    assert account.above > 0 < account.dropped
    assert account.due == sum(row.due for row in rows) == paid.view.due
    assert account.paid == sum(row.paid for row in rows) == paid.view.paid
    exact = 100 * record.outcome.total_payment
    assert account.rounding == pytest.approx(record.money.total - exact, abs=1e-6)
    assert 0 <= account.rounding < 6
    assert isinstance(account, AccountView)


@pytest.mark.parametrize("common", ["sqlite"], indirect=True)
def test_files_hold_units_and_minor_units_and_no_formula(paid: Play, tmp_path: Any) -> None:
    found = paid.service.payment_file(paid.who, paid.id)
    text = payments_table(found, "csv").decode()
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [row["label"] for row in rows] == [row.label for row in found.rows]
    for row, one in zip(rows, found.rows, strict=True):
        for name in ("payment", "fee", "paid", "due"):
            minor = int(row[f"{name}_minor"])
            assert (minor, row[name]) == (getattr(one, name), f"{minor // 100}.{minor % 100:02d}")
    assert [row["email"] for row in rows if row["email"]] == ["'=cmd@example.org"]
    assert len({row["reference"] for row in rows}) == len(rows)
    book = tmp_path / "payments.xlsx"
    book.write_bytes(payments_table(found, "xlsx"))
    table = read_table(book, needed=["reference", "due", "due_minor"])
    assert [f"{due:.2f}" for due in table.numbers("due")] == [row["due"] for row in rows]
    assert table.numbers("due_minor").tolist() == [row.due for row in found.rows]
    [sheet] = load_workbook(book).worksheets
    cell = next(cell for row in sheet.iter_rows() for cell in row if cell.value == "=cmd@example.org")
    assert cell.data_type == "s", "a text, and no formula"


@pytest.mark.parametrize("common", ["sqlite"], indirect=True)
def test_who_is_awaited_is_exactly_who_is(common: Service, paid: Play) -> None:
    def awaited(play: Play, what: Any = None) -> list[tuple[str, str]]:
        return [(row.label, row.awaited) for row in common.awaited(play.who, play.id, what)]

    labels = [one.label for one in paid.links]
    due = {row.label for row in common.payments(paid.who, paid.id) if row.due}
    assert {label for label, _ in awaited(paid, "payment")} == due
    assert {label for label, _ in awaited(paid, "payout")} == due - {labels[2]}
    assert awaited(paid, "bid") == awaited(paid, "delivery") == []
    play = opened(common, 3)
    play.bid([0])
    assert awaited(play) == [(play.links[1].label, "bid"), (play.links[2].label, "bid")]
    play.bid([1])
    play.decide()
    play.deliver([1])
    assert (play.links[0].label, "delivery") in awaited(play)
    assert [row for row in awaited(play) if row[1] == "delivery"] == [(play.links[0].label, "delivery")]
    rows = list(csv.DictReader(io.StringIO(awaited_table(common.awaited(play.who, play.id), "csv").decode())))
    assert {row["state"] for row in rows} == {ParticipantState.PROMISED.value, ParticipantState.DELIVERED.value}


@pytest.mark.parametrize("common", ["sqlite"], indirect=True)
def test_marks_are_made_for_the_sum_that_was_seen_and_taken_back_by_name(common: Service) -> None:
    play = released(common, 3)
    labels, due = [one.label for one in play.links], play.view.due
    with pytest.raises(Conflict, match="has changed since"):
        common.mark_paid(play.who, play.id, total=due - 1)
    assert play.view.paid == 0
    common.mark_paid(play.who, play.id, total=due)
    assert common.mark_paid(play.who, play.id) == ()
    with pytest.raises(NotFound):
        common.mark_unpaid(play.who, play.id, [labels[0], "nobody"])
    assert [row.label for row in common.mark_unpaid(play.who, play.id, [labels[1], labels[1]])] == [labels[1]]
    assert common.mark_unpaid(play.who, play.id, [labels[1]]) == ()
    row = next(row for row in common.payments(play.who, play.id) if row.label == labels[1])
    assert (row.paid, row.paid_at, row.due) == (0, None, row.payment)
    assert common.participation(play.token(1)).due == row.due
    marks = [event for event in log(play) if event.kind in ("paid", "unpaid")]
    assert [(one.kind, one.body["by"], len(one.body["participants"])) for one in marks] == [
        *(("paid", "ann", 3), ("unpaid", "ann", 1))
    ]
