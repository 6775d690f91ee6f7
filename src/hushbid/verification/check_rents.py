"""Checks of information rents: everybody's, and those of some once more and finely.

A stated rent may differ from the computed one by `LIMIT` of the largest payment and by what the computation may be off,
whatever tolerance and bounds the record states. A rent that is not computed to `PRECISION` of that payment is not
verified: the check is incomplete. For everybody the computation is an enclosure
(:mod:`hushbid.verification.rent_bounds`), or the difference of two optimal objectives where virtual costs are affine,
or a finite sum where they are constant in steps; of many people who differ by nothing but their bids, only some are
computed (:mod:`hushbid.verification.compare_by_curve`).
"""

import math
import random
from collections.abc import Iterator

import numpy as np

from hushbid.allocation.goals import Budget, HardBudget, Price
from hushbid.common.arrays import BoolArray, FloatArray, IndexArray, rows_text
from hushbid.priors import Prior
from hushbid.verification.compare_by_curve import Computed, Screened, screen
from hushbid.verification.findings import Check, distance, incomplete, judged
from hushbid.verification.not_derived import not_checked
from hushbid.verification.quadrature import Integrals, Rule, integrate, is_step_function
from hushbid.verification.rent_bounds import Enclosing
from hushbid.verification.stated_numbers import Facts

EXACT = 1e-12
LIMIT = 3e-6
"""How far a rent may be from the exact one, relative to the largest payment: three times what a market aims at."""

PRECISION = 5e-6
"""How closely a rent must be computed to be compared, relative to the largest payment."""

PAIRS = 200_000
"""So often the rule may be evaluated, about: each takes a tenth of a millisecond."""

_INTEGRATED = 1e-7
_LOSSES_ROUNDED = {"central": 2e-12, "local": 2e-10}
_ENCLOSED = 1e-6
"""How closely rents are enclosed before quadrature takes over, relative to the largest payment."""

_DIGITS_OF_VALUES = 1e-12
"""Rents are differences of values that are right to this part."""

_PER_PERSON = 50
_PER_INTEGRAL = 1000
_KINDS = 8


def rent_checks(facts: Facts, people: int) -> Iterator[Check]:
    """Everybody's rent, then those of so many ``people`` by quadrature."""
    if unknown := not_checked(facts):
        yield incomplete("rents", unknown)
        yield incomplete("rents by quadrature", unknown)
        return
    yield _everybody(facts)
    yield _by_quadrature(facts, people)


def largest_payment(facts: Facts) -> float:
    """What a tolerance is relative to: the largest payment, before and after what people give for the estimate."""
    outcome, paying = facts.outcome, facts.bought & (facts.outcome.bids > 0.0)
    price = np.where(paying, outcome.bids * np.where(paying, facts.losses, 0.0), 0.0)
    return float(max(np.abs(outcome.payments).max(), (price + outcome.information_rent).max()))


def rounding_of(facts: Facts) -> float:
    """How far rents may be off because losses are rounded, in money.

    That changes a payment by no more than the same part of what anybody could be paid (`_most_paid`), and of what the
    error costs whoever cares most.
    """
    outcome = facts.outcome
    caring = facts.user_weight > 0.0
    errors = np.where(caring, outcome.mse + outcome.outside_error, 0.0)  # the error is infinite if nothing is bought
    care = float((facts.user_weight * errors).max())
    return _LOSSES_ROUNDED[facts.market.setting] * (_most_paid(facts) + care)


def admitted(facts: Facts) -> BoolArray:
    """Whose bounds admit that her rent is known less closely than `LIMIT`.

    Beside caps, and where the error is worth millions of times what people are paid, a market may lose digits: it then
    states wider bounds. A record with such bounds is not wrong, but what it pays is not verified either.
    """
    largest = largest_payment(facts)
    dear = isinstance(facts.goal, Price) and _DIGITS_OF_VALUES * facts.outcome.objective > LIMIT * largest
    if not (facts.capped or dear or not_checked(facts)):
        return np.zeros(facts.people, dtype=bool)
    low, high = facts.outcome.rent_bounds
    return high - low > LIMIT * largest


def _most_paid(facts: Facts) -> float:
    """A bound on what anybody could be paid for a loss, whatever she bids.

    Under a price for the error, the integral of ``(4A/z)^{1/3}``, or of the cap, up to the top of the support; else
    that top times the largest loss of anybody bought from, had she bid the least; where that is not derived, the
    largest one stated. Under an unbounded prior the integral's own error is larger by far.
    """
    bounded = [(prior, rows[facts.bought[rows]]) for prior, rows in facts.groups if prior.support[1] < math.inf]
    tops = np.array([prior.support[1] for prior, _ in bounded])
    if isinstance(facts.goal, Price):
        weight = facts.error_weight if facts.strata is None else facts.error_weight * np.max(facts.strata.weights**2)
        most = np.minimum(1.5 * np.cbrt(4.0 * weight * tops**2), facts.cap * tops)
        return float(most.max(initial=0.0))
    if not_checked(facts):
        return float(tops.max(initial=0.0) * facts.losses[np.isfinite(facts.losses)].max(initial=0.0))
    rule, found = facts.rule(), 0.0
    for prior, rows in bounded:
        low = np.full(rows.size, float(prior.virtual_cost(prior.smallest_bid)))
        losses = np.minimum(rule.at(rows, low).loss, facts.cap)
        found = max(found, prior.support[1] * float(losses[np.isfinite(losses)].max(initial=0.0)))
    return found


def by_variance(facts: Facts, rows: IndexArray, most: int) -> Iterator[tuple[IndexArray, bool]]:
    """People who share a variance, a cap and a stratum, and whether their numbers lie on a curve.

    If there are many kinds of people, everybody is computed: or, if those are more than ``most``, a random sample.
    """
    kinds, which = np.unique(facts.kinds[:, rows], axis=1, return_inverse=True)
    if kinds.shape[1] > _KINDS:
        yield _some(rows, most), False
        return
    for kind in range(kinds.shape[1]):
        yield rows[which.reshape(-1) == kind], True


def _everybody(facts: Facts) -> Check:
    outcome, largest = facts.outcome, largest_payment(facts)
    rounding, unsure = rounding_of(facts), admitted(facts)
    allowed = np.full(facts.people, LIMIT * largest + rounding)
    noticed = (LIMIT + PRECISION) * largest
    rule, wrong = facts.rule(), np.zeros(facts.people, dtype=bool)
    found: list[Screened] = []
    for prior, members in facts.groups:
        rows = members[facts.bought[members] & ~unsure[members]]
        if rows.size == 0:
            continue
        computed, each = _computed(facts, rule, prior, largest)
        # as many people as the budget of evaluations allows
        most = max(int(PAIRS / rule.effort / each), 64)
        # three ways: one of each step; a curve over bids; one by one
        alike = not facts.shared and facts.variance[rows].all()  # in a shared menu everybody has a share of her own
        if is_step_function(prior) and facts.central and alike:
            found.append(_on_steps(facts, prior, rows, allowed[rows], computed, noticed))
            continue
        for some, curved in by_variance(facts, rows, most):
            place = outcome.bids[some] if curved else np.arange(float(some.size))
            stated = outcome.information_rent[some]
            found.append(
                screen(some, place, stated, allowed[some], computed, noticed=noticed, scale=largest, most=most)
            )
    for one in found:
        wrong[one.wrong] = True
    bought, compared = int(facts.bought.sum()), sum(one.compared for one in found)
    problems = []
    if wrong.any():
        problems.append(f"The information rent is not the integral of the privacy loss in {rows_text(wrong)}")
    if facts.capped and facts.blurred:  # market and verification miss the same digits: a difference proves nothing
        compared -= int(wrong.sum())
        problems = []
    left = (
        f"The information rents of {bought - compared} of {bought} people are not verified: they are not known closely"
    )
    return judged(
        "rents",
        problems,
        "The information rent of everybody bought from is the integral of her privacy loss over higher bids",
        doubts=[f"{left} enough"] if compared < bought else [],
        people=compared,
        bought_from=bought,
        computed_one_by_one=sum(one.computed for one in found),
        widest_difference_allowed_relative_to_the_largest_payment=max((one.widest for one in found), default=0.0),
    )


def _computed(facts: Facts, rule: Rule, prior: Prior, largest: float) -> tuple[Computed, float]:
    """How a rent under this prior is computed, and how often that takes the rule, about."""
    bids = facts.outcome.bids
    potential = not isinstance(facts.goal, Budget | HardBudget)  # these have no objective that rents are differences of

    def integrated(rows: IndexArray) -> Integrals:
        return integrate(rule, prior, rows, bids[rows], floor=EXACT * largest)

    def widened(rows: IndexArray) -> Integrals:
        # quadrature tells its error from its own values, and beside a kink may say too little
        finely = integrated(rows)
        return Integrals(finely.rent, 2.0 * finely.error + _INTEGRATED * finely.rent)

    def refined(found: Integrals, rows: IndexArray) -> Integrals:
        # what is not known closely enough: by quadrature
        wide = np.flatnonzero(~(found.error <= 0.5 * PRECISION * largest))
        if wide.size:
            finely = widened(rows[wide])
            found.rent[wide], found.error[wide] = finely.rent, finely.error
        return found

    if is_step_function(prior):
        return integrated, float(len(prior.flat_parts))
    if not potential:
        return widened, float(_PER_INTEGRAL)
    if prior.slope:
        # affine: a difference of two objectives
        top, slope = float(prior.virtual_cost(prior.support[1])), prior.slope
        row = np.array([int(np.argmin(facts.costs))])
        here = float(rule.at(row, facts.costs[row]).value[0])

        def by_value(rows: IndexArray) -> Integrals:
            rent = (rule.at(rows, np.full(rows.size, top)).value - here) / slope
            return refined(Integrals(rent, _INTEGRATED * np.abs(rent) + EXACT * (here + largest) / slope), rows)

        return by_value, 1.0
    enclosing = Enclosing(rule, prior, floor=_ENCLOSED * largest, accuracy=0.0)
    return (lambda rows: refined(enclosing.of(rows, bids[rows]), rows)), float(_PER_PERSON)


def _on_steps(
    facts: Facts, prior: Prior, rows: IndexArray, allowed: FloatArray, computed: Computed, noticed: float
) -> Screened:
    """One person of each step, variance and cap is computed; the others have more or less of the same step."""
    outcome, ends = facts.outcome, np.array([right for _, right, _ in prior.flat_parts])
    step = np.minimum(ends.searchsorted(outcome.bids[rows], side="left"), ends.size - 1)
    _, first, which = np.unique(
        np.vstack([step.astype(float), facts.kinds[:, rows]]),
        axis=1,
        return_index=True,
        return_inverse=True,
    )
    one = rows[first]
    found, mine = computed(one), which.reshape(-1)
    # on one step the loss is constant: a rent differs by loss times distance
    ahead = outcome.bids[one][mine] - outcome.bids[rows]
    with np.errstate(invalid="ignore"):
        rent = found.rent[mine] + np.where(ahead == 0.0, 0.0, ahead * facts.losses[one][mine])
    error = found.error[mine] + 2.0 * _INTEGRATED * np.abs(rent)
    close = allowed + error <= noticed
    bad = close & ~(np.abs(outcome.information_rent[rows] - rent) <= allowed + error)
    widest = float((allowed + error).max()) / (largest_payment(facts) or 1.0)
    return Screened(rows[bad], one.size, int(close.sum()), widest)


def _by_quadrature(facts: Facts, people: int) -> Check:
    """Information rents, and the bounds stated on them, by adaptive quadrature of the independently evaluated rule."""
    outcome, rule = facts.outcome, facts.rule()
    everybody, largest = np.flatnonzero(facts.bought & ~admitted(facts)), largest_payment(facts)
    rounding = rounding_of(facts)
    # a sample that nobody could foresee, smaller where the rule is slow
    few = people if everybody.size <= people else max(int(people / rule.effort), min(people, 4))
    sample = _some(everybody, few)
    bad, vague, worst = np.zeros(facts.people, dtype=bool), np.zeros(facts.people, dtype=bool), 0.0
    for prior, members in facts.groups:
        rows = np.intersect1d(sample, members, assume_unique=True)
        found = integrate(rule, prior, rows, outcome.bids[rows], floor=EXACT * largest)
        allowed = _INTEGRATED * found.rent + 2.0 * found.error + EXACT * largest + rounding
        low, high = (bound[rows] for bound in outcome.rent_bounds)
        outside = np.maximum(np.maximum(low - found.rent, found.rent - high), 0.0)
        off = np.abs(outcome.information_rent[rows] - found.rent)
        vague[rows] = ~(allowed <= PRECISION * largest)
        bad[rows] = ~vague[rows] & ~(off <= allowed + LIMIT * largest)
        vague[rows] |= ~(outside <= allowed)  # a bound that is too narrow, of a rent that is right to the limit
        worst = max(worst, float(distance(outcome.information_rent[rows], found.rent, floor=largest).max(initial=0.0)))
    if facts.capped and facts.blurred:
        bad, vague = np.zeros_like(bad), bad | vague
    problems = []
    if bad.any():
        problems.append(f"The information rent, or a bound on it, is not what quadrature gives in {rows_text(bad)}")
    whom = "everybody bought from" if sample.size == everybody.size else f"a random sample of {sample.size} people"
    return judged(
        "rents by quadrature",
        problems,
        f"Fine quadrature of the privacy loss gives the information rents of {whom}, within the bounds stated",
        doubts=[f"Quadrature does not confirm the rents within their bounds in {rows_text(vague)}"]
        if vague.any()
        else [],
        people=sample.size,
        largest_difference_relative_to_the_largest_payment=worst,
    )


def _some(rows: IndexArray, people: int) -> IndexArray:
    """All of ``rows`` if they are few, otherwise a random sample drawn with the operating system's entropy."""
    if rows.size <= people:
        return rows
    chosen: IndexArray = np.array(random.SystemRandom().sample(rows.tolist(), people), dtype=np.intp)
    return np.sort(chosen)
