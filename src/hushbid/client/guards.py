"""What a participant's device refuses to do, whatever the server says. Every refusal comes before anything is sent.

`agreed_terms` decides what a bid agrees to, and `require_good_offer` whether a delivery keeps to it. The rest checks
what the caller gave.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from hushbid.client.messages import Bounds, Datum, Terms
from hushbid.client.views import Participation
from hushbid.common.arrays import as_bounds
from hushbid.disclosure.answers import codes_of
from hushbid.errors import DataError, InputError, NotAllowed
from hushbid.questions import Question, as_questions

_ROUNDING = 1e-9
_LEAST_LIMIT = 1e-6  # what a server takes; refused before anything is kept, or it would bind this device alone
_LARGEST_SHOWN = 100.0  # what a campaign on a server may ask for at most; more would be no privacy at all


def agreed_terms(view: Participation, kept: Terms | None, *, price: float, at_most: float | None) -> Terms:
    """Return what a bid agrees to; after a first bid, only the participant can agree to more."""
    # the campaign asks for what it asked for at the first bid
    if kept is not None and (kept.setting, kept.asked) != (view.setting, (view.bounds, view.questions)):
        what = "setting, range or questions" if kept.questions or view.questions else "setting or range"
        raise NotAllowed(f"The campaign names another {what} than when you first bid: nothing was sent.")
    _require_same_currency(view, kept)
    # the least of what is shown and what is named now or, if nothing is named, was agreed to before
    limits = [limit for limit in (view.max_privacy_loss, at_most) if limit is not None]
    if kept is not None and at_most is None:
        limits.append(kept.largest_loss)
    largest = min(limits, default=math.inf)
    sells_nothing = largest == 0.0 != view.max_privacy_loss  # a participant may; no campaign asks for it
    if not (0.0 < largest <= _LARGEST_SHOWN or sells_nothing):
        raise NotAllowed(
            f"The campaign names no largest privacy loss from 0 to {_LARGEST_SHOWN:g}: nothing was sent. You may name"
            " yours with at_most."
        )
    return Terms(
        setting=view.setting,
        bounds=view.bounds,
        questions=view.questions,
        largest_loss=largest,
        price=price,
        currency=view.currency,
        decimals=view.decimals,
    )


def stated_terms(
    view: Participation, *, at_most: float | None, bounds: Bounds | None, questions: Sequence[Question] | None
) -> Terms:
    """Return the terms on a device without a bid: they come from the participant, not from the server."""
    if at_most is None or (bounds is None) == (questions is None):
        raise NotAllowed(
            "This device does not know what you agreed to, because you did not bid from it: give at_most,"
            " the largest privacy loss you were shown, and bounds, the range of the data, or the questions."
            " Nothing was sent."
        )
    return Terms(
        setting=view.setting,
        bounds=None if bounds is None else as_bounds(bounds),
        questions=() if questions is None else as_questions(questions),
        largest_loss=at_most,
        price=view.bid,
    )


def require_open_offer(view: Participation, setting: str) -> float:
    """Return the promised privacy loss; refuse a campaign of the other setting, or one that buys nothing."""
    if view.setting != setting:
        raise NotAllowed(f"This campaign is {view.setting}, not {setting}: nothing was sent.")
    if not view.promised:
        raise NotAllowed("No data of yours are wanted, or it is not decided yet: nothing was sent.")
    return view.promised


def require_good_offer(view: Participation, terms: Terms, *, loss: float, at_most: float | None) -> None:
    """Refuse an offer that changed since the bid, costs more privacy than agreed to, or pays less than the price."""
    # the campaign must not have changed since
    if terms.setting != view.setting:
        raise NotAllowed(f"You bid in a {terms.setting} campaign, and now it is {view.setting}: nothing was sent.")
    if (view.bounds, view.questions) != terms.asked:
        what = "other questions" if terms.questions or view.questions else "another range of the data"
        raise NotAllowed(f"The campaign names {what} than you agreed to: nothing was sent.")
    _require_same_currency(view, terms)
    # nor cost more privacy than was shown: never less noise
    most = terms.largest_loss if at_most is None else min(terms.largest_loss, at_most)
    if not loss <= most:
        raise NotAllowed(f"The campaign would cost you a privacy loss above {most:g}: nothing was sent.")
    # nor pay less than the privacy costs the participant
    price, payment = terms.price, view.payment
    if price is None or payment is None or payment < (1.0 - _ROUNDING) * view.cost(price):
        raise NotAllowed("The offer does not cover what you said your privacy costs you: nothing was sent.")


def _require_same_currency(view: Participation, kept: Terms | None) -> None:
    """Refuse other money than the price was named in, where this device knows it."""
    if kept is None or kept.currency is None:
        return
    if (kept.currency, kept.decimals) != (view.currency, view.decimals):
        raise NotAllowed("The campaign names another currency than you named your price in: nothing was sent.")


def require_askable(view: Participation, *, value: Datum | None, limit: float | None) -> None:
    """Refuse a limit or a value that the campaign does not ask for, and a bid without a value that it does."""
    if limit is not None and not view.takes_limits:
        raise NotAllowed("This campaign takes no limits: nothing was sent.")
    if value is not None and (view.setting != "central" or not view.single_visit):
        raise NotAllowed("This campaign does not ask for data together with the price: nothing was sent.")
    if value is None and view.single_visit and view.state != "bid":
        raise NotAllowed("This campaign asks for data together with the price: give value. Nothing was sent.")


def checked_price(bid: float) -> float:
    """Require a price that can be sent."""
    if not _is_number(bid) or not 0 <= bid < 1e300:
        raise InputError("bid must be a finite number of at least 0.", field="bid")
    return float(bid)


def checked_limit(limit: float | None) -> float | None:
    """Require a limit that the campaign can be given: 0, or as large as servers take it."""
    if limit is not None and not (_is_number(limit) and (limit == 0 or _LEAST_LIMIT <= limit < math.inf)):
        allowed = f"0, to sell nothing, or a finite number from {_LEAST_LIMIT:g} up"
        raise InputError(f"limit must be {allowed}, got {limit!r}.", field="limit")
    return None if limit is None else float(limit)


def checked_at_most(at_most: float | None) -> float | None:
    """Require a largest privacy loss for this device."""
    if at_most is not None and not (_is_number(at_most) and 0 < at_most < math.inf):
        raise InputError(f"at_most must be a positive number, got {at_most!r}.", field="at_most")
    return None if at_most is None else float(at_most)


def checked_number(value: Datum) -> float:
    """Require a number; an error never shows it."""
    if not isinstance(value, (int, float)) or not _is_number(value) or value != value:
        raise DataError("Your value must be a number.")
    return float(value)


def checked_answers(value: Datum, questions: Sequence[Question]) -> dict[str, object]:
    """Return answers by the questions' names; an error names the question, never the answer."""
    if isinstance(value, Mapping):
        answers = dict(value)
    elif isinstance(value, Sequence) and not isinstance(value, (str, bytes)) and len(value) == len(questions):
        answers = dict(zip((question.name for question in questions), value, strict=True))
    else:
        raise DataError("Your answers must be one to each question, in their order or by their names.")
    try:
        codes_of(questions, answers)
    except DataError as problem:
        raise DataError(f"{problem} Nothing was sent.", field=problem.field) from None
    return answers


def plain_datum(value: Datum, bounds: Bounds | None, questions: Sequence[Question]) -> dict[str, Any]:
    """Return a number within its range, or answers, as they are sent without noise."""
    if bounds is None:
        return {"answers": checked_answers(value, questions)}
    number, (low, high) = checked_number(value), bounds
    if not low <= number <= high:
        raise DataError(f"Your value must lie in the public range from {low:g} to {high:g}.")
    return {"value": number}


def checked_language(language: object) -> str:
    """Require a language that consent is written in."""
    if language not in ("en", "de"):
        raise InputError(f"language must be en or de, got {str(language)[:20]!r}.", field="language")
    return str(language)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
