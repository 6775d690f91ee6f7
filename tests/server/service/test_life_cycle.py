"""A campaign from draft to closed, and every way it can end, on both stores."""

import math

import pytest

from hushbid.common.documents import parsed
from hushbid.disclosure import privatize
from hushbid.errors import BidError, Conflict, DataError, InputError, NotFound
from hushbid.priors import Uniform
from hushbid.record import Record
from hushbid.server.installation import DataDir
from hushbid.server.model.states import CampaignState, ParticipantState
from hushbid.server.service import Service
from hushbid.server.store.database import Database
from hushbid.server.vault import Vault
from hushbid.verification.receipts import verify_log, verify_logged_record, verify_receipt
from hushbid.verification.verifying import verify
from tests.server.support import (
    NONCE,
    Installation,
    decided,
    drafted,
    on_both_stores,
    open_now,
    opened,
    released,
    settings,
)


@on_both_stores
@pytest.mark.parametrize("setting", ["central", "local"])
def test_a_whole_campaign_ends_with_one_estimate_that_everybody_can_check(service: Service, setting: str) -> None:
    play = opened(service, 6, setting=setting, participation_fee=1, buyer_weight=2.0)
    play.bid(range(5))
    service.decline(play.token(5))
    assert play.decide().state == "done"
    promised = [row for row in range(5) if service.participation(play.token(row)).promised]
    play.deliver(promised[1:])
    assert play.release().state == "done"
    view = play.view
    assert view.state is CampaignState.RELEASED
    assert view.release is not None
    assert math.isfinite(view.release["estimate"])
    record = Record.from_dict(parsed(service.record(play.who, play.id)))
    log = service.events(play.who, play.id)
    assert verify_logged_record(record, log=log).ok
    assert verify_log(log, root=view.root, record=record).ok
    keys = service.keys()
    for link in play.seats:
        receipt = service.receipt(link.token)
        found = verify_receipt(
            receipt, fingerprint=keys.newest.fingerprint, keys=keys, root=view.root, log=log, record=record
        )
        assert found.ok, found
    seen = service.participation(play.token(0)).estimate
    assert seen == {
        name: value for name, value in view.release.items() if name not in ("delivered_half_width", "normal_half_width")
    }


def test_a_copy_is_a_draft_with_the_same_settings_and_nobody_in_it(service: Service) -> None:
    play = released(service)
    copy = service.copy(play.who, play.id, "Hours of sleep, again")
    assert copy.settings == play.view.settings.changed({"title": "Hours of sleep, again"})
    assert (copy.state, copy.people, copy.release, copy.root) == (CampaignState.DRAFT, {}, None, None)
    [event] = service.events(play.who, copy.id)
    assert (event.kind, event.body) == ("drafted", {"by": play.who.name, "copy_of": play.id})
    with pytest.raises(InputError, match="title must be a text of 1 to 200 characters"):
        service.copy(play.who, play.id, " ")
    with pytest.raises(NotFound):
        service.copy(play.who, "c0", "Of nothing")
    service.discard(play.who, copy.id)
    assert play.view.state is CampaignState.RELEASED


def test_a_copy_has_no_deadlines_and_opens_after_those_of_the_original_have_passed(installation: Installation) -> None:
    with installation.start() as service:
        now = installation.clock.now
        play = opened(service, 3, bid_by=now.replace(hour=18), deliver_by=now.replace(hour=20), automatic=True)
        installation.clock.pass_(days=2)
        copy = service.copy(play.who, play.id, "Again")
        server = copy.settings.server
        assert (server.bid_by, server.deliver_by, server.automatic) == (None, None, False)
        service.invite(play.who, copy.id, count=3)
        assert open_now(service, play.who, copy.id).state is CampaignState.BIDDING


def test_what_is_too_small_for_this_server_is_not_copied_and_the_refusal_says_why(installation: Installation) -> None:
    with installation.start() as service:
        play = drafted(service, 3)
    home = DataDir.at(installation.folder)
    database = Database.sqlite(home.database) if installation.url is None else Database(installation.url)
    with Service(home, database, clock=installation.clock) as strict:
        with pytest.raises(Conflict, match="content with 2 people, and this server asks for at least 5") as refused:
            strict.copy(play.who, play.id, "Again")
        assert refused.value.field == "minimum_people"


@pytest.mark.parametrize("name", ["bid_by", "deliver_by"])
def test_a_campaign_does_not_open_after_one_of_its_deadlines(installation: Installation, name: str) -> None:
    with installation.start() as service:
        play = drafted(service, 3, **{name: installation.clock.now.replace(hour=18)})
        installation.clock.pass_(days=1)
        with pytest.raises(Conflict, match=f"has passed already: change {name} first") as refused:
            open_now(service, play.who, play.id)
        assert refused.value.field == name
        assert play.view.state is CampaignState.DRAFT


def test_states_of_people_after_every_step(service: Service) -> None:
    play = opened(service, 7)
    assert play.view.people == {"invited": 7}
    play.bid(range(5))
    service.decline(play.token(5))
    service.withdraw(play.token(4))
    assert play.view.people == {"declined": 1, "invited": 1, "bid": 4, "withdrawn": 1}
    play.decide()
    assert play.view.people == {"absent": 1, "declined": 1, "promised": 4, "withdrawn": 1}
    play.deliver([0, 1, 2])
    service.withdraw(play.token(2))
    assert play.view.people == {"absent": 1, "declined": 1, "delivered": 2, "promised": 1, "withdrawn": 2}
    play.release()
    assert play.view.people == {"absent": 1, "declined": 1, "delivered": 2, "dropped": 1, "withdrawn": 2}
    assert service.close_campaign(play.who, play.id, accept_unpaid=True).state is CampaignState.CLOSED


def test_the_last_bid_counts_and_the_same_one_again_changes_nothing(service: Service) -> None:
    play = opened(service)
    play.bid()
    before = len(service.events(play.who, play.id))
    assert service.bid(play.token(0), 1.0).bid == 1.0
    assert len(service.events(play.who, play.id)) == before
    assert service.bid(play.token(0), 1.75).bid == 1.75
    assert [event.kind for event in service.events(play.who, play.id)[before:]] == ["bid-changed"]
    play.decide()
    record = Record.from_dict(parsed(service.record(play.who, play.id)))
    assert record.ids is not None
    assert record.outcome.bids[record.ids.index(play.links[0].id)] == 1.75


def test_a_bid_that_is_no_price_is_refused_without_repeating_it(service: Service) -> None:
    play = opened(service, 2)
    for value in (0.99, -1, math.nan, math.inf, -math.inf, "1.5", None, True, 10**400, [1.5]):
        with pytest.raises(BidError, match="from 1 up") as refusal:
            service.bid(play.token(0), value)
        assert "0.99" not in str(refusal.value)
    assert service.participation(play.token(0)).state is ParticipantState.INVITED


def test_bids_after_the_deadline_or_the_decision_are_refused(installation: Installation) -> None:
    with installation.start() as service:
        by = installation.clock.now.replace(hour=18)
        play = opened(service, 3, bid_by=by)
        play.bid([0, 1])
        installation.clock.pass_(hours=6)
        with pytest.raises(Conflict, match="deadline for bids"):
            service.bid(play.token(2), 1.5)
        with pytest.raises(Conflict, match="deadline for bids"):
            service.decline(play.token(2))
        play.decide()
        with pytest.raises(Conflict, match="made its decision"):
            service.bid(play.token(2), 1.5)


def test_the_first_delivery_counts_and_later_ones_are_answered_alike_whatever_they_carry(service: Service) -> None:
    play = decided(service)
    assert service.deliver(play.token(0), 3, nonce=NONCE).state is ParticipantState.DELIVERED
    before = service.events(play.who, play.id)
    anything: list[object] = [3.0, 4.0, 11.0, math.nan, "3", None, {"value": 3}]
    for given in anything:
        assert service.deliver(play.token(0), given, nonce=NONCE).state is ParticipantState.DELIVERED
        with pytest.raises(Conflict, match=r"^Something was delivered before, and the first delivery stands\.$"):
            service.deliver(play.token(0), given, nonce=NONCE[::-1])
    assert service.events(play.who, play.id) == before
    service.withdraw(play.token(0))
    with pytest.raises(Conflict, match="withdrew"):
        service.deliver(play.token(0), 3.0, nonce=NONCE)


def test_a_delivery_needs_a_nonce_of_128_bits(service: Service) -> None:
    play = decided(service, 2)
    for nonce in ("", "0f" * 15, "0F" * 16, "0f" * 17, "x" * 32, None, 7, "٠" * 32):
        with pytest.raises(InputError, match=r"^nonce must be 32 hexadecimal digits"):
            service.deliver(play.token(0), 3.0, nonce=nonce)
    assert service.participation(play.token(0)).state is ParticipantState.PROMISED


def test_a_later_delivery_is_answered_without_opening_the_first(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    play = decided(service, 2)
    service.deliver(play.token(0), 3.0, nonce=NONCE)

    def opened_(*_: object) -> bytes:
        raise AssertionError("nothing may be opened")

    monkeypatch.setattr(Vault, "open", opened_)
    monkeypatch.setattr(Vault, "seal", opened_)
    service.deliver(play.token(0), 3.0, nonce=NONCE)
    with pytest.raises(Conflict):
        service.deliver(play.token(0), 3.0, nonce=NONCE[::-1])


def test_a_central_value_outside_the_range_is_refused_without_repeating_it(service: Service) -> None:
    play = decided(service, 2)
    for value in (-0.01, 10.01, math.nan, math.inf, "3", None, True, 10**400, {"value": 3}):
        with pytest.raises(DataError, match=r"from 0 to 10\.$"):
            service.deliver(play.token(0), value, nonce=NONCE)
    assert service.participation(play.token(0)).state is ParticipantState.PROMISED


def test_a_local_message_must_be_made_with_exactly_the_promised_loss(service: Service) -> None:
    from hushbid.disclosure import privatize

    play = decided(service, 3, setting="local")
    seen = service.participation(play.token(0))
    assert seen.promised
    right = privatize(5.0, seen.promised, seen.bounds).to_dict()
    for wrong in (
        5.0,
        privatize(5.0, seen.promised / 2, seen.bounds).to_dict(),
        privatize(5.0, seen.promised * 2, seen.bounds).to_dict(),
        {**right, "grid_bits": 20},
        {**right, "value": 5},
        {**right, "more": 1},
    ):
        with pytest.raises(DataError, match=r"^message "):
            service.deliver(play.token(0), wrong, nonce=NONCE)
    service.deliver(play.token(0), right, nonce=NONCE)
    service.deliver(play.token(0), right, nonce=NONCE)
    for given in (right, privatize(5.0, seen.promised, seen.bounds).to_dict()):
        with pytest.raises(Conflict, match="first delivery stands"):
            service.deliver(play.token(0), given, nonce=NONCE[::-1])


def test_deliveries_after_the_deadline_are_refused_but_a_repeated_one_is_acknowledged(
    installation: Installation,
) -> None:
    with installation.start() as service:
        now = installation.clock.now
        play = decided(service, 3, bid_by=now.replace(hour=18), deliver_by=now.replace(hour=20))
        service.deliver(play.token(0), 3.0, nonce=NONCE)
        installation.clock.pass_(hours=9)
        with pytest.raises(Conflict, match="deadline for data"):
            service.deliver(play.token(1), 3.0, nonce=NONCE)
        assert service.deliver(play.token(0), 3.0, nonce=NONCE).state is ParticipantState.DELIVERED
        play.release()
        assert service.deliver(play.token(0), 3.0, nonce=NONCE).state is ParticipantState.DELIVERED
        with pytest.raises(Conflict, match="estimate was released"):
            service.deliver(play.token(1), 3.0, nonce=NONCE)


def test_nobody_delivers_from_whom_nothing_is_bought(service: Service) -> None:
    play = opened(service, 3)
    play.bid([0, 1])
    service.bid(play.token(2), 5.0)
    play.decide()
    assert service.participation(play.token(2)).state is ParticipantState.NOT_BOUGHT
    with pytest.raises(Conflict, match="nothing to deliver"):
        service.deliver(play.token(2), 3.0, nonce=NONCE)


def test_with_too_few_bids_nothing_is_bought_and_fees_are_due(service: Service) -> None:
    play = opened(service, 4, minimum_people=3, participation_fee=2.5)
    play.bid([0, 1])
    assert play.decide().state == "done"
    view = play.view
    assert view.state is CampaignState.NOTHING_BOUGHT
    assert view.state.is_final
    assert view.reason == "Only 2 of the at least 3 people needed bid."
    assert (view.due, view.people) == (500, {"absent": 2, "not_bought": 2})
    assert service.receipt(play.token(0)).body.fee == 250
    assert service.receipt(play.token(2)).body.state == "absent"
    with pytest.raises(NotFound):
        service.record(play.who, play.id)
    assert len(service.mark_paid(play.who, play.id)) == 2
    assert play.view.due == 0


def test_if_everybody_asks_for_too_much_nothing_is_bought_and_the_record_says_so(service: Service) -> None:
    play = opened(service, 2)
    for link in play.seats:
        service.bid(link.token, 3.0)
    play.decide()
    assert play.view.state is CampaignState.NOTHING_BOUGHT
    assert verify(Record.from_dict(parsed(service.record(play.who, play.id)))).ok
    assert service.participation(play.token(0)).promised == 0.0
    with pytest.raises(Conflict, match="nothing was bought"):
        service.release(play.who, play.id)


def test_if_nobody_delivers_there_is_no_estimate_and_fees_are_due(installation: Installation) -> None:
    with installation.start() as service:
        play = decided(service, 3, participation_fee=1)
        with pytest.raises(Conflict, match="Nobody has delivered yet"):
            service.release(play.who, play.id)
        assert play.release(accept_nobody=True).state == "done"
        view = play.view
        assert view.state is CampaignState.UNDELIVERED
        assert (view.release, view.due, view.people) == (None, 300, {"dropped": 3})
        assert service.receipt(play.token(0)).body.delivered is None
        assert view.key_destroyed_at is not None


def test_withdrawing_before_the_decision_erases_the_bid(service: Service) -> None:
    play = opened(service, 4)
    play.bid()
    assert service.withdraw(play.token(0)).bid is None
    assert service.withdraw(play.token(0)).state is ParticipantState.WITHDRAWN
    with pytest.raises(Conflict, match="you withdrew"):
        service.bid(play.token(0), 1.5)
    play.decide()
    record = Record.from_dict(parsed(service.record(play.who, play.id)))
    assert record.ids is not None
    assert play.links[0].id not in record.ids


def test_withdrawing_after_delivery_counts_as_dropping_out_and_is_too_late_after_the_release(
    service: Service,
) -> None:
    play = decided(service, 4)
    play.deliver()
    service.withdraw(play.token(0))
    with pytest.raises(Conflict, match="you withdrew"):
        service.deliver(play.token(0), 3.0, nonce=NONCE)
    play.release()
    record = Record.from_dict(parsed(service.record(play.who, play.id)))
    assert record.release is not None
    assert record.ids is not None
    assert record.release.dropped_out == (record.ids.index(play.links[0].id),)
    with pytest.raises(Conflict, match="estimate was released"):
        service.withdraw(play.token(1))


@pytest.mark.parametrize("kept", [False, True])
def test_whoever_withdraws_keeps_the_fee_only_if_the_settings_say_so(service: Service, kept: bool) -> None:
    play = opened(service, 4, participation_fee=1, fee_after_withdrawal=kept)
    play.bid()
    service.withdraw(play.token(0))
    play.decide()
    service.withdraw(play.token(1))
    dues = [service.participation(link.token).due for link in play.seats]
    assert dues == [100 * kept, 100 * kept, 100, 100]


def test_drop_outs_change_nobodys_payment(service: Service) -> None:
    play = decided(service, 5)
    before = [service.participation(link.token).payment for link in play.seats]
    play.deliver([0, 2])
    play.release()
    rows = {row.label: row for row in service.payments(play.who, play.id)}
    assert {label: row.payment for label, row in rows.items()} == {play.links[row].label: before[row] for row in (0, 2)}


def test_a_person_is_paid_as_soon_as_she_delivered_whatever_the_others_do(service: Service) -> None:
    play = decided(service, 3, participation_fee=1)
    service.deliver(play.token(0), 3.0, nonce=NONCE)
    first = service.mark_paid(play.who, play.id, [play.links[0].label])
    assert [(row.due, row.fee) for row in first] == [(first[0].payment + 100, 100)]
    assert service.mark_paid(play.who, play.id, [play.links[0].label]) == ()
    service.mark_paid(play.who, play.id)
    assert service.participation(play.token(1)).paid == 100
    play.deliver([1, 2])
    play.release()
    with pytest.raises(Conflict, match="2 people are still to be paid"):
        service.close_campaign(play.who, play.id)
    assert len(service.mark_paid(play.who, play.id)) == 2
    assert service.close_campaign(play.who, play.id).state is CampaignState.CLOSED
    assert play.view.due == 0


def test_a_campaign_can_be_cancelled_until_bidding_closes_and_bidders_keep_their_fee(service: Service) -> None:
    play = opened(service, 3, participation_fee=1)
    play.bid([0])
    view = service.cancel(play.who, play.id, "The study was withdrawn.")
    assert (view.state, view.due, view.reason) == (CampaignState.CANCELLED, 100, "The study was withdrawn.")
    assert service.receipt(play.token(0)).body.fee == 100
    with pytest.raises(Conflict, match="was cancelled"):
        service.bid(play.token(1), 1.5)
    late = decided(service, 2)
    with pytest.raises(Conflict, match="made its decision"):
        service.cancel(late.who, late.id, "Too late.")


@on_both_stores
def test_automatic_campaigns_move_on_when_deadlines_pass(installation: Installation) -> None:
    with installation.start() as service:
        now = installation.clock.now
        deadlines = {"bid_by": now.replace(hour=18), "deliver_by": now.replace(hour=20)}
        play = opened(service, 3, automatic=True, **deadlines)
        by_hand = opened(service, 3, **deadlines)
        play.bid()
        service.tick()
        assert play.view.state is CampaignState.BIDDING
        installation.clock.pass_(hours=7)
        service.tick()
        service.wait(service.jobs(play.who, play.id)[0])
        assert play.view.state is CampaignState.DELIVERING
        play.deliver([0])
        installation.clock.pass_(hours=2)
        service.tick()
        service.wait(service.jobs(play.who, play.id)[0])
        assert play.view.state is CampaignState.RELEASED
        assert by_hand.view.state is CampaignState.BIDDING


def test_groups_are_priced_by_their_own_priors(service: Service) -> None:
    people = [("a@x", "young"), ("b@x", "young"), ("c@x", "old"), ("d@x", "old")]
    priors = {"young": Uniform(0.5, 1), "old": Uniform(2, 3)}
    play = opened(service, people, prior=priors, participation_fee=0.01)
    with pytest.raises(BidError, match="from 2 up"):
        service.bid(play.token(2), 0.75)
    for row, bid in enumerate((0.6, 0.9, 2.1, 2.2)):
        service.bid(play.token(row), bid)
    assert service.menu(play.token(0)).bids[0] == 0.5
    assert service.menu(play.token(2)).bids[0] == 2.0
    assert play.decide().state == "done"
    assert verify(Record.from_dict(parsed(service.record(play.who, play.id)))).ok


def test_a_draft_is_invisible_until_it_opens(service: Service) -> None:
    play = drafted(service)
    with pytest.raises(NotFound):
        service.public(play.id)
    with pytest.raises(Conflict, match="not opened"):
        service.bid(play.token(0), 1.5)
    with pytest.raises(NotFound, match="not opened"):
        service.menu(play.token(0))
    service.change(play.who, play.id, settings(title="Another title"))
    open_now(service, play.who, play.id)
    assert service.public(play.id).title == "Another title"
    with pytest.raises(Conflict):
        service.change(play.who, play.id, settings())
    with pytest.raises(Conflict):
        service.invite(play.who, play.id, count=1)
    with pytest.raises(Conflict):
        service.discard(play.who, play.id)


def test_two_campaigns_with_equal_settings_and_bids_have_estimates_of_their_own(service: Service) -> None:
    one, two = (released(service, 3) for _ in range(2))
    first = Record.from_dict(parsed(service.record(one.who, one.id)))
    assert one.view.release is not None
    assert two.view.release is not None
    assert one.view.release["estimate"] != two.view.release["estimate"]
    assert first.release is not None
    assert first.release.key == first.outcome_key


def test_a_message_that_no_noise_could_have_made_is_refused_at_the_door(service: Service) -> None:
    play = decided(service, 3, setting="local")
    promised = service.participation(play.token(0)).promised
    assert promised is not None
    honest = privatize(5.0, promised, (0, 10)).to_dict()
    for far in (2**63 - 1, -(2**63)):
        with pytest.raises(DataError, match="within 50 noise scales of the range"):
            service.deliver(play.token(0), {**honest, "value": str(far)}, nonce="f" * 32)
    assert service.participation(play.token(0)).state is ParticipantState.PROMISED
