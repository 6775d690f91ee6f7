"""Spark with an executor in a process of its own, so that everything shipped to it is really serialised."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hushbid.common.money import NO_CURRENCY
from hushbid.engine import price
from hushbid.mechanism import Market
from hushbid.priors import Uniform
from tests.conftest import FEW_ROWS, SHORT_LIVED

N = 2000
JOB = """
import json, sys
from hushbid.cli import main
from hushbid.engine import price
from hushbid.mechanism import Market
from hushbid.priors import Uniform

people, out = sys.argv[1:]
options = ["--prior", "uniform:1,2", "--variance", "0.25", "--buyer-weight", "1", "--user-weight", "1"]
options += ["--people-may-owe-money", "--check-ids", "off", "--spark-master", "local-cluster[1,2,1024]"]
main(["price", people, *options, "--out", out], standalone_mode=False)
market = Market(prior=Uniform(1, 2), variance=0.25, buyer_weight=1, user_weight=1)
priced = price(people, market, engine="spark", gather=100, window=50)
found = priced.frame.toArrow().sort_by("id")
print(json.dumps([priced.summary.objective.hex(), [t.hex() for t in found["payment"].to_pylist()]]))
"""


def spark_home(place: Path) -> Path:
    """An installation of its own for the worker of a local cluster, who keeps its files in it."""
    found = find_spec("pyspark")
    assert found is not None
    assert found.origin is not None
    place.mkdir()
    for part in Path(found.origin).parent.iterdir():
        (place / part.name).symlink_to(part)
    (place / "conf").mkdir()
    settings = "".join(f"{name} {value}\n" for name, value in FEW_ROWS.items())
    (place / "conf" / "spark-defaults.conf").write_text(settings, encoding="utf-8")
    return place


def test_separate_processes_decide_the_same_to_the_last_bit(require: Callable[[str], Path], tmp_path: Path) -> None:
    require("java")
    bids = Uniform(1, 2).sample(N, rng=np.random.default_rng(5))
    people = pa.table({"id": np.arange(N), "bid": bids})
    folder, out, home = tmp_path / "people", tmp_path / "priced.parquet", tmp_path / "home"
    for path in (folder, home):
        path.mkdir()
    for part in range(2):
        pq.write_table(people.slice(N // 2 * part, N // 2), folder / f"part-{part}.parquet")
    done = subprocess.run(
        [sys.executable, "-c", JOB, str(folder), str(out)],
        capture_output=True,
        text=True,
        check=False,
        cwd=home,
        env={
            **os.environ,
            "SPARK_HOME": str(spark_home(tmp_path / "spark")),
            "SPARK_SCALA_VERSION": "2.13",
            "JDK_JAVA_OPTIONS": SHORT_LIVED,
        },
    )
    assert done.returncode == 0, done.stderr[-2000:]
    told, _, last = done.stdout.strip().rpartition("\n")
    market = Market(prior=Uniform(1, 2), variance=0.25, buyer_weight=1.0, user_weight=1.0)
    here = price(people, market, gather=100, window=50)
    objective, payments = json.loads(last)
    assert objective == here.summary.objective.hex()
    assert payments == [payment.hex() for payment in here.frame["payment"].to_pylist()]
    assert f"Bought from {here.summary.active:,} of {N:,} people" in told
    written = pq.read_table(out).sort_by("id")["payment_minor"].to_pylist()
    assert written == NO_CURRENCY.minor_units(market.acquire(bids).payments).tolist()
    assert list(home.iterdir()) == []  # nothing is left where it was started
    shutil.rmtree(tmp_path / "spark")  # what the workers kept


def test_the_job_in_the_documentation_runs(spark_session: object, tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "buy-from-a-table.md").read_text(encoding="utf-8")
    job = re.search(r'```python title="job.py"\n(.*?)```', page, flags=re.DOTALL)
    assert job is not None
    people = pa.table({"id": np.arange(300), "bid": np.linspace(1, 2, 300)})
    (tmp_path / "people").mkdir()
    pq.write_table(people, tmp_path / "people" / "part.parquet")
    exec(job[1].replace("s3a://bucket", tmp_path.as_uri()), {})
    found = pq.read_table(tmp_path / "priced").sort_by("id")
    expected = Market(prior=Uniform(1, 2), variance=0.25, buyer_weight=1.0, user_weight=1.0).acquire(
        people["bid"].to_numpy()
    )
    assert found["payment"].to_numpy() == pytest.approx(expected.payments, abs=1e-9)
