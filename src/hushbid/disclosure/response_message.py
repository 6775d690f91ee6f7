"""What one person's device sends for a single yes/no question in the local setting, version 1.

    {"format": "hushbid-local-response", "version": 1, "epsilon": ["1", "2"], "answer": 1}

``answer`` is 1 for yes and 0 for no: the truth with odds ``e^ε : 1``, else the opposite (randomised response).
``epsilon`` is ε as a reduced fraction, and ``["1", "0"]`` means that it is the truth. There is nothing else to send:
docs/reference/wire-format.md.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from hushbid.disclosure.message import ratio_of
from hushbid.documents import unique_keys
from hushbid.errors import InputError
from hushbid.questions import Layout

FORMAT, VERSION = "hushbid-local-response", 1
_FIELDS = {"format", "version", "epsilon", "answer"}


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomisedResponse:
    """One person's answer to a yes/no question, true or false by a coin; safe to send, once."""

    epsilon: tuple[int, int]
    """Privacy loss as a reduced fraction; (1, 0) if it is infinite."""

    answer: int
    """1 for yes, 0 for no."""

    @property
    def privacy_loss(self) -> Fraction | float:
        """The privacy loss, an exact fraction or infinity."""
        numerator, denominator = self.epsilon
        return Fraction(numerator, denominator) if denominator else math.inf

    def decode(self) -> float:
        """The answer made unbiased: on average over the coin it is the true one; it lies outside of 0 to 1."""
        loss = float(min(self.privacy_loss, Fraction(1000)))  # beyond, the coin never lies as far as a double can tell
        return 0.5 + (self.answer - 0.5) / math.tanh(0.5 * loss)

    def fits(self, layout: Layout) -> bool:
        """Whether this is a message for a survey with that layout: one of a single cell."""
        return [(group.cells, group.choice) for group in layout.groups] == [(1, False)]

    def to_dict(self) -> dict[str, Any]:
        """The message as plain JSON values."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "epsilon": [str(part) for part in self.epsilon],
            "answer": self.answer,
        }

    def to_json(self) -> str:
        """The message as it is sent."""
        return json.dumps(self.to_dict())

    @classmethod
    def from_dict(cls, message: Mapping[str, Any]) -> "RandomisedResponse":
        """Read a message strictly: exactly the fields of version 1, each of its type and range."""
        if not isinstance(message, Mapping) or set(message) != _FIELDS:
            raise InputError(f"A message must have exactly the fields {', '.join(sorted(_FIELDS))}.")
        if message["format"] != FORMAT or type(message["version"]) is not int or message["version"] != VERSION:
            raise InputError(f"A message must have format {FORMAT!r} and version {VERSION}.")
        answer = message["answer"]
        if type(answer) is not int or answer not in (0, 1):
            raise InputError("answer must be 0 or 1.", field="answer")
        return cls(epsilon=ratio_of(message["epsilon"]), answer=answer)

    @classmethod
    def from_json(cls, text: str | bytes) -> "RandomisedResponse":
        """Read a message as it was sent."""
        try:
            message = json.loads(text, object_pairs_hook=unique_keys)
        except (ValueError, RecursionError):
            raise InputError("A message must be JSON in which no key occurs twice.") from None
        return cls.from_dict(message)
