"""People's answers to several questions, as they come in a request and as they are kept.

Everyone answers every question, and their answers are one thing: they are delivered together, sealed together, and cost
one privacy loss. A person who leaves a question open has delivered nothing. In a request answers stand under the
questions' names: a number in the question's range, true or false, one of the answers. They are kept as one double for
each question, so that what is sealed has the same length whatever a person says: yes is 1, no is 0, and an answer of a
choice is its place among the answers, from 0.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hushbid.disclosure import answers
from hushbid.errors import DataError, InputError
from hushbid.questions import Choice, Layout, Question

MOST_CELLS = 1000
"""How many numbers a person's answers may come to: one for each question, for each answer of a choice one."""

_MOST_BYTES = 1 << 15  # of the 64 KiB that a request may have
_NUMERAL = "-1.2345678901234567e+100"


@dataclass(frozen=True, slots=True)
class Answers:
    """What somebody answered, as it came in a request."""

    by_name: Mapping[str, Any] = field(repr=False)
    """By the questions' names."""


def require_deliverable(questions: Sequence[Question]) -> None:
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
