"""The vectors of docs/reference/receipts.md, read by our code and by code that knows nothing but that page."""

import hashlib
import hmac
import json
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from hushbid.receipts.keys import KeyList
from hushbid.receipts.receipt import Receipt
from hushbid.record import read
from hushbid.verification.files import read_document
from hushbid.verification.receipts import verify_log, verify_logged_record, verify_receipt
from tests.extent import each

VECTORS = Path(__file__).parents[1] / "vectors" / "receipts"
DETAILS = json.loads((VECTORS / "details.json").read_text())
RECEIPTS = sorted(VECTORS.glob("receipt-*.json"))


def canonical(values: object) -> bytes:
    return json.dumps(values, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode()


def sha256(content: bytes) -> bytes:
    return hashlib.sha256(content).digest()


def without(values: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in values.items() if key != name}


def log() -> list[dict[str, Any]]:
    return [json.loads(line) for line in (VECTORS / "log.jsonl").read_bytes().splitlines()]


@each("path", RECEIPTS)
def test_a_receipt_checks_out_by_the_page_alone(path: Path) -> None:
    receipt = json.loads(path.read_text())
    entry = canonical(receipt["body"])
    assert entry.decode() == DETAILS["entries"][receipt["index"]]
    found = sha256(b"\x00" + entry)
    assert found.hex() == DETAILS["leaf_hashes"][receipt["index"]]
    place, last = receipt["index"], receipt["tree_size"] - 1
    for beside in map(bytes.fromhex, receipt["proof"]):
        if place % 2 or place == last:
            found = sha256(b"\x01" + beside + found)
            while place % 2 == 0 and place:
                place, last = place // 2, last // 2
        else:
            found = sha256(b"\x01" + found + beside)
        place, last = place // 2, last // 2
    assert found.hex() == receipt["root"] == DETAILS["root"]
    public = bytes.fromhex(receipt["public_key"])
    assert sha256(public).hex() == receipt["fingerprint"]
    message = b"hushbid-receipt v2\n" + canonical(without(receipt, "signature"))
    Ed25519PublicKey.from_public_bytes(public).verify(bytes.fromhex(receipt["signature"]), message)
    told = [event for event in log() if event["number"] == receipt["event"]["number"]]
    assert [event["hash"] for event in told] == [receipt["event"]["hash"]]
    assert told[0]["body"]["root"] == receipt["root"]


def test_the_log_checks_out_by_the_page_alone() -> None:
    previous = "0" * 64
    for place, event in enumerate(log(), start=1):
        assert (event["number"], event["previous"]) == (place, previous)
        previous = sha256(canonical(without(event, "hash"))).hex()
        assert event["hash"] == previous


def test_commitments_open_by_the_page_alone() -> None:
    told = {event["body"]["participant"]: event["body"] for event in log() if event["kind"] == "bid"}
    assert len(told) == 3
    for path in RECEIPTS:
        body = json.loads(path.read_text())["body"]
        if body["bid"] is not None:
            content = canonical({"participant": body["participant"], "bid": body["bid"]})
            expected = hmac.new(bytes.fromhex(body["salt"]), content, "sha256").hexdigest()
            assert told[body["participant"]]["bid_commitment"] == expected


def test_the_keys_check_out_by_the_page_alone() -> None:
    keys = json.loads((VECTORS / "keys.json").read_text())
    publics = [Ed25519PublicKey.from_public_bytes(bytes.fromhex(key["public_key"])) for key in keys["keys"]]
    assert [key["public_key"] for key in keys["keys"]] == DETAILS["public_keys"]
    assert [key["fingerprint"] for key in keys["keys"]] == DETAILS["fingerprints"]
    for seed, public in zip(DETAILS["seeds"], publics, strict=True):
        assert Ed25519PrivateKey.from_private_bytes(bytes.fromhex(seed)).public_key() == public
    statement = {name: keys["keys"][1][name] for name in ("number", "public_key", "created_at")}
    endorsement = bytes.fromhex(keys["keys"][1]["endorsement"])
    publics[0].verify(endorsement, b"hushbid-key-endorsement v1\n" + canonical(statement))
    message = b"hushbid-keys v1\n" + canonical(without(keys, "signature"))
    publics[1].verify(bytes.fromhex(keys["signature"]), message)


def test_the_signed_message_is_written_out() -> None:
    receipt = json.loads(RECEIPTS[0].read_text())
    assert "hushbid-receipt v2\n" + canonical(without(receipt, "signature")).decode() == DETAILS["signed"]


def test_our_own_code_reads_the_vectors_and_finds_nothing_wrong() -> None:
    events, keys = read_document(VECTORS / "log.jsonl"), read_document(VECTORS / "keys.json")
    record = read(VECTORS / "record.json")
    assert isinstance(events, list)
    assert isinstance(keys, KeyList)
    assert verify_log(events, root=DETAILS["root"], record=record).ok
    assert verify_logged_record(record, log=events).ok
    for path in RECEIPTS:
        receipt = read_document(path)
        assert isinstance(receipt, Receipt)
        assert receipt.to_json() == path.read_bytes()
        for fingerprint in DETAILS["fingerprints"]:
            found = verify_receipt(
                receipt, fingerprint=fingerprint, keys=keys, root=DETAILS["root"], log=events, record=record
            )
            assert {check.status for check in found.checks} == {"holds"}, found.summary()
