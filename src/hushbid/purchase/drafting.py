"""A campaign file from what is known of a campaign before it runs: TOML with a comment for each field.

What a draft states is written as a line; what it leaves open stands there as a comment, with what one would write. A
draft is read as a campaign file before it is written anywhere (`checked_text`), so what is written can be run.
"""

import json
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hushbid.errors import InputError
from hushbid.purchase.campaign_file import campaign_in
from hushbid.purchase.questions_section import Survey
from hushbid.purchase.strata_section import Stratification

_GOALS = {
    "budget": "Spend this much on average over what people may ask, as accurately as possible.",
    "hard_budget": "Never spend more than this, whatever people ask.",
    "standard_error": "Reach this error, in units of the data, for as little as possible.",
    "buyer_weight": "What one unit of squared error costs you, in money.",
}
_MORE = {
    "user_weight": ("0", "What one unit of squared error costs each person; above 0, people may owe money."),
    "people_may_owe_money": ("false", "Accept that, if user_weight is above 0."),
    "outside_option": ('"own_data"', "What somebody who stays out has; matters under a user weight only."),
    "max_privacy_loss": ("2", "A cap on everybody's privacy loss."),
    "max_correlation": ("0.1", "How closely prices and data may be related, 0 to 1, as a correlation."),
    "population": ("5000", "How many people the mean is about, with max_correlation or (needed there) a local budget."),
}
"""What the market may state besides, with an example and what it means."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """What a campaign file is to say; paths are written as they are here, relative to the file's folder."""

    title: str
    """What people call the campaign."""

    question: str
    """What is estimated, as it stands in a sentence."""

    unit: str = ""
    """The unit of the data; empty if it has none."""

    setting: str
    """Who adds the noise."""

    prior: str | Mapping[str, Any]
    """As a campaign file states it: a text, a table with a file, or a table of these by group."""

    bounds: tuple[float, float]
    """The range of the data; not written where there is a survey."""

    variance: float | None = None
    """Of the data around their mean; None is the largest that the range allows."""

    survey: Survey | None = None
    """What is asked, if it is more than one number."""

    goal: tuple[str, float] | None
    """What the buyer states, by its name; None where the questions state it."""

    more: Mapping[str, Any] = field(default_factory=dict)
    """Other fields of the market that differ from their defaults."""

    strata: Stratification | None = None
    """The strata of the panel, if there are any."""

    currency: str | None = None
    """What payments are made in; None if nobody says."""

    bids: str
    """The file of bids."""

    columns: Mapping[str, str] = field(default_factory=dict)
    """Names of the columns of bids that differ from the usual ones: id, bid, group."""

    data: str | None = None
    """The file of data; None while there are none."""

    planned: str = ""
    """What a plan says of the campaign, in a comment; empty if nobody planned."""

    def text(self) -> str:
        """The file."""
        parts = (self._top(), self._market(), self._questions(), self._strata(), self._money(), self._people())
        return "\n".join(line for part in parts for line in part) + "\n"

    def _top(self) -> Iterator[str]:
        yield "# A campaign for Hushbid. Lines that begin with # are comments; a field behind a # is not stated."
        yield "# Paths are relative to this file. Check it and buy with: hushbid run FILE"
        if self.planned:
            yield from textwrap.wrap(self.planned, width=100, initial_indent="# ", subsequent_indent="# ")
        yield ""
        yield from _stated("title", self.title, "What people call the campaign.")
        meaning = "What is estimated, as it stands in a sentence. It is the question: with the people's ids it names\n"
        yield from _stated("question", self.question, f"{meaning}the one estimate that is ever drawn.")
        if self.survey is None:
            yield from _stated("unit", self.unit or None, "The unit of the data.", example='"hours"')
        yield from _stated("synthetic", None, "For a test or a lesson: nobody was promised anything.", example="true")

    def _market(self) -> Iterator[str]:
        yield from ("", "[market]")
        meaning = "Who adds the noise: a trusted platform (central), or everybody's own device (local)."
        yield from _stated("setting", self.setting, meaning)
        yield from _stated("prior", self.prior, "What you believe about prices for privacy, before anybody names one.")
        if self.survey is None:
            yield from _stated(
                "bounds", list(self.bounds), "The public range of the data; a datum outside is moved in."
            )
            variance = "Of the data around their mean, at most; the default is the largest that bounds allow."
            yield from _stated("variance", self.variance, variance, example="0.1")
        yield "# What you have: exactly one of budget, hard_budget, standard_error and buyer_weight."
        if self.goal is None:
            yield "# Here the questions state it, each by its standard_error."
        else:
            name, number = self.goal
            yield from _stated(name, number, _GOALS[name])
        for name, (example, meaning) in _MORE.items():
            if name != "population" or self.strata is None:
                yield from _stated(name, self.more.get(name), meaning, example=example)

    def _questions(self) -> Iterator[str]:
        if self.survey is None:
            return
        targets = (None,) * len(self.survey.questions) if self.survey.goal is None else self.survey.goal.targets
        yield from (
            "",
            "# What is asked, in this order: number, yes_no or choice, each with the column of its answers.",
        )
        for question, column, target in zip(self.survey.questions, self.survey.columns, targets, strict=True):
            yield "[[questions]]"
            values = {**question.to_dict(), "column": column, "standard_error": target}
            yield from (f"{name} = {toml_value(value)}" for name, value in values.items() if value not in (None, ""))
            yield ""

    def _strata(self) -> Iterator[str]:
        if self.strata is None:
            return
        yield from ("", "[strata]")
        yield from _stated(
            "column", self.strata.column, "The column of everybody's public stratum, which nobody chooses."
        )
        yield "# What is wanted of the strata: shares = { north = 0.4, south = 0.6 } is a mean for a population with"
        yield "# these shares, contrast = { treated = 1, control = -1 } a difference."
        for name, value in self.strata.wanted.items():
            yield f"{name} = {toml_value(value)}"
        if self.strata.each:
            yield "each = true"
        meaning = "How many people of each stratum there are, if more than are in the file."
        yield from _stated("population", self.strata.population, meaning, example="{ north = 4000, south = 6000 }")

    def _money(self) -> Iterator[str]:
        yield from ("", "[money]")
        meaning = "What prices and payments are in, by its ISO 4217 code."
        yield from _stated("currency", self.currency, meaning, example='"EUR"')
        yield from _stated("spending_limit", None, "Refuse to spend more than this.", example="1000")

    def _people(self) -> Iterator[str]:
        yield from ("", "[bids]")
        yield from _stated("file", self.bids, "CSV, Parquet or Excel, one row per person.")
        for name, meaning in (
            ("id", "The column that names people."),
            ("bid", "The column of bids: what one unit of privacy loss costs each person."),
            ("group", "The column of groups, for priors by group."),
        ):
            yield from _stated(name, self.columns.get(name), meaning, example=f'"{name}"')
        yield ""
        yield "# The data, once people have delivered them: until then the campaign stops after its decisions."
        mark = "# " if self.data is None else ""
        yield f"{mark}[data]"
        yield f"{mark}file = {toml_value(self.data or 'data.csv')}"


def checked_text(draft: Draft, path: Path) -> str:
    """What the file at this path is to hold, which is read first; a file of people that is not there yet may come.

    Where one is there, its columns are looked at, too.
    """
    text = draft.text()
    there = [name is not None and (path.parent / name).exists() for name in (draft.bids, draft.data)]
    # columns by name stand in for a file that is to come
    campaign_in(text, path, bids=None if there[0] else {}, data=None if there[1] or not there[0] else {})
    return text


def _stated(name: str, value: Any, meaning: str, *, example: str = "") -> Iterator[str]:
    """A field under its meaning, or, if it is not stated, as a comment."""
    yield from (f"# {line}" for line in meaning.splitlines())
    yield f"# {name} = {example}" if value is None else f"{name} = {toml_value(value)}"


def toml_value(value: Any) -> str:
    """A value in TOML."""
    match value:
        case bool():
            return str(value).lower()
        case str():
            # a text of JSON is one of TOML, but for a character that TOML wants escaped
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
        case int():
            return str(value)
        case float():
            return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
        case list() | tuple():
            return f"[{', '.join(map(toml_value, value))}]"
        case Mapping():
            return f"{{ {', '.join(f'{toml_value(str(name))} = {toml_value(one)}' for name, one in value.items())} }}"
    raise InputError(f"A campaign file cannot hold a {type(value).__name__}.")
