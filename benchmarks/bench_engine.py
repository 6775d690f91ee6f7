"""Pricing tables against DuckDB's own bucketed group-by of the same file.

``HUSHBID_BENCH_ROWS`` sets the size (10^7 unless told). ``python -m benchmarks.bench_engine ROWS ENGINE`` prices one
file in a process of its own and prints its seconds, passes and peak memory: how the figures for 10^8 rows are taken.
"""

import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.harness import Row, time_ratio
from hushbid.engine import price
from hushbid.engine.opening import open_engine
from hushbid.engine.passes import Census, CensusKernel
from hushbid.engine.people import People
from hushbid.mechanism import Market
from hushbid.priors import Exponential, LogNormal, Prior, Uniform

ROWS = int(float(os.environ.get("HUSHBID_BENCH_ROWS", "1e7")))
MARKET = Market(prior=Uniform(1.0, 2.0), variance=0.25)
PRIORS: dict[str, Prior] = {"uniform": Uniform(1, 2), "exponential": Exponential(1), "log-normal": LogNormal(0, 1)}
_CHUNK = 1 << 20


def run() -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        path = str(people(Path(folder) / "people.parquet", ROWS))
        return [*passes(path), *virtual_costs(), *whole(path)]


def people(path: Path, rows: int) -> Path:
    """A file of ids and reports, drawn from a uniform prior chunk by chunk."""
    rng = np.random.default_rng(1)
    schema = pa.schema([("id", pa.int64()), ("sensitivity", pa.float64())])
    with pq.ParquetWriter(path, schema, use_dictionary=False) as writer:
        for start in range(0, rows, _CHUNK):
            ids = np.arange(start, min(start + _CHUNK, rows))
            writer.write_table(pa.table({"id": ids, "sensitivity": 1.0 + rng.random(ids.size)}, schema=schema))
    return path


def passes(path: str) -> Iterator[Row]:
    """One solving pass, virtual costs included, on every engine that reads the file here."""
    who = People(report="sensitivity", id=None, group=None, variance=None, priors={"": Uniform(1, 2)}, tie_seed=b"")
    for engine in ("auto", "memory", "polars", "duckdb"):
        opened = open_engine(path, engine)
        yield time_ratio(
            f"first solving pass, {engine}, {ROWS:.0e} rows",
            lambda opened=opened: opened.reduce(CensusKernel(who), Census()),  # type: ignore[misc]
            against="DuckDB group-by",
            theirs=group_by(path),
            limit=4.0 if engine == "auto" else None,
            repeats=3,
        )


def group_by(path: str) -> Callable[[], object]:
    """Count, sum and sum of squares in a few thousand buckets."""
    query = (
        "SELECT CAST(floor((sensitivity - 1) * 4096) AS INT) AS bucket, count(*), sum(sensitivity),"
        f" sum(sensitivity * sensitivity) FROM read_parquet('{path}') GROUP BY bucket"
    )
    return lambda: duckdb.sql(query).fetchall()


def virtual_costs() -> Iterator[Row]:
    """What evaluating virtual costs takes, apart from everything else."""
    for name, prior in PRIORS.items():
        reports = prior.sample(10**6, rng=np.random.default_rng(2))
        yield time_ratio(
            f"virtual costs, {name}, 1e+06 rows",
            lambda prior=prior, reports=reports: prior.virtual_cost(reports),  # type: ignore[misc]
            against="np.sort",
            theirs=lambda reports=reports: np.sort(reports),  # type: ignore[misc]
            repeats=3,
        )


def whole(path: str) -> Iterator[Row]:
    """Decide and write, against the same group-by."""
    for engine in ("auto", "memory", "polars", "duckdb"):
        yield time_ratio(
            f"decide and write, {engine}, {ROWS:.0e} rows",
            lambda engine=engine: write(path, engine),  # type: ignore[misc]
            against="DuckDB group-by",
            theirs=group_by(path),
            repeats=1,
        )


def write(path: str, engine: str) -> Any:
    priced = price(path, MARKET, engine=engine)
    priced.write_parquet(Path(path).with_name("priced.parquet"), force=True)
    return priced


def main(rows: int, engine: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = str(people(Path(folder) / "people.parquet", rows))
        start = time.perf_counter()
        group_by(path)()
        theirs = time.perf_counter() - start
        print(f"{rows:.0e} rows, {engine}: DuckDB group-by in {theirs:.1f} s, peak {peak():.2f} GiB", flush=True)
        start = time.perf_counter()
        priced = price(path, MARKET, engine=engine)
        decided, summary = time.perf_counter() - start, priced.summary
        print(
            f"decided in {decided:.1f} s: {summary.passes} passes, {summary.method}, {summary.active} active,"
            f" peak {peak():.2f} GiB",
            flush=True,
        )
        priced.write_parquet(Path(folder) / "priced.parquet")
        print(f"written after {time.perf_counter() - start:.1f} s, peak {peak():.2f} GiB", flush=True)


def peak() -> float:
    """The most memory this process has had so far, in GiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


if __name__ == "__main__":
    main(int(float(sys.argv[1])), sys.argv[2] if len(sys.argv) > 2 else "auto")
