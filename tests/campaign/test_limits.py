"""Limits that people state beside their prices: a column of positive numbers, or nothing."""

import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from hushbid.campaign import run_campaign
from hushbid.campaign.people import People, Reading, read_people
from hushbid.campaign.spec import BidsTable
from hushbid.cli import main
from hushbid.errors import BidError
from hushbid.mechanism.releasing import outcome_key
from hushbid.priors import Uniform
from hushbid.verification.verifying import verify


def read(folder: Path, limits: list[str], **reading: str) -> People:
    rows = "".join(f"p{k},{1 + k / 10},{limit}\n" for k, limit in enumerate(limits))
    (folder / "bids.csv").write_text("id,bid,most\n" + rows)
    return read_people(
        folder / "bids.csv",
        BidsTable(limit="most"),
        priors={"": Uniform(1, 2)},
        reading=Reading(**reading),  # type: ignore[arg-type]
    )


def test_an_empty_cell_is_no_limit(tmp_path: Path) -> None:
    found = read(tmp_path, ["0.5", "", "0"]).limits
    assert found is not None
    assert found.tolist() == [0.5, np.inf, 0.0]


@pytest.mark.parametrize("wrong", ["-1", "low", "nan"])
def test_what_is_no_limit_is_refused_by_row_and_never_shown(wrong: str, tmp_path: Path) -> None:
    with pytest.raises(
        BidError, match="column 'most' must hold a number from 0 up or nothing, but row 1 does not"
    ) as told:
        read(tmp_path, ["0.5", wrong, "2"])
    assert (told.value.field, told.value.row) == ("most", 1)
    left = read(tmp_path, ["0.5", wrong, "2"], on_bad_rows="drop")
    assert (len(left), left.dropped) == (2, 1)


def test_nobody_loses_more_than_she_accepts(tmp_path: Path) -> None:
    read(tmp_path, ["0.2", "", "3", "0.1"])
    file = str(tmp_path / "bids.csv")
    call = ["price", file, "--prior", "uniform:1,2", "--budget", "5", "--limit-column", "most"]
    done = CliRunner().invoke(main, [*call, "--out", str(tmp_path / "out.csv")])
    assert done.exit_code == 0, done.output
    losses = [float(line.split(",")[1]) for line in (tmp_path / "out.csv").read_text().splitlines()[1:]]
    assert 0.0 < losses[0] <= 0.2
    assert 0.0 < losses[3] <= 0.1
    assert losses[1] > 0.2


CAMPAIGN = """\
title = "Sleep"
[market]
setting = "central"
prior = "uniform:1,2"
bounds = [0, 12]
buyer_weight = 50
[bids]
file = "people.parquet"
limit = "most"
[data]
file = "people.parquet"
"""


def test_a_campaign_keeps_limits_on_every_engine_and_its_record_holds_them(tmp_path: Path) -> None:
    limits = [0.02, None] * 10
    people = {"id": range(20), "bid": np.linspace(1, 2, 20), "value": np.full(20, 7.0), "most": limits}
    hashes = []
    for engine in ("memory", "auto", "polars", "duckdb"):
        folder = tmp_path / engine
        folder.mkdir()
        pq.write_table(pa.table(people), folder / "people.parquet")
        (folder / "sleep.toml").write_text(CAMPAIGN)
        bought = run_campaign(folder / "sleep.toml", reading=Reading(engine=engine), audit=False)
        assert bought.record is not None
        outcome = bought.record.outcome
        assert outcome.limits is not None
        assert outcome.limits.tolist() == [limit or np.inf for limit in limits]
        assert (outcome.privacy_loss == 0.02).any()
        hashes.append(outcome_key(outcome))
    assert len(set(hashes)) == 1  # so one of them stands for all
    assert verify(bought.record).ok


@pytest.mark.parametrize(
    ("goal", "told"),
    [
        (["--budget", "5"], r"limits on privacy loss cost accuracy: without, the standard error would be 0\.\d+\.\n"),
        (["--standard-error", "1"], r"limits on privacy loss cost EUR \d+\.\d\d against the optimum without them\.\n"),
    ],
    ids=["budget", "accuracy"],
)
def test_what_limits_cost_is_told_in_money_or_where_the_money_is_given_in_accuracy(
    goal: list[str], told: str, tmp_path: Path
) -> None:
    read(tmp_path, ["0.2", "", "3", "0.1"])
    call = ["price", str(tmp_path / "bids.csv"), "--prior", "uniform:1,2", "--currency", "EUR", *goal]
    limited = CliRunner().invoke(main, [*call, "--limit-column", "most"])
    assert re.search(told, limited.stderr), limited.stderr
    if goal[0] == "--budget":  # what it says is what there is without
        free = CliRunner().invoke(main, call).stderr
        assert re.findall(r"would be (0\.\d+)", limited.stderr) == re.findall(r"of the estimate: (0\.\d+)", free)
