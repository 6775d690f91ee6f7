"""Answers to several questions, typed into a form that works without scripts: one field for each, all needed.

Where one number is asked for, it is the one question.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hushbid.server.domain.views import ParticipationView
from hushbid.server.pages.numbers import Unreadable
from hushbid.server.pages.visit import Form, Visit

_LONGEST = 300
_YES_NO = {"yes": True, "no": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One question on a page, and what was typed under it."""

    field: str
    """The name of its field in the form."""

    question: Mapping[str, Any]
    typed: str
    problem: str | None = None
    """What is wrong with what was typed."""

    answer: Any = None
    """What it means, if it can be read."""


def empty(view: ParticipationView) -> list[Asked]:
    """The questions, with nothing typed."""
    return [Asked(field=f"answer-{place}", question=one, typed="") for place, one in enumerate(view.questions)]


def one_value(visit: Visit, view: ParticipationView) -> list[Asked]:
    """The one number that is asked for, as a question of its own, with nothing typed."""
    named = {"kind": "number", "name": visit.texts("Your answer"), "bounds": view.bounds, "unit": view.unit}
    return [Asked(field="value", question=named, typed="")]


def filled(visit: Visit, view: ParticipationView, form: Form) -> list[Asked]:
    """The questions with what was typed; every one that is open or cannot be read says so."""
    return [_read(visit, one, form.text(one.field)[:_LONGEST]) for one in empty(view) or one_value(visit, view)]


def _read(visit: Visit, asked: Asked, typed: str) -> Asked:
    question = asked.question
    try:
        answer = _answer(visit, question, typed)
    except Unreadable as refused:
        low, high = question.get("bounds", (0.0, 1.0))
        told = visit.texts.coded(refused.code, low=visit.write.number(low, 12), high=visit.write.number(high, 12))
        return Asked(field=asked.field, question=question, typed=typed, problem=told)
    return Asked(field=asked.field, question=question, typed=typed, answer=answer)


def _answer(visit: Visit, question: Mapping[str, Any], typed: str) -> Any:
    if question["kind"] == "number":
        low, high = question["bounds"]
        value = float(visit.write.read(typed))
        if not low <= value <= high:
            raise Unreadable("offer.out_of_range")
        return value
    known = _YES_NO if question["kind"] == "yes_no" else {one: one for one in question["answers"]}
    if typed not in known:
        raise Unreadable("asked.pick")
    return known[typed]
