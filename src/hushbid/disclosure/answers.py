"""People's answers to a survey as numbers: one row per person, one column per question.

A number stands for itself, yes is 1 and no is 0, and an answer of a choice is its place among the answers, from 0.
Whoever left a question open has dropped out of the whole survey: her row is all NaN. An error names a question and
rows, never what somebody answered.
"""

import math
import numbers
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from hushbid.common.arrays import BoolArray, FloatArray, refuse_rows
from hushbid.common.tables.columns import is_missing
from hushbid.errors import DataError
from hushbid.questions import Choice, Number, Question, YesNo

Column = Sequence[Any] | NDArray[Any]
_FORMS = "columns by question, or one row per person with one answer per question"
YES_NO = {"yes": 1.0, "true": 1.0, "1": 1.0, "no": 0.0, "false": 0.0, "0": 0.0}
"""How yes and no are written, in any capitals."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """How answers to a question are written in tables."""

    codes: Mapping[str, float]
    """The number that each word stands for."""

    allowed: str
    """What a column of them must hold."""

    capitals: bool
    """Whether capitals make another word."""


def words_of(question: Question) -> Words:
    """The words for the answers to a choice or a yes/no question."""
    if not isinstance(question, Choice):
        return Words(codes=YES_NO, allowed="yes or no", capitals=False)
    codes = {answer: float(place) for place, answer in enumerate(question.answers)}
    return Words(codes=codes, allowed=f"one of its {len(codes)} answers", capitals=True)


def as_answers(data: object, questions: Sequence[Question], *, needed: BoolArray, survey: bool = True) -> FloatArray:
    """Everybody's answers, people × questions; only ``needed`` rows have to be answers to these questions.

    Of a survey ``data`` are columns by the questions' names (a frame, or a mapping), or rows: each a list of answers in
    the questions' order, a mapping by the questions' names, or None. Of one number they are everybody's number. None,
    NaN and an empty text are answers left open. An error names rows, never values.
    """
    table = np.full((needed.size, len(questions)), math.nan)
    columns = _columns(data, questions, needed) if survey else [_column(data, needed)]
    for place, (question, column) in enumerate(zip(questions, columns, strict=True)):
        if isinstance(column, np.ndarray):
            codes, bad = _coded_numbers(column, question, needed)
        else:
            codes, bad = _coded_objects(column, question, needed)
        table[needed, place] = codes[needed]
        rule = f"{question.name!r} must be answered with {_allowed(question)}"
        rule = rule if survey else "data must be numbers (None or NaN where missing)"
        refuse_rows(bad, rule, field="data", error=DataError)
    table[np.isnan(table).any(axis=1)] = math.nan
    return table


def _column(data: object, needed: BoolArray) -> Column:
    """Everybody's number, as an array or as a list of objects."""
    if isinstance(data, np.ma.MaskedArray):
        data = np.ma.filled(data.astype(np.float64), math.nan)
    array = np.asarray(data) if hasattr(data, "__array__") else None
    if array is None or array.dtype == object:
        if isinstance(data, (str, bytes)) or not isinstance(data, (Iterable, np.ndarray)):
            raise DataError(f"data must be one number per person, got {type(data).__name__}.", field="data")
        values = list(data)
        _refuse_length(needed.size, len(values))
        return values
    if array.ndim != 1 or array.dtype.kind not in "fiub":
        problem = f"data must be one number per person, got {array.ndim} dimensions of type {array.dtype}."
        raise DataError(problem, field="data")
    _refuse_length(needed.size, array.size)
    return array


def _refuse_length(people: int, got: int) -> None:
    if people != got:
        raise DataError(f"data must have one entry per person ({people}), got {got}.", field="data")


def _coded_objects(column: Sequence[Any], question: Question, needed: BoolArray) -> tuple[FloatArray, BoolArray]:
    """The answers to one question, and whose are none; nobody else's is even looked at."""
    codes, bad = np.full(needed.size, math.nan), np.zeros(needed.size, dtype=np.bool_)
    for row in np.flatnonzero(needed).tolist():
        try:
            codes[row] = _coded(column[row], question)
        except (TypeError, ValueError):
            bad[row] = True
    return codes, bad


def _coded_numbers(column: NDArray[Any], question: Question, needed: BoolArray) -> tuple[FloatArray, BoolArray]:
    """The same of an array of numbers, many at a time."""
    codes = column.astype(np.float64)
    if isinstance(question, (YesNo, Choice)):
        count = len(question.answers) if isinstance(question, Choice) else 2
        wrong = ~np.isnan(codes) & ~np.isin(codes, np.arange(count))
        if isinstance(question, Choice) and column.dtype.kind == "b":
            wrong = np.ones_like(needed)
        return codes, wrong & needed
    return codes, np.zeros_like(needed)


def _columns(data: object, questions: Sequence[Question], needed: BoolArray) -> list[Column]:
    names = [one.name for one in questions]
    if hasattr(data, "columns") and hasattr(data, "__getitem__"):  # a frame
        data = {name: data[name] for name in data.columns}
    if isinstance(data, Mapping):
        _refuse_names(set(data), names, "data")
        columns: list[Column] = [_numbers_or_listed(data[name]) for name in names]
        for name, column in zip(names, columns, strict=True):
            if len(column) != needed.size:
                told = f"data must have one answer per person ({needed.size}) to {name!r}, got {len(column)}."
                raise DataError(told, field="data")
        return columns
    if isinstance(data, np.ndarray) and (data.ndim != 2 or data.shape[1] != len(names)):
        told = f"data must have one column per question ({len(names)}), got shape {data.shape}."
        raise DataError(told, field="data")
    if _are_numbers(data) and len(data) == needed.size:
        return list(data.T)
    rows = _listed(data)
    _refuse_length(needed.size, len(rows))
    by_person = [_row(row, place, names) if needed[place] else [None] * len(names) for place, row in enumerate(rows)]
    return list(zip(*by_person, strict=True))


def _are_numbers(values: object) -> TypeGuard[NDArray[Any]]:
    """Whether these are numbers that can be read many at a time."""
    return type(values) is np.ndarray and values.dtype.kind in "fiub"


def _numbers_or_listed(values: Any) -> Column:
    dtype = getattr(values, "dtype", None)  # a frame's column, perhaps
    if isinstance(dtype, np.dtype) and dtype.kind in "fiub" and not isinstance(values, np.ma.MaskedArray):
        values = np.asarray(values)
    return values if _are_numbers(values) and values.ndim == 1 else _listed(values)


def _listed(values: Any) -> list[Any]:
    if isinstance(values, (str, bytes, Mapping)) or not isinstance(values, (Iterable, np.ndarray)):
        raise DataError(f"data must be {_FORMS}, got {type(values).__name__}.", field="data")
    if isinstance(values, np.ma.MaskedArray):
        values = np.ma.filled(values.astype(object), None)
    return values.tolist() if isinstance(values, np.ndarray) else list(values)


def _row(row: Any, place: int, names: list[str]) -> Sequence[Any]:
    """One person's answers in the questions' order."""
    if is_missing(row):
        return [None] * len(names)
    if isinstance(row, Mapping):
        _refuse_names(set(row), names, f"row {place}", row=place)
        return [row[name] for name in names]
    if isinstance(row, (str, bytes)) or not isinstance(row, (Sequence, np.ndarray)) or len(row) != len(names):
        told = f"row {place} must be one answer per question ({len(names)}), or None where somebody dropped out."
        raise DataError(told, field="data", row=place)
    return list(row)


def _refuse_names(found: set[Any], names: list[str], where: str, row: int | None = None) -> None:
    missing = [name for name in names if name not in found]
    if missing or len(found) > len(names):
        wrong = f"has none called {missing[0]!r}" if missing else "has others"
        raise DataError(f"{where} must hold an answer to every question and nothing else, but {wrong}.", row=row)


def _coded(answer: Any, question: Question) -> float:
    """One answer as a number, NaN if it was left open."""
    if is_missing(answer) or (isinstance(answer, str) and not answer.strip()):
        return math.nan
    if isinstance(question, Choice) and isinstance(answer, str):
        return float(question.answers.index(answer.strip()))
    if isinstance(answer, (str, bytes)) or np.ndim(answer) > 0:
        raise TypeError
    if isinstance(question, YesNo):
        return _one_of(answer, 2)
    if isinstance(question, Choice):
        if isinstance(answer, (bool, np.bool_)):
            raise TypeError
        return _one_of(answer, len(question.answers))
    try:
        return float(answer)
    except OverflowError:  # an integer beyond every float; the bounds will clamp it
        return math.inf if answer > 0 else -math.inf


def _one_of(answer: Any, count: int) -> float:
    if not isinstance(answer, (numbers.Real, np.bool_)) or answer not in range(count):
        raise ValueError
    return float(answer)


def _allowed(question: Question) -> str:
    if isinstance(question, Choice):
        return f"one of its {len(question.answers)} answers"
    return "True or False (or 1 or 0)" if isinstance(question, YesNo) else "a number"


# -- one person's answers as she gives them ----------------------------------------------------------------------------


def codes_of(questions: Sequence[Question], given: Mapping[str, Any]) -> tuple[float, ...]:
    """One person's answers by the questions' names as numbers, strictly: every question is answered, a number within
    its range, yes or no as a truth value, a choice by one of its answers.

    An error names the question, also as its ``field``, and what is allowed, never what she said.
    """
    if not set(given) <= {one.name for one in questions}:
        raise DataError("answers must be to these questions, by their names.", field="answers")
    return tuple(_strict_code(one, given.get(one.name)) for one in questions)


def _strict_code(question: Question, answer: object) -> float:
    where = f"answers.{question.name}"
    if answer is None:
        told = "is left open: whoever leaves a question open delivers nothing."
        raise DataError(f"{question.name!r} {told}", field=where)
    code: float | None = None
    if isinstance(question, Number):
        low, high = question.bounds
        allowed = f"a number from {low:g} to {high:g}"
        # compared as it is: an integer may be beyond every float
        if isinstance(answer, (int, float)) and not isinstance(answer, bool) and low <= answer <= high:
            code = float(answer) + 0.0
    elif isinstance(question, Choice):
        allowed = "one of its answers, as it is written"
        if isinstance(answer, str) and answer in question.answers:
            code = float(question.answers.index(answer))
    else:
        allowed, code = "true or false", float(answer) if isinstance(answer, bool) else None
    if code is None:
        raise DataError(f"{question.name!r} must be answered with {allowed}.", field=where)
    return code
