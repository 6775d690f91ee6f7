"""Receipts: signed, included, and every change found."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from hushbid.common.documents import parsed
from hushbid.errors import HushbidError, RecordError
from hushbid.mechanism import Market
from hushbid.priors import Uniform
from hushbid.receipts.keys import SigningKey, first_list, rotated
from hushbid.receipts.log import Event, bid_commitment, next_event
from hushbid.receipts.receipt import Body, Receipt, in_order, issue, new_salt, tree_of
from hushbid.record import Record
from hushbid.verification.receipts import verify_receipt
from tests.extent import each

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
KEY = SigningKey(bytes(range(32)))
BIDS = [1.1, 1.25, 1.9]


def people() -> list[Body]:
    """Three participants of a real campaign, and one who declined."""
    record = record_of()
    assert record.money is not None
    bodies = [
        Body(
            campaign="c1",
            participant=f"p{row}",
            state="delivered",
            bid=bid,
            promised=float(record.outcome.privacy_loss[row]),
            delivered=float(record.outcome.privacy_loss[row]),
            payment=int(record.money.payments[row]),
            fee=100,
            currency="EUR",
            decimals=2,
            salt=bytes([row]) * 32,
        )
        for row, bid in enumerate(BIDS)
    ]
    nothing: dict[str, Any] = {"bid": None, "promised": None, "delivered": None, "payment": 0}
    return [*bodies, replace(bodies[0], participant="p9", state="declined", salt=b"9" * 32, **nothing)]


def record_of() -> Record:
    outcome = Market(prior=Uniform(1, 2), variance=0.25, user_weight=0.0, buyer_weight=1.0).acquire(BIDS)
    return Record.of(outcome, ids=["p0", "p1", "p2"], currency="EUR", decimals=2)


def log_of(bodies: list[Body]) -> list[Event]:
    """A log that holds everybody's commitment, and then the root."""
    log: list[Event] = []

    def add(kind: str, **body: Any) -> None:
        log.append(next_event("c1", log[-1].head if log else None, at=NOON, kind=kind, body=body))

    add("opened")
    for body in bodies:
        if body.bid is not None:
            told = bid_commitment(body.participant, body.bid, body.salt)
            add("bid", participant=body.participant, bid_commitment=told)
    tree = tree_of(bodies)
    add("released", root=tree.root.hex(), tree_size=tree.size, record=record_of().hash)
    add("closed")
    return log


def receipts(key: SigningKey = KEY) -> list[Receipt]:
    bodies = people()
    tree, event = tree_of(bodies), log_of(bodies)[-2].head
    return [issue(body, tree=tree, index=k, event=event, key=key) for k, body in enumerate(in_order(bodies))]


def status(receipt: Receipt, check: str, **known: Any) -> str:
    return next(one.status for one in verify_receipt(receipt, **known).checks if one.name == check)


def test_a_true_receipt_passes_every_check_there_is() -> None:
    for receipt in receipts():
        known = {"fingerprint": KEY.public.fingerprint, "root": receipt.root.hex(), "log": log_of(people())}
        found = verify_receipt(receipt, **known, record=record_of(), keys=first_list(KEY, at=NOON))
        assert {check.status for check in found.checks} == {"holds"}, found.summary()


def test_without_anything_to_compare_with_the_open_questions_are_named() -> None:
    found = verify_receipt(receipts()[0])
    assert found.ok
    assert {check.name for check in found.checks if check.status == "skipped"} == {"key", "root", "log", "record"}
    assert KEY.public.fingerprint in found.summary()


def test_a_receipt_is_the_same_each_time_it_is_issued() -> None:
    assert [one.to_json() for one in receipts()] == [one.to_json() for one in receipts()]


def test_a_change_of_any_byte_is_found() -> None:
    """Every byte of the file, replaced by several others: it cannot be read any more, or a check fails."""
    text = receipts()[1].to_json().removesuffix(b"\n")
    root = receipts()[1].root.hex()
    for place in range(len(text)):
        for other in {text[place] ^ 1, text[place] ^ 32, ord("0"), ord("1"), ord(" ")} - {text[place]}:
            changed = text[:place] + bytes([other]) + text[place + 1 :]
            try:
                receipt = Receipt.from_dict(parsed(changed))
            except HushbidError:
                continue
            found = verify_receipt(receipt, fingerprint=KEY.public.fingerprint, root=root)
            assert not found.ok, changed


@each(
    ("field", "value"),
    [("bid", 1.26), ("promised", 99.0), ("delivered", 0.0), ("payment", 1), ("fee", 0), ("state", "dropped")],
)
def test_a_server_that_changes_a_fact_cannot_prove_it_under_the_published_root(field: str, value: Any) -> None:
    true = receipts()[1]
    forged = replace(true, body=replace(true.body, **{field: value}))
    content = {name: part for name, part in forged.to_dict().items() if name != "signature"}
    forged = replace(forged, signature=KEY.sign("hushbid-receipt v2", content))
    assert forged.signed
    assert status(forged, "inclusion") == "fails"
    assert status(true, "inclusion") == "holds"


def test_a_receipt_signed_with_another_key_is_found_by_the_fingerprint() -> None:
    stranger = receipts(SigningKey.create())[0]
    assert stranger.signed
    assert status(stranger, "key", fingerprint=KEY.public.fingerprint) == "fails"
    assert status(stranger, "key", keys=first_list(KEY, at=NOON)) == "fails"


def test_after_a_rotation_receipts_of_both_keys_hold_for_whoever_knows_either() -> None:
    new = SigningKey.create()
    keys = rotated(first_list(KEY, at=NOON), KEY, new, at=NOON)
    for receipt in (receipts()[0], receipts(new)[0]):
        for known in (KEY, new):
            assert status(receipt, "key", keys=keys, fingerprint=known.public.fingerprint) == "holds"
    assert status(receipts(new)[0], "key", fingerprint=KEY.public.fingerprint) == "fails"


def test_a_key_that_leaked_vouches_for_nothing() -> None:
    new = SigningKey.create()
    keys = rotated(first_list(KEY, at=NOON), None, new, at=NOON, leaked=True)
    assert status(receipts()[0], "key", keys=keys) == "fails"
    assert status(receipts(new)[0], "key", keys=keys, fingerprint=KEY.public.fingerprint) == "fails"
    assert status(receipts(new)[0], "key", keys=keys, fingerprint=new.public.fingerprint) == "holds"


def test_a_log_that_ends_too_early_or_names_another_root_is_found() -> None:
    receipt, log = receipts()[0], log_of(people())
    assert status(receipt, "log", log=log) == "holds"
    assert status(receipt, "log", log=log[:-1]) == "holds"
    assert status(receipt, "log", log=log[:-2]) == "fails"
    others = people()
    others[2] = replace(others[2], fee=7)
    assert status(receipt, "log", log=log_of(others)) == "fails"


def test_a_log_with_another_bid_than_the_receipt_is_found() -> None:
    bodies = people()
    bodies[1] = replace(bodies[1], bid=1.5)
    tree, log = tree_of(bodies), log_of(people())
    forged = next_event(
        "c1", log[-1].head, at=NOON, kind="released", body={"root": tree.root.hex(), "tree_size": tree.size}
    )
    receipt = issue(bodies[1], tree=tree, index=1, event=forged.head, key=KEY)
    found = verify_receipt(receipt, log=[*log, forged])
    assert "The last bid in the log is not the one on the receipt" in found.summary()


@each(
    ("field", "value", "sentence"),
    [
        ("bid", 1.26, "another bid"),
        ("promised", 99.0, "promises another"),
        ("payment", 5, "another payment"),
        ("currency", "USD", "another currency"),
        ("participant", "p7", "does not name"),
    ],
)
def test_a_receipt_that_says_something_else_than_the_record_is_found(field: str, value: Any, sentence: str) -> None:
    receipt = receipts()[1]
    changed = replace(receipt, body=replace(receipt.body, **{field: value}))
    found = next(check for check in verify_receipt(changed, record=record_of()).checks if check.name == "record")
    assert found.status == "fails"
    assert sentence in found.sentence


def test_somebody_who_delivered_nothing_may_be_paid_nothing() -> None:
    receipt = receipts()[1]
    dropped = replace(receipt, body=replace(receipt.body, delivered=0.0, payment=0))
    assert status(dropped, "record", record=record_of()) == "holds"


def test_losing_more_than_was_promised_is_found() -> None:
    receipt = receipts()[1]
    assert status(replace(receipt, body=replace(receipt.body, delivered=99.0)), "promise") == "fails"


def test_a_body_is_issued_for_its_own_place_only() -> None:
    bodies = people()
    event = log_of(bodies)[-2].head
    with pytest.raises(RecordError, match="not the entry at index 2"):
        issue(bodies[1], tree=tree_of(bodies), index=2, event=event, key=KEY)


def test_a_tree_refuses_a_person_twice_a_salt_twice_and_two_campaigns() -> None:
    first, second, *_ = people()
    for wrong in (
        replace(second, participant=first.participant),
        replace(second, salt=first.salt),
        replace(second, campaign="c2"),
    ):
        with pytest.raises(RecordError):
            tree_of([first, wrong])


def test_the_order_in_which_bodies_are_given_does_not_matter() -> None:
    assert tree_of(people()).root == tree_of(people()[::-1]).root


def test_neither_a_body_nor_a_receipt_shows_a_bid_when_printed() -> None:
    shown = f"{people()[1]!r} {receipts()[1]!r}"
    assert "1.25" not in shown
    assert "31" * 32 not in shown


@each(
    ("field", "value"),
    [
        ("version", 1),
        ("version", 3),
        ("version", True),
        ("format", "hushbid record"),
        ("index", 0.0),
        ("proof", "00"),
        ("proof", ["AB" * 32]),
        ("root", "00"),
        ("tree_size", 0),
        ("fingerprint", "00" * 32),
        ("event", {"number": 1}),
        ("extra", 1),
    ],
)
def test_a_receipt_with_a_field_of_another_kind_is_refused(field: str, value: Any) -> None:
    with pytest.raises(RecordError):
        Receipt.from_dict({**json.loads(receipts()[0].to_json()), field: value})


@each(
    ("field", "value"),
    [
        ("bid", 1.25),
        ("bid", "1.250"),
        ("bid", "nan"),
        ("bid", "-1.0"),
        ("payment", "5"),
        ("payment", 5.0),
        ("fee", -1),
        ("currency", "eur"),
        ("salt", "00"),
        ("state", ""),
    ],
)
def test_a_body_has_one_form_only(field: str, value: Any) -> None:
    content = json.loads(receipts()[0].to_json())
    content["body"][field] = value
    with pytest.raises(RecordError):
        Receipt.from_dict(content)


def test_salts_are_fresh() -> None:
    assert new_salt() != new_salt()
