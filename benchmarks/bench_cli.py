"""A whole campaign on the command line, against reading and writing the same files with Polars.

``hushbid run`` reads a million reports and data from Parquet, decides, draws the estimate and writes decisions and
payments to Parquet, the record, and the report with its audits. Polars, in a process of its own too, reads the same two
files and writes the same two tables. ``HUSHBID_BENCH_PEOPLE`` sets the number of people.
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
TABLES = ("decisions.parquet", "payments.parquet")
CAMPAIGN = """\
[market]
setting = "central"
prior = "uniform:1,3"
bounds = [0, 12]
variance = 2
buyer_weight = 50000

[money]
currency = "EUR"

[reports]
file = "reports.parquet"

[data]
file = "data.parquet"

[output]
folder = "results"
decisions = "parquet"
"""
READ_AND_WRITE = """\
import polars as pl
for name in ("reports", "data"):
    pl.read_parquet(f"{name}.parquet")
for name in ("decisions", "payments"):
    pl.read_parquet(f"before/{name}.parquet").write_parquet(f"{name}.again.parquet")
"""


def run() -> list[Row]:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        people(folder)
        campaign(folder)
        shutil.copytree(folder / "results", folder / "before")
        return [
            time_ratio(
                f"hushbid run{what}, {PEOPLE:.0e} people",
                lambda options=options: campaign(folder, *options),  # type: ignore[misc]
                against="Polars, same tables",
                theirs=lambda: subprocess.run([sys.executable, "-c", READ_AND_WRITE], cwd=folder, check=True),
                repeats=2,
            )
            for what, options in {"": (), " --no-audit": ("--no-audit",)}.items()
        ]


def people(folder: Path) -> None:
    """Reports and, in another order, data."""
    rng = np.random.default_rng(1)
    ids = np.char.add("person-", np.arange(PEOPLE).astype(str))
    pl.DataFrame({"id": ids, "sensitivity": rng.uniform(1, 3, PEOPLE)}).write_parquet(folder / "reports.parquet")
    order = rng.permutation(PEOPLE)
    values = np.clip(rng.normal(7, 1, PEOPLE), 0, 12)
    pl.DataFrame({"id": ids[order], "value": values}).write_parquet(folder / "data.parquet")
    (folder / "campaign.toml").write_text(CAMPAIGN, encoding="utf-8")


def campaign(folder: Path, *options: str) -> None:
    """Run the campaign from the beginning, in an account that has never asked anything."""
    store = folder / "claims"
    for made in (folder / "results", store):
        shutil.rmtree(made, ignore_errors=True)
    command = [sys.executable, "-m", "hushbid", "run", "campaign.toml", *options]
    variables = {**os.environ, "HUSHBID_CLAIMS": str(store)}
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL, env=variables)
