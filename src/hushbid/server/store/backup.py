"""A database as one file that either store can be restored from: lines of JSON, compressed.

The first line says what the file is and whose; then comes one line per row, table by table, each after those it points
to; the last line holds the number of rows and a hash over everything before it. A file that was cut off or changed is
refused before anything is restored.

Sessions, failed log-ins and answers to repeated requests are left out: they are worth nothing later. So is everything
that lies outside the database, keys and claims above all; see `hushbid.server.installation`.
"""

import base64
import gzip
import hashlib
import itertools
import json
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any

from sqlalchemy import Connection, LargeBinary, Table, delete, insert, select, text

from hushbid.errors import Conflict, RecordError
from hushbid.server.store.schema import idempotency, login_failures, metadata, sessions, stored

FORMAT, VERSION = "hushbid-backup", 2
_LEFT_OUT = frozenset({sessions.name, login_failures.name, idempotency.name})
_AT_ONCE = 500
_NO_BACKUP = "The file is no backup, or was cut off or changed."


@dataclass(frozen=True, slots=True, kw_only=True)
class Backup:
    """What a file holds."""

    installation: str
    """The name of the folder it belongs to."""

    made_at: str
    campaigns: int
    rows: int


def dump(connection: Connection, file: IO[bytes], *, at: str) -> Backup:
    """Write everything as it is at one moment, while others go on reading and writing."""
    known = {row.name: row.value for row in connection.execute(select(metadata.tables["installation"]))}
    header = {
        "format": FORMAT,
        "version": VERSION,
        "made_at": at,
        "installation": known.get("home", ""),
        "tables": revision(connection),
    }
    rows = campaigns = 0
    digest = hashlib.sha256()
    with gzip.GzipFile(fileobj=file, mode="wb", mtime=0) as packed:

        def put(content: Any) -> None:
            line = json.dumps(content, separators=(",", ":"), allow_nan=False).encode("ascii") + b"\n"
            digest.update(line)  # the last line, which holds it, is not in it
            packed.write(line)

        put(header)
        for table in _tables():
            for row in connection.execution_options(yield_per=_AT_ONCE).execute(select(*stored(table))):
                put({"table": table.name, "row": _plain(table, row._mapping)})
                rows += 1
                campaigns += table.name == "campaigns"
        packed.write(json.dumps({"rows": rows, "sha256": digest.hexdigest()}).encode("ascii") + b"\n")
    return Backup(installation=header["installation"], made_at=at, campaigns=campaigns, rows=rows)


def check(file: IO[bytes]) -> Backup:
    """Read a whole file without restoring it."""
    with _Reader(file) as reader:
        tables = [table for table, _ in reader.rows()]
        header = reader.header
    return Backup(
        installation=header["installation"],
        made_at=header["made_at"],
        campaigns=tables.count("campaigns"),
        rows=len(tables),
    )


def restore(connection: Connection, file: IO[bytes], *, replace: bool) -> None:
    """Put a file's rows in place of everything, in the caller's transaction; ``replace`` if there is anything."""
    tables = {table.name: table for table in _tables()}
    used = (
        connection.execute(select(table).limit(1)).first() for name, table in tables.items() if name != "installation"
    )
    if not replace and any(used):
        raise Conflict("The database is not empty: --replace puts the backup in its place.")
    with _Reader(file) as reader:
        if reader.header["tables"] != revision(connection):
            raise RecordError("The backup was made by another version of Hushbid: restore it with that version.")
        # those that point to others first; in the caller's transaction, so all or nothing
        for table in reversed(metadata.sorted_tables):
            connection.execute(delete(table))
        for name, group in itertools.groupby(reader.rows(), key=lambda one: one[0]):
            if name not in tables:
                raise RecordError("The backup holds a table that this version of Hushbid does not know.")
            while part := list(itertools.islice(group, _AT_ONCE)):
                connection.execute(insert(tables[name]), [_stored(tables[name], row) for _, row in part])


def revision(connection: Connection) -> str:
    """Which tables a database has."""
    return str(connection.execute(text("SELECT version_num FROM alembic_version")).scalar_one())


class _Reader:
    """A file, line by line; what is read counts only if the last line was reached."""

    def __init__(self, file: IO[bytes]) -> None:
        self._packed = gzip.GzipFile(fileobj=file, mode="rb")
        with _damage_is_told():
            line = self._packed.readline()
            content = json.loads(line)
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise RecordError(_NO_BACKUP)
        if content.get("version") != VERSION:
            raise RecordError(f"A backup must have version {VERSION}: this one was made by another version of Hushbid.")
        self.header = {name: str(content.get(name)) for name in ("installation", "made_at", "tables")}
        self._digest = hashlib.sha256(line)

    def __enter__(self) -> "_Reader":
        return self

    def __exit__(self, *_: object) -> None:
        self._packed.close()

    def rows(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Every row with its table's name; raises at the end if the file is not what was written."""
        count = 0
        while True:
            with _damage_is_told():
                line = self._packed.readline()
                content = json.loads(line)
                # the last line: as many rows as were written, and nothing changed
                if "sha256" in content:
                    if (content["rows"], content["sha256"]) != (count, self._digest.hexdigest()):
                        raise RecordError(_NO_BACKUP)
                    return
                found = str(content["table"]), dict(content["row"])
            self._digest.update(line)
            count += 1
            yield found


@contextmanager
def _damage_is_told() -> Iterator[None]:
    try:
        yield
    except (OSError, EOFError, zlib.error, ValueError, KeyError, TypeError):
        raise RecordError(_NO_BACKUP) from None


def _tables() -> Iterator[Table]:
    return (table for table in metadata.sorted_tables if table.name not in _LEFT_OUT)


def _plain(table: Table, row: Any) -> dict[str, Any]:
    return {
        column.name: base64.b64encode(row[column.name]).decode("ascii")
        if isinstance(column.type, LargeBinary) and row[column.name] is not None
        else row[column.name]
        for column in table.columns
    }


def _stored(table: Table, row: dict[str, Any]) -> dict[str, Any]:
    return {
        name: base64.b64decode(value)
        if isinstance(table.columns[name].type, LargeBinary) and value is not None
        else value
        for name, value in row.items()
    }
