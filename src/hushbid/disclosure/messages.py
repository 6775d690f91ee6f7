"""What one person's device sends in the local setting, version 1 (docs/reference/wire-format.md).

About one number, about a survey, and about a single yes/no question:

    {"format": "hushbid-local", "version": 1, "grid_bits": 32, "epsilon": ["1", "2"], "value": "3175000000"}
    {"format": "hushbid-local-survey", "version": 1, "grid_bits": 32, "epsilon": ["1", "2"],
     "parts": [536870912, 536870912], "values": [["3175000000", "-12"], ["4294967001", "9", "286"]]}
    {"format": "hushbid-local-response", "version": 1, "epsilon": ["1", "2"], "answer": 1}

``epsilon`` is the privacy loss ε as a reduced fraction; ``["1", "0"]`` means no noise. ``value`` is ``X + noise``: X is
``floor(2**grid_bits · (x − low)/(high − low))`` for a datum x clamped to the public range, the noise is discrete
Laplace of scale at least ``2**grid_bits/ε``. A survey has ``parts``, what each group of questions has of the loss, in
units of 2**-30, and ``values``, each group's cells: X as for one number, and for a choice ``2**grid_bits`` for the
answer given and 0 for every other, plus a box's or a choice's noise (`hushbid.disclosure.noise`) of scale at least
``2**grid_bits·2**30/(ε·part)``. ``answer`` is 1 for yes and 0 for no: the truth with odds ``e^ε : 1``, or the
opposite.

Noise beyond fifty times its scale, and in a survey four times more for each cell of a group, has a probability below
exp(−50). It is cut off there, and a message beyond is refused: one liar moves the estimate no further than that.
Integers that may exceed 2**53 travel as decimal text, so that a browser loses no digit.
"""

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self

from hushbid.common.documents import unique_keys
from hushbid.errors import InputError
from hushbid.questions import MOST_ANSWERS, MOST_QUESTIONS, PARTS, Layout

VERSION = 1
LARGEST_GRID_BITS = 32
_LONGEST_INTEGER = 400  # digits; the denominator of the smallest double has 324
_LARGEST_VALUE = 2**63
_FARTHEST, _FARTHER = 50, 4  # noise scales, and in a survey as many more for each cell
_MOST_CELLS = max(MOST_QUESTIONS, MOST_ANSWERS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Message(ABC):
    """What one device sends; safe to send, once."""

    format: ClassVar[str]
    fields: ClassVar[frozenset[str]]

    epsilon: tuple[int, int]
    """Privacy loss as a reduced fraction; (1, 0) if it is infinite."""

    @property
    def privacy_loss(self) -> Fraction | float:
        """The privacy loss, an exact fraction or infinity."""
        numerator, denominator = self.epsilon
        return Fraction(numerator, denominator) if denominator else math.inf

    def fits(self, layout: Layout) -> bool:
        """Whether this is a message for a survey with that layout: by default, for one of a single cell."""
        return [(group.cells, group.choice) for group in layout.groups] == [(1, False)]

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """The message as plain JSON values."""

    def to_json(self) -> str:
        """The message as it is sent."""
        return json.dumps(self.to_dict())

    @classmethod
    @abstractmethod
    def from_dict(cls, message: Mapping[str, Any]) -> Self:
        """Read a message strictly: exactly the fields of version 1, each of its type and range."""

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Read a message as it was sent."""
        try:
            message = json.loads(text, object_pairs_hook=unique_keys)
        except (ValueError, RecursionError):
            raise InputError("A message must be JSON in which no key occurs twice.") from None
        return cls.from_dict(message)

    @classmethod
    def _refuse_other(cls, message: object) -> None:
        """Refuse what has not the fields, the format and the version."""
        if not isinstance(message, Mapping) or set(message) != cls.fields:
            raise InputError(f"A message must have exactly the fields {', '.join(sorted(cls.fields))}.")
        if message["format"] != cls.format or type(message["version"]) is not int or message["version"] != VERSION:
            raise InputError(f"A message must have format {cls.format!r} and version {VERSION}.")


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivatizedValue(Message):
    """One person's datum with its noise; safe to send, once."""

    format = "hushbid-local"
    fields = frozenset({"format", "version", "grid_bits", "epsilon", "value"})

    grid_bits: int
    """The range is divided into 2**grid_bits steps."""

    value: int
    """The noisy datum, in steps from the lower end of the range; it may lie outside."""

    @property
    def values(self) -> tuple[tuple[int, ...], ...]:
        """The noisy datum as that of a survey of one question."""
        return ((self.value,),)

    def decode(self, bounds: tuple[float, float]) -> float:
        """The noisy datum in data units."""
        low, high = bounds
        return low + (high - low) * (self.value / (1 << self.grid_bits))

    def to_dict(self) -> dict[str, Any]:
        """The message as plain JSON values."""
        return {
            "format": self.format,
            "version": VERSION,
            "grid_bits": self.grid_bits,
            "epsilon": [str(part) for part in self.epsilon],
            "value": str(self.value),
        }

    @classmethod
    def from_dict(cls, message: Mapping[str, Any]) -> Self:
        """Read a message strictly: exactly the fields of version 1, each of its type and range."""
        cls._refuse_other(message)
        bits, epsilon = _bits_of(message["grid_bits"]), _ratio_of(message["epsilon"])
        value = _integer_of(message["value"], "value")
        if not -_LARGEST_VALUE <= value < _LARGEST_VALUE:
            raise InputError("value must fit in 64 bits.", field="value")
        if value != within_reach(value, bits, epsilon):
            raise InputError(
                f"value must lie within {_FARTHEST} noise scales of the range: no noise takes it farther.",
                field="value",
            )
        return cls(grid_bits=bits, epsilon=epsilon, value=value)


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivatizedAnswers(Message):
    """One person's answers to a survey with their noise; safe to send, once."""

    format = "hushbid-local-survey"
    fields = frozenset({"format", "version", "grid_bits", "epsilon", "parts", "values"})

    grid_bits: int
    """Every range is divided into 2**grid_bits steps."""

    parts: tuple[int, ...]
    """Each group's part of the loss for all answers together, in units of 2**-30; together all of it."""

    values: tuple[tuple[int, ...], ...]
    """The noisy answers by group and cell, in steps from the lower end of the range; they may lie outside."""

    def fits(self, layout: Layout) -> bool:
        """Whether this is a message for a survey with that layout."""
        shape = [(group.parts, group.cells) for group in layout.groups]
        return [(part, len(cells)) for part, cells in zip(self.parts, self.values, strict=True)] == shape

    def to_dict(self) -> dict[str, Any]:
        """The message as plain JSON values."""
        return {
            "format": self.format,
            "version": VERSION,
            "grid_bits": self.grid_bits,
            "epsilon": [str(part) for part in self.epsilon],
            "parts": list(self.parts),
            "values": [[str(cell) for cell in cells] for cells in self.values],
        }

    @classmethod
    def from_dict(cls, message: Mapping[str, Any]) -> Self:
        """Read a message strictly: exactly the fields of version 1, each of its type and range."""
        cls._refuse_other(message)
        parts, groups = message["parts"], message["values"]
        bits, epsilon = _bits_of(message["grid_bits"]), _ratio_of(message["epsilon"])
        whole = isinstance(parts, (list, tuple)) and all(type(part) is int and part > 0 for part in parts)
        if not whole or len(parts) > MOST_QUESTIONS or sum(parts) != PARTS:
            raise InputError(f"parts must be positive integers that add up to 2**30 = {PARTS}.", field="parts")
        if not isinstance(groups, (list, tuple)) or len(groups) != len(parts):
            raise InputError("values must have one list for each of parts.", field="values")
        values = tuple(_cells_of(cells, bits, epsilon, part) for cells, part in zip(groups, parts, strict=True))
        return cls(grid_bits=bits, epsilon=epsilon, parts=tuple(parts), values=values)


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomisedResponse(Message):
    """One person's answer to a yes/no question, true or false by a coin; safe to send, once."""

    format = "hushbid-local-response"
    fields = frozenset({"format", "version", "epsilon", "answer"})

    answer: int
    """1 for yes, 0 for no."""

    def decode(self) -> float:
        """The answer made unbiased: on average over the coin it is the true one; it lies outside of 0 to 1."""
        loss = float(min(self.privacy_loss, Fraction(1000)))  # beyond, the coin never lies as far as a double can tell
        return 0.5 + (self.answer - 0.5) / math.tanh(0.5 * loss)

    def to_dict(self) -> dict[str, Any]:
        """The message as plain JSON values."""
        return {
            "format": self.format,
            "version": VERSION,
            "epsilon": [str(part) for part in self.epsilon],
            "answer": self.answer,
        }

    @classmethod
    def from_dict(cls, message: Mapping[str, Any]) -> Self:
        """Read a message strictly: exactly the fields of version 1, each of its type and range."""
        cls._refuse_other(message)
        answer = message["answer"]
        if type(answer) is not int or answer not in (0, 1):
            raise InputError("answer must be 0 or 1.", field="answer")
        return cls(epsilon=_ratio_of(message["epsilon"]), answer=answer)


def as_ratio(privacy_loss: float) -> tuple[int, int]:
    """A privacy loss as the reduced fraction that its double is."""
    return (1, 0) if privacy_loss == math.inf else privacy_loss.as_integer_ratio()


def within_reach(value: int, grid_bits: int, epsilon: tuple[int, int]) -> int:
    """The nearest integer that the noise of one number may lead to. Done after the noise is drawn.

    So it costs no privacy; it happens with a probability below exp(−50) = 2e-22 and moves the mean by less than that
    times the scale.
    """
    return _cut_off((value,), grid_bits, epsilon, PARTS, _FARTHEST)[0]


def cut_off(cells: Sequence[int], grid_bits: int, epsilon: tuple[int, int], part: int) -> tuple[int, ...]:
    """The same of the cells of a group of a survey's questions, which has this part of the loss."""
    return _cut_off(cells, grid_bits, epsilon, part, _FARTHEST + _FARTHER * len(cells))


def _cut_off(cells: Sequence[int], grid_bits: int, epsilon: tuple[int, int], part: int, scales: int) -> tuple[int, ...]:
    numerator, denominator = epsilon
    steps = 1 << grid_bits
    farthest = -(-scales * denominator * steps * PARTS // (numerator * part))
    return tuple(min(max(cell, -farthest), steps + farthest) for cell in cells)


def _bits_of(bits: object) -> int:
    if type(bits) is not int or not 1 <= bits <= LARGEST_GRID_BITS:
        raise InputError(f"grid_bits must be an integer from 1 to {LARGEST_GRID_BITS}.", field="grid_bits")
    return bits


def _cells_of(cells: object, bits: int, epsilon: tuple[int, int], part: int) -> tuple[int, ...]:
    if not isinstance(cells, (list, tuple)) or not 1 <= len(cells) <= _MOST_CELLS:
        raise InputError(f"values must be lists of 1 to {_MOST_CELLS} integers, as texts.", field="values")
    found = tuple(_integer_of(cell, "values") for cell in cells)
    if found != cut_off(found, bits, epsilon, part):
        raise InputError("values must lie where noise may lead to: no noise takes them farther.", field="values")
    return found


def _ratio_of(ratio: object) -> tuple[int, int]:
    """A privacy loss as it is sent: a reduced fraction, numerator and denominator as texts."""
    if not isinstance(ratio, (list, tuple)) or len(ratio) != 2:
        raise InputError("epsilon must be two integers as text: numerator and denominator.", field="epsilon")
    numerator, denominator = (_integer_of(part, "epsilon") for part in ratio)
    if numerator <= 0 or denominator < 0 or math.gcd(numerator, denominator) != 1:
        raise InputError("epsilon must be a positive fraction in lowest terms.", field="epsilon")
    return numerator, denominator


def _integer_of(text: object, name: str) -> int:
    """Canonical decimal text only: optional minus, no sign of plus, no leading zeros, ASCII digits."""
    if isinstance(text, str) and len(text) <= _LONGEST_INTEGER and text.isascii():
        digits = text.removeprefix("-")
        if digits.isdigit() and (digits[0] != "0" or text == "0"):
            return int(text)
    raise InputError(f"{name} must be an integer written in decimal digits, as text.", field=name)
