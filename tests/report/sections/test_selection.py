"""The arithmetic of how much a relation between price and datum could mislead."""

import math

import numpy as np
import pytest

from hushbid import Market, Uniform
from hushbid.report.sections.selection import selection_facts


def test_the_correlation_found_moves_the_weighted_mean_by_exactly_half_an_interval() -> None:
    prior = Uniform(1, 2)
    market = Market(prior=prior, user_weight=0.0, buyer_weight=5000.0)
    outcome = market.acquire(prior.sample(300, rng=np.random.default_rng(300)))
    rng = np.random.default_rng(0)
    half, spread = 0.05, 0.4
    facts = selection_facts(outcome.weights, outcome.bids, variance=spread**2, half_width=half)
    assert facts.any_shape is not None
    assert facts.linear is not None
    assert facts.any_shape <= facts.linear

    def bias(direction: np.ndarray, correlation: float) -> float:
        """Data of the given spread with that correlation to ``direction``, the rest unrelated to the weights."""
        rest = rng.normal(size=300)
        known = np.column_stack([np.ones(300), direction, outcome.weights])
        rest -= known @ np.linalg.lstsq(known, rest, rcond=None)[0]
        toward = (direction - direction.mean()) / direction.std()
        data = spread * (correlation * toward + math.sqrt(1 - correlation**2) * rest / rest.std())
        assert data.std() == pytest.approx(spread)
        return float(outcome.weights @ data - data.mean())

    assert bias(outcome.weights, facts.any_shape) == pytest.approx(half)
    assert abs(bias(outcome.bids, facts.linear)) == pytest.approx(half)


def test_equal_weights_cannot_be_misled_and_impossible_correlations_are_not_named() -> None:
    even = selection_facts(np.full(50, 1 / 50), np.linspace(1, 2, 50), variance=1.0, half_width=0.1)
    assert even.shift_per_correlation == 0.0
    assert even.any_shape is None
    wide = selection_facts(np.r_[1.0, np.zeros(49)], np.linspace(1, 2, 50), variance=1.0, half_width=1e3)
    assert wide.any_shape is None
    same = selection_facts(np.r_[1.0, np.zeros(49)], np.full(50, 1.5), variance=1.0, half_width=0.1)
    assert same.weight_cost_correlation is None
    assert same.linear is None
    assert same.any_shape is not None
