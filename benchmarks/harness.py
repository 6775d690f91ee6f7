"""How benchmarks measure: our time or memory divided by somebody else's, both taken in the same run.

Seconds belong to a machine; a ratio to something everybody has, such as ``np.sort``, travels.
"""

import gc
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the table."""

    what: str
    """What was measured, with its size: "allocate, central, uniform, n = 10^6"."""

    against: str
    """What it is divided by: "np.sort"."""

    ratio: float
    """Ours over theirs: below one is better than they."""

    limit: float | None = None
    """The ratio we promise not to exceed; None where the line only informs."""

    ours: str = ""
    """Our figure with its unit, for orientation."""

    theirs: str = ""
    """Their figure with its unit, for orientation."""

    @property
    def kept(self) -> bool:
        """Whether the promise, if there is one, is kept."""
        return self.limit is None or self.ratio <= self.limit


def time_ratio(
    what: str,
    ours: Callable[[], object],
    *,
    against: str,
    theirs: Callable[[], object],
    limit: float | None = None,
    repeats: int = 7,
    calls: int = 1,
) -> Row:
    """Time two functions in turn, many times, and divide the least times of both.

    Other work on the machine only ever adds time, and taking turns exposes both to it alike. ``calls`` repeats a quick
    function within one measurement.
    """
    gc.collect()
    pairs = [(_seconds(ours, calls), _seconds(theirs, calls)) for _ in range(repeats + 1)][1:]  # the first one warms up
    mine, other = (min(column) for column in zip(*pairs, strict=True))
    return Row(
        what=what,
        against=against,
        ratio=mine / other,
        limit=limit,
        ours=_readable_seconds(mine),
        theirs=_readable_seconds(other),
    )


def memory_ratio(
    what: str, ours: Callable[[], object], *, against: str, bytes_of_theirs: int, limit: float | None = None
) -> Row:
    """The peak of what a function allocates, NumPy's arrays included, divided by a number of bytes."""
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        ours()
        peak = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    return Row(
        what=what,
        against=against,
        ratio=peak / bytes_of_theirs,
        limit=limit,
        ours=f"{peak / 2**20:.1f} MiB",
        theirs=f"{bytes_of_theirs / 2**20:.1f} MiB",
    )


def _seconds(function: Callable[[], object], calls: int) -> float:
    start = time.perf_counter()
    for _ in range(calls):
        function()
    return (time.perf_counter() - start) / calls


def _readable_seconds(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"
