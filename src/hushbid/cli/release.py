"""``hushbid release``: the estimate, from decisions that were saved."""

from pathlib import Path
from typing import Any

import click

from hushbid.cli.common import LEDGER, Number, OneFile, Steps, Whole, announced_ledger, tell
from hushbid.cli.common import command as make_command
from hushbid.common.staging import refuse_clashes, refuse_existing


@make_command("release")
@click.argument("record", type=OneFile())
@click.argument("data", type=click.Path(dir_okay=False, allow_dash=True))
@click.option("--id-column", default="id", show_default=True, metavar="NAME", help="Column of ids in DATA.")
@click.option(
    "--value-column", metavar="NAME", help="Column of data.  [default: value, or message in the local setting]"
)
@click.option(
    "--simulated-values",
    is_flag=True,
    help="Local setting: DATA holds made-up values, not messages, and the noise is added here. For simulation only.",
)
@click.option(
    "--level",
    type=Number(0, 1, min_open=True, max_open=True),
    default=0.95,
    show_default=True,
    help="How sure the interval is to be.",
)
@click.option("--question", metavar="TEXT", help="What is asked, if RECORD does not say it.  [default: the mean]")
@click.option(
    "--wave", type=Whole(1, 1_000_000), metavar="N", help="Which time it is asked.  [default: RECORD's, or 1]"
)
@click.option(
    "--late",
    type=click.Choice(["paid", "unpaid"]),
    help="What is paid to those whose data came after the estimate was drawn.  [default: such data are refused]",
)
@click.option("--accept-infinite-loss", is_flag=True, help="Use the data of people whose loss is infinite.")
@click.option("--out", type=OneFile(), metavar="FILE", help="Record with the estimate in it.")
@LEDGER
@click.option("--force", is_flag=True, help="Replace the file. The estimate is not drawn again.")
def command(record: Path, data: str, as_json: bool, **given: Any) -> None:
    """Draw the estimate that a record paid for, once.

    RECORD was written by "price --record" or by "run" without data; DATA is a CSV, Parquet or Excel file, or - for
    standard input. The estimate is kept in the release ledger, under what is asked of whom, and asking again gives the
    same one. A record that holds it is written to RECORD's name with .released.json at its end.
    """
    from hushbid.campaign.releasing import release_recorded

    out = given.pop("out") or record.with_name(f"{record.name.removesuffix('.json')}.released.json")
    refuse_clashes([out], [record, data])
    if not given["force"]:
        refuse_existing([out])
    with announced_ledger(given["ledger"]), Steps(4) as step:
        released = release_recorded(record, data, out=out, step=step, **given)
    tell(released.facts(), released.text(), as_json=as_json)
