"""Two campaigns side by side: what each costs, how accurate and how private it is, and from whom it buys.

Each is a campaign file, a record, or a folder that holds a record. A file is decided about in memory; a record says
what was decided. Both then have the same figures, and the same settings under the names that a campaign file has for
them. No estimate is drawn and nothing is written, so looking at two ways to buy does not use up the one estimate.

Figures are compared only where they are of one kind: payments in one currency, errors of one question. Whether the
people are the same is found out by their ids; if they are not, what differs may be due to them, and that is said.
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from hushbid.allocation import Accuracy
from hushbid.allocation.goals import name_of
from hushbid.campaign.deciding import DecisionInMemory, Step, decide
from hushbid.campaign.drafting import prior_text, setting_text
from hushbid.campaign.people import AT_ONCE, People, places_of
from hushbid.campaign.recorded import people_of
from hushbid.campaign.stated import Stated
from hushbid.campaign.terms import campaign_of
from hushbid.common import numbers
from hushbid.common.arrays import FloatArray, IndexArray
from hushbid.common.money import NO_CURRENCY, Currency
from hushbid.common.numbers import at_most, count, figure, number
from hushbid.common.staging import STREAM
from hushbid.errors import HushbidError, InputError
from hushbid.mechanism import Market
from hushbid.mechanism.people import groups_of
from hushbid.priors import Prior
from hushbid.questions import Choice
from hushbid.record import Record
from hushbid.record.folder import DOCUMENT, present

_ESTIMATED = re.compile(
    r"question|unit|market\.bounds|strata\.(shares|contrast)|questions\.\d+(\.(kind|name|bounds|answers|unit))?"
)
"""Settings that say what is estimated, and in which unit."""

_QUESTION = re.compile(r"(questions\.\d+)\.")

_KINDS = f"a campaign file (.toml), a record (.json) or a folder that holds {DOCUMENT}"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Side:
    """One of two campaigns."""

    called: str
    """What it is called on the command line."""

    decision: DecisionInMemory
    facts: Mapping[str, Any]
    """What is decided, in figures about everybody together."""

    settings: Mapping[str, Any]
    """What its market states, by the names of a campaign file; a prior stands as it is."""

    besides: Mapping[str, Any] | None = None
    """What the file states besides the market; None for a record, which does not hold it."""

    above_spending_limit: float | None = None
    """The spending limit that its payments are above; None if they are not."""

    @classmethod
    def of(cls, called: str, decision: DecisionInMemory, **more: Any) -> "Side":
        """Set a decision next to another."""
        currency = None if decision.currency == NO_CURRENCY else decision.currency.code
        settings = {**dict(_settings(decision.outcome.market)), "money.currency": currency}
        return cls(called=called, decision=decision, facts=decision.facts(), settings=settings, **more)

    @property
    def losses(self) -> FloatArray:
        """Everybody's privacy loss."""
        return self.decision.outcome.privacy_loss

    @property
    def labels(self) -> list[str] | None:
        """Everybody's stratum or group, if there are any."""
        strata = self.decision.outcome.market.strata
        return self.decision.people.groups if strata is None else list(strata)

    @property
    def errors(self) -> dict[str, tuple[float, float]]:
        """The standard error of each estimate if price and datum are unrelated, and at worst."""
        return dict(_errors(self.facts, ""))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class SideBySide:
    """Two campaigns, and what they have in common."""

    a: Side
    b: Side
    rows: tuple[IndexArray, IndexArray] | None
    """The rows, in each, of the people who are in both; None if that is not known."""

    @property
    def sides(self) -> tuple[Side, Side]:
        """Both, in the order in which they were named."""
        return self.a, self.b

    @property
    def in_both(self) -> int | None:
        """How many people are in both; None if that is not known."""
        return None if self.rows is None else self.rows[0].size

    @property
    def other_bids(self) -> int | None:
        """How many people who are in both bid something else in each; None if that is not known."""
        if self.rows is None:
            return None
        one, other = (side.decision.people.bids[rows] for side, rows in zip(self.sides, self.rows, strict=True))
        return int(np.count_nonzero(one != other))

    @property
    def same_people(self) -> bool:
        """Whether everybody is in both, with the same bid."""
        return {len(side.decision.people) for side in self.sides} == {self.in_both} and self.other_bids == 0

    @property
    def bought(self) -> Mapping[str, int] | None:
        """From how many of those in both each buys, and from how many both do; None if that is not known."""
        if self.rows is None:
            return None
        one, other = (side.losses[rows] > 0.0 for side, rows in zip(self.sides, self.rows, strict=True))
        pairs = {"both": one & other, "only_a": one & ~other, "only_b": ~one & other, "neither": ~one & ~other}
        return {name: int(np.count_nonzero(found)) for name, found in pairs.items()}

    @property
    def differences(self) -> dict[str, tuple[Any, Any]]:
        """What is not stated alike; of two records, or a record and a file, only what both can say."""
        one, other = dict(self.a.settings), dict(self.b.settings)
        if self.a.besides is not None and self.b.besides is not None:
            one, other = {**self.a.besides, **one}, {**self.b.besides, **other}
        one, other = _whole_questions(one, other), _whole_questions(other, one)
        names = dict.fromkeys([*one, *other])
        return {name: (one.get(name), other.get(name)) for name in names if one.get(name) != other.get(name)}

    @property
    def one_question(self) -> bool:
        """Whether both estimate the same, so that errors can be compared."""
        return not any(map(_ESTIMATED.fullmatch, self.differences))

    @property
    def one_currency(self) -> bool:
        """Whether payments can be compared."""
        return self.a.decision.currency == self.b.decision.currency

    def to_dict(self) -> dict[str, Any]:
        """For programs; nothing in it belongs to one person."""
        shown = {
            name: [prior_text(one) if isinstance(one, Prior) else one for one in pair]
            for name, pair in self.differences.items()
        }
        return {
            **{
                name: {"called": side.called, **side.facts, "above_spending_limit": side.above_spending_limit}
                for name, side in zip("ab", self.sides, strict=True)
            },
            "same_people": self.same_people,
            "people_in_both": self.in_both,
            "people_with_other_bids": self.other_bids,
            "bought_from_in_both": self.bought,
            "one_currency": self.one_currency,
            "one_question": self.one_question,
            "differences": shown,
        }

    def text(self) -> str:
        """For people."""
        notes = [
            *([] if self.one_currency else ["Their currencies differ, so payments are not compared."]),
            *([] if self.one_question else ["They do not estimate the same, so errors are not compared."]),
            *(
                f"{name} pays more than its spending limit of"
                f" {side.decision.currency.text_of(side.above_spending_limit)}: hushbid run refuses it."
                for name, side in zip("AB", self.sides, strict=True)
                if side.above_spending_limit is not None
            ),
        ]
        named = [f"{name}  {side.called}" for name, side in zip("AB", self.sides, strict=True)]
        figures = numbers.table(list(self._rows()))
        return "\n".join([*named, self._people_text(), "", figures, "", *notes, *self._different()])

    def _people_text(self) -> str:
        sizes = [len(side.decision.people) for side in self.sides]
        if self.same_people:
            return f"On the same {numbers.people(sizes[0])}."
        message = f"A has {numbers.people(sizes[0])}, B {count(sizes[1])}; "
        if self.in_both is None:
            return f"{message}whether they are the same cannot be told, as one of them has no ids."
        message += f"{count(self.in_both) if self.in_both else 'none'} are in both"
        if self.other_bids:
            message += f", of whom {count(self.other_bids)} bid something else in each"
        return f"{message}. What differs may be due to that."

    def _rows(self) -> Iterator[tuple[str, ...]]:
        a, b = self.sides
        yield "", "A", "B", "B / A"
        minor = [side.facts["total_payment_minor"] for side in self.sides]
        paid = [side.decision.currency.text(total) for side, total in zip(self.sides, minor, strict=True)]
        yield "payments", *paid, _ratio(*minor) if self.one_currency else ""
        for label in dict.fromkeys([*a.errors, *b.errors]):
            pair = [side.errors.get(label) for side in self.sides]
            for place, name in enumerate((f"standard error{label}", "  at worst, under the relation")):
                if place and all(one is None or one[0] == one[1] for one in pair):
                    continue
                values = [math.nan if one is None else one[place] for one in pair]
                yield name, *map(_figure, values), _ratio(*values) if self.one_question else ""
        largest = [side.facts["largest_privacy_loss"] for side in self.sides]
        yield "largest privacy loss", *map(_figure, largest), _ratio(*largest)
        mean = [at_most(float(np.mean(side.losses))) for side in self.sides]
        yield "mean privacy loss", *map(_figure, mean), _ratio(*mean)
        bought = [side.facts["bought_from"] for side in self.sides]
        yield "bought from", *map(count, bought), _ratio(*bought)
        if self.bought is not None:
            yield "  in both campaigns", *[count(self.bought["both"])] * 2, ""
            yield "  in this one only", count(self.bought["only_a"]), count(self.bought["only_b"]), ""
        for label in sorted({label for side in self.sides for label in side.labels or ()}):
            yield f"  {label}", *(_of_label(side, label) for side in self.sides), ""

    def _different(self) -> list[str]:
        if not self.differences:
            return ["They state the same."]
        rows: list[tuple[str, ...]] = [("what differs", "A", "B")]
        for name, pair in self.differences.items():
            shown = [setting_text(one) for one in pair]
            rows.append((name, shown[0], shown[1] if shown[0] != shown[1] else f"{shown[1]}, of other values"))
        return [numbers.table(rows)]


Changes = Callable[[Path], Stated]
"""What a campaign file states with options in the place of what it says."""


def side_by_side(
    a: Path, b: Path | None = None, *, changes: Changes | None = None, step: Step = lambda message: None
) -> SideBySide:
    """Read two campaigns, or one with and without ``changes``, and decide about files; nothing is drawn or written."""
    if b is not None and a.exists() and b.exists() and a.samefile(b):
        raise InputError(f"A and B must be two campaigns, but {a} and {b} are one.", field="files")
    if b is None and changes is None:
        message = f"{a} is one campaign: name another, or options that change it."
        raise InputError(message, field="files")
    sides = []
    for path, changed in ((a, changes if b else None), (b or a, changes)):
        step(f"reading {path.name}")
        sides.append(side_of(path, changed))
    if b is None:
        sides[1] = replace(sides[1], called=f"{a}, with the options")
    return SideBySide(a=sides[0], b=sides[1], rows=_in_both(*(side.decision.people for side in sides)))


def _in_both(a: People, b: People) -> tuple[IndexArray, IndexArray] | None:
    """Find people by their ids, or by their rows where one campaign has no ids and all bids are the same."""
    if a.ids is None or b.ids is None:
        everybody = np.arange(len(a))
        return (everybody, everybody) if np.array_equal(a.bids, b.bids) else None
    places = places_of(a.ids, b.ids)
    rows = np.flatnonzero(places >= 0)
    return rows, places[rows]


def side_of(path: Path, changes: Changes | None = None) -> Side:
    """The campaign of a file, a record, or a folder that holds one."""
    if path.suffix == ".toml" and not path.is_dir():
        return _of_file(path, changes or Stated.of_file)
    found = path
    if path.is_dir():
        found = path if (path / DOCUMENT).exists() else present(path / DOCUMENT)
        if not found.exists():
            raise InputError(f"{path} holds no {DOCUMENT}: compare takes {_KINDS}.", field="files")
    elif path.suffix != ".json":
        raise InputError(f"{path} must be {_KINDS}.", field="files")
    if changes is not None:
        raise InputError(f"{path} is a record, which options cannot change: name its campaign file.", field="files")
    return _of_record(found, str(path))


def _of_file(path: Path, changes: Changes) -> Side:
    campaign = campaign_of(changes(path), data={})  # whether there are data makes no difference here
    if campaign.bids.file == STREAM:
        message = f"{path}: bids.file must be a file to be compared, not standard input."
        raise InputError(message, field="bids.file")
    try:
        decision = decide(campaign, AT_ONCE, lambda message: None, limited=False)
    except HushbidError as problem:
        raise type(problem)(f"{path}: {problem}", field=problem.field, row=problem.row) from problem
    limit = campaign.spec.money.spending_limit
    besides = {
        "title": campaign.title,
        "question": campaign.question,
        "unit": campaign.spec.unit,
        "wave": campaign.spec.wave,
        "synthetic": campaign.spec.synthetic,
        "bids.file": str(Path(str(campaign.bids.file)).resolve()),
        "bids.limit": campaign.bids.limit,
        "money.spending_limit": limit,
    }
    above = limit is not None and decision.total_minor / campaign.currency.per_unit > limit
    return Side.of(str(path), decision, besides=besides, above_spending_limit=limit if above else None)


def _of_record(path: Path, called: str) -> Side:
    record = Record.read(path)
    money = record.money
    currency = NO_CURRENCY if money is None else Currency(money.currency, money.decimals)
    people = people_of(record, str(path))
    return Side.of(called, DecisionInMemory.of(people, record.outcome, currency, {}, money=money))


def _settings(market: Market) -> Iterator[tuple[str, Any]]:
    """What a market states, by the names that it has in a campaign file."""
    priors = {one.name: one.prior for one in groups_of(market.prior, None)}
    yield from ((f"market.prior.{name}" if name else "market.prior", prior) for name, prior in priors.items())
    goal = market.stated_goal
    several = isinstance(goal, Accuracy) and len(goal.targets) > 1
    yield f"market.{name_of(goal)}", list(goal.targets) if isinstance(goal, Accuracy) and several else goal.number
    plain = market.to_dict()
    for row, question in enumerate(plain.pop("questions", None) or (), start=1):
        yield from ((f"questions.{row}.{name}", value) for name, value in question.items())
    for name in ("prior", "goal", "strata", "tolerance"):
        plain.pop(name, None)
    of_strata = ("shares", "contrast", *(["population"] if market.strata is not None else []))
    for name, value in plain.items():
        yield f"{'strata' if name in of_strata else 'market'}.{name}", value


def _errors(facts: Mapping[str, Any], label: str) -> Iterator[tuple[str, tuple[float, float]]]:
    """The errors of all estimates, by what is put behind the words "standard error"."""
    for one in facts.get("strata", ()):
        yield from _errors(one, f"{label}, {one['stratum']}")
    for one in facts.get("questions", ()):
        share = ", every share" * (one["kind"] == Choice.kind)
        yield f" of {one['name']}{share}{label}", (one["standard_error"], one["worst_standard_error"])
    if "standard_error" in facts:
        yield label or " of the estimate", (facts["standard_error"], facts["worst_standard_error"])


# -- figures -----------------------------------------------------------------------------------------------------------


def _whole_questions(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Settings in which a question that the other campaign does not ask is there by its name alone."""
    asked = {match[1] for match in map(_QUESTION.match, other) if match}
    found: dict[str, Any] = {}
    for name, value in one.items():
        match = _QUESTION.match(name)
        if match is None or match[1] in asked:
            found[name] = value
        elif name.endswith(".name"):
            found[match[1]] = value
    return found


def _of_label(side: Side, label: str) -> str:
    """From how many of a stratum or a group is bought."""
    rows = np.array([one == label for one in side.labels or ()], dtype=bool)
    if not rows.any():
        return ""
    return f"{count(int((side.losses[rows] > 0.0).sum()))} of {count(int(rows.sum()))}"


def _figure(value: float) -> str:
    return "" if math.isnan(value) else figure(value)


def _ratio(a: float, b: float) -> str:
    """How many times A is B; nothing where that says nothing."""
    return number(b / a) if 0.0 < a < math.inf and 0.0 <= b < math.inf else ""
