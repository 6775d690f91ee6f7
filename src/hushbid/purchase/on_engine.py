"""Decisions about people in tables that need not fit in memory, made and written by an engine.

An engine reads Parquet, files or folders, frames and clusters, and writes Parquet. What is written is counted and
checked under a temporary name, and only then takes its own. Up to `hushbid.purchase.deciding.LARGEST_RECORD` people can
be taken here, where the same code as for memory, which sums and prices them as the engine did, makes tables, record and
report.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hushbid.arrays import id_texts
from hushbid.engine import Priced, price
from hushbid.engine.delivered import DataNames, data_columns
from hushbid.engine.everybody import everybody
from hushbid.engine.payouts import Paid, checked, decisions
from hushbid.errors import InputError
from hushbid.mechanism import Market
from hushbid.money import with_rounding
from hushbid.purchase.deciding import Decided, Everybody, Step, Wanted, decide_about
from hushbid.purchase.people import Delivered, People, Reading, rows_of
from hushbid.purchase.spending import refuse_above_spending_limit
from hushbid.staging import Staging

PASSES = 10
"""Steps of the progress bar, at most: six to decide, one each for ids, pilot, writing and counting."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OnEngine:
    """A table that an engine priced, before anything is written."""

    priced: Priced
    market: Market
    """As it was before anybody bid."""

    origin: Mapping[str, Any]
    """Where the prior comes from."""

    wanted: Wanted

    def decided(self, paid: Paid, everybody: Everybody | None = None) -> Decided:
        """What was decided; what each person has stays with the engine unless everybody was taken here."""
        summary, currency = self.priced.summary, self.wanted.currency
        return Decided(
            market=self.market,
            figures=summary,
            dropped=summary.dropped,
            currency=currency,
            total_minor=paid.total_minor,
            paying=paid.paying,
            incentive_error=with_rounding(summary.incentive_error, currency.decimals),
            origin=self.origin,
            everybody=everybody,
            question_errors=self.priced.question_errors() if everybody is None else None,
            passes=summary.passes,
        )


def price_on_engine(wanted: Wanted, reading: Reading, step: Step) -> OnEngine:
    """Price everybody where the table is, and look for people of the pilot."""
    market = wanted.market(None)
    if reading.on_bad_rows == "drop" and market.max_correlation > 0.0 and market.population is None:
        raise InputError(
            "population must be stated where an engine leaves rows out and max_correlation is not 0: whom the mean is"
            " about must not depend on who can be priced.",
            field="population",
        )
    with rows_of(wanted.source):
        priced = price(
            wanted.bids,
            market,
            bid=wanted.bid,
            id=wanted.id,
            group=wanted.group if wanted.prior.is_grouped else None,
            stratum=wanted.stratum,
            limit=wanted.limit,
            engine=reading.engine,
            on_bad_rows=reading.on_bad_rows,
            check_ids=reading.check_ids,
            accept_rounding=wanted.accept_rounding,
            progress=lambda told: step(told.what),
        )
    counted = None
    if wanted.prior.pilots:
        step("looking for people of the pilot")
        counted = priced.overlap(wanted.prior.pilots.values())
    origin = wanted.prior.origin(None, accepted=wanted.accept_pilot_overlap, counted=counted)
    return OnEngine(priced=priced, market=priced.market, origin=origin, wanted=wanted)


# -- everybody here ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Here:
    """Everybody of a table, taken here and decided about as in memory."""

    everybody: Everybody
    delivered: Delivered | None
    """The data, if columns of them were named."""

    @property
    def paid(self) -> Paid:
        """What the decisions come to."""
        money, outcome = self.everybody.money, self.everybody.outcome
        rows = money.payments.size
        return Paid(rows=rows, total_minor=money.total, paying=self.everybody.paying, bought=outcome.active)


def taken_here(priced: Priced, wanted: Wanted, data: DataNames = None) -> Here:
    """Take everybody of a table here, with columns of data, and decide about each; refused above the spending limit."""
    with rows_of(wanted.source):
        columns = None if data is None else data_columns(priced, data)
        found = everybody(priced, group=wanted.group, data=columns)
    ids = id_texts(found.ids.to_pylist())
    if "" in ids:
        raise InputError(
            f"{wanted.source}: column {wanted.id!r} must name everybody, but an id is empty.", field=wanted.id
        )
    people = People(
        source=wanted.source,
        ids=ids,
        id_column=found.ids,
        bids=found.bids,
        groups=found.labels,
        strata=found.strata,
        roster_by_stratum=None if found.strata is None else Counter(found.strata),
        limits=found.limits,
        dropped=priced.summary.dropped,
        id_name=wanted.id,
    )
    _, each = decide_about(people, wanted, from_engine=True)
    here = Here(everybody=each, delivered=None if data is None else Delivered(data=found.data, strangers=0))
    _refuse_above_spending_limit(here.paid, wanted)
    return here


# -- writing -----------------------------------------------------------------------------------------------------------


def write_decisions(
    priced: Priced, files: Staging, path: Path, wanted: Wanted, step: Step, *, synthetic: bool = False
) -> Paid:
    """Write decisions among the files that appear together; refused above the spending limit."""
    frame = decisions(priced, wanted.currency, synthetic=synthetic)
    step("pricing and writing")
    made = files.make(path, lambda place: priced.write(frame, place))
    return _counted(made, priced, wanted, step)


def write_to_address(priced: Priced, url: str, wanted: Wanted, step: Step, *, force: bool) -> Paid:
    """Write decisions to another file system, which only Spark does; refused above the spending limit."""
    from hushbid.engine.spark import moved

    frame = decisions(priced, wanted.currency)
    step("pricing and writing")
    with moved(url, force=force) as temporary:
        priced.write(frame, temporary)
        return _counted(temporary, priced, wanted, step)


def _counted(place: str | Path, priced: Priced, wanted: Wanted, step: Step) -> Paid:
    step("checking what was written")
    paid = checked(place, priced)
    _refuse_above_spending_limit(paid, wanted)
    return paid


def _refuse_above_spending_limit(paid: Paid, wanted: Wanted) -> None:
    usual = "What such a campaign costs is told by hushbid plan."
    refuse_above_spending_limit(paid.total_minor, wanted.currency, wanted.spending_limit, lambda: usual)
