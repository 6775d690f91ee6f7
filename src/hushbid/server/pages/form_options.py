"""What cannot be chosen in a draft's form beside what is typed: asked of the table of combinations.

Such a choice is greyed out, with the reason. It can still be made, as something else may be changed in the same step;
then the form says at its field why the settings do not go together.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hushbid.mechanism.combinations import Combination, offered
from hushbid.server.pages.form_questions import question_count, stratum_count

_GOALS = {"accuracy": "accuracy", "cost": "price"}
_CHOICES: dict[str, dict[str, Any]] = {
    "never_exceed": {"goal": "hard_budget"},
    "accuracy": {"goal": "accuracy"},
    "relation": {"correlation": 0.1},
    "limits": {"limits": True},
}
"""What each choice adds to a campaign."""


def unavailable(typed: Mapping[str, str]) -> dict[str, str]:
    """Return the choices that do not go with what is typed, each with the code of the reason."""
    here = _typed(typed)
    return {name: f"unavailable.{name}" for name, added in _CHOICES.items() if not offered(replace(here, **added))}


def _typed(typed: Mapping[str, str]) -> Combination:
    """Return what is typed as a combination of the table, as far as choices depend on it."""
    kinds = [typed.get(f"q-{place}-kind") for place in range(question_count(typed))]
    questions: Any = "several" if len(kinds) > 1 or "choice" in kinds else "yes_no" if "yes_no" in kinds else "none"
    goal: Any = _GOALS.get(typed.get("goal", ""), "hard_budget" if typed.get("never_exceed") == "yes" else "budget")
    return Combination(
        setting="local" if typed.get("setting") == "local" else "central",
        goal=goal,
        cap="one",
        strata=stratum_count(typed) > 0,
        questions=questions,
    )
