"""From whatever holds a population to the engine that works on it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from hushbid.common.tables import library_of
from hushbid.engine.adapter import Engine, pyarrow
from hushbid.engine.backends.arrow import ArrowEngine
from hushbid.errors import InputError, MissingExtra

NAMES = ("auto", "memory", "polars", "duckdb", "spark")
SPARK_AT = "spark:"
"""Before a master URL: ``spark:local[4]``, ``spark:spark://host:7077``, ``spark:yarn``."""


def open_engine(population: Any, engine: str = "auto", *, connection: Any = None) -> Engine:
    """The engine for a table; for a path, ``engine`` says which one reads it."""
    if engine not in NAMES and not engine.startswith(SPARK_AT):
        raise InputError(
            f"engine must be one of {', '.join(NAMES)}, or spark: with a master URL, got {engine!r}.", field="engine"
        )
    if isinstance(population, str | Path):
        return _open_path(population, engine)
    # by the name of its module: none of the libraries is imported to find out
    kind = type(population).__module__.partition(".")[0]
    library = kind if kind in ("polars", "duckdb", "_duckdb", "pyspark") else None
    kind = library or "pyarrow"
    # a library's series, expression or connection is no table
    if not (hasattr(population, "__arrow_c_stream__") if library is None else hasattr(type(population), "columns")):
        raise InputError(
            "population must be a pandas or Polars frame, a pyarrow table, a DuckDB relation, a Spark DataFrame,"
            f" anything else that speaks Arrow, or a path, got {type(population).__name__}.",
            field="population",
        )
    expected = {"pyarrow": "memory", "_duckdb": "duckdb", "pyspark": "spark"}.get(kind, kind)
    if engine not in ("auto", expected) and not (expected == "spark" and engine.startswith(SPARK_AT)):
        raise InputError(
            f"engine must be 'auto' or {expected!r} for a {type(population).__name__}, got {engine!r}.", field="engine"
        )
    return _open_frame(population, expected, connection)


def _open_frame(population: Any, kind: str, connection: Any = None) -> Engine:
    if kind == "polars":
        from hushbid.engine.backends.polars import PolarsEngine

        return PolarsEngine(population)
    if kind == "duckdb":
        from hushbid.engine.backends.duckdb import DuckDBEngine

        return DuckDBEngine(population, connection)
    if kind == "spark":
        from hushbid.engine.backends.spark import SparkEngine

        return SparkEngine(population)
    if library_of(population) != "pandas":
        return ArrowEngine(_as_table(population, pyarrow().table))
    with_index = partial(pyarrow().Table.from_pandas, preserve_index=True)
    return ArrowEngine(_as_table(population, with_index), back=partial(_to_pandas, population.index))


def _as_table(population: Any, table: Callable[[Any], Any]) -> Any:
    pa = pyarrow()
    try:
        return table(population)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):  # whose message would show a value
        told = "population must have columns with different names and of one kind each: Arrow cannot take it otherwise."
        raise InputError(told, field="population") from None


def _to_pandas(index: Any, table: Any) -> Any:
    """The rows that are left keep the index that they had; one of all numbers in order is not made a column."""
    try:
        found = table.to_pandas()
    except (pyarrow().ArrowException, TypeError, ValueError):
        told = (
            "population must have columns that Arrow gives back to pandas: categories of intervals, for one, are not."
        )
        raise InputError(told, field="population") from None
    if type(index).__name__ == "RangeIndex" and len(found) == len(index):
        found.index = index
    return found


def _open_path(path: str | Path, engine: str) -> Engine:
    if is_url(path) and not engine.startswith("spark"):
        raise InputError(
            f"engine must be 'spark' for {str(path)!r}: the others read files of this machine.", field="engine"
        )
    with _naming_the_extra(engine):
        return _open_url(str(path), engine) if is_url(path) else _open_file(Path(path), engine)


def refuse_existing_address(url: str, engine: str) -> None:
    """Say, before everybody is priced, if there is something already where Spark shall write."""
    with _naming_the_extra(engine):
        from hushbid.engine.backends.spark import refuse_existing

        _session(engine)
        refuse_existing(url)


@contextmanager
def _naming_the_extra(engine: str) -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as missing:
        extra = "spark" if engine.startswith("spark") else "engines"
        raise MissingExtra(f"Engine {engine!r} needs {missing.name}: pip install '.[{extra}]' in a checkout.") from None


def _open_file(path: Path, engine: str) -> Engine:
    """All engines read the same files in the same order; folders called ``name=value`` are a column."""
    # whichever engine reads them, Arrow lists the files
    opened = ArrowEngine(path)
    files = opened.files
    if engine == "auto":
        return opened
    if engine == "memory":
        return ArrowEngine(opened.read_all())
    if engine == "polars":
        import polars as pl

        return _open_frame(pl.scan_parquet(files, hive_partitioning=True), engine)
    if engine == "duckdb":
        import duckdb

        return _open_frame(duckdb.read_parquet(files, hive_partitioning=True), engine)
    base = path if path.is_dir() else path.parent
    reader = _session(engine).read.option("basePath", f"file://{base.absolute()}")
    return _open_frame(reader.parquet(*(f"file://{Path(file).absolute()}" for file in files)), "spark")


def _open_url(url: str, engine: str) -> Engine:
    from pyspark.errors import AnalysisException

    try:
        return _open_frame(_session(engine).read.parquet(url), "spark")
    except AnalysisException as problem:
        raise InputError(f"Spark cannot read {url!r}: {problem.getCondition()}.") from None


def _session(engine: str) -> Any:
    from hushbid.engine.backends.spark import session

    return session(engine.removeprefix(SPARK_AT) if engine.startswith(SPARK_AT) else None)


def is_url(path: str | Path) -> bool:
    """Whether a path names another file system than this machine's, which only Spark reads."""
    return "://" in str(path)


LARGE = 256 << 20
"""A Parquet file of at least so many bytes is priced in batches unless told otherwise."""

MEMORY = "memory"
_PARQUET_NAMES = (".parquet", ".pq")


def choose(path: str | Path, engine: str = "auto", *, master: str | None = None) -> str:
    """The engine for a file or folder: the named one; else by what it is, how large, and what is installed.

    ``"memory"`` stands for reading everything at once, ``"auto"`` for Arrow's batches. Small files and everything that
    is not Parquet are read at once; a folder, which only an engine reads, and a large file in batches; an address as
    in ``s3a://`` by Spark.
    """
    if engine == "spark" or (engine == "auto" and (master is not None or is_url(path))):
        return "spark" if master is None else SPARK_AT + master
    if engine != "auto":
        return engine
    place = Path(path)
    if place.is_dir():
        return "auto"
    is_large = place.suffix.lower() in _PARQUET_NAMES and place.is_file() and place.stat().st_size >= LARGE
    return "auto" if is_large and find_spec("pyarrow") is not None else MEMORY
