"""What can be combined with what in a market: one table.

Goals, caps, strata, questions and the other terms of a market are parameters of one problem, but not every combination
has a rule that is proved to be optimal and truthful. A combination is in one of four states:

- *exact*: the purchase is the optimum, and the truth is everybody's best bid. Whatever no case applies to is exact.
- *on average*: no exact rule is truthful. A price of the error that is planned beforehand meets the goal on average.
- *impossible*: there is a proof that it cannot be done.
- *not offered*: nobody has proved, or built, how it could be done.

Each state but *exact* is given by the first of `CASES` that applies. Libraries, engines, campaign files, the server and
its pages ask this table, the reference page docs/reference/combinations.md is printed from it (``python -m
tools.combinations``), and a test walks all combinations. What no solver takes is worded in
`hushbid.allocation.unsolved`, where direct calls are refused too.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Literal

from hushbid.allocation.unsolved import (
    BY_RESPONSE,
    LOCAL_CAPS,
    LOCAL_VARIANCES,
)
from hushbid.errors import InputError
from hushbid.estimation import Setting

State = Literal["exact", "on average", "impossible", "not offered"]
"""What becomes of a combination."""

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
class Case:
    """Combinations that are not exact, for one reason."""

    state: State
    """What becomes of them."""

    applies: Callable[[Combination], bool]
    """Whether a combination is one of them; what an earlier case says goes first."""

    field: str
    """The field that the sentence is about: a name, or ``{cap}`` or ``{limits}`` for what these are called."""

    sentence: str
    """What the user reads: what is wrong, why, and what to do; of a goal that is met on average, what that means.
    Names are filled in by `told`."""

    reason: str
    """Why, for the reference page."""

    def told(self, combination: Combination) -> str:
        """Return the sentence about one combination."""
        return self.sentence.format(**_words(combination))

    def field_of(self, combination: Combination) -> str:
        """Return the field that the sentence is about."""
        return self.field.format(**_words(combination))

    @property
    def refused(self) -> bool:
        """Whether these combinations cannot be had."""
        return self.state != "on average"


def _words(combination: Combination) -> dict[str, Any]:
    return {
        "cap": combination.cap_name if combination.cap != "none" else combination.limits_name,
        "limits": combination.limits_name,
        "goal": _STATED[combination.goal],
        "correlation": combination.correlation,
    }


_NP_HARD = "make the problem [NP-hard](../concepts/proofs.md#what-cannot-be-computed)"

CASES = (
    Case(
        state="not offered",
        applies=lambda one: one.questions != "none" and one.user_weight,
        field="user_weight",
        sentence="user_weight must be 0 with questions: what staying out is worth to people who have their own answers"
        " is not known.",
        reason="what staying out is worth to people who have their own answers is not known",
    ),
    Case(
        state="not offered",
        applies=lambda one: (one.strata or one.each) and one.user_weight,
        field="user_weight",
        sentence="user_weight must be 0 with strata: what staying out is worth to people whose stratum has a mean of"
        " its own is not known.",
        reason="what staying out is worth to people whose stratum has its own mean is not known",
    ),
    Case(
        state="not offered",
        applies=lambda one: one.each and one.goal in ("budget", "hard_budget"),
        field="goal",
        sentence="a budget cannot be the goal with strata.each: how to split it between strata would have to be fixed"
        " before anybody bids; make a campaign of each stratum with its own budget, or state a standard_error or a"
        " buyer_weight.",
        reason="how to split it between strata would have to be fixed before anybody bids",
    ),
    Case(
        state="not offered",
        applies=lambda one: one.user_weight and one.goal != "price",
        field="user_weight",
        sentence="user_weight must be 0 beside a {goal}: only a buyer_weight weighs what people gain from the"
        " estimate.",
        reason="only a price weighs what people gain from the estimate",
    ),
    Case(
        state="not offered",
        applies=lambda one: one.local and one.variances and one.goal == "hard_budget",
        field=LOCAL_VARIANCES.field,
        sentence="variance must be one number in the local setting: a hard budget's menu is planned for one.",
        reason="the menu of a hard budget is planned for one variance",
    ),
    Case(
        state="impossible",
        applies=lambda one: one.local and one.variances,
        field=LOCAL_VARIANCES.field,
        sentence=LOCAL_VARIANCES.sentence,
        reason=f"variances per person {_NP_HARD}",
    ),
    Case(
        state="not offered",
        applies=lambda one: one.correlation > 0.0 and one.response,
        field="max_correlation",
        sentence=f"max_correlation{BY_RESPONSE}",
        reason="the bound has not been proved for randomised response",
    ),
    Case(
        state="not offered",
        applies=lambda one: one.correlation > 0.0 and one.user_weight,
        field="user_weight",
        sentence="user_weight must be 0 with max_correlation={correlation:g}: what people believe about the relation"
        " would enter what staying out is worth to them.",
        reason="what people believe about the relation would enter what staying out is worth to them",
    ),
    Case(
        state="impossible",
        applies=lambda one: one.cap == "each" and one.local and one.goal != "hard_budget",
        field="{cap}",
        sentence=LOCAL_CAPS.sentence,
        reason=f"caps per person {_NP_HARD}",
    ),
    Case(
        state="impossible",
        applies=lambda one: one.limits and one.local and one.goal != "hard_budget",
        field="limits",
        sentence="limits cannot be stated in the local setting: with one per person the optimum is NP-hard to find;"
        " state one max_privacy_loss for all or a hard_budget, or choose the central setting.",
        reason=f"limits per person {_NP_HARD}",
    ),
    Case(
        state="not offered",
        applies=lambda one: one.limits and one.user_weight,
        field="user_weight",
        sentence="user_weight must be 0 where people state limits.",
        reason="that the true limit is the best to state has not been proved there",
    ),
    Case(
        state="on average",
        applies=lambda one: one.local and one.goal == "budget",
        field="goal",
        sentence="the budget is met on average, by a price of the error that is planned for the population: in the"
        " local setting a person who asks more could otherwise be bought more from.",
        reason="privacy can be a [Giffen good](../concepts/proofs.md#giffen-goods), so no exact rule is truthful",
    ),
    Case(
        state="on average",
        applies=lambda one: one.capped and one.strata and one.goal == "budget",
        field="goal",
        sentence="the budget is met on average, by a price of the error that is planned for the population: with strata"
        " and {cap} a person who asks more could otherwise be bought more from.",
        reason="privacy can be a [Giffen good](../concepts/proofs.md#giffen-goods), so no exact rule is truthful",
    ),
)
"""Every combination that is not exact; of several cases the first is meant."""


def case_of(combination: Combination) -> Case | None:
    """Return the case that a combination falls under; None if it is exact."""
    return next((one for one in CASES if one.applies(combination)), None)


def state_of(combination: Combination) -> State:
    """Return what becomes of a combination."""
    found = case_of(combination)
    return "exact" if found is None else found.state


def offered(combination: Combination) -> bool:
    """Return whether a combination can be had, exactly or on average."""
    found = case_of(combination)
    return found is None or not found.refused


def refuse(combination: Combination) -> None:
    """Refuse a combination that cannot be had, in one sentence."""
    found = case_of(combination)
    if found is not None and found.refused:
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
        *(f"{number}. *{_shown(one)}* – {one.reason}." for number, one in enumerate(CASES, start=1)),
    ]
    return "\n".join(lines) + "\n"


def _row(alone: Combination) -> str:
    cells = [_cell(replace(alone, **added)) for added in COLUMNS.values()]
    return f"| {alone.setting} | {alone.goal.replace('_', ' ')} | {' | '.join(cells)} |"


def _cell(combination: Combination) -> str:
    found = case_of(combination)
    return "exact" if found is None else f"{found.state} ({CASES.index(found) + 1})"


def _shown(case: Case) -> str:
    """The sentence up to its first colon, without the words that depend on the market."""
    words = {"cap": "max_privacy_loss (or limits)", "limits": "limits", "goal": "goal other than a price"}
    return case.sentence.replace("={correlation:g}", "").format(**words).partition(":")[0].rstrip(".")
