"""Files as people have them: what spreadsheets and other programs write is read, and what we write they open."""

import codecs
import gzip
import io
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import openpyxl
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import xlsxwriter
from click.testing import CliRunner

from hushbid.campaign.people import read_people
from hushbid.cli import main
from hushbid.common.staging import write_file
from hushbid.common.tables import Table, columns_of, csv_files, read_table, table_writer
from hushbid.errors import InputError, MissingExtra

IDS = ["ann", "=1+1", "+49 30 12", "-x", "@home", "'=quoted", "'", "007", "Zoë", "a\nb", 'c"d', "-5", "\tz"]


def saved(path: Path, content: str | bytes, encoding: str = "utf-8") -> Path:
    path.write_bytes(content.encode(encoding) if isinstance(content, str) else content)
    return path


def written(path: Path, columns: dict[str, Any]) -> Path:
    write_file(path, table_writer(path, columns), force=True)
    return path


# -- text ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252", "utf-16"])
def test_umlauts_are_read_in_every_encoding_that_spreadsheets_write(encoding: str, tmp_path: Path) -> None:
    rest = "".join(f"p{row}\t1\n" for row in range(9000))  # more than is looked at for the header
    path = saved(tmp_path / "t.csv", f"id\tstraße\nZoë\t1.5\nJürgen\t2\n{rest}", encoding)
    assert columns_of(path) == ["id", "straße"]
    table = read_table(path, needed=["id", "straße"])
    assert table.keys("id")[:2] == ["Zoë", "Jürgen"]
    told = [f"{path} is not UTF-8 and was read as Windows-1252."] if encoding == "cp1252" else []
    assert list(table.notes_on("straße")) == told


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    for content in (
        b"\x89PNG\r\n\x1a\n\xff",
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
        b"\x1f\x8b broken",
        b"PK\x03\x04 no",
    ):
        with pytest.raises(InputError) as refused:
            read_table(saved(tmp_path / "t.csv", content), needed=["id"])
        assert str(refused.value).count("\n") == 0


@pytest.mark.parametrize(
    ("cells", "expected"),
    [(["1,5", "2", "-0,25"], [1.5, 2.0, -0.25]), (["1.5", "2", "3"], [1.5, 2.0, 3.0]), (["7,000"], [7.0])],
)
def test_beside_semicolons_a_comma_is_a_decimal_sign(cells: list[str], expected: list[float], tmp_path: Path) -> None:
    path = saved(tmp_path / "t.csv", "name;price\n" + "".join(f"a, b;{cell}\n" for cell in cells))
    table = read_table(path, needed=["price", "name"])
    assert table.numbers("price").tolist() == expected
    told = table.notes_on("price")
    assert told == ((f"{path}: the commas of column 'price' were read as decimal signs.",) if "," in cells[0] else ())


@pytest.mark.parametrize(
    "content",
    [
        'name,price\na,"1,5"\nb,2\n',
        "name\tprice\na\t1,5\nb\t2\n",
        "name;price\na;1,5\nb;2.5\n",
        "name;price\na;1,5\nb;1.500,0\n",
    ],
    ids=["commas", "tabs", "a point elsewhere", "points of thousands"],
)
def test_where_a_comma_could_mean_something_else_the_refusal_says_what_helps(content: str, tmp_path: Path) -> None:
    table = read_table(saved(tmp_path / "t.csv", content), needed=["price"])
    with pytest.raises(InputError, match="A decimal comma is read where semicolons separate the cells") as refused:
        table.numbers("price")
    assert refused.value.row == 0
    assert "1,5" not in str(refused.value)


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("cells", [["1.500", "2.250"], ["950", "1.500"], ["1.234.567", "1.500"]])
def test_beside_semicolons_what_may_be_thousands_is_refused_not_read_as_a_small_number(
    cells: list[str], fast: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not fast:
        monkeypatch.setattr(csv_files, "_split", lambda *_: None)
    content = "name;value\n" + "".join(f"a;{cell}\n" for cell in cells)
    with pytest.raises(InputError, match=r"1\.500 may be 1\.5 or 1500: write 1,5 or 1500") as refused:
        read_table(saved(tmp_path / "t.csv", content), needed=["value"]).numbers("value")
    assert refused.value.row == (1 if cells[0] == "950" else 0)
    assert not {"2.250", "950", "1.234.567"} & set(str(refused.value).split())
    # where one cell shows that points are decimal signs, and beside commas, they are
    for told in (f"{content}a;0.125\n", f"{content}a;2.5\n", content.replace(";", ",")):
        values = read_table(saved(tmp_path / "t.csv", told), needed=["value"]).readable_numbers("value")
        assert values[1] in (1.5, 2.25)


def test_columns_without_a_name_at_the_end_are_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = saved(tmp_path / "t.csv", "id;price;;\na;1,5;;\nb;2;;\n")
    for _ in range(2):
        assert read_table(path, needed=["id", "price"]).numbers("price").tolist() == [1.5, 2.0]
        monkeypatch.setattr(csv_files, "_split", lambda *_: None)


def test_a_file_whose_first_line_is_empty_is_not_called_empty(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has an empty first line, which must name the columns"):
        read_table(saved(tmp_path / "t.csv", "\nid,price\na,1\n"), needed=["id"])


def test_rows_are_counted_as_a_spreadsheet_counts_them(tmp_path: Path) -> None:
    content = 'id,price,note\na,1,"two\nlines"\n\nb,2,x\nc,oops,x\n'
    table = read_table(saved(tmp_path / "t.csv", content), needed=["id", "price"])
    with pytest.raises(
        InputError, match=r"row 2 does not \(rows count from 0, after the header: row 2 is row 5 of the"
    ):
        table.numbers("price")
    people = saved(tmp_path / "p.csv", content.replace("oops", "-1"))
    call = ["price", str(people), "--prior", "uniform:1,3", "--buyer-weight", "1", "--bid-column", "price"]
    told = CliRunner().invoke(main, call)
    assert "row 2 is row 5 of the spreadsheet" in told.stderr


def test_a_plain_file_is_split_into_what_is_read_cell_by_cell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [
        f"{name},{price},{note}"
        for name, price, note in zip(["ann", "'=x", "zoë", "dee"], ["1.5", "", " 2 ", "inf"], "wxyz", strict=True)
    ]
    bad = ["e,nan,x", "f,1_0,x", "g,NA,x", "h", "i,1,x,y", ""]

    def told(extra: list[str], end: str) -> Any:
        path = saved(tmp_path / "t.csv", end.join(["id,price,note", *rows, *extra]) + end)
        try:
            table = read_table(path, needed=["price", "id"])
            values = table.numbers("price", may_be_missing=True)
            return table.ids("id"), [str(one) for one in values], list(table.raw("id")), table.lines.tolist()  # type: ignore[union-attr]
        except InputError as problem:
            return str(problem)

    cases = [([], "\n"), ([], "\r\n"), *(([one], "\n") for one in bad), (["", "j,1,x"], "\n")]
    found = [told(*case) for case in cases]
    assert found[0][0][1] == "=x"
    monkeypatch.setattr(csv_files, "_split", lambda *_: None)
    assert [told(*case) for case in cases] == found


# -- compression -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["csv.gz", "csv", "parquet"])
def test_what_gzip_packed_is_recognised_whatever_it_is_called(ending: str, tmp_path: Path) -> None:
    plain = written(tmp_path / f"plain.{ending}", {"id": ["a", "b"], "x": [1.5, 2.5]})
    content = plain.read_bytes()
    packed = saved(tmp_path / "packed.csv", content if ending == "csv.gz" else gzip.compress(content))
    assert columns_of(packed) == ["id", "x"]
    assert read_table(packed, needed=["x"]).numbers("x").tolist() == [1.5, 2.5]
    with pytest.raises(InputError, match="compressed by gzip, but not readable to its end"):
        read_table(saved(tmp_path / "torn.csv.gz", packed.read_bytes()[:-9]), needed=["x"])


def test_a_packed_table_is_what_pandas_and_polars_read_and_the_same_bytes_again(tmp_path: Path) -> None:
    path = written(tmp_path / "t.csv.gz", {"id": ["a", "b"], "x": [1.5, 2.5]})
    before = path.read_bytes()
    assert pd.read_csv(path)["x"].tolist() == pl.read_csv(path)["x"].to_list() == [1.5, 2.5]
    assert written(path, {"id": ["a", "b"], "x": [1.5, 2.5]}).read_bytes() == before


# -- workbooks -------------------------------------------------------------------------------------------------------


def workbook(path: Path, rows: list[list[Any]]) -> Path:
    """As openpyxl writes one."""
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    book.create_sheet("another").append(["id", "price"])
    book.save(path)
    return path


def test_the_first_sheet_of_a_workbook_is_read_with_its_types_and_its_row_numbers(tmp_path: Path) -> None:
    rows = [[], ["id", " price ", "smokes"], [7, 1.5, True], [], ["zoë", "2.5", "No"], [8.0, None, "yes"]]
    path = workbook(tmp_path / "people.xlsx", rows)
    assert columns_of(path) == ["id", "price", "smokes"]
    table = read_table(path, needed=["id", "price", "smokes"])
    assert table.keys("id") == ["7", "zoë", "8"]
    np.testing.assert_array_equal(table.numbers("price", may_be_missing=True), [1.5, 2.5, math.nan])
    assert table.coded("smokes", {"yes": 1.0, "true": 1.0, "no": 0.0}, "yes or no", capitals=False).tolist() == [
        1,
        0,
        1,
    ]
    with pytest.raises(InputError, match="row 2 is row 6 of the spreadsheet"):
        table.numbers("price")


def test_a_hidden_sheet_is_never_read_and_of_several_it_is_told_which_one_was(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    sheets = [book.active, book.create_sheet("Prices"), book.create_sheet("Old prices")]
    for price, sheet in enumerate(sheets, start=1):
        sheet.append(["id", "price"])
        sheet.append(["a", price])
    sheets[0].sheet_state = "hidden"
    path = tmp_path / "t.xlsx"
    book.save(path)
    table = read_table(path, needed=["price"])
    assert table.numbers("price").tolist() == [2.0]
    assert table.notes == (f"{path}: its first sheet, 'Prices', was read; the others were not.",)
    sheets[2].sheet_state = "veryHidden"
    book.save(path)
    assert read_table(path, needed=["price"]).notes == ()


@pytest.mark.parametrize("cell", ["error", "formula", "date"])
def test_errors_uncalculated_formulas_and_dates_are_never_taken_for_empty(cell: str, tmp_path: Path) -> None:
    path = tmp_path / "t.xlsx"
    if cell == "error":
        with xlsxwriter.Workbook(path) as book:
            sheet = book.add_worksheet()
            sheet.write_row(0, 0, ["id", "price"])
            sheet.write_row(1, 0, ["a"])
            sheet.write_formula(1, 1, "=1/0", None, "#DIV/0!")
    else:
        value = "=1+1" if cell == "formula" else pd.Timestamp("2024-05-17").to_pydatetime()
        workbook(path, [["id", "price"], ["a", value]])
    table = read_table(path, needed=["id", "price"])
    with pytest.raises(InputError, match="row 0 does not"):
        table.numbers("price", may_be_missing=True)


def test_a_calculated_formula_is_its_value(tmp_path: Path) -> None:
    path = tmp_path / "t.xlsx"
    with xlsxwriter.Workbook(path) as book:
        sheet = book.add_worksheet()
        sheet.write_row(0, 0, ["id", "price"])
        sheet.write_string(1, 0, "a")
        sheet.write_formula(1, 1, "=1+1", None, 2)
    assert read_table(path, needed=["price"]).numbers("price").tolist() == [2.0]


def test_polars_and_pandas_read_the_workbook_that_we_write_and_it_is_the_same_bytes_again(tmp_path: Path) -> None:
    columns = {"id": ["=1+1", "b", None], "n": np.array([2**60, 1, 2]), "x": np.array([0.1, math.inf, -2.0])}
    path = written(tmp_path / "t.xlsx", columns)
    before = path.read_bytes()
    frame = pd.read_excel(path, dtype=object)
    assert frame["id"].tolist()[:2] == ["=1+1", "b"]
    assert frame["n"].tolist() == [str(2**60), 1, 2]
    cell = openpyxl.load_workbook(path).active["A2"]
    assert (cell.data_type, cell.quotePrefix) == ("s", True)
    assert written(path, columns).read_bytes() == before
    assert read_table(path, needed=["x"]).numbers("x").tolist() == [0.1, math.inf, -2.0]


def test_without_the_libraries_a_workbook_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = workbook(tmp_path / "t.xlsx", [["id"], ["a"]])
    for name in ("openpyxl", "xlsxwriter"):
        monkeypatch.setitem(__import__("sys").modules, name, None)
    with pytest.raises(MissingExtra, match=r"\.\[xlsx\]"):
        read_table(path, needed=["id"])
    with pytest.raises(MissingExtra, match=r"\.\[xlsx\]"):
        table_writer(path, {"id": ["a"]})


# -- formulas --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "xlsx", "parquet"])
def test_ids_that_a_spreadsheet_would_run_are_defused_and_come_back_as_they_were(ending: str, tmp_path: Path) -> None:
    path = written(tmp_path / f"t.{ending}", {"id": IDS, "=x": list(range(len(IDS)))})
    assert columns_of(path) == ["id", "=x"]
    table = read_table(path, needed=["id", "=x"])
    assert table.columns["id"].labels()[0] == IDS
    again = written(tmp_path / f"again.{ending}", {"id": table.raw("id"), "=x": list(range(len(IDS)))})
    assert again.read_bytes() == path.read_bytes()
    if ending == "csv":
        cells = pd.read_csv(path, dtype=str, keep_default_na=False)["id"].tolist()
        ran = [
            cell
            for cell in cells
            if cell[:1] in "=@\t" or (cell[:1] in "+-" and not cell[1:].replace(" ", "").isdigit())
        ]
        assert ran == []


def test_an_id_is_one_whether_it_was_defused_or_not(tmp_path: Path) -> None:
    people = saved(tmp_path / "p.csv", "id,bid\n=cmd,1.5\n'@me,2\n")
    found = read_people(str(people))
    assert found.ids == ["=cmd", "@me"]


@pytest.mark.parametrize("sign", ["\u200b", "\u200d", "\ufeff", "\u202e", "\u00ad"])
def test_ids_that_differ_in_what_nobody_sees_are_refused_by_their_row(sign: str, tmp_path: Path) -> None:
    path = saved(tmp_path / "t.csv", codecs.BOM_UTF8 + f"id\nann\nb{sign}ob\n".encode())
    with pytest.raises(InputError, match=r"row 1 does not .* row 1 is row 3 of the spreadsheet") as refused:
        read_table(path, needed=["id"]).keys("id")
    assert (refused.value.field, refused.value.row) == ("id", 1)


def test_a_stream_may_be_packed_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(b"x\n1\n2\n"))))
    table = read_table("-", needed=["x"])
    assert isinstance(table, Table)
    assert table.numbers("x").tolist() == [1.0, 2.0]


# -- many rows ---------------------------------------------------------------------------------------------------------


def lines_of(columns: dict[str, Any]) -> bytes:
    file = io.BytesIO()
    csv_files.write_csv(file, columns)
    return file.getvalue()


AWKWARD = [0.0, -0.0, 5e-324, 1e-5, 9.999999999999999e-05, 1e-4, 1e10, 1e15, 1e16, 1e22, 1 / 3, -2.5, 7.0, np.inf]


@pytest.mark.parametrize(
    "ids", [IDS, ["ann", "bob", "cem"], ["Zoë", "", "x"], ["a,b", "c", "d"], ["a", None, "c"], [1, 2]]
)
@pytest.mark.parametrize("of", [list, pa.array, lambda cells: pa.chunked_array([cells[:1], cells[1:]])])
def test_many_rows_are_written_as_cell_by_cell(ids: list[Any], of: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    count = len(ids)
    numbers = (AWKWARD * count)[:count]
    cells = {"loss": numbers, "minor": [*range(-1, count - 1)], "currency": ["EUR"] * count}
    arrays = {"loss": np.array(numbers), "minor": np.arange(count) - 1, "currency": ["EUR"] * count}
    plain = lines_of({"id": ids, **cells})
    monkeypatch.setattr(csv_files, "_CHUNK", 2)
    assert lines_of({"id": of(ids), **arrays}) == plain


def test_every_size_of_number_is_written_as_python_writes_it() -> None:
    rng = np.random.default_rng(5)
    numbers = rng.integers(0, 2**64, 20_000, dtype=np.uint64).view(np.float64)
    numbers = np.concatenate(
        [AWKWARD, numbers[~np.isnan(numbers)], rng.random(9000) * 10.0 ** rng.integers(-9, 24, 9000)]
    )
    written = lines_of({"x": numbers, "y": numbers}).decode().splitlines()[1:]
    assert written == [f"{one!r},{one!r}" for one in numbers.tolist()]


def test_csv_loads_neither_arrow_nor_pandas() -> None:
    program = (
        "import sys, io, numpy as np; from hushbid.common.tables.csv_files import read_csv, write_csv;"
        "file = io.BytesIO(); ids = [f'p{row}' for row in range(200_000)];"
        "write_csv(file, {'id': ids, 'x': np.arange(200_000) / 7});"
        "table = read_csv(file.getvalue(), 's', ['id', 'x'], []);"
        "assert table.numbers('x')[7] == 1.0 and table.keys('id') == ids;"
        "assert not {'pyarrow', 'pandas', 'scipy'} & sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
