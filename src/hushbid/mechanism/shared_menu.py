"""A hard budget: offers that are fixed before anybody bids, and in which people share.

**The offers** of `hushbid.mechanism.menu_offers`, one for each stratum, buy the loss ``ε₀(c)`` from person i at the bid
``c`` for ``t₀(c) = c·ε₀(c) + ∫ from c of ε₀``. On average that costs the budget ``B``; in a campaign it may cost more.
So everybody gets their own share ``s_i`` of it,

    s_i = (B_g − υ·m_i) / (t₀^max_i + Σ_{j≠i} t₀(c_j)),        ε_i = s_i·ε₀(c_i),        t_i = s_i·t₀(c_i),

with the others of their stratum, where ``B_g`` is the stratum's part of the budget, fixed beforehand as well,
``t₀^max_i`` what their offer pays at the lowest bid, ``υ`` the coin that payments are rounded up to and ``m_i`` one
more than the number of others who are paid. Their share does not depend on their bid, so the truth is their best reply;
and ``t₀^max ≥ t₀(c_i)``, so all payments together, rounded up, are at most ``Σ B_g·t₀(c_i)/Σt₀ = B_g`` on every
profile. At most the part ``t₀^max/(t₀^max + Σ t₀)`` of it, and the coins set aside, is left. (Strata that shared one
budget would leave less, but the estimate needs them in proportion: it would be worse.) None of this asks what is
estimated: it holds with strata, in the local setting and with randomised response.

**Caps and limits** ``e_i`` clip after sharing: ``ε_i = min(s_i·ε₀(c_i), e_i)``, and the payment is the envelope's for
that. Shares come from what the others would be paid without them: a person who states a lower limit is paid less and
moves nobody. Then more of the budget may be left.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from hushbid.allocation import Goal, HardBudget
from hushbid.common import numbers
from hushbid.common.arrays import FloatArray, IndexArray
from hushbid.errors import InputError, MarketError
from hushbid.mechanism.menu_offers import MenuTerms, PlannedMenu, planned_menu
from hushbid.mechanism.menu_rents import MenuRents, menu_rents
from hushbid.mechanism.population import Population
from hushbid.payments import Rents

Counts = Sequence[Sequence[int]]
"""How many people of each group are in each stratum."""

Sums = Sequence[Sequence[float]]
"""How much they count."""

_SAFE = 1.0 - 2.0**-48
"""Shares are smaller by this factor, which is more than rounding can add to all payments together."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Listed:
    """What the menu offers at everybody's bid, before it is shared."""

    loss: FloatArray
    """``ε₀``."""

    price: FloatArray
    """``c·ε₀``."""

    rents: Rents
    """The integral of ``ε₀`` over higher bids."""

    payment: FloatArray
    """``t₀``."""

    most: FloatArray
    """``t₀^max``: what each person's menu pays at the lowest bid there is."""

    error: FloatArray
    """How far ``t₀`` may be from exact, whatever each person bids."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Bought:
    """What the shared menu gives everybody."""

    share: FloatArray
    """``s_i``; it does not depend on the person's own bid."""

    loss: FloatArray
    """``ε_i``."""

    payment: FloatArray
    """``t_i``: together at most the budget, also after each is rounded up to the coin."""

    rents: Rents
    """Information rents with their enclosure."""

    error: float
    """The largest possible error of a payment, whatever anybody bids."""


def menu_for(population: Population, people: Counts, counted: Sums) -> PlannedMenu:
    """Return the offers for a population with so many people of each group in each stratum.

    ``counted`` is the sum of their ``1/V`` in the central setting, and how many they are in the local one.
    """
    goal, cap, variance = hard_budget_of(population), population.buyer_cap, population.variance
    weights = np.ones(1) if population.strata is None else np.abs(population.strata.weights)
    strata = tuple(
        (size, tuple((group.prior, *one) for group, one in zip(population.groups, row, strict=True) if one[0]))
        for size, row in zip(weights.tolist(), map(list, map(zip, people, counted)), strict=True)
    )
    curve, amount, most = population.setting.curve, 0.5 * goal.amount**2, math.inf
    if curve is not None:
        amount = goal.amount * math.sqrt(float(np.max(variance)))
    if not isinstance(variance, np.ndarray) and not isinstance(cap, np.ndarray):
        most = cap / float(strength_of(population, np.array(variance)))
    return planned_menu(MenuTerms(amount, strata, curve, most))


def strength_of(population: Population, variance: FloatArray) -> FloatArray:
    """Return what an offer's loss is multiplied by for people with this variance, before it is shared."""
    if population.setting.sends_messages:
        return 1.0 / np.sqrt(variance)
    return 2.0 / hard_budget_of(population).amount / variance


def hard_budget_of(population: Population) -> HardBudget:
    """Return the goal, which is a hard budget."""
    assert population.hard_budget is not None
    return population.hard_budget


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SharedMenu:
    """The menu of some people for a hard budget; nothing in it depends on a bid."""

    goal: HardBudget
    """The amount that is never exceeded, and the coin."""

    amounts: tuple[Fraction, ...]
    """What is never exceeded in each stratum."""

    kinds: tuple[MenuRents, ...]
    """What is offered to each kind of people: those who share a stratum and a prior."""

    strata: IndexArray
    """Everybody's stratum."""

    who: IndexArray
    """Everybody's kind."""

    strength: FloatArray
    """What the offer's loss is multiplied by for each person, before it is shared."""

    @classmethod
    def of(cls, population: Population) -> "SharedMenu":
        """The menu for these people and their hard budget."""
        variance = np.broadcast_to(np.asarray(population.variance, dtype=float), (population.people,))
        strata = population.parts.codes
        groups, many = population.group_codes, len(population.groups)
        people = population.counts()
        counted: Sums = people
        if not population.setting.sends_messages:
            who = strata * many + groups
            counted = [
                [math.fsum(1.0 / variance[who == stratum * many + group]) for group in range(many)]
                for stratum in range(len(people))
            ]
        menu = menu_for(population, people, counted)
        return cls.planned(population, menu, people, strata, groups, strength_of(population, variance))

    @classmethod
    def planned(
        cls,
        population: Population,
        menu: PlannedMenu,
        people: Counts,
        strata: IndexArray,
        groups: IndexArray,
        strength: FloatArray,
    ) -> "SharedMenu":
        """The planned menu for some of so many people in each stratum and group."""
        goal, sizes = hard_budget_of(population), [sum(one) for one in people]
        refuse_too_small(goal, sum(sizes))
        # a coin for everybody is set aside in their own stratum
        coin = _exact(goal.coin)
        left = _exact(goal.amount) - coin * sum(sizes)
        parts = [Fraction(part) for part in menu.parts]
        return cls(
            goal=goal,
            amounts=tuple(coin * size + left * part / sum(parts) for size, part in zip(sizes, parts, strict=True)),
            kinds=tuple(
                menu_rents(group.prior, one, population.tolerance) for one in menu.offers for group in population.groups
            ),
            strata=strata,
            who=strata * len(population.groups) + groups,
            strength=strength,
        )

    # -- everybody -----------------------------------------------------------------------------------------------------

    def bought(self, bids: FloatArray, costs: FloatArray, limits: float | FloatArray = math.inf) -> Bought:
        """What everybody gives up and is paid; ``limits``, one or one per person, clip the losses."""
        listed = self.listed(bids, costs)
        share = self.shares(listed)
        rent = _scaled(listed.rents, share)
        loss, payment, error = share * listed.loss, share * listed.payment, share * listed.error
        # a limit takes effect after sharing
        limit = np.broadcast_to(np.asarray(limits, dtype=float), loss.shape)
        clipped = np.flatnonzero(loss > limit)
        if clipped.size:
            loss = np.minimum(loss, limit)
            rent = self._clipped(share * self.strength, limit, clipped, bids, rent)
            paid = bids[clipped] * loss[clipped] + rent.estimate[clipped]
            payment[clipped] = np.minimum(paid, payment[clipped])  # never more than without the limit
        self._confirm(payment)
        return Bought(share=share, loss=loss, payment=payment, rents=rent, error=max(float(error.max()), rent.error))

    def listed(self, bids: FloatArray, costs: FloatArray) -> Listed:
        """What the menu offers at these bids, whose virtual costs are ``costs``."""
        loss, price, lower, upper, estimate, most, error = (np.zeros(bids.size) for _ in range(7))
        for rows, kind in self._people():
            loss[rows], price[rows], found = kind.at(bids[rows], costs[rows])
            lower[rows], upper[rows], estimate[rows] = found.lower, found.upper, found.estimate
            most[rows], error[rows] = kind.most, kind.error
        strength = self.strength
        unit = Rents(lower=lower, upper=upper, estimate=estimate)
        return Listed(
            loss=strength * loss,
            price=strength * price,
            rents=_scaled(unit, strength),
            payment=np.minimum(strength * (price + estimate), strength * most),
            most=strength * most,
            error=strength * error,
        )

    def _people(self) -> Iterator[tuple[IndexArray | slice, MenuRents]]:
        """Everybody, by kind."""
        if len(self.kinds) == 1:
            yield slice(None), self.kinds[0]
            return
        for place, kind in enumerate(self.kinds):
            rows = np.flatnonzero(self.who == place)
            if rows.size:
                yield rows, kind

    def shares(self, listed: Listed) -> FloatArray:
        """``s_i`` of everybody, from the others' entries only (and in the last digits, which are on the safe side)."""
        totals = []
        for stratum in range(len(self.amounts)):
            paid = listed.payment if len(self.amounts) == 1 else listed.payment[self.strata == stratum]
            totals.append((math.fsum(paid), int(np.count_nonzero(paid))))
        return self.shares_from(listed, totals)

    def shares_from(self, listed: Listed, totals: Sequence[tuple[float, int]]) -> FloatArray:
        """``s_i`` of some people, where the menu would pay so much to so many people of each stratum."""
        paid = listed.payment > 0.0
        # the budget less a coin for everybody who is paid, and for the person themselves if they were
        left = np.array(
            [[self._spendable(g, count), self._spendable(g, count + 1)] for g, (_, count) in enumerate(totals)]
        )
        amount = left[self.strata, np.where(paid, 0, 1)]
        # their own entry is replaced by the largest: added as a difference, so that nothing falls below the total
        together = np.array([total for total, _ in totals])[self.strata] + (listed.most - listed.payment)
        share = np.ones(paid.size)  # if the menu pays nobody, all that it buys is free
        np.divide(_SAFE * amount, together, out=share, where=together > 0.0)
        return share

    def share_of(self, row: int, bids: FloatArray, costs: FloatArray) -> float:
        """``s_i`` of one person; their own bid does not matter."""
        return float(self.shares(self.listed(bids, costs))[row])

    # -- one person ----------------------------------------------------------------------------------------------------

    def curve(self, row: int, share: float, z: FloatArray, limit: float = math.inf) -> tuple[FloatArray, FloatArray]:
        """Loss and payment of one person at bids ``z``, their share as the others' bids make it."""
        kind, strength = self.kinds[self.who[row]], share * float(self.strength[row])
        loss, price, found = kind.at(z, np.asarray(kind.prior.virtual_cost(z)))
        loss, payment = strength * loss, np.minimum(strength * (price + found.estimate), strength * kind.most)
        clipped = np.flatnonzero(loss > limit)
        if clipped.size:
            strengths, limits = (np.full(clipped.size, number) for number in (strength, limit))
            paid = z[clipped] * limit + kind.clipped(z[clipped], strengths, limits).estimate
            payment[clipped] = np.minimum(paid, payment[clipped])
        return np.minimum(loss, limit), payment

    # -- inside --------------------------------------------------------------------------------------------------------

    def _clipped(
        self, strength: FloatArray, limit: FloatArray, clipped: IndexArray, bids: FloatArray, before: Rents
    ) -> Rents:
        """The rents with those of clipped people replaced."""
        lower, upper, estimate = before.lower.copy(), before.upper.copy(), before.estimate.copy()
        for place, kind in enumerate(self.kinds):
            rows = clipped[self.who[clipped] == place]
            found = kind.clipped(bids[rows], strength[rows], limit[rows])
            lower[rows], upper[rows], estimate[rows] = found.lower, found.upper, found.estimate
        return Rents(lower=lower, upper=upper, estimate=estimate)

    def _spendable(self, stratum: int, coins: int) -> float:
        """A stratum's part of the budget less so many coins, rounded down."""
        left = self.amounts[stratum] - coins * _exact(self.goal.coin)
        return math.nextafter(float(left), 0.0) if left > 0 else 0.0

    def _confirm(self, payment: FloatArray) -> None:
        coins = whole_coins(payment, self.goal.coin) if self.goal.coin else 0
        spent_within(self.goal, coins=coins, total=Fraction(math.fsum(payment)))


def spent_within(goal: HardBudget, *, coins: int, total: Fraction) -> None:
    """The promise, before anything is promised: all payments, each rounded up, in whole coins if there are any."""
    spent = coins * _exact(goal.coin) if goal.coin else total
    if spent > (_exact(goal.amount) if goal.coin else Fraction(goal.amount)):
        raise MarketError("The payments would exceed the hard budget; nothing is promised. This is an error of ours.")


def whole_coins(payment: FloatArray, coin: float) -> int:
    """At least as many coins as all payments together take, each of them rounded up."""
    paid = payment[payment > 0.0]
    return sum(int(count) + 1 for count in np.floor(paid / coin * (1.0 + 2.0**-50)).tolist())


def _scaled(found: Rents, factor: FloatArray) -> Rents:
    return Rents(
        lower=factor * found.lower,
        upper=factor * found.upper,
        estimate=factor * found.estimate,
    )


def _exact(amount: float) -> Fraction:
    """An amount of money as it is written: 0.01 is a hundredth."""
    return Fraction(repr(amount))


def people_paid_in_coins(goal: Goal) -> float:
    """How many people a goal can have: under a hard budget fewer than it has coins, as payments are rounded up."""
    if not isinstance(goal, HardBudget) or goal.coin == 0.0:
        return math.inf
    return math.ceil(_exact(goal.amount) / _exact(goal.coin)) - 1


def refuse_too_small(goal: HardBudget, people: int) -> None:
    """Refuse a budget that rounding payments up to coins could exceed."""
    if people > people_paid_in_coins(goal):
        raise InputError(
            f"a hard budget must be more than one coin of {goal.coin:g} for each of {numbers.people(people)}, as"
            f" payments are rounded up, got {goal.amount:g}.",
            field="amount",
        )
