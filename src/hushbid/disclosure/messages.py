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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from hushbid.common.documents import unique_keys
from hushbid.errors import InputError
from hushbid.questions import MOST_ANSWERS, MOST_QUESTIONS, PARTS, Layout, Question, one_yes_no

VERSION = 1
LARGEST_GRID_BITS = 32
_LONGEST_INTEGER = 400  # digits; the denominator of the smallest double has 324
_LARGEST_VALUE = 2**63
_FARTHEST, _FARTHER = 50, 4  # noise scales, and in a survey as many more for each cell
_MOST_CELLS = max(MOST_QUESTIONS, MOST_ANSWERS)

Kind = Literal["value", "answers", "response"]
"""What a message is about: one number, a survey, or a single yes/no question."""

_FORMATS: Mapping[Kind, tuple[str, tuple[str, ...]]] = {
    "value": ("hushbid-local", ("grid_bits", "epsilon", "value")),
    "answers": ("hushbid-local-survey", ("grid_bits", "epsilon", "parts", "values")),
    "response": ("hushbid-local-response", ("epsilon", "answer")),
}
"""The format of each kind, and its fields after format and version."""


def message_kind(questions: Sequence[Question]) -> Kind:
    """What a device sends about these questions, or about one number where there are none."""
    return "value" if not questions else "response" if one_yes_no(questions) else "answers"


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """What one device sends; safe to send, once."""

    kind: Kind
    """What it is about."""

    epsilon: tuple[int, int]
    """Privacy loss as a reduced fraction; (1, 0) if it is infinite."""

    values: tuple[tuple[int, ...], ...]
    """The noisy answers by group and cell, in steps from the lower end of the range; they may lie outside.

    By randomised response, 1 for yes and 0 for no."""

    grid_bits: int = 0
    """Every range is divided into 2**grid_bits steps; by randomised response it is one step."""

    parts: tuple[int, ...] = (PARTS,)
    """Each group's part of the loss for all answers together, in units of 2**-30; together all of it."""

    @property
    def privacy_loss(self) -> Fraction | float:
        """The privacy loss, an exact fraction or infinity."""
        numerator, denominator = self.epsilon
        return Fraction(numerator, denominator) if denominator else math.inf

    @property
    def value(self) -> int:
        """The only answer, or the first."""
        return self.values[0][0]

    @property
    def shares(self) -> list[list[float]]:
        """The answers by group and cell as shares of the range, unbiased; they may lie outside of 0 to 1."""
        steps = 1 << self.grid_bits
        if self.kind != "response":
            return [[cell / steps for cell in cells] for cells in self.values]
        loss = float(min(self.privacy_loss, Fraction(1000)))  # beyond, the coin never lies as far as a double can tell
        return [[0.5 + (self.value - 0.5) / math.tanh(0.5 * loss)]]

    def decode(self, bounds: tuple[float, float] = (0.0, 1.0)) -> float:
        """The only answer in data units, unbiased."""
        low, high = bounds
        return low + (high - low) * self.shares[0][0]

    def fits(self, layout: Layout) -> bool:
        """Whether this is a message for a survey with that layout."""
        shape = [(group.parts, group.cells) for group in layout.groups]
        return [(part, len(cells)) for part, cells in zip(self.parts, self.values, strict=True)] == shape

    def to_dict(self) -> dict[str, Any]:
        """The message as plain JSON values."""
        name, fields = _FORMATS[self.kind]
        cells = [[str(cell) for cell in group] for group in self.values]
        written: dict[str, Any] = {
            "grid_bits": self.grid_bits,
            "epsilon": [str(part) for part in self.epsilon],
            "parts": list(self.parts),
            "values": cells,
            "value": str(self.value),
            "answer": self.value,
        }
        return {"format": name, "version": VERSION, **{field: written[field] for field in fields}}

    def to_json(self) -> str:
        """The message as it is sent."""
        return json.dumps(self.to_dict())

    @classmethod
    def from_dict(cls, message: Mapping[str, Any], kind: Kind) -> "Message":
        """Read a message of a kind strictly: exactly the fields of version 1, each of its type and range."""
        name, fields = _FORMATS[kind]
        if not isinstance(message, Mapping) or set(message) != {"format", "version", *fields}:
            raise InputError(
                f"A message must have exactly the fields {', '.join(sorted(['format', 'version', *fields]))}."
            )
        if message["format"] != name or type(message["version"]) is not int or message["version"] != VERSION:
            raise InputError(f"A message must have format {name!r} and version {VERSION}.")
        epsilon = _ratio_of(message["epsilon"])
        if kind == "response":
            return cls(kind=kind, epsilon=epsilon, values=((_answer_of(message["answer"]),),))
        bits = _bits_of(message["grid_bits"])
        survey = kind == "answers"
        parts = _parts_of(message["parts"]) if survey else (PARTS,)
        name, groups = ("values", message["values"]) if survey else ("value", [[message["value"]]])
        values = _cells_of(groups, name, bits, epsilon, parts, kind)
        return cls(kind=kind, epsilon=epsilon, values=values, grid_bits=bits, parts=parts)

    @classmethod
    def from_json(cls, text: str | bytes, kind: Kind) -> "Message":
        """Read a message of a kind as it was sent."""
        try:
            message = json.loads(text, object_pairs_hook=unique_keys)
        except (ValueError, RecursionError):
            raise InputError("A message must be JSON in which no key occurs twice.") from None
        return cls.from_dict(message, kind)


def as_ratio(privacy_loss: float) -> tuple[int, int]:
    """A privacy loss as the reduced fraction that its double is."""
    return (1, 0) if privacy_loss == math.inf else privacy_loss.as_integer_ratio()


def cut_off(
    cells: Sequence[int], grid_bits: int, epsilon: tuple[int, int], part: int, kind: Kind = "value"
) -> tuple[int, ...]:
    """The nearest integers that noise may lead to, of the cells of a group that has this part of the loss.

    Done after the noise is drawn, so it costs no privacy; it happens with a probability below exp(−50) = 2e-22 and
    moves the mean by less than that times the scale.
    """
    numerator, denominator = epsilon
    steps = 1 << grid_bits
    farthest = -(-_scales(len(cells), kind) * denominator * steps * PARTS // (numerator * part))
    return tuple(min(max(cell, -farthest), steps + farthest) for cell in cells)


def _scales(cells: int, kind: Kind) -> int:
    """How many noise scales beyond the range a cell may lie."""
    return _FARTHEST + (_FARTHER * cells if kind == "answers" else 0)


def _answer_of(answer: object) -> int:
    if type(answer) is not int or answer not in (0, 1):
        raise InputError("answer must be 0 or 1.", field="answer")
    return answer


def _parts_of(parts: object) -> tuple[int, ...]:
    whole = isinstance(parts, (list, tuple)) and all(type(part) is int and part > 0 for part in parts)
    if not isinstance(parts, (list, tuple)) or not whole or len(parts) > MOST_QUESTIONS or sum(parts) != PARTS:
        raise InputError(f"parts must be positive integers that add up to 2**30 = {PARTS}.", field="parts")
    return tuple(parts)


def _cells_of(
    groups: object, name: str, bits: int, epsilon: tuple[int, int], parts: Sequence[int], kind: Kind
) -> tuple[tuple[int, ...], ...]:
    if not isinstance(groups, (list, tuple)) or len(groups) != len(parts):
        raise InputError("values must have one list for each of parts.", field="values")
    found = []
    for cells, part in zip(groups, parts, strict=True):
        if not isinstance(cells, (list, tuple)) or not 1 <= len(cells) <= _MOST_CELLS:
            raise InputError(f"values must be lists of 1 to {_MOST_CELLS} integers, as texts.", field="values")
        found.append(tuple(_integer_of(cell, name) for cell in cells))
        if kind == "value" and not -_LARGEST_VALUE <= found[-1][0] < _LARGEST_VALUE:
            raise InputError("value must fit in 64 bits.", field=name)
        if found[-1] != cut_off(found[-1], bits, epsilon, part, kind):
            scales = _scales(len(cells), kind)
            raise InputError(f"{name} must lie within {scales} noise scales of the range.", field=name)
    return tuple(found)


def _bits_of(bits: object) -> int:
    if type(bits) is not int or not 1 <= bits <= LARGEST_GRID_BITS:
        raise InputError(f"grid_bits must be an integer from 1 to {LARGEST_GRID_BITS}.", field="grid_bits")
    return bits


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
