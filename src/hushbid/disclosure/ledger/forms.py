"""What people delivered, in a form in which two can be compared to the last bit."""

import struct
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from hushbid.common.arrays import BoolArray, FloatArray
from hushbid.disclosure.answers import YES_NO
from hushbid.disclosure.messages import Message
from hushbid.questions import Choice, Question


@dataclass(frozen=True, slots=True, kw_only=True)
class Forms:
    """Everybody's data in a form in which two can be compared; None where nothing was asked for or delivered."""

    rows: list[bytes | None]
    """All that a person delivered."""

    columns: tuple[list[bytes | None], ...] = ()
    """The same of each question; empty where there is one, or where people sent messages."""

    def without(self, rows: Iterable[int]) -> "Forms":
        """The same rows as if some people had not delivered; without columns."""
        rest = list(self.rows)
        for row in rows:
            rest[row] = None
        return Forms(rows=rest)


def answer_forms(table: FloatArray, present: BoolArray, questions: Sequence[Question] = ()) -> Forms:
    """Return what those who delivered answered, to the last bit: rows and, of several questions, columns."""
    columns = tuple(
        _column_forms(table[:, place], present, questions[place] if questions else None)
        for place in range(table.shape[1])
    )
    if len(columns) == 1:
        return Forms(rows=columns[0])
    return Forms(rows=_float_forms(table, present), columns=columns)


def _column_forms(column: FloatArray, present: BoolArray, question: Question | None) -> list[bytes | None]:
    """Numbers, and for a choice the words: listing its answers in another order makes no other data."""
    if not isinstance(question, Choice):
        return _float_forms(column[:, np.newaxis], present)
    words = [_word_form(answer) for answer in question.answers]
    return [words[int(code)] if there else None for code, there in zip(column, present.tolist(), strict=True)]


def _word_form(answer: str) -> bytes:
    """An answer of a choice; a number, yes and no as where these are asked for."""
    word = " ".join(unicodedata.normalize("NFC", answer.casefold()).split())
    try:
        value = YES_NO[word] if word in YES_NO else float(word)
    except ValueError:
        return f"an answer: {word}".encode("utf-8", "surrogatepass")
    return struct.pack("<d", value + 0.0)


def _float_forms(table: FloatArray, present: BoolArray) -> list[bytes | None]:
    content, size = (table[present] + 0.0).astype("<f8").tobytes(), 8 * table.shape[1]
    found: list[bytes | None] = [None] * present.size
    for place, row in enumerate(np.flatnonzero(present).tolist()):
        found[row] = content[size * place : size * (place + 1)]
    return found


def message_form(message: Message | None) -> bytes | None:
    """A message, however it was written."""
    return None if message is None else message.to_json().encode()
