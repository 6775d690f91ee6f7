"""Checks of what was decided: virtual costs, weights, error, certificate, and the order among equals.

:mod:`hushbid.verification.check_optimality` says whether anything better was possible.
"""

import hashlib
import math
import unicodedata
from bisect import bisect_left
from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise

import numpy as np

from hushbid.allocation.goals import HardBudget, Price
from hushbid.common.arrays import BoolArray, FloatArray, rows_text
from hushbid.disclosure.promises import SMALLEST_LOSS
from hushbid.priors import Empirical, Prior
from hushbid.verification.check_optimality import GAP, above, closely, optimality
from hushbid.verification.findings import Check, distance, judged, skipped
from hushbid.verification.stated_numbers import CLOSE, Facts, best_weights, error_of, worst_bias_of

_CANCELLED = 1e-6
"""Below this part of what is subtracted from it, the worst error is stated with fewer digits than are compared."""

_BID = ("bid", "limit", "virtual_cost")
"""Columns that people state, or that follow from it alone."""

_BY_DEFINITION = 1e-7
_MOST_BY_DEFINITION = 2000
_SMALLEST_SHARE = 1e-6
"""Below this share of the population the definition's F/f has too few digits to compare with."""


def decision_checks(facts: Facts) -> Iterator[Check]:
    """Everything about what was decided, cheapest first."""
    yield _virtual_costs(facts)
    if not (facts.costs < math.inf).any():
        yield _nothing_bought(facts)
        return
    if facts.shared and not facts.bought.any():  # the menu may offer nothing at anybody's bid
        yield _nothing_bought(facts)
        yield optimality(facts)
        return
    yield _weights(facts)
    yield _error_and_objective(facts)
    yield _certificate(facts)
    yield optimality(facts)
    if facts.market.identity_decides:
        yield _ties(facts)
    yield _virtual_costs_by_definition(facts)


def _virtual_costs(facts: Facts) -> Check:
    expected = np.atleast_1d(facts.market.prior.virtual_cost(facts.outcome.bids))
    if facts.outcome.limits is not None:  # who accepts no loss sells nothing
        expected = np.where(facts.outcome.limits > 0.0, expected, math.inf)
    gap = distance(facts.costs, expected)
    problems = []
    if (gap > CLOSE).any():
        problems.append(f"The virtual cost does not follow from prior and bid in {rows_text(gap > CLOSE)}")
    return judged(
        "virtual costs",
        problems,
        "Everybody's virtual cost follows from the prior and the bid",
        people=facts.people,
        largest_relative_difference=float(gap.max()),
    )


def _nothing_bought(facts: Facts) -> Check:
    outcome = facts.outcome
    columns = {name: column for name, column in outcome.columns().items() if name not in _BID}
    columns |= {"rent_lower": outcome.rent_bounds[0], "rent_upper": outcome.rent_bounds[1]}
    problems = [
        f"Nobody can be bought from, but {name} is not zero" for name, column in columns.items() if column.any()
    ]
    infinite = (outcome.mse, outcome.worst_mse, outcome.objective, facts.record.lower_bound)
    if set(infinite) != {math.inf} or outcome.incentive_error != 0.0:
        problems.append("Nobody can be bought from, but the error is not infinite")
    if (facts.user_weight > 0.0).any():
        problems.append("Nobody can be bought from although people want an estimate: there is no such outcome")
    return judged("decision", problems, "Every bid is too high, so nothing is bought and nobody is paid")


def _weights(facts: Facts) -> Check:
    problems = []
    signs = np.ones(1) if facts.strata is None else np.sign(facts.strata.weights)[facts.strata.codes]
    if (facts.losses < 0.0).any() or (signs * facts.weights < 0.0).any():
        told = "is negative" if facts.strata is None else "has not its stratum's sign"
        problems.append(f"A privacy loss or a weight {told}")
    if (facts.losses > facts.caps).any():
        problems.append(f"The privacy loss exceeds the cap or the limit in {rows_text(facts.losses > facts.caps)}")
    problems += _limits(facts)
    used = facts.losses[facts.costs == math.inf]
    if used.any():
        problems.append("Somebody is bought from although her bid is above the prior's support")
    if not facts.bought.any():
        return judged("weights", [*problems, "Nobody is bought from although somebody could be"], "")
    # best for the losses stated, whether or not these are optimal
    expected, _ = best_weights(facts, facts.losses)
    gap = distance(facts.weights, expected)
    if (gap > CLOSE).any():
        problems.append(f"The weight is not the best one for the privacy losses in {rows_text(gap > CLOSE)}")
    problems += _sums(facts)
    to = "one" if facts.strata is None else "what is wanted of each stratum"
    return judged(
        "weights",
        problems,
        f"The weights are the best ones for the privacy losses and add up to {to}",
        people=facts.people,
        largest_relative_difference=float(gap.max()),
    )


def _sums(facts: Facts) -> list[str]:
    """Whether weights add up to one, or to each stratum's weight."""
    if facts.strata is None:
        return [] if abs(math.fsum(facts.weights) - 1.0) <= CLOSE else ["The weights do not add up to one"]
    sums = np.bincount(facts.strata.codes, weights=facts.weights, minlength=facts.strata.count)
    wrong = distance(sums, facts.strata.weights) > CLOSE
    return [
        f"The weights of stratum {facts.strata.label(one)} do not add up to what is wanted of it"
        for one in np.flatnonzero(wrong).tolist()
    ]


def _limits(facts: Facts) -> list[str]:
    """What nobody can have stated, or was not asked for."""
    limits = facts.outcome.limits
    if limits is None:
        return []
    problems = []
    strange = ~((limits >= SMALLEST_LOSS) | (limits == 0.0))
    if strange.any():
        problems.append(f"The limit is no loss that can be accepted in {rows_text(strange)}")
    if not facts.central and not isinstance(facts.market.goal, HardBudget):
        problems.append("People cannot state limits in the local setting but under a hard budget")
    if facts.user_weight.any():
        problems.append("People cannot state limits where they care about the estimate")
    return problems


def _error_and_objective(facts: Facts) -> Check:
    outcome, unit = facts.outcome, facts.population.unit
    mse = error_of(facts)
    worst = mse + worst_bias_of(facts)
    # an infinite loss that costs nothing adds nothing
    used = facts.bought & (facts.costs > 0.0)
    with np.errstate(all="ignore"):
        expense = float(facts.costs[used] @ facts.losses[used])
        objective = {"price": facts.error_weight * worst + expense, "accuracy": expense}.get(
            facts.goal.kind, worst * unit
        )
    # the worst error is stated as a difference of two numbers, of which one may be far larger
    gaps = {
        "error": float(distance(outcome.mse, mse * unit)),
        "worst error": float(distance(outcome.worst_mse, worst * unit, floor=_CANCELLED * facts.constant * unit)),
        "objective": float(distance(outcome.objective, objective, floor=_CANCELLED * facts.offset)),
    }
    problems = [f"The {name} does not follow from the decisions" for name, gap in gaps.items() if not gap <= CLOSE]
    return judged(
        "error and objective",
        problems,
        "Error, worst error and objective follow from the decisions",
        relative_difference_of_error=gaps["error"],
        relative_difference_of_worst_error=gaps["worst error"],
        relative_difference_of_objective=gaps["objective"],
    )


def _certificate(facts: Facts) -> Check:
    """The lower bound: no more than the objective, and centrally no less than what was found here.

    An accuracy and a budget are convex: their objective is the optimum where the conditions hold. For a price the least
    objective is found by exclusion. In the local setting a bound that is lower than necessary proves less and is not
    wrong.
    """
    stated, objective = facts.record.lower_bound, facts.outcome.objective
    gap, problems = above(objective, stated, facts.offset), []
    if not gap >= -CLOSE:
        problems.append("The objective is below what is possible")
    if not facts.central:
        return judged("certificate", problems, "The objective is not below the lower bound", gap=gap)
    least = _least_objective(facts)
    if least is not None and not -GAP <= above(least, stated, facts.offset) <= GAP:
        problems.append("The lower bound is not the least objective")
    if not facts.shared and not gap <= GAP:
        problems.append("The objective is above the certificate, so something better is possible")
    return closely(
        facts, "certificate", problems, "No decision has a lower objective: the certificate says so", gap=gap
    )


def _least_objective(facts: Facts) -> float | None:
    """What no purchase is below, found by other means than the library's; None for a convex goal."""
    if not facts.shared and not isinstance(facts.goal, Price):
        return None
    row = int(np.argmin(facts.costs))
    rule = facts.central_rule(expense=facts.purchase.expense) if facts.shared else facts.rule()
    _, mse, value = rule.everybody(row, float(facts.costs[row]))
    return (mse * facts.population.unit if facts.shared else value) - facts.offset


def _hashed(id: str) -> bytes:
    text = unicodedata.normalize("NFC", id).strip()
    return hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=8).digest()


def _ties(facts: Facts) -> Check:
    """Whether anybody could have arranged the order among equals after the bids."""
    name, ids = "ties", facts.record.ids
    if ids is None:
        return skipped(name, "There are no ids, so the order among equals is taken as stated")
    # the order that nobody could arrange: that of a hash of ids
    order = np.argsort(np.argsort([_hashed(id) for id in ids], kind="stable"), kind="stable")
    if np.array_equal(facts.order, order):
        return judged(name, [], "Equals are bought from in the order of a hash of their ids", people=facts.people)
    # another order matters only where it chose between equals
    chosen, passed = _at_the_margin(facts)
    if chosen.any() and passed.any() and order[chosen].max() > order[passed].min():
        problem = f"Among equals somebody was chosen against the order of a hash of ids: {rows_text(chosen)}"
        return judged(name, [problem], "", people=facts.people)
    return skipped(
        name,
        "The order stated among equals is not that of a hash of ids; it chose nobody whom that would not, and where"
        " payments depend on it, it is taken as stated",
    )


def _at_the_margin(facts: Facts) -> tuple[BoolArray, BoolArray]:
    """The dearest of those bought from, and those who are their equals and are not."""
    chosen = facts.bought & (facts.costs == facts.costs[facts.bought].max(initial=-math.inf))
    least = facts.variance[chosen].min(initial=math.inf)  # if people differ in it, identity decides without one only
    chosen &= facts.variance == least
    alike = (facts.costs == facts.costs[chosen].max(initial=-math.inf)) & (facts.variance == least)
    return chosen, alike & ~facts.bought


def _virtual_costs_by_definition(facts: Facts) -> Check:
    """Once more from the definition: c + F/f where the prior is regular, the convex minorant where it is discrete."""
    checked, worst, bad = 0, 0.0, np.zeros(facts.people, dtype=bool)
    for prior, members in facts.groups:
        rows = members[facts.costs[members] < math.inf]
        # at most so many, evenly spaced over the group
        rows = rows[np.linspace(0, rows.size - 1, min(rows.size, _MOST_BY_DEFINITION)).astype(np.intp)]
        expected, sure = _by_definition(prior, facts.outcome.bids[rows])
        gap = np.where(sure, distance(facts.costs[rows], expected), 0.0)
        bad[rows] = gap > _BY_DEFINITION
        checked, worst = checked + int(sure.sum()), max(worst, float(gap.max(initial=0.0)))
    if checked == 0:
        return skipped(
            "definition", "No virtual cost can be compared with its definition directly: the prior is ironed"
        )
    problems = [f"The virtual cost contradicts its definition in {rows_text(bad)}"] if bad.any() else []
    return judged(
        "definition",
        problems,
        "Virtual costs agree with their definition",
        people=checked,
        largest_relative_difference=worst,
    )


def _by_definition(prior: Prior, bids: FloatArray) -> tuple[FloatArray, BoolArray]:
    """Virtual costs from the distribution itself, and where that is accurate enough to be compared."""
    if isinstance(prior, Empirical):
        return _minorant_slopes(prior, bids), np.full(bids.size, prior.values.size <= _MOST_BY_DEFINITION)
    if not prior.is_regular:
        return bids, np.zeros(bids.size, dtype=bool)
    share, density = np.asarray(prior.cdf(bids)), np.asarray(prior.pdf(bids))
    with np.errstate(all="ignore"):
        return bids + share / density, (share > _SMALLEST_SHARE) & (density > 1e-200) & (density < 1e200)


def _minorant_slopes(prior: Empirical, bids: FloatArray) -> FloatArray:
    """Slopes of the greatest convex minorant of (Σ weights, Σ weights · value), each cut off where it is steepest."""
    if prior.values.size > _MOST_BY_DEFINITION:
        return bids
    hull, ends = [(Fraction(0), Fraction(0))], [0.0]
    total = Fraction(0)
    for value, weight in zip(prior.values.tolist(), prior.weights.tolist(), strict=True):
        total += Fraction(weight)
        point = (total, total * Fraction(value))
        # drop points above the line to the new one
        while len(hull) > 1 and _slope(hull[-2], hull[-1]) >= _slope(hull[-1], point):
            hull.pop()
            ends.pop()
        hull.append(point)
        ends.append(value)
    slopes = [float(_slope(a, b)) for a, b in pairwise(hull)]
    return np.array([slopes[bisect_left(ends[1:], bid)] for bid in bids.tolist()])


def _slope(a: tuple[Fraction, Fraction], b: tuple[Fraction, Fraction]) -> Fraction:
    return (b[1] - a[1]) / (b[0] - a[0])
