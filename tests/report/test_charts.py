"""Pictures for notebooks: whole SVG files with the numbers of their object, which withhold what a report would."""

from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from hushbid import Budget, Grouped, Market, Outcome, Price, Uniform
from hushbid.baselines import NearOptimal, compare
from hushbid.errors import InputError
from hushbid.mechanism import Plan
from hushbid.report import charts
from hushbid.report.svg import Chart
from tests.extent import each

MARKET = Market(prior=Uniform(1, 2), goal=Budget(60), bounds=(0, 100), variance=400)


@pytest.fixture(scope="module")
def outcome() -> Outcome:
    return MARKET.acquire(np.linspace(1.0, 2.0, 101))


@pytest.fixture(scope="module")
def few() -> Outcome:
    return MARKET.acquire(np.linspace(1.0, 1.2, 19))


@pytest.fixture(scope="module")
def plan() -> Plan:
    return MARKET.plan(60, rng=np.random.default_rng(1), repetitions=20, relations=(0.0,))


def marks(chart: Chart) -> list[dict[str, str]]:
    """What is drawn besides text: the elements of the file that a notebook shows."""
    root = ET.fromstring(chart._repr_svg_())
    drawn = [one for one in root.iter() if one.tag.endswith(("path", "rect", "circle"))]
    return [one.attrib for one in drawn if one.attrib["class"] != "paper"]


def words(chart: Chart) -> str:
    return " ".join(ET.fromstring(chart._repr_svg_()).itertext())


def test_a_frontier_has_a_point_for_each_goal_and_fills_the_one_stated(plan: Plan) -> None:
    points = [one for one in marks(charts.frontier(plan)) if "r" in one]
    assert [one["class"] == "s1" for one in points] == [one.goal == Budget(60) for one in plan.frontier]
    across = [float(one["cx"]) for one in points]
    paid = [one.payment for one in plan.frontier]
    assert np.corrcoef(across, paid)[0, 1] > 1 - 1e-6


def test_a_schedule_shows_a_line_and_says_whose_it_is_where_groups_differ(outcome: Outcome) -> None:
    for show in ("privacy_loss", "payment"):
        assert any("line" in one["class"] for one in marks(charts.schedule(outcome, show=show)))  # type: ignore[arg-type]
    with pytest.raises(InputError, match="show must be"):
        charts.schedule(outcome, show="weights")  # type: ignore[arg-type]
    priors = Grouped({"<b>": Uniform(1, 2), "dear": Uniform(8, 9)}, ["<b>"] * 40 + ["dear"] * 40)
    bids = np.concatenate([np.linspace(1, 1.5, 40), np.linspace(8, 9, 40)])
    grouped = charts.schedule(Market(prior=priors, goal=Price(1000.0)).acquire(bids))
    assert "<b>" in words(grouped)  # as text
    assert "dear" not in words(grouped)


def test_what_fewer_than_twenty_people_are_behind_is_not_drawn(few: Outcome) -> None:
    assert few.active < 20
    drawn = [
        charts.losses(few),
        charts.schedule(few),
        charts.baselines(compare(Market(prior=Uniform(1, 2), goal=Price(9.0)), [1.1])),
    ]
    for chart in drawn:
        assert "ewer than 20 people" in words(chart)
        assert marks(chart) == []
    menu = MARKET.menu(19, rng=np.random.default_rng(1), repetitions=5, points=5)
    assert marks(charts.schedule(few, menu=menu))


def test_losses_and_schedule_are_withheld_where_a_stratum_has_few_sellers() -> None:
    labels = ["many"] * 60 + ["few"] * 3
    market = Market(prior=Uniform(1, 2), buyer_weight=1e4, strata=labels, shares={"many": 0.5, "few": 0.5})
    outcome = market.acquire(np.linspace(1.0, 1.6, 63))
    for picture in (charts.losses, charts.schedule):
        assert marks(picture(outcome)) == []
        assert "stratum" in words(picture(outcome))


@each("draw", [charts.frontier, charts.schedule, charts.losses, charts.baselines, charts.simulation])
def test_what_cannot_be_drawn_is_refused_in_a_sentence(draw: Callable[..., Any]) -> None:
    with pytest.raises(InputError, match=r"must be a (Plan|Outcome|Comparison|Simulation), got Market\."):
        draw(MARKET)


def test_a_baseline_out_of_reach_has_words_in_the_place_of_a_bar() -> None:
    found = compare(Market(prior=Uniform(1, 2), goal=Price(10_000.0)), np.linspace(1, 2, 50), baselines=[NearOptimal])
    chart = charts.baselines(found)
    assert "out of reach" in words(chart)
    assert len(marks(chart)) == 1


def test_a_simulation_counts_every_campaign(plan: Plan) -> None:
    found = plan.simulation
    chart = charts.simulation(found)
    assert chart.table is not None
    assert sum(int(count) for _, count in chart.table.rows) == found.repetitions
    assert "mean squared error at worst" in words(charts.simulation(found, "worst_mse"))
    with pytest.raises(InputError, match="name must be one of total_payment"):
        charts.simulation(found, "n")
