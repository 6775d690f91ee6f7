"""One of two campaigns that are compared: a campaign file, a record, or a folder that holds a record.

A file is decided about anew, in memory, with nothing drawn or written; a record says what was decided. Both then have
the same figures, and the same settings under the names that a campaign file has for them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hushbid.allocation import Accuracy
from hushbid.allocation.goals import name_of
from hushbid.campaign.deciding import Decided, Everybody, decide
from hushbid.campaign.people import AT_ONCE, People
from hushbid.campaign.terms import read_campaign
from hushbid.common.arrays import id_texts
from hushbid.common.money import NO_CURRENCY, Currency
from hushbid.common.staging import STREAM
from hushbid.errors import HushbidError, InputError
from hushbid.mechanism import Market
from hushbid.mechanism.population import groups_of
from hushbid.questions import Choice
from hushbid.record import Record
from hushbid.record.folder import DOCUMENT, present

_KINDS = f"a campaign file (.toml), a record (.json) or a folder that holds {DOCUMENT}"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Side:
    """One of two campaigns."""

    called: str
    """What it is called on the command line."""

    everybody: Everybody
    """What is decided about each person."""

    facts: Mapping[str, Any]
    """What is decided, in figures about everybody together."""

    currency: Currency
    """What payments are made in."""

    settings: Mapping[str, Any]
    """What its market states, by the names of a campaign file; a prior stands as it is."""

    beside: Mapping[str, Any] | None
    """What the file states beside the market; None for a record, which does not hold it."""

    above_spending_limit: float | None
    """The spending limit that its payments are above; None if they are not."""

    @property
    def losses(self) -> Any:
        """Everybody's privacy loss."""
        return self.everybody.outcome.privacy_loss

    @property
    def labels(self) -> list[str] | None:
        """Everybody's stratum or group, if there are any."""
        strata = self.everybody.outcome.market.strata
        return self.everybody.people.groups if strata is None else list(strata)

    @property
    def errors(self) -> dict[str, tuple[float, float]]:
        """The standard error of each estimate if price and datum are unrelated, and at worst."""
        return dict(_errors(self.facts, ""))


def side_of(path: Path) -> Side:
    """The campaign of a file, a record, or a folder that holds one."""
    if path.suffix == ".toml" and not path.is_dir():
        return _of_file(path)
    if path.is_dir():
        found = path if (path / DOCUMENT).exists() else present(path / DOCUMENT)
        if not found.exists():
            raise InputError(f"{path} holds no {DOCUMENT}: compare takes {_KINDS}.", field="files")
        return _of_record(found, str(path))
    if path.suffix == ".json":
        return _of_record(path, str(path))
    raise InputError(f"{path} must be {_KINDS}.", field="files")


def _of_file(path: Path) -> Side:
    campaign = read_campaign(path, data={})  # whether there are data makes no difference here
    if campaign.bids.file == STREAM:
        told = f"{path}: bids.file must be a file to be compared, not standard input."
        raise InputError(told, field="bids.file")
    try:
        decided = decide(replace(campaign, spending_limit=None), AT_ONCE, lambda told: None)
    except HushbidError as problem:
        raise type(problem)(f"{path}: {problem}", field=problem.field, row=problem.row) from problem
    spent, spending_limit = decided.total_minor / campaign.currency.per_unit, campaign.spending_limit
    beside = {
        "title": campaign.title,
        "question": campaign.question,
        "unit": campaign.unit,
        "wave": campaign.wave,
        "synthetic": campaign.synthetic,
        "bids.file": str(Path(str(campaign.bids.file)).resolve()),
        "bids.limit": campaign.bids.limit,
        "money.spending_limit": spending_limit,
    }
    above = spending_limit is not None and spent > spending_limit
    return _decided_side(str(path), decided, beside, above_spending_limit=spending_limit if above else None)


def _of_record(path: Path, called: str) -> Side:
    record = Record.read(path)
    outcome = record.outcome
    people = People(
        source=str(path),
        ids=None if record.ids is None else id_texts(record.ids),
        id_column=[],
        bids=outcome.bids,
        groups=None if record.groups is None else list(record.groups),
    )
    if record.money is None:
        currency, everybody = NO_CURRENCY, Everybody.of(people, outcome, NO_CURRENCY)
    else:
        currency = Currency(record.money.currency, record.money.decimals)
        everybody = Everybody(people=people, outcome=outcome, money=record.money)
    return _decided_side(called, Decided.of(everybody, currency, {}), None, above_spending_limit=None)


def _decided_side(
    called: str, decided: Decided, beside: Mapping[str, Any] | None, *, above_spending_limit: float | None
) -> Side:
    assert decided.everybody is not None
    market = decided.everybody.outcome.market
    currency = None if decided.currency == NO_CURRENCY else decided.currency.code
    return Side(
        called=called,
        everybody=decided.everybody,
        facts=decided.facts(),
        currency=decided.currency,
        settings={**dict(_settings(market)), "money.currency": currency},
        beside=beside,
        above_spending_limit=above_spending_limit,
    )


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
