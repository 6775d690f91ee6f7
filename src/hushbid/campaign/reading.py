"""From what is stated to a campaign, or one error that names everything that is wrong.

What may be stated is `hushbid.campaign.spec`. Each problem has its field and where it was stated: the line of the file
or the option. Problems are collected, not raised: tables in order are checked further though others are not.
"""

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Annotated, Any, TypeGuard, TypeVar, cast, get_origin

from pydantic import TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from hushbid.campaign.spec import (
    GOALS,
    CampaignSpec,
    MarketTable,
    QuestionTable,
    ServerTable,
    Table,
    allowed_of,
    fields_of,
    table_of,
)
from hushbid.campaign.stated import Stated
from hushbid.common.arrays import TOO_MUCH_VARIANCE, varies_too_much
from hushbid.common.money import NO_CURRENCY, Currency
from hushbid.common.numbers import printable
from hushbid.errors import HushbidError, InputError
from hushbid.priors.pilot import prior_source
from hushbid.questions import as_questions, question_from_dict

_WANTED = ("shares", "contrast", "each")
_ONE_WANTED = "exactly one of shares, contrast and each"
_VERBS = ("must ", "is ", "cannot ", "lets ")

Spec = TypeVar("Spec", bound=CampaignSpec)


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
        for name, sentence in stated.faults:
            self.add(name, sentence)

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


def validated(stated: Stated, problems: Problems, model: type[Spec]) -> Spec:
    """Return what is stated, and keep its problems; tables with problems are then not there, or their defaults."""
    try:
        spec = model.model_validate(stated.values)
    except ValidationError as wrong:
        known: set[str] = set()
        for one in wrong.errors(include_url=False, include_context=True):
            name, told = _problem(one, stated.values, model)
            if name not in known and not problems.of(name):
                problems.add(name, told)
            known.add(name)
        spec = _in_order(stated.values, model, problems)
    # what follows from which fields are stated, whatever they hold; then what does not go together
    market, strata = _table(stated.values, "market"), _table(stated.values, "strata")
    required = [*_of_questions(stated.values, market), *_of_goals(stated.values, market, problems), *_of_strata(strata)]
    for name, told in required:
        if not problems.of(name):
            problems.add(name, told)
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
        return f"must be {allowed_of(info)}, got {shown(value)}."
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
            table = table_of(info, sections=False)
            value = value.get(part) if isinstance(value, Mapping) else value
        elif one["type"] == "extra_forbidden" and part == one["loc"][-1]:
            return ".".join([*names, part]), _unknown(part, table or model)
    name = ".".join(names)
    if one["type"] == "missing":
        if info is not None and table_of(info) is not None:
            return name, f"is missing; the file must have a table [{name}]."
        return name, f"is missing; it must be {allowed_of(info) if info else 'stated'}."
    if one["type"] == "value_error" and (sentence := str(one["ctx"]["error"])):
        got = f", got {shown(value)}" if sentence.startswith("must be") and ", got" not in sentence else ""
        return name, f"{sentence}{got}."
    if info is not None and table_of(info) is not None and get_origin(info.annotation) is not list:
        return name, f"must be a table: [{name}], got {shown(value)}."
    return name, f"must be {allowed_of(info) if info else 'a table'}, got {shown(value)}."


def _unknown(name: str, table: type[Table]) -> str:
    close = difflib.get_close_matches(name, table.model_fields, n=1)
    hint = f" (did you mean {close[0]}?)" if close else f"; there are {', '.join(table.model_fields)}"
    return f"is not a field of this file{hint}."


def shown(value: object) -> str:
    """Return a value as a message shows it, in one short line."""
    if isinstance(value, bool):
        return str(value).lower()
    try:
        text = f'"{value}"' if isinstance(value, str) else str(value)
    except ValueError:  # Python's own limit
        return "a number of thousands of digits"
    text = printable(text, keep="")
    return text if len(text) <= 60 else f"{text[:57]}..."


# -- what goes together ------------------------------------------------------------------------------------------------


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
    if _are_tables(values.get("questions")):
        yield from _bad_questions(values["questions"], problems)
    if not problems.at("money"):
        try:
            currency_of(spec)
        except InputError as problem:
            yield "money.currency", str(problem).removeprefix("currency ")
    yield from ((name, told) for name, told in _of_server(spec.server) if not problems.at(name))
    market = getattr(spec, "market", None)
    if market is None:
        return
    if spec.server.single_visit and market.setting != "central" and not problems.at("server"):
        told = "must be false in the local setting, where answers stay in people's browsers until then."
        yield "server.single_visit", told
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


def _of_server(server: ServerTable) -> Iterator[tuple[str, str]]:
    if server.bid_by is not None and server.deliver_by is not None and server.deliver_by <= server.bid_by:
        yield "server.deliver_by", "must be later than bid_by."
    for name in ("bid_by", "deliver_by"):
        if server.automatic and getattr(server, name) is None and not (name == "deliver_by" and server.single_visit):
            yield f"server.{name}", "must be set if the campaign is to move on by itself (automatic)."


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
