"""How much of a test is repetition, which ``make test-long`` adds: see tests/conftest.py."""

import functools
import inspect
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from _pytest.mark import ParameterSet

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


def each(names: str | Sequence[str], cases: Iterable[Any]) -> Callable[[Callable[..., None]], Any]:
    """Like ``pytest.mark.parametrize``, but all cases are one test, which lists those that fail.

    For many quick cases: each test of pytest's own costs more than they do.
    """
    asked = names.replace(" ", "").split(",") if isinstance(names, str) else list(names)
    given = [_values(one, len(asked)) for one in cases]

    def of(test: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(test)

        @functools.wraps(test)
        def all_of_them(**others: Any) -> None:
            failed: list[Exception] = []
            for place, values in enumerate(given):
                try:
                    test(**dict(zip(asked, values, strict=True)), **others)
                except Exception as problem:  # noqa: BLE001 - whatever it is, the other cases run too
                    problem.add_note(f"case {place}: {values!r}")
                    failed.append(problem)
            if failed:
                raise ExceptionGroup(f"{len(failed)} of {len(given)} cases fail", failed)

        left = [one for name, one in signature.parameters.items() if name not in asked]
        all_of_them.__signature__ = signature.replace(parameters=left)  # type: ignore[attr-defined]
        del all_of_them.__wrapped__  # type: ignore[attr-defined]
        return all_of_them

    assert given
    return of


def _values(case: Any, names: int) -> tuple[Any, ...]:
    """What a case gives to so many names, as pytest takes it."""
    if isinstance(case, ParameterSet):
        return tuple(case.values)
    return (case,) if names == 1 else tuple(case)
