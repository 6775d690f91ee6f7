"""The record of a priced table, written without everybody's figures in memory: a pass, a copy, a look at each column.

The engine writes everybody's figures next to the record (`RecordKernel`), as it writes decisions; of Spark these are
several files. They are copied in order, some rows at a time, into the one table of the record, together with what only
the driver knows: what each person really lost, and the order among equals. `hushbid.record.streamed` adds what follows
from whole columns, and the document. Nobody is priced again: the kernel is the one that the decisions were made with.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from hushbid.allocation import precedence, tie_keys
from hushbid.common.arrays import FloatArray, HashArray, id_texts
from hushbid.common.column_files import ROWS_AT_A_TIME, ColumnPlace, schema_of, writer
from hushbid.common.money import Currency, Money, rounded_up
from hushbid.disclosure import Release
from hushbid.disclosure.grid import ALL_EXACT, MAPPED, PromiseCheck, check_promises, integer_weights
from hushbid.disclosure.sums import exact_total
from hushbid.engine.adapter import Batch, Fields, pyarrow
from hushbid.engine.backends.arrow import ArrowEngine
from hushbid.engine.decisions import Decider, Details, columns_of
from hushbid.engine.delivered import DataColumns, DataNames, data_columns
from hushbid.engine.ids import count_distinct
from hushbid.engine.pricing import Priced
from hushbid.errors import InputError, MarketError
from hushbid.mechanism import Outcome
from hushbid.record.folder import PLACES, TABLE
from hushbid.record.streamed import Terms, write_document

_MEANWHILE = "The table changed while it was priced and recorded."


@dataclass(frozen=True, slots=True)
class RecordKernel:
    """From a row to what a record says of the person."""

    kernel: Decider
    group: str | None
    data: DataColumns | None
    decimals: int

    @property
    def columns(self) -> list[str]:
        """What it reads."""
        data = () if self.data is None else self.data.names
        wanted = (*self.kernel.columns, *self.kernel.people.columns_and_id, self.group, *data)
        return list(dict.fromkeys(name for name in wanted if name is not None))

    @property
    def numbers(self) -> list[str]:
        """The columns of doubles."""
        limit = ["limit"] * (self.kernel.people.limit is not None)
        return ["bid", "virtual_cost", *Details._fields[:-1], *limit, *["used"] * (self.data is not None)]

    @property
    def texts(self) -> dict[str, str]:
        """The columns of texts, and what they are called in the table."""
        people = self.kernel.people
        named = {"id": people.id, "group": self.group, "stratum": people.stratum}
        return {name: column for name, column in named.items() if column is not None}

    @property
    def fields(self) -> Fields:
        """The columns to append."""
        return (
            *((_raw(name), "float64") for name in self.numbers),
            (_raw("payment_minor"), "int64"),
            *((_raw(name), "string") for name in self.texts),
        )

    def __call__(self, batch: Batch) -> list[Any]:
        people, pa = self.kernel.people, pyarrow()
        rows = people.read(batch)
        found = self.kernel.details(batch, rows)
        numbers = [rows.bids, rows.costs, *found[:-1]]
        if people.limit is not None and rows.limit is not None:
            numbers.append(rows.limit)
        if self.data is not None:
            missing = self.data.missing(batch)
            missing = missing if rows.good is None else missing[rows.good]
            numbers.append(np.where(missing, np.nan, found.used))
        texts = []
        for name, column in self.texts.items():
            values = batch.column(column).to_pylist()
            texts.append(id_texts(values) if name == "id" else [str(one) for one in values])
        minor = rounded_up(found.payment, self.decimals)
        return [*columns_of(rows, *numbers, minor), *(pa.array(column, pa.string()) for column in texts)]


def _raw(name: str) -> str:
    """Return what a column is called before it is in the record: not as one of the table's own."""
    return f"hushbid_record_{name}"


def not_recorded(priced: Priced, release: Release | None) -> str:
    """Return why there can be no record of people who stay with the engine; empty if there can be one.

    Where a person of a stratum did not deliver, memory weighs the others again and an engine scales the strata's sums:
    a record of that would not fit what is checked.
    """
    if release is None or priced._population.strata is None or not release.absent:
        return ""
    return "No record: somebody did not deliver, and then an engine records no combination of strata."


def write_record(
    priced: Priced,
    folder: Path,
    *,
    currency: Currency,
    total_minor: int,
    group: str | None,
    data: DataNames,
    release: Release | None,
    stamps: Sequence[str],
    notes: Sequence[str],
) -> str:
    """Write the record of a priced table to a new folder, and return its hash.

    All payments come to ``total_minor``; ``group`` and ``data`` name columns, of which data are read only if there is a
    release.
    """
    folder.mkdir(mode=0o700)
    kernel = RecordKernel(
        kernel=priced._kernel,
        group=group,
        data=None if release is None else data_columns(priced, data),
        decimals=currency.decimals,
    )
    id = priced._kernel.people.id
    if id is None:
        raise InputError("id must name a column: a record says who the people are.", field="id")
    raw = folder.with_name("everybody.parquet")  # beside it, and gone with what is temporary
    priced.write(priced._engine.map(kernel, drop=priced._drop, keep=[id]), raw)
    everybody = _Everybody(ArrowEngine(raw), kernel, priced, release)
    with writer(str(folder / TABLE), everybody.places) as writing:
        for table in everybody.tables():
            writing.write_table(table, row_group_size=ROWS_AT_A_TIME)
    terms = Terms(
        outcome=everybody.outcome(),
        lower_bound=priced.summary.lower_bound,
        money=Money(
            currency=currency.code,
            decimals=currency.decimals,
            payments=np.zeros(0, dtype=np.int64),
            total=total_minor,
            incentive_error=0.0,  # follows from the columns
        ),
        release=everybody.released(),
        stamps=stamps,
        notes=notes,
    )
    return write_document(folder, everybody.places, terms)


class _Everybody:
    """What the engine wrote of everybody, in its order."""

    def __init__(self, written: ArrowEngine, kernel: RecordKernel, priced: Priced, release: Release | None) -> None:
        self._written, self._kernel, self._priced, self._release = written, kernel, priced, release
        self._refuse_repeated()
        self._tie_order = precedence(self._tie_keys()) if priced.market.identity_decides else None
        self._losses = None if release is None else _Losses(release.grid.weight_exponent)
        if release is not None:
            self._refuse_other_weights(release)
        self.places = self._places()

    def tables(self) -> Iterator[Any]:
        """Return the columns of the record, some rows at a time."""
        pa, start = pyarrow(), 0
        for table in _in_groups(self._written.batches()):
            found = {place.name: self._column(place.name, table, start) for place in self.places}
            yield pa.table(found).cast(schema_of(self.places))  # an engine may have texts of another kind
            start += table.num_rows

    def outcome(self) -> Outcome:
        """Return what was decided, but for the columns."""
        summary, none = self._priced.summary, np.zeros(0)
        return Outcome(
            market=self._priced.market,
            bids=none,
            virtual_costs=none,
            privacy_loss=none,
            weights=none,
            payments=none,
            information_rent=none,
            rent_bounds=(none, none),
            outside_error=none,
            mse=summary.mse,
            worst_mse=summary.worst_mse,
            objective=summary.objective,
            incentive_error=summary.incentive_error,
            tie_order=None if self._tie_order is None else np.zeros(0, dtype=np.intp),
            limits=none if "limit" in self._kernel.numbers else None,
        )

    def released(self) -> Release | None:
        """Return the release, but for what each person lost; known when all rows were read."""
        if self._release is None or self._losses is None:
            return None
        check = self._losses.check or replace(self._release.check, people=self._written.rows)
        return replace(
            self._release,
            check=check,
            dropped_out=tuple(self._losses.dropped_out),
            summed=None,
        )

    def _places(self) -> list[ColumnPlace]:
        names = {*self._kernel.numbers, *self._kernel.texts, "payment_minor"}
        names |= {"prior_label"} if self._kernel.kernel.people.group is not None else set()
        names |= {"tie_order"} if self._tie_order is not None else set()
        names |= {"lost"} if self._losses is not None else set()
        return [place for place in PLACES if place.name in names]

    def _column(self, name: str, table: Any, start: int) -> Any:
        if name == "tie_order" and self._tie_order is not None:
            return pyarrow().array(self._tie_order[start : start + table.num_rows])
        if name == "lost" and self._losses is not None:
            return pyarrow().array(self._losses.of(table, start))
        return table.column(_raw("group" if name == "prior_label" else name)).combine_chunks()

    def _refuse_repeated(self) -> None:
        """Refuse people of whom one is there twice, or another number of people than were priced."""
        rows, source = self._written.rows, self._priced._kernel.people.id
        if rows != self._priced.summary.people:
            raise MarketError(_MEANWHILE)
        if count_distinct(lambda: self._written.batches([_raw("id")]), rows) < rows:
            raise InputError(f"Column {source!r} must name everybody once, but an id is there twice.", field=source)

    def _tie_keys(self) -> HashArray:
        seed = self._priced._kernel.people.tie_seed
        found = [tie_keys(batch.column(0).to_pylist(), seed=seed) for batch in self._written.batches([_raw("id")])]
        return np.concatenate(found)

    def _refuse_other_weights(self, release: Release) -> None:
        """Refuse losses whose integer weights, of those who delivered, do not add up to what was released."""
        exponent = release.grid.weight_exponent
        if exponent is None:
            return
        tables = _in_groups(self._written.batches([_raw("used")]))
        total = sum(exact_total(integer_weights(np.nan_to_num(_numbers(one, "used")), exponent)) for one in tables)
        if total != release.grid.total_weight:
            raise MarketError(_MEANWHILE)


class _Losses:
    """What everybody really lost, exactly, some rows at a time.

    Strata are in proportion but for rounding, as everybody of them delivered (`not_recorded`): as in memory, the weight
    itself is what a person lost.
    """

    def __init__(self, exponent: int | None) -> None:
        self._exponent = exponent
        self.dropped_out: list[int] = []
        self.check: PromiseCheck | None = None

    def of(self, table: Any, start: int) -> FloatArray:
        """Return what these people lost, and note who did not deliver."""
        used, promised = _numbers(table, "used"), _numbers(table, "privacy_loss")
        gone = np.isnan(used)
        self.dropped_out += (start + np.flatnonzero(gone & (promised > 0.0))).tolist()
        lost = np.where(gone, 0.0, used)
        if self._exponent is None:
            return lost
        weights = integer_weights(lost, self._exponent)
        found = check_promises(weights, self._exponent, promised)
        self.check = found if self.check is None else _both(self.check, found)
        return np.ldexp(weights.astype(np.float64), -self._exponent)


def _both(one: PromiseCheck, other: PromiseCheck) -> PromiseCheck:
    """Return the check of all these people: of more than are stated, but as it is stated for people in memory."""
    return PromiseCheck(
        people=one.people + other.people,
        people_in_fractions=min(one.people_in_fractions + other.people_in_fractions, ALL_EXACT),
        people_mapped=min(one.people_mapped + other.people_mapped, MAPPED),
        largest_share=max(one.largest_share, other.largest_share),
    )


def _numbers(table: Any, name: str) -> FloatArray:
    found: FloatArray = table.column(_raw(name)).to_numpy()
    return found


def _in_groups(batches: Iterable[Batch]) -> Iterator[Any]:
    """Return tables of so many rows as a group of the record's file has, whatever the batches."""
    pa, waiting, rows = pyarrow(), list[Batch](), 0
    for batch in batches:
        left = batch
        while left.num_rows:
            part = left.slice(0, ROWS_AT_A_TIME - rows)
            waiting, rows, left = [*waiting, part], rows + part.num_rows, left.slice(part.num_rows)
            if rows == ROWS_AT_A_TIME:
                yield pa.Table.from_batches(waiting)
                waiting, rows = [], 0
    if waiting:
        yield pa.Table.from_batches(waiting)
