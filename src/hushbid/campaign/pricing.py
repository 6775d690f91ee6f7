"""Decisions alone: without a campaign file and without an estimate."""

from pathlib import Path

from hushbid.campaign.deciding import Decided, Step, decide, record_of
from hushbid.campaign.on_engine import (
    PASSES,
    count_on_engine,
    decide_here,
    price_on_engine,
    stage_record,
    write_decisions,
    write_to_address,
)
from hushbid.campaign.people import Reading
from hushbid.campaign.releasing import stamps_of
from hushbid.campaign.terms import Campaign
from hushbid.common.staging import STREAM, Staging
from hushbid.common.tables import table_writer
from hushbid.engine.opening import is_url, refuse_existing_address
from hushbid.record.folder import needs_folder


def steps_of(reading: Reading) -> int:
    """How many steps `price_people` tells of, at most."""
    return 3 if reading.engine == "memory" else PASSES


def price_people(
    campaign: Campaign, reading: Reading, *, out: str, record: Path | None, force: bool, step: Step, ids_needed: bool
) -> Decided:
    """Decide how much privacy to buy from whom, write it to ``out``, unless that is a stream, and the record.

    Unless ``ids_needed``, bids may be without the column of ids.
    """
    with Staging(force=force) as files:
        if reading.engine == "memory":
            decided = decide(campaign, reading, step, ids_needed=ids_needed)
            step("writing")
            if out != STREAM and decided.everybody is not None:
                files.add(out, table_writer(out, decided.everybody.columns()))
        else:
            decided = _on_engine(campaign, reading, files, out=out, record=record, force=force, step=step)
        if record is not None and decided.everybody is not None:
            whole = record_of(decided.everybody, decided.origin, None, stamps=stamps_of(decided))
            whole.stage(files, record)
    return decided


def _on_engine(
    campaign: Campaign, reading: Reading, files: Staging, *, out: str, record: Path | None, force: bool, step: Step
) -> Decided:
    if is_url(out) and not force:
        refuse_existing_address(out, reading.engine)

    found = count_on_engine(campaign, reading, step)
    kept = needs_folder(found.table.people)
    here = decide_here(found) if record is not None and not kept else None
    if here is not None and not is_url(out):
        files.add(out, table_writer(out, here.everybody.columns()))
        return here.decided
    priced = price_on_engine(found)
    if is_url(out):
        paid = write_to_address(priced, out, campaign, step, force=force)
        decided = found.decided(priced, paid) if here is None else here.decided
    else:
        decided = found.decided(priced, write_decisions(priced, files, Path(out), campaign, step))
    if record is not None and here is None:
        stage_record(files, record, priced, decided, group=campaign.bids.group, stamps=stamps_of(decided))
    return decided
