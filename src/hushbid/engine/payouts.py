"""What is really paid: decisions with payments in whole minor units of a currency, written, counted and checked."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hushbid.common.adding import Adds
from hushbid.common.arrays import IntArray
from hushbid.common.money import Currency, amounts_due, in_units, rounded_up
from hushbid.disclosure.sums import exact_total
from hushbid.engine.adapter import Batch, Fields, Frame, pyarrow
from hushbid.engine.decisions import PRICED, Decider, columns_of
from hushbid.engine.delivered import DataColumns, DataNames, data_columns
from hushbid.engine.opening import is_url, open_engine
from hushbid.engine.pricing import Priced
from hushbid.errors import InputError, MarketError

_LARGEST = 2.0**53
_MONEY: Fields = (("payment_minor", "int64"), ("payment", "float64"), ("currency", "string"))
_SYNTHETIC: Fields = (("synthetic", "string"),)


@dataclass(frozen=True, slots=True)
class DecisionsKernel:
    """From a row to privacy loss, weight and payment in minor units, rounded in the person's favour."""

    kernel: Decider
    currency: str
    decimals: int
    synthetic: bool

    @property
    def columns(self) -> list[str]:
        """What it reads."""
        return self.kernel.columns

    @property
    def fields(self) -> Fields:
        """The columns to append."""
        return PRICED[:2] + _MONEY + _SYNTHETIC * self.synthetic

    def __call__(self, batch: Batch) -> list[Any]:
        rows = self.kernel.people.read(batch)
        loss, weight, payment = self.kernel.details(batch, rows)[:3]
        minor = rounded_up(payment, self.decimals)
        columns = columns_of(rows, loss, weight, minor, in_units(minor, self.decimals))
        return [*columns, _text(self.currency, columns[0]), *[_text("yes", columns[0])] * self.synthetic]


@dataclass(frozen=True, slots=True)
class DueKernel:
    """From a row to what a person is due once data were delivered or not: nothing if asked and not delivered."""

    kernel: Decider
    data: DataColumns
    currency: str
    decimals: int
    synthetic: bool
    extra: float
    """What everybody is due more because drop-outs made the estimate worse."""

    @property
    def columns(self) -> list[str]:
        """What it reads."""
        return list(dict.fromkeys([*self.kernel.columns, *self.data.names]))

    @property
    def fields(self) -> Fields:
        """The columns to append."""
        return (*_MONEY, ("delivered", "string"), *_SYNTHETIC * self.synthetic)

    def __call__(self, batch: Batch) -> list[Any]:
        pa = pyarrow()
        rows = self.kernel.people.read(batch)
        loss, _, payment = self.kernel.details(batch, rows)[:3]
        missing = self.data.missing(batch)
        missing = missing if rows.good is None else missing[rows.good]
        # asked, and nothing came
        gone = (loss > 0.0) & missing
        due = amounts_due(payment, self.extra, gone, self.decimals)
        minor, units, state = columns_of(rows, due, in_units(due, self.decimals), np.where(loss > 0.0, 1 + gone, 0))
        words = pa.DictionaryArray.from_arrays(state, pa.array(["not asked", "yes", "no"])).cast(pa.string())
        return [minor, units, _text(self.currency, minor), words, *[_text("yes", minor)] * self.synthetic]


@dataclass(frozen=True, slots=True, kw_only=True)
class Paid(Adds):
    """What a written table of decisions or payments comes to."""

    rows: int = 0
    total_minor: int = 0
    paying: int = 0
    """How many people owe money."""

    bought: int = 0
    """How many people have a positive privacy loss; 0 for a table without losses."""


@dataclass(frozen=True, slots=True)
class PaidKernel:
    """From a batch of what was written to what it comes to."""

    has_losses: bool

    @property
    def columns(self) -> list[str]:
        """What it reads."""
        return ["payment_minor", "privacy_loss"] if self.has_losses else ["payment_minor"]

    def __call__(self, batch: Batch, start: int | None) -> Paid:
        minor: IntArray = batch.column("payment_minor").to_numpy(zero_copy_only=False)
        bought = np.count_nonzero(batch.column("privacy_loss").to_numpy() > 0.0) if self.has_losses else 0
        return Paid(
            rows=minor.size,
            total_minor=exact_total(minor),
            paying=int(np.count_nonzero(minor < 0)),
            bought=int(bought),
        )


def decisions(priced: Priced, currency: Currency, *, synthetic: bool = False) -> Frame:
    """The ids of a priced table with losses, weights and payments in minor units; lazy where the table is."""
    kernel = DecisionsKernel(priced._kernel, currency.code, currency.decimals, synthetic)
    return _frame(priced, kernel, currency)


def due(priced: Priced, data: DataNames, currency: Currency, *, mse: float, synthetic: bool = False) -> Frame:
    """The ids with what everybody is due after a release of error ``mse``, and whether they delivered."""
    idle = priced._kernel.idle
    extra = idle.user_weight * (mse - priced.summary.mse) if idle.user_weight else 0.0
    columns = data_columns(priced, data)
    kernel = DueKernel(priced._kernel, columns, currency.code, currency.decimals, synthetic, extra)
    return _frame(priced, kernel, currency)


def checked(path: str | Path, priced: Priced) -> Paid:
    """Count what was written, and refuse it if it is not what was decided."""
    found = open_engine(path, "spark" if is_url(path) else "auto")
    has_losses = "privacy_loss" in found.names
    paid = found.reduce(PaidKernel(has_losses), Paid())
    summary = priced.summary
    # read back from the disk: what counts is what is there
    if paid.rows != summary.people:
        raise MarketError(
            f"{paid.rows} rows were written for {summary.people} people: the table changed while it was priced, or the"
            " workers do not see the folder it is written to."
        )
    if has_losses and summary.method == "gathered" and paid.bought != summary.active:
        raise MarketError(
            f"{paid.bought} people would be bought from instead of {summary.active}: an id is missing or repeated, or"
            " the table changed while it was priced."
        )
    return paid


def _frame(priced: Priced, kernel: DecisionsKernel | DueKernel, currency: Currency) -> Frame:
    id = priced._kernel.people.id
    if id is None:
        raise InputError("id must name a column: decisions are written beside it.", field="id")
    # beyond that a double does not hold whole minor units
    if not priced._kernel.largest_payment * currency.per_unit < _LARGEST:
        raise MarketError(f"A payment is too large to be written in minor units of {currency.code}.")
    taken = [name for name, _ in kernel.fields if name == id]
    if taken:
        raise InputError(f"The column of ids must not be called {id!r}: that is what decisions are called.")
    return priced._engine.map(kernel, drop=priced._drop, keep=[id])


def _text(word: str, like: Any) -> Any:
    """A column of one word, null where ``like`` is."""
    pa = pyarrow()
    indices = pa.array(np.zeros(len(like), dtype=np.int8), mask=~like.is_valid().to_numpy(zero_copy_only=False))
    return pa.DictionaryArray.from_arrays(indices, pa.array([word])).cast(pa.string())
