"""What was written down and read back says the same as before: every field, every derived figure, every curve."""

import dataclasses
import inspect
import json
import math
from typing import Any

import numpy as np
import pytest

from hushbid import Empirical, Exponential, Grouped, Market, Mixture, Uniform, privatize, release
from hushbid.errors import InputError
from hushbid.mechanism import Outcome
from hushbid.payments import RentBounds
from hushbid.record import Record
from hushbid.report.sections.cap import cap_curve
from hushbid.verification.verifying import verify
from tests.extent import TIMES

PRIORS = [
    Uniform(1, 2),
    Exponential(1.0),
    Empirical([0.4, 0.8, 0.8, 1.5, 2.5]),
    Mixture([Uniform(0.5, 1), Uniform(1.5, 3)], [0.4, 0.6]),
]


def told(thing: Any) -> dict[str, Any]:
    """Everything an object says without being asked for anything in particular, by name."""
    kind = type(thing)
    fields = {field.name for field in dataclasses.fields(thing)}
    derived = {name for name in dir(kind) if isinstance(getattr(kind, name), property)}
    methods = {"summary", "to_dict", "interval", "public", "columns"} & set(dir(kind))
    values = {name: value_of(thing, name) for name in sorted(fields | derived) if not name.startswith("_")}
    plain = [name for name in methods if not _asked_for(getattr(kind, name))]
    return values | {name: getattr(thing, name)() for name in plain}


def _asked_for(method: Any) -> list[str]:
    """The arguments that a method cannot do without, besides itself."""
    stated = inspect.signature(method).parameters.values()
    return [one.name for one in list(stated)[1:] if one.default is inspect.Parameter.empty]


def value_of(thing: Any, name: str) -> Any:
    """A field or derived figure, or the sentence that refuses it."""
    try:
        return getattr(thing, name)
    except InputError as refusal:
        return str(refusal)


def same(left: Any, right: Any) -> bool:
    if isinstance(left, RentBounds):  # kept of those who are bought from alone; a pair of columns to whoever asks
        return same(tuple(left), tuple(right))
    if dataclasses.is_dataclass(left) and not isinstance(left, type):
        if type(left) is not type(right):
            return False
        return left == right if isinstance(left, Market) else same(told(left), told(right))
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(left[name], right[name]) for name in left)
    if isinstance(left, list | tuple):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, np.ndarray):
        return np.array_equal(left, right)
    return bool(left == right)


def differing(left: Any, right: Any) -> list[str]:
    before, after = told(left), told(right)
    return [name for name in before if not same(before[name], after[name])]


def market_and_bids(rng: np.random.Generator) -> tuple[Market, list[float]]:
    def pick(*choices: Any) -> Any:
        return choices[int(rng.integers(len(choices)))]

    n = int(rng.integers(2, 7))
    prior: Any = pick(*PRIORS)
    if pick(True, False):
        prior = Grouped({"a": prior, "b": Uniform(0.5, 1.5)}, [pick("a", "b") for _ in range(n)])
    setting = pick("central", "local")
    market = Market(
        prior=prior,
        setting=setting,
        bounds=pick((0.0, 1.0), (-2.0, 3.0)),
        variance=[0.1 + 0.02 * k for k in range(n)] if setting == "central" and pick(True, False) else 0.2,
        buyer_weight=float(rng.uniform(0.5, 30.0)),  # a market of its own: each is released from once
        user_weight=pick(0.0, 1.0, [0.3 * k for k in range(n)]),
        outside_option=pick("own_data", "estimate"),
        max_privacy_loss=pick(None, 0.4, 1.5),
    )
    return market, [pick(1.0, 1.1, 1.25, 1.5) for _ in range(n)]  # equals are wanted


@pytest.mark.parametrize("seed", range(6 * TIMES))
def test_whatever_is_read_back_says_the_same(seed: int) -> None:
    rng = np.random.default_rng(seed)
    market, bids = market_and_bids(rng)
    n = len(bids)
    before = market.acquire(bids, tie_key=rng.permutation(n) if seed % 2 else None)
    after = Outcome.from_dict(json.loads(json.dumps(before.to_dict())))
    assert not differing(before, after)
    assert cap_curve(before) == cap_curve(after)
    z = np.linspace(1.0, 1.5, 4)
    assert same(before.schedule(seed % n).at(z), after.schedule(seed % n).at(z))
    values: list[Any] = [0.5] * n
    if market.setting == "local":
        values = [privatize(0.5, loss, market.bounds) if loss else None for loss in before.privacy_loss.tolist()]
    record = Record.of(before, release(before, values, question="read back"), currency="EUR")
    again = Record.from_dict(json.loads(record.to_bytes()))
    assert not differing(record, again)
    assert verify(again).ok, verify(again).summary()
    assert again.lower_bound == again.outcome.lower_bound <= before.objective * (1.0 + 1e-9)


@pytest.mark.parametrize("setting", ["central", "local"])
def test_a_certificate_read_back_is_the_certificate(setting: Any) -> None:
    """Neither a bound of infinity nor a cap that costs nothing."""
    market = Market(
        prior=Uniform(1, 2), setting=setting, variance=0.25, buyer_weight=40.0, max_privacy_loss=0.7, user_weight=1.0
    )
    before = market.acquire([1.1, 1.2, 1.9, 1.15])
    after = Outcome.from_dict(before.to_dict())
    assert 0.0 < after.lower_bound == before.lower_bound < math.inf
    assert 0.0 < after.cap_cost == before.cap_cost
    assert after.summary() == before.summary()
    nobody = Market(prior=Uniform(1, 2), user_weight=0.0, buyer_weight=1.0).acquire([2.5])
    assert Outcome.from_dict(nobody.to_dict()).lower_bound == nobody.lower_bound == math.inf
