"""Decisions about people in tables that need not fit in memory, made and written by an engine.

An engine reads Parquet, files or folders, frames and clusters, and writes Parquet. What is written is counted and
checked under a temporary name, and only then takes its own. Up to so many people can be taken into memory instead: the
engine then only reads them, and decisions, record and report are made as in memory.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from hushbid.campaign.deciding import Decision, DecisionInMemory, Step, decide_about, prior_note
from hushbid.campaign.people import Delivered, People, Reading, rows_of
from hushbid.campaign.telling import refuse_above_spending_limit
from hushbid.campaign.terms import Campaign
from hushbid.common.arrays import id_texts
from hushbid.common.money import with_rounding
from hushbid.common.staging import Staging
from hushbid.disclosure import Answer
from hushbid.engine import releasing as on_sums
from hushbid.engine.delivered import DataNames, data_columns
from hushbid.engine.everybody import everybody
from hushbid.engine.opening import is_url, refuse_existing_address
from hushbid.engine.payouts import checked, decisions, due
from hushbid.engine.pricing import CountedTable, Priced, count
from hushbid.engine.recording import not_recorded, write_record
from hushbid.errors import InputError
from hushbid.record.folder import place_of_folder


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class DecisionOnEngine(Decision):
    """What an engine decided about so many people that it keeps them."""

    priced: Priced
    """The table that it priced."""


def decide_on_engine(
    campaign: Campaign,
    reading: Reading,
    files: Staging,
    step: Step,
    *,
    out: str | Path | None,
    most_here: int,
    data: DataNames = None,
) -> Decision:
    """Decide about everybody: here, with columns of data, up to ``most_here`` people; else the engine writes ``out``.

    An address, on another file system, is written by the engine either way. Refused above the spending limit.
    """
    table, origin = _counted(campaign, reading, step)
    here = _decided_here(table, campaign, origin, data) if table.people <= most_here else None
    if here is not None and not (out is not None and is_url(out)):
        return here
    if out is None:
        message = f"folder must be given: decisions about more than {most_here:,} people are written by the engine."
        raise InputError(message, field="folder")
    with rows_of(campaign.source):
        priced = table.price()
    frame = decisions(priced, campaign.currency, synthetic=campaign.spec.synthetic)
    step("pricing and writing")
    with _written(priced, frame, out, files) as made:
        step("checking what was written")
        paid = checked(made, priced)
        _refuse_above_spending_limit(paid.total_minor, campaign)
    summary, currency = priced.summary, campaign.currency
    return here or DecisionOnEngine(
        market=priced.market,
        figures=summary,
        dropped=summary.dropped,
        currency=currency,
        total_minor=paid.total_minor,
        paying=paid.paying,
        incentive_error=with_rounding(summary.incentive_error, currency.decimals),
        origin=origin,
        question_errors=priced.question_errors,
        priced=priced,
        passes=summary.passes,
    )


def refuse_existing_out(out: str, engine: str) -> None:
    """Say, before everybody is priced, if there is something already where Spark shall write."""
    if is_url(out):
        refuse_existing_address(out, engine)


def _counted(campaign: Campaign, reading: Reading, step: Step) -> tuple[CountedTable, Mapping[str, Any]]:
    """Count everybody where the table is, and look for people of the pilot."""
    market = campaign.market_for(None)
    if reading.on_bad_rows == "drop" and market.max_correlation > 0.0 and market.population is None:
        raise InputError(
            "population must be stated where an engine leaves rows out and max_correlation is not 0: whom the mean is"
            " about must not depend on who can be priced.",
            field="population",
        )
    columns = {
        "bid": campaign.bids.bid,
        "id": campaign.bids.id,
        "group": campaign.bids.group if campaign.prior.is_grouped else None,
        "stratum": campaign.stratum,
        "limit": campaign.bids.limit,
    }
    with rows_of(campaign.source):
        table = count(
            campaign.bids.file,
            market,
            columns,
            engine=reading.engine,
            on_bad_rows=reading.on_bad_rows,
            check_ids=reading.check_ids,
            accept_rounding=campaign.spec.market.accept_rounding,
            progress=lambda message: step(message.what),
        )
    found = None
    if campaign.prior.pilots:
        step("looking for people of the pilot")
        found = table.overlap(campaign.prior.pilots.values())
    return table, campaign.prior.origin(None, accepted=campaign.spec.market.accept_pilot_overlap, counted=found)


def _decided_here(
    table: CountedTable, campaign: Campaign, origin: Mapping[str, Any], data: DataNames
) -> DecisionInMemory:
    """Take everybody of a table into memory, with columns of data, and decide about each."""
    with rows_of(campaign.source):
        columns = None if data is None else data_columns(table, data)
        taken = everybody(table, group=campaign.bids.group, data=columns)
    ids = id_texts(taken.ids.to_pylist())
    if "" in ids:
        raise InputError(
            f"{campaign.source}: column {campaign.bids.id!r} must name everybody, but an id is empty.",
            field=campaign.bids.id,
        )
    people = People(
        source=campaign.source,
        ids=ids,
        id_column=taken.ids,
        bids=taken.bids,
        groups=taken.labels,
        strata=taken.strata,
        roster_by_stratum=None if taken.strata is None else Counter(taken.strata),
        limits=taken.limits,
        dropped=table.dropped,
        id_name=campaign.bids.id,
    )
    delivered = None if data is None else Delivered(data=taken.data, strangers=0)
    known = {"market": table.market, "passes": table.passes, "delivered": delivered}  # a market without all labels
    decision = decide_about(people, campaign, origin, **known)
    _refuse_above_spending_limit(decision.total_minor, campaign)
    return decision


@contextmanager
def _written(priced: Priced, frame: Any, out: str | Path, files: Staging) -> Iterator[str | Path]:
    """Write decisions among the files that appear together, or to an address, which only Spark does."""
    if not is_url(out):
        yield files.make(out, lambda place: priced.write(frame, place))
        return
    from hushbid.engine.backends.spark import moved

    with moved(str(out), force=files.force) as temporary:
        priced.write(frame, temporary)
        yield temporary


def _priced(decision: Decision) -> Priced:
    assert isinstance(decision, DecisionOnEngine)
    return decision.priced


def write_payments(files: Staging, path: Path, campaign: Campaign, decision: Decision, answer: Answer) -> None:
    """Let the engine write what is to be paid, now that data were delivered or not."""
    assert campaign.data is not None
    priced = _priced(decision)
    # as in memory: without drop-outs the payments are those that were decided
    mse = answer.release.error.mse if answer.release.absent else priced.summary.mse
    frame = due(priced, campaign.data.names, campaign.currency, mse=mse, synthetic=campaign.spec.synthetic)
    checked(files.make(path, lambda place: priced.write(frame, place)), priced)


def stage_record(
    files: Staging,
    path: Path,
    campaign: Campaign,
    decision: Decision,
    answer: Answer | None,
    *,
    stamps: Sequence[str],
    notes: Sequence[str],
) -> tuple[Path | None, str | None, str]:
    """Stage the record of people who stay with the engine: where it will be and its hash, or why there is none."""
    release = None if answer is None else answer.release
    if reason := not_recorded(_priced(decision), release):
        return None, None, reason
    record = partial(
        write_record,
        _priced(decision),
        currency=decision.currency,
        total_minor=decision.total_minor,
        group=campaign.bids.group,
        data=None if campaign.data is None else campaign.data.names,
        release=release,
        stamps=stamps,
        notes=[prior_note(decision.origin), *notes],
    )
    place, hashes = place_of_folder(path), list[str]()
    files.make(place, lambda folder: hashes.append(record(folder)))
    if path != place:
        files.remove(path)
    return place, hashes[0], ""


def answer_from_sums(
    campaign: Campaign, decision: Decision, ledger: Path | None, before_first: Callable[[], None]
) -> Answer:
    """Draw the estimate from the sums of the engine's passes, once."""
    assert campaign.data is not None
    asked: dict[str, Any] = {"question": campaign.question, "wave": campaign.spec.wave, "ledger": ledger}
    if campaign.spec.synthetic:
        return on_sums.release_synthetic(_priced(decision), campaign.data.names, **asked)
    return on_sums.answer(_priced(decision), campaign.data.names, **asked, before_first=before_first)


def _refuse_above_spending_limit(total_minor: int, campaign: Campaign) -> None:
    refuse_above_spending_limit(total_minor, campaign, lambda: "hushbid plan forecasts what such a campaign costs.")
