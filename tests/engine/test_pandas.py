"""Frames of pandas on the engine that is always there."""

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow.parquet as pq
import pytest

from hushbid.engine import price
from hushbid.errors import InputError
from hushbid.mechanism import Market
from hushbid.priors import Uniform


def test_a_pandas_frame_is_priced_into_a_pandas_frame_with_the_total_in_the_summary(tmp_path: Path) -> None:
    market = Market(prior=Uniform(1, 2), variance=0.25, buyer_weight=1.0, user_weight=1.0)
    rng = np.random.default_rng(3)
    people = pd.DataFrame(
        {"bid": rng.uniform(1, 2, 50), "city": pd.Categorical(["a", "b"] * 25)},
        index=pd.Index([f"p{k}" for k in range(50)], name="id"),
    )
    priced = price(people, market)
    expected = market.acquire(people["bid"])
    assert type(priced.frame) is pd.DataFrame
    pd.testing.assert_frame_equal(priced.frame[["bid", "city"]], people)
    np.testing.assert_allclose(priced.frame["payment"], expected.payments, rtol=1e-9)
    assert priced.summary.total_payment == pytest.approx(expected.total_payment, rel=1e-12)
    priced.write_parquet(tmp_path / "priced.parquet")
    assert pq.read_table(tmp_path / "priced.parquet")["id"].to_pylist() == people.index.tolist()
    lazy = price(pl.from_pandas(people, include_index=True).lazy(), market)
    assert lazy.summary.total_payment is None
    assert lazy.total_payment() == priced.summary.total_payment


MARKET = Market(prior=Uniform(1, 2), buyer_weight=1, user_weight=0)
PEOPLE = pd.DataFrame({"id": [1, 2], "bid": [1.5, 1.7]})


@pytest.mark.parametrize(
    "people",
    [PEOPLE.assign(bid=[1.5, "secret"]), pd.concat([PEOPLE, PEOPLE], axis=1)],
    ids=["of several kinds", "called the same"],
)
def test_columns_that_arrow_does_not_take_are_refused_without_showing_what_they_hold(people: pd.DataFrame) -> None:
    with pytest.raises(InputError, match="columns with different names and of one kind each") as refused:
        price(people, MARKET)
    assert "secret" not in str(refused.value)


def test_columns_that_arrow_does_not_give_back_are_refused_in_a_sentence() -> None:
    with pytest.raises(InputError, match="columns that Arrow gives back to pandas"):
        price(PEOPLE.assign(band=pd.cut([1.5, 1.7], 2)), MARKET)


def test_rows_that_are_left_keep_their_index() -> None:
    for people in (PEOPLE, PEOPLE.set_axis([7, 9])):
        assert price(people, MARKET).frame.index.equals(people.index)
        bad = people.assign(bid=[np.nan, 1.7])
        assert price(bad, MARKET, on_bad_rows="drop").frame.index.tolist() == [people.index[1]]


@pytest.mark.parametrize(
    "other", [pl.Series([1.5]), pl.col("id"), duckdb.connect()], ids=["series", "expression", "link"]
)
def test_what_belongs_to_a_library_of_frames_but_is_none_is_refused(other: Any) -> None:
    with pytest.raises(InputError, match=r"population must be a pandas or Polars frame, .* got (Series|Expr|DuckDBPy)"):
        price(other, MARKET)


def test_a_market_that_is_none_is_refused() -> None:
    with pytest.raises(InputError, match="market must be a Market, got DataFrame"):
        price(PEOPLE, PEOPLE)  # type: ignore[arg-type]
