"""A campaign as it is run: what is stated, as a `Market` takes it, and where people and data are.

A file states one (`read_campaign`), options do (`campaign_of`), or the arguments of `hushbid.buy`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from hushbid.allocation import Accuracy, Goal
from hushbid.allocation.goals import goal_named
from hushbid.campaign.people import DataSource, People
from hushbid.campaign.reading import Problems, currency_of, question_of, validated
from hushbid.campaign.spec import GOALS, BidsTable, CampaignSpec, StrataTable, Worth
from hushbid.campaign.stated import Stated
from hushbid.common.money import NO_CURRENCY, Currency
from hushbid.common.staging import STREAM
from hushbid.common.tables import ENDINGS, Library, columns_of, library_of
from hushbid.errors import HushbidError, InputError
from hushbid.mechanism import Market, buyer_weight_for
from hushbid.mechanism.combinations import Combination, refuse
from hushbid.mechanism.strata import listed
from hushbid.priors.pilot import PriorSource, prior_source
from hushbid.questions import Question

_RESULTS = (
    *(f"{table}.{end}" for table in ("decisions", "payments") for end in ENDINGS),
    *("estimate.json", "report.html", "record.json", "record", "outcome.json", "outcome", "summary.json"),
    "decided.json",
)


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
    file = _file("data", table.file, given, stated, problems)
    asked = tuple(one.column or one.name for one in spec.questions) if "questions" in stated.values else ()
    setting = getattr(getattr(spec, "market", None), "setting", "central")
    source: DataSource | None = None
    while source is None:  # what cannot be is left out, and read on
        try:
            source = DataSource.of(table, file, setting=setting, ids=bids.id, questions=asked)
        except InputError as problem:
            problems.add(f"data.{problem.field}", str(problem).removeprefix(f"{problem.field} "))
            table = table.model_copy(update={str(problem.field): None})
    columns = {f"questions.{row}": name for row, name in enumerate(source.names, 1)}
    columns = columns if source.answers else {"data.value": source.names[0]}
    _check_columns("data.file", file, {"data.id": source.id, **columns}, problems)
    return source


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


# -- the market --------------------------------------------------------------------------------------------------------

_SAME = (
    *("setting", "user_weight", "outside_option", "max_privacy_loss", "max_correlation", "population"),
    *("expected_share", "tolerance"),
)
"""Fields that a market has under the names of the campaign's table."""


def market_terms(spec: CampaignSpec, currency: Currency) -> dict[str, Any]:
    """Return the fields of a market but for prior and strata."""
    questions = questions_of(spec)
    asked = (
        {"questions": questions} if questions else {name: getattr(spec.market, name) for name in ("bounds", "variance")}
    )
    return {"goal": goal_of(spec, currency), **asked, **{name: getattr(spec.market, name) for name in _SAME}}


def questions_of(spec: CampaignSpec) -> tuple[Question, ...]:
    """Return what is asked, if it is more than one number."""
    return tuple(question_of(one) for one in spec.questions)


def goal_of(spec: CampaignSpec, currency: Currency) -> Goal:
    """Return what the buyer has; of a survey, perhaps a standard error for each question."""
    if targets := _targets(spec):
        return Accuracy(targets)
    name = next(name for name in GOALS if getattr(spec.market, name) is not None)
    number = getattr(spec.market, name)
    if isinstance(number, Worth):
        number = buyer_weight_for(**number.model_dump())
    return goal_named(name, number, coin=currency.coin)


def survey_in(path: Path) -> tuple[tuple[Question, ...], tuple[float, ...]]:
    """Return the questions of a file, of which nothing else is read, and the standard errors that they state."""
    stated = Stated(values={}).with_table("questions", path)
    problems = Problems(stated)
    spec = validated(stated, problems, CampaignSpec)
    problems.refuse(within="questions")
    return questions_of(spec), _targets(spec)


def _targets(spec: CampaignSpec) -> tuple[float, ...]:
    return tuple(one.standard_error for one in spec.questions if one.standard_error is not None)


def refuse_contradicting(
    spec: CampaignSpec, terms: dict[str, Any], prior: PriorSource, problems: Problems, *, planned: bool
) -> None:
    """Keep what does not go together as a problem of the field that states it."""
    strata = spec.strata
    if strata is not None and spec.market.population is not None:
        message = "must stand in the table [strata], a number for each stratum, where there are strata."
        problems.add("market.population", message)
        return
    of_strata = fields_of_strata(strata, None, terms["max_correlation"])
    try:
        whole = terms | of_strata
        if strata is not None and strata.each:
            refuse_terms(strata, terms)
            whole = of_stratum(strata, terms, _some_stratum(terms, strata))
        for one in prior.priors.values():
            market = Market(prior=one, **whole)
            if not planned:
                market.require_roster()
    except HushbidError as problem:
        goal = next((name for name in GOALS if getattr(spec.market, name) is not None), "")
        stated = problem.field == "population" or (
            problem.field in terms and problem.field in spec.market.model_fields_set
        )
        name = problem.field if stated else goal
        place = f"market.{name}" if name else "questions"
        if problem.field in of_strata or (strata is not None and problem.field == "population"):
            place = f"strata.{problem.field}"
        problems.add(place, str(problem).removeprefix(f"{place.rpartition('.')[2]} "))


def _some_stratum(terms: Mapping[str, Any], strata: StrataTable) -> str:
    """The name of a stratum, as far as one is stated."""
    goal = terms["goal"]
    named = goal.standard_error if isinstance(goal, Accuracy) else None
    return next(iter(named if isinstance(named, Mapping) else strata.population or ("all",)))


# -- strata ------------------------------------------------------------------------------------------------------------


def fields_of_strata(strata: StrataTable | None, people: People | None, relation: float) -> dict[str, Any]:
    """Return the market's fields for people who are at hand, or, before any are, as far as they are known."""
    if strata is None or strata.each:
        return {}
    counts = strata.population if people is None or strata.population else people.roster_by_stratum
    return {
        **({"shares": strata.shares} if strata.shares is not None else {"contrast": strata.contrast}),
        "strata": [] if people is None else people.strata,
        **({"population": counts} if counts is not None and (strata.population or relation > 0.0) else {}),
    }


def of_stratum(strata: StrataTable, terms: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the terms of the market of one stratum, from those of the campaign, where each has an estimate."""
    goal = terms["goal"]
    if isinstance(goal, Accuracy) and isinstance(goal.standard_error, Mapping):
        goal = Accuracy(goal.standard_error[name])
    counts = strata.population if terms["max_correlation"] > 0.0 else None
    return {**terms, "goal": goal, "population": None if counts is None else counts[name]}


def refuse_terms(strata: StrataTable, terms: Mapping[str, Any], names: Iterable[str] | None = None) -> None:
    """Refuse terms that markets of single strata cannot have, or that name other strata than there are.

    Before people are read there are no ``names``: then the strata that the terms name must be the same.
    """
    goal = terms["goal"]
    cares = bool(np.any(np.asarray(terms["user_weight"]) > 0.0))
    refuse(Combination(setting=terms["setting"], goal=goal.kind, each=True, user_weight=cares))
    stated = {}
    if isinstance(goal, Accuracy) and isinstance(goal.standard_error, Mapping):
        stated["standard_error"] = list(goal.standard_error)
    if strata.population is not None and terms["max_correlation"] > 0.0:
        stated["population"] = list(strata.population)
    there = sorted(names or next(iter(stated.values()), []))
    for name, given in stated.items():
        if sorted(given) != there:
            raise InputError(f"{name} must name each stratum, {listed(there)}, and no other.", field=name)


def counts_of(strata: StrataTable) -> Mapping[str, int]:
    """Return how many people each stratum has, where nobody has bid yet."""
    if strata.population is not None:
        return strata.population
    message = "strata.population must say how many people each stratum has, where nobody has bid yet."
    raise InputError(message, field="strata.population")
