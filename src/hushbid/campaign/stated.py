"""What is stated of a campaign, in a file, by options or in Python, and where it is stated."""

import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

from hushbid.campaign.spec import GOALS, CampaignSpec, allowed_of, fields_of
from hushbid.errors import InputError

_TABLE = re.compile(r"^\s*\[\[?\s*([^\]]+?)\s*\]\]?\s*(?:#.*)?$")
_KEY = re.compile(r"^\s*([A-Za-z0-9_\-\"'. ]+?)\s*=")
_VARIABLE = re.compile(r"\$(\$|\{([A-Za-z_][A-Za-z0-9_]*)\})")
_LAST = 10**9


@dataclass(frozen=True, slots=True, kw_only=True)
class Stated:
    """What is stated of a campaign, and where."""

    values: Mapping[str, Any]
    """By table and field, as a campaign file has them."""

    source: str = ""
    """What messages call the file; empty if there is none."""

    home: Path = Path()
    """The folder that paths are relative to."""

    path: Path | None = None
    """The file, if there is one."""

    places: Mapping[str, tuple[int, str]] = field(default_factory=dict)
    """Where a field or a table is stated: a number to sort by, and ``line 3`` or ``--budget``."""

    options: Mapping[str, str] = field(default_factory=dict)
    """The options by which a command would state fields."""

    faults: tuple[tuple[str, str], ...] = ()
    """Fields that could not be read, and why."""

    @classmethod
    def of_file(cls, path: Path) -> "Stated":
        """Read what a file states."""
        return cls.of_text(toml_text(path), path)

    @classmethod
    def of_text(cls, text: str, path: Path) -> "Stated":
        """Read what a file of this text at this path would state."""
        places = {name: (line, f"line {line}") for name, line in line_numbers(text).items()}
        values, faults = toml_values(text, path), list[tuple[str, str]]()
        if "$" in text:
            values = _expanded(values, "", faults)
        return cls(values=values, source=str(path), home=path.parent, path=path, places=places, faults=tuple(faults))

    def with_table(self, name: str, path: Path) -> "Stated":
        """Take one table from another file."""
        other = Stated.of_file(path)
        if name not in other.values:
            shown = f"tables [[{name}]]" if name == "questions" else f"a table [{name}]"
            raise InputError(f"{path} must hold {shown}, and has none.", field=name)
        places = {place: value for place, value in self.places.items() if place.partition(".")[0] != name}
        inside = {place: (line, f"{path}, {told}") for place, (line, told) in other.places.items()}
        places |= {place: found for place, found in inside.items() if place.partition(".")[0] == name}
        return replace(self, values={**self.values, name: other.values[name]}, places=places)

    def with_options(self, stated: Mapping[str, Any], options: Mapping[str, str]) -> "Stated":
        """Let options, by the full names of their fields, take the place of what the file says.

        A goal takes the place of any other goal. ``options`` are the names of all that the command has.
        """
        values: dict[str, Any] = _copied(self.values)
        places = dict(self.places)
        market = values.get("market")
        if isinstance(market, dict) and any(f"market.{goal}" in stated for goal in GOALS):
            values["market"] = {name: one for name, one in market.items() if name not in GOALS}
        for name, value in stated.items():
            *tables, key = name.split(".")
            inner: Any = values
            for table in tables:
                inner = inner.setdefault(table, {}) if isinstance(inner, dict) else None
            if isinstance(inner, dict):
                inner[key] = value
            if name in options:
                places[name] = (_LAST, options[name])
        return replace(self, values=values, places=places, options=options)

    def place_of(self, name: str) -> tuple[int, str]:
        """Return where a field is stated, or the nearest table around it; the option that would state it."""
        around = name
        while around:
            if around in self.places:
                return self.places[around]
            if around in self.options and not self.source:
                return _LAST, self.options[around]
            around = around.rpartition(".")[0]
        return 0, ""


def _copied(value: Any) -> Any:
    return {name: _copied(one) for name, one in value.items()} if isinstance(value, Mapping) else value


# -- texts that state values ---------------------------------------------------------------------------------------


def value_of(name: str, text: str) -> Any:
    """Return what a text, of an option or of the environment, states of a field; the schema then judges it."""
    if name == "market.bounds" and not text.lstrip().startswith("["):
        return [_number(part) for part in text.split(",")]
    if "=" in text and not text.lstrip().startswith("{") and name in _BY_STRATUM:
        parts = [part.rpartition("=") for part in text.split(",")]
        found = {label.strip(): _number(number.strip()) for label, _, number in parts}
        return found if len(found) == len(parts) else text
    kinds = field_kinds(name)
    if not kinds.isdisjoint({int, float}) and not isinstance(number := _number(text), str):
        return number
    if kinds <= {str, type(None)}:
        return text
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):
        return text


def field_kinds(name: str) -> set[Any]:
    """Return the plain types that a field may hold; those of text for a field that there is not."""
    info = _FIELDS.get(re.sub(r"\.\d+\.", ".", name))
    return {str} if info is None else set(_plain_types(info.annotation))


def _plain_types(annotation: Any) -> Iterator[Any]:
    inner = get_args(annotation)[: 1 if get_origin(annotation) is Annotated else None]
    if not inner:
        yield annotation if isinstance(annotation, type) or annotation is Any else type(annotation)
    for one in inner:
        yield from _plain_types(one)


def _number(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _expanded(value: Any, name: str, faults: list[tuple[str, str]]) -> Any:
    """Return a value with environment variables, ``${NAME}``, in the place of their names; ``$$`` is a dollar sign."""
    if isinstance(value, Mapping):
        return {key: _expanded(one, f"{name}.{key}" if name else key, faults) for key, one in value.items()}
    if isinstance(value, list):
        return [_expanded(one, f"{name}.{place}", faults) for place, one in enumerate(value, start=1)]
    if not isinstance(value, str) or "$" not in value:
        return value
    unset = [found for _, found in _VARIABLE.findall(value) if found and found not in os.environ]
    faults += [(name, f"names the environment variable {one}, which is not set.") for one in unset]
    text = _VARIABLE.sub(lambda found: os.environ.get(found[2], "") if found[2] else "$", value)
    whole = _VARIABLE.fullmatch(value)
    return value_of(name, text) if whole is not None and whole[2] and not unset else text


# -- TOML --------------------------------------------------------------------------------------------------------------


def toml_text(path: Path) -> str:
    """Return what a file holds."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise InputError(f"{path} does not exist.") from None
    except UnicodeDecodeError:
        raise InputError(f"{path} must be UTF-8 text.") from None
    except OSError as problem:
        raise InputError(f"{path} cannot be read: {problem.strerror}.") from problem


def toml_values(text: str, path: Path) -> dict[str, Any]:
    """Return what the text of a file states."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        raise InputError(f"{path} is not TOML: {problem}.") from None
    except RecursionError:
        raise InputError(f"{path} cannot be read: it is nested too deeply.") from None
    except ValueError:  # of Python's own: a number of thousands of digits
        raise InputError(f"{path} cannot be read: a number in it has too many digits.") from None


def line_numbers(text: str) -> dict[str, int]:
    """Return where each table and each key of a TOML text stands, by full name; enough to point, not a parser."""
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


_FIELDS = dict(fields_of(CampaignSpec))
_BY_STRATUM = frozenset(name for name, info in _FIELDS.items() if "each stratum" in allowed_of(info))
