"""Where no cap can be stated, nobody loses more than what public terms say, whoever else bids what."""

import math
from typing import Any

import numpy as np
import pytest

from hushbid import Accuracy, Market, Price
from hushbid.common.arrays import FloatArray
from hushbid.errors import InputError, NobodyToBuyFrom, Unreachable
from hushbid.mechanism.largest_loss import largest_loss
from hushbid.priors import Beta, Exponential, Prior, Uniform
from hushbid.questions import Number, YesNo
from tests.extent import each

PRIOR = Uniform(1, 3)
YES_NO: dict[str, Any] = {"setting": "local", "questions": [YesNo(name="smokes")]}
NUMBER: dict[str, Any] = {"setting": "local", "bounds": (0, 10), "variance": 12.0}
SEVERAL: dict[str, Any] = {"setting": "local", "questions": [Number(name="sleep", bounds=(0, 12)), YesNo(name="tired")]}


def bound(prior: Prior = PRIOR, **stated: Any) -> float:
    return largest_loss(Market(prior=prior, **stated).for_people(1), [prior])


def losses(market: Market, bids: list[float]) -> FloatArray:
    try:
        return market.for_people(len(bids)).allocation(PRIOR.virtual_cost(np.array(bids))).privacy_loss
    except (Unreachable, NobodyToBuyFrom):
        return np.zeros(1)


@each(
    ("stated", "people"),
    [
        ({**YES_NO, "goal": Price(3.0)}, 3),
        ({**YES_NO, "goal": Price(300.0)}, 6),
        ({**YES_NO, "goal": Accuracy(0.7)}, 3),
        ({**YES_NO, "goal": Accuracy(0.4)}, 4),
        ({**YES_NO, "goal": Accuracy(0.25)}, 6),
        ({**NUMBER, "goal": Accuracy(5.0)}, 3),
        ({**NUMBER, "goal": Accuracy(1.9)}, 6),
        ({**SEVERAL, "goal": Accuracy((4.0, 0.4))}, 5),
    ],
)
def test_nobody_loses_more_among_all_bids_of_a_grid(stated: dict[str, Any], people: int) -> None:
    """One cheap person, and others who are cheap, dear, dearest, or above the support and so as good as away."""
    market, most, largest = Market(prior=PRIOR, **stated), bound(**stated), 0.0
    grid = (1.0, 1.02, 2.0, 3.0, 4.0)
    rng = np.random.default_rng(1)
    others = {(kind,) * (people - 1) for kind in grid}
    others |= {(3.0,) * k + (4.0,) * (people - 1 - k) for k in range(people)}
    others |= {tuple(sorted(rng.choice(grid, people - 1).tolist())) for _ in range(40)}
    for rest in others:
        largest = max(largest, float(losses(market, [1.0, *rest]).max()))
    assert 0.1 * most < largest <= most
    if isinstance(stated["goal"], Price) or stated["goal"] == Accuracy(0.7):
        assert largest == pytest.approx(most, rel=2e-9)  # the only seller


def test_the_only_seller_of_a_yes_or_no_loses_where_the_last_bit_is_worth_its_cost() -> None:
    found = bound(**YES_NO, goal=Price(100.0))
    t = math.tanh(found / 2)
    assert 100.0 * (1 - t**2) / (4 * t**3) == pytest.approx(1.0, rel=1e-6)


def test_the_bound_grows_slowly_with_the_dearest_and_covers_groups() -> None:
    stated = {**YES_NO, "goal": Accuracy(0.05)}
    narrow, wide = bound(**stated), bound(Uniform(1, 1000), **stated)
    assert 6.0 < narrow < 12.0
    assert narrow < wide < narrow + 4 * math.log(1000)
    market = Market(prior=Uniform(1, 3), **stated).for_people(1)
    assert largest_loss(market, [Uniform(1, 3), Uniform(1, 1000)]) == wide


@pytest.mark.parametrize(
    ("prior", "stated", "told"),
    [
        (Uniform(0, 1), {**YES_NO, "goal": Price(3.0)}, "may cost nothing"),
        (Exponential(1), {**YES_NO, "goal": Price(3.0)}, "may cost nothing"),
        (Beta(2, 2, 1, 3), {**YES_NO, "goal": Accuracy(0.1)}, "this prior has none"),
        (PRIOR, {**NUMBER, "goal": Accuracy(1.0), "max_correlation": 0.1}, "under a relation"),
    ],
    ids=str,
)
def test_where_there_is_no_bound_the_reason_is_told(prior: Prior, stated: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=told):
        bound(prior, **stated)
