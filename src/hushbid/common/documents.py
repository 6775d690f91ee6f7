"""One way to write plain values down, so that equal contents have equal bytes and one hash.

The canonical form is JSON in ASCII on one line: keys sorted, no spaces, every float as the shortest decimal that reads
back as the same double, integers as digits, infinities as the texts ``"inf"`` and ``"-inf"``. NaN has no form. Reading
is as strict: a key that occurs twice and the words NaN and Infinity are refused, since readers differ on them.
"""

import gzip
import hashlib
import io
import json
import math
import re
import secrets
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from hushbid.common.durable import write_whole
from hushbid.common.held import Doubles, Held, doubles_in, held_in, thawed, without_long_lists
from hushbid.common.shortest import is_quick, joined_texts
from hushbid.errors import HushbidError, OutputExists, RecordError, Unwritable

_DEEPEST = 4  # everybody's numbers stand no deeper in a record
_LEVEL = 4  # of compression: digits hardly shrink further, but take much longer


def canonical(content: Mapping[str, Any]) -> bytes:
    """The canonical form of plain values, some of which may be `Doubles`."""
    return b"".join(canonical_parts(content))


def compact(content: Mapping[str, Any]) -> bytes:
    """The canonical form but for the order of the keys, which stay as they are."""
    return b"".join(canonical_parts(content, ordered=False))


def canonical_parts(content: Mapping[str, Any], *, ordered: bool = True) -> list[bytes]:
    """The canonical form in parts: what is long need not be copied to be hashed or written."""
    try:
        return list(_written(held_in(content), _DEEPEST, ordered))
    except (TypeError, ValueError) as problem:
        raise RecordError(f"A record must hold plain finite values only: {problem}.") from None


def _written(value: Any, depth: int, ordered: bool) -> Iterator[bytes]:
    """The parts of a JSON text: long lists of doubles and of texts, down to some depth, are written all at once."""
    if isinstance(value, Doubles) and (text := value.written()) is not None:
        yield text
    elif depth > 0 and type(value) is dict and set(map(type, value)) <= {str} and _holds_long(value, depth):
        before = b"{"
        for name in sorted(value) if ordered else value:
            yield before + json.dumps(name).encode("ascii") + b":"
            yield from _written(value[name], depth - 1, ordered)
            before = b","
        yield b"}"
    elif _is_long(value) and (text := _long_list(value)) is not None:
        yield text
    else:
        plain_value = thawed(value)
        yield json.dumps(plain_value, sort_keys=ordered, separators=(",", ":"), allow_nan=False).encode("ascii")


def _holds_long(value: Any, depth: int) -> bool:
    """Whether there is a long list in it, no deeper than we look, or `Doubles`."""
    if depth > 0 and type(value) is dict:
        return any(_holds_long(one, depth - 1) for one in value.values())
    return isinstance(value, Doubles) or _is_long(value)


def _is_long(value: Any) -> bool:
    return type(value) is list and is_quick(len(value))


def _long_list(value: list[Any]) -> bytes | None:
    """A long list of finite floats, or of texts, as JSON; None if it holds anything else, or a text needs an escape."""
    kinds = set(map(type, value))
    if kinds == {float}:
        return Doubles(np.array(value)).written()
    return joined_texts(value) if kinds == {str} else None


def plain(value: Any) -> Any:
    """A value of a result as JSON knows it: no NumPy numbers, infinities as texts, NaN as null."""
    if isinstance(value, Mapping):
        return {str(name): plain(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value


def content_hash(content: Mapping[str, Any]) -> str:
    """SHA-256 of the canonical form, as hexadecimal text."""
    return hash_of(canonical_parts(content))


def hash_of(parts: Iterable[bytes]) -> str:
    """SHA-256 of what is in canonical form already, as hexadecimal text."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return digest.hexdigest()


def with_hash(parts: Iterable[bytes], digest: str) -> Iterator[bytes]:
    """The canonical form of a record from that of its content: of its keys, only ``format`` comes before ``hash``.

    >>> parts = canonical_parts({"format": "f", "version": 1})
    >>> b"".join(with_hash(parts, "ab")) == canonical({"format": "f", "hash": "ab", "version": 1})
    True
    """
    stated = b'"hash":' + json.dumps(digest).encode("ascii") + b","
    for part in parts:
        before, comma, after = part.partition(b",") if stated else (part, b"", b"")
        yield before + comma
        if comma:
            yield from (stated, after)
            stated = b""


def parsed(text: bytes) -> dict[str, Any]:
    """The plain values in a JSON text."""
    try:
        found = _loaded(text, unique_keys)
    except (ValueError, RecursionError):
        raise RecordError(
            "A record must be JSON in which no key occurs twice and no number is NaN or infinite."
        ) from None
    if not isinstance(found, dict):
        raise RecordError(f"A record must be a JSON object, got {type(found).__name__}.")
    return found


def parsed_held(text: bytes) -> Held:
    """The same values, of which long lists of doubles stay arrays, if they are written as we write them."""
    mark = secrets.token_hex(16)  # whoever wrote the text did not know it
    short, lists = without_long_lists(text, mark)

    def known(pairs: list[tuple[str, Any]]) -> Any:
        return lists[pairs[0][1]] if pairs and pairs[0][0] == mark else unique_keys(pairs)

    if lists:
        try:
            found = _loaded(short, known)
        except (ValueError, RecursionError):  # no JSON, or a list stood in a string
            return Held(parsed(text))
        if isinstance(found, dict) and doubles_in(found) == len(lists):  # none of them in a list of lists
            return Held(found)
    return Held(parsed(text))


def _loaded(text: bytes, pairs: Callable[[list[tuple[str, Any]]], Any]) -> Any:
    return json.loads(text, object_pairs_hook=pairs, parse_constant=_no_constant)


def most_unpacked(packed: int) -> int:
    """How many bytes so many compressed ones may become: 64 MiB always, and a hundred times as many.

    Records and tables shrink to a tenth or a third; a file made to fill the memory shrinks to a thousandth.
    """
    return max(64 << 20, 100 * packed)


def gunzipped(content: bytes, source: str, error: type[HushbidError]) -> bytes:
    """Decompress by gzip, up to `most_unpacked`; beyond it raise ``error``. What is no gzip raises as gzip does."""
    most = most_unpacked(len(content))
    with gzip.GzipFile(fileobj=io.BytesIO(content)) as packed:
        found = packed.read(most + 1)
    if len(found) > most:
        raise error(
            f"{source} is refused: decompressed it would be larger than {most >> 20} MiB. Decompress it yourself."
        )
    return found


def read_content(path: Path) -> bytes:
    """A file's content, decompressed if its name ends in ``.gz``."""
    try:
        content = path.read_bytes()
        return gunzipped(content, str(path), RecordError) if path.suffix == ".gz" else content
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise RecordError(f"{path} cannot be read: its name ends in .gz, but it is not a complete gzip file.") from None
    except OSError as problem:
        raise RecordError(f"{path} cannot be read: {problem.strerror or type(problem).__name__}.") from None


def write_content(path: Path, content: bytes, *, overwrite: bool) -> None:
    """Write a file that is complete or not there at all, readable by its owner only; compressed for ``.gz``."""
    if path.suffix == ".gz":
        content = gzip.compress(content, compresslevel=_LEVEL, mtime=0)
    try:
        write_whole(path, content, replace=overwrite)
    except FileExistsError:
        raise OutputExists(f"{path} exists already; pass overwrite=True to replace it.") from None
    except OSError as problem:
        raise Unwritable(f"{path} cannot be written: {problem.strerror}.") from None


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of a JSON text, as an ``object_pairs_hook``; a key that occurs twice is a ``ValueError``."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key occurs twice")
    return found


def _no_constant(name: str) -> Any:
    raise ValueError(name)


# -- the one text of a number, a time, some bytes ----------------------------------------------------------------------
#
# Signed documents hold texts, whole numbers, truth values, null, lists and objects, but no floating-point numbers:
# programs write those in different ways, and a hash needs one. A double is a text, the shortest decimal that reads back
# as the same double, as Python writes it (``"1.25"``, ``"0.1"``, ``"1e-07"``), or ``"inf"``. Bytes are lower-case
# hexadecimal, times UTC to the microsecond (``"2026-03-01T12:00:00.000000Z"``), amounts of money whole minor units.

LARGEST_INTEGER = 2**53
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", flags=re.ASCII)
_HEX = re.compile(r"[0-9a-f]*")


def number_text(number: float) -> str:
    """A double as the one text it has in a document.

    >>> number_text(1.25), number_text(1), number_text(math.inf), number_text(-0.0)
    ('1.25', '1.0', 'inf', '0.0')
    """
    value = float(number)
    if math.isnan(value):
        raise RecordError("NaN has no text in a document.")
    return repr(value + 0.0)


def number_of(text: object, name: str) -> float:
    """The double in such a text."""
    try:
        if isinstance(text, str) and number_text(float(text)) == text:
            return float(text)
    except (ValueError, RecordError):
        pass
    raise RecordError(f"{name} must be a number as text, in its shortest form.")


def time_text(moment: datetime) -> str:
    """A moment as the one text it has in a document."""
    if moment.tzinfo is None:
        raise RecordError("A time in a document must have a time zone.")
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def time_of(text: object, name: str) -> datetime:
    """The moment in such a text."""
    try:
        if isinstance(text, str) and _TIME.fullmatch(text):
            return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=UTC)
    except ValueError:
        pass
    raise RecordError(f"{name} must be a time in UTC such as 2026-03-01T12:00:00.000000Z.")


def moment_text(text: object, name: str) -> str:
    """Such a text as it stands, if it is one."""
    time_of(text, name)
    return str(text)


def bytes_of(text: object, name: str, length: int) -> bytes:
    """The bytes in a hexadecimal text of a given length."""
    if isinstance(text, str) and len(text) == 2 * length and _HEX.fullmatch(text):
        return bytes.fromhex(text)
    raise RecordError(f"{name} must be {2 * length} lower-case hexadecimal digits.")


def text_of(value: object, name: str) -> str:
    """A text that is not empty."""
    if isinstance(value, str) and value:
        return value
    raise RecordError(f"{name} must be a text that is not empty.")


def require_plain(value: object, name: str) -> None:
    """Refuse what has no single form, at any depth."""
    if value is None or isinstance(value, (bool, str)):
        return
    if type(value) is int and abs(value) < LARGEST_INTEGER:
        return
    if isinstance(value, (list, tuple)):
        for part in value:
            require_plain(part, name)
        return
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        for part in value.values():
            require_plain(part, name)
        return
    raise RecordError(
        f"{name} must hold texts, whole numbers below 2**53, truth values, null, lists and objects only, "
        f"got {type(value).__name__}; write a double as number_text gives it."
    )
