"""Answers typed into a form that works without scripts: one field for each question, all needed.

Where one number is asked for, it is the one question. In a single visit the answers follow the price, before anything
is stored.
"""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fastapi import Response

from hushbid.server.model.answers import Answers
from hushbid.server.model.views import ParticipationView
from hushbid.server.pages.request import Form, PageRequest
from hushbid.server.pages.wording import FormError

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


def empty(visit: PageRequest, view: ParticipationView) -> list[Asked]:
    """The questions with nothing typed; the one number that is asked for is a question of its own."""
    if view.questions:
        return [Asked(field=f"answer-{place}", question=one, typed="") for place, one in enumerate(view.questions)]
    named = {"kind": "number", "name": visit.texts("Your answer"), "bounds": view.bounds, "unit": view.unit}
    return [Asked(field="value", question=named, typed="")]


def filled(visit: PageRequest, view: ParticipationView, form: Form) -> list[Asked]:
    """The questions with what was typed; every one that is open or cannot be read says so."""
    return [_read(visit, one, form.text(one.field)[:_LONGEST]) for one in empty(visit, view)]


def _read(visit: PageRequest, asked: Asked, typed: str) -> Asked:
    question = asked.question
    try:
        answer = _answer(visit, question, typed)
    except FormError as refused:
        low, high = question.get("bounds", (0.0, 1.0))
        told = visit.texts.coded(refused.code, low=visit.write.number(low, 12), high=visit.write.number(high, 12))
        return Asked(field=asked.field, question=question, typed=typed, problem=told)
    return Asked(field=asked.field, question=question, typed=typed, answer=answer)


def _answer(visit: PageRequest, question: Mapping[str, Any], typed: str) -> Any:
    if question["kind"] == "number":
        low, high = question["bounds"]
        value = float(visit.write.read(typed))
        if not low <= value <= high:
            raise FormError("offer.out_of_range")
        return value
    known = _YES_NO if question["kind"] == "yes_no" else {one: one for one in question["answers"]}
    if typed not in known:
        raise FormError("asked.pick")
    return known[typed]


SINGLE_VISIT_STAGES = ("bid", "bid_late", "not_bought", "delivered", "dropped", "nothing_bought", "cancelled")
"""Where she stands in other words than after two visits."""


def answers_page(
    visit: PageRequest,
    view: ParticipationView,
    *,
    price: Any = None,
    asked: Sequence[Asked] = (),
    status: int = 200,
) -> Response:
    """Ask for her answers, with the price that she has just typed, or for others in the place of those she gave."""
    return visit.page(
        "participant/now.html",
        status=status,
        here="/p/choice" if price is not None else "/p/answers",
        view=view,
        price=price,
        asked=asked or empty(visit, view),
        nonce=secrets.token_hex(16),  # names what this page's form gives
    )


def given_in(view: ParticipationView, asked: Sequence[Asked]) -> object:
    """What was typed, as it is bid."""
    if view.bounds is not None:
        return asked[0].answer
    return Answers({one.question["name"]: one.answer for one in asked})
