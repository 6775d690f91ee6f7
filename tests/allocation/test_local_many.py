"""Many local markets that are bought from at once cost what each of them costs alone."""

import math
from typing import Any

import numpy as np
import pytest

from hushbid.allocation import Price, allocate
from hushbid.allocation.local_rule import local_expenses


@pytest.mark.parametrize("response", [False, True])
@pytest.mark.parametrize("cap", [0.05, 1.0, 3.0, math.inf])
@pytest.mark.parametrize("people", [1, 2, 7, 40])
def test_each_market_costs_what_it_costs_alone(people: int, cap: float, response: bool) -> None:
    rng = np.random.default_rng([people, response])
    costs = np.exp(rng.normal(0.0, 1.5, (10, people)))
    costs[::7] = np.round(costs[::7], 1) + 0.1  # ties
    costs[::9, 1:] = math.inf
    for price in (1e-3, 0.3, 30.0, 1e6):
        how: dict[str, Any] = {"variance": 0.25, "max_loss": cap, "response": response}
        expenses, sellers = local_expenses(costs, price=price, **how)
        for row, expense, count in zip(costs, expenses, sellers, strict=True):
            alone = allocate(row, setting="local", goal=Price(price), **how)
            bought = alone.privacy_loss > 0.0
            assert count == bought.sum()
            assert expense == pytest.approx(float(row[bought] @ alone.privacy_loss[bought]), rel=1e-9)
