"""Which columns of a table hold what people delivered, and how a batch of them is read.

One number has a column, and so has one message, whatever it answers. A survey has one for each question, and they are
read as numbers, as `hushbid.disclosure.answers` writes them: yes is 1, an answer of a choice its place. People who
left a question open have dropped out of the whole, so their row is all NaN.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hushbid.common.arrays import BoolArray, FloatArray, IndexArray, first_row, rows_text
from hushbid.common.tables import word_of
from hushbid.disclosure.answers import words_of
from hushbid.engine.adapter import Batch
from hushbid.engine.people import floats_of
from hushbid.engine.pricing import CountedTable, Priced
from hushbid.errors import DataError, InputError
from hushbid.questions import Number, Question

DataNames = str | Sequence[str] | None
"""A column; of a survey, columns in the order of the questions, None for those called as the questions are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataColumns:
    """Where people's data are. It is shipped to where the rows are."""

    names: tuple[str, ...]
    """One column, or one for each question."""

    questions: tuple[Question, ...] = ()
    """What is asked in a survey; empty where it is one number."""

    messages: bool = False
    """Whether people delivered messages, not numbers."""

    def read(self, batch: Batch, start: int | None) -> FloatArray:
        """Numbers, people × columns, NaN in the whole row where somebody did not deliver."""
        if not self.questions:
            return floats_of(batch.column(self.names[0]), self.names[0])[:, np.newaxis]
        asked = zip(self.names, self.questions, strict=True)
        table = np.column_stack([_answered(batch.column(name), name, one, start) for name, one in asked])
        table[np.isnan(table).any(axis=1)] = math.nan
        return table

    def texts(self, batch: Batch) -> list[str | None]:
        """Messages, None where there is none."""
        return [str(text) if text else None for text in batch.column(self.names[0]).to_pylist()]

    def missing(self, batch: Batch) -> BoolArray:
        """Who did not deliver."""
        if self.messages:
            return np.array([text is None for text in self.texts(batch)], dtype=bool)
        return np.isnan(self.read(batch, None)[:, 0])


def data_columns(table: Priced | CountedTable, data: DataNames) -> DataColumns:
    """Return the columns that were named; refused if the table lacks one, or has not one for each question."""
    messages, there = table.market.strategy.sends_messages, table._engine.names
    survey = None if messages else table.market.survey  # a message answers all questions
    if data is None and survey is not None:
        data = [one.name for one in survey]
    names = () if data is None else (data,) if isinstance(data, str) else tuple(data)
    wanted = 1 if survey is None else len(survey)
    if len(names) != wanted:
        told = "one column" if survey is None else f"one column for each question ({wanted})"
        raise InputError(f"data must name {told}, got {len(names)}.", field="data")
    for name in names:
        if name not in there:
            told = f"There is no column {name!r}; the columns are {', '.join(map(repr, there))}."
            raise InputError(told, field=name)
    return DataColumns(names=names, questions=survey or (), messages=messages)


def _answered(column: Any, name: str, question: Question, start: int | None) -> FloatArray:
    """One column of answers as numbers, NaN where a question was left open."""
    if isinstance(question, Number):
        return floats_of(column, name)
    words = words_of(question)
    # each different cell is read once
    encoded = column.dictionary_encode() if not hasattr(column, "dictionary") else column
    cells = [word_of(cell, capitals=words.capitals) for cell in encoded.dictionary.to_pylist()]
    places: IndexArray = encoded.indices.cast("int64").fill_null(len(cells)).to_numpy(zero_copy_only=False)
    strange = np.array([*(word != "" and word not in words.codes for word in cells), False], dtype=bool)[places]
    if strange.any():
        raise _refused(name, words.allowed, strange, start)
    return np.array([*(words.codes.get(word, math.nan) for word in cells), math.nan])[places]


def _refused(name: str, allowed: str, strange: BoolArray, start: int | None) -> DataError:
    told = f"Column {name!r} must hold {allowed}, or nothing, but"
    if start is None:  # rows without an order have no numbers
        return DataError(f"{told} somebody's answer is another one.", field=name)
    which = rows_text(strange, "does", numbered=start + np.arange(strange.size))
    return DataError(f"{told} {which} not.", field=name, row=start + first_row(strange))
