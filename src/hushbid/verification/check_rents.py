"""Checks of information rents: of everybody, or of a random sample where everybody would take too long.

Every rent is computed by quadrature of the loss that an independent rule says would be bought at each higher bid
(:mod:`hushbid.verification.quadrature`). A stated rent may differ by what its stated bounds admit, but by no more than
`LIMIT` of the largest payment, and by what the computation may be off; ``tolerance`` loosens nothing. Of many people
who differ by nothing but their bids, some are computed (:mod:`hushbid.verification.by_curve`). Where people differ in
caps, limits or variances and are too many for the work that a verification may do, a sample is computed. It is drawn
with the record's hash and the operating system's entropy, so that nobody can foresee it.
"""

import hashlib
import os
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from hushbid.allocation.goals import Price
from hushbid.common.arrays import BoolArray, FloatArray, IndexArray, rows_text
from hushbid.priors import Prior
from hushbid.verification.by_curve import Computed, Screened, screen
from hushbid.verification.findings import Check, incomplete, judged
from hushbid.verification.not_derived import optimum_not_checked
from hushbid.verification.quadrature import FLOOR, PRECISION, Integrals, integrate, is_step_function
from hushbid.verification.stated_numbers import Facts

EXACT = 1e-12
LIMIT = 3e-6
"""How far a rent may be from the exact one, relative to the largest payment: three times what a market aims at."""

NOTICED = 8e-6
"""A difference that must be noticed, relative to the largest payment: else a rent counts as not verified."""

PAIRS = 200_000
"""So often the rule may be evaluated, about: each takes a tenth of a millisecond."""

MISSED = 0.01
"""The chance at which a sample misses the share of altered rents that is stated."""

_DIGITS_OF_VALUES = 1e-12
"""Rents may be differences of values that are right to this part."""

_PER_PERSON = 80
_KINDS = 8


def rent_checks(facts: Facts) -> Iterator[Check]:
    """Check the rents of everybody who is bought from."""
    if unknown := optimum_not_checked(facts):
        yield incomplete("rents", unknown)
        return
    largest, unsure = largest_payment(facts), admitted(facts)
    found: list[Screened] = []
    for prior, members in facts.groups:
        rows = members[facts.bought[members] & ~unsure[members]]
        if rows.size:
            found += _compared(facts, prior, rows, largest)
    yield _judged(facts, found, largest)


def largest_payment(facts: Facts) -> float:
    """Return what a tolerance is relative to: the largest payment, before or after people give for the estimate."""
    outcome = facts.outcome
    return float(max(np.abs(outcome.payments).max(), (_price(facts) + outcome.information_rent).max()))


def _price(facts: Facts) -> FloatArray:
    """Return what everybody is paid for the loss itself; a bid of 0 is paid nothing, even for an infinite loss."""
    paying = facts.bought & (facts.outcome.bids > 0.0)
    return np.where(paying, facts.outcome.bids * np.where(paying, facts.losses, 0.0), 0.0)


def admitted(facts: Facts) -> BoolArray:
    """Return whose bounds admit that the rent is known less closely than `LIMIT`.

    Next to caps, and where the error is worth millions of times what people are paid, a market may lose digits: it then
    states wider bounds. A record with such bounds is not wrong, but what it pays is not verified either.
    """
    largest = largest_payment(facts)
    dear = isinstance(facts.goal, Price) and _DIGITS_OF_VALUES * facts.outcome.objective > LIMIT * largest
    unknown = facts.shared and not facts.menu.known
    if not (facts.capped or dear or unknown or optimum_not_checked(facts)):
        return np.zeros(facts.people, dtype=bool)
    low, high = facts.outcome.rent_bounds
    return np.asarray(high - low > LIMIT * largest)


def kinds_of(facts: Facts, rows: IndexArray) -> tuple[int, IndexArray]:
    """Return how many kinds of people there are, by variance, cap and stratum, and of which each is."""
    kinds, which = np.unique(facts.kinds[:, rows], axis=1, return_inverse=True)
    return kinds.shape[1], which.reshape(-1)


def by_kind(facts: Facts, rows: IndexArray, most: int) -> Iterator[tuple[IndexArray, bool]]:
    """Return people of one kind, whose numbers lie on a curve; or, of many kinds, everybody or a random sample."""
    count, which = kinds_of(facts, rows)
    if count > _KINDS:
        yield (rows if facts.complete else _sample(facts, rows, most)), False
        return
    for kind in range(count):
        yield rows[which == kind], True


def _sample(facts: Facts, rows: IndexArray, most: int) -> IndexArray:
    """Return all rows if they are few, otherwise as many of them as may be, drawn as nobody could foresee."""
    if rows.size <= most:
        return rows
    seed = hashlib.sha256(facts.record.hash.encode("ascii") + os.urandom(32)).digest()
    chosen = np.random.default_rng(int.from_bytes(seed)).choice(rows.size, most, replace=False)
    return rows[np.sort(chosen)]


def _compared(facts: Facts, prior: Prior, rows: IndexArray, largest: float) -> Iterator[Screened]:
    """Compare the rents of people who share a prior."""
    rule, outcome, price = facts.rule(), facts.outcome, _price(facts)

    def computed(some: IndexArray) -> Integrals:
        return integrate(rule, prior, some, outcome.bids[some], paid=price[some], scale=largest)

    of_steps = is_step_function(prior) and facts.central and not facts.shared
    each = len(prior.flat_parts) if of_steps else _PER_PERSON
    most = max(int(PAIRS / rule.effort / each), 64)
    for some, curved in by_kind(facts, rows, most):
        if of_steps:
            yield _on_steps(facts, prior, some, computed, largest)
            continue
        place = outcome.bids[some] if curved else np.arange(float(some.size))
        stated, allowed = outcome.information_rent[some], _allowed(facts, some, largest)
        limit = most if curved else max(most, some.size)
        yield screen(some, place, stated, allowed, computed, noticed=NOTICED * largest, scale=largest, most=limit)


def _allowed(facts: Facts, rows: IndexArray, largest: float) -> FloatArray:
    """Return by how much stated rents may differ: what their bounds admit, up to a limit that nothing stated moves."""
    outcome = facts.outcome
    rent, low, high = (column[rows] for column in (outcome.information_rent, *outcome.rent_bounds))
    own = np.maximum(2.0 * PRECISION * (_price(facts)[rows] + rent), 2.0 * FLOOR * largest)
    return np.asarray(np.minimum(np.maximum(np.maximum(high - rent, rent - low), own), LIMIT * largest))


def _on_steps(facts: Facts, prior: Prior, rows: IndexArray, computed: Computed, largest: float) -> Screened:
    """Compute one person of each step, variance and cap; the others have more or less of the same step."""
    outcome, ends = facts.outcome, np.array([right for _, right, _ in prior.flat_parts])
    step = np.minimum(ends.searchsorted(outcome.bids[rows], side="left"), ends.size - 1)
    columns = np.vstack([step.astype(float), facts.kinds[:, rows]])
    _, first, which = np.unique(columns, axis=1, return_index=True, return_inverse=True)
    one, mine = rows[first], which.reshape(-1)
    found = computed(one)
    # on one step the loss is constant: a rent differs by loss times distance
    ahead = outcome.bids[one][mine] - outcome.bids[rows]
    with np.errstate(invalid="ignore"):
        rent = found.rent[mine] + np.where(ahead == 0.0, 0.0, ahead * facts.losses[one][mine])
    allowed = _allowed(facts, rows, largest) + found.error[mine]
    close = allowed <= NOTICED * largest
    bad = close & ~(np.abs(outcome.information_rent[rows] - rent) <= allowed)
    return Screened(rows.size, rows[bad], one.size, int(close.sum()), float(allowed.max()) / (largest or 1.0))


def _judged(facts: Facts, found: list[Screened], largest: float) -> Check:
    wrong = np.zeros(facts.people, dtype=bool)
    for one in found:
        wrong[one.wrong] = True
    bought, compared = int(facts.bought.sum()), sum(one.compared for one in found)
    looked_at = sum(one.people for one in found)
    problems, doubts, sampled = [], [], ""
    if wrong.any():
        problems.append(f"The information rent is not the integral of the privacy loss in {rows_text(wrong)}")
    # market and verification miss the same digits: a difference proves nothing
    if (facts.capped and facts.blurred) or (facts.shared and not facts.menu.known):
        compared -= int(wrong.sum())
        problems = []
    left_out = int(np.count_nonzero(facts.bought & admitted(facts)))
    if compared < looked_at or left_out:
        unknown = looked_at - compared + left_out
        doubts.append(
            f"The information rents of {unknown} of {bought} people are not verified: they are not known closely enough"
        )
    whom, figures = "everybody bought from", {}
    if looked_at < bought - left_out:
        share = 1.0 - MISSED ** (1.0 / max(compared, 1))
        whom, sampled = f"{compared} of {bought} people, drawn at random,", f"{compared} of {bought} rents"
        figures = {"share_of_altered_rents_missed_with_1_percent": share}
    check = judged(
        "rents",
        problems,
        f"The information rent of {whom} is the integral of the privacy loss over higher bids",
        doubts=doubts,
        people=compared,
        bought_from=bought,
        computed_one_by_one=sum(one.computed for one in found),
        widest_difference_allowed_relative_to_the_largest_payment=max((one.widest for one in found), default=0.0),
        **figures,
    )
    return replace(check, sampled=sampled)
