"""From what is stated, in a file, by options or in Python, to a campaign; one error names everything that is wrong.

What may be stated is `hushbid.campaign.spec`. Each problem has its field and where it was stated: the line of the file
or the option. Problems are collected, not raised: tables in order are checked further though others are not.
"""

import difflib
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, TypeGuard, TypeVar, cast, get_origin

from pydantic import TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from hushbid.campaign.spec import (
    GOALS,
    CampaignSpec,
    MarketTable,
    QuestionTable,
    Table,
    Worth,
    allowed_of,
    fields_of,
    table_of,
)
from hushbid.common.arrays import TOO_MUCH_VARIANCE, varies_too_much
from hushbid.common.money import NO_CURRENCY, Currency
from hushbid.common.numbers import printable
from hushbid.errors import HushbidError, InputError
from hushbid.priors.pilot import prior_source
from hushbid.questions import as_questions, question_from_dict

_TABLE = re.compile(r"^\s*\[\[?\s*([^\]]+?)\s*\]\]?\s*(?:#.*)?$")
_KEY = re.compile(r"^\s*([A-Za-z0-9_\-\"'. ]+?)\s*=")
_WANTED = ("shares", "contrast", "each")
_ONE_WANTED = "exactly one of shares, contrast and each"
_LAST = 10**9
_VERBS = ("must ", "is ", "cannot ", "lets ")

Spec = TypeVar("Spec", bound=CampaignSpec)


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

    @classmethod
    def of_file(cls, path: Path) -> "Stated":
        """Read what a file states."""
        return cls.of_text(toml_text(path), path)

    @classmethod
    def of_text(cls, text: str, path: Path) -> "Stated":
        """Read what a file of this text at this path would state."""
        places = {name: (line, f"line {line}") for name, line in line_numbers(text).items()}
        return cls(values=toml_values(text, path), source=str(path), home=path.parent, path=path, places=places)

    def with_table(self, name: str, path: Path) -> "Stated":
        """Take one table from another file."""
        other = Stated.of_file(path)
        if name not in other.values:
            shown = f"tables [[{name}]]" if name == "questions" else f"a table [{name}]"
            raise InputError(f"{path} must hold {shown}, and has none.", field=name)
        places = {place: value for place, value in self.places.items() if place.partition(".")[0] != name}
        places |= {
            place: (line, f"{path}, {told}")
            for place, (line, told) in other.places.items()
            if place.partition(".")[0] == name
        }
        return replace(self, values={**self.values, name: other.values[name]}, places=places)

    def with_options(self, stated: Mapping[str, Any], options: Mapping[str, str]) -> "Stated":
        """Let options, by the full names of their fields, take the place of what the file says.

        A goal takes the place of any other goal. ``options`` are the names of all that the command has.
        """
        values: dict[str, Any] = {
            name: dict(one) if isinstance(one, Mapping) else one for name, one in self.values.items()
        }
        places = dict(self.places)
        market = values.get("market")
        if isinstance(market, dict) and any(f"market.{goal}" in stated for goal in GOALS):
            values["market"] = {name: one for name, one in market.items() if name not in GOALS}
        for name, value in stated.items():
            table, _, key = name.rpartition(".")
            inner = values.setdefault(table, {}) if table else values
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


class SpecError(InputError):
    """What was stated is no campaign."""

    def __init__(self, told: str, problems: Sequence[tuple[str, str]]) -> None:
        super().__init__(told, field=problems[0][0])
        self.problems = tuple(problems)
        """Each field that is wrong, by its full name, and a sentence about it."""


class Problems:
    """What is wrong with what was stated."""

    def __init__(self, stated: Stated) -> None:
        self._stated = stated
        self._found: list[tuple[int, str, str]] = []

    def add(self, name: str, sentence: str) -> None:
        """Keep a problem of a field; the sentence goes on after the field's name."""
        order, place = self._stated.place_of(name)
        told = f"{name}: {sentence}"
        if not self._stated.source:
            sentence = self._in_options(sentence)
        if place.startswith("-"):
            told = f"{place} {sentence}" if sentence.startswith(_VERBS) else f"{place}: {sentence}"
        elif place:
            told = f"{place}, {told}"
        elif not self._stated.source:
            told = f"The {name} {sentence}"
        self._found.append((order, name, told))

    def _in_options(self, sentence: str) -> str:
        """Call fields by their options, as far as their names cannot be mistaken for words."""
        for name, option in self._stated.options.items():
            table, _, key = name.rpartition(".")
            known = rf"(?:{table}\.)?{key}" if "_" in key else re.escape(name)
            if "." in name:
                sentence = re.sub(rf"(?<![\w.-]){known}\b", option, sentence)
        return sentence

    def called(self, name: str) -> str:
        """Return what a field is called where there is no file: by its option."""
        return name if self._stated.source else self._stated.options.get(name, name)

    def of(self, name: str) -> bool:
        """Return whether there is a problem of this very field or table."""
        return any(found == name for _, found, _ in self._found)

    def at(self, *names: str) -> bool:
        """Return whether there is a problem of one of these fields or tables, or inside of one."""
        return any(f"{found}.".startswith(f"{name}.") for _, found, _ in self._found for name in names)

    def __len__(self) -> int:
        return len(self._found)

    def refuse(self, *, within: str = "") -> None:
        """Raise one error with all problems, or those of one table, by line; its field is that of the first."""
        found = sorted((one for one in self._found if one[1].startswith(within)), key=lambda one: one[0])
        if not found:
            return
        problems, source = [(name, text) for _, name, text in found], self._stated.source
        told = [text for _, text in problems]
        if len(told) == 1:
            raise SpecError(f"{source}, {told[0]}" if source else told[0], problems)
        listed = "\n".join(f"  {text}" for text in told)
        what = f"{source} has" if source else "The options have" if self._stated.options else "The campaign has"
        raise SpecError(f"{what} {len(told)} problems:\n{listed}", problems)


# -- against the schema ------------------------------------------------------------------------------------------------


def checked(values: Mapping[str, Any], model: type[Spec], *, source: str = "") -> Spec:
    """Return what a mapping states, or refuse it with all its problems; files are not looked for."""
    stated = Stated(values=values, source=source)
    problems = Problems(stated)
    spec = validated(stated, problems, model)
    problems.refuse()
    return spec


def validated(stated: Stated, problems: Problems, model: type[Spec]) -> Spec:
    """Return what is stated, and keep its problems; tables with problems are then not there, or their defaults."""
    try:
        spec = model.model_validate(stated.values)
    except ValidationError as wrong:
        known: set[str] = set()
        for one in wrong.errors(include_url=False, include_context=True):
            name, told = _problem(one, stated.values, model)
            if name not in known:
                problems.add(name, told)
            known.add(name)
        spec = _in_order(stated.values, model, problems)
    _presence(stated.values, problems)
    for name, told in _contradictions(stated.values, spec, problems):
        problems.add(name, told)
    return spec


def field_problem(name: str, value: Any) -> str:
    """Return what is wrong with the value of one field, by its full name, after that name; empty if nothing is."""
    info = dict(fields_of(CampaignSpec))[name]
    try:
        _value_of(info, value)
        if name == "market.prior":
            prior_source(value)
        if name == "money.currency":
            Currency.of(value)
    except ValidationError:
        return f"must be {allowed_of(info)}, got {_shown(value)}."
    except HushbidError as problem:
        return str(problem)
    return ""


def _in_order(values: Mapping[str, Any], model: type[Spec], problems: Problems) -> Spec:
    """Return what is in order: tables without the fields that are not, as far as these have defaults."""
    found: dict[str, Any] = {}
    for name, info in model.model_fields.items():
        value = values.get(name)
        if isinstance(value, Mapping) and problems.at(name):
            value = {key: one for key, one in value.items() if not problems.at(f"{name}.{key}")}
        if value is not None:
            with suppress(ValidationError):
                found[name] = _value_of(info, value)
    return model.model_construct(**found)


def _value_of(info: FieldInfo, value: Any) -> Any:
    """Return a value as one field reads it."""
    kind: Any = Annotated[info.annotation, info]
    return TypeAdapter(kind).validate_python(value)


def _problem(one: Any, values: Mapping[str, Any], model: type[Table]) -> tuple[str, str]:
    """Return the full name of the field of one of pydantic's errors, and a sentence of our own about it."""
    names, value = list[str](), cast(Any, values)
    table: type[Table] | None = model
    info: FieldInfo | None = None
    for part in one["loc"]:
        if isinstance(part, int) and isinstance(value, list) and table is not None:
            names.append(str(part + 1))
            value = value[part]
        elif table is not None and part in table.model_fields:
            names.append(part)
            info = table.model_fields[part]
            table = table_of(info) or _inner(info)
            value = value.get(part) if isinstance(value, Mapping) else value
        elif one["type"] == "extra_forbidden" and part == one["loc"][-1]:
            return ".".join([*names, part]), _unknown(part, table or model)
    name = ".".join(names)
    if one["type"] == "missing":
        if info is not None and table_of(info) is not None:
            return name, f"is missing; the file must have a table [{name}]."
        return name, f"is missing; it must be {allowed_of(info) if info else 'stated'}."
    if one["type"] == "value_error" and (sentence := str(one["ctx"]["error"])):
        got = f", got {_shown(value)}" if sentence.startswith("must be") and ", got" not in sentence else ""
        return name, f"{sentence}{got}."
    if info is not None and table_of(info) is not None and get_origin(info.annotation) is not list:
        return name, f"must be a table: [{name}], got {_shown(value)}."
    return name, f"must be {allowed_of(info) if info else 'a table'}, got {_shown(value)}."


def _inner(info: FieldInfo) -> type[Table] | None:
    """Return the table that a field may hold in the place of a number."""
    return Worth if info is MarketTable.model_fields["buyer_weight"] else None


def _unknown(name: str, table: type[Table]) -> str:
    close = difflib.get_close_matches(name, table.model_fields, n=1)
    hint = f" (did you mean {close[0]}?)" if close else f"; there are {', '.join(table.model_fields)}"
    return f"is not a field of this file{hint}."


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    try:
        text = f'"{value}"' if isinstance(value, str) else str(value)
    except ValueError:  # Python's own limit
        return "a number of thousands of digits"
    text = printable(text, keep="")
    return text if len(text) <= 60 else f"{text[:57]}..."


# -- what goes together ------------------------------------------------------------------------------------------------


def _presence(values: Mapping[str, Any], problems: Problems) -> None:
    """Keep the problems that follow from which fields are stated, whatever they hold."""
    market, strata = _table(values, "market"), _table(values, "strata")
    for name, told in (*_of_questions(values, market), *_of_goals(values, market, problems), *_of_strata(strata)):
        if not problems.of(name):
            problems.add(name, told)


def _table(values: Mapping[str, Any], name: str) -> Mapping[str, Any] | None:
    found = values.get(name)
    return found if isinstance(found, Mapping) else None


def _of_questions(values: Mapping[str, Any], market: Mapping[str, Any] | None) -> Iterator[tuple[str, str]]:
    if "questions" not in values:
        if market is not None and "bounds" not in market:
            yield "market.bounds", f"is missing; it must be {allowed_of(MarketTable.model_fields['bounds'])}."
        return
    if values["questions"] == []:
        yield "questions", f"must be {allowed_of(CampaignSpec.model_fields['questions'])}, got []."
    if "unit" in values:
        yield "unit", "cannot be stated together with questions, each of which has its own."
    for name in ("bounds", "variance"):
        if name in (market or ()):
            yield f"market.{name}", "cannot be stated together with questions, each of which has its own."


def _of_goals(
    values: Mapping[str, Any], market: Mapping[str, Any] | None, problems: Problems
) -> Iterator[tuple[str, str]]:
    """What the buyer has is stated once: by the market, or by all questions."""
    if market is None:
        return
    given = [name for name in market if name in GOALS]
    names = [problems.called(f"market.{name}").removeprefix("market.") for name in GOALS]
    one_goal = f"exactly one of {', '.join(names[:-1])} and {names[-1]}"
    asked, tables = "questions" in values, values.get("questions")
    stating = ["standard_error" in one for one in tables] if _are_tables(tables) else []
    if any(stating) and not all(stating):
        yield (
            f"questions.{stating.index(False) + 1}",
            "must state a standard_error as other questions do, or none of them may.",
        )
    if asked and "standard_error" in given:
        yield "market.standard_error", "must stand in the table of each question, where there are questions."
        given.remove("standard_error")
    elif not given and not any(stating) and not problems.at("questions"):  # of these it is said already
        yield "market", f"must state what the buyer has: {one_goal}."
    if any(stating):
        for name in given:
            yield f"market.{name}", f"cannot be stated together with the questions' standard errors: state {one_goal}."
    else:
        for name in given[1:]:
            first = problems.called(f"market.{given[0]}")
            yield f"market.{name}", f"cannot be stated together with {first}: state {one_goal}."


def _are_tables(value: object) -> TypeGuard[list[Mapping[str, Any]]]:
    return isinstance(value, list) and all(isinstance(one, Mapping) for one in value)


def _of_strata(strata: Mapping[str, Any] | None) -> Iterator[tuple[str, str]]:
    if strata is None:
        return
    given = [name for name in strata if name in _WANTED]
    if not given:
        yield "strata", f"must state what is wanted of the strata: {_ONE_WANTED}."
    for name in given[1:]:
        yield f"strata.{name}", f"cannot be stated together with strata.{given[0]}: state {_ONE_WANTED}."
    if given == ["each"] and strata["each"] is False:
        yield "strata.each", "must be true, or left out, got false."


def _contradictions(values: Mapping[str, Any], spec: CampaignSpec, problems: Problems) -> Iterator[tuple[str, str]]:
    """Yield what does not go together in tables that are each in order."""
    if _are_tables(values.get("questions")):
        yield from _bad_questions(values["questions"], problems)
    if not problems.at("money"):
        try:
            currency_of(spec)
        except InputError as problem:
            yield "money.currency", str(problem).removeprefix("currency ")
    market = getattr(spec, "market", None)
    if market is None:
        return
    if market.bounds and market.variance and varies_too_much(market.variance, market.bounds):
        yield "market.variance", TOO_MUCH_VARIANCE
    if market.user_weight and not spec.questions and market.variance is None:
        why = "a wrong one would make lying or staying out pay"
        yield "market.variance", f"is missing; it must be stated when user_weight is not 0: {why}."
    if market.user_weight and not market.people_may_owe_money:
        yield (
            "market.user_weight",
            "lets people owe money: a person who values the estimate may have to pay for it. Leave it at 0, or write"
            " people_may_owe_money = true.",
        )


def _bad_questions(tables: list[Mapping[str, Any]], problems: Problems) -> Iterator[tuple[str, str]]:
    found = []
    for place, table in enumerate(tables, start=1):
        if problems.at(f"questions.{place}"):
            continue
        try:
            found.append(question_of(QuestionTable.model_validate(table)))
        except InputError as problem:
            inner = problem.field if problem.field in QuestionTable.model_fields else "name"
            yield f"questions.{place}.{inner}", str(problem).removeprefix(f"{inner} ")
    if found and not problems.at("questions"):
        try:
            as_questions(found)
        except InputError as problem:
            yield "questions", str(problem).removeprefix("questions ")


def question_of(table: QuestionTable) -> Any:
    """Return the question that a table asks."""
    return question_from_dict(table.model_dump(exclude={"column", "standard_error"}, exclude_none=True))


def currency_of(spec: CampaignSpec) -> Currency:
    """Return what prices and payments are in."""
    money = spec.money
    if money.currency is None and money.decimals is None:
        return NO_CURRENCY
    return Currency.of(cast(str, money.currency), money.decimals)


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
