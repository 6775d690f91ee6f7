"""Tables of people: files, arrays and frames in, files and frames out, and ``-`` for the standard streams.

A table is a few columns of equal length, read by their names. What a file holds is recognised by its content: CSV with
commas, semicolons or tabs, Parquet, an Excel workbook, any of them compressed by gzip. What is written goes by the end
of its name (``.csv``, ``.csv.gz``, ``.parquet``, ``.xlsx``); standard output gets CSV. CSV needs nothing but Python.

A number is a decimal number, *inf* and *-inf* included. What is missing is an empty cell, None, null, a masked
entry, or NaN in a column of numbers. Any other cell that should hold a number, *NA* and *nan* as texts, dates and
truth values as well, is refused. Rows are counted from 0, the header not included, and a message about a cell names its
row and what a spreadsheet calls it, never what it holds.

The files: ``columns`` says what a column may hold, ``arrow`` knows Arrow's, ``table`` gives numbers, texts and ids of
columns by name, ``csv_files`` and ``workbooks`` know their formats, ``reading`` recognises what it is given, and
``writing`` goes by the name, or makes a data frame of columns.
"""

from hushbid.common.tables.arrow import refused_kind
from hushbid.common.tables.columns import Raw, harmless, number_of, word_of
from hushbid.common.tables.reading import columns_of, is_table, read_again, read_table
from hushbid.common.tables.table import ROWS_NOTE, Table, refusal, rows_note
from hushbid.common.tables.writing import ENDINGS, Library, frame_of, frame_of_rows, library_of, table_writer

__all__ = [
    "ENDINGS",
    "ROWS_NOTE",
    "Library",
    "Raw",
    "Table",
    "columns_of",
    "frame_of",
    "frame_of_rows",
    "harmless",
    "is_table",
    "library_of",
    "number_of",
    "read_again",
    "read_table",
    "refusal",
    "refused_kind",
    "rows_note",
    "table_writer",
    "word_of",
]
