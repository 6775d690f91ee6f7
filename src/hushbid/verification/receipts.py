"""Checking a receipt or a log offline: against itself, and against whatever else the person who asks knows.

A document alone shows only that it is consistent: anybody can make a consistent one with a key of her own. What ties it
to a server is something that came by another way: a fingerprint, a root, a hash, a record. Each comparison that could
not be made is named as skipped, with what would be needed for it.
"""

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from hushbid.common.documents import content_hash
from hushbid.errors import InputError
from hushbid.receipts.keys import KeyList
from hushbid.receipts.log import GENESIS, Event, bid_commitment
from hushbid.receipts.receipt import TIMES, Agreement, Body, Receipt, questions_hash
from hushbid.record import Record
from hushbid.verification.findings import Check, Verification, judged, skipped
from hushbid.verification.verifying import verify


def verify_receipt(
    receipt: Receipt,
    *,
    fingerprint: str | None = None,
    keys: KeyList | None = None,
    root: str | None = None,
    log: Sequence[Event] | None = None,
    record: Record | None = None,
) -> Verification:
    """Check a receipt.

    ``fingerprint`` is a key's that the person trusts, ``keys`` the server's list, by which trust reaches keys made
    before and after it; ``root`` is the campaign's published root; ``log`` and ``record`` are what an auditor sees.
    """
    checks = [
        _signature(receipt),
        _key(receipt, fingerprint, keys),
        _inclusion(receipt),
        _root(receipt, root),
        _promise(receipt.body),
        _in_log(receipt, log),
        _in_record(receipt.body, record),
    ]
    return Verification(checks=tuple(checks), hash=content_hash(receipt.to_dict()), kind="receipt")


def verify_log(
    log: Sequence[Event], *, head: str | None = None, root: str | None = None, record: Record | None = None
) -> Verification:
    """Check a log's chain, and its end, root and record against what else is known.

    ``head`` is the hash of any event that must be in the log, such as the last one somebody saw.
    """
    if not log:
        raise InputError("A log must hold at least one event.")
    checks = [*_chain(log), _end(log, head), _one_root(log, root), _logged_record(log, record)]
    return Verification(checks=tuple(checks), hash=log[-1].hash, kind="log")


def verify_logged_record(record: Record, *, log: Sequence[Event] | None = None, complete: bool = False) -> Verification:
    """Check a record as `hushbid.verify` does, and that it is the one its campaign's log ends with."""
    found = verify(record, complete=complete)
    if log is None:
        return found
    checks = (*found.checks, *_chain(log), _logged_record(log, record))
    return Verification(checks=checks, hash=found.hash, stamps=found.stamps, kind="record")


def _signature(receipt: Receipt) -> Check:
    problems = [] if receipt.signed else ["The signature does not fit the receipt: something in it was changed"]
    return judged("signature", problems, "The signature fits the receipt, all of it")


def _key(receipt: Receipt, fingerprint: str | None, keys: KeyList | None) -> Check:
    signer = receipt.fingerprint
    listed = {} if keys is None else {key.fingerprint: key for key in keys.keys}
    if keys is not None and signer not in listed:
        return judged("key", [f"The key {signer} is not in the list of keys"], "")
    # a withdrawn key vouches for nothing, whoever trusts it
    if signer in listed and listed[signer].withdrawn:
        return judged("key", [f"The key {signer} was withdrawn, since it may have leaked"], "")
    if fingerprint is None:
        return skipped("key", f"Compare the signing key {signer} with the fingerprint that the server published")
    # by the list, trust reaches keys before and after the one that is known
    trusted = {fingerprint} if keys is None else keys.trusted_from(fingerprint)
    problems = []
    if signer not in trusted:
        hint = (
            ""
            if keys is not None
            else "; if the key was rotated, the server's list of keys leads from one to the other"
        )
        problems.append(f"The signing key {signer} is not {fingerprint}, nor vouched for by it{hint}")
    follows = "" if signer == fingerprint else ", which the list of keys ties to the fingerprint given"
    return judged("key", problems, f"The signing key is {signer}{follows}")


def _inclusion(receipt: Receipt) -> Check:
    problems = [] if receipt.included else ["The proof does not lead from the participant's facts to the root"]
    size = receipt.tree_size
    return judged("inclusion", problems, f"The facts are those of entry {receipt.index} of {size} under the root")


def _root(receipt: Receipt, root: str | None) -> Check:
    if root is None:
        return skipped("root", f"Compare the root {receipt.root.hex()} with the one that the campaign published")
    problems = [] if receipt.root.hex() == root else ["The root is not the one that was given"]
    return judged("root", problems, "The root is the one that was given")


def _promise(body: Body) -> Check:
    problems = []
    if body.delivered is not None and body.delivered > (body.promised or 0.0):
        problems.append("The release cost more privacy than was promised")
    return judged("promise", problems, "The release cost no more privacy than was promised")


def _in_log(receipt: Receipt, log: Sequence[Event] | None) -> Check:
    if log is None:
        return skipped("log", "No log was given")
    body = receipt.body
    if any(event.campaign != body.campaign for event in log):
        return judged("log", ["The log is another campaign's"], "")
    problems = [problem for link in _links(log) for problem in link.problems]
    named = next((event for event in log if event.number == receipt.event.number), None)
    if named is None:
        problems.append(f"The log ends before event {receipt.event.number}, which the receipt names")
    elif named.hash != receipt.event.hash:
        problems.append(f"Event {receipt.event.number} is not the one that the receipt names")
    elif (named.body.get("root"), named.body.get("tree_size")) != (receipt.root.hex(), receipt.tree_size):
        problems.append(f"Event {receipt.event.number} names another root")
    problems += _bid_problems(body, log)
    problems += _link_problems(receipt, log)
    problems += _agreement_problems(receipt, log)
    return judged("log", problems, "The log has the event that the receipt names, and the bid it was told")


def _bid_problems(body: Body, log: Sequence[Event]) -> list[str]:
    """Her last bid in the log must be the one on the receipt."""
    told = [
        e.body["bid_commitment"]
        for e in log
        if e.body.get("participant") == body.participant and "bid_commitment" in e.body
    ]
    if body.bid is None:
        return []  # withdrawn or never made; what the log holds of it stays unopened
    if not told or told[-1] != bid_commitment(body.participant, body.bid, body.salt, limit=body.limit):
        return ["The last bid in the log is not the one on the receipt"]
    return []


def _link_problems(receipt: Receipt, log: Sequence[Event]) -> list[str]:
    """New links in the log must be on the receipt, and no others."""
    body = receipt.body
    hers = [e for e in log if e.body.get("participant") == body.participant and e.number < receipt.event.number]
    for name, kind in TIMES.items():
        made = [event for event in hers if event.kind == kind]
        if set(getattr(body, name)) != {event.at for event in made}:
            return ["The new links that the log knows of are not those on the receipt"]
    return []


def _agreement_problems(receipt: Receipt, log: Sequence[Event]) -> list[str]:
    """What she agreed to last in the log must be what her receipt says, and nothing if the log knows of nothing."""
    told = [
        Agreement(at=e.at, version=str(e.body["agreement"]), language=str(e.body.get("language")))
        for e in log
        if e.body.get("participant") == receipt.body.participant
        and "agreement" in e.body
        and e.number < receipt.event.number
    ]
    same = (told[-1] if told else None) == receipt.body.agreement
    return [] if same else ["The last agreement in the log is not the one on the receipt"]


def _in_record(body: Body, record: Record | None) -> Check:
    if record is None:
        return skipped("record", "No record was given")
    if record.ids is None or body.participant not in record.ids:
        if body.bid is None or body.promised is None:
            return judged("record", [], "Nothing was decided about the participant, and the record does not name her")
        return judged("record", ["The record does not name the participant"], "")
    row = record.ids.index(body.participant)
    problems = []
    if body.questions != questions_hash(record.outcome.market.survey or ()):
        problems.append("The record is about other questions")
    strata = record.outcome.market.strata
    if body.stratum != (None if strata is None else strata[row]):
        problems.append("The record has her in another stratum")
    if body.bid != record.outcome.bids[row]:
        problems.append("The record has another bid")
    limits = record.outcome.limits
    if (math.inf if body.limit is None else body.limit) != (math.inf if limits is None else limits[row]):
        problems.append("The record has another limit")
    if body.limit is not None and not (body.promised or 0.0) <= body.limit:
        problems.append("The privacy loss that was promised exceeds the limit that was stated")
    if body.promised != record.outcome.privacy_loss[row]:
        problems.append("The record promises another privacy loss")
    if record.release is not None and body.delivered != record.release.privacy_loss[row]:
        problems.append("The record's release cost another privacy loss")
    problems += _money_problems(body, record, row)
    return judged("record", problems, f"The record says the same in row {row}")


def _money_problems(body: Body, record: Record, row: int) -> list[str]:
    """She is paid what was decided, or nothing if she delivered nothing."""
    money = record.money
    if money is None:
        return []
    if (body.currency, body.decimals) != (money.currency, money.decimals):
        return ["The record is in another currency"]
    allowed = {int(money.payments[row])} | (set() if body.delivered else {0})
    return [] if body.payment in allowed else ["The record has another payment"]


class _Link(NamedTuple):
    """One thing that holds a log together: what is wrong with it, and what can be said if nothing is."""

    name: str
    problems: list[str]
    sentence: str


def _chain(log: Sequence[Event]) -> Iterator[Check]:
    """Is this one campaign's log from its beginning, with nothing changed, missing, added or moved?"""
    for link in _links(log):
        figures = {"events": len(log)} if link.name == "campaign" else {}
        yield judged(link.name, link.problems, link.sentence, doubts=(), **figures)


def _links(log: Sequence[Event]) -> Iterator[_Link]:
    campaign = log[0].campaign
    strange = [f"Event {event.number} belongs to another campaign" for event in log if event.campaign != campaign]
    yield _Link("campaign", strange, f"All {len(log)} events belong to campaign {campaign}")
    order = [
        f"Place {place} holds event {event.number}" for place, event in enumerate(log, start=1) if event.number != place
    ]
    yield _Link("order", order, "Events are numbered from 1 without a gap")
    hashes = [
        f"Event {event.number} was changed: its hash does not fit" for event in log if event.hash != event.expected_hash
    ]
    yield _Link("hashes", hashes, "Every event has the hash of its content")
    # each against the hash that the one before states
    before = [GENESIS, *(event.hash for event in log)]
    links = [
        f"Event {event.number} does not continue the one before"
        for previous, event in zip(before, log, strict=False)
        if event.previous != previous
    ]
    yield _Link("links", links, "Every event holds the hash of the one before")
    times = [f"Event {b.number} is earlier than the one before" for a, b in pairwise(log) if b.at < a.at]
    yield _Link("times", times, "Times never go back")


def _end(log: Sequence[Event], head: str | None) -> Check:
    if head is None:
        return skipped("end", "To find out whether the end was cut off, give the hash of the last event somebody saw")
    place = next((event.number for event in log if event.hash == head), None)
    problems = (
        [] if place is not None else ["The event with the hash given is not in the log: it was cut off or replaced"]
    )
    return judged("end", problems, f"The event with the hash given is number {place} of {len(log)}")


def _one_root(log: Sequence[Event], root: str | None) -> Check:
    named = [event for event in log if "root" in event.body]
    if not named and root is None:
        return skipped("root", "The log names no root yet")
    problems = []
    if len(named) > 1:
        problems.append(f"The log names more than one root: events {', '.join(str(event.number) for event in named)}")
    if root is not None and (not named or named[-1].body["root"] != root):
        problems.append("The root given is not the one in the log")
    sentence = "The log names one root" + (", the one that was given" if root is not None else "")
    return judged("root", problems, sentence)


def _logged_record(log: Sequence[Event], record: Record | None) -> Check:
    named = [event for event in log if "record" in event.body]
    if record is None:
        return skipped("record", "No record was given")
    last = named[-1].number if named else 0
    places = [event.number for event in named if event.body["record"] == record.hash]
    problems = [] if places else [f"The record {record.hash} is not one that the log names"]
    if places and places[-1] != last:
        problems.append(f"The record is that of event {places[-1]}, but event {last} names a later one")
    return judged("record", problems, f"The record is the last one that the log names, in event {last}")
