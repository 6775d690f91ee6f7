"""The whole way: read, buy, release, record, report, whoever reads the people, and whatever says what is wanted.

`buy` takes people and a market, `run_campaign` a campaign file; both go the same way. Everything is computed before
anything takes its name, and then appears together. The one exception is the estimate: it is drawn once and kept in the
release ledger, under what is asked of whom, before it is shown, so that whatever happens afterwards, and whatever
options and folders are given, asking again gives the same one.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from hushbid.arrays import as_count, as_number
from hushbid.disclosure import Answer
from hushbid.disclosure.once import named
from hushbid.disclosure.once_store import ledger_folder
from hushbid.durable import Staging, refuse_clashes, refuse_existing
from hushbid.errors import InputError, MissingExtra
from hushbid.mechanism import Market
from hushbid.mechanism.releasing import plan_of
from hushbid.money import NO_CURRENCY, Currency
from hushbid.purchase.campaign import Campaign, DataSource, ReportsSource, data_source, fields_of, prior_of, with_coin
from hushbid.purchase.campaign_file import read_campaign
from hushbid.purchase.deciding import LARGEST_RECORD, Decided, Step, Wanted, decide, record_of
from hushbid.purchase.people import AT_ONCE, Delivered, Kind, People, Reading, read_answers, read_data
from hushbid.purchase.releasing import Asked, Place, answer_from, stamps_of
from hushbid.purchase.results import Purchase
from hushbid.purchase.writing import Names, notes_of, report_of, write_documents, write_tables
from hushbid.report import AuditLine
from hushbid.report.sections.audits import lines_of
from hushbid.tables import is_table, read_again

if TYPE_CHECKING:
    from hushbid.engine import Priced  # engines are loaded where one is asked for


def _silent(told: str) -> None:
    """Nobody is told what is done next."""


def steps_of(reading: Reading) -> int:
    """How many steps `run_campaign` tells of, at most."""
    if reading.engine == "memory":
        return 6
    from hushbid.purchase.on_engine import PASSES

    return 4 + PASSES


def buy(
    people: Any,
    market: Market,
    *,
    data: Any = None,
    id: str = "id",
    sensitivity: str = "sensitivity",
    group: str | None = None,
    limit: str | None = None,
    value: str | Sequence[str] | None = None,
    kind: Kind | None = None,
    late: Literal["paid", "unpaid"] | None = None,
    name: str = "purchase",
    question: str | None = None,
    wave: int = 1,
    made_up: bool = False,
    currency: str | None = None,
    ceiling: float | None = None,
    accept_infinite_loss: bool = False,
    accept_rounding: bool = False,
    reading: Reading = AT_ONCE,
    folder: str | Path | None = None,
    ledger: str | Path | None = None,
    force: bool = False,
) -> Purchase:
    """Buy from people in files, arrays or frames: decide, and, if there are data, draw the one estimate.

    Parameters
    ----------
    people
        The path of a CSV, Parquet or Excel file, a mapping of arrays by column name, or any table that speaks Arrow:
        a pandas or Polars frame, a ``pyarrow.Table``, a DuckDB relation, narwhals' frames and others. What does not, a
        lazy Polars frame or Spark's, is left where it is and priced by its engine. Arrays go by position: the index of
        a series is not looked at.
    market
        What is fixed before anybody reports. For different priors by group, its prior is ``Grouped(priors, [])`` and
        ``group`` names the column of labels.
    data
        The table of what people delivered, of any of those kinds; people find their rows by ``id``. If it is left out
        and ``value`` is not, the data are a column of ``people``; without either, only decisions are made.
    id, sensitivity, group, limit
        The columns that name people, hold their reports, their groups and the largest losses that they accept.
    value
        The column of data; of a survey, one for each question. Left out, it is ``"value"``, ``"message"`` in the local
        setting, or the questions' names.
    kind, late, wave, made_up
        As in a campaign file: see docs/reference/campaign-file.md.
    name, question
        What the purchase is called, and what is asked, which is required to draw an estimate of real people. The
        question and the people's ids name the one estimate that is ever drawn: asked again, it is shown again.
    currency, ceiling
        An ISO 4217 code, whose minor units payments are rounded up to, and the most that may be spent.
    accept_infinite_loss
        Release although somebody named no price and loses all privacy.
    accept_rounding
        Buy although rounding payments up is expected to take more than 5 % of a budget.
    reading
        Which engine reads the people, and what becomes of rows that cannot be priced.
    folder, force
        Where to write tables, record and report, as ``hushbid run`` does; nothing is written if it is left out.
        ``force`` replaces files.
    ledger
        The folder of the release ledger, which keeps the estimate: by default ``HUSHBID_LEDGER``, or the user's.

    >>> from hushbid import Market, Uniform
    >>> people = {"id": ["ann", "bob", "cem"], "sensitivity": [1.1, 1.2, 1.9]}
    >>> bought = buy(people, Market(prior=Uniform(1, 2), buyer_weight=10, user_weight=0), currency="EUR")
    >>> bought.to_frame("pandas")[["id", "payment", "currency"]].values.tolist()
    [['ann', 2.73, 'EUR'], ['bob', 2.13, 'EUR'], ['cem', 0.0, 'EUR']]
    """
    given: dict[str, object] = {"market": market, "reading": reading, "folder": folder, "ledger": ledger}
    given |= {"name": name, "question": question, "id": id, "sensitivity": sensitivity, "group": group, "limit": limit}
    given |= {"made_up": made_up, "accept_infinite_loss": accept_infinite_loss, "force": force}
    given |= {"accept_rounding": accept_rounding}
    _refuse_other_kinds(given)
    shared = data is None or data is people
    people = read_again(people)
    source = people if shared else read_again(data)
    if ceiling is not None and not as_number(ceiling, "ceiling") > 0.0:
        raise InputError(f"ceiling must be above 0, got {ceiling!r}.", field="ceiling")
    as_count(wave, "wave", least=1)
    if question is None and not made_up and not (data is None and value is None):
        raise InputError("question must say what is asked, since an estimate is drawn once for it.", field="question")
    coins = NO_CURRENCY if currency is None else Currency.of(currency)
    wanted = Campaign(
        path=None,
        name=name,
        quantity="the mean" if question is None else question,
        unit="",
        wave=wave,
        made_up=made_up,
        notices=(),
        prior=prior_of(market, group),
        market=fields_of(market) | {"goal": with_coin(market.stated_goal, coins)},
        currency=coins,
        ceiling=ceiling,
        reports=ReportsSource(file=people, id=id, sensitivity=sensitivity, group=group, limit=limit),
        data=None
        if data is None and value is None
        else data_source(market, source, id=id, value=value, kind=kind, late=late),
        folder=None if folder is None else Path(folder),
        decisions_format="csv",
        level=0.95,
        accept_pilot_overlap=False,
        accept_infinite_loss=accept_infinite_loss,
        accept_rounding=accept_rounding,
    )
    return _conduct(
        wanted,
        reading,
        ledger=None if ledger is None else ledger_folder(ledger),
        audit=False,
        force=force,
        estimate_needed=True,
        step=_silent,
    )


_TEXT, _TRUTH = (str, "a text"), (bool | np.bool_, "True or False")
_KINDS: dict[str, tuple[Any, str]] = {
    "market": (Market, "a Market"),
    "reading": (Reading, "a Reading"),
    **dict.fromkeys(("folder", "ledger"), (str | Path | None, "a path")),
    **dict.fromkeys(("name", "id", "sensitivity"), _TEXT),
    "question": (str | None, "a text"),
    **dict.fromkeys(("group", "limit"), (str | None, "the name of a column")),
    **dict.fromkeys(("made_up", "accept_infinite_loss", "accept_rounding", "force"), _TRUTH),
}


def _refuse_other_kinds(given: dict[str, object]) -> None:
    """Arguments of other kinds, of which only the kind is told: one may be the people, in the wrong place."""
    for name, value in given.items():
        kind, words = _KINDS[name]
        if not isinstance(value, kind):
            raise InputError(f"{name} must be {words}, got {type(value).__name__}.", field=name)


def run_campaign(
    campaign: Campaign | str | Path,
    *,
    reports: Any = None,
    data: Any = None,
    reading: Reading = AT_ONCE,
    audit: bool = True,
    ledger: str | Path | None = None,
    force: bool = False,
    estimate_needed: bool = True,
    step: Step = _silent,
) -> Purchase:
    """Run a campaign, and write what it comes to into its folder.

    Parameters
    ----------
    campaign
        A campaign, or its file.
    reports, data
        Stand in for the files that a campaign file names: whatever `buy` takes as people and data. If only ``reports``
        are given, the data are a column of theirs.
    reading
        Who reads the people, and what becomes of rows that cannot be priced.
    audit
        Whether our own claims are attacked for the report.
    ledger
        The folder of the release ledger; by default ``HUSHBID_LEDGER``, or the user's.
    force
        Files may be written again; the estimate is not drawn again.
    estimate_needed
        If not, a missing package that draws noise leaves the estimate out.
    step
        Told what is done next.
    """
    wanted = campaign
    if not isinstance(wanted, Campaign):
        wanted = read_campaign(Path(wanted), reports=read_again(reports), data=data)
    return _conduct(
        wanted,
        reading,
        ledger=None if ledger is None else ledger_folder(ledger),
        audit=audit,
        force=force,
        estimate_needed=estimate_needed,
        step=step,
    )


def _conduct(
    wanted: Campaign,
    reading: Reading,
    *,
    ledger: Path | None,
    audit: bool,
    force: bool,
    estimate_needed: bool,
    step: Step,
) -> Purchase:
    # refuse at once what cannot be done or would be lost
    if wanted.each:
        raise InputError(
            f"{wanted.called}: each asks for an estimate for each stratum: run_by_stratum() buys them for a campaign"
            " file, and hushbid run; for a market, buy in each of market.by_stratum().",
            field="each",
        )
    if not is_table(wanted.reports.file) and reading.engine == "memory":
        reading = replace(reading, engine="auto")  # it stays where it is, and says itself which engine reads it
    refuse_clashes(wanted.outputs, wanted.inputs)
    if reading.engine != "memory":
        _refuse_other_table(wanted)
    names = None if wanted.folder is None else Names.of(wanted, wanted.folder, reading)
    if names is not None and not force:
        refuse_existing([names.last])
    # buy; from here on files wait under temporary names and appear together
    with Staging(force=force, folder=wanted.folder) as files:
        bought = _read_and_decide(wanted, reading, files, names, step)
        step("releasing")
        found = Found()
        if wanted.data is not None and bought.decided.figures.active:
            try:
                found = _answer(wanted, bought, place_of(ledger, names))
            except MissingExtra as problem:
                if estimate_needed:
                    raise
                found = Found(missing=str(problem))
        return complete(files, names, wanted, bought, found, audit=audit, step=step)


# -- the estimate is there, or there is none ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Bought:
    """What was decided, and where the data are."""

    decided: Decided
    delivered: Delivered | None = None
    """Everybody's data, if they were read with the reports."""

    priced: "Priced | None" = None
    """The engine's table."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Found:
    """The estimate, if there is one, and what is to be said about the data."""

    answer: Answer | None = None
    strangers: int = 0
    """How many people in the data did not report."""

    missing: str = ""
    """Why there is no estimate although there are data."""

    notes: tuple[str, ...] = ()


def complete(
    files: Staging, names: Names | None, campaign: Campaign, bought: Bought, found: Found, *, audit: bool, step: Step
) -> Purchase:
    """Attack a purchase, record it, and let its files wait for their names, the last of them last."""
    decided, everybody, answer = bought.decided, bought.decided.everybody, found.answer
    # everywhere the same is said of safeguards that were overridden
    stamps = stamps_of(decided, asked_of(campaign), answer)
    step("auditing")
    audits: tuple[AuditLine, ...] = ()
    if audit and everybody is not None and decided.figures.active and campaign.data is not None:
        from hushbid.audit.suite import audits_of  # late: with all that attacks take it is much to load

        audits = lines_of(audits_of(everybody.outcome), everybody.outcome)
    step("writing")
    record, page, paths = None, None, list[Path]()
    # the report is computed beside; tables come first, which Python's lock does not hold up
    with ThreadPoolExecutor(max_workers=1) as beside:
        if names is not None and everybody is not None and campaign.data is not None:
            page = beside.submit(report_of, campaign, decided, everybody, answer, audits)
        if names is not None:
            paths += write_tables(files, names, campaign, decided, bought.priced, answer)
        step("recording")
        if everybody is not None:
            release = None if answer is None else answer.release
            record = record_of(everybody, decided.origin, release, stamps=stamps, notes=notes_of(campaign))
        if names is not None:
            paths += write_documents(files, names, campaign, decided, answer, record, stamps, page)
    return Purchase(
        campaign=campaign,
        decided=decided,
        answer=answer,
        record=record,
        stamps=tuple(stamps),
        strangers=found.strangers,
        missing=found.missing,
        audits=audits,
        files=tuple(paths),
        data_notes=found.notes,
    )


# -- read and decide ---------------------------------------------------------------------------------------------------


def wanted_by(campaign: Campaign) -> Wanted:
    """What a campaign buys from whom."""
    source = campaign.reports
    return Wanted(
        reports=source.file,
        id=source.id,
        sensitivity=source.sensitivity,
        group=source.group,
        stratum=None if campaign.strata is None else campaign.strata.column,
        limit=source.limit,
        prior=campaign.prior,
        market=campaign.market_for,
        currency=campaign.currency,
        ceiling=campaign.ceiling,
        accept_pilot_overlap=campaign.accept_pilot_overlap,
        accept_rounding=campaign.accept_rounding,
    )


def _read_and_decide(campaign: Campaign, reading: Reading, files: Staging, names: Names | None, step: Step) -> Bought:
    """On an engine everybody is taken here, if so many fit; else it writes its decisions itself."""
    wanted = wanted_by(campaign)
    if reading.engine == "memory":
        return Bought(decided=decide(wanted, reading, step))

    from hushbid.purchase.on_engine import price_on_engine, taken_here, write_decisions

    found = price_on_engine(wanted, reading, step)
    priced = found.priced
    if priced.summary.people > LARGEST_RECORD:
        if names is None:
            told = (
                f"folder must be given: decisions about more than {LARGEST_RECORD:,} people are written by the engine."
            )
            raise InputError(told, field="folder")
        paid = write_decisions(priced, files, names.decisions, wanted, step, made_up=campaign.made_up)
        return Bought(decided=found.decided(paid), priced=priced)
    step("taking everybody to one place")
    here = taken_here(priced, wanted, None if campaign.data is None else campaign.data.names)
    return Bought(decided=found.decided(here.paid, here.everybody), delivered=here.delivered, priced=priced)


def _refuse_other_table(campaign: Campaign) -> None:
    """An engine does not join: the data must stand beside the reports."""
    data = campaign.data
    if data is not None and not _same_table(data.file, campaign.reports.file):
        columns = f"a column {data.names[0]!r}" if data.columns is None else "a column for each question"
        raise InputError(
            f"{campaign.called}: on an engine data.file must be the table of reports.file, with"
            f" {columns} of data; join the two first, or use engine='memory'.",
            field="data.file",
        )
    if data is not None and data.kind == "simulated_values":
        raise InputError(f"{campaign.called}: data.kind 'simulated_values' needs engine='memory'.", field="data.kind")


def _same_table(one: Any, other: Any) -> bool:
    if isinstance(one, str | Path) and isinstance(other, str | Path):
        return Path(one).resolve() == Path(other).resolve()
    return one is other


# -- the one estimate --------------------------------------------------------------------------------------------------


def place_of(ledger: Path | None, names: Names | None) -> Place:
    """Where an estimate is kept, and what results it would replace."""
    if names is None:
        return Place(ledger=ledger)
    return Place(ledger=ledger, folder=names.record.parent, record=names.record, summary=names.summary)


def _answer(campaign: Campaign, bought: Bought, place: Place) -> Found:
    source, everybody = campaign.data, bought.decided.everybody
    assert source is not None
    if everybody is None:
        assert bought.priced is not None
        return Found(answer=_answer_from_sums(campaign, bought.priced, source.names, place))
    people, asked = everybody.people, asked_of(campaign)
    # ids are hashed beside: that is Python's work, and reading data mostly is not
    with ThreadPoolExecutor(max_workers=1) as beside:
        names = None if people.ids is None or asked.made_up else beside.submit(named, people.ids)
        found = bought.delivered
        if found is None:
            found = delivered_in(source, people, everybody.outcome.market)
        plan = plan_of(everybody.outcome, from_engine=everybody.from_engine)
        late_field = "late" if campaign.path is None else "data.late"
        answer = answer_from(plan, found.data, asked, people, place, names=names, late_field=late_field)
    return Found(answer=answer, strangers=found.strangers, notes=found.notes)


def delivered_in(source: DataSource, people: People, market: Market) -> Delivered:
    """What the file of data holds: answers to a survey, or one datum or message of each person."""
    if market.survey is not None and source.columns is not None:
        return read_answers(source.file, people, id_column=source.id, columns=source.columns, questions=market.survey)
    return read_data(source.file, people, id_column=source.id, value=source.value, kind=source.kind)


def asked_of(campaign: Campaign) -> Asked:
    """What a campaign asks, and what it accepts by name."""
    return Asked(
        question=campaign.quantity,
        wave=campaign.wave,
        made_up=campaign.made_up,
        simulated=campaign.data is not None and campaign.data.kind == "simulated_values",
        accept_infinite_loss=campaign.accept_infinite_loss,
        late=None if campaign.data is None else campaign.data.late,
    )


def _answer_from_sums(campaign: Campaign, priced: "Priced", columns: tuple[str, ...], place: Place) -> Answer:
    from hushbid.engine import releasing as on_sums

    question, wave, ledger = campaign.quantity, campaign.wave, place.ledger
    if campaign.made_up:
        return on_sums.release_made_up(priced, columns, question=question, wave=wave, ledger=ledger)
    place.refuse_former()
    asked, people = asked_of(campaign), priced.summary.people
    return on_sums.answer(
        priced,
        columns,
        question=question,
        wave=wave,
        ledger=ledger,
        before_first=lambda: place.refuse_other_summary(asked, people),
    )
