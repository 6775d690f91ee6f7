"""Reading plain values strictly: exactly the fields there are, each of its type. What is not so is a ``RecordError``.

JSON numbers are integers or doubles, infinity is the text ``"inf"``; ``True`` is no number and ``"1"`` neither.
"""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar, get_args, get_type_hints

from hushbid.errors import RecordError

_Part = TypeVar("_Part")


class Fields:
    """The fields of one object in a file; ``what`` names it in messages."""

    def __init__(self, values: Any, what: str, names: Iterable[str]) -> None:
        expected = set(names)
        if not isinstance(values, Mapping):
            raise RecordError(f"{what} must be an object, got {type(values).__name__}.")
        if set(values) != expected:
            wrong = ", ".join(sorted(map(str, set(values) ^ expected)))
            raise RecordError(f"{what} must have exactly the fields of its version, but differs in: {wrong}.")
        self._values, self._what = values, what

    def number(self, name: str) -> float:
        """A number, perhaps infinite."""
        return _number(self._values[name], f"{self._what}: {name}")

    def numbers(self, name: str) -> list[float]:
        """A list of numbers."""
        found, where = self._list(name), f"{self._what}: {name}"
        return found if set(map(type, found)) == {float} else [_number(value, where) for value in found]

    def integer(self, name: str) -> int:
        """An integer."""
        return _integer(self._values[name], f"{self._what}: {name}")

    def integers(self, name: str) -> list[int]:
        """A list of integers."""
        found, where = self._list(name), f"{self._what}: {name}"
        return found if set(map(type, found)) == {int} else [_integer(value, where) for value in found]

    def text(self, name: str) -> str:
        """A text."""
        return _text(self._values[name], f"{self._what}: {name}")

    def texts(self, name: str) -> dict[str, str]:
        """An object of texts."""
        found = self._values[name]
        if not isinstance(found, Mapping):
            raise RecordError(f"{self._what}: {name} must be an object, got {type(found).__name__}.")
        return {str(label): _text(value, f"{self._what}: {name}") for label, value in found.items()}

    def listed_texts(self, name: str, size: int | None = None) -> list[str] | None:
        """A list of texts, one per person if ``size`` is given, in which case there may be none."""
        if self._values[name] is None and size is not None:
            return None
        found, where = self._list(name), f"{self._what}: {name}"
        if set(map(type, found)) != {str}:
            found = [_text(value, where) for value in found]
        if size not in (None, len(found)):
            raise RecordError(f"{self._what}: {name} must have one entry per person ({size}), got {len(found)}.")
        return found

    def named_numbers(self, name: str) -> dict[str, float]:
        """An object of numbers."""
        found = self._values[name]
        if not isinstance(found, Mapping):
            raise RecordError(f"{self._what}: {name} must be an object, got {type(found).__name__}.")
        return {str(label): _number(value, f"{self._what}: {name}") for label, value in found.items()}

    def part(self, name: str, kind: type[_Part]) -> _Part:
        """A dataclass of integers and numbers, each None only where its type says so."""
        types = {field.name: get_type_hints(kind)[field.name] for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
        inner = Fields(self._values[name], f"{self._what}: {name}", types)
        read: dict[str, float | int | None] = {}
        for label, expected in types.items():
            # a union's members, or the type itself
            choices = get_args(expected) or (expected,)
            if self._values[name][label] is None and type(None) in choices:
                read[label] = None
            else:
                read[label] = inner.integer(label) if int in choices else inner.number(label)
        return kind(**read)

    def _list(self, name: str) -> list[Any]:
        found = self._values[name]
        if not isinstance(found, list):
            raise RecordError(f"{self._what}: {name} must be a list, got {type(found).__name__}.")
        return found


def _number(value: Any, name: str) -> float:
    if type(value) not in (int, float) and value not in ("inf", "-inf"):
        raise RecordError(f"{name} must be a number, got {type(value).__name__}.")
    try:
        return float(value)
    except OverflowError:
        raise RecordError(f"{name} must be a number that fits in a double.") from None


def _integer(value: Any, name: str) -> int:
    if type(value) is not int:
        raise RecordError(f"{name} must be an integer, got {type(value).__name__}.")
    return value


def _text(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise RecordError(f"{name} must be text, got {type(value).__name__}.")
    return value
