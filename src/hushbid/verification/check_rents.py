"""Checks of information rents: everybody's, and those of some once more and finely.

A stated rent may differ from the computed one by what the market's tolerance allows, and no more than the record's own
bounds say; and by what the computation may be off. For everybody the computation is an enclosure
(:mod:`hushbid.verification.rent_bounds`), or the difference of two optimal objectives where virtual costs are affine,
or a finite sum where they are constant in steps; of many people who differ by nothing but their reports, only some are
computed (:mod:`hushbid.verification.compare_by_curve`).
"""

import math
import random
from collections.abc import Iterator

import numpy as np

from hushbid.arrays import FloatArray, IndexArray, rows_text
from hushbid.priors import Prior
from hushbid.verification.compare_by_curve import Computed, Screened, screen
from hushbid.verification.findings import Check, distance, judged
from hushbid.verification.local_by_count import LocalRule
from hushbid.verification.quadrature import Integrals, Rule, integrate, is_step_function
from hushbid.verification.rent_bounds import Enclosing
from hushbid.verification.stated_numbers import Facts

EXACT = 1e-12
PAIRS = 200_000
"""So often the rule may be evaluated, about: each takes a tenth of a millisecond."""

_INTEGRATED = 1e-7
_FINEST = 1e-8
"""Tolerances below this are not aimed at: virtual costs are not known better."""

_LEEWAY = 4.0
"""Where ψ is rough a market reaches a few times its tolerance only, and says so."""

_LOSSES_ROUNDED = {"central": 2e-12, "local": 2e-10}
_ENCLOSED = 1e-4
_PER_PERSON = 50
_KINDS = 8
_BOUGHT_AT_ONCE = 40.0


def rent_checks(facts: Facts, people: int) -> Iterator[Check]:
    """Everybody's rent, then those of so many ``people`` by quadrature."""
    yield _everybody(facts)
    yield _by_quadrature(facts, people)


def largest_payment(facts: Facts) -> float:
    """What a tolerance is relative to: the largest payment, before and after what people give for the estimate."""
    outcome, paying = facts.outcome, facts.bought & (facts.outcome.reports > 0.0)
    price = np.where(paying, outcome.reports * np.where(paying, facts.losses, 0.0), 0.0)
    return float(max(np.abs(outcome.payments).max(), (price + outcome.information_rent).max()))


def slack_of(facts: Facts) -> float:
    """How far a rent may be from the exact one: by the market's tolerance, and by the rounding of losses.

    What losses are rounded by changes a payment by no more than that part of what anybody could be paid: the integral
    of ``(4A/z)^{1/3}``, or of the cap, up to the top of the support, and what the error costs whoever cares most.
    """
    outcome = facts.outcome
    caring = facts.user_weight > 0.0
    errors = np.where(caring, outcome.mse + outcome.outside_error, 0.0)  # the error is infinite if nothing is bought
    care = float((facts.user_weight * errors).max())
    tops = np.array([prior.support[1] for prior, _ in facts.groups])
    tops = tops[tops < math.inf]  # under an unbounded prior the integral's own error is larger by far
    most = np.minimum(1.5 * np.cbrt(4.0 * facts.error_weight * tops**2), facts.cap * tops).max(initial=0.0)
    rounding = _LOSSES_ROUNDED[facts.market.setting] * (float(most) + care)
    return _LEEWAY * max(facts.market.tolerance, _FINEST) * largest_payment(facts) + rounding


def effort_of(rule: Rule) -> float:
    """How much longer than usual the rule takes."""
    return max(rule.count / _BOUGHT_AT_ONCE, 2.0) if isinstance(rule, LocalRule) else 1.0


def by_variance(facts: Facts, rows: IndexArray, most: int) -> Iterator[tuple[IndexArray, bool]]:
    """People who share a variance, and whether their numbers lie on a curve.

    If there are many variances, everybody is computed: or, if those are more than ``most``, a random sample.
    """
    kinds = np.unique(facts.variance[rows])
    if kinds.size > _KINDS:
        yield _some(rows, most), False
        return
    for kind in kinds.tolist():
        yield rows[facts.variance[rows] == kind], True


def _everybody(facts: Facts) -> Check:
    outcome, largest = facts.outcome, largest_payment(facts)
    low, high = outcome.rent_bounds
    half = np.maximum(high - outcome.information_rent, outcome.information_rent - low)
    # what the record says of itself, if the market's tolerance allows it
    allowed = np.minimum(half, slack_of(facts)) + EXACT * largest
    rule, wrong = facts.rule(), np.zeros(facts.people, dtype=bool)
    found: list[Screened] = []
    for prior, members in facts.groups:
        rows = members[facts.bought[members]]
        if rows.size == 0:
            continue
        computed, each = _computed(facts, rule, prior, largest)
        # as many people as the budget of evaluations allows
        most = max(int(PAIRS / effort_of(rule) / each), 64)
        # three ways: one of each step; a curve over reports; one by one
        if is_step_function(prior) and facts.central and facts.variance[rows].all():
            found.append(_on_steps(facts, prior, rows, allowed[rows], computed))
            continue
        for some, curved in by_variance(facts, rows, most):
            place = outcome.reports[some] if curved else np.arange(float(some.size))
            stated = outcome.information_rent[some]
            found.append(screen(some, place, stated, allowed[some], computed, scale=largest, most=most))
    for one in found:
        wrong[one.wrong] = True
    bought, compared = int(facts.bought.sum()), sum(one.compared for one in found)
    problems = []
    if wrong.any():
        problems.append(f"The information rent is not the integral of the privacy loss in {rows_text(wrong)}")
    whom = "everybody" if compared == bought else f"{compared} of the {bought} people"
    return judged(
        "rents",
        problems,
        f"The information rent of {whom} bought from is the integral of her privacy loss over higher reports",
        people=compared,
        bought_from=bought,
        computed_one_by_one=sum(one.computed for one in found),
        widest_difference_allowed_relative_to_the_largest_payment=max((one.widest for one in found), default=0.0),
    )


def _computed(facts: Facts, rule: Rule, prior: Prior, largest: float) -> tuple[Computed, float]:
    """How a rent under this prior is computed, and how often that takes the rule, about."""
    reports = facts.outcome.reports
    if prior.slope and facts.cap == math.inf:
        # affine: a difference of two objectives
        top, slope = float(prior.virtual_cost(prior.support[1])), prior.slope
        row = np.array([int(np.argmin(facts.costs))])
        here = float(rule.at(row, facts.costs[row]).value[0])

        def by_value(rows: IndexArray) -> Integrals:
            rent = (rule.at(rows, np.full(rows.size, top)).value - here) / slope
            return Integrals(rent, _INTEGRATED * np.abs(rent) + EXACT * (here + largest))

        return by_value, 1.0
    enclosing = Enclosing(rule, prior, cap=facts.cap, floor=_FINEST * largest, accuracy=_ENCLOSED)

    def integrated(rows: IndexArray) -> Integrals:
        return integrate(rule, prior, rows, reports[rows], cap=facts.cap, floor=EXACT * largest)

    def enclosed(rows: IndexArray) -> Integrals:
        found = enclosing.of(rows, reports[rows])
        # where the enclosure stays wide, quadrature
        wide = np.flatnonzero(~(found.error <= 1e-3 * np.abs(found.rent) + 10.0 * _FINEST * largest))
        if wide.size:
            finely = integrated(rows[wide])
            found.rent[wide], found.error[wide] = finely.rent, 2.0 * finely.error + _INTEGRATED * finely.rent
        return found

    return (integrated, float(len(prior.flat_parts))) if is_step_function(prior) else (enclosed, float(_PER_PERSON))


def _on_steps(facts: Facts, prior: Prior, rows: IndexArray, allowed: FloatArray, computed: Computed) -> Screened:
    """One person of each step and variance is computed; the others have more or less of the same step."""
    outcome, ends = facts.outcome, np.array([right for _, right, _ in prior.flat_parts])
    step = np.minimum(ends.searchsorted(outcome.reports[rows], side="left"), ends.size - 1)
    _, first, which = np.unique(
        np.stack([step.astype(float), facts.variance[rows]]), axis=1, return_index=True, return_inverse=True
    )
    one = rows[first]
    found, mine = computed(one), which.reshape(-1)
    # on one step the loss is constant: a rent differs by loss times distance
    ahead = outcome.reports[one][mine] - outcome.reports[rows]
    with np.errstate(invalid="ignore"):
        rent = found.rent[mine] + np.where(ahead == 0.0, 0.0, ahead * facts.losses[one][mine])
    error = found.error[mine] + 2.0 * _INTEGRATED * np.abs(rent)
    bad = ~(np.abs(outcome.information_rent[rows] - rent) <= allowed + error)
    return Screened(rows[bad], one.size, rows.size, float((allowed + error).max()) / (largest_payment(facts) or 1.0))


def _by_quadrature(facts: Facts, people: int) -> Check:
    """Information rents, and the bounds stated on them, by adaptive quadrature of the independently evaluated rule."""
    outcome, rule = facts.outcome, facts.rule()
    everybody, largest = np.flatnonzero(facts.bought), largest_payment(facts)
    # a sample that nobody could foresee, smaller where the rule is slow
    few = people if everybody.size <= people else max(int(people / effort_of(rule)), min(people, 4))
    sample = _some(everybody, few)
    bad, worst = np.zeros(facts.people, dtype=bool), 0.0
    for prior, members in facts.groups:
        rows = np.intersect1d(sample, members, assume_unique=True)
        found = integrate(rule, prior, rows, outcome.reports[rows], cap=facts.cap, floor=EXACT * largest)
        allowed = _INTEGRATED * found.rent + 2.0 * found.error + EXACT * largest
        low, high = (bound[rows] for bound in outcome.rent_bounds)
        outside = np.maximum(np.maximum(low - found.rent, found.rent - high), 0.0)
        off = np.abs(outcome.information_rent[rows] - found.rent)
        # quadrature that did not converge counts against the record
        vague = found.error > 1e-5 * found.rent + allowed
        bad[rows] = vague | ~(outside <= allowed) | ~(off <= allowed + slack_of(facts))
        worst = max(worst, float(distance(outcome.information_rent[rows], found.rent, floor=largest).max(initial=0.0)))
    problems = []
    if bad.any():
        problems.append(f"The information rent, or a bound on it, is not what quadrature gives in {rows_text(bad)}")
    whom = "everybody bought from" if sample.size == everybody.size else f"a random sample of {sample.size} people"
    return judged(
        "rents by quadrature",
        problems,
        f"Fine quadrature of the privacy loss gives the information rents of {whom}, within the bounds stated",
        people=sample.size,
        largest_difference_relative_to_the_largest_payment=worst,
    )


def _some(rows: IndexArray, people: int) -> IndexArray:
    """All of ``rows`` if they are few, otherwise a random sample drawn with the operating system's entropy."""
    if rows.size <= people:
        return rows
    chosen: IndexArray = np.array(random.SystemRandom().sample(rows.tolist(), people), dtype=np.intp)
    return np.sort(chosen)
