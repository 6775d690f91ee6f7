"""Rents keep their digits where the error times its weight is many orders above them."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from hushbid import Accuracy, Budget, Market
from hushbid.cli import main
from hushbid.mechanism import Outcome, decision
from hushbid.mechanism.decision import LESS_EXACT
from hushbid.payments import rent_of_rule
from hushbid.payments.rent_bounds import Bounds, monotone
from hushbid.priors import Histogram, LogNormal, Prior, Uniform
from hushbid.record import Record
from hushbid.report import build_report
from tests.extent import each

PEOPLE = np.random.default_rng(1).uniform(1.0, 2.0, 100)


@each("cap", [1e-1, 1e-3, 1e-6, 1e-8])
@each("setting", ["central", "local"])
def test_at_a_cap_that_binds_at_every_bid_the_rent_is_the_cap_times_the_rest_of_the_support(
    setting: Any, cap: float
) -> None:
    found = Market(prior=Uniform(1, 2), setting=setting, buyer_weight=1e6, max_privacy_loss=cap).acquire(PEOPLE)
    assert found.active == PEOPLE.size
    np.testing.assert_allclose(found.information_rent, cap * (2.0 - PEOPLE), rtol=1e-13)
    assert found.incentive_error <= 1e-9 * found.payments.max()
    assert found.flags == ()


@each("error", [1e2, 1e4, 1e5, 1e7, 1e9])
@each("prior", [Uniform(1, 2), LogNormal(0.3, 0.2)])
def test_where_noise_is_all_the_error_the_cheapest_sells_alone_up_to_the_next_cost(error: float, prior: Prior) -> None:
    bids = np.array([1.2, 1.4, 1.7])
    found = Market(prior=prior, goal=Accuracy(error)).acquire(bids)
    assert found.active == 1
    # up to terms of the order of the data's variance beside the noise
    rent = math.sqrt(2.0) / error * 0.2
    np.testing.assert_allclose(found.information_rent, [rent, 0.0, 0.0], rtol=2e-6 + 10.0 / error**2)
    lower, upper = found.rent_bounds
    assert lower[0] <= found.information_rent[0] <= upper[0]
    assert upper[0] - lower[0] <= 4e-6 * found.payments[0]


def _markets() -> list[tuple[Market, np.ndarray[Any, Any] | None]]:
    limits = 1e-4 * 10.0 ** np.linspace(-2.0, 2.0, 8)
    strata = ["a", "b"] * 4
    markets: list[tuple[Market, np.ndarray[Any, Any] | None]] = [
        (Market(prior=Uniform(1, 2), buyer_weight=1e3), limits),
        (Market(prior=Uniform(1, 2), buyer_weight=1e-10), limits),
        (Market(prior=Uniform(1, 2), buyer_weight=3e-10, max_privacy_loss=2e-4), None),
        (Market(prior=Uniform(1, 2), buyer_weight=1e12), None),
        (Market(prior=Uniform(1, 2), goal=Budget(0.02), max_privacy_loss=0.01), None),
        (Market(prior=Uniform(1, 2), goal=Accuracy(40.0), max_privacy_loss=0.02), None),
        (Market(prior=Uniform(1, 2), setting="local", buyer_weight=1e-4, max_privacy_loss=0.02), None),
        (
            Market(
                prior=Uniform(1, 2),
                buyer_weight=1e4,
                strata=strata,
                contrast={"a": 1.0, "b": -0.01},
                max_privacy_loss=1e-3,
            ),
            None,
        ),
        (Market(prior=Histogram([1, 1.5, 2], [0.6, 0.4]), buyer_weight=1e3, max_privacy_loss=1e-4), None),
    ]
    return markets


@each("number", range(9))
def test_bounds_hold_the_integral_of_the_losses_alone(number: int) -> None:
    market, limits = _markets()[number]
    bids = np.linspace(1.05, 1.9, 8)
    found = market.acquire(bids, limits=limits)
    rule, prior = found.population.rule(found.virtual_costs), market.prior
    assert isinstance(prior, Prior)
    virtual_cost = prior.virtual_cost
    lower, upper = found.rent_bounds
    for row in np.flatnonzero(found.privacy_loss)[::3].tolist():

        def loss(bid: np.ndarray[Any, Any], row: int = row) -> np.ndarray[Any, Any]:
            return rule.at(np.full(bid.size, row), np.asarray(virtual_cost(bid))).loss

        exact = rent_of_rule(loss, float(bids[row]), 2.0, tolerance=1e-5, most_evaluations=3000)
        assert lower[row] <= exact.upper[0]
        assert exact.lower[0] <= upper[row]
        assert abs(found.information_rent[row] - exact.estimate[0]) <= exact.error + 1e-6 * found.payments.max()


def test_losses_that_rise_by_rounding_widen_the_bounds() -> None:
    found = monotone(np.array([2.0, 2.0, 0.0]), np.array([1.0, 3.0, math.inf]), np.array([1.5, 1.0, 1.0]))
    assert (found.lower <= [2.0, 2.0, 0.0]).all()
    assert (found.upper >= [3.0, 6.0, 0.0]).all()
    one, other = Bounds(*np.array([[5.0], [6.0], [5.5]])), Bounds(*np.array([[1.0], [2.0], [1.5]]))
    both = one.intersected(other)  # values that contradict the sums have lost their digits
    assert (both.lower[0], both.upper[0], both.estimate[0]) == (1.0, 2.0, 1.5)


@pytest.fixture
def no_error_is_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every market is exact enough, so what is enough is set to next to nothing."""
    monkeypatch.setattr(decision, "_WIDTH", 1e-12)


@pytest.mark.usefixtures("no_error_is_allowed")
def test_payments_less_exact_than_the_tolerance_are_flagged_in_outcome_record_and_report() -> None:
    limits = np.array([1e-7, 3e-7, 2e-7, 5e-7])
    outcome = Market(prior=Uniform(1, 2), goal=Accuracy(2e6)).acquire([1.1, 1.2, 1.3, 1.4], limits=limits)
    assert isinstance(outcome, Outcome)
    (flag,) = outcome.flags
    assert Record.of(outcome, stamps=["wave 2"]).stamps == ("wave 2", flag)
    assert flag in outcome.summary().casefold()
    languages: tuple[Any, ...] = ("en", "de")
    for language in languages:
        (notice,) = build_report(outcome, language=language).notices
        assert (flag[1:] in notice) == (language == "en")


@pytest.mark.usefixtures("no_error_is_allowed")
def test_the_command_says_that_payments_are_less_exact_without_a_record_too(tmp_path: Path) -> None:
    (bids := tmp_path / "bids.csv").write_text("id,bid,limit\na,1.1,1e-7\nb,1.2,3e-7\nc,1.3,2e-7\nd,1.4,5e-7\n")
    options = ["--prior", "uniform:1,2", "--standard-error", "2e6", "--currency", "EUR", "--limit-column", "limit"]
    done = CliRunner().invoke(main, ["price", str(bids), *options, "--out", str(tmp_path / "a.csv"), "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["flags"] == [LESS_EXACT]
