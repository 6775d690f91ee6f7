"""``hushbid price``: decisions, without a campaign file and without an estimate."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hushbid.cli.common import Number, OneFile, Steps, is_stated, tell
from hushbid.cli.common import command as make_command
from hushbid.cli.engine_options import EngineOptions, engine_options
from hushbid.cli.options import MarketOptions, market_options, people_options
from hushbid.common.staging import STREAM, refuse_clashes, refuse_existing, write_file

if TYPE_CHECKING:
    from hushbid.purchase.deciding import Decided
    from hushbid.purchase.people import Reading


@make_command("price")
@click.argument("bids", type=click.Path(allow_dash=True))
@market_options()
@people_options
@engine_options
@click.option("--limit-column", metavar="NAME", help="Column of the largest losses that people accept, if they say.")
@click.option("--spending-limit", type=Number(min=0.0, min_open=True), help="Refuse to spend more than this.")
@click.option("--accept-pilot-overlap", is_flag=True, help="Use a prior fitted on some of these very people.")
@click.option("--accept-rounding", is_flag=True, help="Buy although rounding takes more than 5 % of the budget.")
@click.option(
    "--out",
    default=STREAM,
    show_default=True,
    metavar="FILE",
    help="Decisions: FILE.csv, .csv.gz, .parquet or .xlsx, or -.",
)
@click.option("--record", type=OneFile(), metavar="FILE", help="Save all that release and verify need.")
@click.option("--force", is_flag=True, help="Replace files that exist.")
def command(options: MarketOptions, how: EngineOptions, bids: str, as_json: bool, **given: Any) -> None:
    """Decide how much privacy to buy from whom, and at what price.

    BIDS is a CSV, Parquet or Excel file, or - for standard input, with a column of bids (what one unit of
    privacy loss costs each person) and, best, one of ids, which the local setting needs: a hash of them decides between
    equals. The decisions go to standard output as CSV, a summary to standard error; --json prints the summary instead.
    A large Parquet file, or a folder of them, is priced in batches into another one.
    """
    out = given["out"]
    if as_json and is_stated("out") and out == STREAM:
        raise click.UsageError("--json and --out - would both write to standard output.")
    written = [path for path in (out, given["record"]) if path is not None]
    refuse_clashes(written, [bids, *options.prior_source().paths])
    if not given["force"]:
        refuse_existing([Path(path) for path in written])
    reading = how.chosen(bids)
    _refuse_output(out, reading.engine)
    decided = _decided(options, reading, bids, given)
    if out == STREAM and not as_json:
        from hushbid.common.tables import table_writer

        assert decided.everybody is not None
        write_file(STREAM, table_writer(STREAM, decided.everybody.columns()), force=False)
    tell(decided.facts(), decided.text(), as_json=as_json, err=out == STREAM)


def _refuse_output(out: str, engine: str) -> None:
    from hushbid.engine.opening import is_url

    if is_url(out) and not engine.startswith("spark"):
        raise click.UsageError(f"--out {out} is an address: it needs --engine spark.")
    if engine != "memory" and not out.lower().endswith(".parquet"):
        raise click.UsageError("On an engine decisions are written to --out FILE.parquet (with Spark, a folder).")


def _decided(options: MarketOptions, reading: "Reading", bids: str, given: dict[str, Any]) -> "Decided":
    from hushbid.purchase.deciding import Wanted
    from hushbid.purchase.pricing import price_people, steps_of

    source, strata = options.prior_source(), options.one_estimate("price strata")
    wanted = Wanted(
        bids=bids,
        id=given["id_column"],
        bid=given["bid_column"],
        group=given["group_column"],
        stratum=None if strata is None else strata.column,
        limit=given["limit_column"],
        prior=source,
        market=options.market_of,
        currency=options.currency(),
        spending_limit=given["spending_limit"],
        accept_pilot_overlap=given["accept_pilot_overlap"],
        accept_rounding=given["accept_rounding"],
    )
    with Steps(steps_of(reading)) as step:
        return price_people(
            wanted,
            reading,
            out=given["out"],
            record=given["record"],
            force=given["force"],
            step=step,
            ids_needed=is_stated("id_column"),
        )
