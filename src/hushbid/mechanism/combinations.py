"""What can be combined with what in a market: one table of refusals.

Goals, caps, strata, questions and the other terms of a market are parameters of one problem, but not every combination
has a rule that is proved to be optimal and truthful. Each refused combination is one row of `REFUSALS`: to what it
applies, the sentence that the user reads, and the reason. Whatever no row applies to is offered. The reference page
docs/reference/combinations.md is printed from this table (``python -m tools.combinations``), and a test walks all
combinations. What no solver takes is worded in `hushbid.allocation.unsolved`, where direct calls are refused too.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Literal

from hushbid.allocation.problem import ONE_LOCAL_VARIANCE
from hushbid.allocation.unsolved import (
    BY_RESPONSE,
    LOCAL_BUDGET,
    LOCAL_CAPS,
)
from hushbid.errors import InputError
from hushbid.estimation import Setting

GoalKind = Literal["price", "accuracy", "budget", "hard_budget"]

_STATED = {
    "price": "buyer_weight",
    "accuracy": "standard_error",
    "budget": "budget",
    "hard_budget": "hard_budget",
}
"""The name under which a buyer states a goal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Combination:
    """What a market states, as far as that decides whether it can be offered."""

    setting: Setting
    """Where noise is added."""

    goal: GoalKind
    """What the buyer states."""

    cap: Literal["none", "one", "each"] = "none"
    """Caps on privacy losses that the buyer sets."""

    limits: bool = False
    """Whether people state limits on their privacy losses."""

    cap_name: str = "max_privacy_loss"
    """What the field, or the column, of the caps is called."""

    limits_name: str = "limits"
    """What the argument, or the column, of the limits is called."""

    strata: bool = False
    """Whether a combination of stratum means is estimated."""

    each: bool = False
    """Whether a campaign has an estimate for each stratum: a market of each, with these terms."""

    questions: Literal["none", "several", "yes_no"] = "none"
    """Whether a survey is asked, and whether it is a single yes/no question."""

    correlation: float = 0.0
    """The bound on the correlation of price and datum; 0 for none."""

    variances: bool = False
    """Whether there is a variance for each person."""

    user_weight: bool = False
    """Whether people care about the estimate."""

    @property
    def local(self) -> bool:
        """Whether noise is added on each person's device."""
        return self.setting == "local"

    @property
    def response(self) -> bool:
        """Whether people answer by randomised response."""
        return self.local and self.questions == "yes_no"

    @property
    def capped(self) -> bool:
        """Whether somebody's privacy loss has a cap or a limit."""
        return self.cap != "none" or self.limits


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A combination that is not offered."""

    applies: Callable[[Combination], bool]
    """Whether a combination is refused for this reason."""

    field: str
    """The field that the sentence is about: a name, or ``{cap}`` or ``{limits}`` for what these are called."""

    sentence: str
    """What the user reads: what is wrong, why, and what to do. Names are filled in by `told`."""

    reason: str
    """Why it is not offered, for the reference page."""

    def told(self, combination: Combination) -> str:
        """The sentence about one combination."""
        return self.sentence.format(**_words(combination))

    def field_of(self, combination: Combination) -> str:
        """The field that the sentence is about."""
        return self.field.format(**_words(combination))


def _words(combination: Combination) -> dict[str, Any]:
    return {
        "cap": combination.cap_name if combination.cap != "none" else combination.limits_name,
        "limits": combination.limits_name,
        "goal": _STATED[combination.goal],
        "correlation": combination.correlation,
    }


REFUSALS = (
    Refusal(
        applies=lambda one: one.questions != "none" and one.user_weight,
        field="user_weight",
        sentence="user_weight must be 0 with questions: what staying out is worth to people who have their own answers"
        " is not known.",
        reason="what staying out is worth to people who have their own answers is not known",
    ),
    Refusal(
        applies=lambda one: (one.strata or one.each) and one.user_weight,
        field="user_weight",
        sentence="user_weight must be 0 with strata: what staying out is worth to people whose stratum has a mean of"
        " its own is not known.",
        reason="what staying out is worth to people whose stratum has its own mean is not known",
    ),
    Refusal(
        applies=lambda one: one.each and one.goal in ("budget", "hard_budget"),
        field="goal",
        sentence="a budget cannot be the goal with strata.each: how to split it between strata would have to be fixed"
        " before anybody bids; make a campaign of each stratum with its own budget, or state a standard_error or a"
        " buyer_weight.",
        reason="how to split it between strata would have to be fixed before anybody bids",
    ),
    Refusal(
        applies=lambda one: one.strata and one.goal == "hard_budget",
        field="goal",
        sentence="a hard budget cannot be the goal with strata: the menu that people share in knows one mean; state a"
        " budget, a standard_error or a buyer_weight.",
        reason="the menu that people share in knows one mean",
    ),
    Refusal(
        applies=lambda one: one.user_weight and one.goal != "price",
        field="user_weight",
        sentence="user_weight must be 0 beside a {goal}: only a buyer_weight weighs what people gain from the"
        " estimate.",
        reason="only a price weighs what people gain from the estimate",
    ),
    Refusal(
        applies=lambda one: one.local and one.goal in ("budget", "hard_budget"),
        field=LOCAL_BUDGET.field,
        sentence=LOCAL_BUDGET.sentence,
        reason="privacy can be a [Giffen good](../explanation/levels.md#not-in-the-local-setting)",
    ),
    Refusal(
        applies=lambda one: one.local and one.variances,
        field="variance",
        sentence=ONE_LOCAL_VARIANCE,
        reason="variances per person make the problem [NP-hard](../explanation/levels.md#what-cannot-be-computed)",
    ),
    Refusal(
        applies=lambda one: one.correlation > 0.0 and one.response,
        field="max_correlation",
        sentence=f"max_correlation{BY_RESPONSE}",
        reason="the bound has not been proved for randomised response",
    ),
    Refusal(
        applies=lambda one: one.correlation > 0.0 and one.user_weight,
        field="user_weight",
        sentence="user_weight must be 0 with max_correlation={correlation:g}: what people believe about the relation"
        " would enter what staying out is worth to them.",
        reason="what people believe about the relation would enter what staying out is worth to them",
    ),
    Refusal(
        applies=lambda one: one.cap == "each" and one.local,
        field="{cap}",
        sentence=LOCAL_CAPS.sentence,
        reason="caps per person make the problem [NP-hard](../explanation/levels.md#what-cannot-be-computed)",
    ),
    Refusal(
        applies=lambda one: one.capped and one.strata and not one.local and one.goal != "price",
        field="{cap}",
        sentence="{cap} cannot be joined with a combination of strata unless the goal is a price of the error: for a"
        " standard error or a budget the best purchase under both has not been proved; state a buyer_weight, or make a"
        " market of each stratum.",
        reason="the best purchase under both has not been proved",
    ),
    Refusal(
        applies=lambda one: one.limits and one.local,
        field="limits",
        sentence="limits cannot be stated in the local setting: with one per person the optimum is NP-hard to find;"
        " state one max_privacy_loss for all, or choose the central setting.",
        reason="limits per person make the problem [NP-hard](../explanation/levels.md#what-cannot-be-computed)",
    ),
    Refusal(
        applies=lambda one: one.limits and one.user_weight,
        field="user_weight",
        sentence="user_weight must be 0 where people state limits.",
        reason="that the true limit is the best to state has not been proved there",
    ),
)
"""Every combination that is refused; of several reasons the first is given."""


def refusal_of(combination: Combination) -> Refusal | None:
    """The reason why a combination is refused; None if it is offered."""
    return next((one for one in REFUSALS if one.applies(combination)), None)


def refuse(combination: Combination) -> None:
    """Refuse a combination that is not offered, in one sentence."""
    found = refusal_of(combination)
    if found is not None:
        raise InputError(found.told(combination), field=found.field_of(combination))


# -- the reference page ------------------------------------------------------------------------------------------------

COLUMNS: dict[str, dict[str, Any]] = {
    "alone": {},
    "one cap": {"cap": "one"},
    "a cap per person": {"cap": "each"},
    "limits people state": {"limits": True},
    "a relation": {"correlation": 0.2},
    "groups": {},
    "a variance per person": {"variances": True},
    "strata": {"strata": True},
    "an estimate for each stratum": {"each": True},
    "several questions": {"questions": "several"},
    "one yes/no question": {"questions": "yes_no"},
    "user weights": {"user_weight": True},
}
"""What can be added to a market that states a setting and a goal."""


def rows() -> Iterator[tuple[Setting, GoalKind]]:
    """Every setting with every goal."""
    settings: tuple[Setting, ...] = ("central", "local")
    goals: tuple[GoalKind, ...] = ("price", "accuracy", "budget", "hard_budget")
    yield from product(settings, goals)


def page() -> str:
    """The table of the reference page and the list of reasons below it, in Markdown."""
    lines = [
        f"| setting | goal | {' | '.join(COLUMNS)} |",
        f"|---|---|{'---|' * len(COLUMNS)}",
        *(_row(Combination(setting=setting, goal=goal)) for setting, goal in rows()),
        "",
        *(f"{number}. *{_shown(one)}* – {one.reason}." for number, one in enumerate(REFUSALS, start=1)),
    ]
    return "\n".join(lines) + "\n"


def _row(alone: Combination) -> str:
    cells = [_cell(replace(alone, **added)) for added in COLUMNS.values()]
    return f"| {alone.setting} | {alone.goal.replace('_', ' ')} | {' | '.join(cells)} |"


def _cell(combination: Combination) -> str:
    found = refusal_of(combination)
    return "exact" if found is None else f"refused ({REFUSALS.index(found) + 1})"


def _shown(refusal: Refusal) -> str:
    """The sentence up to its first colon, without the words that depend on the market."""
    words = {"cap": "max_privacy_loss (or limits)", "limits": "limits", "goal": "goal other than a price"}
    return refusal.sentence.replace("={correlation:g}", "").format(**words).partition(":")[0].rstrip(".")
