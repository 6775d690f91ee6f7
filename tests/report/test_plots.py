"""Pictures for notebooks: they show the numbers, on the axes they are given, and withhold what a report would."""

import subprocess
import sys
from collections.abc import Callable, Iterator

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

from hushbid import Budget, Grouped, Market, Outcome, Price, Uniform
from hushbid.baselines import NearOptimal, compare
from hushbid.errors import InputError
from hushbid.mechanism import Plan
from hushbid.report import plots

MARKET = Market(prior=Uniform(1, 2), goal=Budget(60), bounds=(0, 100), variance=400)


@pytest.fixture(autouse=True)
def _no_window() -> Iterator[None]:
    with mpl.rc_context({"backend": "Agg"}):
        yield
        plt.close("all")


@pytest.fixture(scope="module")
def outcome() -> Outcome:
    return MARKET.acquire(np.linspace(1.0, 2.0, 101))


@pytest.fixture(scope="module")
def few() -> Outcome:
    return MARKET.acquire(np.linspace(1.0, 1.2, 19))


@pytest.fixture(scope="module")
def plan() -> Plan:
    return MARKET.plan(60, rng=np.random.default_rng(1), repetitions=20, relations=(0.0,))


def words(axes: Axes) -> str:
    axes.figure.canvas.draw()  # names that Matplotlib cannot draw fail here
    return " ".join(text.get_text() for text in axes.texts)


def test_a_frontier_has_a_point_for_each_goal_and_marks_the_one_stated(plan: Plan) -> None:
    axes = plots.frontier(plan)
    line, stated = axes.lines
    assert np.array_equal(line.get_xdata(), [one.payment for one in plan.frontier])
    assert np.array_equal(line.get_ydata(), [one.standard_error for one in plan.frontier])
    [here] = [one for one in plan.frontier if one.goal == Budget(60)]
    assert (stated.get_xdata()[0], stated.get_ydata()[0]) == (here.payment, here.standard_error)


def test_it_is_drawn_on_the_axes_that_are_given(plan: Plan, outcome: Outcome) -> None:
    _, (left, right) = plt.subplots(1, 2)
    assert plots.frontier(plan, ax=left) is left
    assert plots.losses(outcome, ax=right) is right
    assert len(plt.get_fignums()) == 1
    assert plots.losses(outcome).figure is not left.figure


def test_a_schedule_is_the_decision_read_off_at_round_bids(outcome: Outcome) -> None:
    for show, column in (("privacy_loss", outcome.privacy_loss), ("payment", outcome.payments)):
        [line] = plots.schedule(outcome, show=show).lines  # type: ignore[arg-type]
        expected = np.interp(line.get_xdata(), outcome.bids, column)
        assert np.allclose(line.get_ydata(), expected, atol=2e-3 * column.max())
    with pytest.raises(InputError, match="show must be"):
        plots.schedule(outcome, show="weights")  # type: ignore[arg-type]


def test_losses_are_bars_of_at_least_five_people_that_add_up(outcome: Outcome) -> None:
    axes = plots.losses(outcome)
    widths = np.array([bar.get_width() for bar in axes.patches])
    heights = np.array([bar.get_height() for bar in axes.patches])
    per = float(axes.get_ylabel().split()[2])
    people = heights * widths / per
    assert people.sum() == pytest.approx(outcome.active)
    assert people.min() >= 5 - 1e-9


def test_what_fewer_than_twenty_people_are_behind_is_not_drawn(few: Outcome) -> None:
    assert few.active < 20
    drawn = [
        plots.losses(few),
        plots.schedule(few),
        plots.baselines(compare(Market(prior=Uniform(1, 2), goal=Price(9.0)), [1.1])),
    ]
    for axes in drawn:
        assert "Withheld" in words(axes)
        assert not axes.lines
        assert not axes.patches
    menu = MARKET.menu(19, rng=np.random.default_rng(1), repetitions=5, points=5)
    [line] = plots.schedule(few, menu=menu).lines
    assert len(line.get_xdata()) == menu.bids.size


def test_the_names_of_groups_are_text_and_no_formula() -> None:
    groups = ["_<script>$x^{", "$y$"]
    priors = Grouped({groups[0]: Uniform(1, 2), groups[1]: Uniform(1, 3)}, np.repeat(groups, 40).tolist())
    axes = plots.schedule(Market(prior=priors, goal=Price(1000.0)).acquire(np.tile(np.linspace(1, 1.5, 40), 2)))
    words(axes)
    legend = axes.get_legend()
    assert legend is not None
    assert sorted(text.get_text() for text in legend.get_texts()) == [r" _<script>\$x^{", r"\$y\$"]


def test_a_line_of_one_of_several_groups_says_whose_it_is() -> None:
    priors = Grouped({"cheap": Uniform(1, 2), "dear": Uniform(8, 9)}, ["cheap"] * 40 + ["dear"] * 40)
    bids = np.concatenate([np.linspace(1, 1.5, 40), np.linspace(8, 9, 40)])
    axes = plots.schedule(Market(prior=priors, goal=Price(1000.0)).acquire(bids))
    assert len(axes.lines) == 1
    legend = axes.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["cheap"]


@pytest.mark.parametrize("draw", [plots.frontier, plots.schedule, plots.losses, plots.baselines, plots.simulation])
def test_what_cannot_be_drawn_is_refused_in_a_sentence(draw: Callable[..., Axes]) -> None:
    with pytest.raises(InputError, match=r"must be a (Plan|Outcome|Comparison|Simulation), got Market\."):
        draw(MARKET)


def test_a_baseline_out_of_reach_has_a_place_of_its_own_at_the_end_too() -> None:
    found = compare(Market(prior=Uniform(1, 2), goal=Price(10_000.0)), np.linspace(1, 2, 50), baselines=[NearOptimal])
    assert found.baselines[0].payment_for_same_error == np.inf
    low, high = plots.baselines(found).get_ylim()
    assert low <= -0.5
    assert high >= 1.5


def test_baselines_are_bars_as_long_as_what_they_pay() -> None:
    found = compare(Market(prior=Uniform(1, 2), goal=Price(10_000.0)), np.linspace(1, 2, 50))
    axes = plots.baselines(found)
    names = [text.get_text() for text in axes.get_yticklabels()]
    assert names[-1] == found.ours.name
    lengths = {names[round(bar.get_y() + bar.get_height() / 2)]: bar.get_width() for bar in axes.patches}
    for row in (found.ours, *found.baselines):
        if np.isfinite(row.payment_for_same_error):
            assert lengths[row.name] == row.payment_for_same_error
        else:
            assert row.name not in lengths


def test_a_simulation_shows_every_campaign_its_mean_and_its_quantile(plan: Plan) -> None:
    found = plan.simulation
    axes = plots.simulation(found)
    assert sum(bar.get_height() for bar in axes.patches) == found.repetitions
    mean, upper = (line.get_xdata()[0] for line in axes.lines)
    assert (mean, upper) == (found.expected("total_payment").value, found.quantile("total_payment").value)
    assert plots.simulation(found, "worst_mse").get_xlabel() == "mean squared error at worst"
    with pytest.raises(InputError, match="name must be one of total_payment"):
        plots.simulation(found, "n")


def test_matplotlib_is_loaded_late_and_its_absence_told_in_a_sentence() -> None:
    program = """
import sys
from hushbid import Market, Uniform
from hushbid.report import plots
outcome = Market(prior=Uniform(1, 2), buyer_weight=10).acquire([1.5])
print("matplotlib" in sys.modules)
sys.modules["matplotlib"] = None
try:
    plots.losses(outcome)
except ImportError as problem:
    print(type(problem).__name__, problem)
"""
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=300)
    assert told.stdout == ("False\nMissingExtra Pictures need matplotlib: pip install '.[plot]' in a checkout.\n")


def test_losses_and_schedule_are_withheld_where_a_stratum_has_few_sellers() -> None:
    labels = ["many"] * 60 + ["few"] * 3
    market = Market(prior=Uniform(1, 2), buyer_weight=1e4, strata=labels, shares={"many": 0.5, "few": 0.5})
    outcome = market.acquire(np.linspace(1.0, 1.6, 63))
    for picture in (plots.losses, plots.schedule):
        axes = picture(outcome)
        assert not axes.patches
        assert not axes.lines
        assert "of a stratum were bought from" in axes.texts[0].get_text()
