"""Tables in files: what is read, what is refused, and that both formats mean the same."""

import io
import math
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hushbid.campaign.people import DataSource, delivered_in, read_people
from hushbid.campaign.spec import DataTable
from hushbid.common.staging import write_file
from hushbid.common.tables import Table, columns_of, read_table, table_writer
from hushbid.engine.people import floats_of
from hushbid.errors import BidError, DataError, InputError, MissingExtra


def saved(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def text(content: bytes) -> Callable[[object], object]:
    return lambda file: file.write(content)  # type: ignore[attr-defined]


# -- reading ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content",
    [
        "id,bid\nann,1.5\nbob,2\n",
        "\ufeffid,bid\r\nann,1.5\r\nbob,2\r\n",
        "id;bid\nann;1.5\nbob;2\n",
        "bid\tid\n1.5\tann\n 2 \tbob",
        'id,bid,note\n"ann",1.5,"a, b"\n\n bob ,2e0,\n',
    ],
    ids=["plain", "from Excel", "semicolons", "tabs", "quotes, spaces and an empty line"],
)
def test_the_same_table_is_read_from_every_dialect_of_csv(content: str, tmp_path: Path) -> None:
    table = read_table(saved(tmp_path / "t.csv", content), needed=["id", "bid"])
    assert table.keys("id") == ["ann", "bob"]
    assert table.numbers("bid").tolist() == [1.5, 2.0]


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_what_was_written_is_read_back_to_the_last_bit(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"t{suffix}"
    values = np.random.default_rng(1).exponential(size=100) * 10.0 ** np.arange(-50, 50)
    write_file(path, table_writer(path, {"id": [f"p{k}" for k in range(100)], "x": values}), force=False)
    table = read_table(path, needed=["id", "x"])
    assert table.numbers("x").tolist() == values.tolist()
    assert table.keys("id")[:2] == ["p0", "p1"]
    assert columns_of(path) == ["id", "x"]


def test_parquet_is_recognised_by_its_content_and_keeps_its_types(tmp_path: Path) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    columns = {
        "id": pa.array([7, 8, 9]),
        "group": pa.array(["a", "b", "a"]).dictionary_encode(),
        "price": pa.array([1, None, 3]),
    }
    parquet.write_table(pa.table(columns), tmp_path / "misnamed.csv")
    table = read_table(tmp_path / "misnamed.csv", needed=["id", "price"], optional=["group", "absent"])
    assert table.keys("id") == ["7", "8", "9"]
    assert table.texts("group") == ["a", "b", "a"]
    assert "absent" not in table
    np.testing.assert_array_equal(table.numbers("price", may_be_missing=True), [1.0, np.nan, 3.0])


def test_a_dash_reads_standard_input_and_writes_standard_output(
    monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"x\n1\n2\n")))
    table = read_table("-", needed=["x"])
    assert table.numbers("x").tolist() == [1.0, 2.0]
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.FileIO(1, "w", closefd=False)))
    write_file("-", table_writer("-", {"x": [1, 2]}), force=False)
    assert capfdbinary.readouterr().out == b"x\n1\n2\n"


@pytest.mark.parametrize(
    ("cells", "told"),
    [
        (["1", "secret", "3"], "row 1 does not"),
        (["1", "", "3"], "row 1 does not"),
        (["1_000", "2", "nan"], "rows 0, 2 do not"),
        (["NA", "2", "1,5"], "rows 0, 2 do not"),
        ([*"abcdefgh"], "rows 0, 1, 2, 3, 4 and 3 more do not"),
    ],
)
def test_a_cell_that_is_no_number_is_named_by_its_row_and_never_shown(
    cells: list[str], told: str, tmp_path: Path
) -> None:
    lines = "".join(f'"{cell}",x\n' for cell in cells)
    table = read_table(saved(tmp_path / "t.csv", f"price,other\n{lines}"), needed=["price"])
    with pytest.raises(BidError) as refused:
        table.numbers("price", error=BidError)
    assert told in str(refused.value)
    assert "rows count from 0" in str(refused.value)
    assert not any(f"{cell!r}" in str(refused.value) for cell in cells if len(cell) > 1)


WORDS = ["NA", "nan", "NaN", "-nan", "null", "None", "n/a", "1_000", "x"]
NUMBERS = {"inf": math.inf, "-inf": -math.inf, "Infinity": math.inf, "1e400": math.inf, " 2.5 ": 2.5}


@pytest.mark.parametrize("may_be_missing", [True, False], ids=["data", "reports"])
@pytest.mark.parametrize("cell", [*WORDS, *NUMBERS, ""])
def test_one_rule_says_what_is_a_number_what_is_missing_and_what_is_neither(
    cell: str, may_be_missing: bool, tmp_path: Path
) -> None:
    texts, typed = tmp_path / "t.csv", tmp_path / "t.parquet"
    saved(texts, f"price,other\n{cell},x\n1,y\n")
    pq.write_table(pa.table({"price": [cell, "1"]}), typed)
    read = partial(Table.numbers, error=DataError, may_be_missing=may_be_missing)
    with pytest.raises(DataError):  # a column of texts is none of numbers
        read(read_table(typed, needed=["price"]), "price")
    with pytest.raises(InputError, match="must hold numbers, not texts"):  # nor on any engine
        floats_of(pa.array([cell, "1"]), "price")
    table = read_table(texts, needed=["price"])
    if cell in NUMBERS:
        assert read(table, "price").tolist() == [NUMBERS[cell], 1.0]
    elif cell == "" and may_be_missing:
        assert math.isnan(read(table, "price")[0])
    else:
        with pytest.raises(DataError, match="row 0 does not"):
            read(table, "price")
    assert math.isnan(table.readable_numbers("price")[0]) == (cell not in NUMBERS)


@pytest.mark.parametrize("value", [None, math.nan, math.inf, -math.inf])
def test_numbers_and_gaps_of_parquet_mean_the_same_in_memory_and_on_engines(
    value: float | None, tmp_path: Path
) -> None:
    pq.write_table(pa.table({"price": pa.array([value, 1.0])}), tmp_path / "t.parquet")
    table = read_table(tmp_path / "t.parquet", needed=["price"])
    here, there = table.numbers("price", may_be_missing=True), floats_of(pa.array([value, 1.0]), "price")
    np.testing.assert_array_equal(here, there)
    assert math.isnan(here[0]) == (value is None or math.isnan(value))
    if math.isnan(here[0]):
        with pytest.raises(InputError, match="row 0 does not"):
            table.numbers("price")


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("", "is empty: its first line must name the columns"),
        ("id,price\n", "has no rows"),
        ("id,other\na,1\n", "must have the column 'price'; it has 'id', 'other'"),
        ("x,y\n1,2\n", "must have the columns 'id', 'price'"),
        ("id,price,id\na,1,b\n", "has two columns called 'id'"),
        ("id,price\na,1,5\nb,2\n", "every row must have 2 cells, as the header has, but row 0 does not"),
        ('id,price\na,"1\n', "is not CSV"),
        (b"id,price\n\x81,1\n", "must be text in UTF-8 or Windows-1252, but line 2 is neither"),
        (b"id,price\n\0,1\n", "is neither CSV nor Parquet"),
        (b"PAR1 and then nothing", "is not a readable Parquet file"),
    ],
)
def test_a_file_that_is_no_table_is_refused_in_one_sentence(content: str | bytes, told: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as refused:
        read_table(saved(tmp_path / "t.csv", content), needed=["id", "price"])
    assert told in str(refused.value)
    assert "\n" not in str(refused.value)


def test_missing_files_and_folders_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        read_table(tmp_path / "none.csv", needed=[])
    with pytest.raises(InputError, match="is a folder"):
        read_table(tmp_path, needed=[])


@pytest.mark.parametrize(
    ("ids", "told"),
    [
        (["a", "b", "a"], "row 2 does not (the first repeats row 0"),
        (["a", "", "c"], "must name everybody, but row 1 does not"),
    ],
)
def test_everybody_is_named_once(ids: list[str], told: str, tmp_path: Path) -> None:
    table = read_table(saved(tmp_path / "t.csv", "id,x\n" + "".join(f"{one},1\n" for one in ids)), needed=["id"])
    with pytest.raises(InputError) as refused:
        table.keys("id")
    assert told in str(refused.value)


def test_bids_and_data_find_each_other_however_unicode_writes_a_name(tmp_path: Path) -> None:
    reports = saved(tmp_path / "bids.csv", "id,bid\nZoe\u0308,1\nann,2\n")
    data = saved(tmp_path / "data.csv", "id,value\n ann,7\nZo\u00eb ,5\n")
    people = read_people(str(reports))
    assert people.ids == ["Zo\u00eb", "ann"]
    found = delivered_in(DataSource.of(DataTable(), str(data), setting="central"), people, None)
    assert (found.data.tolist(), found.strangers) == ([5.0, 7.0], 0)


def test_missing_integers_are_missing_not_floats(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    write_file(path, table_writer(path, {"id": [2**60 + 1, None], "x": [None, 3]}), force=False)
    table = read_table(path, needed=["id", "x"])
    assert table.ids("id") == [str(2**60 + 1), ""]
    assert table.numbers("x", may_be_missing=True)[1] == 3.0
    with pytest.raises(InputError, match="must name everybody, but row 1 does not"):
        table.keys("id")


def test_integers_beside_texts_are_texts_in_a_parquet_file(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    with path.open("wb") as file:
        table_writer(path, {"id": [7, "ann"]})(file)
    assert read_table(path, needed=["id"]).ids("id") == ["7", "ann"]


def test_decimal_numbers_are_no_ids(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    write_file(path, table_writer(path, {"id": np.array([1.5, 2.5])}), force=False)
    with pytest.raises(InputError, match="texts or integers"):
        read_table(path, needed=["id"]).keys("id")


def test_an_unknown_ending_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"must end in \.csv, \.csv\.gz, \.parquet or \.xlsx"):
        table_writer(tmp_path / "out.docx", {"x": [1]})


def test_without_pyarrow_parquet_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtra, match=r"\.\[engines\]"):
        table_writer(tmp_path / "out.parquet", {"x": [1]})
