"""Parquet files."""

from collections.abc import Mapping
from typing import Any, BinaryIO

import numpy as np

from hushbid.common.tables.arrow import arrow_column, pyarrow
from hushbid.common.tables.columns import Raw, of_one_kind
from hushbid.common.tables.csv_files import refuse_missing
from hushbid.common.tables.table import Table
from hushbid.errors import InputError

PARQUET_MAGIC = b"PAR1"


def read_parquet(file: BinaryIO, source: str, needed: list[str], optional: list[str]) -> Table:
    """Columns by name, with their types."""
    pa, parquet = pyarrow(), _parquet()
    try:
        opened = parquet.ParquetFile(file)
        names = opened.schema_arrow.names
        refuse_missing(source, names, needed)
        wanted = [name for name in dict.fromkeys([*needed, *optional]) if name in names]
        table = opened.read(columns=wanted)
    except (pa.ArrowException, OSError) as problem:
        raise InputError(f"{source} is not a readable Parquet file.") from problem
    columns = {name: arrow_column(table.column(name)) for name in wanted}
    return Table(source=source, columns=columns, rows=table.num_rows, numbered=np.arange(table.num_rows))


def names_in_parquet(file: BinaryIO, source: str) -> list[str]:
    """The names of the columns."""
    pa, parquet = pyarrow(), _parquet()
    try:
        return list(parquet.read_schema(file).names)
    except (pa.ArrowException, OSError) as problem:
        raise InputError(f"{source} is not a readable Parquet file.") from problem


def write_parquet(file: BinaryIO, columns: Mapping[str, Raw]) -> None:
    """Write columns with their types."""
    pa = pyarrow()
    _parquet().write_table(pa.table({name: pa.array(of_one_kind(column)) for name, column in columns.items()}), file)


def _parquet() -> Any:
    pyarrow()
    from pyarrow import parquet

    return parquet
