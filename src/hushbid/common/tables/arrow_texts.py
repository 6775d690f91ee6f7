"""Many numbers and texts at once as Arrow's arrays of texts, for the lines of a CSV file, where Arrow is installed.

A double is written as Python writes it, as the shortest decimal that reads back as the same double. Arrow finds the
same digits, and sets them out in the same way from 0.0001 up to 10^10, but for the ``.0`` after a whole number, which
is added here. What is larger or smaller, and has an exponent or so many zeros, Python writes itself; and so it does
where nearly all are zero, as losses and payments are where few of many people are bought from.

Arrays go to and fro as buffers: where Arrow converts Python's or NumPy's objects itself it first imports pandas, if
that is there, which takes longer than all the rest.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from importlib.util import find_spec
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from hushbid.common.arrays import BoolArray, IndexArray

T = TypeVar("T")
U = TypeVar("U")

MANY = 10_000
"""From so many numbers on Arrow is worth its import."""

_WORKERS = 2
_LEAST, _MOST = 1e-4, 1e10
_ZERO = "0.0"
_FEW = 8
"""Zeros are written in runs where at most one number in so many is another."""


def is_quick(count: int) -> bool:
    """Whether so many are written by Arrow."""
    return count >= MANY and _is_installed()


def side_by_side(work: Callable[[T], U], parts: Iterable[T]) -> Iterator[U]:
    """The results in order. Arrow works outside of Python's lock, so two at a time are quicker; few wait."""
    waiting: deque[Future[U]] = deque()
    with ThreadPoolExecutor(max_workers=_WORKERS) as pool:
        for part in parts:
            waiting.append(pool.submit(work, part))
            if len(waiting) > 2 * _WORKERS:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def float_strings(values: NDArray[np.float64]) -> Any:
    """Doubles as an Arrow array of their texts."""
    values = np.ascontiguousarray(values)
    others = _others(values)
    if others is not None:
        content, sizes = _among_zeros(values, others)
        ends = np.full(values.size + 1, len(_ZERO), dtype=np.int32)
        ends[0], ends[others + 1] = 0, sizes
        return _array_of_texts(np.cumsum(ends, dtype=np.int32), content)
    digits, whole = _digits(values, _are_usual(values))
    if not whole.any():
        return digits
    return _joined(digits, strings(["", ".0"]).take(array_of(whole.astype(np.int8))))


def _others(values: NDArray[np.float64]) -> IndexArray | None:
    """Where numbers are not zero (a negative zero is another number), if these are few; None if not."""
    found = np.flatnonzero(values.view(np.int64))
    return found if _FEW * found.size <= values.size else None


def _among_zeros(values: NDArray[np.float64], others: IndexArray) -> tuple[bytes, list[int]]:
    """The texts of doubles, one after the other, and how long those are that are not zero."""
    texts = [repr(one) for one in values[others].tolist()]
    gaps = (np.diff(others, prepend=-1) - 1).tolist()
    last = values.size if others.size == 0 else values.size - 1 - int(others[-1])
    found = "".join([f"{_ZERO * gap}{text}" for gap, text in zip(gaps, texts, strict=True)])
    return (found + _ZERO * last).encode(), [*map(len, texts)]


def integer_strings(values: NDArray[Any]) -> Any:
    """Integers as an Arrow array of their texts."""
    from pyarrow import compute, string

    return compute.cast(array_of(np.ascontiguousarray(values, dtype=np.int64)), string())


def strings(texts: Sequence[str]) -> Any:
    """Python's texts as an Arrow array, of less than 2 GiB."""
    import pyarrow as pa

    return large_strings(texts).cast(pa.string())


def large_strings(texts: Sequence[str]) -> Any:
    """Python's texts as an Arrow array of any size."""
    import pyarrow as pa

    if (whole := "".join(texts)).isascii():  # as many bytes as characters
        sizes, content = map(len, texts), whole.encode("ascii")
    else:
        encoded = [text.encode() for text in texts]
        sizes, content = map(len, encoded), b"".join(encoded)
    ends = np.zeros(len(texts) + 1, dtype=np.int64)
    np.cumsum(np.fromiter(sizes, dtype=np.int64, count=len(texts)), out=ends[1:])
    return pa.Array.from_buffers(pa.large_string(), len(texts), [None, pa.py_buffer(ends), pa.py_buffer(content)])


def array_of(values: NDArray[Any]) -> Any:
    """NumPy's doubles or integers as an Arrow array, without a copy if they lie side by side."""
    import pyarrow as pa

    kept = np.ascontiguousarray(values)
    kinds = {np.float64: pa.float64(), np.int64: pa.int64(), np.int8: pa.int8()}
    return pa.Array.from_buffers(kinds[kept.dtype.type], kept.size, [None, pa.py_buffer(kept)])


def numbers_of(column: Any, kind: type[np.generic], missing: float) -> NDArray[Any]:
    """An Arrow array of doubles or integers, perhaps in chunks, as NumPy's; ``missing`` where it has a gap."""
    parts = []
    for chunk in getattr(column, "chunks", [column]):
        _, content = chunk.buffers()
        part = np.frombuffer(content or b"", dtype=kind)[chunk.offset : chunk.offset + len(chunk)]
        if chunk.null_count:
            gaps = np.frombuffer(chunk.is_null().cast("int8").buffers()[1], dtype=np.int8)[: len(chunk)]
            part = np.where(gaps == 1, np.array(missing, dtype=kind), part)
        parts.append(part)
    return np.concatenate(parts) if parts else np.zeros(0, dtype=kind)


def concatenated(*columns: Any) -> bytes:
    """Arrow arrays of texts, or single ones that stand in every row, written row by row without anything between."""
    found = _joined(*columns)
    content = found.buffers()[2]
    return b"" if content is None else content.to_pybytes()


def constant(text: str) -> Any:
    """A text that stands in every row."""
    return strings([text])[0]


def _are_usual(values: NDArray[np.float64]) -> BoolArray:
    """Which doubles Arrow sets out as Python does."""
    sizes = np.abs(values)
    found: BoolArray = ((sizes >= _LEAST) & (sizes < _MOST)) | (sizes == 0.0)
    return found


def _digits(values: NDArray[np.float64], usual: BoolArray) -> tuple[Any, BoolArray]:
    """The texts of doubles, but for the ``.0`` of those that are whole, and which these are."""
    from pyarrow import compute, string

    whole: BoolArray = usual & (values == np.floor(values))
    found = compute.cast(array_of(values), string())
    if not usual.all():
        rest = strings([repr(one) for one in values[~usual].tolist()])
        found = compute.replace_with_mask(found, _bits(~usual), rest)
    return found, whole


def _array_of_texts(ends: NDArray[np.int32], content: bytes) -> Any:
    import pyarrow as pa

    return pa.Array.from_buffers(pa.string(), ends.size - 1, [None, pa.py_buffer(ends), pa.py_buffer(content)])


def _joined(*columns: Any) -> Any:
    from pyarrow import compute

    return compute.binary_join_element_wise(*columns, constant(""))


def _bits(flags: BoolArray) -> Any:
    import pyarrow as pa

    packed = np.packbits(flags, bitorder="little")
    return pa.Array.from_buffers(pa.bool_(), flags.size, [None, pa.py_buffer(packed)])


@cache
def _is_installed() -> bool:
    return find_spec("pyarrow") is not None
