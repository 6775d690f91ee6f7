"""Spark with executors in processes of their own, so that everything shipped to them is really serialised."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from hushbid.engine import price
from hushbid.mechanism import Market
from hushbid.priors import Uniform

JOB = """
import json, sys
from pyspark.sql import SparkSession
from hushbid.engine import price
from hushbid.mechanism import Market
from hushbid.priors import Uniform

session = (
    SparkSession.builder.master("local-cluster[2,1,1024]")
    .config("spark.ui.enabled", "false")
    .config("spark.driver.host", "127.0.0.1")
    .config("spark.driver.bindAddress", "127.0.0.1")
    .config("spark.log.level", "OFF")
    .getOrCreate()
)
market = Market(prior=Uniform(1, 2), variance=0.25)
priced = price(sys.argv[1], market, engine="spark", gather=100, window=50)
found = priced.frame.toArrow().sort_by("id")
print(json.dumps([priced.summary.objective.hex(), [t.hex() for t in found["payment"].to_pylist()]]))
session.stop()
"""


def test_separate_processes_decide_the_same_to_the_last_bit(require: Callable[[str], Path], tmp_path: Path) -> None:
    require("java")
    reports = Uniform(1, 2).sample(2000, rng=np.random.default_rng(5))
    people = pa.table({"id": np.arange(2000), "sensitivity": reports})
    folder = tmp_path / "people"
    folder.mkdir()
    for part in range(2):
        pq.write_table(people.slice(1000 * part, 1000), folder / f"part-{part}.parquet")
    done = subprocess.run(
        [sys.executable, "-c", JOB, str(folder)],
        capture_output=True,
        text=True,
        check=False,
        env={
            **os.environ,
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_SCALA_VERSION": "2.13",
            "SPARK_WORKER_DIR": str(tmp_path / "work"),
        },
    )
    assert done.returncode == 0, done.stderr[-2000:]
    objective, payments = json.loads(done.stdout.strip().splitlines()[-1])
    here = price(people, Market(prior=Uniform(1, 2), variance=0.25), gather=100, window=50)
    assert objective == here.summary.objective.hex()
    assert payments == [payment.hex() for payment in here.frame["payment"].to_pylist()]
