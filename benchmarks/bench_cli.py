"""A whole campaign on the command line, against reading and writing the same files with Polars.

``hushbid run`` reads a million bids and data, decides, draws the estimate and writes decisions and payments, the
record, and the report. From CSV, without audits, it is measured against a process in which Polars reads the two files,
joins them and writes the result, and ``hushbid verify`` of its record against it. From Parquet to Parquet, with audits
and without, it is measured against Polars reading the same two files and writing the same two tables.
``HUSHBID_BENCH_PEOPLE`` sets the number of people.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import polars as pl

from benchmarks.harness import Row, time_ratio

PEOPLE = int(float(os.environ.get("HUSHBID_BENCH_PEOPLE", "1e6")))
_REPEATS = 3
CAMPAIGN = """\
[market]
setting = "central"
prior = "uniform:1,3"
bounds = [0, 12]
variance = 2
buyer_weight = 50000

[money]
currency = "EUR"

[bids]
file = "bids.{end}"

[data]
file = "data.{end}"

[output]
folder = "results"
decisions = "{end}"
"""
JOIN = """\
import polars as pl
pl.read_csv("bids.csv").join(pl.read_csv("data.csv"), on="id").write_csv("joined.csv")
"""
READ_AND_WRITE = """\
import polars as pl
for name in ("bids", "data"):
    pl.read_parquet(f"{name}.parquet")
for name in ("decisions", "payments"):
    pl.read_parquet(f"before/{name}.parquet").write_parquet(f"{name}.again.parquet")
"""
_MOST, _MOST_TO_VERIFY = 8.0, 2.0


def run() -> list[Row]:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        people(folder)
        return [*from_csv(folder), *from_parquet(folder)]


def from_csv(folder: Path) -> list[Row]:
    """A campaign without audits, and verifying its record."""

    def once() -> None:
        campaign(folder, "csv", "--no-audit")

    return [
        time_ratio(
            f"hushbid run --no-audit, CSV, {PEOPLE:.0e} people",
            once,
            against="Polars reads, joins, writes",
            theirs=lambda: process(folder, "-c", JOIN),
            limit=_MOST,
            repeats=_REPEATS,
        ),
        time_ratio(
            f"hushbid verify, {PEOPLE:.0e} people",
            lambda: process(folder, "-m", "hushbid", "verify", "results/record"),
            against="hushbid run --no-audit, CSV",
            theirs=once,
            limit=_MOST_TO_VERIFY,
            repeats=_REPEATS,
        ),
    ]


def from_parquet(folder: Path) -> list[Row]:
    """A campaign with audits and without."""
    campaign(folder, "parquet", "--no-audit")
    shutil.copytree(folder / "results", folder / "before")
    return [
        time_ratio(
            f"hushbid run{what}, {PEOPLE:.0e} people",
            lambda options=options: campaign(folder, "parquet", *options),  # type: ignore[misc]
            against="Polars, same tables",
            theirs=lambda: process(folder, "-c", READ_AND_WRITE),
            repeats=_REPEATS,
        )
        for what, options in {"": (), " --no-audit": ("--no-audit",)}.items()
    ]


def people(folder: Path) -> None:
    """Bids and, in another order, data."""
    rng = np.random.default_rng(1)
    ids = np.char.add("person-", np.arange(PEOPLE).astype(str))
    order = rng.permutation(PEOPLE)
    tables = {
        "bids": pl.DataFrame({"id": ids, "bid": rng.uniform(1, 3, PEOPLE)}),
        "data": pl.DataFrame({"id": ids[order], "value": np.clip(rng.normal(7, 1, PEOPLE), 0, 12)}),
    }
    for name, table in tables.items():
        table.write_parquet(folder / f"{name}.parquet")
        table.write_csv(folder / f"{name}.csv")
    for end in ("csv", "parquet"):
        (folder / f"{end}.toml").write_text(CAMPAIGN.format(end=end), encoding="utf-8")


def campaign(folder: Path, end: str, *options: str) -> None:
    """Run the campaign from the beginning, in an account that has never asked anything."""
    for made in (folder / "results", folder / "ledger"):
        shutil.rmtree(made, ignore_errors=True)
    process(folder, "-m", "hushbid", "run", f"{end}.toml", *options)


def process(folder: Path, *arguments: str) -> None:
    """Python in a process of its own, which finds what it compiled before, as usual."""
    variables = {
        **os.environ,
        "HUSHBID_LEDGER": str(folder / "ledger"),
        "PYTHONPYCACHEPREFIX": str(folder / "compiled"),
    }
    variables.pop("PYTHONDONTWRITEBYTECODE", None)
    subprocess.run([sys.executable, *arguments], cwd=folder, check=True, stdout=subprocess.DEVNULL, env=variables)
