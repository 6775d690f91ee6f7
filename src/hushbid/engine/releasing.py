"""Release an estimate from data that live in the priced table: exact integer sums on the engine, noise once, here.

The sum is the one of :mod:`hushbid.disclosure.grid`: integer weights ``W = floor(ε·2**t)``, data on an integer grid.
Integers add up alike in every order, so the total has the sensitivity that was promised whatever the engine; the noise
is drawn on the driver after everything is added up, never inside a lazy plan that might be evaluated twice.
"""

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from hushbid.disclosure import noise
from hushbid.disclosure.claims import drawn_once
from hushbid.disclosure.grid import DATA_BITS, LARGEST_EXPONENT, exact_sum, to_data_units, to_grid
from hushbid.engine.boundary import Batch
from hushbid.engine.decisions import FormulaKernel, LookupKernel
from hushbid.engine.people import floats_of
from hushbid.engine.pricing import Priced
from hushbid.errors import InfiniteLoss, InputError, NothingDelivered, ReleaseError

_TOTAL_BITS = 60
_SQUARE_BITS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRelease:
    """One estimate, drawn once. All of it is for the operator: the counts tell who dropped out."""

    estimate: float
    """The noisy weighted mean, in data units."""

    standard_error: float
    """Root mean squared error from the declared variance and the noise, given who delivered."""

    delivered: int
    """How many people's data were used."""

    dropped_out: int
    """How many people who should have delivered did not."""

    clamped: int
    """How many values lay outside the range."""

    weight_exponent: int
    """``t``: a person loses ``floor(privacy_loss·2**t)/2**t``, never more than she was promised."""

    key: str
    """What the claim on this release is stored under."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """Exact integer sums over everybody who delivered."""

    weight: int = 0
    weighted: int = 0
    squares: int = 0
    delivered: int = 0
    dropped_out: int = 0
    clamped: int = 0

    def __add__(self, other: "Sums") -> "Sums":
        """Both populations together."""
        mine, theirs = asdict(self), asdict(other)
        return Sums(**{name: mine[name] + theirs[name] for name in mine})


@dataclass(frozen=True, slots=True)
class SumsKernel:
    """From a batch to its sums."""

    kernel: FormulaKernel | LookupKernel
    data: str
    bounds: tuple[float, float]
    exponent: int

    def __call__(self, batch: Batch, start: int | None) -> Sums:
        rows = self.kernel.people.read(batch)
        losses = self.kernel.decide(batch, rows)[0]
        values = floats_of(batch.column(self.data), self.data)
        values = values if rows.good is None else values[rows.good]
        asked, present = losses > 0.0, ~np.isnan(values)
        used = asked & present
        low, high = self.bounds
        weights = np.floor(np.ldexp(losses[used], self.exponent)).astype(np.int64)
        data = values[used]
        return Sums(
            weight=int((weights >> 32).sum() << 32) + int((weights & 0xFFFFFFFF).sum()),
            weighted=exact_sum(weights, to_grid(data, self.bounds)),
            squares=exact_sum(weights, weights >> _SQUARE_BITS) << _SQUARE_BITS,
            delivered=int(used.sum()),
            dropped_out=int((asked & ~present).sum()),
            clamped=int(((data < low) | (data > high)).sum()),
        )


def release(priced: Priced, data: str, *, claims: str | Path) -> TableRelease:
    """Release the estimate that a pricing paid for, from a column of the same table (null: did not deliver).

    It is drawn once: ``claims``, a folder, keeps it, and asking again returns the stored one. Central setting only: in
    the local one people send noisy values, which need no trusted sum.
    """
    market, summary = priced.market, priced.summary
    if market.setting != "central":
        raise InputError("setting must be 'central': in the local setting each device adds its own noise.")
    if data not in priced._engine.names:
        raise InputError(f"There is no column {data!r}; the columns are {', '.join(map(repr, priced._engine.names))}.")
    if summary.active == 0:
        raise NothingDelivered("Nothing was bought, so there is nothing to release.")
    if math.isinf(summary.largest_privacy_loss):
        raise InfiniteLoss("Somebody's privacy loss is infinite: set max_privacy_loss in the market.")
    key = _key(priced)
    found = drawn_once(Path(claims), key, lambda: asdict(_draw(priced, data, key)))
    return _from_dict(found)


def _draw(priced: Priced, data: str, key: str) -> TableRelease:
    market, summary = priced.market, priced.summary
    # Nobody has more than the largest loss, so the weights of all who are asked fit in 60 bits.
    most = summary.largest_privacy_loss * summary.active * (1.0 + 1e-9)
    exponent = min(_TOTAL_BITS - math.frexp(most)[1], LARGEST_EXPONENT)
    columns = list(dict.fromkeys([*priced._kernel.people.columns, data]))
    kernel = SumsKernel(priced._kernel, data, market.bounds, exponent)
    sums = priced._engine.reduce(kernel, columns, Sums())
    if sums.delivered == 0:
        raise NothingDelivered(f"None of the {summary.active} people with a positive privacy loss delivered data.")
    if not 0 < sums.weight <= 1 << _TOTAL_BITS:
        raise ReleaseError("The privacy losses of those who delivered are too small to release anything.")
    scale = math.ldexp(1.0, exponent)
    noisy = noise.draw_many([sums.weighted >> DATA_BITS], scale=scale)[0]
    spread = float(np.max(np.asarray(market.stated_variance)))
    share = Fraction(sums.squares, sums.weight**2)
    variance = 2.0 * (market.width * scale / sums.weight) ** 2 + spread * float(share)
    return TableRelease(
        estimate=to_data_units(Fraction(noisy, sums.weight), market.bounds),
        standard_error=math.sqrt(variance),
        delivered=sums.delivered,
        dropped_out=sums.dropped_out,
        clamped=sums.clamped,
        weight_exponent=exponent,
        key=key,
    )


def _key(priced: Priced) -> str:
    """The content of what was decided: the same pricing always has the same key, whatever the engine."""
    decided = [priced.market.to_dict(), priced.summary.people, priced.summary.active, priced.summary.objective.hex()]
    return hashlib.sha256(json.dumps(decided, sort_keys=True).encode()).hexdigest()


def _from_dict(values: Mapping[str, Any]) -> TableRelease:
    return TableRelease(**{name: values[name] for name in TableRelease.__slots__})
