"""What a buyer has, how much privacy people keep at least, and what prices may tell of answers: in a draft's form.

The goal is asked in the words of a buyer: *I can spend* so much (on average, or never more), *I need this accuracy*, or
*an error costs me* so much. Privacy and protection are asked for in three degrees each, with a number of one's own for
experts.
"""

from collections.abc import Mapping
from typing import Any

from hushbid.server.model.settings import LEAST_LOSS, CampaignSettings
from hushbid.server.pages.form_questions import read_errors
from hushbid.server.pages.form_reading import Reading, money_typed
from hushbid.server.pages.wording import Writing

GOALS = ("spend", "accuracy", "cost")
PRIVACY = {"strong": 0.5, "medium": 1.0, "light": 2.0}
"""The largest privacy loss of anybody, by degree."""

RELATIONS = {"none": 0.0, "some": 0.1, "much": 0.3}
"""How closely prices and answers may be related, by degree."""

OWN = "own"
MOST_LOSS = 100.0


def read_goal(form: Reading, decimals: int | None, *, simple: bool) -> dict[str, Any]:
    """The one goal that is stated; what stands beside the others is not meant."""
    goal = form.one_of("goal", GOALS)
    if goal == "spend":
        amount = form.money("budget", decimals, least=1)
        return {"hard_budget" if form.ticked("never_exceed") else "budget": amount}
    if goal == "cost":
        return {"buyer_weight": form.number("buyer_weight", above=0.0)}
    errors = read_errors(form)
    return {"standard_error": errors[0] if simple and isinstance(errors, tuple) else errors}


def read_protection(form: Reading) -> dict[str, Any]:
    """The largest loss of anybody, and the relation that is allowed for."""
    privacy = form.one_of("privacy", (*PRIVACY, OWN))
    relation = form.one_of("relation", (*RELATIONS, OWN))
    loss = PRIVACY.get(privacy)
    if loss is None:
        loss = form.number("max_privacy_loss", low=LEAST_LOSS, high=MOST_LOSS)
    related = RELATIONS.get(relation)
    if related is None:
        related = form.number("max_correlation", low=0.0, high=1.0)
    return {"max_privacy_loss": loss, "max_correlation": related}


def field_of(name: str, typed: Mapping[str, str]) -> str:
    """The field at which a problem with the goal, the loss or the relation is to be told."""
    if name in ("budget", "hard_budget"):
        return "budget"
    if name == "standard_error":
        return "q-0-error"
    if name == "max_privacy_loss":
        return name if typed.get("privacy") == OWN else "privacy"
    if name == "max_correlation":
        return name if typed.get("relation") == OWN else "relation"
    return name


def goal_typed(settings: CampaignSettings, write: Writing) -> dict[str, str]:
    """Goal, privacy and protection, as they would have been typed."""
    spends = settings.budget if settings.hard_budget is None else settings.hard_budget
    stated = {"budget": "spend", "hard_budget": "spend", "standard_error": "accuracy", "buyer_weight": "cost"}
    loss, related = settings.max_privacy_loss, settings.max_correlation
    privacy = next((name for name, one in PRIVACY.items() if one == loss), "medium" if loss is None else OWN)
    relation = next((name for name, one in RELATIONS.items() if one == related), OWN)
    return {
        "goal": stated[settings.stated],
        "budget": money_typed(spends, settings.decimals, write),
        "never_exceed": "yes" if settings.hard_budget is not None else "",
        "buyer_weight": "" if settings.buyer_weight is None else write.typed(settings.buyer_weight),
        "privacy": privacy,
        "max_privacy_loss": write.typed(loss) if privacy == OWN and loss is not None else "",
        "relation": relation,
        "max_correlation": write.typed(related) if relation == OWN else "",
    }
