"""Every engine behind one function: a table in, the same table in that engine's form out."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

CUTS = np.random.default_rng(20)


@dataclass(frozen=True, slots=True)
class Kind:
    """One form in which a population may live."""

    name: str
    make: Callable[[pa.Table], Any]
    """From an Arrow table."""

    read: Callable[[Any], pa.Table]
    """Back to an Arrow table, sorted by id."""


def pieces(table: pa.Table) -> list[pa.Table]:
    """The rows in a random number of consecutive parts of random sizes, some of them empty."""
    cuts = np.sort(CUTS.integers(0, table.num_rows + 1, size=int(CUTS.integers(1, 6))))
    edges = [0, *cuts.tolist(), table.num_rows]
    return [table.slice(start, end - start) for start, end in pairwise(edges)]


def by_id(table: pa.Table) -> pa.Table:
    return table.sort_by("id")


def folder(table: pa.Table, path: Path) -> Path:
    path.mkdir()
    for number, part in enumerate(pieces(table)):
        pq.write_table(part, path / f"part-{number:03}.parquet", row_group_size=int(CUTS.integers(500, 5000)))
    return path


KINDS = ("arrow", "parquet", "folder", "polars", "polars_lazy", "duckdb", "spark")


ENGINES = ("arrow", "folder", "polars_lazy", "duckdb", "spark")
"""One form of each engine, and files: the others are read by the same code, and by tests that name all forms."""


@pytest.fixture(params=ENGINES)
def kind(request: pytest.FixtureRequest, tmp_path: Path) -> Kind:
    """One engine after the other."""
    return make_kind(request.param, request, tmp_path)


def make_kind(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> Kind:
    places = iter(range(1000))

    def chunked(table: pa.Table) -> pa.Table:
        return pa.concat_tables(pieces(table))

    def file(table: pa.Table) -> str:
        path = tmp_path / f"{next(places)}.parquet"
        pq.write_table(table, path, row_group_size=int(CUTS.integers(500, 5000)))
        return str(path)

    if name == "arrow":
        return Kind(name, chunked, by_id)
    if name == "parquet":
        return Kind(name, file, lambda stream: by_id(stream.read_all()))
    if name == "folder":
        return Kind(
            name, lambda table: folder(table, tmp_path / str(next(places))), lambda stream: by_id(stream.read_all())
        )
    if name == "polars":
        return Kind(name, lambda table: pl.from_arrow(chunked(table)), lambda frame: by_id(frame.to_arrow()))
    if name == "polars_lazy":
        return Kind(name, lambda table: pl.scan_parquet(file(table)), lambda frame: by_id(frame.collect().to_arrow()))
    if name == "duckdb":
        return Kind(name, lambda table: duckdb.read_parquet(file(table)), lambda frame: by_id(frame.to_arrow_table()))
    session = request.getfixturevalue("spark_session")
    return Kind(
        name,
        lambda table: session.read.parquet(file(table)).repartition(int(CUTS.integers(1, 5))),
        lambda frame: by_id(frame.toArrow()),
    )
