"""What a device may send in the local setting: a message with noise, made for exactly what was promised.

A message is checked when it comes in, by the same reader as at the release, so that whoever sends a wrong one is told,
and can send a right one; once it is sealed nobody looks at it before the release.
"""

from collections.abc import Mapping
from typing import Any

from hushbid.disclosure import PrivatizedAnswers, PrivatizedValue, ReleasePlan
from hushbid.disclosure.local import grid_bits
from hushbid.disclosure.messages import as_ratio
from hushbid.disclosure.received import read_messages
from hushbid.errors import DataError, InputError
from hushbid.questions import Layout
from hushbid.server.domain.settings import CampaignSettings


def checked_message(settings: CampaignSettings, promised: float, given: object) -> dict[str, Any]:
    """A message about a value, or about all answers, as it is sealed; refused unless made for what was promised."""
    message = given if isinstance(given, Mapping) else getattr(given, "to_dict", dict)()
    if not message:
        raise DataError("message must be one made by privatize: the value itself must not be sent.", field="message")
    layout = settings.layout
    if layout is None:
        return _about_a_value(message, promised)
    return _about_answers(message, promised, settings, layout)


def _about_a_value(given: Mapping[str, Any], promised: float) -> dict[str, Any]:
    try:
        message = PrivatizedValue.from_dict(given)
    except InputError as problem:
        raise _unreadable(problem) from None
    if message.epsilon != as_ratio(promised):
        raise DataError("message must be made with exactly the privacy loss that was promised.", field="message")
    _require_grid(message, grid_bits(promised))
    return message.to_dict()


def _about_answers(
    given: Mapping[str, Any], promised: float, settings: CampaignSettings, layout: Layout
) -> dict[str, Any]:
    """As the release of this one message alone would read it."""
    plan = ReleasePlan.of([promised], setting="local", questions=settings.questions, layout=layout, key="one")
    try:
        [message] = read_messages(plan, [dict(given)])
        if isinstance(message, PrivatizedAnswers):
            _require_grid(message, grid_bits(promised, layout.groups))
    except InputError as problem:
        raise _unreadable(problem) from None
    return dict(given)


def _require_grid(message: PrivatizedValue | PrivatizedAnswers, bits: int) -> None:
    if message.grid_bits != bits:
        raise DataError(f"message must be on the grid of {bits} bits.", field="message")


def _unreadable(problem: InputError) -> DataError:
    if problem.field == "message":
        return DataError(str(problem), field="message")
    return DataError(f"message cannot be read: {problem}", field="message")
