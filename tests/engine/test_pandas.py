"""Frames of pandas on the engine that is always there."""

from pathlib import Path

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
        {"sensitivity": rng.uniform(1, 2, 50), "city": pd.Categorical(["a", "b"] * 25)},
        index=pd.Index([f"p{k}" for k in range(50)], name="id"),
    )
    priced = price(people, market)
    expected = market.acquire(people["sensitivity"])
    assert type(priced.frame) is pd.DataFrame
    pd.testing.assert_frame_equal(priced.frame[["sensitivity", "city"]], people)
    np.testing.assert_allclose(priced.frame["payment"], expected.payments, rtol=1e-9)
    assert priced.summary.total_payment == pytest.approx(expected.total_payment, rel=1e-12)
    priced.write_parquet(tmp_path / "priced.parquet")
    assert pq.read_table(tmp_path / "priced.parquet")["id"].to_pylist() == people.index.tolist()
    lazy = price(pl.from_pandas(people, include_index=True).lazy(), market)
    assert lazy.summary.total_payment is None
    assert lazy.total_payment() == priced.summary.total_payment


def test_a_column_of_several_kinds_is_refused_without_showing_what_it_holds() -> None:
    people = pd.DataFrame({"id": [1, 2], "sensitivity": [1.5, "secret"]})
    with pytest.raises(InputError, match="columns of one kind each") as refused:
        price(people, Market(prior=Uniform(1, 2), buyer_weight=1, user_weight=0))
    assert "secret" not in str(refused.value)
