"""What one person's device sends for a survey in the local setting, version 1 (docs/reference/wire-format.md).

    {"format": "hushbid-local-survey", "version": 1, "grid_bits": 32, "epsilon": ["1", "2"],
     "parts": [536870912, 536870912], "values": [["3175000000", "-12"], ["4294967001", "9", "286"]]}

``parts`` are the parts of the loss that the groups of questions have, in units of 2**-30, as the survey's layout says;
``values`` are each group's cells: ``X + noise`` with X as for one number (`hushbid.disclosure.message`), and for a
choice ``2**grid_bits`` for the answer given and 0 for every other. The noise of a group is a box's or a choice's
(`hushbid.disclosure.noise`) of scale at least ``2**grid_bits·2**30/(ε·part)``. A value farther from the range than 50
scales, and 4 for each cell of its group, is cut off there and refused: noise gets there with a probability below
exp(−50).
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from hushbid.disclosure.message import LARGEST_GRID_BITS, integer_of, ratio_of
from hushbid.documents import unique_keys
from hushbid.errors import InputError
from hushbid.questions import MOST_ANSWERS, MOST_QUESTIONS, PARTS, Layout

FORMAT, VERSION = "hushbid-local-survey", 1
_FIELDS = {"format", "version", "grid_bits", "epsilon", "parts", "values"}
_FARTHEST, _FARTHER = 50, 4  # noise scales, and as many more for each cell
_MOST_CELLS = max(MOST_QUESTIONS, MOST_ANSWERS)


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivatizedAnswers:
    """One person's answers to a survey with their noise; safe to send, once."""

    grid_bits: int
    """Every range is divided into 2**grid_bits steps."""

    epsilon: tuple[int, int]
    """Privacy loss for all answers together, as a reduced fraction; (1, 0) if it is infinite."""

    parts: tuple[int, ...]
    """Each group's part of it, in units of 2**-30; together all of it."""

    values: tuple[tuple[int, ...], ...]
    """The noisy answers by group and cell, in steps from the lower end of the range; they may lie outside."""

    @property
    def privacy_loss(self) -> Fraction | float:
        """The privacy loss, an exact fraction or infinity."""
        numerator, denominator = self.epsilon
        return Fraction(numerator, denominator) if denominator else math.inf

    def fits(self, layout: Layout) -> bool:
        """Whether this is a message for a survey with that layout."""
        shape = [(group.parts, group.cells) for group in layout.groups]
        return [(part, len(cells)) for part, cells in zip(self.parts, self.values, strict=True)] == shape

    def to_dict(self) -> dict[str, Any]:
        """The message as plain JSON values."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "grid_bits": self.grid_bits,
            "epsilon": [str(part) for part in self.epsilon],
            "parts": list(self.parts),
            "values": [[str(cell) for cell in cells] for cells in self.values],
        }

    def to_json(self) -> str:
        """The message as it is sent."""
        return json.dumps(self.to_dict())

    @classmethod
    def from_dict(cls, message: Mapping[str, Any]) -> "PrivatizedAnswers":
        """Read a message strictly: exactly the fields of version 1, each of its type and range."""
        if not isinstance(message, Mapping) or set(message) != _FIELDS:
            raise InputError(f"A message must have exactly the fields {', '.join(sorted(_FIELDS))}.")
        if message["format"] != FORMAT or type(message["version"]) is not int or message["version"] != VERSION:
            raise InputError(f"A message must have format {FORMAT!r} and version {VERSION}.")
        bits, parts, groups = message["grid_bits"], message["parts"], message["values"]
        if type(bits) is not int or not 1 <= bits <= LARGEST_GRID_BITS:
            raise InputError(f"grid_bits must be an integer from 1 to {LARGEST_GRID_BITS}.", field="grid_bits")
        epsilon = ratio_of(message["epsilon"])
        whole = isinstance(parts, (list, tuple)) and all(type(part) is int and part > 0 for part in parts)
        if not whole or len(parts) > MOST_QUESTIONS or sum(parts) != PARTS:
            raise InputError(f"parts must be positive integers that add up to 2**30 = {PARTS}.", field="parts")
        if not isinstance(groups, (list, tuple)) or len(groups) != len(parts):
            raise InputError("values must have one list for each of parts.", field="values")
        values = tuple(_cells(cells, bits, epsilon, part) for cells, part in zip(groups, parts, strict=True))
        return cls(grid_bits=bits, epsilon=epsilon, parts=tuple(parts), values=values)

    @classmethod
    def from_json(cls, text: str | bytes) -> "PrivatizedAnswers":
        """Read a message as it was sent."""
        try:
            message = json.loads(text, object_pairs_hook=unique_keys)
        except (ValueError, RecursionError):
            raise InputError("A message must be JSON in which no key occurs twice.") from None
        return cls.from_dict(message)


def cut_off(cells: Sequence[int], grid_bits: int, epsilon: tuple[int, int], part: int) -> tuple[int, ...]:
    """The nearest integers that the noise of a group may lead to. Done after the noise is drawn."""
    numerator, denominator = epsilon
    steps = 1 << grid_bits
    scales = _FARTHEST + _FARTHER * len(cells)
    farthest = -(-scales * denominator * steps * PARTS // (numerator * part))
    return tuple(min(max(cell, -farthest), steps + farthest) for cell in cells)


def _cells(cells: object, bits: int, epsilon: tuple[int, int], part: int) -> tuple[int, ...]:
    if not isinstance(cells, (list, tuple)) or not 1 <= len(cells) <= _MOST_CELLS:
        raise InputError(f"values must be lists of 1 to {_MOST_CELLS} integers, as texts.", field="values")
    found = tuple(integer_of(cell, "values") for cell in cells)
    if found != cut_off(found, bits, epsilon, part):
        raise InputError("values must lie where noise may lead to: no noise takes them farther.", field="values")
    return found
