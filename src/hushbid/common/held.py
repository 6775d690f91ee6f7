"""Plain values in which everybody's numbers stay arrays: a list of a million takes a while to make, to write, to read.

`Doubles` stand in plain values for a list of numbers, and `Held` is a mapping with such values that shows lists to
whoever looks. `without_long_lists` takes lists of doubles out of a JSON text before anybody parses it: only those that
are written exactly as we write them, so that nothing is read that another reader would read otherwise.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from hushbid.common.arrays import FloatArray
from hushbid.common.shortest import is_quick, joined_floats, split_floats

_SHORTEST = len("0.0,")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Doubles:
    """Numbers, infinities among them, that stand for a list."""

    numbers: FloatArray
    text: bytes | None = None
    """How they are written, between the brackets, if that is known."""

    def listed(self) -> list[Any]:
        """The list, infinities as texts."""
        found = self.numbers.tolist()
        return found if np.isfinite(self.numbers).all() else [str(one) if math.isinf(one) else one for one in found]

    def written(self) -> bytes | None:
        """The list as JSON, if that is quicker than making it."""
        if self.text is None and not (is_quick(self.numbers.size) and np.isfinite(self.numbers).all()):
            return None
        return b"".join((b"[", joined_floats(self.numbers, ",") if self.text is None else self.text, b"]"))


class Held(Mapping[str, Any]):
    """Plain values in which numbers may be `Doubles` until somebody looks."""

    __slots__ = ("values_held",)

    def __init__(self, values: dict[str, Any]) -> None:
        self.values_held = values

    def __getitem__(self, name: str) -> Any:
        return thawed(self.values_held[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self.values_held)

    def __len__(self) -> int:
        return len(self.values_held)


def held_in(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """The values with `Doubles` in them, if they are held, else as they are."""
    return values.values_held if isinstance(values, Held) else values


def thawed(value: Any) -> Any:
    """Plain values with lists in place of `Doubles`."""
    if type(value) is dict:
        return {name: thawed(one) for name, one in value.items()}
    return value.listed() if isinstance(value, Doubles) else value


def doubles_in(value: Any) -> int:
    """How many `Doubles` there are in plain values, in objects at any depth but not in lists."""
    if type(value) is dict:
        return sum(map(doubles_in, value.values()))
    return int(isinstance(value, Doubles))


def without_long_lists(text: bytes, mark: str) -> tuple[bytes, list[Doubles]]:
    """A JSON text with ``{"MARK":K}`` in the place of the K-th long list of doubles, and these lists.

    ``mark`` must be new to the text. If such a list stands in a string, what is returned is no JSON.
    """
    parts, found, end = [], list[Doubles](), 0
    for start, stop, doubles in _long_lists(text):
        parts += [text[end:start], f'{{"{mark}":{len(found)}}}'.encode()]
        found.append(doubles)
        end = stop
    return b"".join([*parts, text[end:]]), found


def _long_lists(text: bytes) -> Iterator[tuple[int, int, Doubles]]:
    """Where long lists of doubles begin and end: brackets with neither a bracket nor a quote between them.

    Every byte is looked at a few times at most, whatever the text.
    """
    at, quote, close = text.find(b"["), -1, -1
    while at >= 0:
        following = text.find(b"[", at + 1)
        if close < at and (close := text.find(b"]", at)) < 0:
            return
        if quote < at:
            quote = text.find(b'"', at) % (len(text) + 1)  # behind the text if there is none
        if is_quick((close - at) // _SHORTEST) and close < quote and (following < 0 or close < following):
            numbers = split_floats(content := text[at + 1 : close])
            if numbers is not None:
                yield at, close + 1, Doubles(numbers, content)
        at = following
