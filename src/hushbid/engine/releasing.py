"""Release an estimate from data that live in the priced table: exact integer sums on the engine, noise once, here.

The sum is the one of :mod:`hushbid.disclosure.grid`: integer weights ``W = floor(ε·2**t)``, data on an integer grid.
Integers add up alike in every order, so the total has the sensitivity that was promised whatever the engine; the noise
is drawn on the driver after everything is added up, never inside a lazy plan that might be evaluated twice. In the
local setting people send noisy messages, of which those of the few who matter go to the driver.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from hushbid.disclosure import Release, ReleasePlan, local, noise
from hushbid.disclosure.claim_store import settle
from hushbid.disclosure.error import ErrorModel, published_errors
from hushbid.disclosure.grid import DATA_BITS, ESTIMATE_BITS, LARGEST_EXPONENT, exact_sum, to_data_units, to_grid
from hushbid.disclosure.once import other_data
from hushbid.disclosure.release import FORMAT as RELEASE_FORMAT
from hushbid.documents import Codec
from hushbid.engine.adapter import Batch
from hushbid.engine.asking import asked_of
from hushbid.engine.decisions import Decider, LookupKernel
from hushbid.engine.people import floats_of
from hushbid.engine.pricing import Priced, exact_total
from hushbid.errors import InfiniteLoss, InputError, NothingDelivered, ReleaseError

_TOTAL_BITS = 60
_TERM_BITS = 52
_FORMAT = "hushbid table release"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRelease:
    """One estimate, drawn once. All of it is for the operator, but what `public` returns."""

    data: str
    """The column it is about."""

    estimate: float
    """The noisy weighted mean, in data units."""

    error: ErrorModel
    """How far the estimate may lie from the mean, given who delivered."""

    planned_error: ErrorModel
    """How far the estimate might have lain from the mean, had everybody delivered."""

    delivered: int
    """How many people's data were used."""

    dropped_out: int
    """How many people who should have delivered did not."""

    clamped: int
    """How many values lay outside the range (not known in the local setting: 0)."""

    weight_exponent: int | None
    """``t``: a person loses ``floor(privacy_loss·2**t)/2**t``, never more than she was promised; None if local."""

    key: str
    """What the claim on this release is stored under."""

    @property
    def standard_error(self) -> float:
        """Root mean squared error from the declared variances and the noise, never from the data."""
        return math.sqrt(self.error.mse)

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """An interval that contains the mean with probability at least ``level``, whatever the distribution."""
        half = self.error.half_width(level)
        return self.estimate - half, self.estimate + half

    def public(self) -> dict[str, Any]:
        """What may be shown to anybody: the noisy estimate, and errors that were fixed before any data were seen."""
        return {
            **published_errors(self.planned_error, people=self.delivered + self.dropped_out),
            "estimate": self.estimate,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """Exact integer sums over everybody who delivered."""

    weight: int = 0
    weighted: int = 0
    squares: int = 0
    """Of the squares of weights relative to the largest possible one, each rounded up to ``2**-52``."""

    spreads: int = 0
    """Of these squares, each times the person's variance relative to the largest one."""

    heaviest: int = 0
    delivered: int = 0
    dropped_out: int = 0
    clamped: int = 0

    def __add__(self, other: "Sums") -> "Sums":
        """Both populations together."""
        mine, theirs = asdict(self), asdict(other)
        both = {name: mine[name] + theirs[name] for name in mine}
        return Sums(**{**both, "heaviest": max(self.heaviest, other.heaviest)})


@dataclass(frozen=True, slots=True)
class SumsKernel:
    """From a batch to its sums."""

    kernel: Decider
    data: str
    bounds: tuple[float, float]
    exponent: int
    weight_bits: int
    """No weight has more."""

    widest: float
    """The largest variance."""

    @property
    def columns(self) -> list[str]:
        """What it reads."""
        return list(dict.fromkeys([*self.kernel.columns, self.data]))

    def __call__(self, batch: Batch, start: int | None) -> Sums:
        rows = self.kernel.people.read(batch)
        losses = self.kernel.decide(batch, rows)[0]
        values = floats_of(batch.column(self.data), self.data)
        values = values if rows.good is None else values[rows.good]
        asked, present = losses > 0.0, ~np.isnan(values)
        # bought from, and delivered; nobody else's datum is read any further
        used = asked & present
        scaled = np.floor(np.ldexp(losses[used], self.exponent))
        if (np.ldexp(scaled, -self.exponent) > losses[used]).any():  # both are doubles, and exact
            raise ReleaseError("The noise would not keep a promise; nothing was drawn.")
        # integers from here on, so that sums do not depend on batches
        weights, data = scaled.astype(np.int64), values[used]
        low, high = self.bounds
        # for the error only: shares of the largest possible weight, rounded up below
        squares = np.square(np.ldexp(scaled, -self.weight_bits))
        spread = 1.0 if rows.variance is None or self.widest == 0.0 else rows.variance[used] / self.widest
        return Sums(
            weight=exact_total(weights),
            weighted=exact_sum(weights, to_grid(data, self.bounds)),
            squares=exact_total(np.ceil(np.ldexp(squares, _TERM_BITS)).astype(np.int64)),
            spreads=exact_total(np.ceil(np.ldexp(squares * spread, _TERM_BITS)).astype(np.int64)),
            heaviest=int(weights.max(initial=0)),
            delivered=int(used.sum()),
            dropped_out=int((asked & ~present).sum()),
            clamped=int(((data < low) | (data > high)).sum()),
        )


@dataclass(frozen=True, slots=True)
class Messages:
    """What people who were priced on the driver sent, by their place there."""

    texts: Mapping[int, str]

    def __add__(self, other: "Messages") -> "Messages":
        """Both populations together."""
        return Messages({**self.texts, **other.texts})


@dataclass(frozen=True, slots=True)
class MessagesKernel:
    """From a batch to the messages in it that are needed."""

    kernel: LookupKernel
    data: str

    @property
    def columns(self) -> list[str]:
        """What it reads."""
        return list(dict.fromkeys([*self.kernel.columns, self.data]))

    def __call__(self, batch: Batch, start: int | None) -> Messages:
        rows = self.kernel.people.read(batch)
        which, place = self.kernel.found(batch, rows)
        # of those who were bought from
        needed = self.kernel.loss[place] > 0.0
        which, place = which[needed], place[needed]
        places = which if rows.good is None else np.flatnonzero(rows.good)[which]
        column = batch.column(self.data)
        texts = [column[row].as_py() for row in places.tolist()]
        return Messages({at: str(text) for at, text in zip(place.tolist(), texts, strict=True) if text})


@dataclass(frozen=True, slots=True, kw_only=True)
class TableAnswer:
    """A release, and how it came about."""

    release: TableRelease
    """The one estimate."""

    before: bool
    """Whether it had been drawn before, on an engine or in memory."""

    waves_before: int
    """How many other waves of the question had been drawn from these people when it was; 0 without ids."""


def release(priced: Priced, data: str, *, claims: str | Path, question: str = "", wave: int = 1) -> TableRelease:
    """Release the estimate that a pricing paid for, from a column of the same table (null: did not deliver).

    The column holds numbers in the central setting, and in the local one the messages that people's devices sent. It is
    drawn once for a question and these people: ``claims``, a folder, keeps it, and asking again with the same promises
    and data returns the stored one, also if memory drew it. Other promises and other data are refused; so are data
    that came late, which sums cannot tell from other data.
    """
    return answer(priced, data, claims=claims, question=question, wave=wave).release


def answer(priced: Priced, data: str, *, claims: str | Path, question: str, wave: int) -> TableAnswer:
    """The release of an estimate, and how it came about: drawn now, or kept from before."""
    draw = _prepared(priced, data)
    # what makes this question this one: the people, promises and data, as sums
    ask = asked_of(priced, data, question=question, wave=wave)
    settled = settle(Path(claims).resolve(), ask, lambda name: _STORED.write(draw(name)))
    if not settled.same_data:
        raise other_data(", or came after it was drawn, which an engine cannot tell apart (--engine memory can)")
    # the claim may hold what memory drew
    if settled.release.get("format") == RELEASE_FORMAT:
        found = _of_memory(Release.from_dict(settled.release), data, settled.delivered, settled.name)
    else:
        found = _STORED.read(settled.release)
    return TableAnswer(release=replace(found, data=data), before=settled.before, waves_before=settled.waves_before)


def release_made_up(priced: Priced, data: str) -> TableRelease:
    """An estimate from people who do not exist: drawn anew at every call, and nothing is kept."""
    return _prepared(priced, data)("made up")


def _prepared(priced: Priced, data: str) -> Callable[[str], TableRelease]:
    """Check and add up everything; what is returned only has to draw, under a name."""
    summary, names = priced.summary, priced._engine.names
    if data not in names:
        raise InputError(f"There is no column {data!r}; the columns are {', '.join(map(repr, names))}.")
    if summary.active == 0:
        raise NothingDelivered("Nothing was bought, so there is nothing to release.")
    if math.isinf(summary.largest_privacy_loss):
        raise InfiniteLoss("Somebody's privacy loss is infinite: set max_privacy_loss in the market.")
    return _central(priced, data) if priced.market.setting == "central" else _local(priced, data)


def _of_memory(release: Release, data: str, delivered: int, name: str) -> TableRelease:
    """What memory drew, without the figures of single people."""
    return TableRelease(
        data=data,
        estimate=release.estimate,
        error=release.error,
        planned_error=release.planned_error,
        delivered=delivered,
        dropped_out=len(release.dropped_out),
        clamped=release.clamped,
        weight_exponent=release.grid.weight_exponent,
        key=name,
    )


def _central(priced: Priced, data: str) -> Callable[[str], TableRelease]:
    market, summary, people = priced.market, priced.summary, priced._kernel.people
    # the grid: weights floor(ε·2**t), as fine as their sum allows, from what was promised to all
    exponent = _TOTAL_BITS - math.frexp(summary.total_privacy_loss * (1.0 + 1e-9))[1]
    exponent = min(exponent, LARGEST_EXPONENT)
    spread = float(np.max(np.asarray(market.stated_variance)))
    kernel = SumsKernel(
        priced._kernel,
        data,
        market.bounds,
        exponent,
        weight_bits=max(math.frexp(summary.largest_privacy_loss)[1] + exponent, 0),
        widest=spread if people.variance is None else priced._kernel.idle.largest_outside,
    )
    # exact integers over those who delivered
    sums = priced._engine.reduce(kernel, Sums())
    if sums.delivered == 0:
        raise NothingDelivered(f"None of the {summary.active} people with a positive privacy loss delivered data.")
    if not 0 < sums.weight <= 1 << _TOTAL_BITS:
        raise ReleaseError("The privacy losses of those who delivered are too small to release anything.")
    scale, width = math.ldexp(1.0, exponent), market.width
    # the error that these weights have
    unit = Fraction(1 << (2 * kernel.weight_bits), (1 << _TERM_BITS) * sums.weight**2)
    error = ErrorModel(
        sampling_variance=kernel.widest * float(sums.spreads * unit),
        squared_steps=width**2 * float(sums.squares * unit),
        largest_step=width * (sums.heaviest / sums.weight),
        largest_noise=width * (scale / sums.weight),
        next_noise=0.0,
        other_noise_squared=0.0,
        rounding=width * (2.0**-DATA_BITS + 2.0**-ESTIMATE_BITS + 2.0 / sums.weight),
    )

    def draw(name: str) -> TableRelease:
        # shortened before the noise: one datum still moves the floor by at most W_i
        noisy = noise.draw_many([sums.weighted >> DATA_BITS], scale=scale)[0]
        return TableRelease(
            data=data,
            estimate=to_data_units(Fraction(noisy, sums.weight), market.bounds),
            error=error,
            planned_error=_planned(priced),
            delivered=sums.delivered,
            dropped_out=sums.dropped_out,
            clamped=sums.clamped,
            weight_exponent=exponent,
            key=name,
        )

    return draw


def _planned(priced: Priced) -> ErrorModel:
    summary, width = priced.summary, priced.market.width
    scale = width / summary.total_privacy_loss
    return ErrorModel(
        sampling_variance=max(summary.mse - 2.0 * scale**2, 0.0),
        squared_steps=width**2 * summary.squared_weights,
        largest_step=scale * summary.largest_privacy_loss,
        largest_noise=scale,
        next_noise=0.0,
        other_noise_squared=0.0,
        rounding=0.0,
    )


def _local(priced: Priced, data: str) -> Callable[[str], TableRelease]:
    """Messages carry their noise already; nothing is drawn here, but what is combined is combined once."""
    kernel, market = priced._kernel, priced.market
    assert isinstance(kernel, LookupKernel)
    messages = priced._engine.reduce(MessagesKernel(kernel, data), Messages({})).texts
    active = np.flatnonzero(kernel.loss > 0.0)
    plan = ReleasePlan.of(
        kernel.loss[active],
        setting="local",
        bounds=market.bounds,
        variance=float(market.stated_variance),
    )
    # the plan is that of the active only: the others have no message
    read = local.read_messages(plan, [messages.get(place) for place in active.tolist()])
    delivered = sum(message is not None for message in read)
    if delivered == 0:
        raise NothingDelivered(f"None of the {active.size} people with a positive privacy loss delivered data.")
    found = local.combine(plan, read)
    return lambda name: TableRelease(
        data=data,
        estimate=found.estimate,
        error=found.error,
        planned_error=local.planned_error(plan),
        delivered=delivered,
        dropped_out=int(active.size) - delivered,
        clamped=0,
        weight_exponent=None,
        key=name,
    )


_STORED = Codec(TableRelease, "stored release", header={"format": _FORMAT})
