"""The figures show what they say, their files are reproducible, and the numbers in the documentation are current."""

import csv
import math
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from experiments.paper_figures.__main__ import main
from experiments.paper_figures.figures import FIGURES, PaperFigure, make_figure, picture, write_figures
from experiments.paper_figures.figures_landscape import CHEAP, CROWD, CROWD_WEIGHT, DEAR, PAIR_WEIGHT, cost_of_share
from experiments.paper_figures.figures_theory import central_threshold
from hushbid.allocation import allocate
from hushbid.errors import InputError, OutputExists
from tests.extent import each

ROOT = Path(__file__).parents[2]
COMMITTED = ROOT / "docs" / "figures"


@cache
def quick(name: str) -> PaperFigure:
    return make_figure(name, quick=True)


def committed(name: str) -> dict[str, np.ndarray]:
    with (COMMITTED / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return {column: np.array([float(row[column]) for row in rows]) for column in rows[0]}


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_has_columns_of_equal_length_and_draws_itself(name: str) -> None:
    figure = quick(name)
    assert figure.name == name
    assert len({column.shape for column in figure.table.values()}) == 1
    assert all(not np.isnan(column).any() for column in figure.table.values())
    assert picture(figure, "png").startswith(b"\x89PNG")
    assert len(figure.csv().splitlines()) == next(iter(figure.table.values())).size + 1


def test_the_same_numbers_give_the_same_bytes_and_ask_for_nothing_outside() -> None:
    first, second = picture(quick("growth"), "svg"), picture(quick("growth"), "svg")
    assert first == second
    assert b"<dc:date>" not in first
    assert b"@import" not in first
    assert b'href="http' not in first


def test_the_nine_panels_have_the_numbers_of_the_papers_example() -> None:
    table = quick("two-users").table
    corner = (table["c1"] == 1) & (table["c2"] == 1)
    assert table["central_mse"][corner] == pytest.approx(0.5066, abs=5e-5)
    assert table["local_mse"][corner] == pytest.approx(0.6316, abs=5e-5)
    assert table["central_objective"][corner] == pytest.approx(3.809, abs=5e-4)
    assert (table["difference_mse"] >= -1e-12).all()
    assert table["difference_mse"].max() == pytest.approx(0.125, abs=1e-9)
    assert (table["difference_objective"] >= -1e-12).all()
    # User 1's loss can be smaller or larger locally; locally one user only is bought from.
    assert table["difference_loss"].min() < -0.5
    assert table["difference_loss"].max() > 0.5
    assert ((table["local_loss"] == 0) == (table["c1"] > table["c2"])).all()


def test_no_output_is_more_than_exp_of_the_loss_times_as_likely_and_the_limit_is_reached() -> None:
    table = quick("promise").table
    for loss in (0.5, 2.0):
        ratio = np.log(table[f"ratio_{loss:g}"])
        assert np.abs(ratio).max() == pytest.approx(loss, rel=1e-12)
        assert ratio.min() == pytest.approx(-loss, rel=1e-12)


def test_the_landscapes_lowest_points_are_the_optima() -> None:
    for where, dear in DEAR.items():
        shares = np.linspace(0, 0.6, 60_001)
        costs = cost_of_share(shares, dear)
        found = allocate([CHEAP, dear], variance=0.25, error_weight=PAIR_WEIGHT)
        assert costs.min() == pytest.approx(found.objective, rel=1e-9)
        if where != "at":
            assert shares[np.argmin(costs)] == pytest.approx(found.weights[1], abs=1e-5)
            assert (found.active == 2) == (where == "below")
    table = committed("landscape")
    assert table["cost_at"].min() == pytest.approx(table["cost_at"][0], rel=1e-5)  # two valleys of one depth
    found = allocate(2 * np.linspace(1, 2, CROWD) - 1, setting="local", variance=0.25, error_weight=CROWD_WEIGHT)
    assert table["cost_local"].min() == pytest.approx(found.objective, rel=1e-6)
    assert table["people"][np.argmin(table["cost_local"])] == found.active


def test_the_band_lies_between_the_two_thresholds_for_every_n_from_ten_to_a_million() -> None:
    table = quick("band").table
    assert table["n"][0] == 10
    assert table["n"][-1] == 1e6
    for cost in (1.0, 0.01, 0.0001):
        assert (table[f"local_{cost:g}"] < table[f"central_{cost:g}"]).all()
        exact = np.array([central_threshold(int(n), cost, 0.25) <= 3 * n * cost for n in table["n"]])
        assert table[f"central_{cost:g}"][exact] == pytest.approx(table[f"formula_{cost:g}"][exact], rel=1e-6)


def test_active_people_grow_with_the_stated_powers() -> None:
    table = committed("growth")
    for setting, power in (("central", 5 / 6), ("local", 1 / 2)):
        active, n = table[f"{setting}_active"][-8:], table["n"][-8:]
        assert np.polyfit(np.log(n), np.log(active), 1)[0] == pytest.approx(power, abs=0.01)


def test_bounds_enclose_what_is_achieved() -> None:
    for table in (quick("minimax").table, committed("minimax")):
        for setting in ("central", "local"):
            assert (table[f"{setting}_lower"] < table[f"{setting}_best"]).all()
            assert (table[f"{setting}_best"] <= table[f"{setting}_paper"] * (1 + 1e-6)).all()


def test_a_cap_costs_nothing_until_it_binds_and_then_accuracy() -> None:
    table = quick("cap").table
    for setting in ("central", "local"):
        free = table["cap_share"] >= 1
        assert table[f"{setting}_cost"][free] == pytest.approx(1.0, abs=1e-9)
        assert (np.diff(table[f"{setting}_mse"]) <= 1e-9).all()
        assert (np.diff(table[f"{setting}_cost"]) <= 1e-9).all()
        # the optimum under a tight cap buys from more people, so payments may rise as it falls
        assert np.ptp(table[f"{setting}_payment"][free]) <= 1e-9
    shown = committed("cap")
    rows = [int(np.abs(shown["cap_share"] - share).argmin()) for share in table["cap_share"]]
    for name, column in table.items():
        assert shown[name][rows] == pytest.approx(column, rel=1e-5), name


def test_no_wrong_prior_is_cheaper_than_the_right_one() -> None:
    table = committed("wrong-prior")
    for setting in ("central", "local"):
        assert (table[f"{setting}_cost"] >= 1 - 2e-3).all()
        right = (table["believed_low"] == 1) & (table["believed_high"] == 2)
        assert table[f"{setting}_cost"][right] == pytest.approx(1.0, abs=1e-9)
        assert table[f"{setting}_cost"].max() > 1.01


def test_a_pair_gains_something_but_little_by_colluding() -> None:
    table = committed("collusion")
    for setting in ("central", "local"):
        share = table[f"{setting}_gain"] / table[f"{setting}_average_payment"]
        assert share.max() > 1e-4
        assert share.max() < 0.05


def test_coming_several_times_pays_and_hides_an_error() -> None:
    table = quick("identities").table
    for setting in ("central", "local"):
        assert (np.diff(table[f"{setting}_surplus"]) > 0).all()
        assert table[f"{setting}_true_mse"][0] == pytest.approx(table[f"{setting}_stated_mse"][0], rel=1e-12)
        assert (table[f"{setting}_true_mse"][1:] > table[f"{setting}_stated_mse"][1:]).all()


def test_the_first_best_is_cheaper_and_every_truthful_baseline_dearer() -> None:
    table = committed("baselines")
    for setting in ("central", "local"):
        assert (table[f"{setting}_FirstBest"] < 1).all()
        for baseline in ("PostedPrice", "FixedAccuracy", "UniformLoss", "NearOptimal"):
            assert (table[f"{setting}_{baseline}"] > 1 - 5e-3).all()
            assert table[f"{setting}_{baseline}"][-1] > 1.05


def test_the_truth_is_best_on_the_curve_one_person_faces() -> None:
    table = quick("schedule").table
    for setting in ("central", "local"):
        best = table["bid"][np.argmax(table[f"{setting}_surplus"])]
        assert best == pytest.approx(1.2, abs=0.03)


def test_the_numbers_in_the_documentation_are_what_the_code_computes() -> None:
    table = committed("two-users")
    for row in range(0, table["c1"].size, 97):
        for setting in ("central", "local"):
            costs = [2 * table["c1"][row] - 1, 2 * table["c2"][row] - 1]
            found = allocate(costs, setting=setting, variance=0.25)
            assert table[f"{setting}_mse"][row] == pytest.approx(found.mse, rel=1e-6)
            assert table[f"{setting}_objective"][row] == pytest.approx(found.objective, rel=1e-6)
            assert table[f"{setting}_loss"][row] == pytest.approx(found.privacy_loss[0], rel=1e-6, abs=1e-9)
    for name in ("worked-example", "minimax"):
        shown, fresh = committed(name), quick(name).table
        common = [(j, int(np.flatnonzero(shown["n"] == n)[0])) for j, n in enumerate(fresh["n"]) if n in shown["n"]]
        assert common
        for column in fresh:
            for mine, theirs in common:
                assert shown[column][theirs] == pytest.approx(fresh[column][mine], rel=1e-6)


@each("name", FIGURES)
def test_every_figure_is_in_the_documentation_and_small(name: str) -> None:
    assert (COMMITTED / f"{name}.svg").stat().st_size < 200_000
    assert all(math.isfinite(value) or math.isinf(value) for column in committed(name).values() for value in column)


def test_files_are_written_all_or_none_and_not_replaced_unasked(tmp_path: Path) -> None:
    paths = write_figures(["growth"], tmp_path / "new", formats=["csv"], quick=True)
    assert [path.name for path in paths] == ["growth.csv"]
    paths[0].write_text("mine")
    with pytest.raises(OutputExists, match="force=True"):
        write_figures(["growth"], tmp_path / "new", formats=["csv"], quick=True)
    with pytest.raises(InputError, match="must be one of"):
        write_figures(["growth", "nothing"], tmp_path / "other", formats=["csv"], quick=True)
    with pytest.raises(InputError, match="formats"):
        write_figures(["growth"], tmp_path, formats=["gif"])
    assert not (tmp_path / "other").exists()
    assert paths[0].read_text() == "mine"


def test_the_command_lists_draws_and_refuses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list"]) == 0
    assert capsys.readouterr().out.split() == list(FIGURES)
    target = tmp_path / "new"
    assert main(["growth", "--quick", "--format", "csv", "--out", str(target)]) == 0
    assert capsys.readouterr().out.split() == [str(target / "growth.csv")]
    assert main(["nothing", "--out", str(tmp_path / "other")]) == 2
    assert "must be one of" in capsys.readouterr().err
    assert not (tmp_path / "other").exists()
