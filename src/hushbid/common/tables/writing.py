"""Columns to a file, in the format that the end of its name says, or to a data frame of the caller's library."""

import gzip
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO, Literal

import numpy as np

from hushbid.common.staging import STREAM, Write
from hushbid.common.tables.arrow import pyarrow, write_parquet
from hushbid.common.tables.columns import Raw, of_one_kind
from hushbid.common.tables.csv_files import listed, write_csv
from hushbid.common.tables.workbooks import write_workbook, xlsxwriter
from hushbid.errors import InputError, MissingExtra

Library = Literal["pandas", "polars", "pyarrow"]

_MAKERS = {"pandas": "DataFrame", "polars": "DataFrame", "pyarrow": "table"}
"""The libraries in the order in which one is taken, and what makes a frame of columns."""


def frame_of(columns: Mapping[str, Raw], library: Library | None = None) -> Any:
    """A frame of ``library``; unless one is named, of the first that is installed: pandas, Polars, pyarrow."""
    if library is not None and library not in _MAKERS:
        raise InputError(f"library must be one of {', '.join(map(repr, _MAKERS))}, got {library!r}.", field="library")
    for name in [library] if library is not None else _MAKERS:
        try:
            make = getattr(import_module(name), _MAKERS[name])
        except ModuleNotFoundError as missing:
            if missing.name != name:
                raise
            continue
        held = _objects if name == "pandas" else of_one_kind
        return make({head: held(column) for head, column in columns.items()})
    what = library or "pandas, polars or pyarrow"
    raise MissingExtra(f"A data frame needs {what}: pip install {library or 'pandas'}.")


def frame_of_rows(heads: Sequence[str], rows: Iterable[Sequence[Any]], library: Library | None = None) -> Any:
    """A frame of rows under the names of their columns."""
    cells = list(rows)
    return frame_of({name: [row[place] for row in cells] for place, name in enumerate(heads)}, library)


def library_of(source: Any) -> Library | None:
    """The library that a frame belongs to, by the name of its module; None for files, arrays and others."""
    found = type(source).__module__.partition(".")[0]
    return found if found in _MAKERS else None  # type: ignore[return-value]


def _objects(column: Raw) -> Raw:
    """An array of NumPy's as it is, everything else as a list."""
    return column if isinstance(column, np.ndarray) else listed(column)


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
