"""The log of a campaign: nothing in it can be changed, left out, added or moved unnoticed."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from hushbid.common.documents import content_hash, parsed
from hushbid.errors import HushbidError, InputError, RecordError
from hushbid.mechanism import Market
from hushbid.priors import Uniform
from hushbid.receipts.log import GENESIS, Event, bid_commitment, commitment, next_event, read_log, to_lines
from hushbid.record import Record
from hushbid.verification.receipts import verify_log
from tests.extent import each

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def log_of(n: int, campaign: str = "c1") -> list[Event]:
    log: list[Event] = []
    for k in range(n):
        at = NOON + timedelta(minutes=k)
        body = {"participant": f"p{k}", "groups": ["a", None], "late": False}
        log.append(next_event(campaign, log[-1].head if log else None, at=at, kind="bid", body=body))
    return log


def failed(log: list[Event], **known: Any) -> tuple[str, ...]:
    return verify_log(log, **known).failed


def test_a_true_log_passes() -> None:
    log = log_of(20)
    assert verify_log(log, head=log[-1].hash).ok
    assert verify_log(log).hash == log[-1].hash
    assert log[0].previous == GENESIS


def test_a_body_of_anything_but_plain_values_is_refused_before_it_is_hashed() -> None:
    for body in ({"loss": 0.5}, {"deep": [{"loss": 1e300}]}, {"n": 2**53}, {1: "a"}, {"text": b"a"}):
        with pytest.raises(RecordError, match="body must hold"):
            next_event("c1", None, at=NOON, kind="bid", body=body)  # type: ignore[arg-type]
    with pytest.raises(RecordError, match="body must be an object"):
        next_event("c1", None, at=NOON, kind="bid", body=["a"])  # type: ignore[arg-type]


def test_what_is_made_is_what_can_be_read() -> None:
    event = next_event("c1", log_of(3)[-1].head, at=NOON, kind="closed", body={"people": (1, 2), "open": None})
    assert Event.from_dict(parsed(event.to_line())).hash == event.hash == event.expected_hash


def test_a_log_comes_back_from_its_lines_as_it_was() -> None:
    log = log_of(5)
    assert read_log(to_lines(log)) == log
    assert read_log(to_lines(log).removesuffix(b"\n")) == log


def test_a_change_of_any_byte_is_found() -> None:
    text = to_lines(log_of(3)).removesuffix(b"\n")
    for place in range(len(text)):
        for other in {text[place] ^ 1, text[place] ^ 32, ord("0"), ord("1"), ord(" ")} - {text[place]}:
            try:
                log = read_log(text[:place] + bytes([other]) + text[place + 1 :])
            except HushbidError:
                continue
            assert failed(log), (place, other)


@each("place", range(5))
def test_an_event_that_was_left_out_is_found(place: int) -> None:
    log = log_of(6)
    del log[place]
    assert "links" in failed(log)
    assert "order" in failed(log)


@each("place", range(5))
def test_events_that_were_exchanged_are_found(place: int) -> None:
    log = log_of(6)
    log[place], log[place + 1] = log[place + 1], log[place]
    assert {"order", "links"} <= set(failed(log))


def test_an_event_that_occurs_twice_is_found() -> None:
    log = log_of(4)
    assert {"order", "links"} <= set(failed([*log[:2], log[1], *log[2:]]))


def test_an_event_that_was_rewritten_with_a_fitting_hash_is_found_at_the_next() -> None:
    log = log_of(6)
    changed = next_event("c1", log[2].head, at=NOON + timedelta(hours=1), kind="withdrawn", body={})
    assert failed([*log[:3], changed, *log[4:]]) == ("links", "times")


def test_an_end_that_was_cut_off_is_found_by_a_hash_somebody_saw() -> None:
    log = log_of(6)
    assert verify_log(log[:4]).ok  # the chain alone cannot tell
    assert failed(log[:4], head=log[5].hash) == ("end",)
    assert not failed(log, head=log[3].hash)


def test_a_chain_that_was_rewritten_from_some_point_is_found_by_a_hash_somebody_saw() -> None:
    log = log_of(6)
    forged = log[:3]
    for _ in range(3):
        forged.append(next_event("c1", forged[-1].head, at=NOON + timedelta(hours=1), kind="bid", body={}))
    assert verify_log(forged).ok
    assert failed(forged, head=log[-1].hash) == ("end",)


def test_events_of_two_campaigns_are_found() -> None:
    log = log_of(2)
    other = next_event("c2", log[-1].head, at=NOON + timedelta(hours=1), kind="bid", body={})
    assert failed([*log, other]) == ("campaign",)


def test_two_roots_in_one_log_are_found() -> None:
    log: list[Event] = log_of(1)
    for k in range(2):
        at, body = NOON + timedelta(hours=1), {"root": f"{k}" * 64, "tree_size": 1}
        log.append(next_event("c1", log[-1].head, at=at, kind="released", body=body))
    assert failed(log) == ("root",)
    assert not failed(log[:2], root="0" * 64)
    assert failed(log[:2], root="1" * 64) == ("root",)
    assert failed(log[:1], root="0" * 64) == ("root",)


def test_the_record_must_be_the_last_one_that_the_log_names() -> None:
    market = Market(prior=Uniform(1, 2), variance=0.25, buyer_weight=1.0, user_weight=1.0)
    first, second = (Record.of(market.acquire([1.1, 1.2 + k])) for k in (0.0, 0.5))
    log = log_of(1)
    for record in (first, second):
        log.append(next_event("c1", log[-1].head, at=NOON + timedelta(hours=1), kind="x", body={"record": record.hash}))
    assert not failed(log, record=second)
    assert failed(log, record=first) == ("record",)
    assert failed(log[:1], record=first) == ("record",)


def test_times_never_go_back_even_if_the_clock_does() -> None:
    first = next_event("c1", None, at=NOON, kind="opened", body={})
    second = next_event("c1", first.head, at=NOON - timedelta(days=1), kind="closed", body={})
    assert second.at == first.at
    assert verify_log([first, second]).ok


def test_the_hash_is_that_of_the_canonical_form_of_all_the_rest() -> None:
    [event] = log_of(1)
    content = event.to_dict()
    del content["hash"]
    assert event.hash == content_hash(content) == event.expected_hash
    assert replace(event, kind="other").expected_hash != event.hash


@each("body", [{"x": 0.5}, {"x": [1, {"y": 1.0}]}, {"x": 2**53}, {"x": b""}, {1: 2}])
def test_a_body_without_one_form_is_refused(body: dict[Any, Any]) -> None:
    with pytest.raises(RecordError, match="body must hold"):
        next_event("c1", None, at=NOON, kind="opened", body=body)


@each("text", [b"", b"[]", b"{}", b"\n", b'{"format": "hushbid-event", "version": 2}'])
def test_lines_that_are_no_events_are_refused_by_their_number(text: bytes) -> None:
    with pytest.raises(RecordError, match="Line 2 of the log"):
        read_log(to_lines(log_of(1)) + text + b"\n")


def test_an_empty_log_is_refused() -> None:
    with pytest.raises(InputError, match="at least one event"):
        verify_log([])


def test_a_commitment_depends_on_every_part_and_needs_salt() -> None:
    salt = bytes(32)
    told = {
        bid_commitment("p1", 1.25, salt),
        bid_commitment("p2", 1.25, salt),
        bid_commitment("p1", 1.26, salt),
        bid_commitment("p1", 1.25, b"1" * 32),
    }
    assert len(told) == 4
    assert bid_commitment("p1", 1.25, salt) == commitment({"bid": "1.25", "participant": "p1"}, salt)
    with pytest.raises(RecordError, match="32 bytes"):
        commitment({}, b"short")
