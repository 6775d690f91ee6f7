"""Large files from the command line: whether to price on an engine, and on which."""

from importlib.util import find_spec
from pathlib import Path

from hushbid.engine.opening import SPARK_AT, is_url

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
