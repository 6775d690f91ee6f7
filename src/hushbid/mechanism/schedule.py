"""Privacy loss and payment as functions of a bid: for everybody at once, for one person, and before anybody bids.

With a common prior, variance and user weight, a person's loss and payment depend on their own bid alone, given the
multiset of all bids: one curve prices everybody. It is *not* what one person faces when they change their bid: then
the multiset changes with them, and their own curve is ``z ↦ (ε_i, t_i)(z, c_{−i})``.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from hushbid.allocation import HardBudget
from hushbid.common.arrays import FloatArray, IndexArray, as_count, as_floats, as_row, first_row, rows_text
from hushbid.errors import InputError, MarketError
from hushbid.mechanism.decision import Decision
from hushbid.mechanism.people import TieKey
from hushbid.mechanism.population import Population
from hushbid.mechanism.shared_menu import SharedMenu
from hushbid.payments import rents
from hushbid.priors import Prior


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Schedule:
    """A curve c ↦ (privacy loss, payment) on the prior's support."""

    support: tuple[float, float]
    """Bids the curve is defined for."""

    error: float
    """How far the curve's payment may be from the exact one at the bids it was made for."""

    _at: Callable[[FloatArray], tuple[FloatArray, FloatArray]] = field(repr=False)

    def privacy_loss(self, bids: ArrayLike) -> FloatArray:
        """The loss at each bid."""
        return self.at(bids)[0]

    def payment(self, bids: ArrayLike) -> FloatArray:
        """The payment at each bid."""
        return self.at(bids)[1]

    def at(self, bids: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Loss and payment at each bid, as two vectors."""
        z = np.atleast_1d(as_floats(bids, "bids")).ravel()
        outside = ~((z >= self.support[0]) & (z <= self.support[1]))
        if outside.any():
            raise InputError(
                f"bids must lie in the prior's support {self.support}, but {rows_text(outside, 'does')} not.",
                field="bids",
                row=first_row(outside),
            )
        return self._at(z)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Menu:
    """What a person can expect as a function of their bid, before anybody has bid."""

    bids: FloatArray
    """The bids the menu lists."""

    privacy_loss: FloatArray
    """Expected privacy loss."""

    payment: FloatArray
    """Expected payment."""

    privacy_loss_spread: FloatArray
    """Standard deviation of the loss over what others may bid."""

    payment_spread: FloatArray
    """Standard deviation of the payment over what others may bid."""

    privacy_loss_error: FloatArray
    """Standard error of the expected loss, from a finite number of simulations."""

    payment_error: FloatArray
    """Standard error of the expected payment."""

    chance: FloatArray
    """How likely it is that anything is bought."""

    repetitions: int
    """How many simulations were made."""


def own_schedule(population: Population, decision: Decision, user: int) -> Schedule:
    """The curve person ``user`` faces, everybody else's bids as they are."""
    row = as_row(user, population.people)
    prior = population.prior_of(row)
    at = partial(_curve, population, decision.bids, decision.virtual_costs, row, tie_order=decision.tie_order)
    largest = float(np.abs(at(np.array([prior.smallest_bid]))[1]).max())  # a payment is aimed at relative to it
    return Schedule(
        support=prior.support, error=max(0.5 * decision.incentive_error, population.tolerance * largest), _at=at
    )


def common_schedule(population: Population, decision: Decision, stratum: str | None = None) -> Schedule:
    """The curve through everybody's loss and payment, with strata in one of them; between two bids, a straight line.

    It exists only where people differ by nothing but their bids.
    """
    rows = rows_of(population, stratum)
    if not _alike(population, rows):
        raise MarketError("One schedule prices everybody only with a common prior, variance and user weight.")
    low, high = population.prior_of(int(rows[0])).support
    # equals have equal losses, but for ties: the first stands for them
    bids, first = np.unique(decision.bids[rows], return_index=True)
    inside = bids <= high
    bids, first = bids[inside], rows[first[inside]]
    losses, payments = decision.privacy_loss[first], decision.payments[first]
    at = partial(_common_curve, bids, losses, payments)
    return Schedule(support=(low, high), error=0.5 * decision.incentive_error, _at=at)


def _common_curve(
    bids: FloatArray, losses: FloatArray, payments: FloatArray, z: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return loss and payment at ``z``, on straight lines between the bids."""
    endless = np.isinf(losses)  # between somebody who loses everything and the next, the next one's loss
    loss = np.interp(z, bids[~endless], losses[~endless]) if not endless.all() else np.full(z.size, np.inf)
    return np.where(np.isin(z, bids[endless]), np.inf, loss), np.interp(z, bids, payments)


def rows_of(population: Population, stratum: str | None) -> IndexArray:
    """The people of a stratum; everybody without strata."""
    names = population.parts.names
    if stratum is None and len(names) > 1:
        raise MarketError("People in different strata face different rules: name the stratum, or the person.")
    if stratum is not None and stratum not in names:
        known = f"one of {', '.join(map(repr, names))}" if names else "left out without strata"
        raise InputError(f"stratum must be {known}, got {stratum!r}.", field="stratum")
    return np.flatnonzero(population.parts.codes == (0 if stratum is None else names.index(stratum)))


def _alike(population: Population, rows: IndexArray) -> bool:
    """Whether these people, everybody or a stratum, differ by nothing but their bids."""
    if population.strata is None:
        return population.alike
    part = population.take(rows)
    return part.alike_in_groups and len(part.groups) == 1


def expected_menu(
    population: Population,
    *,
    rng: np.random.Generator,
    repetitions: int,
    points: int | FloatArray,
    stratum: str | None = None,
) -> Menu:
    """Average over simulated bids of the other people; with strata for a person in one of them.

    ``points`` are the bids to list, ascending, or how many: at even quantiles of the prior.
    """
    rows = rows_of(population, stratum)
    if not _alike(population, rows):
        raise MarketError(
            "A menu needs one prior, variance and user weight: ask for each group's menu with a market of its own."
        )
    repetitions = as_count(repetitions, "repetitions", least=2)
    row = int(rows[0])
    prior = population.prior_of(row)
    z = points if isinstance(points, np.ndarray) else even_quantiles(prior, as_count(points, "points", least=2))
    losses, payments = np.empty((repetitions, z.size)), np.empty((repetitions, z.size))
    for k in range(repetitions):
        # one person asks; their own draw is replaced by every z
        bids = population.sample(rng)
        losses[k], payments[k] = _curve(population, bids, population.virtual_costs(bids), row, z)
    root = math.sqrt(repetitions)
    return Menu(
        bids=z,
        privacy_loss=losses.mean(axis=0),
        payment=payments.mean(axis=0),
        privacy_loss_spread=losses.std(axis=0, ddof=1),
        payment_spread=payments.std(axis=0, ddof=1),
        privacy_loss_error=losses.std(axis=0, ddof=1) / root,
        payment_error=payments.std(axis=0, ddof=1) / root,
        chance=(losses > 0.0).mean(axis=0),
        repetitions=repetitions,
    )


def even_quantiles(prior: Prior, points: int) -> FloatArray:
    """Bids at even quantiles of a prior, short of its end if that is unbounded."""
    top = 1.0 if math.isfinite(prior.support[1]) else 1.0 - 0.5 / points
    return np.asarray(prior.quantile(np.linspace(0.0, top, points)))


def end_of_buying(
    population: Population, *, rng: np.random.Generator, repetitions: int, row: int, most: float
) -> float:
    """A bid at which nothing is bought from a person in any of some simulated campaigns; at most about ``most``.

    The end of a bounded prior, above which nothing is ever bought. Of an unbounded one the median is doubled until the
    loss is 0; where some loss is bought at any price, that stops at ``most``.
    """
    prior = population.prior_of(row)
    if math.isfinite(prior.support[1]):
        return prior.support[1]
    first = float(prior.quantile(0.5))
    times = max(math.ceil(math.log2(most / first)), 0) + 1
    doubled: FloatArray = np.ldexp(first, np.arange(times)).astype(np.float64)
    end = first
    for _ in range(repetitions):
        bids = population.sample(rng)
        loss = _losses(population, bids, population.virtual_costs(bids), row, doubled)
        bought = np.flatnonzero(loss > 0.0)
        if bought.size:
            end = max(end, float(doubled[min(int(bought[-1]) + 1, doubled.size - 1)]))
    return end


def _losses(population: Population, bids: FloatArray, costs: FloatArray, row: int, z: FloatArray) -> FloatArray:
    """The loss of person ``row`` at bids ``z``, without the payments, which take longer."""
    if isinstance(population.goal, HardBudget):
        return _curve(population, bids, costs, row, z)[0]
    moved = np.asarray(population.prior_of(row).virtual_cost(z))
    return population.rule(costs, None).at(np.full(z.size, row), moved).loss


def _curve(
    population: Population,
    bids: FloatArray,
    costs: FloatArray,
    row: int,
    z: FloatArray,
    tie_order: TieKey = None,
) -> tuple[FloatArray, FloatArray]:
    """Loss and payment of person ``row`` at bids ``z``, the others' bids and virtual costs as given."""
    if isinstance(population.goal, HardBudget):
        menu = SharedMenu.of(population)
        return menu.curve(row, menu.share_of(row, bids, costs), z, float(population.caps()[row]))
    rule, prior = population.rule(costs, tie_order), population.prior_of(row)
    rows = np.full(z.size, row)
    moved = np.asarray(prior.virtual_cost(z))
    # the loss at each bid
    found = rule.at(rows, moved)
    loss = found.loss
    price = np.zeros(z.size)
    some = (loss > 0.0) & (z > 0.0)
    price[some] = z[some] * loss[some]
    # the payment: price, rent, and what the estimate is worth to them
    bought = np.flatnonzero(loss > 0.0)
    rent = np.zeros(z.size)
    if bought.size:
        rent[bought] = rents(
            rule,
            prior,
            rows[bought],
            z[bought],
            paid_besides=price[bought],
            tolerance=population.tolerance,
        ).estimate
    weight = float(population.user_weights()[row])
    if weight == 0.0:
        return loss, price + rent
    mse = found.mse * population.unit
    outside = population.outside_error_of(costs, row)
    return loss, weight * (mse - outside) + price + rent
