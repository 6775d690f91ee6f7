"""From file to file."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hushbid.engine import large
from hushbid.mechanism import Market
from hushbid.priors import Uniform


@pytest.mark.parametrize("engine", ["auto", "memory", "polars", "duckdb"])
def test_a_file_is_priced_into_a_file_on_every_engine(tmp_path: Path, engine: str) -> None:
    reports, market = (
        Uniform(1, 2).sample(500, rng=np.random.default_rng(1)),
        Market(prior=Uniform(1, 2), variance=0.25),
    )
    pq.write_table(pa.table({"id": np.arange(500), "sensitivity": reports}), tmp_path / "people.parquet")
    told: list[Any] = []
    large.price_file(
        tmp_path / "people.parquet", market, tmp_path / "priced.parquet", engine=engine, progress=told.append
    )
    found = pq.read_table(tmp_path / "priced.parquet").sort_by("id")["payment"].to_numpy()
    np.testing.assert_allclose(found, market.acquire(reports).payments, rtol=1e-12)
    assert told[-1].what == "pricing and writing"


def test_size_decides_unless_an_engine_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "people.parquet"
    pq.write_table(pa.table({"sensitivity": [1.5]}), path)
    assert not large.is_large(path)
    assert large.is_large(path, "polars")
    assert not large.is_large(path, "memory")
    assert not large.is_large(tmp_path / "people.csv")
    assert large.is_large(tmp_path)
    monkeypatch.setattr(large, "LARGE", 1)
    assert large.is_large(path)
