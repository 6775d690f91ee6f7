"""A campaign from its file to its results: read, buy, release, record, report, whoever reads the people.

Everything is computed before anything takes its name, and then appears together. The one exception is the estimate: it
is drawn once and kept in the account's store, under what is asked of whom, before anybody sees it, so that whatever
happens afterwards, and whatever options and folders are given, asking again gives the same one.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from hushbid.disclosure import Answer
from hushbid.durable import Staging, refuse_clashes, refuse_existing
from hushbid.engine import Priced
from hushbid.engine import releasing as on_sums
from hushbid.errors import InputError, MissingExtra
from hushbid.mechanism import Market
from hushbid.mechanism.market import plan_of
from hushbid.purchase.campaign_file import Campaign, DataSource, read_campaign
from hushbid.purchase.deciding import LARGEST_RECORD, Step, Wanted, decide
from hushbid.purchase.on_engine import PASSES, price_on_engine, taken_here, write_decisions
from hushbid.purchase.people import AT_ONCE, Delivered, People, Reading, read_answers, read_data
from hushbid.purchase.releasing import answer_from, store_beside
from hushbid.purchase.results import Purchase
from hushbid.purchase.writing import Bought, Drawn, Names, asked_of, complete


def steps_of(reading: Reading) -> int:
    """How many steps `buy` tells of, at most."""
    return 4 + (2 if reading.engine == "memory" else PASSES)


def buy(
    campaign: Campaign | str | Path,
    *,
    reports: Any = None,
    data: Any = None,
    reading: Reading = AT_ONCE,
    audit: bool = True,
    force: bool = False,
    estimate_needed: bool = True,
    step: Step = lambda told: None,
) -> Purchase:
    """Run a campaign, and write what it comes to into its folder.

    Parameters
    ----------
    campaign
        A campaign, or its file.
    reports, data
        Stand in for the files that a campaign file names: arrays by column name, or a frame, which an engine reads and
        which holds the reports and the data.
    reading
        Who reads the people, and what becomes of rows that cannot be priced.
    audit
        Whether our own claims are attacked for the report.
    force
        Files may be written again; the estimate is not drawn again.
    estimate_needed
        If not, a missing package that draws noise leaves the estimate out.
    step
        Told what is done next.
    """
    # read what is wanted, and refuse at once what cannot be done or would be lost
    wanted = campaign
    if not isinstance(wanted, Campaign):
        wanted = read_campaign(Path(wanted), reports=reports, data=data)
    if wanted.strata is not None and wanted.strata.each:
        told = (
            f"{wanted.path}: strata.each asks for an estimate for each stratum: buy_each() buys them, and hushbid run."
        )
        raise InputError(told, field="strata.each")
    if not isinstance(wanted.reports.file, str | Path | Mapping) and reading.engine == "memory":
        reading = replace(reading, engine="auto")  # a frame says itself which engine reads it
    refuse_clashes(wanted.outputs, wanted.inputs)
    if reading.engine != "memory":
        _refuse_other_table(wanted)
    names = Names.of(wanted, reading)
    if not force:
        refuse_existing([names.last])
    # buy; from here on files wait under temporary names and appear together
    with Staging(force=force) as files:
        bought = _read_and_decide(wanted, reading, files, names, step)
        step("releasing")
        drawn = Drawn()
        if wanted.data is not None and bought.decided.figures.active:
            try:
                drawn = _drawn(wanted, bought)
            except MissingExtra as problem:
                if estimate_needed:
                    raise
                drawn = Drawn(missing=str(problem))
        return complete(files, names, wanted, bought, drawn, audit=audit, step=step)


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
    )


def _read_and_decide(campaign: Campaign, reading: Reading, files: Staging, names: Names, step: Step) -> Bought:
    """On an engine everybody is taken here, if so many fit; else it writes its decisions itself."""
    wanted = wanted_by(campaign)
    if names.summary is None:
        return Bought(decided=decide(wanted, reading, step), delivered=None, priced=None)

    found = price_on_engine(wanted, reading, step)
    priced = found.priced
    if priced.summary.people > LARGEST_RECORD:
        paid = write_decisions(priced, files, names.decisions, wanted, step, made_up=campaign.made_up)
        return Bought(decided=found.decided(paid), delivered=None, priced=priced)
    step("taking everybody to one place")
    here = taken_here(priced, wanted, None if campaign.data is None else campaign.data.names)
    return Bought(decided=found.decided(here.paid, here.everybody), delivered=here.delivered, priced=priced)


def _refuse_other_table(campaign: Campaign) -> None:
    """An engine does not join: the data must stand beside the reports."""
    data = campaign.data
    if data is not None and not _same_table(data.file, campaign.reports.file):
        columns = f"a column {data.names[0]!r}" if data.columns is None else "a column for each question"
        raise InputError(
            f"{campaign.path}: on an engine data.file must be the table of reports.file, with"
            f" {columns} of data; join the two first, or use engine='memory'.",
            field="data.file",
        )
    if data is not None and data.kind == "simulated_values":
        raise InputError(f"{campaign.path}: data.kind 'simulated_values' needs engine='memory'.", field="data.kind")


def _same_table(one: Any, other: Any) -> bool:
    if isinstance(one, str | Path) and isinstance(other, str | Path):
        return Path(one).resolve() == Path(other).resolve()
    return one is other


# -- the one estimate --------------------------------------------------------------------------------------------------


def _drawn(campaign: Campaign, bought: Bought) -> Drawn:
    """The estimate, and how many people in the data did not report."""
    source, everybody = campaign.data, bought.decided.everybody
    assert source is not None
    if everybody is None:
        assert bought.priced is not None
        return Drawn(answer=_answer_from_sums(campaign, bought.priced, source.names))
    people = everybody.people
    found = bought.delivered
    if found is None:
        found = delivered_in(source, people, everybody.outcome.market)
    plan = plan_of(everybody.outcome, from_engine=everybody.from_engine)
    answer = answer_from(plan, found.data, asked_of(campaign), people, campaign.folder, late_field="data.late")
    return Drawn(answer=answer, strangers=found.strangers)


def delivered_in(source: DataSource, people: People, market: Market) -> Delivered:
    """What the file of data holds: answers to a survey, or one datum or message of each person."""
    if market.survey is not None and source.columns is not None:
        return read_answers(source.file, people, id_column=source.id, columns=source.columns, questions=market.survey)
    return read_data(source.file, people, id_column=source.id, value=source.value, kind=source.kind)


def _answer_from_sums(campaign: Campaign, priced: Priced, columns: tuple[str, ...]) -> Answer:
    if campaign.made_up:
        return on_sums.release_made_up(priced, columns)
    claims = store_beside(campaign.folder)
    return on_sums.answer(priced, columns, claims=claims, question=campaign.quantity, wave=campaign.wave)
