"""Files of people: their bids and their data, read and put side by side."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import repeat
from typing import Any, Literal

import numpy as np

from hushbid.allocation import tie_keys
from hushbid.campaign.spec import BidsTable, DataTable, as_stratum
from hushbid.common.arrays import BoolArray, FloatArray, HashArray, IndexArray, IntArray
from hushbid.common.tables import Raw, Table, number_of, read_table, rows_note
from hushbid.disclosure.answers import words_of
from hushbid.errors import BidError, DataError, InputError, PriorError
from hushbid.mechanism import Market
from hushbid.priors import Prior
from hushbid.questions import Number, Question

Kind = Literal["values", "messages", "simulated_values"]
"""What data are; ``simulated_values`` are synthetic and get their noise here."""

_COLUMNS: Mapping[str, dict[Kind, str]] = {
    "central": {"values": "value"},
    "local": {"messages": "message", "simulated_values": "value"},
}
"""What data may be in each setting, the usual kind first, and what their column is called unless it is named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSource:
    """Where the data are: values in the central setting, people's own noisy messages in the local one."""

    file: Any
    """A path, ``-``, columns by name, a frame that speaks Arrow, or a table that an engine reads."""

    id: str
    """The column that names people."""

    names: tuple[str, ...]
    """The column of data or messages; of a survey's answers, one for each question."""

    answers: bool
    """Whether these are columns of answers."""

    kind: Kind
    """What they hold."""

    late: Literal["paid", "unpaid"] | None
    """What is paid for data that came after the estimate was drawn; None if nobody said."""

    @classmethod
    def of(
        cls, table: DataTable, file: Any, *, setting: str, ids: str = "id", questions: Sequence[str] = ()
    ) -> "DataSource":
        """Return where the data are that a table states; of a survey, in the columns of its ``questions``."""
        kinds = _COLUMNS[setting]
        kind = table.kind or next(iter(kinds))
        if kind not in kinds:
            allowed = " or ".join(f'"{one}"' for one in kinds)
            raise InputError(f'kind must be {allowed}, got "{kind}".', field="kind")
        answers = bool(questions) and kind != "messages"
        if answers and table.value is not None:
            message = "value cannot be stated together with questions, each of which has a column."
            raise InputError(message, field="value")
        names = tuple(questions) if answers else (table.value or kinds[kind],)
        return cls(file=file, id=table.id or ids, names=names, answers=answers, kind=kind, late=table.late)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How a population is read."""

    engine: str = "memory"
    """``"memory"`` reads everything at once; else what `hushbid.engine.price` calls an engine."""

    on_bad_rows: Literal["fail", "drop"] = "fail"
    """What becomes of bids that cannot be priced: stop, naming them, or leave them out."""

    check_ids: Literal["exact", "off"] = "exact"
    """Whether to make sure that nobody is there twice."""

    def __post_init__(self) -> None:
        for name, allowed in (("on_bad_rows", ("fail", "drop")), ("check_ids", ("exact", "off"))):
            if getattr(self, name) not in allowed:
                message = f"{name} must be {allowed[0]!r} or {allowed[1]!r}, got {getattr(self, name)!r}."
                raise InputError(message, field=name)


AT_ONCE = Reading()
"""Everything is read at once and must be in order."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class People:
    """Who bid, and what."""

    source: str
    """What messages call the file."""

    ids: list[str] | None
    """Names, unique; None if the file has none."""

    id_column: Raw
    """The names as they stood in the file, or row numbers: what is written beside each decision."""

    bids: FloatArray
    """Bids."""

    groups: list[str] | None
    """Group labels, if there are any."""

    strata: list[str] | None = None
    """Everybody's stratum, if there are strata."""

    roster_by_stratum: Mapping[str, int] | None = None
    """How many people of each stratum were asked: every row, also those that were left out."""

    limits: FloatArray | None = None
    """The largest loss that each accepts, infinite where she states none; None where nobody was asked."""

    dropped: int = 0
    """How many rows were left out because they cannot be priced."""

    id_name: str = "id"
    """What the column of names is called in what is written."""

    lines: IntArray | None = None
    """What a spreadsheet calls everybody's row; None if nobody opens the table with one."""

    notes: tuple[str, ...] = ()
    """Sentences about how the file was read, where that was a choice."""

    def __len__(self) -> int:
        return self.bids.size

    @property
    def roster(self) -> int:
        """How many people were asked: every row, also those that were left out."""
        return len(self) + self.dropped

    def only(self, rows: IndexArray, stratum: str) -> "People":
        """Some of them, who are a stratum."""
        chosen: list[int] = rows.tolist()
        asked = (self.roster_by_stratum or {}).get(stratum, len(chosen))
        return replace(
            self,
            ids=None if self.ids is None else [self.ids[row] for row in chosen],
            id_column=_taken(self.id_column, rows),
            bids=self.bids[rows],
            groups=None if self.groups is None else [self.groups[row] for row in chosen],
            strata=None,
            roster_by_stratum=None,
            limits=None if self.limits is None else self.limits[rows],
            dropped=asked - len(chosen),
            lines=None if self.lines is None else self.lines[rows],
        )

    def tie_keys(self, market: Market) -> HashArray | None:
        """The order among equals, by a hash of ids: rows may be sorted by what they hold."""
        if not market.identity_decides:
            return None
        if self.ids is None:
            raise InputError(
                f"{self.source} must have a column of ids: in the local setting identity decides"
                " who is bought from among equals."
            )
        if "" in self.ids or len(set(self.ids)) < len(self.ids):
            raise InputError(
                f"{self.source} must name everybody once: identity decides who is bought from among equals, but an id"
                " is missing or repeated."
            )
        return tie_keys(self.ids)


_USUAL_COLUMNS = BidsTable()


def read_people(
    file: Any,
    table: BidsTable = _USUAL_COLUMNS,
    *,
    stratum: str | None = None,
    priors: Mapping[str, Prior] | None = None,
    reading: Reading = AT_ONCE,
    ids_needed: bool = True,
) -> People:
    """Read bids from a file, from columns by name or from a frame; every problem names rows, never what is in them.

    Rows that the ``priors`` (by group, or one under any name) cannot price are left out and counted if ``reading`` says
    so.
    """
    needed = [table.bid, table.id if ids_needed else None, table.group, stratum, table.limit]
    found = read_table(file, needed=[one for one in needed if one is not None], optional=[table.id])
    asked = None if stratum is None else Counter(_strata(found, stratum))
    dropped = 0
    if reading.on_bad_rows == "drop":
        good = _can_be_priced(found, table.bid, table.group, priors or {})
        if table.limit is not None:
            good &= ~found.negative(table.limit)
        found, dropped = found.only(good), int(np.count_nonzero(~good))
        if found.rows == 0:
            raise BidError(f"{found.source}: no row can be priced.")
    has_ids = table.id in found
    return People(
        source=found.source,
        bids=found.numbers(table.bid, error=BidError),
        ids=(found.keys if reading.check_ids == "exact" else found.ids)(table.id) if has_ids else None,
        groups=None if table.group is None else found.labels(table.group, "a group"),
        id_column=found.raw(table.id) if has_ids else found.numbered,
        limits=None
        if table.limit is None
        else found.nonnegative_numbers(table.limit, error=BidError, missing=math.inf),
        strata=None if stratum is None else _strata(found, stratum),
        roster_by_stratum=asked,
        dropped=dropped,
        id_name=table.id if has_ids else "id",
        lines=found.own_lines,
        notes=found.notes_on(table.bid, *([] if table.limit is None else [table.limit])),
    )


def _can_be_priced(found: Table, bid: str, group: str | None, priors: Mapping[str, Prior]) -> BoolArray:
    """Which rows hold a number of at least the smallest bid, and a known group where there are groups."""
    smallest = {name: prior.smallest_bid for name, prior in priors.items()}
    if group is None:
        low = np.full(found.rows, min(smallest.values()))
    else:
        low = np.array([smallest.get(label, math.nan) for label in found.texts(group)])
    return np.asarray(found.readable_numbers(bid) >= low)


def _taken(column: Raw, rows: IndexArray) -> Raw:
    """Some rows of a list, or of an array of NumPy's or Arrow's."""
    return [column[row] for row in rows.tolist()] if isinstance(column, list) else column.take(rows)


def _strata(found: Table, name: str) -> list[str]:
    return [as_stratum(label) for label in found.labels(name, "a stratum")]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Delivered:
    """The data of those who bid, in their order."""

    data: Any
    """Floats with NaN, or messages with None, where nothing was delivered."""

    strangers: int
    """How many rows belonged to people who did not bid; they are not used."""

    notes: tuple[str, ...] = ()
    """Sentences about how the file was read, where that was a choice."""


def delivered_in(source: DataSource, people: People, survey: Sequence[Question] | None) -> Delivered:
    """Return everybody's datum, message or answers in the order of the bids; missing where they are not in the data.

    Yes is 1, and an answer of a choice is its place. A person who leaves a question open has dropped out of the whole.
    """
    found = read_table(source.file, needed=[*([] if people.ids is None else [source.id]), *source.names])
    places, strangers = _matched(found, people, source.id)
    if source.kind == "messages":
        texts = found.texts(source.names[0])
        messages = [texts[place] or None if place >= 0 else None for place in places]
        return Delivered(data=messages, strangers=strangers, notes=found.notes)
    questions = survey if source.answers and survey is not None else [None]
    asked = list(zip(source.names, questions, strict=True))
    table = np.column_stack([_numbers(found, *one) for one in asked])
    data = np.where((places >= 0)[:, np.newaxis], table[places], math.nan)
    notes = found.notes_on(*(name for name, one in asked if one is None or isinstance(one, Number)))
    return Delivered(data=data if source.answers else data[:, 0], strangers=strangers, notes=notes)


def _numbers(found: Table, column: str, question: Question | None) -> FloatArray:
    """Return a column of numbers, or of answers as numbers."""
    if question is None or isinstance(question, Number):
        return found.numbers(column, error=DataError, may_be_missing=True)
    words = words_of(question)
    return found.coded(column, words.codes, words.allowed, capitals=words.capitals)


def answer_of(text: str, question: Question) -> float:
    """One answer as it is written, as a number; NaN if it is none."""
    word = text.strip()
    if isinstance(question, Number):
        return number_of(word)
    words = words_of(question)
    return words.codes.get(word if words.capitals else word.lower(), math.nan)


def _matched(found: Table, people: People, id_column: str) -> tuple[IndexArray, int]:
    """The row of each person in a table of data, −1 where she is not in it, and how many rows are strangers'."""
    if people.ids is None and found.rows != len(people):
        raise InputError(
            f"{found.source} must have one row for each of the {len(people)} people, in the order of their bids,"
            f" which had no ids; it has {found.rows}."
        )
    places = np.arange(len(people)) if people.ids is None else _places(found, id_column, people.ids)
    if (places < 0).all():
        raise InputError(f"{found.source}: nobody in column {id_column!r} is among the ids of {people.source}.")
    return places, found.rows - int((places >= 0).sum())


def _places(found: Table, id_column: str, ids: list[str]) -> IndexArray:
    """The row of each person in the table, −1 where she is not in it; refused if the table names somebody twice."""
    places = places_of(ids, found.ids(id_column))
    if np.count_nonzero(places >= 0) < found.rows:  # a row that is nobody's: a stranger, or a second one
        found.keys(id_column)
    return places


def places_of(ids: list[str], keys: list[str]) -> IndexArray:
    """Return the place of each of the ``ids`` among the ``keys``, of several the first; −1 where it is not there."""
    if keys == ids:
        return np.arange(len(ids))
    rows = dict(zip(reversed(keys), range(len(keys) - 1, -1, -1), strict=True))
    return np.fromiter(map(rows.get, ids, repeat(-1)), dtype=np.intp, count=len(ids))


@contextmanager
def rows_of(source: str, lines: IntArray | None = None) -> Iterator[None]:
    """Say of which file the rows are that a message names; ``lines`` are what a spreadsheet calls them."""
    try:
        yield
    except (BidError, DataError, PriorError) as problem:
        sentence = str(problem).rstrip(".")
        whose = ", data of these people" if problem.field == "data" else ""  # they may stand in another file
        message = f"{source}{whose}: {sentence} ({rows_note(problem.row, lines)})."
        raise type(problem)(message, field=problem.field, row=problem.row) from problem
