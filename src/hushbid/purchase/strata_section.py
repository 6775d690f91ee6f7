"""The table [strata] of a campaign file: into which public strata people fall, and what is wanted of their means.

Exactly one of ``shares`` (a mean for a population with these shares), ``contrast`` (a combination of any signs) and
``each`` (an estimate per stratum) is stated. Everybody's stratum stands in a column beside the bids; it must be
known of people, not told by them. The means are about the ``population`` that is stated for each stratum, or, where a
relation is allowed for, about everybody in the table; a budget that is met on average needs the former.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hushbid.allocation import Accuracy
from hushbid.errors import InputError
from hushbid.mechanism.combinations import Combination, refuse
from hushbid.mechanism.strata import listed
from hushbid.purchase.people import People, as_stratum
from hushbid.purchase.toml_sections import Section, is_number, top_of

_ONE_OF = "exactly one of shares, contrast and each"
_MOST_PEOPLE = 10**12


@dataclass(frozen=True, slots=True, kw_only=True)
class Stratification:
    """The strata of a panel, and what is wanted of them."""

    column: str
    """The column of everybody's stratum."""

    wanted: Mapping[str, Any]
    """The market's field that says which combination of means is wanted, and its value; empty with ``each``."""

    each: bool = False
    """Whether an estimate for each stratum is wanted: then each is a market, see `of_stratum`."""

    population: Mapping[str, int] | None
    """How many people of each stratum the means are about; None for those in the table."""

    def fields(self, people: People | None, relation: float) -> dict[str, Any]:
        """The market's fields for people who are at hand, or, before any are, as far as they are known."""
        counts = self.population if people is None or self.population else people.roster_by_stratum
        return {
            **self.wanted,
            "strata": [] if people is None else people.strata,
            **({"population": counts} if counts is not None and (self.population or relation > 0.0) else {}),
        }

    def of_stratum(self, terms: Mapping[str, Any], name: str) -> dict[str, Any]:
        """The terms of the market of one stratum, from those of the campaign, where each has an estimate."""
        goal = terms["goal"]
        if isinstance(goal, Accuracy) and isinstance(goal.standard_error, Mapping):
            goal = Accuracy(goal.standard_error[name])
        counts = self.population if terms["max_correlation"] > 0.0 else None
        return {**terms, "goal": goal, "population": None if counts is None else counts[name]}

    def refuse_terms(self, terms: Mapping[str, Any], names: Iterable[str] | None = None) -> None:
        """Refuse terms that markets of single strata cannot have, or that name other strata than there are.

        Before people are read there are no ``names``: then the strata that the terms name must be the same.
        """
        goal = terms["goal"]
        cares = bool(np.any(np.asarray(terms["user_weight"]) > 0.0))
        refuse(Combination(setting=terms["setting"], goal=goal.kind, each=True, user_weight=cares))
        stated = {}
        if isinstance(goal, Accuracy) and isinstance(goal.standard_error, Mapping):
            stated["standard_error"] = list(goal.standard_error)
        if self.population is not None and terms["max_correlation"] > 0.0:
            stated["population"] = list(self.population)
        there = sorted(names or next(iter(stated.values()), []))
        for field, given in stated.items():
            if sorted(given) != there:
                raise InputError(f"{field} must name each stratum, {listed(there)}, and no other.", field=field)

    @property
    def known(self) -> str:
        """The name of some stratum, as far as one is known before people are read."""
        return next(iter(self.population or ()), "everybody")

    @property
    def people(self) -> int:
        """How many people all strata have together."""
        return sum(self._stated.values())

    def panel(self, relation: float) -> dict[str, Any]:
        """The market's fields for people who have not bid yet: everybody of the population that is stated."""
        labels = [label for label, count in self._stated.items() for _ in range(count)]
        return {**self.fields(None, relation), "strata": labels}

    @property
    def _stated(self) -> Mapping[str, int]:
        if self.population is not None:
            return self.population
        told = "strata.population must say how many people each stratum has, where nobody has bid yet."
        raise InputError(told, field="strata.population")


def read_strata(top: Section) -> Stratification | None:
    """The strata that a file states; None if it states none, or if they are wrong."""
    before, section = len(top.problems), top.section("strata")
    if not top.given("strata"):
        return None
    column = section.text("column", needed=True)
    shares, contrast = numbers_by_stratum(section, "shares"), numbers_by_stratum(section, "contrast")
    each, population = section.flag("each"), _counts(section)
    section.finish()
    stated: dict[str, Any] = {"shares": shares, "contrast": contrast, "each": each or None}
    given = [name for name in stated if section.given(name)]
    if not given:
        section.problems.add(section.name, f"must state what is wanted of the strata: {_ONE_OF}.")
    for name in given[1:]:
        place = section.field(given[0])
        section.problems.add(section.field(name), f"cannot be stated beside {place}: state {_ONE_OF}.")
    if given == ["each"] and not each:
        section.wrong("each", "true, or left out")
    if len(top.problems) > before:
        return None
    wanted = {} if each else {given[0]: stated[given[0]]}
    return Stratification(column=column, wanted=wanted, each=each, population=population)


def numbers_by_stratum(section: Section, name: str) -> dict[str, float] | None:
    """A number for each stratum; None if they are not stated, or wrong. What they may be the market says."""
    table = section.raw(name)
    if not section.given(name):
        return None
    if isinstance(table, Mapping) and table and all(is_number(one) for one in table.values()):
        return _named_once(section, name, {label: float(one) for label, one in table.items()})
    section.wrong(name, "a number for each stratum: { north = 0.4, south = 0.6 }")
    return None


def _counts(section: Section) -> dict[str, int] | None:
    """How many people each stratum has; None if that is not stated, or wrong."""
    table = section.raw("population")
    if not section.given("population"):
        return None
    if isinstance(table, Mapping) and table and all(_is_count(one) for one in table.values()):
        return _named_once(section, "population", table)
    section.wrong("population", "a whole number of people for each stratum: { north = 4000, south = 6000 }")
    return None


def _named_once(section: Section, name: str, table: Mapping[str, Any]) -> dict[str, Any] | None:
    """What is stated of each stratum, by the names in the form of the column's; None if two are the same in it."""
    found = {as_stratum(label): one for label, one in table.items()}
    if len(found) == len(table) and "" not in found:
        return found
    section.problems.add(section.field(name), "must name every stratum once, and none by an empty text.")
    return None


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= _MOST_PEOPLE


def strata_in(path: Path) -> Stratification:
    """The strata in a TOML file, of which nothing but its table [strata] is read."""
    top = top_of(path)
    found = read_strata(top)
    top.problems.refuse()
    if found is None:
        raise InputError(f"{path} must hold a table [strata], and has none.", field="strata")
    return found
