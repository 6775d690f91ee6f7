"""What a market decides, simulates, plans and compares as a data frame."""

import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from hushbid import Market, Uniform
from hushbid.allocation import Budget
from hushbid.baselines import compare
from hushbid.errors import InputError, MissingExtra

MARKET = Market(prior=Uniform(1, 3), goal=Budget(20), bounds=(0, 12))
BIDS = np.linspace(1, 3, 30)


def test_an_outcome_has_one_row_per_person_in_every_library() -> None:
    outcome = MARKET.acquire(BIDS)
    for library, kind in (("pandas", pd.DataFrame), ("polars", pl.DataFrame), ("pyarrow", pa.Table)):
        frame = outcome.to_frame(library)  # type: ignore[arg-type]
        assert type(frame) is kind
        assert np.asarray(frame["payment"]).tolist() == outcome.payments.tolist()
        assert np.asarray(frame["bid"]).tolist() == BIDS.tolist()
    assert type(outcome.to_frame()) is pd.DataFrame


def test_without_pandas_it_is_polars_and_without_any_library_it_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = MARKET.acquire(BIDS)
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert type(outcome.to_frame()) is pl.DataFrame
    with pytest.raises(MissingExtra, match="A data frame needs pandas: pip install pandas"):
        outcome.to_frame("pandas")
    for library in ("polars", "pyarrow"):
        monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(MissingExtra, match="needs pandas, polars or pyarrow"):
        outcome.to_frame()


def test_simulations_plans_and_comparisons_have_a_row_for_what_they_count() -> None:
    rng = np.random.default_rng(1)
    simulated = MARKET.simulate(30, 5, rng=rng)
    assert simulated.to_frame()["total_payment"].tolist() == simulated.total_payment.tolist()
    plan = MARKET.plan(30, rng=rng, repetitions=10)
    assert plan.to_frame()["payment"].tolist() == [point.payment for point in plan.frontier]
    protection = plan.to_frame("protection")
    assert protection["standard_error_at_0.1"].tolist() == [row.standard_errors[3] for row in plan.protection]
    with pytest.raises(InputError, match="table must be 'frontier' or 'protection', got 'all'"):
        plan.to_frame("all")  # type: ignore[arg-type]
    compared = compare(Market(prior=Uniform(1, 3), buyer_weight=1e3, user_weight=0), BIDS)
    frame = compared.to_frame("polars")
    assert frame["name"].to_list() == [row.name for row in (compared.ours, *compared.baselines)]
    assert frame["total_payment"].to_list()[0] == compared.ours.total_payment
