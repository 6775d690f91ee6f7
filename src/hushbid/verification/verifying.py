"""Verifying a record: recompute, without the data and by other means, whatever it says."""

from collections.abc import Callable, Iterator

import numpy as np

from hushbid.common.documents import hash_of
from hushbid.errors import HushbidError, RecordError
from hushbid.mechanism.releasing import outcome_key
from hushbid.record import Record, totals
from hushbid.verification.check_answers import answer_checks
from hushbid.verification.check_decision import decision_checks
from hushbid.verification.check_payments import transfer_checks
from hushbid.verification.check_questions import question_checks
from hushbid.verification.check_release import release_checks
from hushbid.verification.findings import Check, Verification, incomplete, judged
from hushbid.verification.planned_by_halving import planned_price_checks
from hushbid.verification.stated_numbers import Facts
from hushbid.verification.work import WorkExceeded

CHECKS: tuple[Callable[[Facts], Iterator[Check]], ...] = (
    question_checks,
    decision_checks,
    planned_price_checks,
    release_checks,
    answer_checks,
    transfer_checks,
)
"""In the order in which they are made."""


def verify(record: Record, *, complete: bool = False) -> Verification:
    """Check everything in a record that can be checked without the data.

    Rents (the integrals in payments) are computed again by an independent rule: one by one, or on a curve through
    some people's. Where people differ in caps, limits or variances and are too many for that, a random sample is
    computed, and the verdict is "holds by sample"; ``complete`` computes everybody's, however long it takes. The
    finding says how many were compared and computed. Everything else is checked for everybody.

    >>> from hushbid.mechanism import Market
    >>> from hushbid.priors import Uniform
    >>> market = Market(prior=Uniform(1, 2), variance=0.25, buyer_weight=1, user_weight=1)
    >>> outcome = market.acquire([1.1, 1.2, 1.9])
    >>> verify(Record.of(outcome)).ok
    True
    """
    checks = tuple(findings(record, complete=complete))
    return Verification(checks=checks, hash=record.hash, stamps=record.stamps)


def findings(record: Record, *, complete: bool = False) -> Iterator[Check]:
    """Make the checks one by one, the cheapest first."""
    yield _hash(record)
    try:
        with np.errstate(all="ignore"):
            record = record.read_again()  # what was hashed counts, not what may be in its place
            facts = Facts.of(record, complete=complete)
    except HushbidError as problem:
        yield Check(name="content", status="fails", sentence=str(problem))
        return
    except ArithmeticError:
        yield judged("content", ["The market's numbers are too large to compute with"], "")
        return
    yield _key(record)
    yield _totals(record)
    for checks in CHECKS:
        yield from _guarded(checks, facts)


def _guarded(checks: Callable[[Facts], Iterator[Check]], facts: Facts) -> Iterator[Check]:
    """What cannot be computed, or would take too long, leaves the verification incomplete; it is not a crash."""
    made = checks(facts)
    check: Check | None
    while True:
        try:
            with np.errstate(all="ignore"):
                check = next(made, None)
        except WorkExceeded:
            yield incomplete("computation", "Not checked: what is left would take longer than a verification may")
            return
        except (HushbidError, ArithmeticError, ValueError, IndexError) as problem:
            told = f"a check could not be computed ({type(problem).__name__})"
            # whole numbers and promises are checked exactly: what cannot be computed there is no release
            exact = checks in (release_checks, answer_checks, question_checks)
            yield judged(
                "computation", [f"Wrong numbers: {told}"] if exact else [], "", doubts=[f"Not checked: {told}"]
            )
            return
        if check is None:
            return
        yield check


def _hash(record: Record) -> Check:
    try:
        fits = hash_of(record.text) == record.hash
    except RecordError:
        fits = False
    problems = [] if fits else ["The hash does not fit the content"]
    return judged("hash", problems, "The hash fits the content")


def _key(record: Record) -> Check:
    problems = []
    if record.outcome_key != outcome_key(record.outcome):
        problems.append("The outcome's key does not fit the outcome")
    return judged("key", problems, "The outcome's key, which its release names, fits the outcome")


def _totals(record: Record) -> Check:
    expected = totals(record.outcome)
    wrong = sorted(
        name for name in expected.keys() | record.totals.keys() if expected.get(name) != record.totals.get(name)
    )
    problems = [f"The total of {name} is wrong" for name in wrong]
    return judged("totals", problems, "Every column adds up to its total, to the last digit", columns=len(expected))
