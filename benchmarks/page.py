"""Write the last benchmarks into their page: ``python -m benchmarks.page``, from the root of the repository.

Reads out/bench.json, which ``make bench`` writes, and replaces what stands between the two marks in docs/benchmarks.md
by the rows nearest to their limits, the worst first, with the machine it runs on: run both on the same one.
"""

import json
import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from benchmarks.harness import Row

RESULTS, PAGE = Path("out/bench.json"), Path("docs/benchmarks.md")
BEGIN, END = "<!-- begin: written by `python -m benchmarks.page` -->", "<!-- end -->"
SHOWN = 30
"""So many rows are on the page; all of them are in out/bench.json."""
PACKAGES = ("numpy", "scipy", "opendp", "polars", "duckdb", "pyarrow", "pyspark")


def main() -> int:
    if not RESULTS.exists():
        print(f"{RESULTS} is missing: run 'make bench' first", file=sys.stderr)
        return 2
    rows = [Row(**row) for row in json.loads(RESULTS.read_text(encoding="utf-8"))]
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8"), rows, machine()), encoding="utf-8")
    print(f"{len(rows)} rows written into {PAGE}")
    return 0


def filled(page: str, rows: list[Row], where: str) -> str:
    """The page with the rows between its marks."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise SystemExit(f"{PAGE} must hold the marks {BEGIN!r} and {END!r}")
    promised = sorted((row for row in rows if row.limit is not None), key=lambda row: -row.ratio / (row.limit or 1.0))
    missed = sum(not row.kept for row in promised)
    verdict = f"{len(promised) - missed} of {len(promised)} promised limits were kept; the rows nearest to theirs:"
    return f"{before}{BEGIN}\n\n{where} {verdict}\n\n{table(promised[:SHOWN])}\n\n{END}{after}"


def table(rows: list[Row]) -> str:
    """The rows as a Markdown table."""
    head = ["| measured | against | ratio | limit |", "|---|---|---:|---:|"]
    return "\n".join([*head, *(f"| {row.what} | {row.against} | {row.ratio:.3g} | {row.limit:g} |" for row in rows)])


def machine() -> str:
    """Processor, cores and versions, in a sentence; nothing that names the machine or its owner."""
    versions = []
    for package in PACKAGES:
        try:
            versions.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    return (
        f"Measured on {processor()}, {os.cpu_count()} cores, {platform.system()},"
        f" Python {platform.python_version()}, {', '.join(versions)}."
    )


def processor() -> str:
    """What the processor calls itself."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


if __name__ == "__main__":
    sys.exit(main())
