"""From whatever holds a population to the engine that works on it."""

from pathlib import Path
from typing import Any

from hushbid.engine.arrow import ArrowEngine
from hushbid.engine.boundary import Engine
from hushbid.errors import InputError, MissingExtra

NAMES = ("auto", "memory", "polars", "duckdb", "spark")
SPARK_AT = "spark:"
"""Before a master URL: ``spark:local[4]``, ``spark:spark://host:7077``, ``spark:yarn``."""


def open_engine(population: Any, engine: str = "auto") -> Engine:
    """The engine for a table; for a path, ``engine`` says which one reads it."""
    if engine not in NAMES and not engine.startswith(SPARK_AT):
        raise InputError(f"engine must be one of {', '.join(NAMES)}, or spark: with a master URL, got {engine!r}.")
    if isinstance(population, str | Path):
        return _open_path(population, engine)
    kind = type(population).__module__.partition(".")[0]
    if kind not in ("pyarrow", "polars", "duckdb", "_duckdb", "pyspark"):
        raise InputError(
            "population must be a pyarrow table, a Polars frame, a DuckDB relation, a Spark DataFrame or a path, got"
            f" {type(population).__name__}."
        )
    expected = {"pyarrow": "memory", "_duckdb": "duckdb", "pyspark": "spark"}.get(kind, kind)
    if engine not in ("auto", expected) and not (expected == "spark" and engine.startswith(SPARK_AT)):
        raise InputError(f"engine must be 'auto' or {expected!r} for a {type(population).__name__}, got {engine!r}.")
    return _open_frame(population, expected)


def _open_frame(population: Any, kind: str) -> Engine:
    if kind == "polars":
        from hushbid.engine.polars_frame import PolarsEngine

        return PolarsEngine(population)
    if kind == "duckdb":
        from hushbid.engine.duckdb_relation import DuckDBEngine

        return DuckDBEngine(population)
    if kind == "spark":
        from hushbid.engine.spark_frame import SparkEngine

        return SparkEngine(population)
    return ArrowEngine(population)


def _open_path(path: str | Path, engine: str) -> Engine:
    if engine == "auto":
        return ArrowEngine(path)
    on_spark = engine.startswith("spark")
    if not on_spark and not Path(path).exists():
        raise InputError(f"There is no file or folder {str(path)!r}.")
    pattern = f"{path}/**/*.parquet" if Path(path).is_dir() else str(path)
    try:
        if engine == "memory":
            return ArrowEngine(ArrowEngine(path).read_all())
        if engine == "polars":
            import polars as pl

            return _open_frame(pl.scan_parquet(pattern), engine)
        if engine == "duckdb":
            import duckdb

            return _open_frame(duckdb.read_parquet(pattern), engine)
        from hushbid.engine.spark_frame import session

        return _open_frame(session(engine.removeprefix(SPARK_AT)).read.parquet(str(path)), "spark")
    except ModuleNotFoundError as missing:
        extra = "spark" if on_spark else "engines"
        raise MissingExtra(f"Engine {engine!r} needs {missing.name}: pip install 'hushbid[{extra}]'.") from None
