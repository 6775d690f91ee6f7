"""Checks of what is paid: ``t_i = β_i·(MSE − outside_i) + c_i·ε_i + rent_i``, each part on its own, for everybody.

Rents, and errors without a person, are computed again by other means than those that made them: see
:mod:`hushbid.verification.check_rents`.
"""

import math
import random
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

import numpy as np

from hushbid.allocation.goals import Budget, HardBudget
from hushbid.common.arrays import IndexArray, rows_text
from hushbid.common.money import rounded_up
from hushbid.common.numbers import number
from hushbid.record import Record
from hushbid.verification.by_curve import screen
from hushbid.verification.check_rents import EXACT, LIMIT, PAIRS, admitted, by_kind, largest_payment, rent_checks
from hushbid.verification.findings import Check, distance, incomplete, judged, skipped
from hushbid.verification.not_derived import optimum_not_checked
from hushbid.verification.quadrature import Integrals
from hushbid.verification.rounding_by_quadrature import rounding_check
from hushbid.verification.stated_numbers import CLOSE, Facts

_NOTICED = 5e-6
"""A difference of an error outside that must be noticed, in payments, relative to the largest."""

_WEIGHTS = 8
"""Of more user weights than this a sample is checked: each asks for an optimum of its own."""


def transfer_checks(facts: Facts) -> Iterator[Check]:
    """Check everything about what is paid, cheapest first."""
    yield _sums(facts)
    yield _incentives(facts)
    yield _money(facts.record)
    if isinstance(facts.goal, HardBudget):
        yield _kept(facts, facts.goal)
    if isinstance(facts.goal, Budget) and facts.goal.coin > 0.0:
        yield rounding_check(facts, facts.goal)
    if facts.bought.any() or (not facts.shared and (facts.costs < math.inf).any()):
        yield _outside(facts)
        yield from rent_checks(facts)


def _sums(facts: Facts) -> Check:
    outcome = facts.outcome
    bought = facts.bought
    price = np.zeros(facts.people)
    # a bid of zero is paid nothing, even for an infinite loss
    paying = bought & (outcome.bids > 0.0)
    price[paying] = outcome.bids[paying] * facts.losses[paying]
    with np.errstate(invalid="ignore"):
        difference = np.where(facts.user_weight > 0.0, outcome.mse - outcome.outside_error, 0.0)
    care = facts.user_weight * difference
    expected = care + price + outcome.information_rent
    gap = distance(outcome.payments, expected, floor=np.abs(care) + price + outcome.information_rent)
    problems = []
    if (gap > EXACT).any():
        problems.append(f"The payment is not the sum of its parts in {rows_text(gap > EXACT)}")
    return judged(
        "payments add up",
        problems,
        "Everybody's payment is the sum of its parts",
        people=facts.people,
        largest_relative_difference=float(gap.max()),
    )


def _incentives(facts: Facts) -> Check:
    outcome = facts.outcome
    rent, (low, high) = outcome.information_rent, outcome.rent_bounds
    problems = []
    if not ((low <= rent) & (rent <= high)).all():
        problems.append(f"The information rent is outside its bounds in {rows_text(~((low <= rent) & (rent <= high)))}")
    unpaid = ~facts.bought & ((rent != 0.0) | (low != 0.0) | (high != 0.0))
    if unpaid.any():
        problems.append(f"Somebody has an information rent although nothing is bought from her: {rows_text(unpaid)}")
    # a gain is bounded by the error at the truth plus that at the misreport
    widest = float(np.maximum(high - rent, rent - low).max())
    stated, slack = outcome.incentive_error, LIMIT * largest_payment(facts)
    if not facts.shared and not distance(stated, 2.0 * widest) <= EXACT:
        problems.append("The incentive error is not twice the widest bound on a rent")
    # a menu's error is stated for every bid on it, not only for those that were made
    most = LIMIT * float(facts.menu.most.max()) if facts.shared else 0.0
    if facts.shared and facts.menu.known and not 2.0 * widest * (1.0 - EXACT) <= stated <= 2.0 * (slack + most):
        problems.append("The incentive error is not that of the menu")
    wide, unsure = ~(np.maximum(high - rent, rent - low) <= slack), admitted(facts)
    too_wide = f"are wider than {number(LIMIT)} of the largest payment"
    if (wide & ~unsure).any():
        problems.append(f"The bounds on rents {too_wide} in {rows_text(wide & ~unsure)}")
    return judged(
        "incentives",
        problems,
        "Every rent lies within its bounds, no misreport can gain more than twice the widest of them, and that is at"
        f" most {number(LIMIT)} of the largest payment",
        doubts=[f"The bounds on rents {too_wide}, so payments are not verified in {rows_text(unsure)}"]
        if unsure.any()
        else [],
        incentive_error=facts.record.incentive_error,
        relative_to_the_largest_payment=facts.record.incentive_error / (largest_payment(facts) or 1.0),
    )


def _money(record: Record) -> Check:
    money, outcome = record.money, record.outcome
    if money is None:
        return skipped("money", "No currency was named, so payments are not rounded")
    problems = []
    wrong = money.payments != rounded_up(outcome.payments, money.decimals)
    if wrong.any():
        problems.append(f"The payment is not rounded up to whole minor units in {rows_text(wrong)}")
    if money.total != sum(money.payments.tolist()):
        problems.append("The total in minor units is not the sum of the payments")
    if money.incentive_error != outcome.incentive_error + 10.0**-money.decimals:
        problems.append("The incentive error does not include one minor unit")
    return judged(
        "money",
        problems,
        "Payments are rounded to whole minor units in everybody's favour, and the incentive error includes that",
        people=outcome.bids.size,
        total=money.total,
    )


def _kept(facts: Facts, goal: HardBudget) -> Check:
    """All payments together, each rounded up to the coin, in rational numbers."""
    amount, coin = Fraction(repr(goal.amount)), Fraction(repr(goal.coin))
    payments = [Fraction(paid) for paid in facts.outcome.payments.tolist()]
    total = sum(payments, Fraction(0))
    if coin > 0:
        total = coin * sum(math.ceil(paid / coin) for paid in payments)
    problems = [] if total <= amount else ["All payments together exceed the hard budget"]
    if (facts.outcome.payments < 0.0).any():
        problems.append("Somebody is to pay under a hard budget")
    money = facts.record.money
    if money is not None and Fraction(money.total) / 10**money.decimals > amount:
        problems.append("All payments together exceed the hard budget once they are rounded to the currency")
    sentence = "All payments together, rounded up, are within the hard budget, in exact arithmetic"
    return judged("budget", problems, sentence, share_spent=float(total / amount))


def _outside(facts: Facts) -> Check:
    """Check the error that each person would live with outside."""
    name, outside = "outside option", facts.outcome.outside_error
    if facts.market.outside_option == "own_data":
        expected = facts.population.own_errors()
        problems = [] if np.array_equal(outside, expected) else ["The error outside is not the variance of one's datum"]
        return judged(name, problems, "Outside, everybody has their own datum, with the declared variance")
    if unknown := optimum_not_checked(facts):
        return incomplete(name, unknown)
    # one rule for each user weight, as without that person nobody weighs the error for them
    caring = np.flatnonzero(facts.user_weight > 0.0)
    wrong = np.zeros(facts.people, dtype=bool)
    # it was computed for nobody who does not care
    wrong[facts.user_weight == 0.0] = outside[facts.user_weight == 0.0] != 0.0
    weights = np.unique(facts.user_weight[caring]).tolist()
    few = len(weights) <= _WEIGHTS or facts.complete
    chosen = weights if few else random.SystemRandom().sample(weights, _WEIGHTS)
    looked_at = compared = facts.people - caring.size
    for weight in chosen:
        rows = caring[facts.user_weight[caring] == weight]
        found, seen = _wrong_outside(facts, rows, weight, share=1.0 / len(chosen))
        wrong[found] = True
        compared, looked_at = compared + seen, looked_at + rows.size
    problems, told = [], f"{compared} of {facts.people}"
    if wrong.any():
        problems.append(f"The error without the person is wrong in {rows_text(wrong)}")
    check = judged(
        name,
        problems,
        "Outside, everybody has the estimate made without them, with the error stated",
        doubts=[] if compared == looked_at else [f"Compared for {told} people only"],
        people=compared,
    )
    return replace(check, sampled="" if looked_at == facts.people else f"{told} errors outside")


def _wrong_outside(facts: Facts, rows: IndexArray, weight: float, share: float) -> tuple[IndexArray, int]:
    """Return those of ``rows``, all with this user weight, whose error outside is wrong, and how many were compared."""
    unit, outside = facts.population.unit, facts.outcome.outside_error
    rule = facts.rule(facts.error_weight - weight * unit)
    cheapest = int(np.argmin(facts.costs))
    losses, mse, _ = rule.everybody(cheapest, float(facts.costs[cheapest]))
    # nobody who is not bought from changes the estimate
    idle = rows[losses[rows] == 0.0]
    wrong = [idle[distance(outside[idle], mse * unit) > CLOSE]]
    noticed = _NOTICED * largest_payment(facts) / weight
    most = max(int(share * PAIRS / rule.effort), 8)

    def without(some: IndexArray) -> Integrals:
        errors = rule.at(some, np.full(some.size, math.inf)).mse * unit
        return Integrals(errors, CLOSE * errors)

    compared = idle.size
    for some, curved in by_kind(facts, rows[losses[rows] > 0.0], most):
        place = facts.outcome.bids[some] if curved else np.arange(float(some.size))
        found = screen(some, place, outside[some], np.zeros(some.size), without, noticed=noticed, scale=mse, most=most)
        wrong.append(found.wrong)
        compared += found.compared
    return np.concatenate(wrong), compared
