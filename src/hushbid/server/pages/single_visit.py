"""Price and answers in one visit: the step with the answers, after the price and before anything is stored."""

import secrets
from collections.abc import Sequence
from typing import Any

from fastapi import Response

from hushbid.server.domain.asked import Answers
from hushbid.server.domain.views import ParticipationView
from hushbid.server.pages import answering
from hushbid.server.pages.visit import Visit

SINGLE_VISIT_STAGES = ("bid", "bid_late", "not_bought", "delivered", "dropped", "nothing_bought", "cancelled")
"""Where she stands in other words than after two visits."""


def answers_page(
    visit: Visit,
    view: ParticipationView,
    *,
    price: Any = None,
    asked: Sequence[answering.Asked] | None = None,
    status: int = 200,
) -> Response:
    """Ask for her answers, with the price that she has just typed, or for others in the place of those she gave."""
    return visit.page(
        "participant/now.html",
        status=status,
        here="/p/choice" if price is not None else "/p/answers",
        view=view,
        price=price,
        asked=asked if asked is not None else answering.empty(view) or answering.one_value(visit, view),
        nonce=secrets.token_hex(16),  # names what this page's form gives
    )


def given_in(view: ParticipationView, asked: Sequence[answering.Asked]) -> object:
    """What was typed, as it is bid."""
    if view.bounds is not None:
        return asked[0].answer
    return Answers({one.question["name"]: one.answer for one in asked})
