"""The numbers of a record in the form the checks need them: everybody's, on a data range of width 1."""

import math
from dataclasses import dataclass, field

import numpy as np

from hushbid.allocation.goals import Accuracy, Budget, Goal, HardBudget, Price
from hushbid.arrays import BoolArray, FloatArray, IndexArray
from hushbid.mechanism import Market, Outcome, Population
from hushbid.mechanism.setting import CENTRAL
from hushbid.priors import Prior
from hushbid.record import Record
from hushbid.verification.central_by_exclusion import CentralRule
from hushbid.verification.central_by_level import LevelRule
from hushbid.verification.central_under_caps import CappedRule
from hushbid.verification.local_by_count import LocalRule
from hushbid.verification.menu_by_quadrature import MenuFound, SharedRule, shared_menu
from hushbid.verification.quadrature import Rule

CLOSE = 1e-9
"""Recomputed numbers may differ by this part: a thousandth of what must be noticed."""

_KINDS = 400
_PEOPLE = 2000
"""With more people than this, who differ in more than so many ways, rents under caps take too long."""


@dataclass(frozen=True, slots=True, eq=False)
class Facts:
    """A record, taken apart."""

    record: Record
    outcome: Outcome
    market: Market
    population: Population
    """The market for those who reported, on a range of width 1."""

    costs: FloatArray
    losses: FloatArray
    weights: FloatArray
    variance: FloatArray
    """Everybody's variance as the purchase is planned with it: ``V + Nγ²·V̄``, for a range of width 1."""

    own: FloatArray
    """Everybody's variance as declared, for a range of width 1."""

    bias: float
    """``γ²·V̄``: by how much the planned variance overstates the worst error."""

    roster: int
    """``N``, how many people the mean is about."""

    user_weight: FloatArray
    error_weight: float
    """``A``, for a range of width 1."""

    caps: FloatArray
    """The most that everybody may lose: the market's cap, or her own limit if that is less."""

    order: IndexArray
    """Everybody's place in the order in which equals are bought from."""

    _menu: list[MenuFound] = field(default_factory=list)
    """Kept when it was asked for."""

    _rules: dict[float, Rule] = field(default_factory=dict)
    """By error weight, kept likewise."""

    @classmethod
    def of(cls, record: Record) -> "Facts":
        """Everything that the checks use."""
        outcome, market = record.outcome, record.outcome.market
        population, n = outcome.population, outcome.reports.size
        # the worst relation that the market allows for, from its own numbers
        own = np.array(np.broadcast_to(np.asarray(market.stated_variance, dtype=float) / market.width**2, (n,)))
        bias = market.max_relation**2 * float(own.mean())
        roster = n if market.roster is None else market.roster
        return cls(
            record,
            outcome,
            market,
            population,
            outcome.virtual_costs,
            outcome.privacy_loss,
            outcome.weights,
            own + roster * bias,
            own,
            bias,
            roster,
            np.array(population.user_weights()),
            population.error_weight,
            _caps(market, outcome),
            np.arange(n) if outcome.tie_order is None else outcome.tie_order,
        )

    @property
    def cap(self) -> float:
        """Nobody may lose more."""
        return float(self.caps.max())

    @property
    def capped(self) -> bool:
        """Whether the optimum is the one under caps: in version 1 a cap clipped the optimum without it."""
        return self.outcome.version > 1 and bool((self.caps < math.inf).any())

    @property
    def clip(self) -> float:
        """What losses are clipped at besides what the rule says: the cap of version 1."""
        return self.cap if self.outcome.version == 1 else math.inf

    @property
    def people(self) -> int:
        """How many people there are."""
        return int(self.costs.size)

    @property
    def central(self) -> bool:
        """Whether noise is added once, by the platform."""
        return self.population.setting is CENTRAL

    @property
    def bought(self) -> BoolArray:
        """Who is bought from."""
        return self.losses > 0.0

    @property
    def groups(self) -> list[tuple[Prior, IndexArray]]:
        """Priors, and whose each is."""
        return [(group.prior, group.rows) for group in self.population.groups]

    @property
    def goal(self) -> Goal:
        """What the buyer stated; of a survey, the goal of the one number it comes to."""
        return self.population.goal

    @property
    def shared(self) -> bool:
        """Whether people share in a menu, under a hard budget."""
        return isinstance(self.goal, HardBudget)

    @property
    def menu(self) -> MenuFound:
        """That menu, found when it is first asked for."""
        assert isinstance(self.goal, HardBudget)
        if not self._menu:
            terms = (self.outcome.reports, self.costs, self.variance, self.goal.amount, self.goal.coin)
            self._menu.append(shared_menu(self.groups, *terms))
        return self._menu[0]

    @property
    def offset(self) -> float:
        """By how much an objective is below the one with the planned variance, in the objective's unit."""
        if isinstance(self.goal, Price):
            return self.error_weight * self.bias
        return 0.0 if isinstance(self.goal, Accuracy) else self.bias * self.population.unit

    @property
    def wanted(self) -> float:
        """The error that an accuracy allows, with the planned variance and for a range of width 1."""
        return self.goal.number**2 / self.population.unit + self.bias

    def rule(self, error_weight: float | None = None) -> Rule:
        """The optimum as a function of one person's cost, evaluated independently of the solver."""
        weight = self.error_weight if error_weight is None else error_weight
        if weight not in self._rules:
            self._rules[weight] = self._made_rule(weight)
        return self._rules[weight]

    def _made_rule(self, weight: float) -> Rule:
        if self.shared:
            return SharedRule(self.menu.level, self._stated_strength(), self.caps)
        if not self.central and self.variance[0] > 0.0:  # without variance the settings are the same problem
            error = self.wanted if isinstance(self.goal, Accuracy) else None
            cap = self.cap if self.capped else math.inf
            return LocalRule(self.costs, float(self.variance[0]), weight, self.order, error=error, cap=cap)
        if self.capped:
            return self._under_caps(weight)
        if isinstance(self.goal, Accuracy):
            return LevelRule(self.costs, self.variance, error=self.wanted)
        if isinstance(self.goal, Budget):
            return LevelRule(self.costs, self.variance, expense=self.goal.amount)
        return CentralRule(self.costs, self.variance, weight, self.order)

    def rule_of_expense(self) -> Rule:
        """The most accurate purchase for what the recorded losses cost."""
        paid = self.bought & (self.costs > 0.0)
        return CappedRule(self.costs, self.variance, self.caps, expense=float(self.costs[paid] @ self.losses[paid]))

    def _under_caps(self, error_weight: float) -> Rule:
        """The optimum under caps."""
        if isinstance(self.goal, Accuracy):
            return CappedRule(self.costs, self.variance, self.caps, error=self.wanted)
        if isinstance(self.goal, Budget):
            return CappedRule(self.costs, self.variance, self.caps, expense=self.goal.amount)
        return CappedRule(self.costs, self.variance, self.caps, error_weight=error_weight)

    def _stated_strength(self) -> FloatArray:
        """What of the menu everybody gets, by her own loss; where that is cut off, by her share."""
        gap = np.maximum(self.menu.level - self.costs, 0.0)
        stated = (self.losses > 0.0) & (self.losses < self.caps) & (gap > 0.0)
        return np.where(stated, self.losses / np.where(stated, gap, 1.0), self.menu.share * self.menu.strength)


def not_checked(facts: Facts) -> str:
    """Why what would be bought at other reports is not derived a second time; empty if it is."""
    if facts.shared or not facts.capped or facts.people <= _PEOPLE:
        return ""
    kinds = np.unique(np.stack([facts.variance, facts.caps]), axis=1).shape[1]
    many = f"Not checked: more than {_KINDS} different limits or variances, of more than {_PEOPLE} people"
    return many if kinds > _KINDS else ""


def _caps(market: Market, outcome: Outcome) -> FloatArray:
    stated = math.inf if market.max_privacy_loss is None else market.max_privacy_loss
    caps = np.array(np.broadcast_to(np.asarray(stated, dtype=float), outcome.reports.shape))
    return caps if outcome.limits is None else np.minimum(caps, outcome.limits)


def error_of(facts: Facts) -> float:
    """The error of the recorded weights with the noise that the recorded losses need; range of width 1."""
    used = facts.weights > 0.0
    weight, loss, variance = facts.weights[used], facts.losses[used], facts.own[used]
    sampling = float((variance * weight**2).sum())
    with np.errstate(all="ignore"):
        if facts.central:
            return float(2.0 / (loss / weight).min() ** 2) + sampling
        return float(2.0 * ((weight / loss) ** 2).sum()) + sampling


def worst_bias_of(facts: Facts) -> float:
    """The largest squared bias of the recorded weights: ``γ²·V̄·N·Σ (w − 1/N)²`` over the whole roster; width 1."""
    even = 1.0 / facts.roster
    spread = float(((facts.weights - even) ** 2).sum()) + (facts.roster - facts.people) * even**2
    return facts.bias * facts.roster * spread


def planned_error_of(facts: Facts) -> float:
    """The error of the recorded weights with the planned variance; range of width 1."""
    return error_of(facts) + worst_bias_of(facts) + facts.bias


def best_weights(facts: Facts, losses: FloatArray) -> tuple[FloatArray, float]:
    """The best weights for given losses, and the error they have (range of width 1).

    Central: what is used of a loss is ``v_i = min(ε_i, κ/V_i)`` with ``κ Σv = 2 + Σ V v²``, found by bisection.
    """
    variance = facts.variance
    endless = losses == math.inf
    with np.errstate(all="ignore"):
        if not facts.central:
            precision = np.where(losses > 0.0, 1.0 / (variance + 2.0 / losses**2), 0.0)
        elif endless.any():
            # no noise: only those who lose everything are used
            precision = np.where(endless, 1.0 / variance, 0.0)
        else:
            used = used_of(losses, variance)
            weights = used / used.sum()
            return weights, float(2.0 / used.sum() ** 2 + (variance * weights**2).sum())
        if (precision == math.inf).any():
            # data without any error decide alone
            certain = precision == math.inf
            return certain / certain.sum(), 0.0
        return precision / precision.sum(), float(1.0 / precision.sum())


def used_of(losses: FloatArray, variance: FloatArray) -> FloatArray:
    """What the best central estimate uses of given losses, all of them finite."""

    def at(cap: float) -> FloatArray:
        return np.minimum(losses, np.where(variance > 0.0, cap / variance, math.inf))

    def excess(cap: float) -> float:
        used = at(cap)
        return float(cap * used.sum() - 2.0 - (variance * used**2).sum())

    # nobody above the cap: everything is used
    low, high = 0.0, float((variance * losses).max())
    if excess(high) <= 0.0:
        return losses
    for _ in range(200):
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        low, high = (middle, high) if excess(middle) <= 0.0 else (low, middle)
    return at(high)
