"""A hard budget at any size: everybody's share of one menu, from exact sums.

The menu of :mod:`hushbid.mechanism.shared_menu` is fixed before anybody bids, so what it would pay each person is a
function of their own bid. Their share of it takes two numbers more, ``Σ t₀`` and how many are paid: one pass of exact
sums. A second one adds up what everybody is promised, confirms the budget in whole coins and finds whether the best
estimate uses all of every loss. If not, it uses ``min(ε, κ)`` with

    V·Σ_{ε<κ} ε·(κ − ε) = 2,

whose left side rises with ``κ``: buckets of losses say where it lies, and a last pass brings the sums below and every
loss between. The estimate's error, and a bound on that of any purchase as dear, follow.
"""

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial

import numpy as np

from hushbid.allocation import Budget, HardBudget
from hushbid.allocation.exact_sums import ExactSums
from hushbid.allocation.histogram import COARSE, Histogram
from hushbid.allocation.windows import Listing, Window
from hushbid.common.adding import Adds, joined
from hushbid.common.arrays import FloatArray
from hushbid.disclosure.promises import refuse_unreleasable
from hushbid.engine.adapter import Batch
from hushbid.engine.decisions import Decider, Details, Idle
from hushbid.engine.passes import Census, SolvingPasses
from hushbid.engine.people import People, Rows, Run
from hushbid.errors import MarketError
from hushbid.mechanism import Population
from hushbid.mechanism.menu_offers import PlannedMenu
from hushbid.mechanism.shared_menu import Listed, SharedMenu, menu_for, spent_within, strength_of, whole_coins
from hushbid.mechanism.summed import MOST_IN_WINDOW, locate, solve


@dataclass(frozen=True, slots=True, kw_only=True)
class Menu:
    """The menu, for people who come in batches."""

    people: People
    population: Population
    planned: PlannedMenu
    counts: tuple[int, ...]
    """How many people are in each group."""

    @classmethod
    def of(cls, run: Run, population: Population, census: Census) -> "Menu":
        """The menu for everybody whom the first pass counted."""
        [everybody] = census.parts  # one mean
        counts = tuple(everybody.sizes.get(code, 0) for code in range(len(population.groups)))
        precision = Fraction(1.0 / float(population.variance))
        planned = menu_for(population, [counts], [[float(precision * count) for count in counts]])
        return cls(people=run.people, population=population, planned=planned, counts=counts)

    def payments(self, rows: Rows) -> ExactSums:
        """The sum of what the menu would pay, and how many it pays."""
        _, listed = self.listed(rows)
        return ExactSums.of(listed.payment[listed.payment > 0.0])

    def listed(self, rows: Rows) -> tuple[SharedMenu, Listed]:
        """What the menu offers the good rows of a batch."""
        size = rows.bids.size
        groups = np.zeros(size, dtype=np.intp) if rows.groups is None else rows.groups
        strength = strength_of(self.population, np.full(size, float(self.population.variance)))
        strata = np.zeros(size, dtype=np.intp)
        menu = SharedMenu.planned(self.population, self.planned, [self.counts], strata, groups, strength)
        return menu, menu.listed(rows.bids, rows.costs)


# -- pass 3: what everybody is promised --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Promised(Adds):
    """What shares of the menu come to."""

    losses: ExactSums = field(default_factory=lambda: ExactSums({}))
    """All positive losses, and their squares."""

    virtual: ExactSums = field(default_factory=lambda: ExactSums({}))
    """Virtual cost times loss, of everybody."""

    payments: ExactSums = field(default_factory=lambda: ExactSums({}))
    coins: int = 0
    """In how many coins all payments, each rounded up, can be made."""

    histogram: Histogram = field(default_factory=lambda: Histogram.empty(COARSE))
    """The positive losses."""

    largest_loss: float = joined(max, default=0.0)
    largest_payment: float = joined(max, default=0.0)
    error: float = joined(max, default=0.0)
    """How far a payment may be from exact, whatever anybody bids."""

    clipped: int = 0
    """How many would lose more than a limit or a cap allows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """Everybody's share of the menu, once it is known what all are paid together."""

    menu: Menu
    total: float
    paid: int

    def listed(self, rows: Rows) -> tuple[FloatArray, Listed]:
        """What part everybody in the good rows of a batch gets of what the menu offers, and what it offers."""
        menu, listed = self.menu.listed(rows)
        return menu.shares_from(listed, [(self.total, self.paid)]), listed

    def promised(self, rows: Rows, *, coin: float) -> Promised:
        """Losses and payments, added up."""
        share, listed = self.listed(rows)
        loss, payment, error = share * listed.loss, share * listed.payment, share * listed.error
        limit = self.menu.population.largest_cap if rows.limit is None else rows.limit
        some = loss > 0.0
        bought = loss[some]
        return Promised(
            losses=ExactSums.of(bought),
            virtual=ExactSums.of(rows.costs[some] * bought),
            payments=ExactSums.of(payment[payment > 0.0]),
            coins=whole_coins(payment, coin) if coin else 0,
            histogram=Histogram.of(bought, COARSE),
            largest_loss=float(loss.max(initial=0.0)),
            largest_payment=float(payment.max(initial=0.0)),
            error=float(error.max(initial=0.0)),
            clipped=int(np.count_nonzero(loss > limit)),
        )

    def losses(self, rows: Rows, *, listing: Listing) -> Window:
        """The sums of positive losses below a window, and every loss inside."""
        share, listed = self.listed(rows)
        loss = share * listed.loss
        return listing.of(loss[loss > 0.0])


# -- the writing pass --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class MenuKernel(Decider):
    """From a row to the person's share of the menu."""

    shares: Shares
    idle: Idle
    active: int
    """How many people are bought from."""

    most_used: float
    """``κ``: the best estimate uses no more of anybody's loss."""

    total_used: float
    """What it uses of all losses together."""

    largest_payment: float

    @property
    def people(self) -> People:
        return self.shares.menu.people

    @property
    def largest_used(self) -> float:
        return self.most_used

    @property
    def used(self) -> tuple[tuple[int, float], ...]:
        return ((self.active, self.total_used),)

    def details(self, batch: Batch, rows: Rows) -> Details:
        share, listed = self.shares.listed(rows)
        loss = share * listed.loss
        used = np.minimum(loss, self.most_used)
        return Details(
            privacy_loss=loss,
            weight=used / self.total_used,
            payment=share * listed.payment,
            information_rent=share * listed.rents.estimate,
            rent_lower=share * listed.rents.lower,
            rent_upper=share * listed.rents.upper,
            outside_error=self.idle.outside_errors(rows),
            used=used,
        )


# -- solving -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """What the best estimate uses of everybody's loss."""

    most: float
    """``κ``."""

    total: float
    """``S``."""

    squares: float
    """The sum of the squares of what is used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedOut:
    """A hard budget, shared out."""

    kernel: MenuKernel
    promised: Promised
    used: Used
    lower_bound: float
    """In squared data units: no purchase as dear has a smaller error, at worst."""


def solve_menu(run: Run, population: Population, goal: HardBudget, census: Census) -> SharedOut | None:
    """Everybody's share; None if limits clip somebody's, or nothing is bought."""
    menu = Menu.of(run, population, census)
    sums = run.add_up("adding up the menu", menu.payments, ExactSums({}))
    shares = Shares(menu=menu, total=float(sums.about(0.0)[0]), paid=sums.count)
    promised = run.add_up("sharing the budget", partial(shares.promised, coin=goal.coin), Promised())
    if promised.clipped or promised.losses.count == 0:
        return None
    refuse_unreleasable(promised.largest_loss)
    spent_within(goal, coins=promised.coins, total=promised.payments.about(0.0)[0])
    used = _used(run, shares, promised, float(population.variance))
    kernel = MenuKernel(
        shares=shares,
        idle=Idle(
            user_weight=0.0,
            mse=0.0,
            outside=float(population.own_error) if population.outside_option == "own_data" else 0.0,
            largest_outside=float(population.own_error),
        ),
        active=promised.losses.count,
        most_used=used.most,
        total_used=used.total,
        largest_payment=promised.largest_payment,
    )
    bound = _lower_bound(run, population, census, float(promised.virtual.about(0.0)[0]))
    return SharedOut(kernel=kernel, promised=promised, used=used, lower_bound=bound)


def _used(run: Run, shares: Shares, promised: Promised, variance: float) -> Used:
    """What the best estimate uses: all of every loss, or no more than ``κ``."""
    total, squares = promised.losses.about(0.0)
    needed = Fraction(2) / Fraction(variance)
    if promised.largest_loss <= float((needed + squares) / total):
        return Used(most=promised.largest_loss, total=float(total), squares=float(squares))
    low, high = _kappa_between(promised.histogram, float(needed))
    if promised.histogram.most_different(low, high) > MOST_IN_WINDOW:
        raise MarketError("Too many people have nearly equal losses to tell how much of them the best estimate uses.")
    window = run.add_up(
        "finding what the estimate uses", partial(shares.losses, listing=Listing(0.0, low, high)), Window.nobody()
    )
    return _kappa(window.settled(), needed, promised.losses.count)


def _kappa_between(losses: Histogram, needed: float) -> tuple[float, float]:
    """Edges of buckets around ``κ``, one bucket wider than buckets can tell."""
    edges = np.append(losses._edges(0), losses._edges(1)[-1])
    middle = 0.5 * (losses._edges(0) + losses._edges(1))
    mass = np.concatenate([[0.0], np.cumsum(losses.count * middle)])
    square = np.concatenate([[0.0], np.cumsum(losses.count * middle**2)])
    place = int(np.searchsorted(edges * mass - square, needed))
    return float(edges[max(place - 2, 0)]), float(edges[min(place + 1, edges.size - 1)])


def _kappa(window: Window, needed: Fraction, people: int) -> Used:
    """``κ`` from the sums of all losses below each of those in the window."""
    total, squares = window.below.about(0.0)
    count = window.below.count
    for loss, often in zip(window.costs.tolist(), window.people.tolist(), strict=True):
        if total > 0 and (needed + squares) / total <= Fraction(loss):
            break
        count, one = count + often, Fraction(loss)
        total, squares = total + often * one, squares + often * one * one
    most = (needed + squares) / total
    above = people - count
    return Used(most=float(most), total=float(total + above * most), squares=float(squares + above * most * most))


def _lower_bound(run: Run, population: Population, census: Census, expense: float) -> float:
    """What the error of no purchase can be below that costs so much, rents included."""
    budget = replace(population, goal=Budget(expense), cap=math.inf)
    solved = solve(locate(budget, census.parts), census.parts, SolvingPasses(run))
    # where sums cannot tell the level: nobody's noise, and everybody's datum
    bound = float(population.variance) / census.finite if solved is None else solved[0].lower_bound()
    return budget.certified(bound)
