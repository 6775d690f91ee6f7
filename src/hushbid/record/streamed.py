"""The document of a record whose table is written already, and was never in memory as a whole.

All that follows from everybody's numbers is computed from the table's columns, one after the other and some rows at a
time: the outcome's key, the control totals, how wide the bounds on rents are.
"""

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from hushbid.common.arrays import FloatArray
from hushbid.common.column_files import ColumnFile, ColumnPlace, joined, opened_parquet
from hushbid.common.documents import canonical, hash_of
from hushbid.common.money import Money, with_rounding
from hushbid.disclosure import Release
from hushbid.mechanism import Outcome
from hushbid.mechanism.decision import LESS_EXACT, less_exact
from hushbid.mechanism.releasing import key_of
from hushbid.record.content import CODEC, Content, PeopleContent, TableContent, versions
from hushbid.record.folder import COLUMNS, DOCUMENT, TABLE, bytes_of_file

_ENDS = ("rent_lower", "rent_upper")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Terms:
    """What a record says besides its columns."""

    outcome: Outcome
    """The market and the figures; its columns are empty."""

    lower_bound: float
    money: Money
    """Its payments are a column, and empty here."""

    release: Release | None
    """What each person lost is a column, and empty here."""

    stamps: Sequence[str]
    notes: Sequence[str]


def write_document(folder: Path, places: Sequence[ColumnPlace], terms: Terms) -> str:
    """Write the document next to the table in a folder, and return its hash, which is the record's."""
    with (folder / TABLE).open("rb") as file:
        table = ColumnFile(file=file, name=TABLE, rows=0, sha256="", places=tuple(places))
        digest, columns = table.digest(), _Columns(file, {place.name for place in places})
        terms = _with_widest(terms, columns)
        outcome, rows = terms.outcome, columns.rows
        market = outcome.market.to_dict()
        labelled = {place: columns.texts(place.name) for place in places if place.path[:2] == ("outcome", "market")}
        market = joined({"outcome": {"market": market}}, labelled)["outcome"]["market"]
        release = terms.release
        key = key_of(market, rows, itertools.chain.from_iterable(map(columns.parts, columns.named(COLUMNS))))
        made = Content(
            outcome=outcome.to_dict(),
            outcome_key=key,
            lower_bound=terms.lower_bound,
            totals=_totals(columns),
            people=PeopleContent(ids=(), groups=None),
            money=terms.money,
            release=None if release is None else replace(release, key=key),
            stamps=tuple(dict.fromkeys([*terms.stamps, *_flags(outcome, columns)])),
            notes=tuple(terms.notes),
            versions=versions(),
            table=TableContent(rows=rows, sha256=digest),
        )
    text = canonical(joined(CODEC.write(made), {place: place.stands_for_it for place in places}))
    found = hash_of(text)
    (folder / DOCUMENT).write_bytes(bytes_of_file(text, found))
    return found


class _Columns:
    """The columns of a table, read some rows at a time."""

    def __init__(self, file: Any, names: set[str]) -> None:
        self._opened, self._names = opened_parquet(file), names
        self.rows: int = self._opened.metadata.num_rows

    def named(self, names: Iterable[str]) -> list[str]:
        """Return those names that are columns here."""
        return [name for name in names if name in self._names]

    def parts(self, name: str) -> Iterator[FloatArray]:
        """Return the numbers of a column."""
        for part in self._tables(name):
            yield part.column(0).to_numpy()

    def several(self, *names: str) -> Iterator[list[FloatArray]]:
        """Return the numbers of several columns together."""
        for part in self._tables(*names):
            yield [part.column(name).to_numpy() for name in names]

    def texts(self, name: str) -> list[str]:
        """Return a column of texts of which few differ, each kept once."""
        known: dict[str, str] = {}
        return [known.setdefault(text, text) for part in self._tables(name) for text in part.column(0).to_pylist()]

    def _tables(self, *names: str) -> Iterator[Any]:
        for group in range(self._opened.num_row_groups):
            yield self._opened.read_row_group(group, columns=list(names))


def _with_widest(terms: Terms, columns: _Columns) -> Terms:
    """Return the terms with an error of incentives that covers the bounds on rents as they are rounded."""
    widest = 0.0
    for rent, lower, upper in columns.several("information_rent", *_ENDS):
        widest = max(widest, float((upper - rent).max()), float((rent - lower).max()))
    error = max(terms.outcome.incentive_error, 2.0 * widest)
    money = replace(terms.money, incentive_error=with_rounding(error, terms.money.decimals))
    return replace(terms, outcome=replace(terms.outcome, incentive_error=error), money=money)


def _totals(columns: _Columns) -> dict[str, float]:
    """Return what `hushbid.record.totals` is for columns in memory."""
    found = {name: _finite_sum(columns.parts(name)) for name in columns.named((*COLUMNS, *_ENDS))}
    bought = sum(int(np.count_nonzero(part)) for part in columns.parts("privacy_loss"))
    return {**found, "bought_from": bought}


def _finite_sum(parts: Iterable[FloatArray]) -> float:
    return math.fsum(itertools.chain.from_iterable(part[np.isfinite(part) & (part != 0.0)].tolist() for part in parts))


def _flags(outcome: Outcome, columns: _Columns) -> tuple[str, ...]:
    largest = max(float(np.abs(part).max()) for part in columns.parts("payment"))
    bought = any(part.any() for part in columns.parts("privacy_loss"))
    exact = not bought or not less_exact(outcome.incentive_error, largest, outcome.market.tolerance)
    return () if exact else (LESS_EXACT,)
