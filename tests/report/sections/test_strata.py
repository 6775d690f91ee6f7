"""A report about strata says which mean it is, and nothing that a stratum with few people would be given away by."""

from typing import Any

import numpy as np
import pytest

from hushbid import Accuracy, Market, Outcome, Price, Uniform
from hushbid.campaign.telling import estimate_text
from hushbid.disclosure import release_synthetic
from hushbid.mechanism.releasing import plan_of
from hushbid.report import Report, build_report, render_report

LABELS = np.array(["young"] * 90 + ["old"] * 30)
SHARES = {"young": 0.5, "old": 0.5}
DIFFERENCE = {"old": 1, "young": -1}
BIDS = np.random.default_rng(0).uniform(1, 2, LABELS.size)


def decided(labels: Any = LABELS, **terms: Any) -> Outcome:
    stated = {"prior": Uniform(1, 2), "goal": Price(200), "bounds": (0, 10), "strata": labels.tolist(), **terms}
    return Market(**stated).acquire(BIDS)


@pytest.fixture(scope="module")
def panel() -> Report:
    outcome = decided(shares=SHARES)
    release = release_synthetic(plan_of(outcome, key="panel"), np.where(LABELS == "old", 7.0, 3.0)).release
    return build_report(outcome, release, comparison="omit")


def test_the_mean_of_the_panel_is_bounded_by_its_shares_and_not_computed(panel: Report) -> None:
    strata = panel.estimate.strata
    assert strata is not None
    assert [(row.name, row.share_of_people, row.weight) for row in strata.rows] == [
        ("old", 0.25, 0.5),
        ("young", 0.75, 0.5),
    ]
    # its expected mean is 4, that of the population 5, and with means at the ends of the range they would differ most
    assert [one.most for one in strata.misses] == [pytest.approx(10 * 0.25)]
    page = render_report(panel)
    assert "a mean for a population in which the strata have the shares below" in page
    assert "The plain mean itself was not computed" in page
    assert "Strata known beforehand" in page


def test_each_stratum_has_the_curve_that_prices_it(panel: Report) -> None:
    outcome = decided(shares=SHARES)
    assert [curve.name for curve in panel.privacy.curves] == ["young", "old"]
    for curve in panel.privacy.curves:
        assert curve.kind == "exact"
        losses = outcome.schedule(stratum=curve.name).privacy_loss(curve.bids)
        assert curve.privacy_loss == pytest.approx(losses, abs=1e-3 * losses.max())


def test_a_difference_is_called_by_its_strata_and_may_be_negative() -> None:
    outcome = decided(contrast=DIFFERENCE, goal=Price(20_000))  # a difference of −4 and a noise of 0.08
    release = release_synthetic(plan_of(outcome, key="difference"), np.where(LABELS == "old", 3.0, 7.0)).release
    report = build_report(outcome, release, comparison="omit")
    assert report.question == "old − young"
    assert report.estimate.answers[0].bounds == (-10.0, 10.0)
    assert report.estimate.strata is not None
    assert report.estimate.strata.misses == ()
    assert "<b>old − young</b>" in render_report(report)
    assert estimate_text(release, 0.95).startswith("Estimate of old − young: −")


@pytest.mark.parametrize("goal", [Price(200), Accuracy(1.5)])
def test_one_stratum_with_few_people_withholds_what_would_tell_their_losses(goal: Any) -> None:
    labels = np.where(np.arange(LABELS.size) < 3, "few", LABELS)
    report = build_report(decided(labels, goal=goal, shares={"few": 0.2, "old": 0.4, "young": 0.4}), comparison="omit")
    assert report.too_few
    assert report.bought_from > 20
    assert report.cost.parts is None
    assert report.cost.paid is None
    assert report.privacy.histogram is None
    assert report.privacy.curves == ()
    assert report.privacy.quantiles == ()
    assert report.selection is None
    assert report.cap.curve == ()
    assert all(row.mean_loss is None and row.share_of_payment is None for row in report.groups or ())
    assert report.estimate.strata is not None
    counted = {row.name: row.bought_from for row in report.estimate.strata.rows}
    assert counted["few"] is None
    assert list(counted.values()).count(None) == 2  # or it would follow from the others
    assert "Fewer than 5 people of a stratum were bought from" in render_report(report)


def test_what_moves_the_estimate_is_unevenness_inside_strata(panel: Report) -> None:
    outcome = decided(shares=SHARES)
    assert panel.selection is not None
    sizes = {name: float(np.count_nonzero(name == LABELS)) for name in SHARES}
    even = np.array([SHARES[name] / sizes[name] for name in LABELS])
    # the worst data of standard deviation 5 that have the same mean in every stratum, as the weights would have them
    worst = 5.0 * (outcome.weights - even) / np.std(outcome.weights - even)
    assert panel.selection.shift_per_correlation == pytest.approx(float(outcome.weights @ worst))
