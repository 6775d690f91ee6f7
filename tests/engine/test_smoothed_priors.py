"""Engines price people under histograms and kernel densities as memory does."""

import numpy as np
import pandas as pd
import pytest

from hushbid.engine import price
from hushbid.mechanism import Market
from hushbid.priors import Histogram, KernelDensity, Prior


@pytest.mark.parametrize("prior", [Histogram([1, 2, 3, 5], [3, 0, 2]), KernelDensity([1, 1.3, 3], 0.3)], ids=str)
def test_an_engine_pays_what_memory_pays(prior: Prior) -> None:
    bids = prior.sample(60, rng=np.random.default_rng(3))
    market = Market(prior=prior, user_weight=0, buyer_weight=900)
    people = pd.DataFrame({"id": [f"p{k:02}" for k in range(60)], "bid": bids})
    found = price(people, market)
    outcome = market.acquire(bids)
    assert found.total_payment() == pytest.approx(outcome.total_payment, rel=1e-5)
    assert found.frame["privacy_loss"].to_numpy() == pytest.approx(outcome.privacy_loss, rel=1e-9)
