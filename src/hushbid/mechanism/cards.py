"""Markets, outcomes and plans as a notebook shows them: what their summaries say, and nothing that is one person's.

Of an outcome, sums and errors are left out that fewer than `FEWEST_PEOPLE` are behind, as in reports: a notebook is
sent to others more easily than an outcome.
"""

import math
from collections.abc import Sequence

import numpy as np

from hushbid.common.numbers import as_sentence, at_most, count, number, people, percent
from hushbid.disclosure.error import FEW, FEW_IN_STRATUM, FEWEST_PEOPLE
from hushbid.display import WITHHELD, Table, card
from hushbid.mechanism.decision import LESS_EXACT, Decision, is_less_exact
from hushbid.mechanism.planning import Planned
from hushbid.mechanism.summary import asked_words, error_words, nothing_words
from hushbid.mechanism.survey import QuestionError
from hushbid.mechanism.terms import Terms
from hushbid.priors.forms import prior_words
from hushbid.questions import Choice, Number, Question

ErrorRow = tuple[str, str]
"""What is estimated, empty if there is nothing else, and how far it may be off."""

_PER_PERSON = "one for each person"
_MOST_ROWS = 50


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


def error_rows(outcome: Decision, market: Terms, questions: Sequence[QuestionError]) -> tuple[ErrorRow, ...]:
    """What is estimated from an outcome, and how far each estimate may be off."""
    if outcome.active == 0:
        return (("", "nothing was bought"),)
    hidden = fewest_bought_from(outcome, market) < FEWEST_PEOPLE
    if not questions:
        return (("", WITHHELD if hidden else error_words(outcome, market)),)
    return tuple((one.question.name, WITHHELD if hidden else _error(one)) for one in questions)


def outcome_card(outcome: Decision, market: Terms, errors: Sequence[ErrorRow]) -> str:
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
        ("A misreport gains", WITHHELD if hidden else f"at most {number(at_most(outcome.incentive_error))}"),
    ]
    tables = []
    if len(errors) == 1 and not errors[0][0]:
        facts.insert(5, ("Expected error (root mean square)", errors[0][1]))
    else:
        tables = [_cut("Expected errors (root mean square)", ("estimate", "error"), errors)]
    notes = [FEW] if hidden else [FEW_IN_STRATUM] if small_stratum else []
    if (outcome.payments < 0.0).any():
        notes.append("People who value the estimate more than giving data costs them pay.")
    if np.isinf(outcome.privacy_loss).any():
        notes.append("Who bid no cost would lose all privacy.")
    if is_less_exact(outcome, market.tolerance):
        notes.append(as_sentence(LESS_EXACT))
    return card("Outcome", facts=facts, tables=tables, notes=notes)


def plan_card(plan: Planned, market: Terms, questions: Sequence[QuestionError]) -> str:
    """What campaigns come to; nobody has bid yet."""
    found = plan.simulation
    paid = found.expected("total_payment")
    error, worst = (math.sqrt(found.expected(name).value) for name in ("mse", "worst_mse"))
    facts = [
        ("Goal", market.stated_goal.words),
        ("People", count(plan.n) if plan.needed is None else f"{plan.needed} are needed"),
        ("Standard error", number(error, 4) if error == worst else f"{number(error, 4)}, {number(worst, 4)} at worst"),
        ("Bought from", f"{percent(float(found.share_bought.mean()))} of them"),
        ("Privacy loss of each", f"at most {number(float(found.largest_loss.mean()))} on average over campaigns"),
        ("Total payment", f"{number(paid.value, 4)} ({number(paid.low, 4)} to {number(paid.high, 4)}) expected"),
        ("in one campaign of 20 above", number(found.quantile("total_payment").value, 4)),
        ("never above", number(found.worst_payment_bound, 4)),
    ]
    errors = Table(
        caption="Standard errors of the questions; the others are of all together, relative",
        head=("question", "standard error"),
        rows=tuple((one.question.name, _error(one)) for one in questions),
    )
    protection = Table(
        caption="Protection against a relation of price and datum: worst error if it is so strong",
        head=("protected up to", "bought from", "paid", *(number(one) for one in plan.relations)),
        rows=tuple(
            (*map(number, (one.max_correlation, one.bought_from, one.payment)), *map(number, one.standard_errors))
            for one in plan.protection
        ),
    )
    frontier = Table(
        caption="Error against money, and what to state for it",
        head=("standard error", "paid", "goal"),
        rows=tuple((number(one.standard_error, 4), number(one.payment, 4), str(one.goal)) for one in plan.frontier),
    )
    return card("Plan", facts=facts, tables=[errors, protection, frontier])


def fewest_bought_from(outcome: Decision, market: Terms) -> int:
    """From how many people is bought; where there are strata, in that with the fewest, but for those with nobody."""
    if market._strata is None or outcome.active == 0:
        return outcome.active
    return int(np.unique(market._strata.codes[outcome.privacy_loss > 0.0], return_counts=True)[1].min())


def _error(one: QuestionError) -> str:
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
