"""What an engine is: two verbs over Arrow batches.

*Reduce* applies a kernel to every batch and adds the results up; *map* applies a kernel to every batch and appends the
columns it returns. A kernel is the library's own NumPy code, so what is proved in memory holds on every engine; its
results are integers, extremes and sets, whose sum does not depend on order, batches or machines. An engine must be able
to read its rows several times, and to ship a kernel to wherever they are (kernels can be pickled).
"""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, Generic, Protocol, Self, TypeVar

from hushbid.errors import MissingExtra

Batch = Any
"""A ``pyarrow.RecordBatch``."""

Frame = Any
"""A table of whatever kind the engine works on."""

Fields = tuple[tuple[str, str], ...]
"""Names of columns to append and what they hold: ``"float64"``, ``"int64"`` or ``"string"``."""

BATCH_ROWS = 1 << 17


class Addable(Protocol):
    """Something that adds up."""

    def __add__(self, other: Self, /) -> Self: ...


Sum = TypeVar("Sum", bound=Addable)
Summary = TypeVar("Summary", bound=Addable, covariant=True)


class Reducer(Protocol[Summary]):
    """From a batch and the number of its first row (None: rows have no order) to a summary."""

    @property
    def columns(self) -> list[str]:
        """What it reads."""
        ...

    def __call__(self, batch: Batch, start: int | None, /) -> Summary: ...


class Mapper(Protocol):
    """From a batch to the arrays of the columns to append; the first is null in rows that are not priced."""

    @property
    def columns(self) -> list[str]:
        """What it reads."""
        ...

    @property
    def fields(self) -> Fields:
        """The columns to append."""
        ...

    def __call__(self, batch: Batch, /) -> list[Any]: ...


class Engine(Protocol):
    """One table, wherever it lives."""

    @property
    def names(self) -> list[str]:
        """The names of its columns."""
        ...

    @property
    def in_memory(self) -> bool:
        """Whether its rows are in memory, so that reading them once more costs little."""
        ...

    def kind(self, column: str) -> Any:
        """The Arrow type of a column."""
        ...

    def reduce(self, kernel: Reducer[Sum], zero: Sum) -> Sum:
        """The sum of the kernel's results over all batches of the columns that it reads."""
        ...

    def map(self, kernel: Mapper, *, drop: bool, keep: Sequence[str] | None = None) -> Frame:
        """The table, or the columns ``keep`` of it, with the kernel's columns appended.

        With ``drop``, rows that are not priced are left out.
        """
        ...

    def distinct(self, column: str) -> int:
        """How many different values a column has, nulls not counted."""
        ...

    def write(self, frame: Frame, path: str) -> None:
        """Write what `map` returned as Parquet to a path where nothing is yet."""
        ...


def fold(batches: Iterable[Batch], kernel: Reducer[Sum], zero: Sum) -> Sum:
    """Reduce batches that arrive in order."""
    with Folding(kernel, zero) as folding:
        for batch in batches:
            folding.take(batch)
        return folding.total()


class Folding(Generic[Sum]):
    """The reduction of batches that are handed in one by one, in order; kernels run in threads."""

    def __init__(self, kernel: Reducer[Sum], zero: Sum) -> None:
        self._kernel, self._total = kernel, zero
        self._rows, self._threads = 0, Threads[Sum]()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *problem: object) -> None:
        self._threads.close()

    def take(self, batch: Batch) -> None:
        """One batch more."""
        # results come back in order, so that sums are added in order
        for found in self._threads.take(partial(self._kernel, batch, self._rows)):
            self._total = self._total + found
        self._rows += batch.num_rows

    def total(self) -> Sum:
        """The sum over all batches."""
        for found in self._threads.rest():
            self._total = self._total + found
        return self._total


def mapped(batches: Iterable[Batch], kernel: Mapper, *, drop: bool, keep: Sequence[str] | None) -> Iterator[Batch]:
    """Every batch with its new columns, in order."""
    return in_threads(partial(with_output, batch, kernel, drop=drop, keep=keep) for batch in batches)


def with_output(batch: Batch, kernel: Mapper, *, drop: bool, keep: Sequence[str] | None) -> Batch:
    """One batch, or some columns of it, with its new columns; the old ones stay as they are."""
    pa = pyarrow()
    columns = kernel(batch)
    old = batch if keep is None else batch.select(list(keep))
    found = pa.RecordBatch.from_arrays([*old.columns, *columns], schema=output_schema(old.schema, kernel))
    # a row that is not priced has null in the first new column
    return found.filter(columns[0].is_valid()) if drop and columns[0].null_count else found


def needed(kernel: Mapper, keep: Sequence[str]) -> list[str]:
    """The columns that must be read to price a table and keep some of its columns, each once."""
    return list(dict.fromkeys([*keep, *kernel.columns]))


def output_schema(schema: Any, kernel: Mapper) -> Any:
    """An Arrow schema with the kernel's columns appended."""
    pa = pyarrow()
    for name, kind in kernel.fields:
        schema = schema.append(pa.field(name, pa.type_for_alias(kind)))
    return schema


def pyarrow() -> Any:
    """The package, imported when it is needed."""
    try:
        import pyarrow as pa
    except ImportError:
        raise MissingExtra("Pricing tables needs pyarrow: pip install '.[engines]' in a checkout.") from None
    return pa


T = TypeVar("T")


def in_threads(jobs: Iterable[Callable[[], T]]) -> Iterator[T]:
    """Results in order; see `Threads`."""
    threads = Threads[T]()
    try:
        for job in jobs:
            yield from threads.take(job)
        yield from threads.rest()
    finally:
        threads.close()


class Threads(Generic[T]):
    """Jobs in threads, as NumPy lets go of the interpreter's lock; no more of them waiting than there are threads."""

    def __init__(self) -> None:
        self._workers = max(2, min(8, os.cpu_count() or 1))
        self._pool = ThreadPoolExecutor(self._workers)
        self._waiting: deque[Future[T]] = deque()

    def take(self, job: Callable[[], T]) -> list[T]:
        """Hand in a job; the results of earlier ones that had to be waited for, in order."""
        self._waiting.append(self._pool.submit(job))
        too_many = max(len(self._waiting) - self._workers, 0)
        return [self._waiting.popleft().result() for _ in range(too_many)]

    def rest(self) -> Iterator[T]:
        """All other results."""
        while self._waiting:
            yield self._waiting.popleft().result()

    def close(self) -> None:
        """Begin nothing more."""
        self._pool.shutdown(cancel_futures=True)
