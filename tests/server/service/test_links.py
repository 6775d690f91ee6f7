"""Links open once: a device exchanges one for a secret of its own, and whoever else holds a copy can do nothing."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from hushbid.errors import Conflict, InputError, NotAllowed, NotFound
from hushbid.receipts.receipt import Body, Receipt
from hushbid.server.model.access import LinkInvalid
from hushbid.server.model.states import ParticipantState
from hushbid.server.service import Service
from hushbid.server.store import campaigns
from hushbid.verification.receipts import verify_receipt
from tests.extent import each
from tests.server.support import (
    NONCE,
    Play,
    decided,
    drafted,
    opened,
    secret_for,
)

HERS, OTHER = secret_for("her device"), secret_for("another")
Attempt = Callable[[Service, str], object]
CHANGES: dict[str, Attempt] = {
    "bid": lambda service, secret: service.bid(secret, 1.5),
    "decline": lambda service, secret: service.decline(secret),
    "deliver": lambda service, secret: service.deliver(secret, 3.0, nonce=NONCE),
    "withdraw": lambda service, secret: service.withdraw(secret),
    "own link": lambda service, secret: service.own_link(secret),
    "end others": lambda service, secret: service.end_other_devices(secret),
}
LOOKS: dict[str, Attempt] = {
    "participation": lambda service, secret: service.participation(secret),
    "menu": lambda service, secret: service.menu(secret),
    "export": lambda service, secret: service.export(secret),
    "privacy_account": lambda service, secret: service.personal_account(secret),
    "devices": lambda service, secret: service.devices(secret),
}


def secret_of(play: Play, row: int) -> str:
    """The secret that her link is exchanged for."""
    secret = secret_for(play.id, row)
    play.service.enter(play.link(row), secret)
    return secret


def test_a_link_opens_once_and_a_lost_answer_is_given_again(common: Service) -> None:
    play = opened(common)
    first = common.enter(play.link(0), HERS)
    assert first.participant == play.links[0].id
    assert common.enter(play.link(0), HERS) == first
    with pytest.raises(
        LinkInvalid, match=r"^This link was used before, on 20\d\d-.* UTC, and opens nothing any more"
    ) as told:
        common.enter(play.link(0), OTHER)
    assert told.value.reason == "used"
    assert told.value.at is not None
    assert common.bid(HERS, 1.5).bid == 1.5
    with pytest.raises(InputError, match="drawn anew for every link"):
        common.enter(play.link(1), HERS)
    common.enter(play.link(1), OTHER)


@pytest.mark.parametrize("attempt", [*CHANGES.values(), *LOOKS.values()], ids=[*CHANGES, *LOOKS])
def test_whoever_holds_a_copy_of_a_link_can_do_nothing_once_it_was_used(common: Service, attempt: Attempt) -> None:
    play = opened(common, 3)
    secret_of(play, 0)
    for copy in (play.link(0), OTHER[:-1] + "x", "hb_d_", ""):
        with pytest.raises(LinkInvalid, match="not valid"):
            attempt(common, copy)
    assert common.participation(play.token(0)).state is ParticipantState.INVITED


@each("secret", ["", "hb_d_", HERS[:-1], HERS + "A", "hb_p_" + HERS[5:], HERS[:-1] + "é", None, 7])
def test_a_secret_must_have_256_bits(common: Service, secret: object) -> None:
    play = opened(common, 2)
    with pytest.raises(InputError, match=r"^secret must be hb_d_ and 43"):
        common.enter(play.link(0), secret)
    with pytest.raises(LinkInvalid, match="not valid"):
        common.enter("hb_p_nonsense", secret_for("nobody"))


def test_a_link_of_her_own_opens_another_device_once_and_the_newest_one_counts(common: Service) -> None:
    play = opened(common, 3)
    here, there = secret_of(play, 0), secret_for(play.id, "there")
    unused, own = common.own_link(here).token, common.own_link(here).token
    with pytest.raises(LinkInvalid, match="replaced by a new one"):
        common.enter(unused, there)
    common.enter(own, there)
    with pytest.raises(LinkInvalid, match="used before"):
        common.enter(own, secret_for(play.id, "elsewhere"))
    both = [common.bid.soon(here, 1.25), common.bid.soon(there, 1.5), common.bid.soon(here, 1.75)]
    assert [one.result().bid for one in both] == [1.25, 1.5, 1.75]
    assert common.participation(there).bid == 1.75
    assert [event.kind for event in common.events(play.who, play.id)].count("bid-changed") == 2
    assert [link["made_by"] for link in common.export(there)["links"] if link["used_at"]] == ["analyst", "herself"]


def test_before_a_delivery_a_new_link_ends_every_old_one_and_says_so(common: Service) -> None:
    play = opened(common, ["a@x", "b@x"])
    her = secret_of(play, 0)
    own = common.own_link(her).token
    new = common.renew_link(play.who, play.id, "a@x")
    assert not new.reads_only
    for old in (play.link(0), own):
        with pytest.raises(LinkInvalid, match=r"A new link was made for you|replaced by a new one"):
            common.enter(old, her)
    for attempt in (*CHANGES.values(), *LOOKS.values()):
        with pytest.raises(LinkInvalid, match="A new link was made for you on") as told:
            attempt(common, her)
        assert told.value.reason == "ended"
    seen = common.enter(new.token, secret_for(play.id, "new"))
    assert (len(seen.renewed), seen.reads_only) == (1, False)
    assert common.participation(play.token(1)).renewed == ()


def test_after_a_delivery_a_new_link_only_reads_and_her_own_secret_goes_on(common: Service) -> None:
    play = decided(common, ["a@y", "b@y", "c@y"])
    play.deliver([0])
    new = common.renew_link(play.who, play.id, "a@y")
    assert new.reads_only
    reader = secret_for(play.id, "reader")
    assert common.enter(new.token, reader).reads_only
    for attempt in CHANGES.values():
        with pytest.raises(NotAllowed, match="only reads"):
            attempt(common, reader)
    for attempt in LOOKS.values():
        attempt(common, reader)
    assert common.participation(reader).state is ParticipantState.DELIVERED
    newer = common.renew_link(play.who, play.id, "a@y")
    assert common.enter(newer.token, secret_for(play.id, "second")).reads_only
    assert len(common.participation(play.token(0)).renewed) == 2
    assert common.withdraw(play.token(0)).state is ParticipantState.WITHDRAWN


def let_in(play: Play, row: int) -> tuple[str, str]:
    """Somebody uses her link before her and sends her a link for another device: the two secrets, hers last."""
    first, hers = secret_of(play, row), secret_for(play.id, row, "second")
    play.service.enter(play.service.own_link(first).token, hers)
    return first, hers


def test_a_link_for_another_device_cannot_be_taken_for_an_invitation(common: Service) -> None:
    play = opened(common, 3)
    first, hers = let_in(play, 0)
    assert play.link(0).startswith("hb_p_")
    token = common.own_link(first).token
    assert token.startswith("hb_device_")
    with pytest.raises(LinkInvalid, match="not valid"):
        common.enter("hb_p_" + token.removeprefix("hb_device_"), OTHER)
    seen = common.devices(hers)
    assert [(one.by, one.here) for one in seen.devices] == [("analyst", False), ("herself", True)]
    assert (len(seen.made), len(seen.used), seen.unused) == (2, 1, 1)
    assert seen.let_in_at is not None
    assert seen.open_since == seen.devices[0].since
    assert common.devices(first).let_in_at is None


def test_links_for_other_devices_stand_in_the_log_and_on_the_receipt(common: Service) -> None:
    play = decided(common, ["a@d", "b@d", "c@d"])
    common.enter(common.own_link(play.token(1)).token, secret_for(play.id, "b"))
    play.deliver([0, 1, 2])
    assert play.release().state == "done"
    log = common.events(play.who, play.id)
    hers = [event for event in log if event.body.get("participant") == play.links[1].id]
    made, used = ([event.at for event in hers if event.kind == kind] for kind in ("own-link-made", "own-link-used"))
    receipt = common.receipt(play.token(1))
    assert (list(receipt.body.own_links), list(receipt.body.own_links_used)) == (made, used)
    assert (len(made), len(used)) == (1, 1)
    assert Receipt.from_dict(receipt.to_dict()) == receipt
    assert verify_receipt(receipt, root=play.view.root, log=log).ok
    for name in ("own_links", "own_links_used"):
        silent = Receipt.from_dict({**receipt.to_dict(), "body": replace(receipt.body, **{name: ()}).to_dict()})
        assert "log" in verify_receipt(silent, log=log).failed
    plain = common.receipt(play.token(0))
    assert not {"own_links", "own_links_used"} & set(plain.body.to_dict())
    common.own_link(play.token(0))
    assert common.receipt(play.token(0)) == plain
    assert len(common.devices(play.token(0)).made) == 1


def test_every_device_can_end_all_others_and_what_it_ended_says_so(common: Service) -> None:
    play = opened(common, ["a@e", "b@e"])
    first, hers = let_in(play, 0)
    unused = common.own_link(first).token
    left = common.end_other_devices(hers)
    assert [one.here for one in left.devices] == [True]
    assert left.unused == 0
    for attempt in (*CHANGES.values(), *LOOKS.values()):
        with pytest.raises(LinkInvalid, match="from another device") as told:
            attempt(common, first)
        assert told.value.reason == "closed"
    for link, secret in ((unused, secret_for(play.id, "late")), (play.link(0), first)):
        with pytest.raises(LinkInvalid, match="from another device"):
            common.enter(link, secret)
    common.end_other_devices(hers)
    ended = [event.body for event in common.events(play.who, play.id) if event.kind == "devices-ended"]
    assert ended == [{"participant": play.links[0].id, "links": 2}]
    assert common.bid(hers, 1.5).bid == 1.5


def test_after_a_delivery_only_the_device_that_delivered_and_those_it_lets_in_change_anything(common: Service) -> None:
    play = decided(common, 3)
    here, hers = play.token(0), secret_for(play.id, "hers")
    common.enter(common.own_link(here).token, hers)
    waiting = common.own_link(here).token
    soon = [common.deliver.soon(hers, 3.0, nonce=NONCE), common.bid.soon(here, 1.5)]
    soon[0].result()
    with pytest.raises((NotAllowed, Conflict)):
        soon[1].result()
    late = secret_for(play.id, "late")
    assert common.enter(waiting, late).reads_only
    for reader in (here, late):
        for attempt in CHANGES.values():
            with pytest.raises(NotAllowed, match="only reads"):
                attempt(common, reader)
        assert common.participation(reader).reads_only
    third = secret_for(play.id, "third")
    assert not common.enter(common.own_link(hers).token, third).reads_only
    assert len(common.end_other_devices(third).devices) == 1
    assert common.withdraw(third).state is ParticipantState.WITHDRAWN


def test_a_link_renewed_after_a_delivery_that_was_withdrawn_only_reads_and_ends_nothing(common: Service) -> None:
    play = decided(common, ["a@f", "b@f", "c@f"])
    play.deliver([0])
    common.withdraw(play.token(0))
    new = common.renew_link(play.who, play.id, "a@f")
    assert new.reads_only
    assert common.enter(new.token, secret_for(play.id, "reader")).reads_only
    assert common.participation(play.token(0)).state is ParticipantState.WITHDRAWN


def test_whoever_leaves_ends_her_secret_and_its_link_and_nothing_else(common: Service) -> None:
    play = opened(common, 3)
    first, hers = let_in(play, 0)
    common.leave(first)
    with pytest.raises(LinkInvalid, match="If that was not you") as told:
        common.participation(first)
    assert told.value.reason == "left"
    for secret in (first, secret_for(play.id, "owner")):  # an invitation may have been opened and left by somebody else
        with pytest.raises(LinkInvalid, match="If that was not you"):
            common.enter(play.link(0), secret)
    assert len(common.devices(hers).devices) == 1
    kinds = [event.kind for event in common.events(play.who, play.id)]
    assert (kinds.count("device-left"), kinds.count("devices-ended")) == (1, 0)
    late = secret_for(play.id, "late")
    common.enter(common.own_link(hers).token, late)
    assert common.devices(late).open_since == common.devices(hers).open_since  # a device that left was there first


def test_no_device_is_let_in_while_the_receipts_are_being_made(common: Service) -> None:
    play = decided(common, 2)
    token = common.own_link(play.token(0)).token

    def put(state: str) -> None:
        common._write("test", lambda tx: campaigns.change(tx.connection, play.id, state=state))

    put("releasing")
    for attempt in (lambda: common.own_link(play.token(0)), lambda: common.enter(token, secret_for(play.id, "late"))):
        with pytest.raises(Conflict, match="ask again in a moment"):
            attempt()
    put("delivering")
    common.enter(token, secret_for(play.id, "late"))


def test_new_links_stand_in_the_log_and_on_the_receipt(common: Service) -> None:
    play = decided(common, ["a@z", "b@z", "c@z"])
    common.renew_link(play.who, play.id, "b@z")
    hers = play.on(common)
    common.enter(common.renew_link(play.who, play.id, "b@z").token, secret_for(play.id, "b"))
    play.deliver([0, 2])
    assert play.release().state == "done"
    log = common.events(play.who, play.id)
    made = [event for event in log if event.kind == "link-renewed"]
    assert [event.body for event in made] == [{"participant": play.links[1].id, "reads_only": False}] * 2
    receipt = common.receipt(secret_for(play.id, "b"))
    assert receipt.body.renewed == tuple(event.at for event in made)
    assert verify_receipt(receipt, root=hers.view.root, log=log).ok
    silent = Receipt.from_dict({**receipt.to_dict(), "body": replace(receipt.body, renewed=()).to_dict()})
    assert "log" in verify_receipt(silent, log=log).failed
    assert common.receipt(play.token(0)).body.renewed == ()
    before = common.receipt(play.token(0))
    common.renew_link(play.who, play.id, "a@z")
    after = common.receipt(play.token(0))
    assert after == before, "what happens after the end is in the log, not on the receipt"
    assert verify_receipt(after, log=common.events(play.who, play.id)).ok
    assert len(common.participation(play.token(0)).renewed) == 1


@each("renewed", [[], "x", ["x"], ["2026-03-02T12:00:00.000000Z", "2026-03-01T12:00:00.000000Z"], [7]])
def test_a_receipt_lists_times_of_new_links_in_order_or_none(common: Service, renewed: object) -> None:
    from hushbid.errors import RecordError

    body = {**dict.fromkeys(("bid", "promised", "delivered")), "campaign": "c", "participant": "p"}
    body |= {"state": "absent", "payment": 0, "fee": 0, "currency": "EUR", "decimals": 2, "salt": "00" * 32}
    assert Body.from_dict(body).to_dict() == body
    with pytest.raises(RecordError, match="renewed"):
        Body.from_dict({**body, "renewed": renewed})


def test_no_link_is_renewed_while_the_receipts_are_being_made(common: Service) -> None:
    play = decided(common, ["a@w", "b@w"])

    def put(state: str) -> None:
        common._write("test", lambda tx: campaigns.change(tx.connection, play.id, state=state))

    put("releasing")
    with pytest.raises(Conflict, match="ask again in a moment"):
        common.renew_link(play.who, play.id, "a@w")
    put("delivering")


def test_a_discarded_draft_takes_its_links_along(common: Service) -> None:
    play = drafted(common, 2)
    secret = secret_of(play, 0)
    common.discard(play.who, play.id)
    with pytest.raises(NotFound):
        common.campaign(play.who, play.id)
    with pytest.raises(LinkInvalid, match="not valid"):
        common.participation(secret)
    with pytest.raises(LinkInvalid, match="not valid"):
        common.enter(play.link(1), secret_for(play.id, "late"))
