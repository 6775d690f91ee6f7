"""Spark DataFrames: kernels are shipped to the workers, which need this library, NumPy, SciPy and pyarrow."""

import pickle
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from pyspark.sql import SparkSession

from hushbid.engine.boundary import OUTPUT, Batch, Mapper, Reducer, Sum, pyarrow, with_output
from hushbid.errors import InputError


class SparkEngine:
    """A ``pyspark.sql.DataFrame``."""

    def __init__(self, frame: Any) -> None:
        self._frame = frame
        self.names: list[str] = list(frame.columns)

    def reduce(self, kernel: Reducer[Sum], columns: Sequence[str], zero: Sum) -> Sum:
        """The sum of the kernel's results: added up within each partition, then on the driver."""
        selected = self._frame.select(*map(_quoted, columns))
        total = zero
        for row in selected.mapInArrow(_reducing(kernel, zero), "summary binary").toLocalIterator():
            total = total + pickle.loads(row[0])
        return total

    def map(self, kernel: Mapper, columns: Sequence[str], *, drop: bool) -> Any:
        """A DataFrame that is priced where its rows are, whenever it is run."""
        from pyspark.sql.types import DoubleType, StructType

        schema = StructType(list(self._frame.schema.fields))
        for name in OUTPUT:
            schema = schema.add(name, DoubleType())
        return self._frame.mapInArrow(_mapping(kernel, drop), schema)

    def distinct(self, column: str) -> int:
        """How many different values a column has, nulls not counted."""
        return int(self._frame.select(_quoted(column)).dropna().distinct().count())

    def write(self, frame: Any, path: str) -> None:
        """Write to a folder of Parquet files."""
        frame.write.parquet(path)


def session(master: str = "spark") -> SparkSession:
    """The session that is running; if none is, a new one at a master URL."""
    found = SparkSession.getActiveSession()
    if found is not None:
        return found
    if master == "spark":
        raise InputError("Engine 'spark' needs a running session, or a master URL as in 'spark:local[4]'.")
    builder: Any = SparkSession.builder
    new: SparkSession = builder.master(master).appName("hushbid").getOrCreate()
    return new


def _reducing(kernel: Reducer[Sum], zero: Sum) -> Callable[[Iterator[Batch]], Iterator[Batch]]:
    def reduce(batches: Iterator[Batch]) -> Iterator[Batch]:
        total = zero
        for batch in batches:
            total = total + kernel(batch, None)
        pa = pyarrow()
        yield pa.RecordBatch.from_arrays([pa.array([pickle.dumps(total)], type=pa.binary())], names=["summary"])

    return reduce


def _mapping(kernel: Mapper, drop: bool) -> Callable[[Iterator[Batch]], Iterator[Batch]]:
    def map_(batches: Iterator[Batch]) -> Iterator[Batch]:
        for batch in batches:
            yield with_output(batch, kernel, drop=drop)

    return map_


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
