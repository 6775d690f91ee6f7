"""Markets and outcomes in words and as a notebook shows them; no individual's numbers.

Of an outcome, a notebook leaves sums and errors out that fewer than `FEWEST_PEOPLE` are behind, as reports do: a
notebook is sent to others more easily than an outcome.
"""

import math
from collections.abc import Sequence

import numpy as np

from hushbid.allocation import Budget, HardBudget, Price
from hushbid.common.numbers import as_sentence, at_most, count, number, people
from hushbid.disclosure.error import FEW, FEW_IN_STRATUM, FEWEST_PEOPLE
from hushbid.display import WITHHELD, Table, card
from hushbid.mechanism.decision import LESS_EXACT, Decision, is_less_exact
from hushbid.mechanism.survey import QuestionError
from hushbid.mechanism.terms import Terms
from hushbid.priors.forms import prior_words
from hushbid.questions import Choice, Number, Question

_PER_PERSON = "one for each person"
_MOST_ROWS = 50


def summary_of(outcome: Decision, market: Terms, *, several: str, cap_cost: float) -> str:
    """A decision in words; ``several`` are the errors of its estimates, if there is more than one of them."""
    n = outcome.bids.size
    if outcome.active == 0:
        return nothing_words(outcome, market)
    lines = [
        f"{market.setting.capitalize()} setting, {asked_words(market)}: bought from {outcome.active} of {n} people, at"
        f" most {at_most(float(outcome.privacy_loss.max()), 3):g} of privacy loss each.",
        f"Expected error of the estimate: {error_words(outcome, market)} (root mean square). Total payment:"
        f" {outcome.total_payment:.6g}.",
    ]
    if several:
        lines[1] = f"Expected errors of the estimates (root mean square): {several}."
        lines.append(f"Total payment: {outcome.total_payment:.6g}.")
    if not isinstance(market.goal, Price):
        more = f"{_planned_for(outcome, market)}{_kept_for_rounding(market)}"
        lines.append(f"The goal is {market.stated_goal.words}.{more}")
    paying = int((outcome.payments < 0.0).sum())
    if paying:
        who = "1 person pays: they value" if paying == 1 else f"{paying} people pay: they value"
        lines.append(
            f"{who} the estimate more than giving data costs. If that is not wanted, use user_weight=0, under which"
            " no payment is negative."
        )
    elif not np.any(np.asarray(market.user_weight) > 0):
        lines.append("No payment is negative.")
    if cap_cost > 0.0:
        lines.append(_cap_in_words(outcome, market, cap_cost))
    if np.isinf(outcome.privacy_loss).any():
        exposed = people(int(np.isinf(outcome.privacy_loss).sum()))
        advice = ": set max_privacy_loss" if market.takes_cap else ""
        lines.append(f"{exposed} bid no cost and would lose all privacy{advice}.")
    lines.append(f"Each payment is exact to {at_most(outcome.incentive_error):g}.")
    if is_less_exact(outcome, market.tolerance):
        lines.append(as_sentence(LESS_EXACT))
    return "\n".join(lines)


def _kept_for_rounding(market: Terms) -> str:
    """What of a budget is kept for rounding payments up."""
    goal = market.goal
    if not isinstance(goal, Budget) or not goal.reserve:
        return ""
    return f" Of these, {goal.reserve:.6g} are kept for rounding payments up to coins of {goal.coin:g}."


def _planned_for(outcome: Decision, market: Terms) -> str:
    """For whom a price was planned, and what limits do to it."""
    goal = market.goal
    if not isinstance(goal, Budget) or goal.planned is None:
        return ""
    limits = "" if outcome.limits is None else " Limits that people state are in no draw: with them it may be more."
    return f" It was planned for {people(market.roster or outcome.bids.size)} who were asked.{limits}"


def nothing_words(outcome: Decision, market: Terms) -> str:
    """Why nothing was bought."""
    where = "low enough" if isinstance(market.goal, HardBudget) else "within the prior's support"
    return f"Nothing was bought: none of {outcome.bids.size} people bid {where}. Nobody is paid."


def asked_words(market: Terms) -> str:
    """What the data are, and what is estimated."""
    low, high = market.bounds
    asked = f"data between {low:g} and {high:g}"
    if market.survey is not None:
        count = len(market.survey)
        asked = "1 question" if count == 1 else f"{count} questions"
    if market.strata is None:
        return asked
    names = market.strata_names
    strata = "1 stratum" if len(names) == 1 else f"{len(names)} strata"
    what = "a post-stratified mean over" if market.shares is not None else "a contrast of"
    return f"{asked}, {what} {strata}"


def error_words(outcome: Decision, market: Terms) -> str:
    """The error, or both where price and datum may be related."""
    unrelated = f"{math.sqrt(outcome.mse):.3g}"
    if market.max_correlation == 0.0:
        return unrelated
    return f"{unrelated} if price and datum are unrelated, {math.sqrt(outcome.worst_mse):.3g} at worst"


def _cap_in_words(outcome: Decision, market: Terms, cost: float) -> str:
    cap = market.max_privacy_loss
    what = f"The cap of {cap:g}" if isinstance(cap, float) and outcome.limits is None else "Limits on privacy loss"
    verb = "costs" if what.startswith("The") else "cost"
    if market.stated_goal.costs_money:
        return f"{what} {verb} {cost:.3g} against the optimum without."
    return f"{what} {verb} accuracy: the squared error is {cost:.3g} larger than without."


# -- as a notebook shows them ------------------------------------------------------------------------------------------


def market_card(market: Terms) -> str:
    """What a market states."""
    facts = [
        ("Setting", market.setting),
        ("Asked for", asked_words(market)),
        ("Goal", market.stated_goal.words),
        ("Prior", prior_words(market.prior)),
    ]
    if market.survey is None:
        worst = "the largest that the range allows" if market.variance is None else _stated(market.variance)
        facts.append(("Variance", worst))
    if np.any(np.asarray(market.user_weight) > 0.0):
        outside = "their own datum" if market.outside_option == "own_data" else "the estimate made without them"
        facts += [("User weight", _stated(market.user_weight)), ("Who stays out has", outside)]
    if market.max_privacy_loss is not None:
        facts.append(("Largest privacy loss allowed", _stated(market.max_privacy_loss)))
    if market.max_correlation > 0.0:
        facts.append(("Relation of price and datum allowed for", number(market.max_correlation)))
    if market.roster is not None:
        facts.append(("Population", people(market.roster)))
    return card("Market", facts=facts, tables=[_questions(market.survey or ()), _strata(market)])


def outcome_card(outcome: Decision, market: Terms, questions: Sequence[QuestionError]) -> str:
    """What was decided, for everybody together."""
    if outcome.active == 0:
        return card("Outcome", notes=[nothing_words(outcome, market)])
    hidden = outcome.active < FEWEST_PEOPLE
    small_stratum = fewest_bought_from(outcome, market) < FEWEST_PEOPLE
    largest = number(at_most(float(outcome.privacy_loss.max())))
    facts = [
        ("Setting", market.setting),
        ("Asked for", asked_words(market)),
        ("Goal", market.stated_goal.words),
        ("Bought from", f"{count(outcome.active)} of {people(outcome.bids.size)}"),
        ("Privacy loss of each", WITHHELD if small_stratum else f"at most {largest}"),
        ("Total payment", WITHHELD if hidden else number(outcome.total_payment, 6)),
        ("Error of a payment", WITHHELD if hidden else f"at most {number(at_most(outcome.incentive_error))}"),
    ]
    errors = [(one.question.name, WITHHELD if small_stratum else error_alone(one)) for one in questions]
    if not errors:
        error = WITHHELD if small_stratum else error_words(outcome, market)
        facts.insert(5, ("Expected error (root mean square)", error))
    notes = [FEW] if hidden else [FEW_IN_STRATUM] if small_stratum else []
    if (outcome.payments < 0.0).any():
        notes.append("People who value the estimate more than giving data costs them pay.")
    if np.isinf(outcome.privacy_loss).any():
        notes.append("Who bid no cost would lose all privacy.")
    if is_less_exact(outcome, market.tolerance):
        notes.append(as_sentence(LESS_EXACT))
    return card(
        "Outcome",
        facts=facts,
        tables=[_cut("Expected errors (root mean square)", ("estimate", "error"), errors)],
        notes=notes,
    )


def fewest_bought_from(outcome: Decision, market: Terms) -> int:
    """From how many people is bought; where there are strata, in that with the fewest, but for those with nobody."""
    if market._strata is None or outcome.active == 0:
        return outcome.active
    return int(np.unique(market._strata.codes[outcome.privacy_loss > 0.0], return_counts=True)[1].min())


def error_alone(one: QuestionError) -> str:
    """Without the question's name, which stands beside it."""
    return one.words.removeprefix(f"{one.question.name}: ")


def _stated(value: object) -> str:
    return _PER_PERSON if isinstance(value, np.ndarray) else number(float(value))  # type: ignore[arg-type]


def _questions(questions: Sequence[Question]) -> Table:
    rows = [(one.name, one.kind.replace("_", "/"), _answers(one), number(one.importance)) for one in questions]
    return _cut("Questions", ("question", "kind", "answers", "importance"), rows)


def _answers(question: Question) -> str:
    if isinstance(question, Choice):
        return ", ".join(question.answers)
    if not isinstance(question, Number):
        return "yes or no"
    low, high = question.bounds
    return f"{number(low)} to {number(high)} {question.unit}".rstrip()


def _strata(market: Terms) -> Table:
    strata = market._strata
    if strata is None:
        return Table(caption="", head=(), rows=())
    counts = np.bincount(strata.codes, minlength=strata.count).tolist()
    weights = map(number, strata.weights.tolist())
    rows = [(name, count(size), weight) for name, size, weight in zip(strata.names, counts, weights, strict=True)]
    return _cut("Strata", ("stratum", "people", "weight in the estimate"), rows)


def _cut(caption: str, head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> Table:
    """A table with the first of many rows; the last says how many more there are."""
    more = len(rows) - _MOST_ROWS
    shown = tuple(rows[:_MOST_ROWS])
    if more > 0:
        shown += ((f"and {more} more", *("" for _ in head[1:])),)
    return Table(caption=caption, head=head, rows=shown)
