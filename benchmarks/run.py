"""Run the benchmarks and print one table: ``python -m benchmarks.run [NAME ...]``, from the root of the repository.

A benchmark is a file ``bench_NAME.py`` beside this one with a function ``run() -> list[Row]``. Without names all run.
The table is also saved as out/bench.json. The exit status is 1 if a promised ratio was exceeded.
"""

import json
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from importlib import import_module
from pathlib import Path

from benchmarks.harness import Row
from hushbid.disclosure.ledger.store import VARIABLE

HERE = Path(__file__).parent
HEADINGS = ("measured", "against", "ours", "theirs", "ratio", "limit", "")


def main(names: list[str]) -> int:
    available = sorted(path.stem.removeprefix("bench_") for path in HERE.glob("bench_*.py"))
    unknown = [name for name in names if name not in available]
    if unknown:
        print(f"no benchmark called {', '.join(unknown)}; there are: {', '.join(available)}", file=sys.stderr)
        return 2
    with own_state():
        rows = [row for name in names or available for row in measured(name)]
    print(table(rows))
    out = Path("out")
    out.mkdir(exist_ok=True)
    (out / "bench.json").write_text(json.dumps([asdict(row) for row in rows], indent=2) + "\n", encoding="utf-8")
    return 0 if all(row.kept for row in rows) else 1


@contextmanager
def own_state() -> Iterator[None]:
    """Keep what is released meanwhile in a folder that is removed, not among the releases of this account."""
    before = os.environ.get(VARIABLE)
    with tempfile.TemporaryDirectory(prefix="hushbid-bench-") as folder:
        os.environ[VARIABLE] = folder
        try:
            yield
        finally:
            del os.environ[VARIABLE]
            if before is not None:
                os.environ[VARIABLE] = before


def measured(name: str) -> list[Row]:
    """What one benchmark measures."""
    print(f"running {name} ...", file=sys.stderr)
    found: list[Row] = import_module(f"benchmarks.bench_{name}").run()
    return found


def table(rows: list[Row]) -> str:
    """The rows under their headings, in columns."""
    lines = [HEADINGS, *(cells(row) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) if place < 2 else cell.rjust(width) for place, (cell, width) in enumerate(pairs))
        for pairs in (list(zip(line, widths, strict=True)) for line in lines)
    )


def cells(row: Row) -> tuple[str, ...]:
    limit = "" if row.limit is None else f"{row.limit:g}"
    verdict = "" if row.limit is None else "kept" if row.kept else "MISSED"
    return row.what, row.against, row.ours, row.theirs, f"{row.ratio:.3g}", limit, verdict


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
