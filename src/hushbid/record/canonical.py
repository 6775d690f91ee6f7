"""One way to write plain values down, so that equal contents have equal bytes and one hash.

The canonical form is JSON in ASCII on one line: keys sorted, no spaces, every float as the shortest decimal that reads
back as the same double, integers as digits, infinities as the texts ``"inf"`` and ``"-inf"``. NaN has no form. Reading
is as strict: a key that occurs twice and the words NaN and Infinity are refused, since readers differ on them.
"""

import gzip
import hashlib
import json
import os
import secrets
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hushbid.errors import RecordError

_LEVEL = 4  # of compression: digits hardly shrink further, but take much longer


def canonical(content: Mapping[str, Any]) -> bytes:
    """The canonical form of plain values."""
    try:
        return json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False).encode("ascii")
    except (TypeError, ValueError) as problem:
        raise RecordError(f"A record must hold plain finite values only: {problem}.") from None


def content_hash(content: Mapping[str, Any]) -> str:
    """SHA-256 of the canonical form, as hexadecimal text."""
    return hash_of(canonical(content))


def hash_of(written: bytes) -> str:
    """SHA-256 of what is in canonical form already, as hexadecimal text."""
    return hashlib.sha256(written).hexdigest()


def with_hash(written: bytes, digest: str) -> bytes:
    """The canonical form of a record from that of its content: of its keys, only ``format`` comes before ``hash``.

    >>> with_hash(canonical({"format": "f", "version": 1}), "ab") == canonical(
    ...     {"format": "f", "hash": "ab", "version": 1}
    ... )
    True
    """
    place = written.index(b",") + 1
    return b"".join((written[:place], b'"hash":', json.dumps(digest).encode("ascii"), b",", written[place:]))


def parsed(text: bytes) -> dict[str, Any]:
    """The plain values in a JSON text."""
    try:
        found = json.loads(text, object_pairs_hook=_once, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise RecordError(
            "A record must be JSON in which no key occurs twice and no number is NaN or infinite."
        ) from None
    if not isinstance(found, dict):
        raise RecordError(f"A record must be a JSON object, got {type(found).__name__}.")
    return found


def read_bytes(path: Path) -> bytes:
    """A file's content, decompressed if its name ends in ``.gz``."""
    try:
        content = path.read_bytes()
        return gzip.decompress(content) if path.suffix == ".gz" else content
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise RecordError(f"{path} cannot be read: its name ends in .gz, but it is not a complete gzip file.") from None
    except OSError as problem:
        raise RecordError(f"{path} cannot be read: {problem.strerror or type(problem).__name__}.") from None


def write_bytes(path: Path, content: bytes, *, overwrite: bool) -> None:
    """Write a file that is complete or not there at all, readable by its owner only; compressed for ``.gz``.

    The content goes to a hidden file beside it first, is made durable, and then gets its name in one step.
    """
    if path.suffix == ".gz":
        content = gzip.compress(content, compresslevel=_LEVEL, mtime=0)
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            if overwrite:
                draft.replace(path)
            else:
                os.link(draft, path)  # unlike a rename, fails if the file exists
        finally:
            draft.unlink(missing_ok=True)
        _sync_folder(path.parent)
    except FileExistsError:
        raise RecordError(f"{path} exists already; pass overwrite=True to replace it.") from None
    except OSError as problem:
        raise RecordError(f"{path} cannot be written: {problem.strerror}.") from None


def _sync_folder(folder: Path) -> None:
    """Make the folder's list of names survive a loss of power."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key occurs twice")
    return found


def _no_constant(name: str) -> Any:
    raise ValueError(name)
