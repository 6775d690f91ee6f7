"""A survey of ten questions against one question, of the same people: pricing everybody, and the release."""

from collections.abc import Iterator
from functools import partial

import numpy as np

from benchmarks.harness import Row, time_ratio
from hushbid import Market, Uniform, YesNo
from hushbid.disclosure import release_synthetic
from hushbid.mechanism.releasing import plan_of

PEOPLE, QUESTIONS = 10**6, 10
BUYER_WEIGHTS = {1: 1e6, QUESTIONS: 4.7e5}
"""With these about as many people are bought from, whether they answer one question or ten."""

PRICE_LIMIT, RELEASE_LIMIT = 1.1, 5.0


def run() -> list[Row]:
    return [*compared()]


def compared(people: int = PEOPLE, *, repeats: int = 5) -> Iterator[Row]:
    """Both in one run."""
    rng = np.random.default_rng(7)
    bids, answers = rng.uniform(1.0, 2.0, people), rng.random((people, QUESTIONS)) < 0.5
    one, ten = (market(asked) for asked in (1, QUESTIONS))
    sizes = f"n = {people:.0e}"
    yield time_ratio(
        f"acquire, {QUESTIONS} questions, {sizes}",
        partial(ten.acquire, bids),
        against="1 question",
        theirs=partial(one.acquire, bids),
        limit=PRICE_LIMIT,
        repeats=repeats,
    )
    few, many = (plan_of(market.acquire(bids)) for market in (one, ten))
    yield time_ratio(
        f"release, {QUESTIONS} questions, {sizes}",
        lambda: release_synthetic(many, answers),
        against="1 question",
        theirs=lambda: release_synthetic(few, answers[:, :1]),
        limit=RELEASE_LIMIT,
        repeats=repeats,
    )


def market(questions: int) -> Market:
    asked = [YesNo(name=f"question {number}") for number in range(questions)]
    return Market(prior=Uniform(1.0, 2.0), questions=asked, buyer_weight=BUYER_WEIGHTS[questions])
