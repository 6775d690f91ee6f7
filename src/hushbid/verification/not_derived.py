"""What the second derivation does not cover: such a check is incomplete, whatever the record says.

An honest record of such a market does not fail, and none of it holds: what can be said without the derivation is still
said by the other checks, and by the necessary conditions in :mod:`hushbid.verification.check_optimality`.
"""

from hushbid.allocation.goals import Accuracy
from hushbid.verification.stated_numbers import Facts


def optimum_not_checked(facts: Facts) -> str:
    """Why the optimum is not derived a second time; empty if it is."""
    if facts.central or not isinstance(facts.goal, Accuracy) or facts.strata is None:
        return ""
    return "Not checked: an accuracy where strata are combined in the local setting"
