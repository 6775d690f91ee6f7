"""What one person's device sends in the local setting, version 1 (docs/reference/wire-format.md).

    {"format": "hushbid-local", "version": 1, "grid_bits": 32, "epsilon": ["1", "2"], "value": "3175000000"}

``value`` is ``X + noise``: X is ``floor(2**grid_bits · (x − low)/(high − low))`` for a datum x clamped to the public
range, the noise is discrete Laplace of scale at least ``2**grid_bits/ε``; ``epsilon`` is ε as a reduced fraction, and
``["1", "0"]`` means no noise. Noise beyond fifty times its scale, of probability below exp(−50), is cut off there, and
a message beyond is refused: one liar moves the estimate no further than that. Integers that may exceed 2**53 travel as
decimal text, so that a browser loses no digit.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from hushbid.documents import unique_keys
from hushbid.errors import InputError

FORMAT, VERSION = "hushbid-local", 1
LARGEST_GRID_BITS = 32
_FIELDS = {"format", "version", "grid_bits", "epsilon", "value"}
_LONGEST_INTEGER = 400  # digits; the denominator of the smallest double has 324
_LARGEST_VALUE = 2**63
_FARTHEST = 50  # noise scales


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivatizedValue:
    """One person's datum with its noise; safe to send, once."""

    grid_bits: int
    """The range is divided into 2**grid_bits steps."""

    epsilon: tuple[int, int]
    """Privacy loss as a reduced fraction; (1, 0) if it is infinite."""

    value: int
    """The noisy datum, in steps from the lower end of the range; it may lie outside."""

    @property
    def privacy_loss(self) -> Fraction | float:
        """The privacy loss, an exact fraction or infinity."""
        numerator, denominator = self.epsilon
        return Fraction(numerator, denominator) if denominator else math.inf

    def decode(self, bounds: tuple[float, float]) -> float:
        """The noisy datum in data units."""
        low, high = bounds
        return low + (high - low) * (self.value / (1 << self.grid_bits))

    def to_dict(self) -> dict[str, Any]:
        """The message as plain JSON values."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "grid_bits": self.grid_bits,
            "epsilon": [str(part) for part in self.epsilon],
            "value": str(self.value),
        }

    def to_json(self) -> str:
        """The message as it is sent."""
        return json.dumps(self.to_dict())

    @classmethod
    def from_dict(cls, message: Mapping[str, Any]) -> "PrivatizedValue":
        """Read a message strictly: exactly the fields of version 1, each of its type and range."""
        if not isinstance(message, Mapping) or set(message) != _FIELDS:
            raise InputError(f"A message must have exactly the fields {', '.join(sorted(_FIELDS))}.")
        if message["format"] != FORMAT or type(message["version"]) is not int or message["version"] != VERSION:
            raise InputError(f"A message must have format {FORMAT!r} and version {VERSION}.")
        bits = message["grid_bits"]
        if type(bits) is not int or not 1 <= bits <= LARGEST_GRID_BITS:
            raise InputError(f"grid_bits must be an integer from 1 to {LARGEST_GRID_BITS}.", field="grid_bits")
        epsilon = ratio_of(message["epsilon"])
        value = integer_of(message["value"], "value")
        if not -_LARGEST_VALUE <= value < _LARGEST_VALUE:
            raise InputError("value must fit in 64 bits.", field="value")
        if value != within_reach(value, bits, epsilon):
            raise InputError(
                f"value must lie within {_FARTHEST} noise scales of the range: no noise takes it farther.",
                field="value",
            )
        return cls(grid_bits=bits, epsilon=epsilon, value=value)

    @classmethod
    def from_json(cls, text: str | bytes) -> "PrivatizedValue":
        """Read a message as it was sent."""
        try:
            message = json.loads(text, object_pairs_hook=unique_keys)
        except (ValueError, RecursionError):
            raise InputError("A message must be JSON in which no key occurs twice.") from None
        return cls.from_dict(message)


def as_ratio(privacy_loss: float) -> tuple[int, int]:
    """A privacy loss as the reduced fraction that its double is."""
    return (1, 0) if privacy_loss == math.inf else privacy_loss.as_integer_ratio()


def within_reach(value: int, grid_bits: int, epsilon: tuple[int, int]) -> int:
    """The nearest integer that noise may lead to: at most fifty scales ``2**grid_bits/ε`` from the range.

    Done after the noise is drawn, so it costs no privacy; it happens with a probability below exp(−50) = 2e-22 and
    moves the mean by less than that times the scale.
    """
    numerator, denominator = epsilon
    steps = 1 << grid_bits
    farthest = -(-_FARTHEST * denominator * steps // numerator)
    return min(max(value, -farthest), steps + farthest)


def ratio_of(ratio: object) -> tuple[int, int]:
    """A privacy loss as it is sent: a reduced fraction, numerator and denominator as texts."""
    if not isinstance(ratio, (list, tuple)) or len(ratio) != 2:
        raise InputError("epsilon must be two integers as text: numerator and denominator.", field="epsilon")
    numerator, denominator = (integer_of(part, "epsilon") for part in ratio)
    if numerator <= 0 or denominator < 0 or math.gcd(numerator, denominator) != 1:
        raise InputError("epsilon must be a positive fraction in lowest terms.", field="epsilon")
    return numerator, denominator


def integer_of(text: object, name: str) -> int:
    """Canonical decimal text only: optional minus, no sign of plus, no leading zeros, ASCII digits."""
    if isinstance(text, str) and len(text) <= _LONGEST_INTEGER and text.isascii():
        digits = text.removeprefix("-")
        if digits.isdigit() and (digits[0] != "0" or text == "0"):
            return int(text)
    raise InputError(f"{name} must be an integer written in decimal digits, as text.", field=name)
