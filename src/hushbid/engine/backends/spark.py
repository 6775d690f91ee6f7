"""Spark DataFrames: kernels are shipped to the workers, which need this library, NumPy, SciPy and pyarrow."""

import os
import pickle
import sys
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.types import DoubleType, LongType, StringType, StructType

from hushbid.engine.adapter import BATCH_ROWS, Batch, Mapper, Reducer, Sum, needed, pyarrow, with_output
from hushbid.errors import HushbidError, InputError, OutputExists, Unwritable

_KINDS = {"float64": DoubleType(), "int64": LongType(), "string": StringType()}
_HALFWAY = 16
"""More summaries than this meet on so many workers, if there are, before the driver adds up what is left."""


class SparkEngine:
    """A ``pyspark.sql.DataFrame``."""

    in_memory = False

    def __init__(self, frame: Any) -> None:
        self._frame = frame
        self.names: list[str] = list(frame.columns)

    def kind(self, column: str) -> Any:
        return self._frame.select(_quoted(column)).limit(0).toArrow().schema.field(0).type

    def reduce(self, kernel: Reducer[Sum], zero: Sum) -> Sum:
        """The sum of the kernel's results: within each partition, then on a few workers, then on the driver."""
        selected = self._frame.select(*map(_quoted, kernel.columns))
        parts = selected.mapInArrow(_reducing(kernel, zero), "summary binary")
        total = zero
        # of many summaries some of the adding is done by workers, so that the driver gets few
        if parts.rdd.getNumPartitions() > _HALFWAY:
            workers = min(_HALFWAY, self._frame.sparkSession.sparkContext.defaultParallelism)
            parts = parts.repartition(workers).mapInArrow(_adding(zero), "summary binary")
        for row in parts.collect():
            total = total + _loaded(row[0])
        return total

    def map(self, kernel: Mapper, *, drop: bool, keep: Sequence[str] | None = None) -> Any:
        """A DataFrame that is priced where its rows are, whenever it is run."""
        kept = self.names if keep is None else list(keep)
        frame = self._frame.select(*map(_quoted, needed(kernel, kept)))
        schema = StructType([self._frame.schema[name] for name in kept])
        for name, kind in kernel.fields:
            schema = schema.add(name, _KINDS[kind])
        return frame.mapInArrow(_mapping(kernel, drop, kept), schema)

    def distinct(self, column: str) -> int:
        return int(self._frame.select(_quoted(column)).dropna().distinct().count())

    def write(self, frame: Any, path: str) -> None:
        """Write to a folder of Parquet files; a path without a scheme is one of this machine's, from where we are."""
        frame.write.parquet(path if "://" in path else f"file://{Path(path).absolute()}")


def _reducing(kernel: Reducer[Sum], zero: Sum) -> Callable[[Iterator[Batch]], Iterator[Batch]]:
    def reduce(batches: Iterator[Batch]) -> Iterator[Batch]:
        total = zero
        try:
            for batch in _larger(batches):
                total = total + kernel(batch, None)
        except HushbidError as problem:  # for the driver to raise, without Spark's words around it
            yield _summary(problem)
            return
        yield _summary(total)

    return reduce


def _adding(zero: Sum) -> Callable[[Iterator[Batch]], Iterator[Batch]]:
    def add(batches: Iterator[Batch]) -> Iterator[Batch]:
        total = zero
        for batch in batches:
            for part in batch.column(0).to_pylist():
                try:
                    total = total + _loaded(part)
                except HushbidError as problem:
                    yield _summary(problem)
                    return
        yield _summary(total)

    return add


def _mapping(kernel: Mapper, drop: bool, keep: list[str]) -> Callable[[Iterator[Batch]], Iterator[Batch]]:
    def map_(batches: Iterator[Batch]) -> Iterator[Batch]:
        for batch in batches:
            yield with_output(batch, kernel, drop=drop, keep=keep)

    return map_


def _larger(batches: Iterator[Batch]) -> Iterator[Batch]:
    """Spark's batches are small (10,000 rows unless told): a few at a time save most of what a kernel call costs."""
    waiting: list[Batch] = []
    rows = 0
    for batch in batches:
        waiting.append(batch)
        rows += batch.num_rows
        if rows >= BATCH_ROWS // 2:
            yield pyarrow().concat_batches(waiting)
            waiting, rows = [], 0
    if waiting:
        yield pyarrow().concat_batches(waiting)


def _summary(found: object) -> Batch:
    pa = pyarrow()
    return pa.RecordBatch.from_arrays([pa.array([pickle.dumps(found)], type=pa.binary())], names=["summary"])


def _loaded(content: bytes) -> Any:
    found = pickle.loads(content)
    if isinstance(found, HushbidError):
        raise found
    return found


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def session(master: str | None = None) -> SparkSession:
    """The session that is running or that spark-submit describes; if there is none, a new one at a master URL."""
    found = SparkSession.getActiveSession()
    if found is not None:
        return found
    builder: Any = SparkSession.builder.appName("hushbid")
    if master is None and "PYSPARK_GATEWAY_PORT" not in os.environ:
        raise InputError("Engine 'spark' needs a running session, spark-submit, or a master URL such as local[4].")
    if master is not None:
        builder = builder.master(master)
        if master.startswith("local"):  # all of it on this machine: not to be reached from elsewhere
            os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
            builder = builder.config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1")
            builder = builder.config("spark.ui.enabled", "false").config("spark.log.level", "ERROR")
    # what is shipped to a worker at once: ten thousand rows unless told
    builder = builder.config("spark.sql.execution.arrow.maxRecordsPerBatch", str(BATCH_ROWS))
    new: SparkSession = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
    return new


@contextmanager
def moved(url: str, *, force: bool) -> Iterator[str]:
    """A temporary place beside an address; what is there in the end is moved to the address, else removed.

    In one step on HDFS; an object store copies, so there Spark's own writer and a look at ``_SUCCESS`` are better.
    """
    if not force:
        refuse_existing(url)
    hadoop, system = _file_system(url)
    target = hadoop(url)
    folder, _, name = url.rstrip("/").rpartition("/")
    place = f"{folder}/.{name}.{uuid.uuid4().hex}"
    temporary, old = hadoop(f"{place}.tmp"), hadoop(f"{place}.old")
    try:
        yield f"{place}.tmp"
        # the old one aside, the new one in its place, and back if that fails
        is_replaced = system.exists(target)
        if is_replaced and not (force and system.rename(target, old)):
            raise OutputExists(f"{url} exists already and cannot be replaced.")
        if not system.rename(temporary, target):
            if is_replaced:
                system.rename(old, target)
            raise Unwritable(f"{url} cannot be written: the file system refused to rename.")
        system.delete(old, True)
    finally:
        system.delete(temporary, True)


def refuse_existing(url: str) -> None:
    """Say if there is something at an address."""
    hadoop, system = _file_system(url)
    if system.exists(hadoop(url)):
        raise OutputExists(f"{url} exists already: force=True replaces.", field="force")


def _file_system(url: str) -> tuple[Any, Any]:
    """How paths are made, and where an address is."""
    running: Any = session()
    hadoop = running._jvm.org.apache.hadoop.fs.Path
    return hadoop, hadoop(url).getFileSystem(running._jsc.hadoopConfiguration())
