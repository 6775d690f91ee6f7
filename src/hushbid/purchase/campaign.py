"""What a purchase wants: who is bought from, in which market, for what question, and where results go.

A campaign file says so (``campaign_file``), or the arguments of `hushbid.buy`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal

from hushbid.allocation import Budget, Goal, HardBudget
from hushbid.common.money import Currency
from hushbid.common.tables import ENDINGS, Library, library_of
from hushbid.errors import InputError
from hushbid.mechanism import Market
from hushbid.mechanism.population import groups_of
from hushbid.priors.pilot import PriorSource
from hushbid.purchase.people import Kind, People
from hushbid.purchase.strata_section import Stratification

_RESULTS = (
    *(f"{table}.{end}" for table in ("decisions", "payments") for end in ENDINGS),
    *(
        "estimate.json",
        "report.html",
        "record.json",
        "record",
        "outcome.json",
        "outcome",
        "summary.json",
        "decided.json",
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BidsSource:
    """Where the bids are."""

    file: Any
    """A path, ``-``, columns by name, a frame that speaks Arrow, or a table that an engine reads."""

    id: str
    """The column that names people."""

    bid: str
    """The column of bids."""

    group: str | None
    """The column of groups, if there is one."""

    limit: str | None
    """The column of the largest losses that people accept, if there is one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSource:
    """Where the data are: values in the central setting, people's own noisy messages in the local one."""

    file: Any
    """A path, ``-``, columns by name, a frame that speaks Arrow, or a table that an engine reads."""

    id: str
    """The column that names people."""

    value: str
    """The column of data or messages; of a survey's answers, ``columns`` are in its place."""

    columns: tuple[str, ...] | None
    """The columns of answers in the order of the questions; None where one number is asked for, or messages come."""

    kind: Kind
    """What the column holds; ``simulated_values`` are made up and get their noise here."""

    late: Literal["paid", "unpaid"] | None
    """What is paid for data that came after the estimate was drawn; None if the file does not say."""

    @property
    def names(self) -> tuple[str, ...]:
        """The column of data, or of each question's answers."""
        return (self.value,) if self.columns is None else self.columns


@dataclass(frozen=True, slots=True, kw_only=True)
class Campaign:
    """Everything that a purchase needs, read and found to be in order."""

    path: Path | None
    """The campaign file, if there is one."""

    title: str
    """What people call the campaign."""

    question: str
    """What is estimated, as it stands in a sentence."""

    unit: str
    """The unit of the data; may be empty."""

    wave: int
    """Which time the same people are asked the same."""

    synthetic: bool
    """Whether nobody in it was promised anything, so that its estimate may be drawn again and again."""

    notices: tuple[str, ...]
    """Sentences that must stand at the top of the report."""

    prior: PriorSource
    """What is believed about costs, and since when."""

    market: dict[str, Any]
    """The market's other fields."""

    strata: Stratification | None = None
    """The strata of the panel, if a file states them."""

    part_of: tuple[str, int] | None = None
    """The campaign that this is one stratum of, by its title, and how many strata it has."""

    currency: Currency
    """What payments are made in."""

    spending_limit: float | None
    """More than this is not spent, in units of the currency."""

    bids: BidsSource
    """Where the bids are."""

    data: DataSource | None
    """Where the data are; None while nobody has been asked for them."""

    folder: Path | None
    """Where results go; None if nothing is written."""

    decisions_format: str
    """How the names of the tables end."""

    level: float
    """How sure the interval is to be."""

    accept_pilot_overlap: bool
    """Whether a prior fitted on people who bid was accepted by name."""

    accept_infinite_loss: bool
    """Whether losing all privacy was accepted by name."""

    accept_rounding: bool
    """Whether it was accepted by name that rounding takes more than 5 % of a budget."""

    @property
    def each(self) -> bool:
        """Whether an estimate for each stratum is wanted."""
        return self.strata is not None and self.strata.each

    @property
    def called(self) -> str:
        """How messages call it."""
        return self.title if self.path is None else str(self.path)

    @property
    def library(self) -> Library | None:
        """The library of frames that people came in, if it was one."""
        return library_of(self.bids.file)

    @property
    def late_is_paid(self) -> bool:
        """Whether data that came after the estimate was drawn are paid for."""
        return self.data is not None and self.data.late == "paid"

    @property
    def inputs(self) -> list[str | Path]:
        """Every file that is read."""
        files = [self.path, self.bids.file, *([self.data.file] if self.data else [])]
        return [*(one for one in files if isinstance(one, str | Path)), *self.prior.paths]

    @property
    def outputs(self) -> list[Path]:
        """Every file that may be written."""
        return [] if self.folder is None else [self.folder / name for name in _RESULTS]

    def market_for(self, people: People | None) -> Market:
        """The market for the people in the table of bids, or, with None, as far as it is known before they are read.

        They are whom the mean is about where a relation is allowed for, unless the file states a larger population.
        """
        fields = self.market
        if self.strata is not None:
            fields = fields | self.strata.fields(people, fields["max_correlation"])
        labels = people.groups if people is not None else [] if self.prior.is_grouped else None
        market = Market(prior=self.prior.prior_for(labels), **fields)
        return market if people is None else market.with_roster(people.roster)


def fields_of(market: Market) -> dict[str, Any]:
    """The market's fields but for the prior."""
    return {one.name: getattr(market, one.name) for one in fields(market) if one.init and one.name != "prior"}


def with_coin(goal: Goal, currency: Currency) -> Goal:
    """The goal with the currency's coin, if it is a budget that states none."""
    if isinstance(goal, (Budget, HardBudget)) and goal.coin == 0.0:
        return type(goal)(goal.amount, coin=currency.coin)
    return goal


def prior_of(market: Market, group: str | None) -> PriorSource:
    """The market's prior, by group if it has groups; then ``group`` names the column of them."""
    if market.grouped and group is None:
        raise InputError(
            "group must name the column of people's groups if the market's prior is Grouped.", field="group"
        )
    return PriorSource(priors={one.name: one.prior for one in groups_of(market.prior, None)})


def data_source(
    market: Market, file: Any, *, id: str, value: str | Sequence[str] | None, kind: Kind | None, late: Any
) -> DataSource:
    """Where the data are, as the arguments of `hushbid.buy` say; ``value`` may be left to its usual name."""
    usual: Kind = "messages" if market.strategy.sends_messages else "values"
    allowed = ("messages", "simulated_values") if market.strategy.sends_messages else ("values",)
    if kind is not None and kind not in allowed:
        told = f"kind must be {' or '.join(map(repr, allowed))} in the {market.setting} setting, got {kind!r}."
        raise InputError(told, field="kind")
    if late not in (None, "paid", "unpaid"):
        raise InputError(f"late must be 'paid' or 'unpaid', got {late!r}.", field="late")
    chosen = kind or usual
    columns: tuple[str, ...] | None = None
    if market.survey is not None and chosen != "messages":
        named = [one.name for one in market.survey] if value is None else value
        columns = tuple(named) if isinstance(named, Iterable) and not isinstance(named, str) else ()
        if len(columns) != len(market.survey):
            told = f"value must name one column for each question ({len(market.survey)}), got {value!r}."
            raise InputError(told, field="value")
        value = None
    if value is not None and not isinstance(value, str):
        raise InputError(f"value must name one column, got {value!r}.", field="value")
    name = value or ("message" if chosen == "messages" else "value")
    return DataSource(file=file, id=id, value=name, columns=columns, kind=chosen, late=late)
