"""How much of a test is repetition, which ``make test-long`` adds: see tests/conftest.py."""

import os
from collections.abc import Iterable, Sequence
from typing import TypeVar

ALL_CASES = os.environ.get("HUSHBID_CASES") == "all"
"""Whether every combination is run, rather than some that stand for all."""

ALL_STORES = os.environ.get("HUSHBID_STORES") == "all"
"""Whether what is about no store is run on both."""

TIMES = int(os.environ.get("HUSHBID_EXAMPLES", "1"))
"""How many times the usual number of examples is tried."""

A, B = TypeVar("A"), TypeVar("B")


def by_turns(these: Iterable[A], those: Sequence[B]) -> list[tuple[A, B]]:
    """Each of these with one of those in turn, or with all of them where every combination is run."""
    return [
        (this, that)
        for place, this in enumerate(these)
        for turn, that in enumerate(those)
        if ALL_CASES or place % len(those) == turn
    ]
