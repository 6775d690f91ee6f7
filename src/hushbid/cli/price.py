"""``hushbid price``: decisions, without a campaign file and without an estimate."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from hushbid.cli.common import OneFile, Steps, tell
from hushbid.cli.common import command as make_command
from hushbid.cli.options import EngineOptions, MarketOptions, engine_options, market_options, people_options
from hushbid.durable import STREAM, Staging, refuse_clashes, refuse_existing, write_file

if TYPE_CHECKING:
    from hushbid.purchase.deciding import Purchase
    from hushbid.purchase.on_engine import Decided
    from hushbid.purchase.people import Reading


@make_command("price")
@click.argument("reports", type=click.Path(allow_dash=True))
@market_options()
@people_options
@engine_options
@click.option("--ceiling", type=click.FloatRange(min=0.0, min_open=True), help="Refuse to spend more than this.")
@click.option("--accept-pilot-overlap", is_flag=True, help="Use a prior fitted on some of these very people.")
@click.option(
    "--out", default=STREAM, show_default=True, metavar="FILE", help="Decisions: FILE.csv, FILE.parquet or -."
)
@click.option("--record", type=OneFile(), metavar="FILE", help="Save all that release and verify need.")
@click.option("--force", is_flag=True, help="Replace files that exist.")
def command(options: MarketOptions, how: EngineOptions, reports: str, as_json: bool, **given: Any) -> None:
    """Decide how much privacy to buy from whom, and at what price.

    REPORTS is a CSV or Parquet file, or - for standard input, with a column of sensitivities (what one unit of privacy
    loss costs each person) and, best, one of ids, which the local setting needs: a hash of them decides between equals.
    The decisions go to standard output as CSV, a summary to standard error; --json prints the summary instead. A large
    Parquet file, or a folder of them, is priced in batches into another one.
    """
    out, ctx = given["out"], click.get_current_context()
    chosen = ctx.get_parameter_source("out") is not ParameterSource.DEFAULT
    if as_json and chosen and out == STREAM:
        raise click.UsageError("--json and --out - would both write to standard output.", ctx)
    written = [path for path in (out, given["record"]) if path is not None]
    refuse_clashes(written, [reports, *options.prior_source().paths])
    if not given["force"]:
        refuse_existing([Path(path) for path in written])
    reading = how.chosen(reports)
    _refuse_output(out, given["record"], reading.engine)
    if reading.engine != "memory":
        decided = _on_engine(options, reading, reports, given)
        tell(decided.facts(), decided.text(), as_json=as_json)
        return
    purchase = _in_memory(options, reading, reports, given)
    if out == STREAM and not as_json:
        from hushbid.tables import table_writer

        write_file(STREAM, table_writer(STREAM, purchase.columns()), force=False)
    tell(purchase.facts(), purchase.text(), as_json=as_json, err=out == STREAM)


def _refuse_output(out: str, record: Path | None, engine: str) -> None:
    from hushbid.engine.opening import is_url

    if is_url(out) and not engine.startswith("spark"):
        raise click.UsageError(f"--out {out} is an address: it needs --engine spark.")
    if engine != "memory" and record is not None:
        raise click.UsageError("--record keeps everybody's figures in memory: it needs --engine memory.")
    if engine != "memory" and not out.lower().endswith(".parquet"):
        raise click.UsageError("On an engine decisions are written to --out FILE.parquet (with Spark, a folder).")


def _on_engine(options: MarketOptions, reading: "Reading", reports: str, given: dict[str, Any]) -> "Decided":
    from hushbid.purchase.on_engine import PASSES, price_on_engine

    source = options.prior_source()
    with Steps(PASSES) as step:
        return price_on_engine(
            reports,
            options.market(source.prior_for([]) if source.is_grouped else source.prior_for(None)),
            source,
            options.currency(),
            reading,
            columns={
                "report": given["sensitivity_column"],
                "id": given["id_column"],
                "group": given["group_column"],
            },
            out=given["out"],
            ceiling=given["ceiling"],
            accept_overlap=given["accept_pilot_overlap"],
            force=given["force"],
            step=step,
        )


def _in_memory(options: MarketOptions, reading: "Reading", reports: str, given: dict[str, Any]) -> "Purchase":
    from hushbid.purchase.deciding import decide, record_of, record_writer, refuse_above_ceiling
    from hushbid.purchase.people import read_people, rows_of
    from hushbid.tables import table_writer

    source, currency = options.prior_source(), options.currency()
    with Steps(3) as step, Staging(force=given["force"]) as files:
        step("reading the reports")
        people = read_people(
            reports,
            id_column=given["id_column"],
            sensitivity=given["sensitivity_column"],
            group=given["group_column"],
            ids_needed=False,
            reading=reading,
            priors=source.priors,
        )
        origin = source.origin(people.ids, accepted=given["accept_pilot_overlap"])
        step("deciding")
        with rows_of(people.source):
            market = options.market(source.prior_for(people.groups))
        purchase = decide(people, market, currency)
        refuse_above_ceiling(purchase, given["ceiling"])
        step("writing")
        if given["out"] != STREAM:
            files.add(given["out"], table_writer(given["out"], purchase.columns()))
        if given["record"] is not None:
            files.add(given["record"], record_writer(record_of(purchase, origin, None, [])))
    return purchase
