"""What a buyer asks of a forecast: what do I get, and what would it take to get more?"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIf:
    """Answers from simulated campaigns; errors are standard errors, at worst where a relation is allowed for."""

    people: int
    """How many people were counted with."""

    errors: tuple[float, ...] | None
    """What they lead to, one for the number or one for each question; None if the goal is out of reach of so many."""

    margins: tuple[float, ...] = ()
    """How many of its standard errors half a 95 % interval of each estimate is, before it is cut to the range."""

    cost: int | None
    """What that costs on average, fees included, in minor units."""

    targets: tuple[float, ...] = ()
    """Errors of half the size, in two digits."""

    people_for_targets: int | None = None
    """With about so many people the same money reaches the targets; None if no number that was tried does."""

    cost_for_targets: int | None = None
    """With the same people the targets cost so much on average; None if they are out of reach."""

    both_for_targets: tuple[int, int] | None = None
    """Where neither alone is enough: a number of people with whom the targets can be reached, and what it costs."""

    cost_of_twice: int | None = None
    """Where the accuracy is stated: what it costs on average with twice the people; None if it is not known."""

    least_people: int | None = None
    """Where the goal is out of reach: about so many people reach it; None if no number that was tried does."""

    in_time: bool = True
    """Whether all of it was looked for to the end; what is missing else may only not have been found in time."""

    repetitions: int
    """So many campaigns were simulated for each figure."""
