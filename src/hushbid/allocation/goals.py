"""What a buyer states: what an error is worth to her, how accurate she must be, or what she may spend.

The cheapest ways to every error are one curve, the frontier of error against money (`hushbid.allocation.pieces`). The
four goals are four ways to choose a point on it.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, ClassVar

from hushbid.common.arrays import as_count, as_nonnegative, as_number
from hushbid.errors import InputError

_LARGEST = 1e50
"""What is stated is squared and multiplied; far beyond all money and data that would overflow."""


@dataclass(frozen=True, slots=True)
class Goal(ABC):
    """One of the four goals."""

    kind: ClassVar[str]
    """What it is called in records."""

    @property
    def number(self) -> float:
        """What is stated: the first field."""
        number: float = getattr(self, fields(self)[0].name)
        return number

    @property
    def costs_money(self) -> bool:
        """Whether what is minimised is an amount of money; else it is a squared error."""
        return True

    @property
    @abstractmethod
    def words(self) -> str:
        """The goal in words, after "The goal is"."""

    def to_dict(self) -> dict[str, Any]:
        """The goal as plain values that `goal_from_dict` reads back."""
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        return {"kind": self.kind} | {name: list(v) if isinstance(v, tuple) else v for name, v in values.items()}

    def _positive(self, name: str) -> None:
        number = as_number(getattr(self, name), name)
        if not 0.0 < number < math.inf:
            raise InputError(f"{name} must be positive and finite, got {number:g}.", field=name)
        if not 1.0 / _LARGEST <= number <= _LARGEST:
            raise InputError(f"{name} must be from {1.0 / _LARGEST:g} to {_LARGEST:g}, got {number:g}.", field=name)
        object.__setattr__(self, name, number)

    def _coin(self) -> None:
        coin = as_number(getattr(self, "coin"), "coin")  # noqa: B009
        if not 0.0 <= coin < math.inf:
            raise InputError(f"coin must be 0 or a positive amount of money, got {coin:g}.", field="coin")
        object.__setattr__(self, "coin", coin)


@dataclass(frozen=True, slots=True)
class Price(Goal):
    """A price for the error, as in the paper: the purchase minimises what error and privacy cost together.

    >>> Price(100).buyer_weight
    100.0
    """

    buyer_weight: float
    """What one unit of squared error costs the buyer, in money per squared data unit."""

    kind: ClassVar[str] = "price"

    @property
    def words(self) -> str:
        return f"the least cost together, at {self.buyer_weight:g} per unit of squared error"

    def __post_init__(self) -> None:
        object.__setattr__(self, "buyer_weight", as_nonnegative(self.buyer_weight, "buyer_weight", per_person=False))


@dataclass(frozen=True, slots=True)
class Accuracy(Goal):
    """An accuracy that is kept in every campaign, for as little money as possible."""

    standard_error: float | tuple[float, ...] | Mapping[str, float]
    """The root mean squared error of the estimate, in data units; at worst, where a relation is allowed for. In a
    survey one for each question, in their order; of stratum means one for each stratum, by its name or in their order
    (a market keeps them in order)."""

    kind: ClassVar[str] = "accuracy"

    @property
    def number(self) -> float:
        """The one standard error."""
        if isinstance(self.standard_error, (tuple, Mapping)):
            told = f"standard_error must be one number here, got {len(self.standard_error)}."
            raise InputError(told, field="standard_error")
        return self.standard_error

    @property
    def targets(self) -> tuple[float, ...]:
        """What is stated, for each question or stratum."""
        if isinstance(self.standard_error, Mapping):
            return tuple(self.standard_error.values())
        return self.standard_error if isinstance(self.standard_error, tuple) else (self.standard_error,)

    @property
    def words(self) -> str:
        if isinstance(self.standard_error, (tuple, Mapping)):
            each = ", ".join(f"{one:g}" for one in self.targets)
            return f"standard errors of at most {each}, in this order, for as little money as possible"
        return f"a standard error of {self.standard_error:g} for as little money as possible"

    def times(self, factor: float) -> "Accuracy":
        """The same goal with every standard error so many times as large."""
        return Accuracy(tuple(one * factor for one in self.targets))

    def __post_init__(self) -> None:
        stated: object = self.standard_error
        if isinstance(stated, Mapping) and stated:
            found = {str(name): Accuracy(one).number for name, one in stated.items()}
            object.__setattr__(self, "standard_error", found)
            return
        if not isinstance(stated, (tuple, list)):
            self._positive("standard_error")
            return
        if not stated:
            raise InputError("standard_error must be positive and finite, got none.", field="standard_error")
        each = tuple(Accuracy(one).number for one in stated)
        object.__setattr__(self, "standard_error", each if len(each) > 1 else each[0])


@dataclass(frozen=True, slots=True)
class PlannedPrice:
    """A price of the error that was planned so that a budget is met on average."""

    price: float
    """What one unit of squared error costs, in money per squared data unit."""

    mean: float
    """What campaigns cost at this price, on average over the draws it was planned with."""

    standard_error: float
    """How far that mean may be from the expected cost: the standard error of the draws."""

    markets: int
    """How many campaigns were drawn."""

    def __post_init__(self) -> None:
        for name in ("price", "mean", "standard_error"):
            number = as_number(getattr(self, name), name)
            if not 0.0 <= number < math.inf or (name == "price" and number == 0.0):
                raise InputError(f"{name} of a planned price must be positive and finite, got {number:g}.", field=name)
            object.__setattr__(self, name, number)
        object.__setattr__(self, "markets", as_count(self.markets, "markets", least=2))

    @property
    def words(self) -> str:
        """The price and what it comes to."""
        return (
            f"by a price of {self.price:.6g} per unit of squared error, planned for payments of {self.mean:.6g} on"
            f" average (standard error {self.standard_error:.2g})"
        )


@dataclass(frozen=True, slots=True)
class Budget(Goal):
    """An amount that all payments come to on average over bids, for as small an error as possible.

    >>> Budget(2000, coin=0.01, reserve=3.5).available
    1996.5
    """

    amount: float
    """The expected total payment, in money; with a coin, of the payments rounded up."""

    coin: float = 0.0
    """The smallest coin, to which every payment is rounded up; 0 if payments are not rounded."""

    reserve: float | None = None
    """What rounding is expected to add, so much of the amount is kept for it. None until the number of people is
    known: a market computes it (`hushbid.mechanism.rounding`)."""

    planned: PlannedPrice | None = field(default=None, repr=False)
    """The price that meets the budget on average where no exact rule is truthful. None elsewhere, and until a market
    has planned it for a roster (`hushbid.mechanism.planned_price`)."""

    kind: ClassVar[str] = "budget"

    @property
    def costs_money(self) -> bool:
        return self.planned is not None

    @property
    def available(self) -> float:
        """What the decision spends on average before payments are rounded: the amount less the reserve."""
        return self.amount - (self.reserve or 0.0)

    @property
    def words(self) -> str:
        how = "" if self.planned is None else f", {self.planned.words}"
        return f"the least error for payments of {self.amount:.12g} on average over what people may bid{how}"

    def to_dict(self) -> dict[str, Any]:
        found = super(Budget, self).to_dict()
        del found["planned"]
        return found if self.planned is None else {**found, "planned": asdict(self.planned)}

    def __post_init__(self) -> None:
        self._positive("amount")
        self._coin()
        if isinstance(self.planned, Mapping):
            object.__setattr__(self, "planned", _planned_from(self.planned))
        if self.reserve is None:
            object.__setattr__(self, "reserve", None if self.coin > 0.0 else 0.0)
            return
        reserve = as_number(self.reserve, "reserve")
        if not 0.0 <= reserve < self.amount or (reserve > 0.0 and self.coin == 0.0):
            told = "reserve must be 0 without a coin, and from 0 up to the amount with one"
            raise InputError(f"{told}, got {reserve:g}.", field="reserve")
        object.__setattr__(self, "reserve", reserve)


@dataclass(frozen=True, slots=True)
class HardBudget(Goal):
    """An amount that all payments together never exceed, whatever people bid."""

    amount: float
    """The most that is paid, in money."""

    coin: float = 0.0
    """The smallest coin, to which every payment is rounded up; 0 if payments are not rounded."""

    kind: ClassVar[str] = "hard_budget"

    @property
    def costs_money(self) -> bool:
        return False

    @property
    def words(self) -> str:
        return f"a small error for payments of at most {self.amount:.12g} together, whatever people bid"

    def __post_init__(self) -> None:
        self._positive("amount")
        self._coin()


GOALS: dict[str, type[Goal]] = {goal.kind: goal for goal in (Price, Accuracy, Budget, HardBudget)}
"""The goals by the names they have in records."""


STATED: dict[str, type[Goal]] = {
    "buyer_weight": Price,
    "budget": Budget,
    "standard_error": Accuracy,
    "hard_budget": HardBudget,
}
"""The goals by the names they have where a buyer states one number: in files, on the command line, on a server."""


def name_of(goal: Goal) -> str:
    """The name under which a buyer states a goal.

    >>> name_of(Budget(5))
    'budget'
    """
    return next(name for name, kind in STATED.items() if isinstance(goal, kind))


def goal_named(name: str, number: float | tuple[float, ...], *, coin: float = 0.0) -> Goal:
    """The goal that a buyer states by its name in `STATED`; budgets are paid in whole coins.

    >>> goal_named("hard_budget", 2000, coin=0.01)
    HardBudget(amount=2000.0, coin=0.01)
    """
    try:
        given = (number, coin) if name in ("budget", "hard_budget") else (number,)
        return STATED[name](*given)
    except InputError as problem:
        told = str(problem).replace(f"{problem.field} must", f"{name} must", 1)
        raise InputError(told, field=name) from None


def goal_from_dict(values: object) -> Goal:
    """The inverse of `Goal.to_dict`."""
    if not isinstance(values, Mapping) or values.get("kind") not in GOALS:
        raise InputError(f"a goal must be a mapping with a kind, one of {', '.join(GOALS)}.", field="goal")
    goal = GOALS[values["kind"]]
    names = [one.name for one in fields(goal)]
    given = {name: value for name, value in values.items() if name != "kind"}
    if goal is Budget:
        given.setdefault("planned", None)
    if sorted(given) != sorted(names):
        raise InputError(f"a goal of kind {goal.kind} has the fields {', '.join(names)}.", field="goal")
    return goal(**given)


def _planned_from(values: Mapping[str, Any]) -> PlannedPrice:
    names = [one.name for one in fields(PlannedPrice)]
    if sorted(values) != sorted(names):
        raise InputError(f"a planned price has the fields {', '.join(names)}.", field="goal")
    return PlannedPrice(**values)
