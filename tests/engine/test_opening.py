"""Which engine reads a file."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hushbid.engine import opening
from hushbid.engine.opening import choose


def test_size_and_kind_decide_unless_an_engine_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "people.parquet"
    pq.write_table(pa.table({"bid": [1.5]}), path)
    assert choose(path) == "memory"
    assert choose(path, "polars") == "polars"
    assert choose(path, "memory") == "memory"
    assert choose(tmp_path / "people.csv") == "memory"
    assert choose("-") == "memory"
    assert choose(tmp_path) == "auto"
    monkeypatch.setattr(opening, "LARGE", 1)
    assert choose(path) == "auto"
    monkeypatch.setattr(opening, "find_spec", lambda name: None)
    assert choose(path) == "memory"


def test_a_master_or_an_address_means_spark() -> None:
    assert choose("people.parquet", master="local[2]") == "spark:local[2]"
    assert choose("people.parquet", "spark", master="yarn") == "spark:yarn"
    assert choose("people.parquet", "spark") == "spark"
    assert choose("s3a://bucket/people") == "spark"
