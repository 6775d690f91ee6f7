"""Decisions about people in tables that need not fit in memory, made and written by an engine.

An engine reads Parquet, files or folders, frames and clusters, and writes Parquet. What is written is counted and
checked under a temporary name, and only then takes its own. Up to `hushbid.campaign.deciding.LARGEST_HERE` people can
be taken here instead: the engine then only reads them, and decisions, record and report are made as in memory.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hushbid.campaign.deciding import Decided, Everybody, Step, decide_about, prior_note
from hushbid.campaign.people import Delivered, People, Reading, rows_of
from hushbid.campaign.spending import refuse_above_spending_limit
from hushbid.campaign.terms import Campaign
from hushbid.common.arrays import id_texts
from hushbid.common.money import with_rounding
from hushbid.common.staging import Staging
from hushbid.disclosure import Release
from hushbid.engine.delivered import DataNames, data_columns
from hushbid.engine.everybody import everybody
from hushbid.engine.payouts import Paid, checked, decisions
from hushbid.engine.pricing import CountedTable, Priced, count
from hushbid.engine.recording import Recorded, not_recorded, write_record
from hushbid.errors import InputError
from hushbid.record.folder import place_of_folder

PASSES = 10
"""Steps of the progress bar, at most: six to decide, one each for ids, pilot, writing and counting."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OnEngine:
    """A table that an engine has counted, before anything is decided."""

    table: CountedTable
    origin: Mapping[str, Any]
    """Where the prior comes from."""

    campaign: Campaign

    def decided(self, priced: Priced, paid: Paid) -> Decided:
        """Return what the engine decided; what each person has stays with it."""
        summary, currency = priced.summary, self.campaign.currency
        return Decided(
            market=priced.market,
            figures=summary,
            dropped=summary.dropped,
            currency=currency,
            total_minor=paid.total_minor,
            paying=paid.paying,
            incentive_error=with_rounding(summary.incentive_error, currency.decimals),
            origin=self.origin,
            everybody=None,
            question_errors=priced.question_errors(),
            passes=summary.passes,
        )


def count_on_engine(campaign: Campaign, reading: Reading, step: Step) -> OnEngine:
    """Count everybody where the table is, and look for people of the pilot."""
    market = campaign.market_for(None)
    if reading.on_bad_rows == "drop" and market.max_correlation > 0.0 and market.population is None:
        raise InputError(
            "population must be stated where an engine leaves rows out and max_correlation is not 0: whom the mean is"
            " about must not depend on who can be priced.",
            field="population",
        )
    group = campaign.bids.group if campaign.prior.is_grouped else None
    columns = {
        "bid": campaign.bids.bid,
        "id": campaign.bids.id,
        "group": group,
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
            accept_rounding=campaign.accept_rounding,
            progress=lambda told: step(told.what),
        )
    counted = None
    if campaign.prior.pilots:
        step("looking for people of the pilot")
        counted = table.overlap(campaign.prior.pilots.values())
    origin = campaign.prior.origin(None, accepted=campaign.accept_pilot_overlap, counted=counted)
    return OnEngine(table=table, origin=origin, campaign=campaign)


def price_on_engine(found: OnEngine) -> Priced:
    """Decide about everybody where the table is."""
    with rows_of(found.campaign.source):
        return found.table.price()


# -- everybody here ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Here:
    """Everybody of a table, taken here and decided about in memory."""

    decided: Decided
    everybody: Everybody
    delivered: Delivered | None
    """The data, if columns of them were named."""


def decide_here(found: OnEngine, data: DataNames = None) -> Here:
    """Take everybody of a table here, with columns of data, and decide about each; refused above the spending limit."""
    table, campaign = found.table, found.campaign
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
    _, each = decide_about(people, campaign, from_engine=True)
    decided = Decided.of(each, campaign.currency, found.origin)
    decided = replace(decided, market=table.market, passes=table.passes)  # without everybody's labels
    _refuse_above_spending_limit(decided.total_minor, campaign)
    delivered = None if data is None else Delivered(data=taken.data, strangers=0)
    return Here(decided=decided, everybody=each, delivered=delivered)


# -- writing -----------------------------------------------------------------------------------------------------------


def write_decisions(
    priced: Priced, files: Staging, path: Path, campaign: Campaign, step: Step, *, synthetic: bool = False
) -> Paid:
    """Write decisions among the files that appear together; refused above the spending limit."""
    frame = decisions(priced, campaign.currency, synthetic=synthetic)
    step("pricing and writing")
    made = files.make(path, lambda place: priced.write(frame, place))
    return _counted(made, priced, campaign, step)


def write_to_address(priced: Priced, url: str, campaign: Campaign, step: Step, *, force: bool) -> Paid:
    """Write decisions to another file system, which only Spark does; refused above the spending limit."""
    from hushbid.engine.spark import moved

    frame = decisions(priced, campaign.currency)
    step("pricing and writing")
    with moved(url, force=force) as temporary:
        priced.write(frame, temporary)
        return _counted(temporary, priced, campaign, step)


@dataclass(frozen=True, slots=True, kw_only=True)
class Staged:
    """A record that waits for its name."""

    path: Path | None = None
    """Where it will be; None if there is none."""

    hash: str | None = None
    reason: str = ""
    """Why there is none."""


def stage_record(
    files: Staging,
    path: Path,
    priced: Priced,
    decided: Decided,
    *,
    group: str | None,
    data: DataNames = None,
    release: Release | None = None,
    stamps: Sequence[str],
    notes: Sequence[str] = (),
) -> Staged:
    """Stage the record of people who stay with the engine."""
    reason = not_recorded(priced, release)
    if reason:
        return Staged(reason=reason)
    found = list[str]()
    recorded = Recorded(
        currency=decided.currency,
        total_minor=decided.total_minor,
        group=group,
        data=data,
        release=release,
        stamps=stamps,
        notes=[prior_note(decided.origin), *notes],
    )
    place = place_of_folder(path)
    files.make(place, lambda folder: found.append(write_record(priced, folder, recorded)))
    if path != place:
        files.remove(path)
    return Staged(path=place, hash=found[0])


def _counted(place: str | Path, priced: Priced, campaign: Campaign, step: Step) -> Paid:
    step("checking what was written")
    paid = checked(place, priced)
    _refuse_above_spending_limit(paid.total_minor, campaign)
    return paid


def _refuse_above_spending_limit(total_minor: int, campaign: Campaign) -> None:
    usual = "What such a campaign costs is told by hushbid plan."
    refuse_above_spending_limit(total_minor, campaign.currency, campaign.spending_limit, lambda: usual)
