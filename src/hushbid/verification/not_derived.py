"""What the second derivation does not cover: such a check is incomplete, whatever the record says.

An honest record of such a market does not fail, and none of it holds: what can be said without the derivation is still
said by the other checks, and by the necessary conditions in :mod:`hushbid.verification.check_optimality`.
"""

import numpy as np

from hushbid.allocation.goals import Accuracy
from hushbid.verification.stated_numbers import Facts

_KINDS = 400
_PEOPLE = 2000
"""With more people than this, who differ in more than so many ways, rents under caps take too long."""


def optimum_not_checked(facts: Facts) -> str:
    """Why the optimum is not derived a second time; empty if it is."""
    if facts.central or not isinstance(facts.goal, Accuracy) or not (facts.capped or facts.strata is not None):
        return ""
    which = "with a cap" if facts.strata is None else "where strata are combined"
    return f"Not checked: an accuracy {which} in the local setting"


def not_checked(facts: Facts) -> str:
    """Why what would be bought at other bids is not derived a second time; empty if it is."""
    if unknown := optimum_not_checked(facts):
        return unknown
    if facts.shared or not facts.capped or facts.people <= _PEOPLE:
        return ""
    kinds = np.unique(facts.kinds, axis=1).shape[1]
    many = f"Not checked: more than {_KINDS} different limits or variances, of more than {_PEOPLE} people"
    return many if kinds > _KINDS else ""
