"""Pricing tables on every engine, against DuckDB's own bucketed group-by of the same file.

Every engine runs in a process of its own, so that its memory is its own: ``python -m benchmarks.bench_engine PATH
ENGINE`` prints what it found as JSON, and with ``pass`` behind it only what a single pass takes. ``HUSHBID_BENCH_ROWS``
sets the size for all engines (10^7 unless told). ``HUSHBID_BENCH_LARGEST=1e8`` lets the default engine go on to that
size, and a single pass of Spark's, beside which what it costs to start one is nothing. TMPDIR says where the files go.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from benchmarks.harness import Row, time_ratio
from hushbid.engine import price
from hushbid.engine.opening import open_engine
from hushbid.engine.passes import Census, CensusKernel
from hushbid.engine.people import People
from hushbid.mechanism import Market
from hushbid.priors import Exponential, LogNormal, Prior, Uniform

ROWS = int(float(os.environ.get("HUSHBID_BENCH_ROWS", "1e7")))
LARGEST = int(float(os.environ.get("HUSHBID_BENCH_LARGEST", "0")))
SPARK = "spark:local[2]"
ENGINES = ("auto", "memory", "polars", "duckdb", SPARK)
ARRAY = "array"
"""Not an engine: ``Market.acquire`` on the column as one array, which was read before."""

MARKET = Market(prior=Uniform(1.0, 2.0), variance=0.25, buyer_weight=1.0, user_weight=1.0)
PRIORS: dict[str, Prior] = {"uniform": Uniform(1, 2), "exponential": Exponential(1), "log-normal": LogNormal(0, 1)}
GIB = 1 << 30
_ALLOWED = 2 * GIB
_MOST_PASSES = 3
_CHUNK = 1 << 20
_REPEATS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """What a single pass takes, in seconds, each the quickest of a few."""

    rows: int
    engine: str
    first_pass: float
    group_by: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Found(Pass):
    """What one process measured, in seconds and bytes."""

    decided: float
    """The quickest of a few, as what follows."""

    written: float
    """To price and write everybody after that."""

    processor: float
    """Processor time of this process for both: what other work on the machine changes little."""

    passes: int
    active: int
    peak: int
    """The most memory that the process had, what it wrote included; of Spark, only that of the driver's Python."""


def run() -> list[Row]:
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        path = people(Path(folder) / "people.parquet", ROWS)
        found = {engine: measured(path, engine) for engine in (*ENGINES, ARRAY)}
        path.unlink()
        rows += [row for one in found.values() for row in compared(one)]
        rows += against_default(found)
        rows += virtual_costs()
        before = found["auto"]
        for size in [ROWS // 10, *([LARGEST] if LARGEST > ROWS else [])]:
            path = people(Path(folder) / "people.parquet", size)
            other = measured(path, "auto")
            small, large = sorted((before, other), key=lambda one: one.rows)
            rows += [*compared(other), growth(small, large)]
            if size == LARGEST:
                rows.append(pass_row(Pass(**in_process(path, SPARK, "pass"))))
            path.unlink()
    return rows


def people(path: Path, rows: int) -> Path:
    """A file of ids and bids, drawn from a uniform prior chunk by chunk."""
    rng = np.random.default_rng(1)
    schema = pa.schema([("id", pa.int64()), ("bid", pa.float64())])
    with pq.ParquetWriter(path, schema, use_dictionary=False) as writer:
        for start in range(0, rows, _CHUNK):
            ids = np.arange(start, min(start + _CHUNK, rows))
            writer.write_table(pa.table({"id": ids, "bid": 1.0 + rng.random(ids.size)}, schema=schema))
    return path


def measured(path: Path, engine: str) -> Found:
    """Measure in another process."""
    return Found(**in_process(path, engine))


def in_process(path: Path, engine: str, *what: str) -> dict[str, Any]:
    """What another process prints."""
    print(f"  {engine}, {path.stat().st_size / GIB:.2f} GiB, load {os.getloadavg()[0]:.1f}", file=sys.stderr)
    command = [sys.executable, "-m", "benchmarks.bench_engine", str(path), engine, *what]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr[-2000:]}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def measure(path: Path, engine: str) -> Found:
    """Decide and write in this process; then compare single passes with the group-by."""
    out = path.with_name("priced.parquet")
    few = people(path.with_name("few.parquet"), 1000)  # what loading libraries and starting Spark take is not counted
    if engine == ARRAY:
        MARKET.acquire(column(few))
    else:
        price(few, MARKET, engine=engine).write_parquet(out, force=True)
    bids = column(path) if engine == ARRAY else None
    # several times, as everywhere: the first time memory is asked for that later ones find
    times = []
    for _ in range(_REPEATS):
        start, busy = time.perf_counter(), time.process_time()
        if bids is not None:
            passes, active, written = 1, MARKET.acquire(bids).active, 0.0
            decided = time.perf_counter() - start
        else:
            priced = price(path, MARKET, engine=engine)
            decided, passes, active = time.perf_counter() - start, priced.summary.passes, priced.summary.active
            priced.write_parquet(out, force=True)
            written = time.perf_counter() - start - decided
        times.append((decided, written, time.process_time() - busy))
    decided, written, busy = (min(column) for column in zip(*times, strict=True))
    peak = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)) << 10
    alone = single_pass(path, engine)
    return Found(
        **asdict(alone), decided=decided, written=written, processor=busy, passes=passes, active=active, peak=peak
    )


def single_pass(path: Path, engine: str) -> Pass:
    """One solving pass and the group-by, in turn."""
    who = People(bid="bid", id=None, group=None, variance=None, priors={"": Uniform(1, 2)}, tie_seed=b"")
    opened = None if engine == ARRAY else open_engine(path, engine)

    def ours() -> None:
        if opened is not None:
            opened.reduce(CensusKernel(who), Census())

    theirs = group_by(path)
    pairs = [(_seconds(ours), _seconds(theirs)) for _ in range(_REPEATS)]
    mine, others = (min(column) for column in zip(*pairs, strict=True))
    rows = pq.ParquetFile(path).metadata.num_rows
    return Pass(rows=rows, engine=engine, first_pass=mine, group_by=others)


def column(path: Path) -> NDArray[np.float64]:
    """The bids in a file as one array."""
    found: NDArray[np.float64] = pq.read_table(path, columns=["bid"])["bid"].to_numpy()
    return found


def group_by(path: Path) -> Callable[[], object]:
    """Count, sum and sum of squares in a few thousand buckets."""
    query = (
        "SELECT CAST(floor((bid - 1) * 4096) AS INT) AS bucket, count(*), sum(bid),"
        f" sum(bid * bid) FROM read_parquet('{path}') GROUP BY bucket"
    )
    return lambda: duckdb.sql(query).fetchall()


def compared(found: Found) -> Iterator[Row]:
    """One process's figures: a pass and the whole against the group-by, passes and memory against what is allowed."""
    size = f"{found.engine}, {found.rows:.0e} rows".replace("e+0", "e")
    theirs = f"{found.group_by:.3g} s"
    is_default = found.engine == "auto"

    def row(what: str, seconds: float, limit: float | None = None) -> Row:
        ratio, ours = seconds / found.group_by, f"{seconds:.3g} s"
        return Row(what=what, against="DuckDB group-by", ratio=ratio, limit=limit, ours=ours, theirs=theirs)

    if found.engine == ARRAY:
        yield row(f"Market.acquire in memory, {size}", found.decided)
        return
    yield pass_row(found, 4.0 if is_default else None)
    yield row(f"decide, {size}, {found.active} active", found.decided)
    yield row(f"price and write, {size}", found.written)
    if is_default:
        yield Row(
            what=f"passes to decide, {size}",
            against="passes allowed",
            ratio=found.passes / _MOST_PASSES,
            limit=1.0,
            ours=str(found.passes),
            theirs=str(_MOST_PASSES),
        )
        yield Row(
            what=f"peak memory, all of it, {size}",
            against="memory allowed",
            ratio=found.peak / _ALLOWED,
            limit=1.0,
            ours=f"{found.peak / GIB:.2f} GiB",
            theirs=f"{_ALLOWED / GIB:.0f} GiB",
        )


def pass_row(found: Pass, limit: float | None = None) -> Row:
    """A single pass against the group-by."""
    return Row(
        what=f"one solving pass, {found.engine}, {found.rows:.0e} rows".replace("e+0", "e"),
        against="DuckDB group-by",
        ratio=found.first_pass / found.group_by,
        limit=limit,
        ours=f"{found.first_pass:.3g} s",
        theirs=f"{found.group_by:.3g} s",
    )


def against_default(found: Mapping[str, Found]) -> Iterator[Row]:
    """What memory and DuckDB take, against the default engine with the same people."""
    default, array, duck = found["auto"], found[ARRAY], found["duckdb"]
    whole = default.decided + default.written
    size = f"{default.rows:.0e} rows".replace("e+0", "e")
    yield Row(
        what=f"Market.acquire of an array in memory, {size}",
        against="price and write, auto, with deciding",
        ratio=array.decided / whole,
        limit=1.0,
        ours=f"{array.decided:.3g} s",
        theirs=f"{whole:.3g} s",
    )
    yield Row(
        what=f"price and write, duckdb, {size}",
        against="price and write, auto",
        ratio=duck.written / default.written,
        ours=f"{duck.written:.3g} s",
        theirs=f"{default.written:.3g} s",
    )


def growth(small: Found, large: Found) -> Row:
    """Whether work grows faster than the rows, a further pass included."""
    times = [one.processor / one.rows * 1e6 for one in (large, small)]
    return Row(
        what=f"decide and write, processor time per row, {large.rows:.0e} rows".replace("e+0", "e"),
        against=f"{small.rows:.0e} rows".replace("e+0", "e"),
        ratio=times[0] / times[1],
        ours=f"{times[0]:.2f} µs",
        theirs=f"{times[1]:.2f} µs",
    )


def virtual_costs() -> Iterator[Row]:
    """What evaluating virtual costs takes, apart from everything else."""
    for name, prior in PRIORS.items():
        bids = prior.sample(10**6, rng=np.random.default_rng(2))
        yield time_ratio(
            f"virtual costs, {name}, 1e6 rows",
            lambda prior=prior, bids=bids: prior.virtual_cost(bids),  # type: ignore[misc]
            against="np.sort",
            theirs=lambda bids=bids: np.sort(bids),  # type: ignore[misc]
            repeats=3,
        )


def _seconds(function: Callable[[], object]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


if __name__ == "__main__":
    do = single_pass if sys.argv[3:] == ["pass"] else measure
    print(json.dumps(asdict(do(Path(sys.argv[1]), sys.argv[2]))))
