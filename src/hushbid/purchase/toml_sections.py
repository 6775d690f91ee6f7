"""Reading a table of settings field by field, and telling everything that is wrong with it at once.

A problem is kept, not raised: the field takes a harmless value, reading goes on, and :meth:`Problems.refuse` raises one
error that lists every problem with its line and field.
"""

import difflib
import math
import re
import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hushbid.common.numbers import printable
from hushbid.errors import InputError

_TABLE = re.compile(r"^\s*\[\[?\s*([^\]]+?)\s*\]\]?\s*(?:#.*)?$")
_KEY = re.compile(r"^\s*([A-Za-z0-9_\-\"'. ]+?)\s*=")


class Problems:
    """What is wrong with one file, in the order in which it was found."""

    def __init__(self, source: str, text: str = "") -> None:
        self.source = source
        self._lines = line_numbers(text)
        self._found: list[tuple[int, str, str]] = []

    def add(self, field: str, sentence: str) -> None:
        """Keep a problem of a field; the sentence goes on after the field's name."""
        line = self.line_of(field)
        place = f"line {line}, {field}" if line else field
        self._found.append((line or 0, field, f"{place}: {sentence}"))

    def line_of(self, field: str) -> int | None:
        """The line on which a field stands, or the nearest table around it."""
        while field:
            if field in self._lines:
                return self._lines[field]
            field = field.rpartition(".")[0]
        return None

    def __len__(self) -> int:
        return len(self._found)

    def refuse(self) -> None:
        """Raise one error with all problems, by line, if there are any; its field is that of the first."""
        if not self._found:
            return
        found = sorted(self._found, key=lambda one: one[0])
        told, field = [text for _, _, text in found], found[0][1]
        if len(told) == 1:
            raise InputError(f"{self.source}, {told[0]}", field=field)
        listed = "\n".join(f"  {text}" for text in told)
        raise InputError(f"{self.source} has {len(told)} problems:\n{listed}", field=field)


class Section:
    """One table of settings. Each field is asked for once; `finish` then names those nobody asked for."""

    def __init__(self, values: Mapping[str, Any], name: str, problems: Problems) -> None:
        self._values = values
        self.name = name
        self._asked: list[str] = []
        self.problems = problems

    def field(self, name: str) -> str:
        """The full name of a field."""
        return f"{self.name}.{name}" if self.name else name

    def given(self, name: str) -> bool:
        """Whether the file has the field."""
        return name in self._values

    def raw(self, name: str) -> Any:
        """A field as it stands; None if it is not there."""
        self._asked.append(name)
        return self._values.get(name)

    def wrong(self, name: str, allowed: str) -> None:
        """Keep the problem that a field is not what is allowed, or is missing."""
        if self.given(name):
            self.problems.add(self.field(name), f"must be {allowed}, got {_shown(self._values[name])}.")
        else:
            self.problems.add(self.field(name), f"is missing; it must be {allowed}.")

    def number(
        self,
        name: str,
        *,
        default: float | None = None,
        needed: bool = False,
        low: float = 0.0,
        high: float = math.inf,
        open_low: bool = False,
    ) -> float | None:
        """A finite number in a range; the default if the field is missing and not needed."""
        value = self.raw(name)
        if value is None and not needed and not self.given(name):
            return default
        if is_number(value) and low <= value <= high and not (open_low and value == low):
            return float(value)
        lower = f"above {low:g}" if open_low else f"of at least {low:g}"
        self.wrong(name, f"a number {lower}" + (f" and at most {high:g}" if high < math.inf else ""))
        return default

    def count(self, name: str, *, most: int) -> int | None:
        """A whole number from 1; None if the field is missing, or wrong."""
        value = self.raw(name)
        if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= most:
            return value
        if self.given(name):
            self.wrong(name, f"a whole number from 1 to {most}")
        return None

    def text(self, name: str, *, default: str = "", needed: bool = False) -> str:
        """A text that is not empty; the default if the field is missing and not needed."""
        value = self.raw(name)
        if value is None and not needed and not self.given(name):
            return default
        if isinstance(value, str) and value.strip() and "\0" not in value:
            return value.strip()
        self.wrong(name, "a text without zero characters" if "\0" in str(value) else "a text in quotes")
        return default

    def choice(self, name: str, allowed: Sequence[str], *, default: str = "", needed: bool = False) -> str:
        """One of a few words; the default if the field is missing and not needed, or wrong."""
        value = self.raw(name)
        if value is None and not needed and not self.given(name):
            return default
        if isinstance(value, str) and value in allowed:
            return value
        self.wrong(name, " or ".join(f'"{word}"' for word in allowed))
        return default

    def flag(self, name: str) -> bool:
        """true or false; false if it is missing."""
        value = self.raw(name)
        if value is not None and not isinstance(value, bool):
            self.wrong(name, "true or false")
        return value is True

    def section(self, name: str, *, needed: bool = False) -> "Section":
        """A table inside this one; an empty one if it is missing."""
        value = self.raw(name)
        if value is None and not self.given(name):
            if needed:
                self.problems.add(self.field(name), f"is missing; the file must have a table [{self.field(name)}].")
            value = {}
        if not isinstance(value, Mapping):
            self.wrong(name, f"a table: [{self.field(name)}]")
            value = {}
        return Section(value, self.field(name), self.problems)

    def finish(self) -> None:
        """Name the fields that do not exist."""
        for name in self._values:
            if name in self._asked:
                continue
            close = difflib.get_close_matches(name, self._asked, n=1)
            hint = f" (did you mean {close[0]}?)" if close else f"; there are {', '.join(dict.fromkeys(self._asked))}"
            self.problems.add(self.field(name), f"is not a field of this file{hint}.")


def top_of(path: Path) -> Section:
    """A TOML file of which only some tables are read."""
    text = toml_text(path)
    return Section(toml_values(text, path), "", Problems(str(path), text))


def toml_text(path: Path) -> str:
    """What a file holds."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise InputError(f"{path} does not exist.") from None
    except UnicodeDecodeError:
        raise InputError(f"{path} must be UTF-8 text.") from None
    except OSError as problem:
        raise InputError(f"{path} cannot be read: {problem.strerror}.") from problem


def toml_values(text: str, path: Path) -> dict[str, Any]:
    """What the text of a file states."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        raise InputError(f"{path} is not TOML: {problem}.") from None
    except RecursionError:
        raise InputError(f"{path} cannot be read: it is nested too deeply.") from None
    except ValueError:  # of Python's own: a number of thousands of digits
        raise InputError(f"{path} cannot be read: a number in it has too many digits.") from None


def is_number(value: object) -> bool:
    """Whether a value is a finite number; true and false are not."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return abs(value) <= sys.float_info.max  # an integer may be larger than any double


def line_numbers(text: str) -> dict[str, int]:
    """Where each table and each key of a TOML text stands, by full name; enough to point, not a parser."""
    lines: dict[str, int] = {}
    table = ""
    for number, line in enumerate(text.splitlines(), start=1):
        header = _TABLE.match(line)
        if header:
            table = _plain(header[1])
            lines.setdefault(table, number)
            if line.lstrip().startswith("[["):  # one of several tables: counted from 1
                place = 1
                while f"{table}.{place}" in lines:
                    place += 1
                table = f"{table}.{place}"
                lines[table] = number
            continue
        key = _KEY.match(line)
        if key:
            lines.setdefault(_plain(f"{table}.{key[1]}" if table else key[1]), number)
    return lines


def _plain(name: str) -> str:
    return ".".join(part.strip().strip("\"'") for part in name.split("."))


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    text = f'"{value}"' if isinstance(value, str) else str(value)
    text = printable(text, keep="")
    return text if len(text) <= 60 else f"{text[:57]}..."
