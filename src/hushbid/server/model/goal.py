"""What the buyer of a campaign states: what she may spend, how accurate she must be, or what an error costs her.

Budgets are whole minor units of the currency and include the participation fees, which are taken off first: what is
left is for privacy. So fees and payments together come to a budget on average, and never exceed a hard budget.
"""

from collections.abc import Mapping

from hushbid.allocation import Goal
from hushbid.allocation.goals import STATED, goal_named
from hushbid.errors import InputError

GOALS = tuple(STATED)
"""The fields of which exactly one is stated."""

BUDGETS = ("budget", "hard_budget")
"""Those that are amounts of money."""


def the_stated(numbers: Mapping[str, object]) -> str:
    """The name of the one goal that is stated."""
    given = [name for name, number in numbers.items() if number is not None]
    if len(given) != 1:
        raise InputError(
            "exactly one of budget, hard_budget, standard_error and buyer_weight must be stated, got"
            f" {' and '.join(given) or 'none of them'}.",
            field=given[1] if given else "budget",
        )
    return given[0]


def goal_after_fees(name: str, number: float | tuple[float, ...], *, decimals: int, fees: int, people: int) -> Goal:
    """The goal for privacy alone, once the ``fees`` of the campaign are taken off; ``people`` may have to be paid."""
    if name not in BUDGETS or isinstance(number, tuple):
        return goal_named(name, number)
    unit = 10**decimals
    least = fees + (people if name == "hard_budget" else 0)
    if number <= least:
        coins = f" and one coin for each of {people} people" * (name == "hard_budget" and people > 0)
        raise InputError(
            f"{name} must be above {least / unit:.{decimals}f}, the participation fees{coins}, got"
            f" {number / unit:.{decimals}f}.",
            field=name,
        )
    return goal_named(name, (number - fees) / unit, coin=float(f"1e-{decimals}"))
