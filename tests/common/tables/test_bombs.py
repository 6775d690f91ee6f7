"""Files that are small and would fill the memory once they are decompressed: refused before they do."""

import gzip
import io
import zipfile
from pathlib import Path

import pytest

from hushbid.common.documents import most_unpacked, read_content
from hushbid.common.staging import write_file
from hushbid.common.tables import read_table, table_writer
from hushbid.errors import HushbidError, InputError, RecordError

LARGE = (64 << 20) + 1


def bomb(path: Path) -> Path:
    with gzip.open(path, "wb", compresslevel=9) as file:
        for _ in range(65):
            file.write(bytes(1 << 20))
    assert path.stat().st_size < 1 << 17
    return path


def workbook(path: Path) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("xl/worksheets/sheet1.xml", bytes(LARGE))
    return path


def read_rows(path: Path) -> None:
    read_table(path, needed=["a"])


def test_a_file_that_grows_a_thousandfold_is_refused_before_it_is_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    whole = gzip.GzipFile.read

    def counted(self: gzip.GzipFile, size: int | None = -1) -> bytes:
        found = whole(self, size)
        read.append(len(found))
        return found

    monkeypatch.setattr(gzip.GzipFile, "read", counted)
    for path, kind in ((tmp_path / "record.json.gz", RecordError), (tmp_path / "rows.csv.gz", InputError)):
        bomb(path)
        use = read_content if kind is RecordError else read_rows
        with pytest.raises(kind, match="larger than 64 MiB"):
            use(path)
    assert read
    assert max(read) == LARGE
    with pytest.raises(HushbidError, match="larger than 64 MiB"):
        read_rows(workbook(tmp_path / "rows.xlsx"))


@pytest.mark.parametrize("far", ["XFD", "A"])
def test_a_cell_at_the_end_of_a_sheet_does_not_fill_the_memory_with_empty_ones(far: str, tmp_path: Path) -> None:
    """A few bytes name the last column in many rows, or a row that no spreadsheet has."""
    path, copy = tmp_path / "rows.xlsx", tmp_path / "far.xlsx"
    write_file(path, table_writer(path, {"a": [1.0]}), force=False)
    numbers = range(3, 1300) if far == "XFD" else [10**9]
    rows = "".join(f'<row r="{row}"><c r="{far}{row}"><v>1</v></c></row>' for row in numbers)
    with zipfile.ZipFile(path) as packed, zipfile.ZipFile(copy, "w", zipfile.ZIP_DEFLATED) as other:
        for name in packed.namelist():
            content = packed.read(name).decode()
            other.writestr(name, content.replace("</sheetData>", f"{rows}</sheetData>"))
    assert copy.stat().st_size < 1 << 15
    with pytest.raises(InputError, match="1,048,576 rows or 20,000,000 cells"):
        read_rows(copy)


def test_what_shrinks_as_tables_do_is_read_whatever_its_size(tmp_path: Path) -> None:
    content = b"a\n" + b"1\n" * 1000
    path = tmp_path / "rows.csv.gz"
    path.write_bytes(gzip.compress(content) + gzip.compress(b"2\n"))
    with gzip.GzipFile(fileobj=io.BytesIO(path.read_bytes())) as file:
        assert file.read() == content + b"2\n"
    assert read_content(path) == content + b"2\n", "several members are one file"
    assert most_unpacked(1 << 30) == 100 << 30
