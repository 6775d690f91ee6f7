"""DuckDB relations."""

import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import duckdb

from hushbid.engine.adapter import BATCH_ROWS, Mapper, Reducer, Sum, fold, mapped, needed, output_schema, pyarrow
from hushbid.engine.backends.arrow import write_batches
from hushbid.errors import InputError

_INTEGERS = {"tinyint", "smallint", "integer", "bigint", "utinyint", "usmallint", "uinteger", "ubigint"}
_PLAIN = _INTEGERS | {"float", "double", "varchar", "boolean", "date"}
"""Kinds of columns that are the same in DuckDB's files and in Arrow's."""

_KINDS = {"float64": "DOUBLE", "int64": "BIGINT", "string": "VARCHAR"}


class DuckDBEngine:
    """A ``duckdb.DuckDBPyRelation``; pricing is a function in its connection, so the result is a relation too."""

    in_memory = False

    def __init__(self, relation: Any, connection: Any = None) -> None:
        self._relation = relation
        self._connection: Any = duckdb.default_connection() if connection is None else connection
        self.names: list[str] = list(relation.columns)
        self._made: list[tuple[Any, Mapper, bool, list[str]]] = []
        self._check_connection()

    def kind(self, column: str) -> Any:
        """The Arrow type of a column; UUIDs are bytes, as they are in files, though DuckDB hands them out as texts."""
        selected = self._relation.project(_quoted(column))
        if selected.types[0].id == "uuid":
            return pyarrow().binary(16)
        return selected.limit(0).to_arrow_table().schema.field(0).type

    def reduce(self, kernel: Reducer[Sum], zero: Sum) -> Sum:
        selected = self._relation.project(", ".join(map(_quoted, kernel.columns)))
        with _interrupts():
            return fold(selected.to_arrow_reader(BATCH_ROWS), kernel, zero)

    def map(self, kernel: Mapper, *, drop: bool, keep: Sequence[str] | None = None) -> Any:
        """A relation that is priced in DuckDB's own vectors, whenever it is run."""
        name = f"hushbid_{uuid.uuid4().hex}"
        types = dict(zip(self._relation.columns, self._relation.types, strict=True))
        fields = [field for field, _ in kernel.fields]
        pa = pyarrow()

        def decide(rows: Any) -> Any:
            parts = rows.chunks if isinstance(rows, pa.ChunkedArray) else [rows]
            found = [kernel(pa.RecordBatch.from_struct_array(part)) for part in parts]
            return pa.chunked_array([pa.StructArray.from_arrays(columns, names=fields) for columns in found])

        self._connection.create_function(
            name,
            decide,
            [duckdb.struct_type({column: types[column] for column in kernel.columns})],
            duckdb.struct_type({field: _KINDS[kind] for field, kind in kernel.fields}),
            type="arrow",
            null_handling="special",
        )
        # the kernel as a function of one struct, whose result is unpacked again
        packed = ", ".join(f"{_quoted(column)} := {_quoted(column)}" for column in kernel.columns)
        decided = self._relation.project(f"*, {name}(struct_pack({packed})) AS {name}")
        kept = f"* EXCLUDE ({name})" if keep is None else ", ".join(map(_quoted, keep))
        priced = decided.project(", ".join([kept, *(f"{name}.{field} AS {field}" for field in fields)]))
        priced = priced.filter(f"{fields[0]} IS NOT NULL") if drop else priced
        self._made.append((priced, kernel, drop, self.names if keep is None else list(keep)))
        return priced

    def distinct(self, column: str) -> int:
        with _interrupts():
            found = self._relation.aggregate(f"count(DISTINCT {_quoted(column)})").fetchone()
        return int(found[0])

    def write(self, frame: Any, path: str) -> None:
        """Write to one Parquet file.

        What `map` made is priced anew in large batches, in threads: a function that DuckDB calls gets two thousand rows
        at a time, which takes longer than pricing them. Where a column is of a kind that files and Arrow hold
        differently DuckDB writes.
        """
        with _interrupts():
            for made, kernel, drop, keep in self._made:
                if made is frame and self._are_plain(keep):
                    self._write_priced(path, kernel, drop, keep)
                    return
            frame.write_parquet(path)

    def _are_plain(self, columns: Sequence[str]) -> bool:
        kinds = dict(zip(self._relation.columns, self._relation.types, strict=True))
        return all(kinds[column].id in _PLAIN for column in columns)

    def _write_priced(self, path: str, kernel: Mapper, drop: bool, keep: Sequence[str]) -> None:
        read = self._relation.project(", ".join(map(_quoted, needed(kernel, keep))))
        reader = read.to_arrow_reader(BATCH_ROWS)
        kept = pyarrow().schema([reader.schema.field(name) for name in keep])
        write_batches(path, output_schema(kept, kernel), mapped(reader, kernel, drop=drop, keep=keep))

    def _check_connection(self) -> None:
        """A relation does not tell where it lives; one that does not see our function lives elsewhere."""
        name = f"hushbid_{uuid.uuid4().hex}"
        self._connection.create_function(name, lambda: 1, [], "INTEGER")
        try:
            self._relation.project(f"{name}()")
        except duckdb.CatalogException:
            raise InputError("The relation belongs to another connection: pass that as connection=.") from None
        finally:
            self._connection.remove_function(name)


@contextmanager
def _interrupts() -> Iterator[None]:
    """DuckDB notices an interrupt, but calls it an error."""
    try:
        yield
    except RuntimeError as problem:
        if str(problem) == "Query interrupted":
            raise KeyboardInterrupt from None
        raise


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
