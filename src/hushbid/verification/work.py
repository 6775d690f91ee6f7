"""What a second derivation answers, and how much of it one verification may compute."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from hushbid.common.arrays import FloatArray, IndexArray

MOST_WORK = 20e6
"""What all rules of one verification may do, in millionths of a second on an ordinary computer, about. It is counted
and not measured: a verdict does not depend on the computer."""

WORK_PER_PERSON = 500.0
"""What they may do more for each person in the record."""

_ORDINARY = 60.0
"""What one evaluation of a rule comes to that states nothing else."""

_AT_ONCE = 4096
_AT_ONCE_COUNTED = 256


@dataclass(frozen=True, slots=True, eq=False)
class Answers:
    """The optimum for each of many (person, cost) pairs; range of width 1."""

    loss: FloatArray
    """The person's privacy loss."""

    mse: FloatArray
    """The error of the estimate; infinite if nobody is there."""

    value: FloatArray
    """The objective."""


class Rule(Protocol):
    """The optimum as a function of one person's cost."""

    def at(self, rows: IndexArray, costs: FloatArray) -> Answers: ...

    def everybody(self, row: int, cost: float) -> tuple[FloatArray, float, float]: ...


class WorkExceeded(ArithmeticError):
    """A verification took more evaluations of its rules than it may, whatever the record says."""


@dataclass(slots=True)
class Work:
    """How much all rules of one verification have done, in the unit of `MOST_WORK`."""

    people: int = 0
    """How many people the record has."""

    done: float = 0.0

    unbounded: bool = False
    """Whether everybody is to be checked, however long that takes."""

    def add(self, amount: float) -> None:
        """Count work; too much of it ends a verification."""
        self.done += amount
        if self.done > MOST_WORK + WORK_PER_PERSON * self.people and not self.unbounded:
            raise WorkExceeded("the most that a verification may compute is exceeded.")


class BoundedRule:
    """A rule whose evaluations are counted: each at the rule's ``price``, or as the rule itself has ``worked``."""

    def __init__(self, rule: Rule, work: Work) -> None:
        self._rule, self._work = rule, work
        self.effort = float(getattr(rule, "effort", 1.0))
        self._counts = hasattr(rule, "worked")
        self._price = 0.0 if self._counts else float(getattr(rule, "price", _ORDINARY))
        self._at_once = _AT_ONCE_COUNTED if self._counts else _AT_ONCE

    def at(self, rows: IndexArray, costs: FloatArray) -> Answers:
        """Return the purchase if person ``rows[j]`` had cost ``costs[j]``, for every j."""
        parts = []
        for start in range(0, max(rows.size, 1), self._at_once):
            part = slice(start, start + self._at_once)
            self._work.add(rows[part].size * self._price)
            before = self._worked()
            parts.append(self._rule.at(rows[part], costs[part]))
            self._work.add(self._worked() - before)
        if len(parts) == 1:
            return parts[0]
        return Answers(*(np.concatenate([getattr(one, name) for one in parts]) for name in Answers.__slots__))

    def _worked(self) -> float:
        """Return what the rule has done so far, where it counts that itself."""
        return float(self._rule.worked) if self._counts else 0.0  # type: ignore[attr-defined]

    def everybody(self, row: int, cost: float) -> tuple[FloatArray, float, float]:
        """Return everybody's privacy loss, the error and the value if person ``row`` had that cost."""
        self._work.add(max(self._price, _ORDINARY))
        return self._rule.everybody(row, cost)
