"""The campaign file: everything a purchase needs, in TOML. docs/reference/campaign-file.md describes every field.

Reading it tells all its problems at once, each with its line and field: a misspelt name, a number out of range, a file
that is not there, a column that the file does not have.
"""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from hushbid.disclosure.once_question import LAST_WAVE
from hushbid.durable import STREAM
from hushbid.errors import HushbidError, InputError
from hushbid.mechanism import Market
from hushbid.money import NO_CURRENCY, Currency
from hushbid.priors.pilot import PriorSource
from hushbid.purchase.market_section import read_market
from hushbid.purchase.people import Kind, People
from hushbid.purchase.questions_section import read_survey
from hushbid.purchase.strata_section import Stratification, read_strata
from hushbid.purchase.toml_sections import Problems, Section
from hushbid.tables import columns_of

_RESULTS = (
    *("decisions.csv", "decisions.parquet", "payments.csv", "payments.parquet", "estimate.json", "report.html"),
    *("record.json", "outcome.json", "summary.json", "decided.json"),
)
_LABELS: dict[str, tuple[Kind, ...]] = {"central": ("values",), "local": ("messages", "simulated_values")}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportsSource:
    """Where the reports are."""

    file: Any
    """A path, ``-``, columns by name, or a frame that an engine reads."""

    id: str
    """The column that names people."""

    sensitivity: str
    """The column of reports."""

    group: str | None
    """The column of groups, if there is one."""

    limit: str | None
    """The column of the largest losses that people accept, if there is one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSource:
    """Where the data are: values in the central setting, people's own noisy messages in the local one."""

    file: Any
    """A path, ``-``, columns by name, or a frame that an engine reads."""

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
    """A campaign file, read and found to be in order."""

    path: Path
    """The file."""

    name: str
    """What people call the campaign."""

    quantity: str
    """What is estimated, as it stands in a sentence."""

    unit: str
    """The unit of the data; may be empty."""

    wave: int
    """Which time the same people are asked the same."""

    made_up: bool
    """Whether nobody in it was promised anything, so that its estimate may be drawn again and again."""

    notices: tuple[str, ...]
    """Sentences that must stand at the top of the report."""

    prior: PriorSource
    """What is believed about sensitivities, and since when."""

    market: dict[str, Any]
    """The market's other fields."""

    strata: Stratification | None
    """The strata of the panel, if there are any."""

    currency: Currency
    """What payments are made in."""

    ceiling: float | None
    """More than this is not spent, in units of the currency."""

    reports: ReportsSource
    """Where the reports are."""

    data: DataSource | None
    """Where the data are; None while nobody has been asked for them."""

    folder: Path
    """Where results go."""

    decisions_format: Literal["csv", "parquet"]
    """Of the table of decisions."""

    level: float
    """How sure the interval is to be."""

    accept_pilot_overlap: bool
    """Whether a prior fitted on people who report was accepted by name."""

    accept_infinite_loss: bool
    """Whether losing all privacy was accepted by name."""

    @property
    def inputs(self) -> list[str | Path]:
        """Every file that is read."""
        files = [self.reports.file, *([self.data.file] if self.data else [])]
        return [self.path, *(one for one in files if isinstance(one, str | Path)), *self.prior.paths]

    @property
    def outputs(self) -> list[Path]:
        """Every file that may be written."""
        return [self.folder / name for name in _RESULTS]

    def market_for(self, people: People | None) -> Market:
        """The market for the people in the table of reports, or, with None, as far as it is known before they are read.

        They are whom the mean is about where a relation is allowed for, unless the file states a larger population.
        """
        fields = self.market
        if self.strata is not None:
            fields = fields | self.strata.fields(people, fields["max_relation"])
        labels = people.groups if people is not None else [] if self.prior.is_grouped else None
        market = Market(prior=self.prior.prior_for(labels), **fields)
        return market if people is None else market.with_roster(people.roster)


def read_campaign(path: Path, *, reports: Any = None, data: Any = None) -> Campaign:
    """Read a campaign file; one error tells everything that is wrong with it.

    ``reports`` and ``data``, columns by name or frames, stand in for the files that it names, or need not name. Where
    only ``reports`` are given, the data are a column of theirs.
    """
    text = _content(path)
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        raise InputError(f"{path} is not TOML: {problem}.") from None
    except RecursionError:
        raise InputError(f"{path} cannot be read: it is nested too deeply.") from None
    except ValueError:  # of Python's own: a number of thousands of digits
        raise InputError(f"{path} cannot be read: a number in it has too many digits.") from None
    problems = Problems(str(path), text)
    campaign = _read(Section(values, "", problems), path, problems, reports, reports if data is None else data)
    problems.refuse()
    assert campaign is not None
    return campaign


def _content(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise InputError(f"{path} does not exist.") from None
    except UnicodeDecodeError:
        raise InputError(f"{path} must be UTF-8 text.") from None
    except OSError as problem:
        raise InputError(f"{path} cannot be read: {problem.strerror}.") from problem


def _read(top: Section, path: Path, problems: Problems, given: Any, given_data: Any) -> Campaign | None:
    # what is asked
    home = path.parent
    survey, asked = read_survey(top), top.given("questions")
    name = top.text("name", default=path.stem)
    quantity = top.text("quantity", default="the answers" if asked else "the mean")
    unit = top.text("unit")
    if asked and unit:
        problems.add("unit", "cannot be stated beside questions, each of which has its own.")
    wave, made_up = top.count("wave", most=LAST_WAVE) or 1, top.flag("made_up")
    notices = _texts(top, "notices")
    # the market and its money
    currency, ceiling = _money(top.section("money"))
    market_section = top.section("market", needed=True)
    strata = read_strata(top)
    market, prior = read_market(market_section, home, currency, asked=asked, survey=survey, strata=strata)
    overlap = market_section.flag("accept_pilot_overlap")
    infinite = market_section.flag("accept_infinite_loss")
    market_section.finish()
    # people and their data
    grouped = prior is not None and prior.is_grouped
    column = None if strata is None else strata.column
    reports = _reports(top.section("reports", needed=given is None), home, given, grouped=grouped, stratum=column)
    data = None
    if top.given("data"):
        columns = None if not asked else () if survey is None else survey.columns
        data = _data(top.section("data"), home, given_data, market["setting"], reports, columns)
    if data is not None and given is None and data.file == STREAM and reports.file == STREAM:
        problems.add("data.file", "cannot be standard input as well as reports.file.")
    # where results go, and what nobody asked for
    output = top.section("output")
    folder = home / output.text("folder", default=path.stem)
    decisions = output.choice("decisions", ("csv", "parquet"), default="csv")
    level = output.number("level", default=0.95, low=0.0, open_low=True, high=0.999999)
    output.finish()
    top.raw("data")
    top.finish()
    if folder.exists() and not folder.is_dir():
        problems.add("output.folder", f"must be a folder, but {folder} is a file.")
    if prior is None:
        return None
    return Campaign(
        path=path,
        name=name,
        quantity=quantity,
        unit=unit,
        wave=wave,
        made_up=made_up,
        notices=notices,
        prior=prior,
        market=market,
        strata=strata,
        currency=currency,
        ceiling=ceiling,
        reports=reports,
        data=data,
        folder=folder,
        decisions_format="parquet" if decisions == "parquet" else "csv",
        level=level or 0.95,
        accept_pilot_overlap=overlap,
        accept_infinite_loss=infinite,
    )


def _texts(section: Section, name: str) -> tuple[str, ...]:
    value = section.raw(name)
    if value is None:
        return ()
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return tuple(value)
    section.wrong(name, 'a list of texts: ["..."]')
    return ()


# -- [money], [reports], [data] ----------------------------------------------------------------------------------------


def _money(section: Section) -> tuple[Currency, float | None]:
    ceiling = section.number("ceiling", default=None, open_low=True)
    code, decimals = section.raw("currency"), section.raw("decimals")
    section.finish()
    if code is None and decimals is None:
        return NO_CURRENCY, ceiling
    try:
        return Currency.of(code, decimals), ceiling
    except InputError as problem:
        section.problems.add(section.field("currency"), str(problem))
        return NO_CURRENCY, ceiling


def _reports(section: Section, home: Path, given: Any, *, grouped: bool, stratum: str | None) -> ReportsSource:
    file = _file(section, home, given)
    group = section.text("group") or None
    if grouped and group is None:
        section.wrong("group", "the name of the column that holds people's groups, because market.prior has groups")
    source = ReportsSource(
        file=file,
        id=section.text("id", default="id"),
        sensitivity=section.text("sensitivity", default="sensitivity"),
        group=group,
        limit=section.text("limit") or None,
    )
    section.finish()
    columns = {"id": source.id, "sensitivity": source.sensitivity, "group": group, "limit": source.limit}
    columns |= {"strata.column": stratum}
    _check_columns(section, file, columns)
    return source


def _data(
    section: Section, home: Path, given: Any, setting: str, reports: ReportsSource, columns: tuple[str, ...] | None
) -> DataSource:
    """``columns`` are those of a survey's answers."""
    file = _file(section, home, given)
    kinds = _LABELS[setting]
    kind = section.choice("kind", kinds, default=kinds[0])
    if kind == "messages":  # one for all questions
        columns = None
    if columns is not None and section.given("value"):
        section.problems.add(section.field("value"), "cannot be stated beside questions, each of which has a column.")
    late = section.choice("late", ("paid", "unpaid"))
    source = DataSource(
        file=file,
        id=section.text("id", default=reports.id),
        value=section.text("value", default="message" if kind == "messages" else "value"),
        columns=columns,
        kind="messages" if kind == "messages" else "simulated_values" if kind == "simulated_values" else "values",
        late="paid" if late == "paid" else "unpaid" if late == "unpaid" else None,
    )
    section.finish()
    wanted = {"value": source.value} if columns is None else {f"questions.{n}": c for n, c in enumerate(columns, 1)}
    _check_columns(section, file, {"id": source.id, **wanted})
    return source


def _file(section: Section, home: Path, given: Any) -> Any:
    name = section.text("file", needed=given is None)
    if given is not None:
        return given
    return STREAM if name == STREAM else str(home / name) if name else ""


def _check_columns(section: Section, file: Any, columns: dict[str, str | None]) -> None:
    """That the file is there and has the columns; a stream or a pipe, which is read once, is looked at later."""
    if not isinstance(file, str) or not file or file == STREAM or (Path(file).exists() and not Path(file).is_file()):
        return
    try:
        there = columns_of(file)
    except HushbidError as problem:
        section.problems.add(section.field("file"), str(problem))
        return
    for field, column in columns.items():
        if column is not None and column not in there:
            shown = ", ".join(map(repr, there[:20])) + (" and more" if len(there) > 20 else "")
            place = field if "." in field else section.field(field)
            section.problems.add(place, f"{file} has no column {column!r}; it has {shown}.")
