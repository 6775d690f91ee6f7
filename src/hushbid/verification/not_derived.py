"""What the second derivation does not cover, in one table: such a check is incomplete, whatever the record says.

An honest record of what is in the table does not fail, and none of it holds: what can be said without the derivation is
still said by the other checks, and by the necessary conditions in :mod:`hushbid.verification.check_optimality`.
"""

from dataclasses import dataclass

import numpy as np

from hushbid.allocation.goals import Accuracy
from hushbid.verification.stated_numbers import Facts

_KINDS = 400
_PEOPLE = 2000
"""With more people than this, who differ in more than so many ways, rents under caps take too long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Missing:
    """Markets that the second derivation does not solve; None in a field means both."""

    central: bool
    accuracy: bool | None
    strata: bool
    capped: bool | None
    optimum: bool
    """Whether the optimum itself is not derived either, rather than what would be bought at other bids only."""

    words: str
    """What is not checked, as it stands in a sentence."""

    def fits(self, facts: Facts) -> bool:
        """Whether a record is of such a market."""
        stated = (facts.central, isinstance(facts.goal, Accuracy), facts.strata is not None, facts.capped)
        here = (self.central, self.accuracy, self.strata, self.capped)
        return all(wanted is None or wanted is found for wanted, found in zip(here, stated, strict=True))


_NOT_DERIVED = (
    _Missing(
        central=True,
        accuracy=None,
        strata=True,
        capped=True,
        optimum=False,
        words="limits on losses where strata are combined",
    ),
    _Missing(
        central=False,
        accuracy=True,
        strata=False,
        capped=True,
        optimum=True,
        words="an accuracy with a cap in the local setting",
    ),
    _Missing(
        central=False,
        accuracy=True,
        strata=True,
        capped=None,
        optimum=True,
        words="an accuracy where strata are combined in the local setting",
    ),
)


def optimum_not_checked(facts: Facts) -> str:
    """Why the optimum is not derived a second time; empty if it is."""
    return _first(facts, optimum=True)


def not_checked(facts: Facts) -> str:
    """Why what would be bought at other bids is not derived a second time; empty if it is."""
    if not facts.shared and (unknown := _first(facts, optimum=False)):
        return unknown
    if facts.shared or not facts.capped or facts.people <= _PEOPLE:
        return ""
    kinds = np.unique(facts.kinds, axis=1).shape[1]
    many = f"Not checked: more than {_KINDS} different limits or variances, of more than {_PEOPLE} people"
    return many if kinds > _KINDS else ""


def _first(facts: Facts, *, optimum: bool) -> str:
    found = (one for one in _NOT_DERIVED if one.fits(facts) and (one.optimum or not optimum))
    missing = next(found, None)
    return "" if missing is None else f"Not checked: {missing.words}"
