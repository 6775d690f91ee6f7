"""DuckDB relations."""

import uuid
from collections.abc import Sequence
from typing import Any

import duckdb

from hushbid.engine.boundary import BATCH_ROWS, OUTPUT, Mapper, Reducer, Sum, fold, pyarrow


class DuckDBEngine:
    """A ``duckdb.DuckDBPyRelation``; pricing is a function in its connection, so the result is a relation too."""

    def __init__(self, relation: Any, connection: Any = None) -> None:
        self._relation, self._connection = relation, connection
        self.names: list[str] = list(relation.columns)

    def reduce(self, kernel: Reducer[Sum], columns: Sequence[str], zero: Sum) -> Sum:
        """The sum of the kernel's results over all batches of these columns."""
        selected = self._relation.project(", ".join(map(_quoted, columns)))
        return fold(selected.to_arrow_reader(BATCH_ROWS), kernel, zero)

    def map(self, kernel: Mapper, columns: Sequence[str], *, drop: bool) -> Any:
        """A relation that is priced in DuckDB's own vectors, whenever it is run."""
        name = f"hushbid_{uuid.uuid4().hex}"
        types = dict(zip(self._relation.columns, self._relation.types, strict=True))
        pa = pyarrow()

        def decide(rows: Any) -> Any:
            parts = rows.chunks if isinstance(rows, pa.ChunkedArray) else [rows]
            found = [kernel(pa.RecordBatch.from_struct_array(part)) for part in parts]
            return pa.chunked_array([pa.StructArray.from_arrays(columns, names=OUTPUT) for columns in found])

        connection: Any = duckdb.default_connection() if self._connection is None else self._connection
        connection.create_function(
            name,
            decide,
            [duckdb.struct_type({column: types[column] for column in columns})],
            duckdb.struct_type(dict.fromkeys(OUTPUT, "DOUBLE")),
            type="arrow",
            null_handling="special",
        )
        packed = ", ".join(f"{_quoted(column)} := {_quoted(column)}" for column in columns)
        decided = self._relation.project(f"*, {name}(struct_pack({packed})) AS {name}")
        fields = ", ".join(f"{name}.{field} AS {field}" for field in OUTPUT)
        priced = decided.project(f"* EXCLUDE ({name}), {fields}")
        return priced.filter(f"{OUTPUT[0]} IS NOT NULL") if drop else priced

    def distinct(self, column: str) -> int:
        """How many different values a column has, nulls not counted."""
        found = self._relation.aggregate(f"count(DISTINCT {_quoted(column)})").fetchone()
        return int(found[0])

    def write(self, frame: Any, path: str) -> None:
        """Write to one Parquet file."""
        frame.write_parquet(path)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
