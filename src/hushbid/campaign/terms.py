"""A campaign as it is run: what is stated, its terms as a `Market` takes them, and where people and data are.

A file states one (`read_campaign`), options do (`campaign_of`), or the arguments of `hushbid.buy`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from hushbid.campaign.market import counts_of, fields_of_strata, market_terms, refuse_contradicting
from hushbid.campaign.people import Kind, People
from hushbid.campaign.reading import Problems, currency_of, validated
from hushbid.campaign.spec import BidsTable, CampaignSpec
from hushbid.campaign.stated import Stated
from hushbid.common.money import NO_CURRENCY, Currency
from hushbid.common.staging import STREAM
from hushbid.common.tables import ENDINGS, Library, columns_of, library_of
from hushbid.errors import HushbidError, InputError
from hushbid.mechanism import Market
from hushbid.priors.pilot import PriorSource, prior_source

_RESULTS = (
    *(f"{table}.{end}" for table in ("decisions", "payments") for end in ENDINGS),
    *("estimate.json", "report.html", "record.json", "record", "outcome.json", "outcome", "summary.json"),
    "decided.json",
)
_VALUES: dict[Kind, str] = {"values": "value", "messages": "message", "simulated_values": "value"}
"""What the column of data is called unless it is named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSource:
    """Where the data are: values in the central setting, people's own noisy messages in the local one."""

    file: Any
    """A path, ``-``, columns by name, a frame that speaks Arrow, or a table that an engine reads."""

    id: str
    """The column that names people."""

    names: tuple[str, ...]
    """The column of data or messages; of a survey's answers, one for each question."""

    answers: bool
    """Whether these are columns of answers."""

    kind: Kind
    """What they hold; ``simulated_values`` are synthetic and get their noise here."""

    late: Literal["paid", "unpaid"] | None
    """What is paid for data that came after the estimate was drawn; None if nobody said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Campaign:
    """What is wanted, found to be in order."""

    spec: CampaignSpec
    """What is stated."""

    prior: PriorSource
    """What is believed about costs, and since when."""

    market: dict[str, Any]
    """The market's other fields."""

    currency: Currency
    """What payments are made in."""

    data: DataSource | None = None
    """Where the data are; None while nobody has been asked for them."""

    path: Path | None = None
    """The campaign file, if there is one."""

    folder: Path | None = None
    """Where results go; None if nothing is written."""

    part_of: tuple[str, int] | None = None
    """The campaign that this is one stratum of, by its title, and how many strata it has."""

    @property
    def title(self) -> str:
        """What people call the campaign."""
        return self.spec.title or ("campaign" if self.path is None else self.path.stem)

    @property
    def question(self) -> str:
        """What is estimated, as it stands in a sentence."""
        return self.spec.question or ("the answers" if self.spec.questions else "the mean")

    @property
    def unit(self) -> str:
        """The unit of the data; may be empty."""
        return self.spec.unit or ""

    @property
    def bids(self) -> BidsTable:
        """Where the bids are; the file may also be columns by name, a frame, or a table that an engine reads."""
        return self.spec.bids or BidsTable()

    @property
    def each(self) -> bool:
        """Whether an estimate for each stratum is wanted."""
        return self.spec.strata is not None and self.spec.strata.each

    @property
    def called(self) -> str:
        """How messages call it."""
        return self.title if self.path is None else str(self.path)

    @property
    def source(self) -> str:
        """How messages call the table of bids."""
        return str(self.bids.file) if isinstance(self.bids.file, str | Path) else "The table of bids"

    @property
    def stratum(self) -> str | None:
        """The column of strata, if there are any."""
        return None if self.spec.strata is None else self.spec.strata.column

    @property
    def library(self) -> Library | None:
        """The library of frames that people came in, if it was one."""
        return library_of(self.bids.file)

    @property
    def simulated(self) -> bool:
        """Whether, in the local setting, people's noise is added here, to synthetic values."""
        return self.data is not None and self.data.kind == "simulated_values"

    @property
    def late(self) -> Literal["paid", "unpaid"] | None:
        """What is paid for data that came after the estimate was drawn; None if nobody said."""
        return None if self.data is None else self.data.late

    @property
    def inputs(self) -> list[str | Path]:
        """Every file that is read."""
        files = [self.path, self.bids.file, *([self.data.file] if self.data else [])]
        return [*(one for one in files if isinstance(one, str | Path)), *self.prior.paths]

    @property
    def outputs(self) -> list[Path]:
        """Every file that may be written."""
        return [] if self.folder is None else [self.folder / name for name in _RESULTS]

    def stating(self, **fields: Any) -> "Campaign":
        """Return the same campaign with other fields of its specification."""
        return replace(self, spec=self.spec.model_copy(update=fields))

    def market_for(self, people: People | None) -> Market:
        """Return the market for the people in the table of bids, or, with None, as far as it is known before.

        They are whom the mean is about where a relation is allowed for, unless a larger population is stated.
        """
        terms = self.market | fields_of_strata(self.spec.strata, people, self.market["max_correlation"])
        labels = people.groups if people is not None else [] if self.prior.is_grouped else None
        market = Market(prior=self.prior.prior_for(labels), **terms)
        return market if people is None else market.with_roster(people.roster)

    def market_before(self, people: int | None) -> Market:
        """Return the market for so many people who have not bid yet, or for the panel that the strata state."""
        terms, [prior] = self.market, self.prior.priors.values()
        if (strata := self.spec.strata) is not None:
            labels = [label for label, count in counts_of(strata).items() for _ in range(count)]
            terms = terms | fields_of_strata(strata, None, terms["max_correlation"]) | {"strata": labels}
        return Market(prior=prior, **terms).with_roster(people, closed=True)


# -- from what is stated -----------------------------------------------------------------------------------------------


def read_campaign(path: Path, *, bids: Any = None, data: Any = None) -> Campaign:
    """Read a campaign file; one error names everything that is wrong with it.

    ``bids`` and ``data``, columns by name or frames, take the place of the files that it names, or need not name. Where
    only ``bids`` are given, the data are a column of theirs.
    """
    return campaign_of(Stated.of_file(path), bids=bids, data=data)


def campaign_of(stated: Stated, *, bids: Any = None, data: Any = None, planned: bool = False) -> Campaign:
    """Return the campaign that is stated; see `read_campaign`. If it is ``planned``, a roster comes later."""
    problems = Problems(stated)
    spec = validated(stated, problems, CampaignSpec)
    currency = currency_of(spec) if not problems.at("money") else NO_CURRENCY
    prior = _prior(stated, problems)
    terms: dict[str, Any] = {}
    if not problems.at("market", "questions"):
        terms = market_terms(spec, currency)
        if prior is not None and not problems.at("strata"):
            refuse_contradicting(spec, terms, prior, problems, planned=planned)
    where = _bids(spec, stated, bids, problems, grouped=prior is not None and prior.is_grouped and not planned)
    source = _data(spec, stated, bids if data is None else data, where, problems)
    if bids is None and where.file == STREAM and source is not None and source.file == STREAM:
        problems.add("data.file", "cannot be standard input as well as bids.file.")
    path, output = stated.path, spec.output
    folder = None if path is None else stated.home / (output.folder or path.stem)
    if folder is not None and folder.exists() and not folder.is_dir():
        problems.add("output.folder", f"must be a folder, but {folder} is a file.")
    problems.refuse()
    assert prior is not None
    found = spec.model_copy(update={"bids": where})
    return Campaign(spec=found, prior=prior, market=terms, currency=currency, data=source, path=path, folder=folder)


def _prior(stated: Stated, problems: Problems) -> PriorSource | None:
    market = stated.values.get("market")
    if not isinstance(market, Mapping) or "prior" not in market:
        return None
    try:
        return prior_source(market["prior"], folder=stated.home)
    except HushbidError as problem:
        problems.add("market.prior", str(problem))
        return None


# -- where people and data are -----------------------------------------------------------------------------------------


def _bids(spec: CampaignSpec, stated: Stated, given: Any, problems: Problems, *, grouped: bool) -> BidsTable:
    if spec.bids is None and given is None and not problems.at("bids"):
        problems.add("bids", "is missing; the file must have a table [bids].")
    table = spec.bids or BidsTable()
    if grouped and table.group is None and not problems.at("bids"):
        message = "the name of the column that holds people's groups, because market.prior has groups"
        problems.add("bids.group", f"is missing; it must be {message}.")
    where = table.model_copy(update={"file": _file("bids", table.file, given, stated, problems)})
    columns = {f"bids.{name}": getattr(where, name) for name in ("id", "bid", "group", "limit")}
    columns["strata.column"] = None if spec.strata is None else spec.strata.column
    _check_columns("bids.file", where.file, columns, problems)
    return where


def _data(spec: CampaignSpec, stated: Stated, given: Any, bids: BidsTable, problems: Problems) -> DataSource | None:
    table = spec.data
    if table is None:
        return None
    kinds = _kinds(getattr(getattr(spec, "market", None), "setting", "central") == "local")
    kind = table.kind or kinds[0]
    if kind not in kinds:
        allowed = " or ".join(f'"{one}"' for one in kinds)
        problems.add("data.kind", f'must be {allowed}, got "{kind}".')
        kind = kinds[0]
    answers = "questions" in stated.values and kind != "messages"
    if answers and table.value is not None:
        problems.add("data.value", "cannot be stated together with questions, each of which has a column.")
    names = tuple(one.column or one.name for one in spec.questions) if answers else (table.value or _VALUES[kind],)
    file = _file("data", table.file, given, stated, problems)
    source = DataSource(file=file, id=table.id or bids.id, names=names, answers=answers, kind=kind, late=table.late)
    columns = {f"questions.{row}": name for row, name in enumerate(names, 1)} if answers else {"data.value": names[0]}
    _check_columns("data.file", file, {"data.id": source.id, **columns}, problems)
    return source


def _kinds(sends_messages: bool) -> tuple[Kind, ...]:
    """What data may be; the first is usual."""
    return ("messages", "simulated_values") if sends_messages else ("values",)


def _file(table: str, name: str | None, given: Any, stated: Stated, problems: Problems) -> Any:
    """Return what was given, or else the path of the file that a table names."""
    if given is not None:
        return given
    if name is None:
        if not problems.at(f"{table}.file") and not problems.of(table):
            problems.add(f"{table}.file", "is missing; it must be a text in quotes.")
        return ""
    return STREAM if name == STREAM else str(stated.home / name)


def _check_columns(place: str, file: Any, columns: Mapping[str, str | None], problems: Problems) -> None:
    """That the file is there and has the columns; a stream or a pipe, which is read once, is looked at later."""
    if not isinstance(file, str) or not file or file == STREAM or (Path(file).exists() and not Path(file).is_file()):
        return
    try:
        there = columns_of(file)
    except HushbidError as problem:
        problems.add(place, str(problem))
        return
    for name, column in columns.items():
        if column is not None and column not in there:
            shown = ", ".join(map(repr, there[:20])) + (" and more" if len(there) > 20 else "")
            problems.add(name, f"{file} has no column {column!r}; it has {shown}.")


def data_source(
    market: Market, file: Any, *, id: str, value: str | Sequence[str] | None, kind: Kind | None, late: Any
) -> DataSource:
    """Return where the data are, as the arguments of `hushbid.buy` say; ``value`` may be left to its usual name."""
    allowed = _kinds(market.strategy.sends_messages)
    if kind is not None and kind not in allowed:
        message = f"kind must be {' or '.join(map(repr, allowed))} in the {market.setting} setting, got {kind!r}."
        raise InputError(message, field="kind")
    if late not in (None, "paid", "unpaid"):
        raise InputError(f"late must be 'paid' or 'unpaid', got {late!r}.", field="late")
    chosen = kind or allowed[0]
    answers = market.survey is not None and chosen != "messages"
    if answers and market.survey is not None:
        named = [one.name for one in market.survey] if value is None else value
        names = tuple(named) if isinstance(named, Iterable) and not isinstance(named, str) else ()
        if len(names) != len(market.survey):
            message = f"value must name one column for each question ({len(market.survey)}), got {value!r}."
            raise InputError(message, field="value")
    elif value is not None and not isinstance(value, str):
        raise InputError(f"value must name one column, got {value!r}.", field="value")
    else:
        names = (value or _VALUES[chosen],)
    return DataSource(file=file, id=id, names=names, answers=answers, kind=chosen, late=late)
