"""What a participant types, in forms that work without scripts: a price, perhaps with a limit, and answers.

Where one number is asked for, it is the one question. In a single visit the answers follow the price, before anything
is stored. What she typed is confidential: it is never part of an address.
"""

import json
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from fastapi import Response

from hushbid.server.model.answers import Answers
from hushbid.server.model.views import MenuView, ParticipationView
from hushbid.server.pages import choice, consent, pictures
from hushbid.server.pages.request import PageRequest
from hushbid.server.pages.wording import FormError

_LONGEST, _LONGEST_PRICE = 300, 100
_YES_NO = {"yes": True, "no": False}
SINGLE_VISIT_STAGES = ("bid", "bid_late", "not_bought", "delivered", "dropped", "nothing_bought", "cancelled")
"""Where she stands in other words than after two visits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One question on a page, and what was typed under it."""

    field: str
    """The name of its field in the form."""

    question: Mapping[str, Any]
    typed: str = ""
    problem: str | None = None
    """What is wrong with what was typed."""

    answer: Any = None
    """What it means, if it can be read."""


def empty(visit: PageRequest, view: ParticipationView) -> list[Asked]:
    """The questions with nothing typed; the one number that is asked for is a question of its own."""
    if view.questions:
        return [Asked(field=f"answer-{place}", question=one) for place, one in enumerate(view.questions)]
    named = {"kind": "number", "name": visit.texts("Your answer"), "bounds": view.bounds, "unit": view.unit}
    return [Asked(field="value", question=named)]


def filled(visit: PageRequest, view: ParticipationView) -> list[Asked]:
    """The questions with what was typed; every one that is open or cannot be read says so."""
    found = []
    for one in empty(visit, view):
        typed, (low, high) = visit.form.text(one.field)[:_LONGEST], one.question.get("bounds", (0.0, 1.0))
        shown = {"low": visit.write.number(low, 12), "high": visit.write.number(high, 12)}
        answer, problem = _read(visit, lambda one=one, typed=typed: _answer(visit, one.question, typed), **shown)  # type: ignore[misc]
        found.append(Asked(field=one.field, question=one.question, typed=typed, problem=problem, answer=answer))
    return found


def _read(visit: PageRequest, read: Callable[[], Any], **values: str) -> tuple[Any, str | None]:
    """What was typed, or why it cannot be read."""
    try:
        return read(), None
    except FormError as refused:
        return None, visit.texts.coded(refused.code, **values)


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


def given_in(view: ParticipationView, asked: Sequence[Asked]) -> object:
    """What was typed, as it is bid."""
    if view.bounds is not None:
        return asked[0].answer
    return Answers({one.question["name"]: one.answer for one in asked})


def answers_page(
    visit: PageRequest, view: ParticipationView, *, price: Any = None, asked: Sequence[Asked] = (), status: int = 200
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


def survey_of(view: ParticipationView) -> str | None:
    """What decides about a message in the local setting, for the page's scripts; None where it is one number."""
    return json.dumps({"questions": view.questions, "groups": view.noise_groups}) if view.questions else None


# -- her price ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """What she typed as her price and her limit, and what it means if it can be read."""

    typed: str = ""
    bid: float | None = None
    problem: str | None = None
    typed_limit: str = ""
    limit: float | None = None
    limit_problem: str | None = None

    @property
    def is_readable(self) -> bool:
        """Whether all of it means something."""
        return self.bid is not None and self.problem is None and self.limit_problem is None


def price_before(visit: PageRequest, view: ParticipationView) -> Price:
    """The price that she named before, as she would type it."""
    typed = "" if view.bid is None else visit.write.typed(round(view.bid * choice.step_of(view), 10))
    limit = "" if view.limit is None else visit.write.typed(choice.sureness_typed(view.limit))
    return Price(typed=typed, bid=view.bid, typed_limit=limit, limit=view.limit)


def price_typed(visit: PageRequest, view: ParticipationView) -> Price:
    """What she typed; a limit that cannot be read does not keep the price from being shown."""
    step, write = choice.step_of(view), visit.write
    typed = visit.form.text("price")[:_LONGEST_PRICE]
    typed_limit = visit.form.text("limit")[:_LONGEST_PRICE] if view.takes_limits else ""
    least = Decimal(repr(view.smallest_bid)) * Decimal(repr(step))

    def bid() -> float:
        price = write.read(typed)
        found = choice.bid_of(price, step)
        if price < least or found < view.smallest_bid or found > 1e12:
            raise FormError("choice.least")
        return found

    def limit() -> float | None:
        if not typed_limit.strip():
            return None
        found = choice.limit_of(write.read(typed_limit))
        if found is None:
            raise FormError("choice.limit")
        return found

    price, problem = _read(visit, bid, least=write.amount(float(least), view.currency, view.decimals))
    most, limit_problem = _read(visit, limit)
    return Price(
        typed=typed,
        bid=price,
        problem=problem,
        typed_limit=typed_limit if typed_limit.strip() else "",
        limit=most,
        limit_problem=limit_problem,
    )


async def choice_page(visit: PageRequest, view: ParticipationView, given: Price, *, status: int = 200) -> Response:
    """Ask for her price, and show what the one she typed leads to."""
    menu: MenuView = await visit.ask(visit.service.menu)
    asked = await visit.ask(visit.service.consent, language=visit.texts.language)
    step, largest = choice.step_of(view), view.largest_bought
    suggested = given.bid if given.bid is not None else menu.bids[menu.usual // 2]
    price = given.bid * step if given.bid is not None else None
    several = len(view.questions) > 1
    risk = consent.contrast_of(visit.texts, asked.document["stated"], step, several=several, brief=True)
    return visit.page(
        "participant/choice.html",
        status=status,
        here="/p/choice",
        view=view,
        survey=survey_of(view),
        menu=menu,
        plain_menu=json.dumps(choice.plain_menu(menu)),
        step=step,
        given=given,
        anchors=choice.anchors(menu, step),
        means=choice.consequence(menu, suggested, step, largest=largest) if given.bid is not None else None,
        rows=choice.table(menu, step, largest=largest),
        around=choice.around(menu, suggested, step, largest=largest),
        truth=suggested,
        halves=choice.steps_below_and_above(step, view.max_privacy_loss),
        contrast=risk.to_dict()["texts"],
        chart=pictures.menu_chart(visit.texts, visit.write, menu, step, price=price, currency=view.currency),
    )
