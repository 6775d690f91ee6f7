"""Checks of what was decided: virtual costs, weights, error, and that nothing better was possible.

Optimality is judged from the optimality conditions and the certificate, never by the solver that decided:

* central: ``S³·Σ ψw = 4A``; ``2A·V_i w_i + S·ψ_i`` is one number for everybody bought from and no smaller for anybody
  else; and the objective is within a part in 10⁹ of the certificate, a bound that covers every piece of the curve;
* local: ``q'(ε_i) = ψ_i Λ²/A`` on the high branch, the cheapest are bought from, and ``J_k`` is no larger than
  ``J_{k−1}``, ``J_{k+1}`` and ``J_1``, which is enough because ``J_k`` is convex (docs/explanation/algorithms.md).

With a cap the decision is the uncapped optimum, clipped. That one is not in the record, so it is found by exclusion
(:mod:`hushbid.verification.central_by_exclusion`) or by its own equations (:mod:`hushbid.verification.local_by_count`).
"""

import hashlib
import math
import unicodedata
from bisect import bisect_left
from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise

import numpy as np

from hushbid.arrays import BoolArray, FloatArray, IndexArray, rows_text
from hushbid.priors import Empirical, Prior
from hushbid.verification.findings import Check, distance, judged, skipped
from hushbid.verification.local_by_count import LocalRule
from hushbid.verification.stated_numbers import Facts, best_weights

CLOSE = 1e-9
"""Recomputed numbers may differ by this part: a thousandth of what must be noticed."""

_NEAR = 16
"""So many people are looked at before and after the last one bought from."""

_GAP = 2e-9
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
    yield _weights(facts)
    yield _error_and_objective(facts)
    yield _certificate(facts)
    yield _optimality(facts)
    if facts.market.identity_decides:
        yield _ties(facts)
    yield _virtual_costs_by_definition(facts)


def _virtual_costs(facts: Facts) -> Check:
    expected = np.atleast_1d(facts.market.prior.virtual_cost(facts.outcome.reports))
    gap = distance(facts.costs, expected)
    problems = []
    if (gap > CLOSE).any():
        problems.append(f"The virtual cost does not follow from prior and report in {rows_text(gap > CLOSE)}")
    return judged(
        "virtual costs",
        problems,
        "Everybody's virtual cost follows from the prior and the report",
        people=facts.people,
        largest_relative_difference=float(gap.max()),
    )


def _nothing_bought(facts: Facts) -> Check:
    outcome = facts.outcome
    columns = {name: column for name, column in outcome.columns().items() if name not in ("report", "virtual_cost")}
    columns |= {"rent_lower": outcome.rent_bounds[0], "rent_upper": outcome.rent_bounds[1]}
    problems = [
        f"Nobody can be bought from, but {name} is not zero" for name, column in columns.items() if column.any()
    ]
    if not outcome.mse == outcome.objective == facts.record.lower_bound == math.inf or outcome.incentive_error != 0.0:
        problems.append("Nobody can be bought from, but the error is not infinite")
    if (facts.user_weight > 0.0).any():
        problems.append("Nobody can be bought from although people want an estimate: there is no such outcome")
    return judged("decision", problems, "Every report is above the prior's support, so nothing is bought")


def _weights(facts: Facts) -> Check:
    problems = []
    if (facts.losses < 0.0).any() or (facts.weights < 0.0).any():
        problems.append("A privacy loss or a weight is negative")
    if (facts.losses > facts.cap).any():
        problems.append(f"The privacy loss exceeds the cap in {rows_text(facts.losses > facts.cap)}")
    used = facts.losses[facts.costs == math.inf]
    if used.any():
        problems.append("Somebody is bought from although her report is above the prior's support")
    if not facts.bought.any():
        return judged("weights", [*problems, "Nobody is bought from although somebody could be"], "")
    # best for the losses stated, whether or not these are optimal
    expected, _ = best_weights(facts, facts.losses)
    gap = distance(facts.weights, expected)
    total = math.fsum(facts.weights)
    if (gap > CLOSE).any():
        problems.append(f"The weight is not the best one for the privacy losses in {rows_text(gap > CLOSE)}")
    if abs(total - 1.0) > CLOSE:
        problems.append("The weights do not add up to one")
    return judged(
        "weights",
        problems,
        "The weights are the best ones for the privacy losses and add up to one",
        people=facts.people,
        largest_relative_difference=float(gap.max()),
    )


def error_of(facts: Facts) -> float:
    """The error of the recorded weights with the noise that the recorded losses need; range of width 1."""
    used = facts.weights > 0.0
    weight, loss, variance = facts.weights[used], facts.losses[used], facts.variance[used]
    sampling = float((variance * weight**2).sum())
    with np.errstate(all="ignore"):
        if facts.central:
            return float(2.0 / (loss / weight).min() ** 2) + sampling
        return float(2.0 * ((weight / loss) ** 2).sum()) + sampling


def _error_and_objective(facts: Facts) -> Check:
    outcome, unit = facts.outcome, facts.population.unit
    mse = error_of(facts) * unit
    # an infinite loss that costs nothing adds nothing
    used = facts.bought & (facts.costs > 0.0)
    with np.errstate(all="ignore"):
        objective = facts.error_weight * (mse / unit) + float(facts.costs[used] @ facts.losses[used])
    gaps = {"error": float(distance(outcome.mse, mse)), "objective": float(distance(outcome.objective, objective))}
    problems = [f"The {name} does not follow from the decisions" for name, gap in gaps.items() if not gap <= CLOSE]
    return judged(
        "error and objective",
        problems,
        "Error and objective follow from the decisions",
        relative_difference_of_error=gaps["error"],
        relative_difference_of_objective=gaps["objective"],
    )


def _certificate(facts: Facts) -> Check:
    bound = facts.population.lower_bound(facts.costs)
    objective = facts.outcome.objective
    problems = []
    if not distance(facts.record.lower_bound, bound) <= CLOSE:
        problems.append("The lower bound does not follow from the virtual costs")
    if not objective >= bound * (1.0 - CLOSE):
        problems.append("The objective is below what is possible")
    gap = objective / bound - 1.0 if bound > 0.0 else (0.0 if objective == bound else math.inf)
    # with a cap, and in the local setting, a gap proves nothing
    tight = facts.central and not _clipped(facts)
    if tight and not gap <= _GAP:
        problems.append("The objective is above the certificate, so something better is possible")
    sentence = "No decision has a lower objective: the certificate says so" if tight else "The lower bound holds"
    return judged("certificate", problems, sentence, gap=gap)


def _clipped(facts: Facts) -> bool:
    """Whether the cap binds."""
    return bool((facts.losses >= facts.cap).any())


def _optimality(facts: Facts) -> Check:
    if _clipped(facts):
        return _clipped_optimum(facts)
    if not facts.variance.any():
        return _cheapest_alone(facts)
    return _central_conditions(facts) if facts.central else _local_conditions(facts)


def _central_conditions(facts: Facts) -> Check:
    name, costs, weights, losses = "optimality", facts.costs, facts.weights, facts.losses
    # case 1: no noise at all
    endless = losses == math.inf
    if endless.any():
        problems = []
        if costs[endless].any() or losses[~endless].any():
            problems.append("Without noise only people whose privacy costs nothing may be used, and only they")
        if (endless != (costs == 0.0))[facts.variance > 0.0].any() and facts.variance[endless].all():
            problems.append("Somebody whose privacy costs nothing is left out")
        return judged(name, problems, "No noise is added, and only people whose privacy costs nothing are used")
    # case 2: S balances noise against money, and one marginal cost for everybody bought from
    used = facts.bought
    total = float(losses.sum())
    with np.errstate(all="ignore"):
        balance = float(distance(total**3 * (costs[used] @ weights[used]), 4.0 * facts.error_weight))
        marginal = 2.0 * facts.error_weight * facts.variance * weights + total * costs
        level = float(weights[used] @ marginal[used])
        # for the others it may be larger, not smaller
        gap = np.where(used, distance(marginal, level), np.maximum(1.0 - marginal / level, 0.0))
    problems = []
    if not balance <= CLOSE:
        problems.append("The total privacy loss is not the best one for these weights")
    if (gap > CLOSE).any():
        problems.append(f"The optimality condition does not hold in {rows_text(gap > CLOSE)}")
    return judged(
        name,
        problems,
        "The optimality conditions hold for everybody",
        people=facts.people,
        largest_residual=float(gap.max()),
        balance_residual=balance,
    )


def _local_conditions(facts: Facts) -> Check:
    used, variance = facts.bought, float(facts.variance[0])
    rows = np.flatnonzero(used)
    loss, cost = facts.losses[used], facts.costs[used]
    problems = _not_the_cheapest(facts, rows)
    with np.errstate(all="ignore"):
        supply = float((1.0 / (variance + 2.0 / loss**2)).sum())
        slope = np.where(loss < math.inf, 4.0 * loss / (variance * loss**2 + 2.0) ** 2, 0.0)
    # one seller has a formula of her own; several are on the high branch
    if rows.size == 1:
        expected = math.inf if cost[0] == 0.0 else (4.0 * facts.error_weight / float(cost[0])) ** (1.0 / 3.0)
        gap = distance(loss, expected)
    else:
        gap = distance(slope, cost * supply**2 / facts.error_weight)
        if (loss * math.sqrt(variance) < math.sqrt(2.0 / 3.0)).any():
            problems.append("Somebody is on the low branch, where nobody is in an optimum with two people or more")
    if (gap > CLOSE).any():
        problems.append("The optimality condition does not hold for somebody who is bought from")
    # J is convex in the number of sellers: its neighbours, and one alone, settle it
    rule = LocalRule(facts.costs, variance, facts.error_weight, facts.order)
    here = rule.value_of(rows.size)
    others = [rule.value_of(count) for count in {1, rows.size - 1, rows.size + 1} if 1 <= count <= facts.people]
    if not distance(facts.outcome.objective, here) <= CLOSE or not here <= min(others) * (1.0 + 1e-12):
        problems.append("Another number of people to buy from would be better")
    # who is bought from among equals, as the rule behind the payments has it
    margin = np.lexsort((facts.order, facts.costs))[max(rows.size - _NEAR, 0) : rows.size + _NEAR]
    answers = rule.at(margin, facts.costs[margin]).loss
    if (distance(facts.losses[margin], answers) > CLOSE).any():
        problems.append("At the margin the rule that payments integrate buys from somebody else")
    return judged(
        "optimality",
        problems,
        "The cheapest are bought from, the optimality conditions hold, and one more or fewer would be worse",
        bought_from=rows.size,
        largest_residual=float(gap.max()),
        margin_to_the_next_best_number=min((other for other in others if other > here), default=math.inf) / here - 1.0,
    )


def _not_the_cheapest(facts: Facts, rows: IndexArray) -> list[str]:
    """Those bought from must come first by cost, and among equals in the order that does not look at reports."""
    dearest = max(zip(facts.costs[rows].tolist(), facts.order[rows].tolist(), strict=True))
    rest = np.flatnonzero(~facts.bought)
    cheaper = (facts.costs[rest] < dearest[0]) | ((facts.costs[rest] == dearest[0]) & (facts.order[rest] < dearest[1]))
    if not cheaper.any():
        return []
    skipped_over = np.zeros(facts.people, dtype=bool)
    skipped_over[rest[cheaper]] = True
    return [f"Somebody cheaper, or earlier among equals, was passed over in {rows_text(skipped_over)}"]


def _hashed(id: str) -> bytes:
    text = unicodedata.normalize("NFC", id).strip()
    return hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=8).digest()


def _ties(facts: Facts) -> Check:
    """Whether anybody could have arranged the order among equals after the reports."""
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


def _cheapest_alone(facts: Facts) -> Check:
    """Nobody's data vary: all is bought from the cheapest person."""
    rows = np.flatnonzero(facts.bought)
    problems = _not_the_cheapest(facts, rows)
    cost = float(facts.costs[rows[0]])
    expected = math.inf if cost == 0.0 else (4.0 * facts.error_weight / cost) ** (1.0 / 3.0)
    gap = float(distance(facts.losses[rows[0]], expected))
    if rows.size != 1 or not gap <= CLOSE:
        problems.append("Where data do not vary, all must be bought from the cheapest person")
    return judged("optimality", problems, "Data do not vary, and all is bought from the cheapest", residual=gap)


def _clipped_optimum(facts: Facts) -> Check:
    # a person moved to her own cost: the population as it is
    row = int(np.argmin(facts.costs))
    losses, _, value = facts.rule().everybody(row, float(facts.costs[row]))
    clipped = np.minimum(losses, facts.cap)
    gap = distance(facts.losses, clipped, floor=1e-3 * float(clipped.max()))
    problems = []
    if (gap > CLOSE).any():
        problems.append(f"The privacy loss is not the clipped optimum in {rows_text(gap > CLOSE)}")
    bound = facts.record.lower_bound
    certified = value / bound - 1.0 if bound > 0.0 else (0.0 if value == bound else math.inf)
    if facts.central and not certified <= _GAP:
        problems.append("The optimum without the cap could not be certified")
    return judged(
        "optimality",
        problems,
        "The privacy losses are the optimum without the cap, clipped",
        people=facts.people,
        largest_difference=float(gap.max()),
        gap_without_the_cap=certified,
    )


def _virtual_costs_by_definition(facts: Facts) -> Check:
    """Once more from the definition: c + F/f where the prior is regular, the convex minorant where it is discrete."""
    checked, worst, bad = 0, 0.0, np.zeros(facts.people, dtype=bool)
    for prior, members in facts.groups:
        rows = members[facts.costs[members] < math.inf]
        # at most so many, evenly spaced over the group
        rows = rows[np.linspace(0, rows.size - 1, min(rows.size, _MOST_BY_DEFINITION)).astype(np.intp)]
        expected, sure = _by_definition(prior, facts.outcome.reports[rows])
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


def _by_definition(prior: Prior, reports: FloatArray) -> tuple[FloatArray, BoolArray]:
    """Virtual costs from the distribution itself, and where that is accurate enough to be compared."""
    if isinstance(prior, Empirical):
        return _minorant_slopes(prior, reports), np.full(reports.size, prior.values.size <= _MOST_BY_DEFINITION)
    if not prior.is_regular:
        return reports, np.zeros(reports.size, dtype=bool)
    share, density = np.asarray(prior.cdf(reports)), np.asarray(prior.pdf(reports))
    with np.errstate(all="ignore"):
        return reports + share / density, (share > _SMALLEST_SHARE) & (density > 1e-200) & (density < 1e200)


def _minorant_slopes(prior: Empirical, reports: FloatArray) -> FloatArray:
    """Slopes of the greatest convex minorant of (Σ weights, Σ weights · value), each cut off where it is steepest."""
    if prior.values.size > _MOST_BY_DEFINITION:
        return reports
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
    return np.array([slopes[bisect_left(ends[1:], report)] for report in reports.tolist()])


def _slope(a: tuple[Fraction, Fraction], b: tuple[Fraction, Fraction]) -> Fraction:
    return (b[1] - a[1]) / (b[0] - a[0])
