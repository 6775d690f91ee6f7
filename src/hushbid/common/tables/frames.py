"""Columns as a data frame: of the library that the caller works with."""

from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any, Literal

import numpy as np

from hushbid.common.tables.columns import Raw, of_one_kind
from hushbid.common.tables.csv_files import listed
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
    """The library that a frame belongs to, told by the name of its module; None for files, arrays and others."""
    found = type(source).__module__.partition(".")[0]
    return found if found in _MAKERS else None  # type: ignore[return-value]


def _objects(column: Raw) -> Raw:
    """An array of NumPy's as it is, everything else as a list."""
    return column if isinstance(column, np.ndarray) else listed(column)
