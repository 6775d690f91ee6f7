"""The numbers of a record in the form the checks need them: everybody's, on a data range of width 1."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from hushbid.allocation.goals import Accuracy, Budget, Goal, HardBudget, Price
from hushbid.common.arrays import BoolArray, FloatArray, IndexArray
from hushbid.estimation import Strata
from hushbid.mechanism import Market, Outcome, Population
from hushbid.mechanism.setting import CENTRAL
from hushbid.priors import Prior
from hushbid.questions import YesNo
from hushbid.record import Record
from hushbid.verification.central_rule import CentralRule
from hushbid.verification.kkt import Conditions, Purchase
from hushbid.verification.local_curve import COIN, LAPLACE
from hushbid.verification.local_rule import LocalRule, SeparateRule
from hushbid.verification.menu_by_quadrature import MenuCase, MenuFound, SharedRule, shared_menu
from hushbid.verification.strata_weights import best_contrast, constant_of, squared_distance
from hushbid.verification.work import BoundedRule, Rule, Work

CLOSE = 1e-9
"""Recomputed numbers may differ by this part: a thousandth of what must be noticed."""

_BLURRED = 1e-6
"""Below this ``V·ε²`` fewer digits are left than are compared."""


@dataclass(frozen=True, slots=True, eq=False)
class Facts:
    """A record, taken apart."""

    record: Record
    outcome: Outcome
    market: Market
    population: Population
    """The market for those who bid, on a range of width 1."""

    costs: FloatArray
    losses: FloatArray
    weights: FloatArray
    variance: FloatArray
    """Everybody's variance as the purchase is planned with it: ``V + Nγ²·V̄``, for a range of width 1."""

    own: FloatArray
    """Everybody's variance as declared, for a range of width 1."""

    bias: float
    """``γ²·V̄``, for a range of width 1."""

    roster: int
    """``N``, how many people the mean is about."""

    strata: Strata | None
    """Everybody's stratum, and the combination of means that is wanted; None where one mean is."""

    counts: tuple[int, ...]
    """``N_g``, how many people of each stratum the means are about."""

    user_weight: FloatArray
    error_weight: float
    """``A``, for a range of width 1."""

    caps: FloatArray
    """The most that everybody may lose: the market's cap, or her own limit if that is less."""

    order: IndexArray
    """Everybody's place in the order in which equals are bought from."""

    complete: bool = False
    """Whether everybody's rents are to be computed, however long that takes."""

    _menu: list[MenuFound] = field(default_factory=list)
    """Kept when it was asked for."""

    _rules: dict[float, BoundedRule] = field(default_factory=dict)
    """By error weight, kept likewise."""

    _work: Work = field(default_factory=Work)
    """What their evaluations come to."""

    @classmethod
    def of(cls, record: Record, *, complete: bool = False) -> "Facts":
        """Take a record apart."""
        outcome, market = record.outcome, record.outcome.market
        population, n = outcome.population, outcome.bids.size
        # the worst relation that the market allows for, from its own numbers
        own = np.array(np.broadcast_to(np.asarray(market.stated_variance, dtype=float) / market.width**2, (n,)))
        bias = market.max_correlation**2 * float(own.mean())
        strata = market.stratified
        stated = market.population
        if strata is None:
            counts: tuple[int, ...] = (n if market.roster is None else market.roster,)
        elif isinstance(stated, Mapping):
            counts = tuple(stated[name] for name in strata.names)
        else:
            counts = tuple(np.bincount(strata.codes, minlength=strata.count).tolist())
        roster = sum(counts)
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
            strata,
            counts,
            np.array(population.user_weights()),
            population.error_weight,
            _caps(market, outcome),
            np.arange(n) if outcome.tie_order is None else outcome.tie_order,
            complete,
            _work=Work(n, unbounded=complete),
        )

    @property
    def cap(self) -> float:
        """Nobody may lose more."""
        return float(self.caps.max())

    @property
    def capped(self) -> bool:
        """Whether the optimum is the one under caps."""
        return bool((self.caps < math.inf).any())

    @property
    def people(self) -> int:
        """How many people there are."""
        return int(self.costs.size)

    @property
    def central(self) -> bool:
        """Whether noise is added once, by the platform."""
        return self.population.setting is CENTRAL

    @property
    def by_coin(self) -> bool:
        """Whether one yes/no question is asked in the local setting: then a coin decides who tells the truth."""
        asked = self.market.survey or ()
        return self.market.setting == "local" and len(asked) == 1 and isinstance(asked[0], YesNo)

    @property
    def bought(self) -> BoolArray:
        """Who is bought from."""
        return self.losses > 0.0

    @property
    def blurred(self) -> bool:
        """Whether noise is so large that neither solver nor verification knows losses to `CLOSE` by the second way.

        The conditions of an optimum compare ``V·ε²`` with 2: so many digits fewer than a double has are left.
        """
        sold = self.bought & (self.losses < math.inf)
        return bool(sold.any()) and float((self.variance[sold] * self.losses[sold] ** 2).max()) < _BLURRED

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
            cap = self.market.max_privacy_loss
            case = MenuCase(
                groups=self.groups,
                codes=self.codes,
                sizes=self.sizes,
                bids=self.outcome.bids,
                costs=self.costs,
                variance=self.variance,
                amount=self.goal.amount,
                coin=self.goal.coin,
                cap=math.inf if cap is None or np.ndim(cap) else float(cap),  # type: ignore[arg-type]
                curve=None if self.central else COIN if self.by_coin else LAPLACE,
            )
            self._menu.append(shared_menu(case))
        return self._menu[0]

    @property
    def offset(self) -> float:
        """By how much an objective is below the one with the planned variance, in the objective's unit."""
        if isinstance(self.goal, Price):
            return self.error_weight * self.constant
        return 0.0 if isinstance(self.goal, Accuracy) else self.constant * self.population.unit

    @property
    def wanted(self) -> float:
        """The error that an accuracy allows, with the planned variance and for a range of width 1."""
        return self.goal.number**2 / self.population.unit + self.constant

    @property
    def constant(self) -> float:
        """By how much the planned variance overstates the worst error, for a range of width 1."""
        return self.bias if self.strata is None else self.bias * constant_of(self.strata, self.counts)

    @property
    def codes(self) -> IndexArray:
        """Everybody's stratum; all are in one where there are none."""
        return np.zeros(self.people, dtype=np.intp) if self.strata is None else self.strata.codes

    @property
    def sizes(self) -> FloatArray:
        """``|ℓ_g|`` of every stratum; 1 where there are none."""
        return np.ones(1) if self.strata is None else np.abs(self.strata.weights)

    @property
    def level(self) -> float:
        """``Σ ℓ_g``: what the estimate is if all data are 1, on a range from 0 to 1."""
        return 1.0 if self.strata is None else math.fsum(self.strata.weights.tolist())

    @property
    def kinds(self) -> FloatArray:
        """Rows of numbers in which people differ who face different rules: variances, caps, strata."""
        return np.stack([self.variance, self.caps, self.codes])

    def range_of(self, low: float, high: float) -> tuple[float, float]:
        """Between which values the truth lies if data lie between these."""
        signed = np.ones(1) if self.strata is None else self.strata.weights
        return float(np.minimum(signed * low, signed * high).sum()), float(
            np.maximum(signed * low, signed * high).sum()
        )

    def rule(self, error_weight: float | None = None) -> BoundedRule:
        """The optimum as a function of one person's cost, evaluated independently of the solver."""
        weight = self.error_weight if error_weight is None else error_weight
        if weight not in self._rules:
            self._rules[weight] = BoundedRule(self._made_rule(weight), self._work)
        return self._rules[weight]

    def _made_rule(self, weight: float) -> Rule:
        if self.shared:
            return SharedRule(self.menu, self._stated_strength(), self.caps, self.costs)
        if self.central:
            if isinstance(self.goal, Accuracy):
                return self.central_rule(error=self.wanted)
            if isinstance(self.goal, Budget):
                return self.central_rule(expense=self.goal.available)
            return self.central_rule(error_weight=weight)
        if self.strata is None:
            return self._local_rule(slice(None), weight, self.wanted if isinstance(self.goal, Accuracy) else None)
        return SeparateRule(self.costs, self.strata, lambda rows, size: self._local_rule(rows, weight * size**2, None))

    def central_rule(self, **goal: float) -> CentralRule:
        """Return the central optimum for a goal by one person's cost."""
        return CentralRule(self.costs, self.variance, self.caps, self.codes, self.sizes, **goal)

    def _local_rule(self, rows: IndexArray | slice, weight: float, error: float | None) -> LocalRule:
        """The local optimum among these people."""
        return LocalRule(
            self.costs[rows],
            float(self.variance[0]),
            weight,
            self.order[rows],
            error=error,
            cap=self.cap if self.capped else math.inf,
            curve=COIN if self.by_coin else LAPLACE,
        )

    @property
    def purchase(self) -> Purchase:
        """Return what was bought, as the conditions of an optimum look at it."""
        return Purchase(self.costs, self.variance, self.caps, self.codes, self.sizes, self.losses)

    @property
    def zero_cost_purchase(self) -> Purchase:
        """Return the same where those of zero cost alone meet an error: as if they, and nobody else, asked for 1."""
        return replace(self.purchase, costs=np.where(self.costs == 0.0, 1.0, math.inf))

    def multipliers(self) -> tuple[float, float]:
        """Return what the error and the expense are worth at the stated purchase; central, see `kkt`."""
        bought = self.purchase
        if isinstance(self.goal, Price):
            return self.error_weight, 1.0
        if isinstance(self.goal, Accuracy) and bought.expense == 0.0:
            return Conditions(self.zero_cost_purchase).multipliers()
        if isinstance(self.goal, Budget) and bought.expense < self.goal.available * (1.0 - CLOSE):
            return 1.0, 0.0
        return Conditions(bought).multipliers()

    def _stated_strength(self) -> FloatArray:
        """What of the menu everybody gets, by her own loss; where that is cut off, by her share."""
        offered = self.menu.offered(np.arange(self.people), self.costs)
        stated = (self.losses > 0.0) & (self.losses < self.caps) & (offered > 0.0)
        return np.where(stated, self.losses / np.where(stated, offered, 1.0), self.menu.share * self.menu.strength)


def _caps(market: Market, outcome: Outcome) -> FloatArray:
    stated = math.inf if market.max_privacy_loss is None else market.max_privacy_loss
    caps = np.array(np.broadcast_to(np.asarray(stated, dtype=float), outcome.bids.shape))
    if outcome.limits is None:
        return caps
    # a limit of 0 takes a person out by an infinite cost
    found: FloatArray = np.minimum(caps, np.where(outcome.limits > 0.0, outcome.limits, math.inf))
    return found


def error_of(facts: Facts) -> float:
    """The error of the recorded weights with the noise that the recorded losses need; range of width 1."""
    used = facts.weights != 0.0
    weight, loss, variance = np.abs(facts.weights[used]), facts.losses[used], facts.own[used]
    sampling = float((variance * weight**2).sum())
    with np.errstate(all="ignore"):
        if facts.central:
            return float(2.0 / (loss / weight).min() ** 2) + sampling
        if facts.by_coin:
            return float((weight**2 * spread_by_coin(loss)).sum())
        return float(2.0 * ((weight / loss) ** 2).sum()) + sampling


def worst_bias_of(facts: Facts) -> float:
    """The largest squared bias of the recorded weights: ``γ²·V̄·N·Σ (w − 1/N)²`` over the whole roster; width 1."""
    if facts.strata is not None:
        return facts.bias * facts.roster * squared_distance(facts.weights, facts.strata, facts.counts)
    even = 1.0 / facts.roster
    spread = float(((facts.weights - even) ** 2).sum()) + (facts.roster - facts.people) * even**2
    return facts.bias * facts.roster * spread


def planned_error_of(facts: Facts) -> float:
    """The error of the recorded weights with the planned variance; range of width 1."""
    return error_of(facts) + worst_bias_of(facts) + facts.constant


def spread_by_coin(losses: FloatArray) -> FloatArray:
    """The most that an answer by coin varies, made unbiased: it lies ``(e^ε + 1)/(e^ε − 1)`` apart for yes and no."""
    with np.errstate(all="ignore"):
        lies = np.exp(-losses)
        return np.asarray(((1.0 + lies) / -np.expm1(-losses)) ** 2 / 4.0)


def best_weights(facts: Facts, losses: FloatArray) -> tuple[FloatArray, float]:
    """The best weights for given losses, and the error they have (range of width 1).

    Central: what is used of a loss is ``v_i = min(ε_i, κ/V_i)`` with ``κ Σv = 2 + Σ V v²``, found by bisection.
    """
    variance = facts.variance
    if facts.strata is not None:
        return _best_of_strata(facts, losses, facts.strata)
    endless = losses == math.inf
    with np.errstate(all="ignore"):
        if facts.by_coin:
            precision = np.where(losses > 0.0, 1.0 / spread_by_coin(losses), 0.0)
        elif not facts.central:
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


def _best_of_strata(facts: Facts, losses: FloatArray, strata: Strata) -> tuple[FloatArray, float]:
    """The same for a combination of strata."""
    variance = facts.variance
    endless = losses == math.inf
    if facts.central and not endless.any():
        weights, strength = best_contrast(losses, variance, strata)
        return weights, float(2.0 / strength**2 + (variance * weights**2).sum())
    with np.errstate(all="ignore"):
        noise = np.where(endless, 0.0, math.inf) if facts.central else 2.0 / losses**2
        spread = spread_by_coin(losses) if facts.by_coin else variance + noise
        precision = np.where(losses > 0.0, 1.0 / spread, 0.0)
        each = np.bincount(strata.codes, weights=precision, minlength=strata.count)
        weights = precision * (strata.weights / each)[strata.codes]
        return weights, float((strata.weights**2 / each).sum())


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
