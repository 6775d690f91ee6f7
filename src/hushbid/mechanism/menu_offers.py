"""The offers of a hard budget: how much loss a menu buys at each virtual cost, fixed before anybody bids.

A buyer who knows people by their priors only plans the purchase of a large market. What a person of stratum g is
offered is then a function of their own virtual cost ``x``, with one number for the stratum:

    central   ε₀(x) = (2u/B)·(λ_g − x)⁺, u = 1/V;          λ_g is a water level,
    local     the y = ε₀·√V with the largest P_g·q(y) − x·y;    P_g is a price of precision,

never more than the cap, where there is one for all. The strata's numbers are in the proportion of an optimum,

    central   Σ over g of E[ε₀] = |ℓ_g|·η,                 one noise for all strata (one-problem.md §2),
    local     √P_g·Σ over g of E[q] ∝ |ℓ_g|,               ``ℓ_g²/Λ_g²`` is the price of precision in stratum g,

and what all of them cost on average, rents included, ``Σ E[ψ·ε₀(ψ)]``, is the budget. If caps keep that below the
budget, everybody is offered their cap. What a stratum's offer costs is its part of the budget. With several strata, and
locally, where that would buy from hardly anybody, the number is raised until three sellers are expected in the stratum,
or 95 % of its people if they are fewer.

**Expectations** are integrals without a density. The unit of loss that is bought at virtual costs up to ``x`` has the
price ``p(x)``, the largest bid with that virtual cost, and is sold with probability ``F(p)``. By the envelope theorem
its expected virtual cost is ``p·F(p)``. So both expectations are sums of such *layers*, also for ironed and stepped
virtual costs. Neither truth nor the budget depend on the last digits of an offer, as it is fixed before anybody bids.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from hushbid.allocation.precision import Curve as PrecisionCurve
from hushbid.common.arrays import FloatArray
from hushbid.errors import MarketError
from hushbid.priors import Prior
from hushbid.priors.curves import Curve, fit
from hushbid.priors.tables import integrals

_HALVINGS = 0.5 ** np.arange(64.0)
_FINEST, _PRECISION = 1e-15, 1e-12
_MOST_DOUBLINGS = 2200
_NOTHING = 1e-15
"""A virtual cost that is this part of the highest bought is none: what more is bought below it does not count."""

_TOP = 1.0 - 2.0**-20
"""Where a prior has no highest bid, a cap is offered up to this quantile at most."""

_EVERYTHING = 1.0 - 1e-12
"""Nobody is offered to lose more than what supplies this part of a datum, not even at no cost."""

_LEAST = 1e-280
_ALL = 1.0 - 1e-12
"""If a budget is more than this part of what all caps cost, everybody is offered their cap."""

_BELOW = 1.0 - 1e-9
"""Prices of precision are lower by this factor than those that cost the budget: where losses jump, rounding must not
decide who is just worth their cost."""

_SELLERS, _MOST_OF_FEW = 3.0, 0.95
"""So many sellers are expected in a stratum at least, or this part of its people."""

Kinds = tuple[tuple[Prior, int, float], ...]
"""The priors of a stratum, with how many people have each and how much they count: as many, or the sum of ``1/V``."""


@dataclass(frozen=True, slots=True)
class WaterLevel:
    """Central: ``min((λ − x)⁺, most)``, of which everybody has a multiple; a loss supplies itself."""

    level: float
    most: float = math.inf
    """The loss is nowhere larger."""

    first = (0.0, 0.0)
    """Loss and supply at the end, where they may jump from nothing."""

    @property
    def end(self) -> float:
        """Nothing is bought at a higher virtual cost."""
        return self.level

    def loss(self, costs: FloatArray) -> FloatArray:
        """Return the loss at virtual costs: it does not rise."""
        return np.clip(self.level - costs, 0.0, self.most)

    supply = loss
    """What the losses at virtual costs bring the estimate."""

    def value(self, costs: FloatArray) -> FloatArray:
        """Return the value function: 0 at the end, with the loss as its slope."""
        # a parabola up to the most, from there a straight line
        gap = np.maximum(self.level - costs, 0.0)
        short = np.minimum(gap, self.most)
        return -short * (gap - 0.5 * short)

    def cost_of(self, loss: FloatArray) -> FloatArray:
        """Return the highest virtual cost at which at least this loss, which is at most `most`, is bought."""
        return self.level - loss

    def slopes(self, costs: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return how fast loss and supply fall at virtual costs where neither jumps nor is at its most."""
        one = np.ones(costs.size)
        return one, one


@dataclass(frozen=True, slots=True)
class PrecisionPrice:
    """Local, in normal form: the loss with the largest ``P·q(y) − x·y``, which is none above ``P·max q(y)/y``; what it
    answers is called as of a `WaterLevel`.
    """

    price: float
    curve: PrecisionCurve
    most: float = math.inf

    @property
    def first(self) -> tuple[float, float]:
        enough = self.curve.enough
        most = self._precision_of(self.most)
        # where even the cap supplies less than is worth most, it is all or nothing
        return (self.most, most) if most < enough else (float(self.curve.loss(np.array(enough))), enough)

    @property
    def end(self) -> float:
        loss, precision = self.first
        return self.price * precision / loss

    def loss(self, costs: FloatArray) -> FloatArray:
        bought = costs <= self.end
        with np.errstate(divide="ignore"):
            ratio = np.minimum(np.where(bought, costs, 0.0) / self.price, self.curve.steepest)
            high = np.minimum(
                np.where(ratio > 0.0, self.curve.high_root(np.where(ratio > 0.0, ratio, 1.0)), math.inf), self.most
            )
        return np.where(bought, np.maximum(high, self.first[0]), 0.0)

    def supply(self, costs: FloatArray) -> FloatArray:
        loss = self.loss(costs)
        return np.where(loss > 0.0, self.curve.precision(np.where(loss > 0.0, loss, 1.0)), 0.0)

    def value(self, costs: FloatArray) -> FloatArray:
        loss = self.loss(costs)
        spent = np.zeros(loss.size)
        np.multiply(costs, loss, out=spent, where=(loss > 0.0) & (costs > 0.0))
        return np.minimum(spent - self.price * self.supply(costs), 0.0)

    def cost_of(self, loss: FloatArray) -> FloatArray:
        with np.errstate(divide="ignore"):
            slope = 1.0 / self.curve.steepness(self.curve.precision(np.maximum(loss, self.first[0])))[0]
        return np.where(loss > self.first[0], self.price * slope, self.end)

    def slopes(self, costs: FloatArray) -> tuple[FloatArray, FloatArray]:
        supply = self.curve.change(self.curve.high_root(costs / self.price)) / costs
        return supply * self.price / costs, supply

    def _precision_of(self, loss: float) -> float:
        return 1.0 if loss == math.inf else float(self.curve.precision(np.array(loss)))


Offer = WaterLevel | PrecisionPrice
"""A loss for each virtual cost, nonincreasing."""


# -- what an offer comes to on average ---------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def _sales(prior: Prior, doublings: int) -> tuple[Curve, Curve]:
    """Return ``F(p(x))`` and ``p(x)·F(p(x))`` as curves in the virtual cost."""
    start, scale = _start_and_scale(prior)
    end = start + scale * 2.0**doublings
    flats = np.array([cost for _, _, cost in prior.flat_parts] + [float(prior.virtual_cost(prior.support[1]))])
    breaks = np.concatenate([start + (end - start) * _HALVINGS, [start], flats[(flats > start) & (flats < end)]])

    def sold(costs: FloatArray) -> FloatArray:
        return np.asarray(prior.cdf(np.asarray(prior.virtual_cost_inverse(costs))))

    def paid(costs: FloatArray) -> FloatArray:
        return np.asarray(prior.virtual_cost_inverse(costs)) * sold(costs)

    most = sold(np.array([end])), paid(np.array([end]))
    close = [(_FINEST * float(one[0]), _PRECISION * float(one[0])) for one in most]
    return fit(sold, breaks.tolist(), allowed=lambda: close[0]), fit(paid, breaks.tolist(), allowed=lambda: close[1])


@lru_cache(maxsize=256)
def _start_and_scale(prior: Prior) -> tuple[float, float]:
    """Return the lowest virtual cost, and how far virtual costs spread, about."""
    return float(prior.virtual_cost(prior.support[0])), max(float(prior.quantile(0.5)), 1e-300)


@lru_cache(maxsize=256)
def _steps(prior: Prior) -> tuple[FloatArray, FloatArray]:
    """Return the virtual costs of a stepped prior and how likely each is."""
    ends = np.array([right for _, right, _ in prior.flat_parts])
    chances = np.diff(np.asarray(prior.cdf(ends)), prepend=0.0)
    return np.array([cost for _, _, cost in prior.flat_parts]), chances


def expected_supply(prior: Prior, offer: Offer) -> float:
    """Return ``E[supply]`` of an offer, for costs drawn from the prior."""
    return _expected(prior, offer, 0)


def expected_expense(prior: Prior, offer: Offer) -> float:
    """Return ``E[ψ·loss]`` of an offer, for costs drawn from the prior."""
    return _expected(prior, offer, 1)


def _expected(prior: Prior, offer: Offer, which: int) -> float:
    """Return a mean: a finite sum, or layers from the lowest cost, or where losses are at their most, to the end."""
    if prior.is_stepped:
        costs, chances = _steps(prior)
        if which == 0:
            return math.fsum(chances * offer.supply(costs))
        paid = costs > 0.0
        return math.fsum(chances[paid] * costs[paid] * offer.loss(costs[paid]))
    start, scale = _start_and_scale(prior)
    end = offer.end
    if not start < end:
        return 0.0
    sold = _sales(prior, 4 * math.ceil(max(math.log2((end - start) / scale), 0.0) / 4.0))[which]
    low = max(start, _NOTHING * end, 0.0 if offer.most == math.inf else float(offer.cost_of(np.array([offer.most]))[0]))
    jump = offer.first[1 - which] * float(sold(np.array([end]))[0])
    edges = np.concatenate([[low], sold.breaks[(sold.breaks > low) & (sold.breaks < end)], [end]])
    pieces = integrals(lambda costs: sold(costs) * offer.slopes(costs)[1 - which], edges[:-1], edges[1:])
    return jump + float(pieces.sum())


# -- planning ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MenuTerms:
    """What offers are planned from: public facts only."""

    amount: float
    """The budget, in the unit in which the strata's people count."""

    strata: tuple[tuple[float, Kinds], ...]
    """``|ℓ_g|`` of each stratum, with its priors."""

    curve: PrecisionCurve | None
    """The noise that people add themselves; None in the central setting."""

    most: float
    """The cap in the unit of an offer's loss; infinite if there is none for all."""

    def offer(self, number: float) -> Offer:
        """Return the offer with a water level, or a price of precision."""
        if self.curve is None:
            return WaterLevel(number, self.most)
        return PrecisionPrice(number, self.curve, min(self.most, float(self.curve.loss(np.array(_EVERYTHING)))))

    def expense(self, stratum: int, number: float) -> float:
        """Return what a stratum's offer costs on average."""
        offer = self.offer(number)
        return math.fsum(count * expected_expense(prior, offer) for prior, _, count in self.strata[stratum][1])

    def balance(self, stratum: int, number: float) -> float:
        """Return what is the same in all strata at an optimum; it rises with the number."""
        size, kinds = self.strata[stratum]
        offer = self.offer(number)
        supply = math.fsum(count * expected_supply(prior, offer) for prior, _, count in kinds)
        return supply / size * (1.0 if self.curve is None else math.sqrt(number))

    @property
    def largest_expense(self) -> float:
        """What all caps cost: everybody is paid the top of their support."""
        return sum(count * prior.support[1] * self.most for _, kinds in self.strata for prior, _, count in kinds)

    def full(self, stratum: int) -> float:
        """Return the number at which everybody of a stratum is offered their cap; infinite if there is none."""
        if self.most == math.inf:
            return math.inf
        tops = (
            prior.support[1] if prior.support[1] < math.inf else prior.quantile(_TOP)
            for prior, *_ in self.strata[stratum][1]
        )
        top = max(
            float(prior.virtual_cost(bid)) for bid, (prior, *_) in zip(tops, self.strata[stratum][1], strict=True)
        )
        if self.curve is None:
            return top + self.most
        return top / float(self.offer(1.0).cost_of(np.array([self.most]))[0])

    def enough(self, stratum: int) -> float:
        """Return the number from which on some sellers are to be expected in a stratum; 0 for one central mean."""
        if self.curve is None and len(self.strata) == 1:
            return 0.0
        kinds = self.strata[stratum][1]
        wanted = min(_SELLERS, _MOST_OF_FEW * sum(people for _, people, _ in kinds))

        def sellers(number: float) -> float:
            prices = (
                (prior, people, float(prior.virtual_cost_inverse(self.offer(number).end))) for prior, people, _ in kinds
            )
            return math.fsum(people * float(prior.cdf(price)) for prior, people, price in prices)

        return _number(sellers, wanted, min(_start_and_scale(prior)[1] for prior, *_ in kinds)) / _BELOW


@dataclass(frozen=True, slots=True)
class PlannedMenu:
    """Offers, and how strata share the budget."""

    offers: tuple[Offer, ...]
    """Of each stratum."""

    parts: tuple[float, ...]
    """Each stratum's part of the budget, together 1."""


@lru_cache(maxsize=256)
def planned_menu(terms: MenuTerms) -> PlannedMenu:
    """Return the offer of each stratum; together they cost the budget on average, or more to have some sellers."""
    priors = [prior for _, kinds in terms.strata for prior, *_ in kinds]
    start = max(min(float(prior.quantile(0.5)) for prior in priors), 1e-300)
    if max(prior.support[1] for prior in priors) == 0.0:
        raise MarketError("A budget cannot be spent where nobody's privacy costs anything: every prior is 0.")
    # the stratum whose caps bind last leads, the others follow by what is the same in all of them
    sizes = [math.fsum(count for *_, count in kinds) / size for size, kinds in terms.strata]
    lead = sizes.index(max(sizes)) if terms.most < math.inf else 0

    full = [terms.full(stratum) for stratum in range(len(terms.strata))]
    lower = 1.0 if terms.curve is None else _BELOW

    def numbers(number: float) -> list[float]:
        shared = terms.balance(lead, number) if len(terms.strata) > 1 else 0.0
        return [
            number
            if stratum == lead
            else lower * _number(lambda one, g=stratum: terms.balance(g, one), shared, number, most)  # type: ignore[misc]
            for stratum, most in enumerate(full)
        ]

    def expense(number: float) -> float:
        return math.fsum(terms.expense(stratum, one) for stratum, one in enumerate(numbers(number)))

    wanted = min(terms.amount, _ALL * terms.largest_expense)
    found = numbers(lower * _number(expense, wanted, start, full[lead]))
    spent = [terms.expense(stratum, one) for stratum, one in enumerate(found)]
    found = [max(one, terms.enough(stratum)) for stratum, one in enumerate(found)]
    if not any(spent):  # all that is bought is free
        spent = [sum(people for _, people, _ in kinds) for _, kinds in terms.strata]
    return PlannedMenu(tuple(map(terms.offer, found)), tuple(one / math.fsum(spent) for one in spent))


def _number(function: Callable[[float], float], wanted: float, start: float, most: float = math.inf) -> float:
    """Return where a nondecreasing function of a positive number comes to what is wanted; the most if it never does."""
    from scipy.optimize import brentq  # late: slow to import

    low = high = min(start, most)
    if function(high) >= wanted:
        for _ in range(_MOST_DOUBLINGS):
            low = 0.5 * high
            if function(low) < wanted or low < _LEAST:
                break
            high = low
    else:
        for _ in range(_MOST_DOUBLINGS):
            low, high = high, min(2.0 * high, most)
            if function(high) >= wanted or high >= min(most, 1e300):
                break
    if not function(low) < wanted <= function(high):
        return low if function(low) >= wanted else high
    found: float = brentq(lambda number: function(number) - wanted, low, high, xtol=1e-300, rtol=1e-14, maxiter=5000)
    return found
