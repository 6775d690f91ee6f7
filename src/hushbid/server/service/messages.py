"""What a device may send in the local setting: a message with noise, made for exactly what was promised.

A message is checked when it comes in, so that whoever sends a wrong one is told, and can send a right one; once it is
sealed nobody looks at it before the release.
"""

from collections.abc import Mapping
from typing import Any

from hushbid.disclosure import PrivatizedAnswers, PrivatizedValue
from hushbid.disclosure.local import grid_bits
from hushbid.disclosure.message import as_ratio
from hushbid.disclosure.survey_local import grid_bits as survey_bits
from hushbid.errors import DataError, InputError
from hushbid.server.domain.settings import CampaignSettings


def checked_message(settings: CampaignSettings, promised: float, given: object) -> dict[str, Any]:
    """A message about a value, or about all answers, as it is sealed; refused unless made for what was promised."""
    layout = settings.layout
    message = _read(PrivatizedValue if layout is None else PrivatizedAnswers, given)
    bits = grid_bits(promised) if layout is None else survey_bits(promised, layout)
    if layout is not None and not (isinstance(message, PrivatizedAnswers) and message.fits(layout)):
        raise DataError("message must be about the questions of this campaign, all of them.", field="message")
    if message.epsilon != as_ratio(promised):
        raise DataError("message must be made with exactly the privacy loss that was promised.", field="message")
    if message.grid_bits != bits:
        raise DataError(f"message must be on the grid of {bits} bits.", field="message")
    return message.to_dict()


def _read(kind: type[PrivatizedValue | PrivatizedAnswers], given: object) -> PrivatizedValue | PrivatizedAnswers:
    if isinstance(given, kind):
        given = given.to_dict()
    if not isinstance(given, Mapping):
        raise DataError("message must be one made by privatize: the value itself must not be sent.", field="message")
    try:
        return kind.from_dict(given)
    except InputError as problem:
        raise DataError(f"message cannot be read: {problem}", field="message") from None
