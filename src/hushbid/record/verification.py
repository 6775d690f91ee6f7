"""Verifying a record: recompute, without the data and by other means, whatever it says."""

from collections.abc import Callable, Iterator

from hushbid.errors import HushbidError, RecordError
from hushbid.record.canonical import content_hash
from hushbid.record.contents import Record, key_of, totals
from hushbid.record.decisions import decision_checks
from hushbid.record.disclosed import release_checks
from hushbid.record.facts import Facts
from hushbid.record.findings import Check, Verification, judged
from hushbid.record.transfers import transfer_checks

PEOPLE = 32
"""For how many people rents are integrated again; where more are bought from, for a random sample of so many."""


def verify(record: Record, *, people: int = PEOPLE) -> Verification:
    """Check everything in a record that can be checked without the data.

    Rents (the integrals in payments) are computed again for everybody bought from if they are at most ``people``, and
    otherwise for a random sample of so many; everything else for everybody.

    >>> from hushbid.mechanism import Market
    >>> from hushbid.priors import Uniform
    >>> outcome = Market(prior=Uniform(1, 2), variance=0.25).acquire([1.1, 1.2, 1.9])
    >>> verify(Record.of(outcome)).ok
    True
    """
    checks = tuple(findings(record, people))
    return Verification(checks=checks, hash=record.hash, stamps=record.stamps)


def findings(record: Record, people: int = PEOPLE) -> Iterator[Check]:
    """The checks one by one, the cheapest first."""
    yield _hash(record)
    try:
        record = Record.of_content(record.content)  # what was hashed counts, not what may have been put in its place
        facts = Facts.of(record)
    except HushbidError as problem:
        yield judged("content", [str(problem).rstrip(".")], "")
        return
    yield _key(record)
    yield _totals(record)
    for checks in (decision_checks, lambda facts: transfer_checks(facts, people), release_checks):
        yield from _guarded(checks, facts)


def _guarded(checks: Callable[[Facts], Iterator[Check]], facts: Facts) -> Iterator[Check]:
    """Numbers that cannot even be computed with are a finding, not a crash."""
    try:
        yield from checks(facts)
    except (HushbidError, ArithmeticError, ValueError, IndexError) as problem:
        yield judged("computation", [f"A check could not be computed: {type(problem).__name__}"], "")


def _hash(record: Record) -> Check:
    try:
        fits = content_hash(record.content) == record.hash
    except RecordError:
        fits = False
    problems = [] if fits else ["The hash does not fit the content"]
    return judged("hash", problems, "The hash fits the content")


def _key(record: Record) -> Check:
    problems = []
    if record.outcome_key != key_of(record.content["outcome"]):
        problems.append("The outcome's key does not fit the outcome")
    return judged("key", problems, "The outcome's key, under which its release is claimed, fits the outcome")


def _totals(record: Record) -> Check:
    expected = totals(record.outcome)
    wrong = sorted(
        name for name in expected.keys() | record.totals.keys() if expected.get(name) != record.totals.get(name)
    )
    problems = [f"The total of {name} is wrong" for name in wrong]
    return judged("totals", problems, "Every column adds up to its total, to the last digit", columns=len(expected))
