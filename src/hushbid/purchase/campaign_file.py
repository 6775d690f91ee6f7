"""The campaign file: everything a purchase needs, in TOML. docs/reference/campaign-file.md describes every field.

Reading it tells all its problems at once, each with its line and field: a misspelt name, a number out of range, a file
that is not there, a column that the file does not have.
"""

from pathlib import Path
from typing import Any

from hushbid.common.money import NO_CURRENCY, Currency
from hushbid.common.staging import STREAM
from hushbid.common.tables import ENDINGS, columns_of
from hushbid.disclosure.ledger.question import LAST_WAVE
from hushbid.errors import HushbidError, InputError
from hushbid.purchase.campaign import BidsSource, Campaign, DataSource
from hushbid.purchase.market_section import read_market
from hushbid.purchase.people import Kind
from hushbid.purchase.questions_section import read_survey
from hushbid.purchase.strata_section import read_strata
from hushbid.purchase.toml_sections import Problems, Section, toml_text, toml_values

_LABELS: dict[str, tuple[Kind, ...]] = {"central": ("values",), "local": ("messages", "simulated_values")}


def read_campaign(path: Path, *, bids: Any = None, data: Any = None) -> Campaign:
    """Read a campaign file; one error tells everything that is wrong with it.

    ``bids`` and ``data``, columns by name or frames, stand in for the files that it names, or need not name. Where
    only ``bids`` are given, the data are a column of theirs.
    """
    return campaign_in(toml_text(path), path, bids=bids, data=data)


def campaign_in(text: str, path: Path, *, bids: Any = None, data: Any = None) -> Campaign:
    """The campaign that a file of this text at this path would state; see `read_campaign`."""
    problems = Problems(str(path), text)
    campaign = _read(
        Section(toml_values(text, path), "", problems), path, problems, bids, bids if data is None else data
    )
    problems.refuse()
    assert campaign is not None
    return campaign


def _read(top: Section, path: Path, problems: Problems, given: Any, given_data: Any) -> Campaign | None:
    # what is asked
    home = path.parent
    survey, asked = read_survey(top), top.given("questions")
    title = top.text("title", default=path.stem)
    question = top.text("question", default="the answers" if asked else "the mean")
    unit = top.text("unit")
    if asked and unit:
        problems.add("unit", "cannot be stated beside questions, each of which has its own.")
    wave, synthetic = top.count("wave", most=LAST_WAVE) or 1, top.flag("synthetic")
    notices = _texts(top, "notices")
    # the market and its money
    currency, spending_limit = _money(top.section("money"))
    market_section = top.section("market", needed=True)
    strata = read_strata(top)
    market, prior = read_market(market_section, home, currency, asked=asked, survey=survey, strata=strata)
    overlap = market_section.flag("accept_pilot_overlap")
    infinite = market_section.flag("accept_infinite_loss")
    rounding = market_section.flag("accept_rounding")
    market_section.finish()
    # people and their data
    grouped = prior is not None and prior.is_grouped
    column = None if strata is None else strata.column
    bids = _bids(top.section("bids", needed=given is None), home, given, grouped=grouped, stratum=column)
    data = None
    if top.given("data"):
        columns = None if not asked else () if survey is None else survey.columns
        data = _data(top.section("data"), home, given_data, market["setting"], bids, columns)
    if data is not None and given is None and data.file == STREAM and bids.file == STREAM:
        problems.add("data.file", "cannot be standard input as well as bids.file.")
    # where results go, and what nobody asked for
    output = top.section("output")
    folder = home / output.text("folder", default=path.stem)
    decisions = output.choice("decisions", ENDINGS, default="csv")
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
        title=title,
        question=question,
        unit=unit,
        wave=wave,
        synthetic=synthetic,
        notices=notices,
        prior=prior,
        market=market,
        strata=strata,
        currency=currency,
        spending_limit=spending_limit,
        bids=bids,
        data=data,
        folder=folder,
        decisions_format=decisions or "csv",
        level=level or 0.95,
        accept_pilot_overlap=overlap,
        accept_infinite_loss=infinite,
        accept_rounding=rounding,
    )


def _texts(section: Section, name: str) -> tuple[str, ...]:
    value = section.raw(name)
    if value is None:
        return ()
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return tuple(value)
    section.wrong(name, 'a list of texts: ["..."]')
    return ()


# -- [money], [bids], [data] ----------------------------------------------------------------------------------------


def _money(section: Section) -> tuple[Currency, float | None]:
    spending_limit = section.number("spending_limit", default=None, open_low=True)
    code, decimals = section.raw("currency"), section.raw("decimals")
    section.finish()
    if code is None and decimals is None:
        return NO_CURRENCY, spending_limit
    try:
        return Currency.of(code, decimals), spending_limit
    except InputError as problem:
        section.problems.add(section.field("currency"), str(problem))
        return NO_CURRENCY, spending_limit


def _bids(section: Section, home: Path, given: Any, *, grouped: bool, stratum: str | None) -> BidsSource:
    file = _file(section, home, given)
    group = section.text("group") or None
    if grouped and group is None:
        section.wrong("group", "the name of the column that holds people's groups, because market.prior has groups")
    source = BidsSource(
        file=file,
        id=section.text("id", default="id"),
        bid=section.text("bid", default="bid"),
        group=group,
        limit=section.text("limit") or None,
    )
    section.finish()
    columns = {"id": source.id, "bid": source.bid, "group": group, "limit": source.limit}
    columns |= {"strata.column": stratum}
    _check_columns(section, file, columns)
    return source


def _data(
    section: Section, home: Path, given: Any, setting: str, bids: BidsSource, columns: tuple[str, ...] | None
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
        id=section.text("id", default=bids.id),
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
