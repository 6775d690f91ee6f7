"""Strata in campaign files and commands: read, priced in memory and on engines, released, verified, refused."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

from hushbid import verify
from hushbid.campaign import Purchase, Reading, read_campaign, run_campaign
from hushbid.campaign.deciding import DecisionInMemory
from hushbid.cli import main
from hushbid.errors import InputError

PANEL = """\
title = "Panel"

[market]
setting = "central"
prior = "uniform:1,3"
budget = 30
max_correlation = 0.1

[strata]
column = "region"
shares = { north = 0.25, south = 0.75 }

[[questions]]
kind = "number"
name = "sleep"
bounds = [0, 12]

[[questions]]
kind = "yes_no"
name = "smokes"

[bids]
file = "people.csv"

[data]
file = "people.csv"
"""


def people() -> pl.DataFrame:
    rng = np.random.default_rng(5)
    north = rng.random(90) < 0.7  # the panel has too many of them
    return pl.DataFrame(
        {
            "id": [f"p{row}" for row in range(90)],
            "bid": rng.uniform(1, 3, 90),
            "region": np.where(north, "north", "south").tolist(),
            "sleep": np.where(north, rng.normal(9.0, 0.5, 90), rng.normal(5.0, 0.5, 90)),
            "smokes": np.where(rng.random(90) < 0.3, "yes", "no").tolist(),
        }
    )


def written(home: Path, text: str = PANEL) -> Path:
    people().write_csv(home / "people.csv")
    (home / "panel.toml").write_text(text)
    return home / "panel.toml"


def outcome_of(purchase: Purchase) -> np.ndarray:
    assert isinstance(purchase.decided, DecisionInMemory)
    return purchase.decided.outcome.privacy_loss


def test_a_panel_is_bought_from_for_the_population_and_its_record_holds(tmp_path: Path) -> None:
    bought = run_campaign(written(tmp_path, PANEL.replace("budget = 30", "budget = 3000")), audit=False)
    assert bought.record is not None
    assert bought.release is not None
    assert verify(bought.record).ok
    market = bought.record.outcome.market
    assert market.population == {"north": 61, "south": 29}
    sleep = bought.release.answers[0]
    population, panel = 0.25 * 9.0 + 0.75 * 5.0, float(people()["sleep"].to_numpy().mean())
    assert sleep.error.largest_noise < 0.02  # so noise moves nothing by 0.5
    assert abs(sleep.estimate - population) < 0.7
    assert panel - population > 1.5  # the raw mean is of other shares


@pytest.mark.parametrize("engine", ["polars", "duckdb"])
def test_an_engine_decides_as_memory_does(engine: str, tmp_path: Path) -> None:
    path = written(tmp_path)
    in_memory = run_campaign(path, audit=False)
    people().write_parquet(tmp_path / "people.parquet")
    path.write_text(PANEL.replace("people.csv", "people.parquet").replace('"Panel"', '"Panel on an engine"'))
    found = run_campaign(path, reading=Reading(engine=engine), audit=False, force=True)
    np.testing.assert_allclose(outcome_of(found), outcome_of(in_memory), rtol=1e-12)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("shares = { north = 0.25, south = 0.75 }\n", "", "line 9, strata: must state what is wanted of the strata"),
        ("shares =", "each = true\nshares =", "strata.shares: cannot be stated together with strata.each"),
        ("0.75 }", "0.5 }", "strata.shares: must sum to 1, got a sum of 0.75"),
        ("{ north = 0.25, south = 0.75 }", '{ north = "a" }', "strata.shares: must be a number for each stratum"),
        ('"region"', '"land"', "strata.column: "),
        ("max_correlation", "population = 100\nmax_correlation", "market.population: must stand in the table [strata]"),
        ("shares =", "population = { north = 0 }\nshares =", "strata.population: must be a whole number of people"),
    ],
)
def test_what_is_wrong_with_strata_is_told_at_its_field(old: str, new: str, told: str, tmp_path: Path) -> None:
    path = written(tmp_path, PANEL.replace(old, new))
    with pytest.raises(InputError) as refused:
        read_campaign(path)
    assert told in str(refused.value)


@pytest.mark.parametrize(
    ("shares", "told"),
    [
        ("{ north = 0.25, west = 0.75 }", "but row"),
        ("{ north = 0.25, south = 0.5, west = 0.25 }", "nobody is in 'west'"),
    ],
)
def test_labels_that_do_not_fit_are_refused_before_anything_is_written(shares: str, told: str, tmp_path: Path) -> None:
    path = written(tmp_path, PANEL.replace("{ north = 0.25, south = 0.75 }", shares))
    with pytest.raises(InputError, match=told):
        run_campaign(path, audit=False)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["panel.toml", "people.csv"]


def test_commands_take_the_strata_of_a_file(tmp_path: Path) -> None:
    path = written(tmp_path)
    run = CliRunner()
    stated = ["--prior", "uniform:1,3", "--strata", str(path)]
    priced = run.invoke(main, ["price", str(tmp_path / "people.csv"), *stated, "--budget", "30", "--bounds", "0,12"])
    assert priced.exit_code == 0, priced.output
    assert "post-stratified" in priced.output or "Bought from" in priced.output
    refused = run.invoke(main, ["plan", *stated, "--budget", "30"])
    assert refused.exit_code == 2
    assert "strata.population must say how many people each stratum has" in refused.output
    path.write_text(PANEL.replace("shares =", "population = { north = 60, south = 30 }\nshares ="))
    planned = run.invoke(main, ["plan", *stated, "--budget", "30", "--repetitions", "20", "--json"])
    assert planned.exit_code == 0, planned.output
    assert '"people": 90' in planned.output
    compared = run.invoke(main, ["compare", *stated, "--buyer-weight", "300", "--repetitions", "2", "--no-baselines"])
    assert compared.exit_code == 0, compared.output
    assert "90 people" in compared.output
