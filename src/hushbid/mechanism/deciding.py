"""From everybody's bid to everybody's privacy loss and payment.

The losses are the best for the goal among those that no cap forbids; the payment is
``t_i = β_i·(MSE − outside_i) + c_i·ε_i + ∫ ε_i`` over higher bids (mechanism.md §6).
"""

import math
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from hushbid.allocation import Accuracy, Allocation, HardBudget, Price, ReplyRule, precedence
from hushbid.common.arrays import FloatArray, IndexArray, spread
from hushbid.disclosure.promises import refuse_unreleasable
from hushbid.errors import NobodyToBuyFrom
from hushbid.mechanism.decision import Decision
from hushbid.mechanism.impossible import refuse_impossible, refuse_without_sellers
from hushbid.mechanism.in_memory import ManyPeople
from hushbid.mechanism.many import MANY, Priced, SummedPurchase, rows_by_stratum
from hushbid.mechanism.people import TieKey, keys_of
from hushbid.mechanism.population import Population
from hushbid.mechanism.shared_menu import SharedMenu
from hushbid.payments import EvenBounds, RentBounds, Rents, rents, rents_of_alike, rounding
from hushbid.priors import Prior

_SAMPLE = 256


def decide(
    population: Population, bids: FloatArray, costs: FloatArray | None = None, tie_key: TieKey = None
) -> Decision:
    """How much privacy each person gives up and what they are paid; ``costs`` are the virtual costs, if known."""
    if costs is None:
        costs = population.virtual_costs(bids)
    if isinstance(population.goal, HardBudget):
        return _shared(population, bids, costs, tie_key)
    try:
        refuse_impossible(population, costs)
        many = ManyPeople.of(population, bids, costs)
        bought = None if many is None else many.buy()
        if bought is not None:
            return _bought_from_many(population, bids, costs, tie_key, *bought)
        few = None if many is None else many.few()
        if few is not None:
            return _bought_from_few(population, bids, costs, tie_key, *few)
        return _bought_one_by_one(population, bids, costs, tie_key)
    except NobodyToBuyFrom:  # a decision too, unless somebody has to live with the error or counts on its size
        if population.cares or isinstance(population.goal, Accuracy) or population.strata is not None:
            raise
        return _nothing_bought(bids, costs)


def _nothing_bought(bids: FloatArray, costs: FloatArray) -> Decision:
    """Everybody's bid is above their prior's support: nobody is bought from, nobody is paid."""
    zero = np.zeros(bids.size)
    return Decision(
        bids=bids,
        virtual_costs=costs,
        privacy_loss=zero,
        weights=zero,
        payments=zero,
        information_rent=zero,
        rent_bounds=(zero, zero),
        outside_error=zero,
        mse=math.inf,
        worst_mse=math.inf,
        objective=math.inf,
        incentive_error=0.0,
        tie_order=None,
    )


def _bought_one_by_one(population: Population, bids: FloatArray, costs: FloatArray, tie_key: TieKey) -> Decision:
    allocation = population.allocation(costs, tie_key)
    loss, weights = allocation.privacy_loss, allocation.weights
    bought = np.flatnonzero(loss > 0.0)
    mse, worst = population.errors_of(allocation)
    refuse_unreleasable(population.setting.hardest_to_release(loss[bought]))
    # c·ε; zero times infinity is nothing
    named = bids[bought]
    price = np.zeros(bought.size)
    np.multiply(named, loss[bought], out=price, where=named > 0.0)
    # β·(MSE − outside): what the estimate is worth to them, as one number where it is everybody's
    outside = population.outside_errors(costs)
    share, care = np.zeros(()), 0.0
    if population.cares:
        without = outside[:1] if outside.strides == (0,) else outside  # one number that stands for all
        share = np.asarray(population.user_weight) * (mse - without)
        care = float((np.asarray(population.user_weight) * (mse + without)).max())
    # the integral
    rule = population.rule(costs, tie_key)
    slack = _slack(population, costs, allocation, care, rule, bought)
    integrals = _Integrals(population, bids, bought, price, rule, slack)
    rent, error = integrals.enclosed(population.tolerance)
    payments, rents_of_all = _spread(bids.size, bought, price, rent, share)
    largest = max(float(payments.max()), -float(payments.min()))
    if error > population.tolerance * largest and care > 0.0:  # what people pay has eaten up their payments
        gross = max(float((price + rent.estimate).max()), 0.0)
        part = max(0.9 * largest / gross, 0.01) if gross > 0.0 else 1.0
        rent, error = integrals.enclosed(part * population.tolerance)
        payments, rents_of_all = _spread(bids.size, bought, price, rent, share)
    return Decision(
        bids=bids,
        virtual_costs=costs,
        privacy_loss=loss,
        weights=weights,
        payments=payments,
        information_rent=rents_of_all,
        rent_bounds=RentBounds(people=bids.size, rows=bought, lower=rent.lower, upper=rent.upper),
        outside_error=outside,
        mse=mse,
        worst_mse=worst,
        objective=population.objective_of(allocation),
        incentive_error=2.0 * error,
        tie_order=precedence(tie_key),
    )


def _bought_from_many(
    population: Population,
    bids: FloatArray,
    costs: FloatArray,
    tie_key: TieKey,
    purchase: SummedPurchase,
    priced: Priced,
) -> Decision:
    """Losses by a formula and rents by curves, as on engines."""
    refuse_unreleasable(purchase.largest_loss)
    with np.errstate(invalid="ignore"):
        payments = bids * priced.loss
    np.copyto(payments, 0.0, where=priced.loss == 0.0)  # an infinite bid times no loss is nothing
    payments += priced.rent
    outside: FloatArray = np.broadcast_to(np.asarray(purchase.outside), bids.shape)
    if population.cares:
        outside = outside + priced.outside if priced.outside.size else outside
        payments += np.asarray(population.user_weight) * (purchase.mse - outside)
    error = purchase.schedule_error + purchase.rent_error
    bounds = EvenBounds(rents=priced.rent, losses=priced.loss, error=error)
    return Decision(
        bids=bids,
        virtual_costs=costs,
        privacy_loss=priced.loss,
        weights=priced.weight,
        payments=payments,
        information_rent=priced.rent,
        rent_bounds=bounds,
        outside_error=outside,
        mse=purchase.mse,
        worst_mse=purchase.worst_mse,
        objective=purchase.objective,
        incentive_error=2.0 * bounds.widest,
        tie_order=precedence(tie_key),
    )


def _bought_from_few(
    population: Population,
    bids: FloatArray,
    costs: FloatArray,
    tie_key: TieKey,
    few: Population,
    rows: IndexArray,
) -> Decision:
    """From the few who can matter, who are a market by themselves; everybody else is idle."""
    made = _bought_one_by_one(few, bids[rows], costs[rows], keys_of(tie_key, rows))
    bounds, outside = made.rent_bounds, population.own_errors()
    assert isinstance(bounds, RentBounds)
    loss, weights, rents, payments = spread(
        bids.size, rows, made.privacy_loss, made.weights, made.information_rent, made.payments
    )
    if population.cares:
        payments = np.asarray(population.user_weight) * (made.mse - outside)
        payments[rows] = made.payments
    return replace(
        made,
        bids=bids,
        virtual_costs=costs,
        privacy_loss=loss,
        weights=weights,
        payments=payments,
        information_rent=rents,
        rent_bounds=replace(bounds, people=bids.size, rows=rows[bounds.rows]),
        outside_error=outside,
        tie_order=precedence(tie_key),
    )


def _spread(
    people: int, bought: IndexArray, price: FloatArray, rent: Rents, share: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Everybody's payment and rent: whoever is not bought from has neither price nor rent."""
    payments, rents_of_all = spread(people, bought, price + rent.estimate, rent.estimate)
    payments += share
    return payments, rents_of_all


def _shared(population: Population, bids: FloatArray, costs: FloatArray, tie_key: TieKey) -> Decision:
    """Under a hard budget people share in one menu; the estimate makes the best of what it buys."""
    found = SharedMenu.of(population).bought(bids, costs, population.cap)
    if population.strata is None and not found.loss.any():
        return _nothing_bought(bids, costs)
    if population.strata is not None:
        sold = population.strata.codes[found.loss > 0.0]
        refuse_without_sellers(population, np.bincount(sold, minlength=population.strata.count))
    refuse_unreleasable(population.setting.hardest_to_release(found.loss[found.loss > 0.0]))
    weights, planned = population.best_estimate(found.loss)
    worst = population.worst_error(planned)
    mse = worst if population.bias == 0.0 else population.unrelated_error(found.loss, weights)
    return Decision(
        bids=bids,
        virtual_costs=costs,
        privacy_loss=found.loss,
        weights=weights,
        payments=found.payment,
        information_rent=found.rents.estimate,
        rent_bounds=(found.rents.lower, found.rents.upper),
        outside_error=population.outside_errors(costs),
        mse=mse * population.unit,
        worst_mse=worst * population.unit,
        objective=worst * population.unit,
        incentive_error=2.0 * found.error,
        tie_order=precedence(tie_key),
    )


def _slack(
    population: Population,
    costs: FloatArray,
    allocation: Allocation,
    care: float,
    rule: ReplyRule,
    bought: IndexArray,
) -> float:
    """By how much the rounding of losses can change a payment."""
    if bought.size == 0:
        return 0.0
    # under caps levels lose their digits beside the costs: over all bids at which somebody sells, as z ≤ ψ(z) ≤ τ
    blurred = 0.0
    if population.has_caps:
        dearest = float(costs[bought].max())
        blurred = rule.at(bought[:1], costs[bought[:1]]).blur * min(
            max(group.prior.support[1] for group in population.groups), 2.0 * dearest
        )
    if not isinstance(population.goal, Price):
        return blurred + _level_slack(population, costs, rule, bought)
    weights = allocation.weights
    return blurred + max(
        rounding(
            loss_rounding=population.setting.loss_rounding,
            error_weight=allocation.error_weight * square,
            variance=float(np.min(population.variance)),
            objective=allocation.objective,
            # their part of their stratum's weight
            largest_weight=_largest(weights[rows]) / math.sqrt(square),
            top=group.prior.support[1],
            cap=float(np.max(population.cap)),
            care=care,
        )
        for group in population.groups
        for square, rows in population.kinds()
    )


def _largest(weights: FloatArray) -> float:
    return max(float(weights.max()), -float(weights.min()))


def _level_slack(population: Population, costs: FloatArray, rule: ReplyRule, bought: IndexArray) -> float:
    """The same for an accuracy or a budget: a person is paid at most the top of their support times their largest loss.

    Of many people those stand for all who are evenly spaced by cost, and twice their largest loss for everybody's.
    """
    most = 0.0
    for group, (_, members) in product(population.groups, population.kinds()):
        low, top = group.prior.smallest_bid, group.prior.support[1]
        rows = _members(members, _members(group.rows, bought, costs.size), costs.size)
        factor = 1.0
        if rows.size > _SAMPLE:
            places = np.linspace(0, rows.size - 1, _SAMPLE).astype(np.intp)
            rows, factor = rows[np.argpartition(costs[rows], places)[places]], 2.0
        if rows.size and top < math.inf:  # else the enclosure of the integral is far wider
            loss = rule.at(rows, np.full(rows.size, float(group.prior.virtual_cost(low)))).loss
            most = max(most, factor * top * float(loss.max()))
    return population.setting.loss_rounding * most


def _members(members: IndexArray, bought: IndexArray, people: int) -> IndexArray:
    """Those of some people who are bought from."""
    return bought if members.size == people else members[np.isin(members, bought, assume_unique=True)]


@dataclass(frozen=True, slots=True)
class _Integrals:
    """The information rents of those who are bought from; nobody else has one."""

    population: Population
    bids: FloatArray
    bought: IndexArray
    price: FloatArray
    """Of those who are bought from."""

    rule: ReplyRule
    slack: float

    def enclosed(self, tolerance: float) -> tuple[Rents, float]:
        """The rents, and the largest possible error."""
        population, n = self.population, self.bought.size
        lower, upper, estimate, error = np.zeros(n), np.zeros(n), np.zeros(n), 0.0
        for group in population.groups:
            rows = _members(group.rows, self.bought, self.bids.size)
            for some in self._kinds(group.prior, rows):
                places = slice(None) if some is self.bought else np.searchsorted(self.bought, some)
                found = self._rents(group.prior, some, self.price[places], tolerance)
                # the enclosure, wider by what losses are rounded by
                found = replace(found, lower=found.lower - self.slack, upper=found.upper + self.slack)
                lower[places], upper[places], estimate[places] = found.lower, found.upper, found.estimate
                error = max(error, found.error)
        return Rents(lower=lower, upper=upper, estimate=estimate), error

    def _rents(self, prior: Prior, rows: IndexArray, price: FloatArray, tolerance: float) -> Rents:
        bids = self.bids[rows]
        if self._differ_by_bids(prior) and rows.size > self._many:
            return rents_of_alike(self.rule, prior, rows, bids, paid_besides=price, tolerance=tolerance)
        return rents(self.rule, prior, rows, bids, alike=self._alike(rows), paid_besides=price, tolerance=tolerance)

    @property
    def _many(self) -> int:
        """More people than this are priced by a curve; locally sooner, as strata divide an accuracy for each pair."""
        return MANY if not self.population.identity_decides else MANY >> 3

    def _differ_by_bids(self, prior: Prior) -> bool:
        """Whether people of one group and stratum differ by nothing that matters but their bids.

        Identity decides between equal virtual costs, which matters to a rent where a range of bids has the same one.
        """
        population = self.population
        return not (population.identity_decides and prior.flat_parts) and not any(
            isinstance(value, np.ndarray) for value in (population.own_error, population.cap)
        )

    def _kinds(self, prior: Prior, rows: IndexArray) -> list[IndexArray]:
        """People of one group by stratum, if those of a stratum are many; all together otherwise."""
        strata = self.population.strata
        if strata is None or not self._differ_by_bids(prior) or rows.size <= self._many:
            return [rows]
        parts = [rows[which] for which in rows_by_stratum(strata.codes[rows], strata.count)]
        few = [part for part in parts if part.size <= self._many]
        return [*(part for part in parts if part.size > self._many), *([np.sort(np.concatenate(few))] if few else [])]

    def _alike(self, rows: IndexArray) -> FloatArray | IndexArray | None:
        """Who faces the same rule at the same bid: not where identity, variance, cap or stratum matters."""
        if self.population.identity_decides:
            return rows
        strata = self.population.strata
        values = (self.population.own_error, self.population.cap, None if strata is None else strata.codes)
        kinds = [value[rows] for value in values if isinstance(value, np.ndarray)]
        if len(kinds) < 2:
            return kinds[0] if kinds else None
        return np.unique(np.stack(kinds), axis=1, return_inverse=True)[1].reshape(-1)
