"""One way to write plain values down, so that equal contents have equal bytes and one hash.

The canonical form is JSON in ASCII on one line: keys sorted, no spaces, every float as the shortest decimal that reads
back as the same double (as orjson spells it), integers as digits, infinities as the texts ``"inf"`` and ``"-inf"``. NaN
has no form. Reading is as strict: a key that occurs twice and the words NaN and Infinity are refused, since readers
differ on them.
"""

import gzip
import hashlib
import io
import json
import math
import re
import zlib
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson

from hushbid.common.durable import write_whole
from hushbid.errors import HushbidError, OutputExists, RecordError, Unwritable

_LEVEL = 4  # of compression: digits hardly shrink further, but take much longer
_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]")


def canonical(content: Mapping[str, Any]) -> bytes:
    """The canonical form of plain values."""
    return _written(content, orjson.OPT_SORT_KEYS)


def compact(content: Mapping[str, Any]) -> bytes:
    """The canonical form but for the order of the keys, which stay as they are."""
    return _written(content, 0)


def _written(content: Mapping[str, Any], option: int) -> bytes:
    try:
        _require_finite(content)
        return _in_ascii(orjson.dumps(content, default=_as_number, option=option))
    except (TypeError, ValueError) as problem:  # orjson's own errors are among these
        raise RecordError(f"A record must hold plain finite values only: {problem}.") from None


def _require_finite(value: Any) -> None:
    """Refuse NaN and infinities at any depth: orjson would write null."""
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError("a number is not finite")
    elif isinstance(value, Mapping):
        for one in value.values():
            _require_finite(one)
    elif isinstance(value, list | tuple):
        kinds = set(map(type, value))
        if kinds == {float}:
            if not math.isfinite(sum(value)) and not all(map(math.isfinite, value)):
                raise ValueError("a number is not finite")
        elif not kinds <= {str, int}:
            for one in value:
                _require_finite(one)


def _as_number(value: Any) -> float | dict[str, Any]:
    """Write NumPy's doubles as doubles and mappings as objects; refuse all else that is not plain."""
    if isinstance(value, float):
        return float(value)
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} has no form in JSON")


def _in_ascii(text: bytes) -> bytes:
    """The same JSON with escapes for characters beyond ASCII, two of them for a character beyond 16 bits."""
    if text.isascii():
        return text
    return _BEYOND_ASCII.sub(lambda sign: json.dumps(sign[0])[1:-1], text.decode()).encode("ascii")


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
    return hash_of(canonical(content))


def hash_of(text: bytes) -> str:
    """SHA-256 of what is in canonical form already, as hexadecimal text."""
    return hashlib.sha256(text).hexdigest()


def parsed(text: bytes) -> dict[str, Any]:
    """The plain values in a JSON text.

    A text that is written as we write has one reading, which orjson finds quickly. It would not notice a key that
    occurs twice, and reads large integers as floats: any other text is left to a slower and stricter reader.
    """
    found = _quickly(text)
    if found is None:
        try:
            found = json.loads(text, object_pairs_hook=unique_keys, parse_constant=_no_constant)
        except (ValueError, RecursionError):
            raise RecordError(
                "A record must be JSON in which no key occurs twice and no number is NaN or infinite."
            ) from None
    if not isinstance(found, dict):
        raise RecordError(f"A record must be a JSON object, got {type(found).__name__}.")
    return found


def _quickly(text: bytes) -> Any:
    """The values in a text that is written as we write, keys in any order; None for any other text."""
    try:
        found = orjson.loads(text)
        return found if _in_ascii(orjson.dumps(found)) == text.removesuffix(b"\n") else None
    except (orjson.JSONDecodeError, TypeError):
        return None


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
