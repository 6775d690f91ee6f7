"""``hushbid verify`` and ``hushbid keys``: what people see, and the exit status that scripts see."""

import json
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from hushbid.cli import main
from hushbid.common.documents import content_hash
from tests.extent import each

VECTORS = Path(__file__).parents[1] / "vectors" / "receipts"
DETAILS = json.loads((VECTORS / "details.json").read_text())
OLD, NEW = DETAILS["fingerprints"]
ROOT = DETAILS["root"]
RECEIPT, BY_NEW_KEY, LOG, RECORD, KEYS = (
    str(VECTORS / name) for name in ("receipt-0.json", "receipt-1.json", "log.jsonl", "record.json", "keys.json")
)
HEAD = json.loads((VECTORS / "log.jsonl").read_text().splitlines()[-1])["hash"]


def hushbid(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def facts(*arguments: object) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(hushbid(*arguments, "--json").stdout)
    return told


@each(
    ("arguments", "kind"),
    [
        ([RECEIPT], "receipt"),
        ([RECEIPT, "--fingerprint", OLD, "--root", ROOT, "--log", LOG, "--record", RECORD], "receipt"),
        ([RECEIPT, "--public-key", DETAILS["public_keys"][0]], "receipt"),
        ([BY_NEW_KEY, "--fingerprint", OLD, "--keys", KEYS], "receipt"),
        ([LOG], "log"),
        ([LOG, "--head", HEAD, "--root", ROOT, "--record", RECORD], "log"),
        ([RECORD], "record"),
        ([RECORD, "--log", LOG], "record"),
    ],
)
def test_a_true_document_is_recognised_and_passes(arguments: list[str], kind: str) -> None:
    assert hushbid("verify", *arguments).exit_code == 0
    told = facts("verify", *arguments)
    assert (told["verdict"], told["kind"], told["file"]) == ("holds", kind, arguments[0])
    assert all(check["sentence"] for check in told["checks"])


@each(
    ("arguments", "failed"),
    [
        ([RECEIPT, "--fingerprint", NEW], "key"),
        ([RECEIPT, "--public-key", DETAILS["public_keys"][1]], "key"),
        ([BY_NEW_KEY, "--fingerprint", OLD], "key"),
        ([RECEIPT, "--root", "0" * 64], "root"),
        ([LOG, "--root", "0" * 64], "root"),
        ([LOG, "--head", "0" * 64], "end"),
    ],
)
def test_what_does_not_fit_ends_with_status_1(arguments: list[str], failed: str) -> None:
    told = hushbid("verify", *arguments)
    assert told.exit_code == 1
    assert f"FAILS       {failed}" in told.stdout
    assert "Do not rely on this" in told.stdout


def test_a_record_that_was_altered_fails_and_is_named_by_the_hash_of_what_it_holds(tmp_path: Path) -> None:
    values = json.loads(Path(RECORD).read_text())
    values["note"] = "altered"
    (altered := tmp_path / "record.json").write_text(json.dumps(values))
    told = hushbid("verify", str(altered), "--json")
    assert told.exit_code == 1
    found = json.loads(told.stdout)
    assert (found["verdict"], found["checks"][0]["name"]) == ("fails", "hash")
    assert found["hash"] == content_hash({name: value for name, value in values.items() if name != "hash"})


@each(
    ("arguments", "sentence"),
    [
        ([KEYS], "give it with --keys beside a receipt"),
        ([RECEIPT, "--keys", RECORD], "--keys must be a list of keys"),
        ([RECEIPT, "--log", RECEIPT], "--log must be a log"),
        ([RECEIPT, "--head", HEAD], "--head says nothing about a receipt"),
        ([RECORD, "--fingerprint", OLD], "--fingerprint says nothing about a record"),
        ([RECEIPT, "--root", "xyz"], "64 hexadecimal digits"),
        ([RECEIPT, "--fingerprint", OLD, "--public-key", DETAILS["public_keys"][1]], "different keys"),
        (["none.json"], "cannot be read"),
        ([str(Path(__file__))], "must be JSON"),
        ([str(VECTORS / "details.json")], "neither a record, a receipt"),
    ],
)
def test_what_cannot_be_compared_or_read_ends_with_status_2(arguments: list[str], sentence: str) -> None:
    told = hushbid("verify", *arguments)
    assert (told.exit_code, told.stdout) == (2, "")
    assert sentence in told.stderr


def test_a_fingerprint_may_be_typed_in_groups_and_capitals() -> None:
    grouped = ":".join(OLD[k : k + 4] for k in range(0, 64, 4)).upper()
    assert hushbid("verify", RECEIPT, "--fingerprint", grouped).exit_code == 0


def test_a_receipt_that_was_laid_out_anew_is_still_the_same_receipt(tmp_path: Path) -> None:
    pretty = tmp_path / "receipt.json"
    pretty.write_text(json.dumps(json.loads(Path(RECEIPT).read_text()), indent=2))
    assert facts("verify", pretty)["hash"] == facts("verify", RECEIPT)["hash"]


def test_a_receipt_with_another_payment_fails(tmp_path: Path) -> None:
    forged = tmp_path / "receipt.json"
    values = json.loads(Path(RECEIPT).read_text())
    values["body"]["payment"] += 1
    forged.write_text(json.dumps(values))
    told = facts("verify", forged)
    assert [check["name"] for check in told["checks"] if check["status"] == "fails"] == ["signature", "inclusion"]


def test_without_a_fingerprint_the_reader_is_told_what_to_compare() -> None:
    told = hushbid("verify", RECEIPT).stdout
    assert f"Compare the signing key {OLD}" in told
    assert f"Compare the root {ROOT}" in told


def test_the_page_shows_what_is_really_printed() -> None:
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "take-part.md").read_text(encoding="utf-8")
    shown = page.partition("```console\n")[2].partition("```")[0].splitlines()
    told = hushbid("verify", RECEIPT, "--fingerprint", OLD).stdout.splitlines()
    assert shown[0] == f"$ hushbid verify receipt.json --fingerprint {OLD}"
    assert [line.split("…")[0] for line in shown[1:-1]] == told[:-1]
    assert told[-1].startswith(shown[-1].rstrip("…"))


def test_keys_are_made_listed_and_replaced(tmp_path: Path) -> None:
    home = ("--home", tmp_path / "server")
    assert "has no signing key" in hushbid("keys", "list", *home).stderr
    made = facts("keys", "create", *home)
    assert hushbid("keys", "create", *home).exit_code == 5
    assert hushbid("keys", "fingerprint", *home).stdout == f"{made['fingerprint']}\n"
    rotated = facts("keys", "rotate", *home)
    assert rotated["number"] == 2
    assert rotated["fingerprint"] != made["fingerprint"]
    lines = hushbid("keys", "list", *home).stdout.splitlines()
    assert [line.split()[1] for line in lines] == [made["fingerprint"], rotated["fingerprint"]]
    assert [line.split("  ")[-1] for line in lines] == ["retired", "in use"]
    assert "publish the new fingerprint" in hushbid("keys", "rotate", "--leaked", *home).stdout
    lines = hushbid("keys", "list", *home).stdout.splitlines()
    assert [line.split("  ")[-1] for line in lines] == ["retired", "withdrawn", "in use"]
    listed = facts("keys", "list", *home)
    assert listed == json.loads((tmp_path / "server" / "keys" / "signing" / "keys.json").read_text())


def test_no_command_about_keys_prints_a_secret(tmp_path: Path) -> None:
    home = ("--home", tmp_path)
    told = hushbid("keys", "create", *home).output
    secret = (tmp_path / "keys" / "signing" / "1.pem").read_text().splitlines()[1]
    for command in ("list", "fingerprint"):
        told += hushbid("keys", command, *home).output + hushbid("keys", command, *home, "--json").output
    assert secret not in told
