"""``hushbid price``: decisions, without a campaign file and without an estimate."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hushbid.cli import BY_FILES
from hushbid.cli.common import OneFile, Steps, is_stated, tell
from hushbid.cli.common import command as make_command
from hushbid.cli.options import BUYING, COLUMNS, MARKET, Options, campaign_options, reading_options
from hushbid.cli.plan import refuse_each
from hushbid.common.staging import STREAM, refuse_clashes, refuse_existing, write_file

if TYPE_CHECKING:
    from hushbid.campaign.people import Reading


@make_command("price")
@click.argument("bids", type=click.Path(allow_dash=True))
@campaign_options(*MARKET, *COLUMNS, *BUYING)
@reading_options
@click.option(
    "--out",
    default=STREAM,
    show_default=True,
    metavar="FILE",
    help="Decisions: FILE.csv, .csv.gz, .parquet or .xlsx, or -.",
)
@click.option("--record", type=OneFile(), metavar="FILE", help="Save all that release and verify need.")
@click.option("--force", is_flag=True, help="Replace files that exist.")
def command(options: Options, reading_of: "Callable[[str], Reading]", bids: str, as_json: bool, **given: Any) -> None:
    """Decide how much privacy to buy from whom, and at what price.

    BIDS is a campaign file, in which options take the place of what it says; or a CSV, Parquet or Excel file, or - for
    standard input, with a column of bids (what one unit of privacy loss costs each person) and, best, one of ids, which
    the local setting needs: a hash of them decides between equals. The decisions go to standard output as CSV, a
    summary to standard error; --json prints the summary instead.
    A large Parquet file, or a folder of them, is priced in batches into another one.
    """
    from hushbid.campaign.buying import price_people, steps_of
    from hushbid.campaign.deciding import DecisionInMemory
    from hushbid.campaign.terms import campaign_of

    out = given["out"]
    if as_json and is_stated("out") and out == STREAM:
        raise click.UsageError("--json and --out - would both write to standard output.")
    written = [path for path in (out, given["record"]) if path is not None]
    file = Path(bids) if bids.endswith(".toml") else None
    click.get_current_context().meta[BY_FILES] = file is not None
    campaign = campaign_of(options.stated(file), bids=None if file else {}, data={})  # whatever data there are
    refuse_each(campaign, "price strata")
    where = campaign.bids if file else campaign.bids.model_copy(update={"file": bids})
    campaign = replace(campaign.stating(bids=where), data=None)
    refuse_clashes(written, campaign.inputs)
    if not given["force"]:
        refuse_existing([Path(path) for path in written])
    reading = reading_of(str(where.file))
    _refuse_output(out, reading.engine)
    with Steps(steps_of(reading, 1)) as step:
        force, ids_needed = given["force"], file is not None or "bids.id" in options.given
        decided = price_people(
            campaign, reading, out=out, record=given["record"], force=force, step=step, ids_needed=ids_needed
        )
    if out == STREAM and not as_json:
        from hushbid.common.tables import table_writer

        assert isinstance(decided, DecisionInMemory)
        write_file(STREAM, table_writer(STREAM, decided.columns()), force=False)
    tell(decided.facts(), decided.text(), as_json=as_json, err=out == STREAM)


def _refuse_output(out: str, engine: str) -> None:
    from hushbid.engine.opening import is_url

    if is_url(out) and not engine.startswith("spark"):
        raise click.UsageError(f"--out {out} is an address: it needs --engine spark.")
    if engine != "memory" and not out.lower().endswith(".parquet"):
        raise click.UsageError("On an engine decisions are written to --out FILE.parquet (with Spark, a folder).")
