"""A central release from sums that somebody else added up, batch by batch, wherever the data are.

The sum is the one of :mod:`hushbid.disclosure.grid`: integer weights ``W = floor(ε·2**t)``, data on an integer grid.
Integers add up alike in every order, so the total has the sensitivity that was promised whoever adds; the noise is
drawn once, here, after everything is added up. ``t`` has to be known before, so it follows from what was promised to
all. Where price and datum may be related, how uneven the weights are is added up too, once their total is known.
"""

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from hushbid.arrays import FloatArray, IntArray
from hushbid.disclosure import noise
from hushbid.disclosure.error import ErrorModel
from hushbid.disclosure.grid import (
    DATA_BITS,
    ESTIMATE_BITS,
    TOTAL_BITS,
    PromiseCheck,
    exact_sum,
    exponent_of,
    to_data_units,
    to_grid,
)
from hushbid.disclosure.relation import NO_BIAS, Bias, Relation, Unevenness, bias_of
from hushbid.disclosure.release import Grid, Release, Summed, versions
from hushbid.errors import NothingDelivered, ReleaseError

_TERM_BITS = 52


@dataclass(frozen=True, slots=True, kw_only=True)
class SummedPlan:
    """A promise to everybody of whom only figures about all are known."""

    bounds: tuple[float, float]
    """The public range of the data."""

    active: int
    """How many people were promised a positive privacy loss."""

    total_loss: float
    """All promised losses together."""

    largest_loss: float
    """Nobody was promised a larger one; finite."""

    largest_variance: float
    """Nobody's declared variance is larger, in squared data units."""

    mse: float
    """The error if everybody delivers, in squared data units."""

    squared_weights: float
    """The sum of the squares of everybody's weight if all deliver."""

    relation: Relation | None = None
    """How closely price and datum may be related, among how many people; None: not at all."""

    @property
    def width(self) -> float:
        """Width of the public range."""
        return self.bounds[1] - self.bounds[0]

    @property
    def exponent(self) -> int:
        """``t``: a person loses ``floor(ε·2**t)/2**t``."""
        return exponent_of(self.total_loss)

    @property
    def weight_bits(self) -> int:
        """No weight has more."""
        return max(math.frexp(self.largest_loss)[1] + self.exponent, 0)

    @property
    def total_weight(self) -> Fraction:
        """What everybody's weights add up to if nothing is rounded."""
        return Fraction(self.total_loss) * Fraction(2) ** self.exponent

    def planned_error(self, above: "Above | None" = None) -> ErrorModel:
        """How far the estimate may lie from the mean if everybody delivers."""
        scale = self.width / self.total_loss
        bias = _bias(self, Fraction(self.squared_weights), None if above is None else above.planned, self.total_weight)
        return ErrorModel(
            sampling_variance=max(self.mse - 2.0 * scale**2, 0.0),
            squared_steps=self.width**2 * self.squared_weights,
            largest_step=scale * self.largest_loss,
            largest_noise=scale,
            next_noise=0.0,
            other_noise_squared=0.0,
            rounding=0.0,
            squared_bias=bias.squared,
            largest_bias=bias.largest,
        )


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
    share: float = 0.0
    """The largest part of a promise that is used."""

    def __add__(self, other: "Sums") -> "Sums":
        """Both populations together."""
        mine, theirs = asdict(self), asdict(other)
        both = {name: mine[name] + theirs[name] for name in mine}
        largest = {name: max(mine[name], theirs[name]) for name in ("heaviest", "share")}
        return Sums(**{**both, **largest})

    @classmethod
    def of(cls, losses: FloatArray, values: FloatArray, variance: FloatArray | None, grid: SummedPlan) -> "Sums":
        """Of some people: their promised losses, data (NaN: did not deliver), and variances where they differ."""
        asked, present = losses > 0.0, ~np.isnan(values)
        # bought from, and delivered; nobody else's datum is read any further
        used = asked & present
        promised, data = losses[used], values[used]
        scaled = np.floor(np.ldexp(promised, grid.exponent))
        lost = np.ldexp(scaled, -grid.exponent)
        if (lost > promised).any():  # both are doubles, and exact
            raise ReleaseError("The noise would not keep a promise; nothing was drawn.")
        # integers from here on, so that sums do not depend on batches
        weights = scaled.astype(np.int64)
        low, high = grid.bounds
        # for the error only: shares of the largest possible weight, rounded up below
        squares = np.square(np.ldexp(scaled, -grid.weight_bits))
        widest = grid.largest_variance
        spread = 1.0 if variance is None or widest == 0.0 else variance[used] / widest
        return cls(
            weight=exact_total(weights),
            weighted=exact_sum(weights, to_grid(data, grid.bounds)),
            squares=exact_total(np.ceil(np.ldexp(squares, _TERM_BITS)).astype(np.int64)),
            spreads=exact_total(np.ceil(np.ldexp(squares * spread, _TERM_BITS)).astype(np.int64)),
            heaviest=int(weights.max(initial=0)),
            delivered=int(used.sum()),
            dropped_out=int((asked & ~present).sum()),
            clamped=int(((data < low) | (data > high)).sum()),
            share=float((lost / promised).max(initial=0.0)),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Heavy:
    """Those whose weight is above everybody's equal share."""

    weight: int = 0
    """What their integer weights add up to."""

    people: int = 0
    """How many they are."""

    def __add__(self, other: "Heavy") -> "Heavy":
        """Both populations together."""
        return Heavy(weight=self.weight + other.weight, people=self.people + other.people)

    @classmethod
    def of(cls, weights: IntArray, share: int) -> "Heavy":
        """Of some people's weights; the equal share, rounded down."""
        above = weights[weights > share]
        return cls(weight=exact_total(above), people=above.size)


@dataclass(frozen=True, slots=True, kw_only=True)
class Above:
    """Who weighs more than an equal share: among those who delivered, and as it was planned."""

    delivered: Heavy = Heavy()
    planned: Heavy = Heavy()

    def __add__(self, other: "Above") -> "Above":
        """Both populations together."""
        return Above(delivered=self.delivered + other.delivered, planned=self.planned + other.planned)

    @classmethod
    def of(cls, losses: FloatArray, values: FloatArray, plan: SummedPlan, total: int) -> "Above":
        """Of some people, where the weights of those who delivered add up to ``total``."""
        assert plan.relation is not None
        roster = plan.relation.roster
        return cls.over(losses, values, plan.exponent, total // roster, math.floor(plan.total_weight / roster))

    @classmethod
    def over(cls, losses: FloatArray, values: FloatArray, exponent: int, share: int, planned: int) -> "Above":
        """Of some people, where the equal share is so much, and was planned to be so much."""
        weights = np.floor(np.ldexp(losses, exponent)).astype(np.int64)
        return cls(delivered=Heavy.of(weights[~np.isnan(values)], share), planned=Heavy.of(weights, planned))


def exact_total(integers: IntArray) -> int:
    """The sum of 64-bit integers, whatever its size: halves of 32 bits add up without overflow below 2**31 rows."""
    return (int((integers >> 32).sum()) << 32) + int((integers & 0xFFFFFFFF).sum())


def refuse_unreleasable_sums(plan: SummedPlan, sums: Sums) -> None:
    """Nothing can be drawn from nobody, or from losses too small; and whoever weighs most keeps her promise."""
    if sums.delivered == 0:
        raise NothingDelivered(f"None of the {plan.active} people with a positive privacy loss delivered data.")
    if not 0 < sums.weight <= 1 << TOTAL_BITS:
        raise ReleaseError("The privacy losses of those who delivered are too small to release anything.")
    # whoever weighs most: OpenDP's own bound, too
    if not noise.loss_bounds([sums.heaviest], scale=math.ldexp(1.0, plan.exponent))[0] <= plan.largest_loss:
        raise ReleaseError("OpenDP's bound on somebody's privacy loss exceeds the promise; nothing was drawn.")


def prepare_summed(plan: SummedPlan, sums: Sums, above: Above | None = None) -> Callable[[str], Release]:
    """Check everything; what is returned only has to draw, under a key. Under a relation ``above`` is needed."""
    refuse_unreleasable_sums(plan, sums)
    scale = math.ldexp(1.0, plan.exponent)

    def draw(key: str) -> Release:
        # shortened before the noise: one datum still moves the floor by at most W_i
        noisy = noise.draw_many([sums.weighted >> DATA_BITS], scale=scale)[0]
        estimate = to_data_units(Fraction(noisy, sums.weight), plan.bounds)
        return Release(estimate=estimate, key=key, **facts_of(plan, sums, *errors_of_sums(plan, sums, above)))

    return draw


def errors_of_sums(plan: SummedPlan, sums: Sums, above: Above | None) -> tuple[ErrorModel, ErrorModel]:
    """How far the estimate may lie from the mean, and how far it might have lain had everybody delivered."""
    return _error(plan, sums, math.ldexp(1.0, plan.exponent), above), plan.planned_error(above)


def facts_of(plan: SummedPlan, sums: Sums, error: ErrorModel, planned: ErrorModel) -> dict[str, Any]:
    """All of a release from sums but what is drawn and under which key."""
    scale = math.ldexp(1.0, plan.exponent)
    return {
        "setting": "central",
        "bounds": plan.bounds,
        "privacy_loss": np.empty(0),
        "error": error,
        "planned_error": planned,
        "grid": Grid(data_bits=DATA_BITS, weight_exponent=plan.exponent, total_weight=sums.weight, noise_scale=scale),
        "check": PromiseCheck(people=sums.delivered, people_in_fractions=0, people_mapped=1, largest_share=sums.share),
        "clamped": sums.clamped,
        "dropped_out": (),
        "versions": versions("central"),
        "summed": Summed(delivered=sums.delivered, dropped_out=sums.dropped_out),
    }


def squared_unit(plan: SummedPlan, sums: Sums) -> Fraction:
    """What one of ``sums.squares`` is as a square of a weight, where these add up to 1."""
    return Fraction(1 << (2 * plan.weight_bits), (1 << _TERM_BITS) * sums.weight**2)


def _error(plan: SummedPlan, sums: Sums, scale: float, above: Above | None) -> ErrorModel:
    """The error that these weights have."""
    width, unit = plan.width, squared_unit(plan, sums)
    bias = _bias(plan, sums.squares * unit, None if above is None else above.delivered, Fraction(sums.weight))
    return ErrorModel(
        sampling_variance=plan.largest_variance * float(sums.spreads * unit),
        squared_steps=width**2 * float(sums.squares * unit),
        largest_step=width * (sums.heaviest / sums.weight),
        largest_noise=width * (scale / sums.weight),
        next_noise=0.0,
        other_noise_squared=0.0,
        rounding=width * (2.0**-DATA_BITS + 2.0**-ESTIMATE_BITS + 2.0 / sums.weight),
        squared_bias=bias.squared,
        largest_bias=bias.largest,
    )


def _bias(plan: SummedPlan, squares: Fraction, heavy: Heavy | None, total: Fraction) -> Bias:
    """The bias of weights with these squares, of whom some are heavy."""
    uneven = unevenness(plan, squares, heavy, total)
    return NO_BIAS if plan.relation is None or uneven is None else bias_of(plan.relation, uneven, plan.width)


def unevenness(plan: SummedPlan, squares: Fraction, heavy: Heavy | None, total: Fraction) -> Unevenness | None:
    """How far such weights are from equal, where price and datum may be related."""
    if plan.relation is None:
        return None
    assert heavy is not None
    roster = plan.relation.roster
    return Unevenness(
        squares=float(max(roster * squares - 1, Fraction(0))),
        excess=float(max(heavy.weight / total - Fraction(heavy.people, roster), Fraction(0))),
    )
