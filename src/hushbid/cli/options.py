"""Options that state fields of a campaign, generated from its schema, and options that say how people are read.

An option takes the place of what a campaign file says of its field, or states it where there is no file. Its name,
help, range and messages are those of `hushbid.campaign.spec`.
"""

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from hushbid.campaign.spec import CampaignSpec, about, choices_of, fields_of, help_of
from hushbid.campaign.stated import Stated, field_kinds, value_of
from hushbid.cli.common import OneFile
from hushbid.common.staging import STREAM
from hushbid.errors import InputError, PriorError

if TYPE_CHECKING:
    from hushbid.campaign.people import Reading

GROUP = re.compile(r"^([^:=]+)=(.+)$", flags=re.DOTALL)
COLUMNS = ("bids.id", "bids.bid", "bids.group")
MARKET = (
    *("market.prior", "market.setting", "market.bounds", "market.variance", "questions", "strata", "market.budget"),
    *("market.hard_budget", "market.standard_error", "market.buyer_weight", "market.max_correlation"),
    *("market.population", "market.user_weight", "market.people_may_owe_money", "market.outside_option"),
    *("market.max_privacy_loss", "money.currency"),
)
BUYING = ("bids.limit", "money.spending_limit", "market.accept_pilot_overlap", "market.accept_rounding")
CAMPAIGN = (
    *("title", "question", "unit", "wave", *MARKET, "bids.file", *COLUMNS, *BUYING),
    *("market.accept_infinite_loss", "data.file", "data.late", "output.folder", "output.level"),
)
"""What `hushbid run` takes in the place of what a file says."""

_NAMES = {"bids.file": "bids", "data.file": "data", "market.prior": "prior", "strata.column": "strata_column"}
_METAVARS = {"market.bounds": "LOW,HIGH", "market.population": "PEOPLE", "market.max_privacy_loss": "EPSILON"}
_METAVARS |= {"money.currency": "CODE", "market.prior": "PRIOR", "strata.shares": "LABEL=SHARE,..."}
_TABLES = {
    "questions": "Several questions instead of one number: the tables [[questions]] of a TOML file, such as a campaign"
    " file.",
    "strata": "People of public strata instead of people alike: the table [strata] of a TOML file, such as a campaign"
    " file.",
}
_BY_GROUP = " By group: --prior young=uniform:1,2 --prior old=uniform:2,3."
_WITHOUT_FILE: dict[str, Any] = {"setting": "central", "bounds": [0, 1]}
"""What holds where no file says who adds the noise and where the data lie."""

USUAL_BIDS = "bids.csv"
"""Where bids are expected unless it is said otherwise."""


def option_of(name: str) -> str:
    """Return the option of a field: ``--budget`` of ``market.budget``, ``--id-column`` of ``bids.id``."""
    table, _, key = name.rpartition(".")
    called = _NAMES.get(name) or (f"{key}_column" if table == "bids" else key)
    return f"--{called.replace('_', '-')}"


OPTIONS = {name: option_of(name) for name in (*_TABLES, *(name for name, _ in fields_of(CampaignSpec)))}
"""The option of each field, as far as a command has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What options state of a campaign."""

    given: Mapping[str, Any] = field(default_factory=dict)
    """What was stated, by the full names of fields."""

    tables: Mapping[str, Path] = field(default_factory=dict)
    """Files of which a table is taken, by its name."""

    known: tuple[str, ...] = ()
    """The fields that the command has options for."""

    def but(self, changes: Mapping[str, Any]) -> "Options":
        """Return the same with other values of some fields."""
        return replace(self, given={**self.given, **changes})

    def checked(self) -> dict[str, Any]:
        """Return what was stated by the last part of a field's name; each must be what the schema allows."""
        from hushbid.campaign.reading import field_problem

        for name, value in self.given.items():
            if problem := field_problem(name, value):
                raise InputError(f"{OPTIONS[name]} {problem}", field=name)
        return {name.rpartition(".")[2]: value for name, value in self.given.items()}

    def stated(self, file: Path | None = None) -> Stated:
        """Return what a file states with these options in the place of what it says; or what options state alone."""
        base = Stated(values={}) if file is None else Stated.of_file(file)
        for name, path in self.tables.items():
            base = base.with_table(name, path)
        if file is None:
            left_out = ("bounds",) if "questions" in base.values else ()
            market = {name: one for name, one in _WITHOUT_FILE.items() if name not in left_out}
            base = replace(base, values={"market": market, **base.values})
        given = dict(self.given)
        if "market.prior" in given:
            given["market.prior"] = prior_form(given["market.prior"], base.home)
        for name in _PATHS & given.keys():
            given[name] = _from(base.home, given[name])
        return base.with_options(given, {name: OPTIONS[name] for name in self.known})


_PATHS = {"bids.file", "data.file", "output.folder"}


def _from(home: Path, path: str) -> str:
    """Return a path as a campaign file in the folder ``home`` states it."""
    return path if path == STREAM or Path(path).is_absolute() else os.path.relpath(path, home)


def prior_form(texts: tuple[str, ...], home: Path) -> Any:
    """Return a prior as a campaign file in the folder ``home`` states it."""
    matches = [GROUP.match(text) for text in texts]
    if matches == [None]:
        return _one_prior(texts[0], home)
    found: dict[str, Any] = {}
    for text, match in zip(texts, matches, strict=True):
        if match is None or match[1] in found:
            raise PriorError(f"--prior given more than once must read group=prior, each group once, got {text!r}.")
        found[match[1]] = _one_prior(match[2], home)
    return found


def _one_prior(text: str, home: Path) -> Any:
    is_file = ":" not in text and Path(text).suffix == ".json"
    return {"file": _from(home, text)} if is_file else text


class _Value(click.ParamType[Any]):
    """What a text states of a field, which the schema then judges."""

    def __init__(self, name: str) -> None:
        self.name = name

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return value if not isinstance(value, str) else value_of(self.name, value)


def campaign_options(*names: str, in_file: bool = False) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add options for fields to a command, which gets what they state as one argument ``options``.

    Where a field stands ``in_file`` otherwise, no default is shown.
    """

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def wrapped(**values: Any) -> Any:
            context = click.get_current_context()
            stated = {name: (_parameter(name), values.pop(_parameter(name))) for name in names}
            given = {
                name: value
                for name, (key, value) in stated.items()
                if context.get_parameter_source(key) is not ParameterSource.DEFAULT
            }
            tables = {name: given.pop(name) for name in _TABLES if name in given}
            return function(options=Options(given=given, tables=tables, known=names), **values)

        for name in reversed(names):
            _option(name, in_file=in_file)(wrapped)
        return wrapped

    return add


def _parameter(name: str) -> str:
    return OPTIONS[name].removeprefix("--").replace("-", "_")


def _option(name: str, *, in_file: bool) -> Callable[..., Any]:
    """Return the option of a field, as the schema describes it."""
    spelling, key = OPTIONS[name], _parameter(name)
    if name in _TABLES:
        return click.option(spelling, key, type=OneFile(), metavar="FILE", help=_TABLES[name])
    info = dict(fields_of(CampaignSpec))[name]
    message, choices = help_of(info), choices_of(info)
    if info.default is False:
        return click.option(spelling, key, is_flag=True, help=message)
    if name == "market.prior":
        return click.option(spelling, key, multiple=True, metavar="PRIOR", help=f"{message}{_BY_GROUP}")
    usual = "" if in_file else _usual(name, info)
    if choices:
        return click.option(spelling, key, type=click.Choice(choices), help=f"{message}{usual}")
    metavar = "NUMBER" if {int, float} & field_kinds(name) else "NAME" if "column" in spelling else "TEXT"
    metavar = "FILE" if name.endswith(".file") else _METAVARS.get(name, metavar)
    return click.option(spelling, key, type=_Value(name), metavar=metavar, help=f"{message}{usual}")


def _usual(name: str, info: Any) -> str:
    """What help says of a field's default, if it has any."""
    usual = _WITHOUT_FILE.get(name.rpartition(".")[2], info.default) if name.startswith("market.") else info.default
    absent = about(info).absent.replace("`", "")
    if name == "bids.file":
        return f"  [default: {USUAL_BIDS}]"
    if usual is not None and not (info.is_required() and usual is info.default):
        return f"  [default: {_shown(usual)}]"
    return f"  [default: {absent}]" if absent and absent not in _SAID else ""


_SAID = ("one of the four", "one of the three", "none", "required", "required without questions")


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return ",".join(map(_shown, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


# -- how people are read -----------------------------------------------------------------------------------------------


def reading_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add options to a command, which gets ``reading_of``: from a file of bids to how it is read."""

    @wraps(function)
    def wrapped(engine: str, spark_master: str | None, on_bad_rows: Any, check_ids: Any, **values: Any) -> Any:
        def reading_of(bids: str) -> "Reading":
            from hushbid.campaign.people import Reading
            from hushbid.engine.opening import choose

            if spark_master is not None and engine not in ("auto", "spark"):
                raise click.UsageError(f"--spark-master goes with --engine spark, not with --engine {engine}.")
            chosen = choose(bids, engine, master=spark_master)
            return Reading(engine=chosen, on_bad_rows=on_bad_rows, check_ids=check_ids)

        return function(reading_of=reading_of, **values)

    for name, choices, message in (
        ("--check-ids", ("exact", "off"), "Make sure that nobody is there twice."),
        (
            "--on-bad-rows",
            ("fail", "drop"),
            "What to do about bids that cannot be priced: stop, naming them, or leave them out.",
        ),
        ("--spark-master", (), "Start Spark there: local[4], spark://host:7077, yarn, ..."),
        (
            "--engine",
            ("auto", "memory", "polars", "duckdb", "spark"),
            "What reads the bids: memory for small files, otherwise in batches; auto goes by size.",
        ),
    ):
        how: dict[str, Any] = {"metavar": "URL"}
        if choices:
            how = {"type": click.Choice(choices), "default": choices[0], "show_default": True}
        click.option(name, help=message, **how)(wrapped)
    return wrapped
