"""Checks of what is paid: ``t_i = β_i·(MSE − outside_i) + c_i·ε_i + rent_i``, each part on its own.

The sum is compared for everybody. Rents, and errors without a person, are computed again by other means than those that
made them: for everybody where few are bought from, otherwise for a sample that nobody can foresee.
"""

import math
import random
from collections.abc import Iterator

import numpy as np

from hushbid.record.contents import Record
from hushbid.record.decisions import CLOSE
from hushbid.record.facts import Facts, FloatArray, Rows, best_weights
from hushbid.record.findings import Check, distance, judged, rows_text, skipped
from hushbid.record.integral import integrate, is_step_function
from hushbid.record.money import rounded_up

_EXACT = 1e-12
_INTEGRATED = 1e-7
_MOST_STEPS = 60_000
_MOST_VALUES = 20_000


def transfer_checks(facts: Facts, people: int) -> Iterator[Check]:
    """Everything about what is paid, cheapest first; at most so many ``people`` are integrated for."""
    yield _sums(facts)
    yield _incentives(facts)
    yield _money(facts.record)
    if (facts.costs < math.inf).any():
        yield _outside(facts, people)
        yield _rents_by_value(facts)
        yield _rents(facts, people)


def _sums(facts: Facts) -> Check:
    outcome = facts.outcome
    bought = facts.bought
    price = np.zeros(facts.people)
    paying = bought & (outcome.reports > 0.0)
    price[paying] = outcome.reports[paying] * facts.losses[paying]
    with np.errstate(invalid="ignore"):
        difference = np.where(facts.user_weight > 0.0, outcome.mse - outcome.outside_error, 0.0)
    care = facts.user_weight * difference
    expected = care + price + outcome.information_rent
    gap = distance(outcome.payments, expected, floor=np.abs(care) + price + outcome.information_rent)
    problems = []
    if (gap > _EXACT).any():
        problems.append(f"The payment is not the sum of its parts in {rows_text(gap > _EXACT)}")
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
    widest = float(np.maximum(high - rent, rent - low).max())
    if not distance(outcome.incentive_error, 2.0 * widest) <= _EXACT:
        problems.append("The incentive error is not twice the widest bound on a rent")
    return judged(
        "incentives",
        problems,
        "Every rent lies within its bounds, and no misreport can gain more than twice the widest of them",
        incentive_error=facts.record.incentive_error,
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
        people=outcome.reports.size,
        total=money.total,
    )


def _outside(facts: Facts, people: int) -> Check:
    """The error that each person would live with outside."""
    name, outside = "outside option", facts.outcome.outside_error
    if facts.market.outside_option == "own_data":
        expected = np.broadcast_to(np.asarray(facts.market.stated_variance, dtype=float), (facts.people,))
        problems = [] if np.array_equal(outside, expected) else ["The error outside is not the variance of one's datum"]
        return judged(name, problems, "Whoever stays out has her own datum, with the declared variance")
    caring = np.flatnonzero(facts.user_weight > 0.0)
    gap = np.zeros(facts.people)
    gap[facts.user_weight == 0.0] = np.abs(outside[facts.user_weight == 0.0])
    looked_at = 0
    weights = np.unique(facts.user_weight[caring]).tolist()
    for weight in weights if len(weights) <= people else random.SystemRandom().sample(weights, people):
        rows = caring[facts.user_weight[caring] == weight]
        some = _some(rows, max(people // len(weights), 1))
        expected, unused = _errors_without(facts, rows, some, weight)
        gap[some] = distance(outside[some], expected)
        gap[unused[0]] = distance(outside[unused[0]], unused[1])
        looked_at += np.union1d(some, unused[0]).size
    problems = []
    if (gap > CLOSE).any():
        problems.append(f"The error without her is wrong in {rows_text(gap > CLOSE)}")
    return judged(
        name,
        problems,
        "Whoever stays out has the estimate made without her, with the error stated",
        people=looked_at,
        largest_relative_difference=float(gap.max()),
    )


def _errors_without(facts: Facts, rows: Rows, some: Rows, weight: float) -> tuple[FloatArray, tuple[Rows, float]]:
    """The errors without each of ``some``; and those of ``rows`` who are not used anyway, with the error then."""
    width = facts.market.width
    rule = facts.rule(facts.error_weight - weight * width**2)
    cheapest = int(np.argmin(facts.costs))
    losses, mse, _ = rule.everybody(cheapest, float(facts.costs[cheapest]))
    if facts.cap < math.inf:
        mse = best_weights(facts, np.minimum(losses, facts.cap))[1]
        errors = np.full(some.size, mse)
        for j in np.flatnonzero(losses[some] > 0.0).tolist():
            without, _, _ = rule.everybody(int(some[j]), math.inf)
            errors[j] = best_weights(facts, np.minimum(without, facts.cap))[1]
    else:
        errors = rule.at(some, np.full(some.size, math.inf)).mse
    return errors * width**2, (rows[losses[rows] == 0.0], mse * width**2)


def _rents_by_value(facts: Facts) -> Check:
    """Where virtual costs are affine, a rent is the difference of two optimal objectives over the slope.

    The loss is the derivative of the objective, so ``∫ ε(ψ(z)) dz = (OPT(ψ(c̄)) − OPT(ψ(c)))/ψ'``: one evaluation per
    person, and nobody has to be left out.
    """
    name, outcome = "rents by value", facts.outcome
    linear = [(prior, prior.slope, rows) for prior, rows in facts.groups if prior.slope and facts.bought[rows].any()]
    if not linear or facts.cap < math.inf:
        return skipped(
            name, "There is no shortcut to the information rents: the prior is not uniform, or losses are capped"
        )
    rule, gap, looked_at = facts.rule(), np.zeros(facts.people), 0
    largest = float(np.abs(outcome.payments).max())
    for prior, slope, members in linear:
        rows = _some(members[facts.bought[members]], _MOST_VALUES)
        top = float(prior.virtual_cost(prior.support[1]))
        expected = (rule.at(rows, np.full(rows.size, top)).value - outcome.objective) / slope
        allowed = _INTEGRATED * expected + _EXACT * (outcome.objective + largest)
        gap[rows] = np.maximum(_outside_bounds(facts, rows, expected) - allowed, 0.0)
        looked_at += rows.size
    problems = []
    if not (gap == 0.0).all():
        problems.append(f"The information rent is not the difference of two objectives in {rows_text(gap != 0.0)}")
    return judged(name, problems, "Differences of optimal objectives give the information rents", people=looked_at)


def _rents(facts: Facts, people: int) -> Check:
    """Information rents by quadrature of the independently evaluated rule."""
    outcome = facts.outcome
    rule, bought = facts.rule(), np.flatnonzero(facts.bought)
    sample = _some(bought, people)
    largest = float(np.abs(outcome.payments).max())
    gap, worst, looked_at = np.zeros(facts.people), 0.0, 0
    for prior, members in facts.groups:
        rows = np.intersect1d(sample, members, assume_unique=True)
        if is_step_function(prior):
            rows = _some(members[facts.bought[members]], max(_MOST_STEPS // len(prior.flat_parts), 2))
        found = integrate(rule, prior, rows, outcome.reports[rows], cap=facts.cap, floor=1e-12 * largest)
        allowed = _INTEGRATED * found.rent + 2.0 * found.error + _EXACT * largest
        outside = _outside_bounds(facts, rows, found.rent)
        gap[rows] = np.maximum(outside - allowed, 0.0) + np.where(found.error > 1e-5 * found.rent + allowed, 1.0, 0.0)
        worst = max(worst, float(distance(outcome.information_rent[rows], found.rent, floor=largest).max(initial=0.0)))
        looked_at += rows.size
    problems = []
    if not (gap == 0.0).all():
        problems.append(f"The information rent is not the integral of the privacy loss in {rows_text(gap != 0.0)}")
    whom = "everybody bought from" if looked_at == bought.size else f"a random sample of {looked_at} people"
    return judged(
        "rents",
        problems,
        f"Quadrature of the privacy loss gives the information rents of {whom}",
        people=looked_at,
        bought_from=bought.size,
        largest_difference_relative_to_the_largest_payment=worst,
    )


def _outside_bounds(facts: Facts, rows: Rows, rents: FloatArray) -> FloatArray:
    """How far rents lie outside the bounds stated."""
    low, high = (bound[rows] for bound in facts.outcome.rent_bounds)
    return np.maximum(np.maximum(low - rents, rents - high), 0.0)


def _some(rows: Rows, people: int) -> Rows:
    """All of ``rows`` if they are few, otherwise a random sample drawn with the operating system's entropy."""
    if rows.size <= people:
        return rows
    return np.sort(np.array(random.SystemRandom().sample(rows.tolist(), people), dtype=np.intp))
