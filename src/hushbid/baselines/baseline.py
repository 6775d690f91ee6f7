"""What every baseline mechanism looks like, and the one place that prices it.

A baseline turns everybody's bid into privacy losses, payments and an error, like a market does. It
decides two things, the losses and everybody's *rent*, what she keeps beyond her cost; the rest is common:

    t_i = β_i·(MSE − V_i) + c_i·ε_i + rent_i,

with the market's own user weights β and variances V ([F] Prop. 1). For a rule under which person i's loss is constant
up to a *critical bid* and 0 above it, the rent that makes the truth best is a rectangle, `step_rents`. What a baseline
claims, that the truth is best (`truthful`) and that nobody is worse off for joining (`voluntary`), is there to be
audited: `hushbid.audit.check_incentives` takes a baseline like any other rule.

A baseline's own parameters (its ε, its price, its number of sellers) are chosen beforehand, optimally for the prior and
the number of people, at a given *error weight*: the money that one squared unit of error costs everybody together.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from hushbid.allocation import Budget, HardBudget, Price
from hushbid.common.arrays import FloatArray, as_floats, as_losses, refuse_rows
from hushbid.errors import BidError, InputError
from hushbid.estimation import WORST_VARIANCE
from hushbid.languages import noted
from hushbid.mechanism import Population
from hushbid.priors import Prior


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Decision:
    """What a baseline decides before payments are worked out."""

    privacy_loss: FloatArray = field(repr=False)
    """Everybody's promised loss."""

    rent: FloatArray = field(repr=False)
    """What each person is paid beyond her cost."""

    mse: float
    """Mean squared error on a data range of width 1, with the variance that the purchase is planned with."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BaselineOutcome:
    """What a baseline buys and pays, in the market's units."""

    name: str
    """The baseline."""

    bids: FloatArray = field(repr=False)
    """Everybody's bid."""

    privacy_loss: FloatArray = field(repr=False)
    """Everybody's promised loss."""

    payments: FloatArray = field(repr=False)
    """What each person is paid."""

    information_rent: FloatArray = field(repr=False)
    """What each person gains over staying out."""

    mse: float
    """Mean squared error of the estimate in squared data units; at worst, where a relation is allowed for."""

    @property
    def total_payment(self) -> float:
        """The sum of all payments."""
        return float(self.payments.sum())

    @property
    def active(self) -> int:
        """How many people sell."""
        return int(np.count_nonzero(self.privacy_loss))


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline(ABC):
    """A whole mechanism to compare ours with; its parameters are fixed before anybody bids."""

    name: ClassVar[str]
    """What it is called in tables."""

    truthful: ClassVar[bool]
    """Whether it claims that the truth is everybody's best bid."""

    voluntary: ClassVar[bool]
    """Whether it claims that nobody is worse off for joining."""

    population: Population
    """The people it buys from, and the market it competes in."""

    @classmethod
    @abstractmethod
    def best(cls, population: Population, *, error_weight: float | None = None) -> Self:
        """The baseline with its parameters chosen for the people's priors; ``error_weight`` replaces the market's."""

    @abstractmethod
    def decide(self, bids: FloatArray) -> Decision:
        """Losses and rents for bids that have been checked."""

    def error(self, bids: FloatArray) -> float:
        """The error alone, on a data range of width 1: quicker than a decision where rents take work."""
        return self.decide(bids).mse

    def scaled(self, factor: float) -> Self | None:
        """This baseline, but buying ``factor`` times the loss from each seller; None if it has no common loss to
        scale."""
        return None

    def acquire(self, bids: ArrayLike) -> BaselineOutcome:
        """Losses, payments and error for everybody's bids."""
        population = self.population
        stated = np.atleast_1d(as_floats(bids, "bids", BidError))
        if stated.shape != (population.people,):
            raise InputError(
                f"bids must have one entry per person ({population.people}), got shape {stated.shape}.",
                field="bids",
            )
        population.virtual_costs(stated)  # refuses what the market would refuse, by row
        made = _checked(self.decide(stated.copy()), self.name, population.people)
        mse = (made.mse - population.bias) * population.unit
        payments = made.rent.copy()
        # t = β·(MSE − V) + c·ε + rent; a loss without limit is no price
        sold = (made.privacy_loss > 0) & (made.privacy_loss < np.inf)
        payments[sold] += stated[sold] * made.privacy_loss[sold]
        if population.cares:
            payments = payments + np.asarray(population.user_weight) * (mse - np.asarray(population.own_error))
        return BaselineOutcome(
            name=self.name,
            bids=stated,
            privacy_loss=made.privacy_loss,
            payments=payments,
            information_rent=made.rent,
            mse=mse,
        )

    @property
    def unit_variance(self) -> float:
        """The common variance on a data range of width 1."""
        return common_variance(self.population)

    def error_of(self, privacy_loss: FloatArray) -> float:
        """The error of the best estimator for given losses, on a data range of width 1.

        If nobody sells, the estimate is the middle of the range, wrong by at most half its width.
        """
        if not privacy_loss.any():
            return WORST_VARIANCE + self.population.bias
        return self.population.best_estimate(privacy_loss)[1]


def _checked(made: Decision, name: str, people: int) -> Decision:
    """A decision of one's own in order: a loss and a rent for everybody, and an error."""
    if not isinstance(made, Decision):
        raise InputError(f"decide of {name!r} must return a Decision, got {type(made).__name__}.", field="baselines")
    losses = as_losses(made.privacy_loss, some_positive=False, name=f"privacy_loss of {name!r}")
    rents = as_floats(made.rent, f"rent of {name!r}")
    for called, column in (("privacy_loss", losses), ("rent", rents)):
        if column.shape != (people,):
            told = f"{called} of {name!r} must have one entry per person ({people}), got shape {column.shape}."
            raise InputError(told, field="baselines")
    refuse_rows(np.isnan(rents), f"rent of {name!r} must be numbers", field="baselines")
    mse = as_floats(made.mse, f"mse of {name!r}")
    if mse.shape != () or not mse >= 0.0:
        raise InputError(f"mse of {name!r} must be one number of at least 0, got {made.mse!r}.", field="baselines")
    return Decision(privacy_loss=losses, rent=rents, mse=float(mse))


def common_variance(population: Population) -> float:
    """The one variance of a market, for a range of width 1; baselines know neither several variances nor several caps,
    nor strata."""
    if population.strata is not None:
        raise InputError("strata must be left out to compare with baselines, which estimate one mean.", field="strata")
    if isinstance(population.variance, np.ndarray):
        told = noted("variance must be one number to compare with baselines, got one per person.")
        raise InputError(told, field="variance")
    if isinstance(population.cap, np.ndarray):
        raise InputError(
            "max_privacy_loss must be one number to compare with baselines, got one per person.",
            field="max_privacy_loss",
        )
    if population.outside_option != "own_data" and population.cares:
        told = noted(
            "outside_option must be 'own_data' to compare with baselines while user_weight is not 0, got 'estimate'."
        )
        raise InputError(told, field="outside_option")
    return population.variance


def unit_error_weight(population: Population, error_weight: float | None) -> float:
    """The error weight for a data range of width 1."""
    common_variance(population)
    weight = population.total_weight if error_weight is None else error_weight
    if not 0.0 < weight < np.inf:
        raise InputError(f"error_weight must be positive and finite, got {error_weight}.", field="error_weight")
    return weight * population.unit


def implied_weight(population: Population, bids: FloatArray) -> float:
    """What an error is worth in the market: as stated, or the price at which such a purchase would be chosen."""
    goal = population.goal
    if isinstance(goal, Price):
        return population.total_weight
    soft = Budget(goal.amount) if isinstance(goal, HardBudget) else goal
    costs = population.virtual_costs(bids)
    return replace(population, goal=soft).allocation(costs).error_weight / population.unit


def step_rents(bids: FloatArray, privacy_loss: FloatArray, critical: ArrayLike) -> FloatArray:
    """The rents of people whose loss is constant up to their critical bid and 0 above it: rectangles."""
    rent = np.zeros(bids.size)
    sold = privacy_loss > 0
    rent[sold] = privacy_loss[sold] * (np.broadcast_to(np.asarray(critical), bids.shape)[sold] - bids[sold])
    return rent


@dataclass(frozen=True, slots=True, kw_only=True)
class AtErrorWeight(Baseline):
    """A baseline whose only parameter is what an error costs."""

    error_weight: float | None = None
    """What one squared data unit of error costs everybody together; None for the goal that the market states."""

    @classmethod
    def best(cls, population: Population, *, error_weight: float | None = None) -> Self:
        """The baseline at the market's error weight, or another."""
        weight = unit_error_weight(population, error_weight) / population.unit
        return cls(population=population, error_weight=weight)

    @property
    def chosen(self) -> Population:
        """The people with that error weight, all of it the buyer's."""
        if self.error_weight is None:
            return self.population
        return replace(self.population, goal=Price(self.error_weight), user_weight=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommonLoss(Baseline):
    """A baseline in which all who sell have one loss."""

    loss: float
    """The privacy loss of each."""

    def scaled(self, factor: float) -> Self:
        """Return this baseline, but buying ``factor`` times the loss from each seller."""
        return replace(self, loss=self.loss * factor)


def best_common_loss(population: Population, error_weight: float, noise: float, expense: float) -> float:
    """The ε that minimises ``error_weight·noise·2/ε² + expense·ε``, at most the cap.

    Where one yes/no question is answered by randomised response, ``coth²(ε/2)/4`` is in the place of ``2/ε²``.
    """
    if population.setting.response:
        return population.setting.sole_loss(error_weight * noise, expense)
    return min(float(np.cbrt(4.0 * error_weight * noise / expense)), population.largest_cap)


def common_error(population: Population, loss: float, noise: float, sampling: float) -> float:
    """The error where all sellers have this loss: ``noise·2/ε²`` and the data's own, which a response has in it."""
    if population.setting.response:
        return float(noise * WORST_VARIANCE / np.tanh(0.5 * loss) ** 2)
    return 2.0 * noise / loss**2 + sampling


@dataclass(frozen=True, slots=True)
class Pool:
    """Everybody's cost as one distribution: the prior, or the mixture of the groups' priors by their size."""

    parts: tuple[tuple[float, Prior], ...]
    """(share of the people, prior)."""

    @classmethod
    def of(cls, population: Population) -> "Pool":
        """The pool of all people."""
        return cls(tuple((group.size / population.people, group.prior) for group in population.groups))

    @property
    def lowest(self) -> float:
        """The smallest cost anybody can have."""
        return min(part.support[0] for _, part in self.parts)

    @property
    def top(self) -> float:
        """The largest cost anybody can have; may be infinite."""
        return max(part.support[1] for _, part in self.parts)

    def accepting(self, price: ArrayLike) -> FloatArray:
        """The chance that a person's cost is at most ``price``."""
        prices = np.atleast_1d(np.asarray(price, dtype=np.float64))
        shares = [share * np.asarray(part.cdf(prices)) for share, part in self.parts]
        return np.asarray(sum(shares), dtype=np.float64)

    def quantile(self, level: ArrayLike) -> FloatArray:
        """The price that a person accepts with chance ``level``."""
        levels = np.atleast_1d(np.asarray(level, dtype=np.float64))
        if len(self.parts) == 1:
            return np.asarray(self.parts[0][1].quantile(levels))
        # between the groups' own quantiles, by bisection
        each = np.stack([np.asarray(part.quantile(levels)) for _, part in self.parts])
        low, high = each.min(axis=0), each.max(axis=0)
        for _ in range(60):
            middle = np.where(np.isfinite(high), 0.5 * (low + np.minimum(high, 1e300)), 2.0 * low + 1.0)
            enough = self.accepting(middle) >= levels
            low, high = np.where(enough, low, middle), np.where(enough, middle, high)
        return np.asarray(high, dtype=np.float64)
