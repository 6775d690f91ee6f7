"""Everybody of a priced table on the driver: what a record needs, for populations that fit there.

People who were priced one by one are found again by their keys, with all that was decided about them; everybody else is
idle. So the outcome has the numbers of the engine's decisions, and nothing is decided twice.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from hushbid.allocation import precedence, tie_keys
from hushbid.arrays import FloatArray, IndexArray, id_texts
from hushbid.engine.adapter import Batch, pyarrow
from hushbid.engine.decisions import LookupKernel
from hushbid.engine.people import floats_of
from hushbid.engine.pricing import Priced
from hushbid.errors import InputError, MarketError
from hushbid.mechanism import Market, Outcome


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Rows:
    """Some people, in the order of the table where it has one."""

    start: int | None
    """The number of the first row; None if rows have no order."""

    ids: list[Any]
    """As they stand in the table."""

    labels: list[str] | None
    reports: FloatArray
    costs: FloatArray
    payments: FloatArray
    outside: FloatArray
    """The error of somebody idle who stays out."""

    place: IndexArray
    """Where each stands among those who were priced one by one; −1 for the idle."""

    data: list[Any] | FloatArray | None
    """Numbers with NaN, or messages with None, where nothing was delivered."""


@dataclass(frozen=True, slots=True)
class Taken:
    """Rows that were taken to the driver, batch by batch."""

    parts: tuple[Rows, ...] = ()

    def __add__(self, other: "Taken") -> "Taken":
        """Both together."""
        return Taken(self.parts + other.parts)


@dataclass(frozen=True, slots=True)
class TakingKernel:
    """From a batch to its rows."""

    kernel: LookupKernel
    group: str | None
    data: str | None
    messages: bool
    """Whether the data are texts."""

    @property
    def columns(self) -> list[str]:
        """What it reads."""
        wanted = (*self.kernel.columns, *self.kernel.people.columns_and_id, self.group, self.data)
        return list(dict.fromkeys(name for name in wanted if name is not None))

    def __call__(self, batch: Batch, start: int | None) -> Taken:
        people = self.kernel.people
        rows = people.read(batch)
        which, place = self.kernel.found(batch, rows)
        places = np.full(rows.reports.size, -1, dtype=np.intp)
        places[which] = place
        idle = self.kernel.idle
        outside = rows.variance if idle.outside is None else np.full(rows.reports.size, idle.outside)
        assert outside is not None
        if rows.good is not None:
            batch = batch.filter(pyarrow().array(rows.good))
        part = Rows(
            start=start,
            ids=batch.column(people.id).to_pylist(),
            labels=None if self.group is None else [str(one).strip() for one in batch.column(self.group).to_pylist()],
            reports=rows.reports,
            costs=rows.costs,
            payments=idle.payments(rows),
            outside=outside,
            place=places,
            data=None if self.data is None else self._data(batch, self.data),
        )
        return Taken((part,))

    def _data(self, batch: Batch, name: str) -> list[Any] | FloatArray:
        if not self.messages:
            return floats_of(batch.column(name), name)
        return [None if not text else str(text) for text in batch.column(name).to_pylist()]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Everybody:
    """Everybody's figures, in the order of the table; by id where it has none."""

    ids: Any
    """An Arrow array, as they stand in the table."""

    labels: list[str] | None
    """Everybody's group, if a column of them was named."""

    data: list[Any] | FloatArray | None
    """Everybody's datum or message, if a column of them was named."""

    outcome: Outcome
    """What was decided."""


def everybody(
    priced: Priced,
    market_for: Callable[[list[str] | None], Market],
    *,
    group: str | None = None,
    data: str | None = None,
) -> Everybody:
    """Take everybody to the driver, from one pass; ``priced`` with ``one_by_one`` at least as large as the table.

    ``market_for`` gives the market that was priced with for people with these labels, of the column ``group``.
    """
    kernel, names = priced._kernel, priced._engine.names
    for name in (group, data):
        if name is not None and name not in names:
            raise InputError(f"There is no column {name!r}; the columns are {', '.join(map(repr, names))}.")
    if not isinstance(kernel, LookupKernel) or kernel.people.id is None:
        raise InputError("everybody can be taken to the driver only if all were priced one by one, and have ids.")
    taking = TakingKernel(kernel, group, data, priced.market.setting == "local")
    parts = list(priced._engine.reduce(taking, Taken()).parts)
    if all(part.start is not None for part in parts):
        parts.sort(key=lambda part: part.start or 0)
        order = None
    else:
        order = np.argsort(np.array(id_texts(one for part in parts for one in part.ids)), kind="stable")
    ids = _listed([one for part in parts for one in part.ids], order)
    labels = None if group is None else _listed([one for part in parts for one in part.labels or ()], order)
    found = None if data is None else _data(parts, order)
    outcome = _outcome(priced, market_for(labels), parts, order, ids)
    if (outcome.reports.size, outcome.active) != (priced.summary.people, priced.summary.active):
        raise MarketError("The table changed while it was priced, or an id is missing or repeated.")
    kind = priced._engine.kind(kernel.people.id)
    pa = pyarrow()
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return Everybody(ids=pa.array(ids, type=kind), labels=labels, data=found, outcome=outcome)


def _listed(values: list[Any], order: IndexArray | None) -> list[Any]:
    return values if order is None else [values[row] for row in order.tolist()]


def _data(parts: list[Rows], order: IndexArray | None) -> list[Any] | FloatArray:
    if all(isinstance(part.data, np.ndarray) for part in parts):
        numbers: FloatArray = np.concatenate([np.asarray(part.data) for part in parts])
        return numbers if order is None else numbers[order]
    return _listed([one for part in parts for one in part.data or ()], order)


def _outcome(priced: Priced, market: Market, parts: list[Rows], order: IndexArray | None, ids: list[Any]) -> Outcome:
    """The decisions about those who were priced one by one, in everybody's places, and nothing from all others."""

    def column(name: str) -> FloatArray:
        joined: FloatArray = np.concatenate([getattr(part, name) for part in parts])
        return joined if order is None else joined[order]

    reports, costs = column("reports"), column("costs")
    if priced._few is None:
        return market.acquire(reports)  # every report is above the support: nothing is bought
    few, found = priced._few.decision, column("place") >= 0
    place = priced._few.order[column("place")[found].astype(np.intp)]

    def placed(values: FloatArray, idle: FloatArray | None = None) -> FloatArray:
        everybodys = np.zeros(reports.size) if idle is None else idle.copy()
        everybodys[found] = values[place]
        return everybodys

    keys = tie_keys(ids) if market.identity_decides else None
    return Outcome(
        market=market,
        reports=reports,
        virtual_costs=costs,
        privacy_loss=placed(few.privacy_loss),
        weights=placed(few.weights),
        payments=placed(few.payments, column("payments")),
        information_rent=placed(few.information_rent),
        rent_bounds=(placed(few.rent_bounds[0]), placed(few.rent_bounds[1])),
        outside_error=placed(few.outside_error, column("outside")),
        mse=few.mse,
        objective=few.objective,
        incentive_error=few.incentive_error,
        tie_order=precedence(keys),
    )
