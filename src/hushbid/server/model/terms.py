"""What an analyst states of a market: beliefs about costs, a goal, questions and strata, read from a request.

**Beliefs**: one prior, or one for each group, over prices that people could name.

**Goal**: what the buyer may spend, how accurate they must be, or what an error costs them. Budgets are whole minor
units of the currency and include the participation fees, which are taken off first: what is left is for privacy. So
fees and payments together come to a budget on average, and never exceed a hard budget.

**Strata**: the analyst says with the invitation in which stratum a person is; they never do. Wanted is a mean of all
for given ``shares`` of the strata, which add up to 1, or a ``contrast`` of any signs, such as a difference of two. A
person who did not bid is in nobody's column, but counts in the roster of their stratum.

**Questions**: everybody answers every question, and their answers are one thing: they are delivered together, sealed
together, and cost one privacy loss. A person who leaves a question open has delivered nothing. In a request answers
stand under the questions' names: a number in the question's range, true or false, one of the answers. They are kept as
one double for each question, so that what is sealed has the same length whatever a person says: yes is 1, no is 0, and
an answer of a choice is its place among the answers, from 0.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from hushbid.allocation import Goal
from hushbid.allocation.goals import STATED, goal_named
from hushbid.disclosure import answers
from hushbid.errors import DataError, HushbidError, InputError
from hushbid.priors import Prior, parse_prior, prior_from_dict
from hushbid.questions import QUESTIONS, Choice, Layout, Question, as_questions, question_from_dict
from hushbid.server.model.checks import checked_text

_MOST_GROUPS = 50
_LEAST_PRICE, _MOST_PRICE = 1e-9, 1e12
_NEARLY_ALL = 0.999
_NARROWEST = 1e-6


def checked_prior(prior: object) -> Prior | dict[str, Prior]:
    """One prior or one for each group, over prices that somebody could name."""
    if isinstance(prior, Prior):
        return _with_prices(prior)
    if not isinstance(prior, Mapping) or not 1 <= len(prior) <= _MOST_GROUPS:
        raise InputError(
            f"prior must be a prior such as Uniform(1, 2), or one for each of 1 to {_MOST_GROUPS} groups.",
            field="prior",
        )
    if not all(isinstance(one, Prior) for one in prior.values()):
        raise InputError("prior must map every group to a prior.", field="prior")
    return {checked_text(name, "group", needed=True): _with_prices(one) for name, one in prior.items()}


def _with_prices(prior: Prior) -> Prior:
    """A prior over prices that somebody could name and be paid; others overflow where payments are computed."""
    middle, high = (float(prior.quantile(share)) for share in (0.5, _NEARLY_ALL))
    if not (middle >= _LEAST_PRICE and high <= _MOST_PRICE):
        raise InputError(
            f"prior must have its median at {_LEAST_PRICE:g} or more and nearly all prices up to {_MOST_PRICE:g}, got"
            f" {middle:g} and {high:g}.",
            field="prior",
        )
    if middle < high < middle * (1.0 + _NARROWEST):
        raise InputError("prior must not be so narrow that doubles cannot tell its prices apart.", field="prior")
    return prior


def prior_of(form: object) -> Prior | dict[str, Prior]:
    """The priors in a request."""
    if isinstance(form, Mapping) and set(form) == {"groups"}:
        if not isinstance(form["groups"], Mapping):
            raise InputError("prior.groups must map names to priors.", field="prior")
        return {str(name): _one_prior(one) for name, one in form["groups"].items()}
    return _one_prior(form)


def _one_prior(form: object) -> Prior:
    try:
        if isinstance(form, str):
            return parse_prior(form)
        prior = prior_from_dict(form) if isinstance(form, Mapping) else None
    except HushbidError as problem:
        problem.field = "prior"  # whichever of its parameters
        raise
    except (KeyError, TypeError, ValueError, OverflowError) as problem:
        raise InputError(f"prior cannot be read: {type(problem).__name__}.", field="prior") from None
    if not isinstance(prior, Prior):
        raise InputError(
            'prior must be a text such as "uniform:1,2", a prior\'s fields, or {"groups": {...}}.', field="prior"
        )
    return prior


GOALS = tuple(STATED)
"""The fields of which exactly one is stated."""

BUDGETS = ("budget", "hard_budget")
"""Those that are amounts of money."""


def the_stated(numbers: Mapping[str, object]) -> str:
    """The name of the one goal that is stated."""
    given = [name for name, number in numbers.items() if number is not None]
    if len(given) != 1:
        raise InputError(
            "exactly one of budget, hard_budget, standard_error and buyer_weight must be stated, got"
            f" {' and '.join(given) or 'none of them'}.",
            field=given[1] if given else "budget",
        )
    return given[0]


def goal_after_fees(name: str, number: float | tuple[float, ...], *, decimals: int, fees: int, people: int) -> Goal:
    """The goal for privacy alone, once the ``fees`` of the campaign are taken off; ``people`` may have to be paid."""
    if name not in BUDGETS or isinstance(number, tuple):
        return goal_named(name, number)
    unit = 10**decimals
    least = fees + (people if name == "hard_budget" else 0)
    if number <= least:
        coins = f" and one coin for each of {people} people" * (name == "hard_budget" and people > 0)
        raise InputError(
            f"{name} must be above {least / unit:.{decimals}f}, the participation fees{coins}, got"
            f" {number / unit:.{decimals}f}.",
            field=name,
        )
    return goal_named(name, (number - fees) / unit, coin=float(f"1e-{decimals}"))


_KINDS = ("shares", "contrast")
MOST_STRATA = 50
STRATA_SCHEMA: dict[str, Any] = {
    "anyOf": [
        {
            "type": "object",
            "required": [kind],
            "additionalProperties": False,
            "properties": {kind: {"type": "object", "additionalProperties": {"type": "number"}}},
        }
        for kind in _KINDS
    ]
    + [{"type": "null"}]
}
"""How the combination looks in a request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Combination:
    """Which combination of stratum means is wanted."""

    kind: Literal["shares", "contrast"]
    weights: Mapping[str, float]
    """By the strata's names, in their order."""

    @property
    def names(self) -> tuple[str, ...]:
        """The strata."""
        return tuple(self.weights)

    def to_dict(self) -> dict[str, Any]:
        """As in a request."""
        return {self.kind: dict(self.weights)}

    def of_people(self, column: Sequence[str | None]) -> dict[str, Any]:
        """What a market is told: everybody's stratum, and what is wanted."""
        return {"strata": [label or "" for label in column], self.kind: dict(self.weights)}

    def without(self, column: Sequence[str | None]) -> list[str]:
        """The strata in which nobody is."""
        present = Counter(column)
        return [name for name in self.names if not present[name]]


def combination_of(given: object) -> Combination | None:
    """The combination in a request; the market checks the numbers."""
    if given is None or isinstance(given, Combination):
        return given
    kind = next(iter(given)) if isinstance(given, Mapping) and len(given) == 1 else None
    weights = given[kind] if isinstance(given, Mapping) and kind in _KINDS else None
    if not isinstance(weights, Mapping) or not 1 <= len(weights) <= MOST_STRATA:
        told = f"must be shares or a contrast, each a number for each of 1 to {MOST_STRATA} strata by its name"
        raise InputError(f'strata {told}: {{"shares": {{"young": 0.4, "old": 0.6}}}}.', field="strata")
    found = dict(sorted(_entry(name, number) for name, number in weights.items()))
    return Combination(kind="shares" if kind == "shares" else "contrast", weights=found)


def _entry(name: object, number: object) -> tuple[str, float]:
    """One stratum and its number."""
    try:
        label = checked_text(name, "stratum", needed=True)
        if isinstance(number, bool) or not isinstance(number, (int, float)):
            raise InputError(f"strata must have numbers, got {type(number).__name__}.")
        return label, float(number)
    except OverflowError:
        raise InputError("strata must have numbers that a double can hold.", field="strata") from None
    except InputError as problem:
        problem.field = "strata"
        raise


MOST_CELLS = 1000
"""How many numbers a person's answers may come to: one for each question, for each answer of a choice one."""

_MOST_BYTES = 1 << 15  # of the 64 KiB that a request may have
_NUMERAL = "-1.2345678901234567e+100"
_FIELDS = frozenset({"kind", "name", "importance", "bounds", "variance", "unit", "answers"})
QUESTIONS_SCHEMA: dict[str, Any] = {
    "type": "array",
    "items": {
        "type": "object",
        "required": ["kind", "name"],
        "additionalProperties": False,
        "properties": {
            "kind": {"enum": list(QUESTIONS)},
            "name": {"type": "string"},
            "importance": {"type": "number"},
            "bounds": {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2},
            "variance": {"anyOf": [{"type": "number"}, {"type": "null"}]},
            "unit": {"type": "string"},
            "answers": {"type": "array", "items": {"type": "string"}},
        },
    },
}
"""How questions look in a request."""


@dataclass(frozen=True, slots=True)
class Answers:
    """What somebody answered, as it came in a request."""

    by_name: Mapping[str, Any] = field(repr=False)
    """By the questions' names."""


def questions_of(given: object) -> tuple[Question, ...]:
    """The questions in a request, none if there are none; a problem names its place: ``questions[2].bounds``."""
    if given is None or given == ():
        return ()
    if not isinstance(given, (list, tuple)):
        raise InputError(f"questions must be a list of questions, got {type(given).__name__}.", field="questions")
    found = as_questions(_question(one, place) for place, one in enumerate(given))
    _require_deliverable(found)
    return found


def _require_deliverable(questions: Sequence[Question]) -> None:
    """Refuse a survey whose answers, or whose message, might not fit into one request."""
    cells = sum(len(one.answers) if isinstance(one, Choice) else 1 for one in questions)
    if cells > MOST_CELLS:
        told = f"questions must have at most {MOST_CELLS} answers and numbers in all, got {cells}."
        raise InputError(told, field="questions")
    longest = [max(one.answers, key=_written) if isinstance(one, Choice) else _NUMERAL for one in questions]
    size = sum(_written(one.name) + _written(answer) for one, answer in zip(questions, longest, strict=True))
    if size > _MOST_BYTES:
        told = f"questions must be answered in {_MOST_BYTES} bytes, names and longest answers together, got {size}."
        raise InputError(told, field="questions")


def _written(text: str) -> int:
    """How long a text is in JSON, with every letter that is not ASCII escaped."""
    return len(json.dumps(text)) + 1


def _question(given: object, place: int) -> Question:
    if isinstance(given, Question):
        return given
    try:
        return question_from_dict(given)
    except InputError as problem:
        where = f"questions[{place}]"
        known = f"{where}.{problem.field}" if problem.field in _FIELDS else where  # not a name that somebody invented
        raise InputError(f"{where}: {problem}", field=known) from None


def plain_questions(questions: Sequence[Question]) -> tuple[dict[str, Any], ...]:
    """The questions as everybody is shown them."""
    return tuple(one.to_dict() for one in questions)


def plain_groups(layout: Layout | None) -> tuple[dict[str, Any], ...]:
    """Which questions share a noise, by their places, and what part of the loss, in units of 2**-30."""
    return () if layout is None else tuple({"rows": list(one.rows), "parts": one.parts} for one in layout.groups)


def codes_of(questions: Sequence[Question], given: object) -> tuple[float, ...]:
    """One person's answers as they are kept; an error names the question and what is allowed, never what she said."""
    if not isinstance(given, Answers):
        raise DataError("answers must be given: an answer to every question, by its name.", field="answers")
    return answers.codes_of(questions, given.by_name)
