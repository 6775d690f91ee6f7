"""``hushbid verify``: does a record, a receipt or a log hold what it says?"""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hushbid.cli.common import OneFile, Steps, tell
from hushbid.cli.common import command as make_command
from hushbid.cli.exit_codes import VERDICTS
from hushbid.errors import HashMismatch, InputError

if TYPE_CHECKING:
    from hushbid.verification.files import Document
    from hushbid.verification.findings import Verification

_DIGITS = 64


def _hexadecimal(ctx: click.Context, option: click.Parameter, value: str | None) -> str | None:
    """64 hexadecimal digits as people copy them: in either case, with spaces or colons."""
    if value is None:
        return None
    digits = "".join(value.replace(":", " ").split()).lower()
    if len(digits) != _DIGITS or set(digits) - set("0123456789abcdef"):
        raise click.BadParameter(f"must be {_DIGITS} hexadecimal digits.", ctx, option)
    return digits


@make_command("verify")
@click.argument("file", type=click.Path(allow_dash=True, path_type=Path))
@click.option("--fingerprint", callback=_hexadecimal, metavar="HEX", help="Receipt: of a key that you trust.")
@click.option("--public-key", callback=_hexadecimal, metavar="HEX", help="Receipt: a key that you trust, itself.")
@click.option("--keys", type=OneFile(), help="Receipt: the server's list of keys, if it has had several.")
@click.option("--root", callback=_hexadecimal, metavar="HEX", help="Receipt or log: the root the campaign published.")
@click.option("--head", callback=_hexadecimal, metavar="HEX", help="Log: hash of an event that it must hold.")
@click.option("--log", type=OneFile(), help="Receipt or record: the campaign's log.")
@click.option("--record", type=OneFile(), help="Receipt or log: the campaign's record.")
@click.option("--complete", is_flag=True, default=None, help="Record: check everybody, never a sample.")
def command(file: Path, as_json: bool, **given: Any) -> None:
    """Check a record, a receipt or a campaign's log, offline.

    FILE may be - for standard input, or a record that is a folder; what it is, its content says. A record is recomputed
    by other means than those that made it; of a receipt, the signature and the proof are checked; of a log, the chain
    of hashes. The options
    bring in what you know by another way. The verdict is holds (exit status 0), perhaps by sample, fails (1) or
    incomplete (3), if something could not be checked; 2 means that a file cannot be read.
    """
    from hushbid.verification.findings import Verification

    with Steps(2) as step:
        step("reading")
        known = _known(given)
        document = _document(file)
        step("verifying")
        found = document if isinstance(document, Verification) else _verified(document, known)
    tell({"file": str(file), **found.to_dict(), "summary": found.summary()}, found.summary(), as_json=as_json)
    click.get_current_context().exit(VERDICTS[found.verdict])


def _document(file: Path) -> "Document | Verification":
    """What the file holds; a record whose hash does not fit it has failed already."""
    from hushbid.verification.files import document_of, read_document
    from hushbid.verification.findings import Check, Verification

    try:
        return read_document(file) if str(file) != "-" else document_of(sys.stdin.buffer.read(), "standard input")
    except HashMismatch as problem:
        check = Check(name="hash", status="fails", sentence=str(problem))
        return Verification(checks=(check,), hash=problem.found)


def _known(given: dict[str, Any]) -> dict[str, Any]:
    """What the person who asks knows, read; a public key is known by its fingerprint."""
    from hushbid.receipts.keys import KeyList, PublicKey
    from hushbid.record import Record
    from hushbid.verification.files import read_document

    known = {name: value for name, value in given.items() if value is not None}
    public_key = known.pop("public_key", None)
    if public_key is not None:
        fingerprint = PublicKey.from_hex(public_key).fingerprint
        if known.setdefault("fingerprint", fingerprint) != fingerprint:
            raise InputError("--fingerprint and --public-key are of different keys.")
    for name, kind, what in (("keys", KeyList, "list of keys"), ("log", list, "log"), ("record", Record, "record")):
        if name in known:
            document = read_document(known[name])
            if not isinstance(document, kind):
                raise InputError(f"--{name} must be a {what}, but {known[name]} is not.")
            known[name] = document
    return known


def _verified(document: "Document", known: dict[str, Any]) -> "Verification":
    from hushbid.receipts.receipt import Receipt
    from hushbid.record import Record
    from hushbid.verification.receipts import verify_log, verify_logged_record, verify_receipt

    if isinstance(document, Record):
        _allow(known, "record", {"log", "complete"})
        return verify_logged_record(document, **known)
    if isinstance(document, Receipt):
        _allow(known, "receipt", {"fingerprint", "keys", "root", "log", "record"})
        return verify_receipt(document, **known)
    if isinstance(document, list):
        _allow(known, "log", {"head", "root", "record"})
        return verify_log(document, **known)
    raise InputError("This is a list of keys: give it with --keys beside a receipt.")


def _allow(known: dict[str, Any], kind: str, allowed: set[str]) -> None:
    for name in sorted(set(known) - allowed):
        raise InputError(f"--{name} says nothing about a {kind}, which takes {_options(allowed)}.")


def _options(names: set[str]) -> str:
    return ", ".join(f"--{name}" for name in sorted(names))
