"""A private mean for given losses is what the best estimator and the release make of them."""

from pathlib import Path

import numpy as np
import pytest

import hushbid
from hushbid import best_weights, private_mean, privatize
from hushbid.errors import AlreadyReleased, InfiniteLoss
from hushbid.estimation import Setting

LOSSES = [0.5, 1.0, 1.0, 40.0]


def test_it_uses_of_each_loss_what_the_best_estimator_uses(tmp_path: Path) -> None:
    found = private_mean([1.0, 2.0, 3.0, 4.0], LOSSES, bounds=(0, 8), question="hours", ledger=tmp_path)
    best = best_weights(LOSSES, setting="central")
    assert np.all(found.privacy_loss <= LOSSES)
    assert found.privacy_loss == pytest.approx(best.delivered, rel=1e-9)
    assert found.error.mse == pytest.approx(64 * best.mse, rel=1e-6)


def test_it_is_drawn_once_and_synthetic_data_every_time(tmp_path: Path) -> None:
    data, ids = [1.0, 2.0, 3.0, 4.0], list("abcd")
    first, again = (
        private_mean(data, LOSSES, bounds=(0, 8), question="hours", ids=ids, ledger=tmp_path) for _ in range(2)
    )
    assert first.estimate == again.estimate
    with pytest.raises(AlreadyReleased):
        private_mean(data, LOSSES, bounds=(0, 8), question="hours", ids=ids, ledger=tmp_path, synthetic=True)
    settings: tuple[Setting, ...] = ("central", "local")
    drawn = {
        private_mean(
            data, LOSSES, bounds=(0, 8), question="x", ledger=tmp_path / "other", synthetic=True, setting=one
        ).estimate
        for one in settings
        for _ in range(3)
    }
    assert len(drawn) == 6


def test_locally_it_weighs_what_devices_sent(tmp_path: Path) -> None:
    sent = [privatize(2.0, loss, (0, 8)) for loss in LOSSES]
    found = private_mean(sent, LOSSES, bounds=(0, 8), question="hours", setting="local", ledger=tmp_path)
    assert found.privacy_loss.tolist() == LOSSES
    with pytest.raises(InfiniteLoss):
        private_mean([1.0], [np.inf], bounds=(0, 8), question="hours", ledger=tmp_path)


def test_a_seed_is_a_generator_for_a_comparison() -> None:
    market = hushbid.Market(prior=hushbid.Uniform(1, 2), goal=hushbid.Price(1000.0))
    by_seed, by_generator = (
        hushbid.compare(market, people=30, rng=rng, populations=2, baselines=[hushbid.baselines.PostedPrice])
        for rng in (7, np.random.default_rng(7))
    )
    assert by_seed.ours == by_generator.ours
