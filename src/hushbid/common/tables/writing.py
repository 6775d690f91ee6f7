"""Columns to a file, in the format that the end of its name says."""

import gzip
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

from hushbid.common.staging import STREAM, Write
from hushbid.common.tables.arrow import pyarrow
from hushbid.common.tables.columns import Raw
from hushbid.common.tables.csv_files import write_csv
from hushbid.common.tables.parquet import write_parquet
from hushbid.common.tables.workbooks import write_workbook, xlsxwriter
from hushbid.errors import InputError

ENDINGS = ("csv", "csv.gz", "parquet", "xlsx")
"""What the names of tables may end in."""


def table_writer(path: str | Path, columns: Mapping[str, Raw]) -> Write:
    """A function that writes the columns to an open file, in the format that the path's end names."""
    name = Path(path).name.lower()
    if str(path) == STREAM or name.endswith(".csv"):
        return lambda file: write_csv(file, columns)
    if name.endswith(".csv.gz"):
        return lambda file: _compressed(file, columns)
    if name.endswith((".parquet", ".pq")):
        pyarrow()  # say early that it is missing
        return lambda file: write_parquet(file, columns)
    if name.endswith(".xlsx"):
        xlsxwriter()
        return lambda file: write_workbook(file, columns)
    raise InputError(f"{path} must end in .csv, .csv.gz, .parquet or .xlsx, or be - for standard output.")


def _compressed(file: BinaryIO, columns: Mapping[str, Raw]) -> None:
    # without a time: the same table gives the same bytes
    with gzip.GzipFile(fileobj=file, mode="wb", filename="", mtime=0) as packed:
        write_csv(packed, columns)  # type: ignore[arg-type]
