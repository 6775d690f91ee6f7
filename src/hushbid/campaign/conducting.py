"""The whole way of one purchase, whatever says what is wanted: read, decide, release, record, report.

Everything is computed before anything takes its name, and then appears together. The one exception is the estimate: it
is drawn once and kept in the release ledger, under what is asked of whom, before it is shown, so that whatever happens
afterwards, and whatever options and folders are given, asking again gives the same one.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hushbid.campaign.deciding import LARGEST_HERE, Decided, Step, decide, record_of
from hushbid.campaign.people import Delivered, Reading
from hushbid.campaign.releasing import Place, answer_from, delivered_in, stamps_of
from hushbid.campaign.results import Purchase
from hushbid.campaign.terms import Campaign
from hushbid.campaign.writing import Names, notes_of, page_of, stage_on_engine, write_documents, write_tables
from hushbid.common.staging import Staging, refuse_clashes, refuse_existing
from hushbid.common.tables import is_table
from hushbid.disclosure import Answer
from hushbid.disclosure.ledger.once import named
from hushbid.errors import InputError, MissingExtra
from hushbid.mechanism.releasing import plan_of
from hushbid.record.folder import require_table_library
from hushbid.report import AuditLine
from hushbid.report.sections.audits import lines_of

if TYPE_CHECKING:
    from hushbid.engine import Priced  # engines are loaded where one is asked for


def conduct(
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
            f"{wanted.called}: strata.each asks for an estimate for each stratum: run_by_stratum() buys them, and"
            " hushbid run.",
            field="strata.each",
        )
    if not is_table(wanted.bids.file) and reading.engine == "memory":
        reading = replace(reading, engine="auto")  # it stays where it is, and says itself which engine reads it
    refuse_clashes(wanted.outputs, wanted.inputs)
    if reading.engine != "memory":
        _refuse_other_table(wanted)
    names = None if wanted.folder is None else Names.of(wanted, wanted.folder, reading)
    if names is not None and not force:
        refuse_existing([*names.last])
    # buy; from here on files wait under temporary names and appear together
    with Staging(force=force, folder=wanted.folder) as files:
        bought = _read_and_decide(wanted, reading, files, names, step)
        require_table_library(bought.decided.figures.people)
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
    """Everybody's data, if they were read with the bids."""

    priced: "Priced | None" = None
    """The table that an engine priced; None where everybody is here."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Found:
    """The estimate, if there is one, and what is to be said about the data."""

    answer: Answer | None = None
    strangers: int = 0
    """How many people in the data did not bid."""

    missing: str = ""
    """Why there is no estimate although there are data."""

    notes: tuple[str, ...] = ()


def complete(
    files: Staging, names: Names | None, campaign: Campaign, bought: Bought, found: Found, *, audit: bool, step: Step
) -> Purchase:
    """Attack a purchase, record it, and let its files wait for their names, the last of them last."""
    decided, everybody, answer = bought.decided, bought.decided.everybody, found.answer
    # everywhere the same is said of safeguards that were overridden
    stamps = stamps_of(decided, campaign, answer)
    step("auditing")
    audits: tuple[AuditLine, ...] = ()
    if audit and everybody is not None and decided.figures.active and campaign.data is not None:
        from hushbid.audit.suite import audits_of  # late: with all that attacks take it is much to load

        audits = lines_of(audits_of(everybody.outcome), everybody.outcome)
    step("writing")
    record, record_hash, unrecorded, page, paths = None, None, "", None, list[Path]()
    # the report is computed beside; tables come first, which Python's lock does not hold up
    with ThreadPoolExecutor(max_workers=1) as beside:
        if names is not None and everybody is not None and campaign.data is not None:
            page = beside.submit(page_of, campaign, decided, everybody, answer, audits)
        if names is not None:
            paths += write_tables(files, names, campaign, decided, bought.priced, answer)
        step("recording")
        if everybody is not None:
            release = None if answer is None else answer.release
            record = record_of(everybody, decided.origin, release, stamps=stamps, notes=notes_of(campaign, answer))
            record_hash = record.hash
        elif names is not None and bought.priced is not None:
            staged = stage_on_engine(files, names.record, campaign, decided, bought.priced, answer, stamps)
            paths += [] if staged.path is None else [staged.path]
            record_hash, unrecorded = staged.hash, staged.reason
        if names is not None:
            paths += write_documents(files, names, campaign, decided, answer, record, stamps, page)
    return Purchase(
        campaign=campaign,
        decided=decided,
        answer=answer,
        record=record,
        record_hash=record_hash,
        unrecorded=unrecorded,
        stamps=tuple(stamps),
        strangers=found.strangers,
        missing=found.missing,
        audits=audits,
        files=tuple(paths),
        data_notes=found.notes,
    )


# -- read and decide ---------------------------------------------------------------------------------------------------


def _read_and_decide(campaign: Campaign, reading: Reading, files: Staging, names: Names | None, step: Step) -> Bought:
    """On an engine everybody is taken here, if so many fit; else it writes its decisions itself."""
    if reading.engine == "memory":
        return Bought(decided=decide(campaign, reading, step))

    from hushbid.campaign.on_engine import count_on_engine, decide_here, price_on_engine, write_decisions

    found = count_on_engine(campaign, reading, step)
    if found.table.people <= LARGEST_HERE:
        here = decide_here(found, None if campaign.data is None else campaign.data.names)
        return Bought(decided=here.decided, delivered=here.delivered)
    if names is None:
        told = f"folder must be given: decisions about more than {LARGEST_HERE:,} people are written by the engine."
        raise InputError(told, field="folder")
    priced = price_on_engine(found)
    paid = write_decisions(priced, files, names.decisions, campaign, step, synthetic=campaign.synthetic)
    return Bought(decided=found.decided(priced, paid), priced=priced)


def _refuse_other_table(campaign: Campaign) -> None:
    """An engine does not join: the data must stand beside the bids."""
    data = campaign.data
    if data is not None and not _same_table(data.file, campaign.bids.file):
        columns = f"a column {data.names[0]!r}" if not data.answers else "a column for each question"
        raise InputError(
            f"{campaign.called}: on an engine data.file must be the table of bids.file, with"
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
    people, asked = everybody.people, campaign
    # ids are hashed beside: that is Python's work, and reading data mostly is not
    with ThreadPoolExecutor(max_workers=1) as beside:
        names = None if people.ids is None or asked.synthetic else beside.submit(named, people.ids)
        found = bought.delivered
        if found is None:
            found = delivered_in(source, people, everybody.outcome.market)
        plan = plan_of(everybody.outcome, from_engine=everybody.from_engine)
        late_field = "late" if campaign.path is None else "data.late"
        answer = answer_from(plan, found.data, asked, people, place, names=names, late_field=late_field)
    return Found(answer=answer, strangers=found.strangers, notes=found.notes)


def _answer_from_sums(campaign: Campaign, priced: "Priced", columns: tuple[str, ...], place: Place) -> Answer:
    from hushbid.engine import releasing as on_sums

    question, wave, ledger = campaign.question, campaign.wave, place.ledger
    if campaign.synthetic:
        return on_sums.release_synthetic(priced, columns, question=question, wave=wave, ledger=ledger)
    place.refuse_former()
    asked, people = campaign, priced.summary.people
    return on_sums.answer(
        priced,
        columns,
        question=question,
        wave=wave,
        ledger=ledger,
        before_first=lambda: place.refuse_other_summary(asked, people),
    )
