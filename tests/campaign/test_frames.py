"""Frames in, frames out: people in pandas, Polars, pyarrow and whatever else speaks Arrow are bought from alike."""

import datetime as dt
import math
import re
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import hushbid
from hushbid import Choice, Grouped, Market, Number, Uniform, YesNo
from hushbid.campaign import Purchase, Reading
from hushbid.errors import BidError, DataError, InputError
from tests.extent import each

N = 40
MARKET = Market(prior=Uniform(1, 3), bounds=(0, 12), variance=2, buyer_weight=500, user_weight=0)
KINDS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "arrays": dict,
    "pandas": pd.DataFrame,
    "pandas, ids as the index": lambda columns: pd.DataFrame(columns).set_index("id"),
    "pandas with Arrow's types": lambda columns: pd.DataFrame(columns).convert_dtypes(dtype_backend="pyarrow"),
    "Polars": pl.DataFrame,
    "pyarrow": pa.table,
    "DuckDB": lambda columns: duckdb.from_arrow(pa.table(columns)),
    "narwhals": lambda columns: nw.from_native(pl.DataFrame(columns)),
}


def columns(**changes: Any) -> dict[str, Any]:
    rng = np.random.default_rng(1)
    found = {"id": [f"p{k}" for k in range(N)], "bid": rng.uniform(1, 3, N), "value": rng.uniform(0, 12, N)}
    return {**found, **changes}


def bought(people: Any, **options: Any) -> Purchase:
    return hushbid.buy(people, MARKET, **{"value": "value", "question": "mean sleep", "currency": "EUR", **options})


def test_whatever_people_come_in_they_are_bought_from_alike_and_drawn_from_once() -> None:
    first = bought(columns())
    expected = first.to_frame("pandas")
    assert first.release is not None
    assert first.record is not None
    assert hushbid.verify(first.record).ok
    assert expected["id"].tolist() == columns()["id"]
    for name, made in KINDS.items():
        again = bought(made(columns()))
        assert again.release is not None
        assert (name, again.release.estimate) == (name, first.release.estimate)
        pd.testing.assert_frame_equal(again.to_frame("pandas"), expected, obj=name)
        assert again.record is not None
        assert again.record.content["outcome"] == first.record.content["outcome"]
        assert (again.files, "Written" in again.text()) == ((), False)


@pytest.mark.parametrize(
    ("people", "kind"),
    [
        (pd.DataFrame(columns()), pd.DataFrame),
        (pl.DataFrame(columns()), pl.DataFrame),
        (pa.table(columns()), pa.Table),
        (columns(), pd.DataFrame),
    ],
    ids=["pandas", "Polars", "pyarrow", "arrays"],
)
def test_results_come_in_the_library_that_people_came_in(people: Any, kind: type) -> None:
    found = bought(people, synthetic=True)
    assert type(found.to_frame()) is kind
    assert type(found.to_frame("polars")) is pl.DataFrame
    with pytest.raises(InputError, match="library must be one of 'pandas', 'polars', 'pyarrow', got 'dask'"):
        found.to_frame("dask")  # type: ignore[arg-type]


def test_bids_and_data_in_different_tables_find_each_other_by_id() -> None:
    people = columns()
    shuffled = pl.DataFrame({"id": people["id"], "value": people["value"]})[::-1][3:]
    stranger = pl.DataFrame({"id": ["nobody"], "value": [1.0]})
    found = bought(pd.DataFrame(people), data=pl.concat([shuffled, stranger]), synthetic=True)
    assert found.released.strangers == 1
    assert found.to_frame()["delivered"].tolist()[-3:] != ["yes", "yes", "yes"]
    assert found.to_frame()["delivered"].isin(["no"]).sum() == found.release.absent  # type: ignore[union-attr]


def test_integers_name_people_and_columns_may_be_called_otherwise() -> None:
    people = pd.DataFrame(columns(id=range(100, 100 + N))).rename(columns={"id": "person", "bid": "price"})
    found = hushbid.buy(people, MARKET, id="person", bid="price")
    assert found.release is None
    assert found.to_frame().columns.tolist() == [
        *("person", "privacy_loss", "weight", "payment_minor", "payment", "currency")
    ]
    assert found.to_frame()["person"].tolist() == people["person"].tolist()


def test_groups_come_from_a_column_of_categories() -> None:
    shift = pd.Categorical(["days", "nights"] * (N // 2))
    priors = {"days": Uniform(1, 3), "nights": Uniform(1, 4)}
    market = Market(prior=Grouped(priors, []), bounds=(0, 12), variance=2, buyer_weight=500, user_weight=0)
    expected = Market(
        prior=Grouped(priors, list(shift)), bounds=(0, 12), variance=2, buyer_weight=500, user_weight=0
    ).acquire(columns()["bid"])
    for made in (pd.DataFrame, lambda some: pl.from_pandas(pd.DataFrame(some))):
        found = hushbid.buy(made(columns(shift=shift)), market, group="shift")
        losses = found.to_frame("pandas")["privacy_loss"].to_numpy()
        np.testing.assert_array_equal(losses, expected.privacy_loss)
    with pytest.raises(InputError, match="group must name the column"):
        hushbid.buy(columns(), market)


@pytest.mark.parametrize("kind", ["arrays", "pandas", "Polars"])
def test_a_survey_takes_truth_values_categories_and_gaps(kind: str) -> None:
    questions = (
        Number(name="sleep", bounds=(0, 12)),
        YesNo(name="smokes"),
        Choice(name="works", answers=("days", "nights")),
    )
    market = Market(prior=Uniform(1, 3), questions=questions, buyer_weight=500, user_weight=0)
    smokes = [row % 2 == 0 for row in range(N)]
    works = ["days" if row % 3 else "nights" for row in range(N)]
    table = columns(sleep=columns()["value"], smokes=smokes, works=works)
    if kind == "pandas":
        table = pd.DataFrame(table).astype({"smokes": "boolean", "works": "category"})
    if kind == "Polars":
        table = pl.DataFrame(table).with_columns(pl.col("works").cast(pl.Categorical))
    names = ["sleep", "smokes", "works"]
    found = hushbid.buy(table, market, value=names, synthetic=True)
    assert found.release is not None
    assert [answer.name for answer in found.release.answers] == names
    with pytest.raises(InputError, match=r"value must name one column for each question \(3\), got 5"):
        hushbid.buy(table, market, value=5, question="q")  # type: ignore[arg-type]
    wrong = columns(sleep=columns()["value"], smokes=[{"a": 1}] * N, works=works)
    with pytest.raises(DataError, match="'smokes' must hold yes or no, or nothing, but rows 0, 1, 2, 3, 4 and 35 more"):
        hushbid.buy(wrong, market, value=names, question="q")
    assert found.to_frame("pandas").shape[0] == N
    frame = found.release.to_frame()
    assert frame["answer"].tolist()[-2:] == ["days", "nights"]


GAPS: dict[str, Any] = {
    "NaN in an array": {"value": np.where(np.arange(N) == 3, math.nan, columns()["value"])},
    "masked": {"value": np.ma.masked_array(columns()["value"], mask=np.arange(N) == 3)},
    "masked integers": {"value": np.ma.masked_array(np.arange(N) % 12, mask=np.arange(N) == 3)},
    "None in pandas": pd.DataFrame({"value": [None if k == 3 else v for k, v in enumerate(columns()["value"])]}),
    "NA in pandas": pd.DataFrame({"value": columns()["value"]}).convert_dtypes().mask((np.arange(N) == 3)[:, None]),
    "null in Polars": pl.DataFrame({"value": [None if k == 3 else v for k, v in enumerate(columns()["value"])]}),
    "decimals": pa.table({"value": pa.array([None if k == 3 else v for k, v in enumerate(columns()["value"])])}),
}


@each("name", GAPS)
def test_a_missing_datum_is_a_drop_out_and_a_missing_bid_is_refused_by_its_row(name: str) -> None:
    given = GAPS[name]
    table = {"id": columns()["id"], "value": given["value"]}
    library = type(given).__module__.partition(".")[0]
    data = pd.DataFrame(table) if library == "pandas" else pl.DataFrame(table) if library == "polars" else table
    everybody = hushbid.buy(columns(), MARKET).to_frame("pandas")
    found = bought(columns(), data=data, synthetic=True)
    assert found.release is not None
    assert list(found.release.dropped_out) == ([3] if everybody["privacy_loss"][3] > 0 else [])
    with pytest.raises(BidError, match=r"'value' must hold numbers such as 0\.25, but row 3 does not") as refused:
        hushbid.buy(data, MARKET, bid="value")
    assert (refused.value.field, refused.value.row) == ("value", 3)


DAY = dt.date(2024, 5, 17)
WRONG: dict[str, tuple[Any, str]] = {
    "dates": (pd.to_datetime(["2024-05-17"] * N), "not (dates|timestamps)"),
    "days": (pl.Series([DAY] * N), "not (dates|timestamps)"),
    "truth values": ([True] * N, "not truth values"),
    "texts": (["secret"] * N, r"not texts|but rows 0, 1, 2, 3, 4 and 35 more do not"),
    "complex": (np.full(N, 1j), "not complex numbers|do not"),
    "one truth value among numbers": ([1.5, True, *[2.0] * (N - 2)], "but row 1 does not"),
    "one text among numbers": ([1.5, "secret", *[2.0] * (N - 2)], "but row 1 does not"),
    "one date among numbers": ([1.5, 2.0, DAY, *[2.0] * (N - 3)], "but row 2 does not"),
    "a signalling NaN": ([Decimal("sNaN"), *[2.0] * (N - 1)], "but row 0 does not"),
}


NOT_IN_POLARS = {
    "a signalling NaN",
    "complex",
    "one truth value among numbers",
    "one text among numbers",
    "one date among numbers",
}


@each(
    ("name", "way"),
    [
        (name, way)
        for name in WRONG
        for way in ("arrays", "pandas", "Polars")
        if way != "Polars" or name not in NOT_IN_POLARS
    ],
)
def test_what_is_no_number_is_refused_by_column_and_never_shown(name: str, way: str) -> None:
    values, told = WRONG[name]
    if way == "arrays" and name == "days":
        values = np.array([DAY] * N, dtype="datetime64[D]")
    values = list(values) if way == "Polars" else values
    made = {"arrays": dict, "pandas": pd.DataFrame, "Polars": pl.DataFrame}[way]
    with pytest.raises(InputError) as refused:
        hushbid.buy(made(columns(bid=values)), MARKET)
    assert refused.value.field == "bid"
    assert "'bid' must hold numbers" in str(refused.value)
    assert re.search(told, str(refused.value))
    assert "secret" not in str(refused.value)
    assert "2024" not in str(refused.value)
    with pytest.raises(DataError):
        bought(columns(), data=made(columns(value=values)))


@pytest.mark.parametrize(
    ("ids", "told"),
    [
        ([*range(N - 1), None], "must hold texts or integers, not floats"),
        ([DAY] * N, "must hold texts or integers, not dates"),
        (["a", *columns()["id"][:-2], "a"], "must name everybody once, but row 39 does not"),
        (["p\u200b1", *columns()["id"][1:]], "but row 0 does not"),
    ],
    ids=["floats", "dates", "twice", "hidden characters"],
)
def test_ids_that_name_nobody_or_look_alike_are_refused(ids: list[Any], told: str) -> None:
    with pytest.raises(InputError, match=told) as refused:
        hushbid.buy(pd.DataFrame(columns(id=ids)), MARKET)
    assert refused.value.field == "id"


def test_a_masked_id_names_nobody() -> None:
    ids = np.ma.masked_array(np.arange(N), mask=np.arange(N) == 3)
    with pytest.raises(InputError, match="'id' must name everybody, but row 3 does not"):
        hushbid.buy(columns(id=ids), MARKET)


def test_columns_that_are_not_needed_may_hold_what_they_like() -> None:
    people = pd.DataFrame(columns(note=[1, "two", DAY, *[None] * (N - 3)]))
    assert len(hushbid.buy(people, MARKET).to_frame()) == N
    with pytest.raises(InputError, match="two columns called 'id'"):
        hushbid.buy(pd.concat([people, people[["id"]]], axis=1), MARKET)
    with pytest.raises(InputError, match=r"must be a pandas or Polars frame, .* or a path, got ndarray"):
        hushbid.buy(columns()["bid"], MARKET)


@pytest.mark.parametrize("made", [dict, pd.DataFrame], ids=["arrays", "pandas"])
@pytest.mark.parametrize("note", [{}, {3: [1, "two"] * (N // 2)}], ids=["alone", "beside mixed objects"])
def test_columns_with_numbers_for_names_are_found_by_their_text(made: Callable[[Any], Any], note: Any) -> None:
    ids, bid, value = columns().values()
    found = hushbid.buy(made({0: ids, 1: bid, 2: value, **note}), MARKET, id="0", bid="1")
    assert found.to_frame("pandas")["0"].tolist() == ids


def test_ids_may_be_the_index_whatever_other_columns_hold() -> None:
    people = pd.DataFrame(columns(note=[1, "two"] * (N // 2))).set_index("id")
    assert hushbid.buy(people, MARKET).to_frame()["id"].tolist() == columns()["id"]


def test_categories_of_intervals_are_refused_by_column() -> None:
    bands = pd.cut(columns()["bid"], 3)
    for changed in ("id", "bid"):
        with pytest.raises(InputError, match=f"column {changed!r} must hold .* not extension<pandas.interval"):
            hushbid.buy(pd.DataFrame(columns(**{changed: bands})), MARKET)
    assert len(hushbid.buy(pd.DataFrame(columns(band=bands)), MARKET).to_frame()) == N


def test_integers_beyond_64_bits_name_people() -> None:
    ids = [2**100 + row for row in range(N)]
    for people in (columns(id=ids), pl.DataFrame(columns(id=pl.Series(ids, dtype=pl.Int128)))):
        assert hushbid.buy(people, MARKET).to_frame("pandas")["id"].tolist() == ids
    lazy = pl.LazyFrame(columns(other=pl.Series(ids, dtype=pl.Int128)))
    assert len(hushbid.buy(lazy, MARKET).to_frame()) == N
    with pytest.raises(InputError, match="Column 'other' must hold what Arrow knows, not Int128"):
        hushbid.buy(lazy, MARKET, id="other")


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_integers_beside_texts_or_beyond_64_bits_are_texts_where_a_column_has_one_kind(library: Any) -> None:
    for ids in ([7, *columns()["id"][1:]], [2**70 + row for row in range(N)]):
        found = hushbid.buy(columns(id=ids), MARKET).to_frame(library)
        assert list(pl.DataFrame(found)["id"]) == [str(one) for one in ids]


def test_long_ids_of_arrow_come_back_as_they_were() -> None:
    ids = pa.array([2**64 - 1 - row for row in range(N)], pa.uint64())
    assert hushbid.buy(pa.table(columns(id=ids)), MARKET).to_frame()["id"].combine_chunks() == ids


def test_a_stream_that_can_be_read_once_is_bought_from_like_a_table() -> None:
    expected = bought(columns()).to_frame("pandas")
    for people in (pa.table(columns()).to_reader(), duckdb.from_arrow(pa.table(columns())).to_arrow_reader(10)):
        pd.testing.assert_frame_equal(bought(people).to_frame("pandas"), expected)
    reader = pa.table(columns()).to_reader()
    pd.testing.assert_frame_equal(bought(reader, data=reader).to_frame("pandas"), expected)


def test_of_a_narwhals_frame_what_it_wraps_is_read() -> None:
    assert type(bought(nw.from_native(pl.DataFrame(columns())), synthetic=True).to_frame()) is pl.DataFrame
    assert bought(nw.from_native(pl.LazyFrame(columns())), synthetic=True).on_engine
    mixed = pd.Series([*columns()["bid"][:-1], True], dtype=object)
    with pytest.raises(BidError, match=f"but row {N - 1} does not"):
        bought(nw.from_native(pd.DataFrame(columns(bid=mixed))))


@each(
    ("wrong", "told"),
    [
        ({"market": columns()}, "market must be a Market, got dict"),
        ({"reading": "memory"}, "reading must be a Reading, got str"),
        ({"folder": 5}, "folder must be a path, got int"),
        ({"synthetic": "no"}, "synthetic must be True or False, got str"),
        ({"id": None}, "id must be a text, got NoneType"),
        ({"data": columns()["value"]}, "people and data must be a path, .* got ndarray"),
        ({"data": pl.LazyFrame(columns())}, "people and data must be a path, .* got LazyFrame"),
    ],
)
def test_an_argument_of_another_kind_is_refused_by_its_name(wrong: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=told) as refused:
        hushbid.buy(columns(), **{"market": MARKET, "question": "q", **wrong})
    assert refused.value.field == next(iter(wrong))


@pytest.mark.parametrize("name", ["on_bad_rows", "check_ids"])
def test_a_way_of_reading_that_there_is_not_is_refused(name: str) -> None:
    with pytest.raises(InputError, match=f"{name} must be '.*' or '.*', got 'drp'"):
        Reading(**{name: "drp"})


@pytest.mark.parametrize("name", ["privacy_loss", "payment", "currency", "delivered"])
def test_ids_in_a_column_called_like_a_result_are_refused(name: str) -> None:
    people = pd.DataFrame(columns()).rename(columns={"id": name})
    with pytest.raises(InputError, match=f"the column of ids must not be called '{name}'"):
        bought(people, id=name, synthetic=True)


def test_a_lazy_frame_stays_where_it_is_and_a_folder_gets_what_a_campaign_writes(tmp_path: Path) -> None:
    found = bought(pl.LazyFrame(columns()), synthetic=True, folder=tmp_path / "out")
    assert found.on_engine
    assert {path.name for path in found.files} >= {"decisions.parquet", "record.json", "report.html"}
    again = bought(columns(), synthetic=True, folder=tmp_path / "again")
    assert again.files[0].name == "decisions.csv"
    assert again.to_frame("pandas")["privacy_loss"].tolist() == found.to_frame("pandas")["privacy_loss"].tolist()


def test_an_empty_id_names_nobody_on_an_engine_either() -> None:
    with pytest.raises(InputError, match="column 'id' must name everybody, but an id is empty"):
        bought(pl.LazyFrame(columns(id=["", *columns()["id"][1:]])))


@pytest.mark.parametrize("level", ["polars", None])
def test_a_level_that_is_no_number_is_refused(level: Any) -> None:
    found = bought(columns(), synthetic=True).release
    assert found is not None
    for way in (found.interval, found.normal_interval, found.to_frame):
        with pytest.raises(InputError, match=f"level must be a number, got {level!r}"):
            way(level)


def test_how_many_values_were_moved_to_the_bounds_is_told() -> None:
    market = Market(prior=Uniform(1, 3), bounds=(0, 12), variance=2, buyer_weight=1e5, user_weight=0)
    far = np.where(np.arange(N) < 2, 99.0, columns()["value"])
    found = hushbid.buy(columns(value=far), market, value="value", synthetic=True)
    assert found.release is not None
    assert found.release.clamped == 2
    assert "2 values outside the bounds were moved to the nearer end." in found.text()
    assert found.facts()["estimate"]["moved_to_bounds"] == 2
    assert "moved_to_bounds" not in found.facts()["estimate"]["public"]


def test_a_workbook_of_bids_and_a_list_of_data_in_another_language_are_bought_from(tmp_path: Path) -> None:
    people, expected = columns(), bought(columns(), synthetic=True)
    pd.DataFrame({"id": people["id"], "bid": people["bid"]}).to_excel(tmp_path / "p.xlsx", index=False)
    lines = [f"{name};{str(x).replace('.', ',')}" for name, x in zip(people["id"], people["value"], strict=True)]
    (tmp_path / "d.csv").write_text("\n".join(["id;value", *lines]), encoding="cp1252")
    found = hushbid.buy(tmp_path / "p.xlsx", MARKET, data=str(tmp_path / "d.csv"), synthetic=True, currency="EUR")
    pd.testing.assert_frame_equal(found.to_frame("pandas"), expected.to_frame("pandas"))
    assert "the commas of column 'value' were read as decimal signs" in found.text()
