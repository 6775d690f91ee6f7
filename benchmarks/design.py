"""Rows of a benchmark in which every pair of values of its factors appears, instead of every combination."""

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

Case = TypeVar("Case")


def pairwise(
    make: Callable[..., Case], factors: Mapping[str, Sequence[object]], possible: Callable[[Case], bool]
) -> list[Case]:
    """Return cases in which every possible pair of values appears, chosen greedily."""

    def pairs(case: Case) -> set[tuple[tuple[str, object], ...]]:
        return set(itertools.combinations([(name, getattr(case, name)) for name in factors], 2))

    every = [make(**dict(zip(factors, values, strict=True))) for values in itertools.product(*factors.values())]
    every = [case for case in every if possible(case)]
    missing, chosen = set[tuple[tuple[str, object], ...]]().union(*map(pairs, every)), list[Case]()
    while missing:
        best = max(every, key=lambda case: len(pairs(case) & missing))
        chosen.append(best)
        missing -= pairs(best)
    return chosen
