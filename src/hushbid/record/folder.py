"""The two files of a record of very many people: what is hashed, and everybody's columns."""

import io
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hushbid.common.codec import Codec
from hushbid.common.column_files import (
    ColumnFile,
    ColumnPlace,
    joined,
    open_inside,
    parquet_library,
    places_in,
    split,
    written,
)
from hushbid.common.documents import canonical, hash_of, parsed
from hushbid.disclosure import Release
from hushbid.errors import RecordError
from hushbid.record.content import TableContent

LARGEST_FILE = 100_000
"""Above so many people a record is a folder of two files."""

DOCUMENT, TABLE = "record.json", "people.parquet"
"""What the files of such a folder are called."""

COLUMNS = ("bid", "virtual_cost", "privacy_loss", "weight", "payment", "information_rent", "outside_error", "limit")
_LOST = ColumnPlace(("release", "privacy_loss"), "lost")
PLACES = (
    ColumnPlace(("people", "ids"), "id", "id"),
    ColumnPlace(("people", "groups"), "group", "label"),
    *(ColumnPlace(("outcome", "columns", name), name) for name in COLUMNS),
    ColumnPlace(("outcome", "rent_lower"), "rent_lower"),
    ColumnPlace(("outcome", "rent_upper"), "rent_upper"),
    ColumnPlace(("outcome", "tie_order"), "tie_order", "whole"),
    ColumnPlace(("outcome", "market", "prior", "labels"), "prior_label", "label"),
    ColumnPlace(("outcome", "market", "strata"), "stratum", "label"),
    ColumnPlace(("outcome", "market", "variance"), "variance", "setting"),
    ColumnPlace(("outcome", "market", "user_weight"), "user_weight", "setting"),
    ColumnPlace(("outcome", "market", "max_privacy_loss"), "max_privacy_loss", "setting"),
    ColumnPlace(("money", "payments"), "payment_minor", "whole"),
    _LOST,
)
"""Which lists are columns of the table, in its order."""


def apart(content: Mapping[str, Any], people: int, release: Release | None) -> tuple[bytes, ColumnFile]:
    """Return what is hashed of a record in a folder, and its other file."""
    if release is not None:
        content = joined(content, {_LOST: release.privacy_loss})  # as an array, in which numbers may be infinite
    document, columns = split(content, PLACES, people)
    table = written(columns)
    digest = hash_of(table)
    text = canonical({**document, "table": {"rows": people, "sha256": digest}})
    return text, ColumnFile(file=io.BytesIO(table), name=TABLE, rows=people, sha256=digest, places=tuple(columns))


class Folder:
    """A folder that is read: both files are of this one, whatever is put in its place meanwhile."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> "Folder":
        try:
            self._opened = os.open(self._path, os.O_RDONLY | os.O_DIRECTORY)
        except OSError as problem:
            raise RecordError(f"{self._path} cannot be read: {problem.strerror or type(problem).__name__}.") from None
        return self

    def __exit__(self, *problem: object) -> None:
        os.close(self._opened)

    def document(self) -> dict[str, Any]:
        """Return what ``record.json`` holds."""
        with open_inside(self._opened, DOCUMENT, str(self._path / DOCUMENT)) as file:
            return parsed(file.read())

    def table_of(self, content: Mapping[str, Any]) -> ColumnFile | None:
        """Return the other file, opened, as the document states it; None if it states none."""
        if "table" not in content:
            return None
        stated = Codec(TableContent, "table").read(content["table"])
        return ColumnFile(
            file=open_inside(self._opened, TABLE, str(self._path / TABLE)),
            name=TABLE,
            rows=stated.rows,
            sha256=stated.sha256,
            places=tuple(places_in(content, PLACES)),
        )


# -- where a record is -------------------------------------------------------------------------------------------------


def bytes_of_file(text: bytes, digest: str) -> bytes:
    """Return what a file holds: what was hashed in its canonical form, with the hash in it, and a line break."""
    first, comma, rest = text.partition(b",")  # of the keys, only ``format`` comes before ``hash``
    return b"".join((first, comma, b'"hash":"', digest.encode("ascii"), b'",', rest, b"\n"))


def needs_folder(people: int) -> bool:
    """Return whether a record of so many people is a folder."""
    return people > LARGEST_FILE


def require_table_library(people: int) -> None:
    """Refuse to go on where a record of so many people could not be written; say what to install."""
    if needs_folder(people):
        parquet_library()


def place_of_folder(path: Path) -> Path:
    """Return what a record that is a folder is called where one in a file would be called so."""
    name = path.name.removesuffix(".gz").removesuffix(".json")
    return path.with_name(name) if name else path


def present(path: Path) -> Path:
    """Return where the record is that was written to a path: a folder, or else the path itself."""
    folder = place_of_folder(path)
    return folder if is_record_folder(folder) else path


def is_in_folder(path: Path) -> bool:
    """Return whether a path is a folder, or the document of one that holds a table, too."""
    return path.is_dir() or (path.name == DOCUMENT and (path.parent / TABLE).exists())


def is_record_folder(path: Path) -> bool:
    """Return whether a folder holds the two files of a record, and nothing else."""
    return path.is_dir() and {one.name for one in path.iterdir()} == {DOCUMENT, TABLE}
