"""Write the vectors of docs/reference/receipts.md again: ``python -m tests.vectors.make_receipts``.

A version of the format is never changed once released, so this is for the time before a release, and for new versions.
"""

import hashlib
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from hushbid.common.documents import canonical
from hushbid.mechanism import Market
from hushbid.priors import Uniform
from hushbid.receipts.keys import SigningKey, first_list, rotated
from hushbid.receipts.log import Event, bid_commitment, next_event, to_lines
from hushbid.receipts.receipt import Body, in_order, issue, tree_of
from hushbid.record import Record

FOLDER = Path(__file__).parent / "receipts"
START = datetime(2026, 3, 1, 12, tzinfo=UTC)
CAMPAIGN = "c-sleep"
BIDS = {"p-07": 1.1, "p-3f": 1.25, "p-a2": 1.9}
DROPPED, DECLINED, EXCLUDED = "p-3f", "p-51", "p-é"


def the_record() -> Record:
    market = Market(prior=Uniform(1, 2), bounds=(0, 24), variance=4.0, user_weight=0.0, buyer_weight=1.0)
    return Record.of(market.acquire(list(BIDS.values())), ids=list(BIDS), currency="EUR", decimals=2)


def the_bodies(record: Record) -> list[Body]:
    """Two who delivered, one of them nothing, one who dropped out, one who declined and one who was kept out."""
    salts = [hashlib.sha256(f"salt {row}".encode()).digest() for row in range(5)]
    assert record.money is not None
    bodies = []
    for row, (name, bid) in enumerate(BIDS.items()):
        loss, payment = float(record.outcome.privacy_loss[row]), int(record.money.payments[row])
        told = {"state": "settled", "delivered": loss, "payment": payment if loss else 0}
        if name == DROPPED:
            told = {"state": "dropped", "delivered": 0.0, "payment": 0}
        bodies.append(_body(name, salts[row], bid=bid, promised=loss, fee=150, **told))
    bodies.append(_body(DECLINED, salts[3], state="declined"))
    bodies.append(_body(EXCLUDED, salts[4], state="excluded"))
    return bodies


def _body(name: str, salt: bytes, **more: object) -> Body:
    empty = Body(
        campaign=CAMPAIGN,
        participant=name,
        state="excluded",
        bid=None,
        promised=None,
        delivered=None,
        payment=0,
        fee=0,
        currency="EUR",
        decimals=2,
        salt=salt,
    )
    return replace(empty, **more)  # type: ignore[arg-type]


def the_log(record: Record, bodies: list[Body]) -> list[Event]:
    log: list[Event] = []

    def add(kind: str, minute: int, **body: object) -> None:
        before = log[-1].head if log else None
        log.append(next_event(CAMPAIGN, before, at=START + timedelta(minutes=minute), kind=kind, body=body))

    add("opened", 0, people=5, title="Sleep – März 😴")
    for minute, one in enumerate((one for one in bodies if one.bid is not None), start=1):
        assert one.bid is not None
        commitment = bid_commitment(one.participant, one.bid, one.salt)
        add("bid", minute, participant=one.participant, bid_commitment=commitment)
    add("declined", 5, participant=DECLINED)
    add("allocated", 10, record=record.hash)
    tree = tree_of(bodies)
    add("released", 20, root=tree.root.hex(), tree_size=tree.size)
    add("closed", 30)
    return log


def main() -> None:
    first, second = SigningKey(bytes(range(32))), SigningKey(bytes(range(32, 64)))
    keys = rotated(first_list(first, at=START), first, second, at=START + timedelta(days=1))
    record = the_record()
    bodies = the_bodies(record)
    log, tree = the_log(record, bodies), tree_of(bodies)
    released = next(event for event in log if event.kind == "released")
    receipts = [
        issue(body, tree=tree, index=index, event=released.head, key=second if index == 1 else first)
        for index, body in enumerate(in_order(bodies))
    ]
    (FOLDER / "record.json").write_bytes(canonical(record.to_dict()) + b"\n")
    (FOLDER / "keys.json").write_bytes(canonical(keys.to_dict()) + b"\n")
    (FOLDER / "log.jsonl").write_bytes(to_lines(log))
    for receipt in receipts:
        (FOLDER / f"receipt-{receipt.index}.json").write_bytes(receipt.to_json())
    unsigned = {name: value for name, value in receipts[0].to_dict().items() if name != "signature"}
    details = {
        "seeds": [first.seed.hex(), second.seed.hex()],
        "public_keys": [first.public.hex, second.public.hex],
        "fingerprints": [first.public.fingerprint, second.public.fingerprint],
        "entries": [body.entry().decode() for body in in_order(bodies)],
        "leaf_hashes": [leaf.hex() for leaf in tree.levels[0]],
        "root": tree.root.hex(),
        "signed": "hushbid-receipt v2\n" + canonical(unsigned).decode(),
    }
    (FOLDER / "details.json").write_text(json.dumps(details, indent=1) + "\n")


if __name__ == "__main__":
    main()
