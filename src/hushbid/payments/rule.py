"""What is needed of a rule, and what comes out: rents with their enclosure."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from hushbid.common.arrays import FloatArray, IndexArray

ROUNDING = 16.0 * np.finfo(float).eps
_BLOCK = 1 << 15
_RENT_ROUNDING = 1e-13
"""The losses that rents are integrals of are right to this relative error."""


class Replies(Protocol):
    """Potential and loss at each of many (person, virtual cost) pairs."""

    @property
    def value(self) -> FloatArray: ...
    @property
    def loss(self) -> FloatArray: ...


class RuleWithPotential(Protocol):
    """A monotone rule in terms of the virtual cost, with its potential."""

    def at(self, rows: IndexArray, costs: FloatArray, /) -> Replies:
        """What happens if person ``rows[j]`` had virtual cost ``costs[j]`` (``inf``: were not there)."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rents:
    """Information rents with their enclosure."""

    lower: FloatArray = field(repr=False)
    """No rent is below this."""

    upper: FloatArray = field(repr=False)
    """No rent is above this."""

    estimate: FloatArray = field(repr=False)
    """The value used for payments: inside the enclosure, and usually much closer to the truth than its ends."""

    @property
    def error(self) -> float:
        """The largest possible distance of an estimate from the truth."""
        if self.estimate.size == 0:
            return 0.0
        return float(np.maximum(self.upper - self.estimate, self.estimate - self.lower).max())


def rounding(
    *,
    loss_rounding: float,
    error_weight: float,
    variance: float,
    objective: float,
    largest_weight: float,
    top: float,
    cap: float,
    care: float,
) -> float:
    """By how much rounding can change what a person is paid, whatever they bid; 0 under an unbounded prior.

    Two bounds on what price and rent come to at any bid z, as ψ(z) ≥ z: ``∫ (4A/z)^{1/3} dz``, since from nobody
    more is bought than they would sell alone; and the objective ``J`` without them, since by parts price and rent are
    at most what they save. ``J ≤ objective/(1 − w)²`` if the others keep what they sell. The price alone is also at
    most ``A·MSE²/(2V) ≤ J²/(2AV)``: in both settings the optimality condition says so. ``care`` is what the error of
    the estimate, inside and outside, costs the person who cares most, and losses are right to the relative
    ``loss_rounding``.
    """
    if not top < np.inf:
        return 0.0  # there the enclosure of the integral is far wider
    # what they would sell alone; what they save the others; the optimality condition
    alone = min(1.5 * (4.0 * error_weight) ** (1.0 / 3.0) * top ** (2.0 / 3.0), cap * top)
    without = objective / (1.0 - largest_weight) ** 2 if largest_weight < 1.0 else np.inf
    price = without * (without / (2.0 * error_weight * variance))
    most: float = loss_rounding * (min(alone, price) + care) + _RENT_ROUNDING * min(alone, without)
    return most


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RentBounds:
    """The lower and the upper ends of everybody's enclosure, two arrays: each is made when it is asked for.

    Whoever is not bought from has no rent, so only the others' are kept: of millions these are few.
    """

    people: int
    """How many there are."""

    rows: IndexArray = field(repr=False)
    """Who is bought from."""

    lower: FloatArray = field(repr=False)
    """Their lower ends."""

    upper: FloatArray = field(repr=False)
    """Their upper ends."""

    def __len__(self) -> int:
        return 2

    def __getitem__(self, end: int) -> FloatArray:
        found = np.zeros(self.people)
        found[self.rows] = (self.lower, self.upper)[end]
        return found

    def __iter__(self) -> Iterator[FloatArray]:
        return iter((self[0], self[1]))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EvenBounds:
    """The lower and the upper ends of enclosures that are equally wide for everybody who is bought from."""

    rents: FloatArray = field(repr=False)
    """Everybody's estimate."""

    losses: FloatArray = field(repr=False)
    """Everybody's privacy loss: who has none has no rent."""

    error: float
    """How far an estimate may be from the truth."""

    def __len__(self) -> int:
        return 2

    def __getitem__(self, end: int) -> FloatArray:
        away = (-self.error, self.error)[end]
        return np.where(self.losses > 0.0, self.rents + away, 0.0)

    def __iter__(self) -> Iterator[FloatArray]:
        return iter((self[0], self[1]))

    @property
    def widest(self) -> float:
        """The largest distance of an end from its estimate, as both are rounded."""
        found = 0.0
        for start in range(0, self.rents.size, _BLOCK):
            rents, sold = self.rents[start : start + _BLOCK], self.losses[start : start + _BLOCK] > 0.0
            ends = (rents + self.error) - rents, rents - (rents - self.error)
            found = max(found, *(float(np.where(sold, one, 0.0).max()) for one in ends))
        return found
