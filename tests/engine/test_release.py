"""Releases from a priced table."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from hushbid.engine import price, release
from hushbid.engine.releasing import Sums, SumsKernel
from hushbid.errors import InputError, NothingDelivered
from hushbid.mechanism import Market
from hushbid.priors import Uniform
from tests.engine.conftest import Kind

MARKET = Market(prior=Uniform(1, 2), bounds=(10, 30), variance=20.0)
RNG = np.random.default_rng(8)
N = 6000
REPORTS = Uniform(1, 2).sample(N, rng=RNG)
DATA = RNG.uniform(10, 30, N)


def people(data: object = DATA) -> pa.Table:
    return pa.table({"id": np.arange(N), "sensitivity": REPORTS, "datum": data})


def test_the_integers_below_the_noise_are_the_same_on_every_engine(kind: Kind) -> None:
    sums = []
    for table in (people(), kind.make(people())):
        priced = price(table, MARKET, gather=100, window=50)
        kernel = SumsKernel(priced._kernel, "datum", MARKET.bounds, 45)
        sums.append(priced._engine.reduce(kernel, ["sensitivity", "id", "datum"], Sums()))
    assert sums[0] == sums[1]
    losses = MARKET.acquire(REPORTS).privacy_loss
    assert sums[0].delivered == int((losses > 0).sum())
    assert sums[0].weighted / 2**40 / sums[0].weight * 20 + 10 == pytest.approx(np.average(DATA, weights=losses))


def test_a_release_is_drawn_once_and_lies_near_the_mean(tmp_path: Path) -> None:
    priced = price(people(), MARKET)
    first = release(priced, "datum", claims=tmp_path / "claims")
    again = release(price(people(), MARKET), "datum", claims=tmp_path / "claims")
    assert first == again
    assert abs(first.estimate - 20.0) < 10 * first.standard_error
    assert first.standard_error == pytest.approx(np.sqrt(priced.summary.mse), rel=1e-4)


def test_drop_outs_and_values_outside_the_range_are_counted(tmp_path: Path) -> None:
    cheap = np.argsort(REPORTS)
    data = DATA.copy()
    data[cheap[:3]], data[cheap[5]] = np.nan, 99.0
    found = release(price(people(data), MARKET), "datum", claims=tmp_path)
    assert (found.dropped_out, found.clamped) == (3, 1)


def test_nothing_to_release_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(NothingDelivered, match="None of the"):
        release(price(people(np.full(N, np.nan)), MARKET), "datum", claims=tmp_path)
    with pytest.raises(InputError, match="no column 'age'"):
        release(price(people(), MARKET), "age", claims=tmp_path)
    local = Market(prior=Uniform(1, 2), variance=0.25, setting="local")
    with pytest.raises(InputError, match="central"):
        release(price(people(), local), "datum", claims=tmp_path)
