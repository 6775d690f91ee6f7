"""``hushbid release``: the estimate, from decisions that were saved."""

from pathlib import Path
from typing import Any

import click

from hushbid.cli.common import LEDGER, OneFile, Steps, announced_ledger, tell
from hushbid.cli.common import command as make_command
from hushbid.cli.options import Options, campaign_options
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
    help="Local setting: DATA holds synthetic values, not messages, and the noise is added here. For simulation only.",
)
@campaign_options("question", "wave", "data.late", "market.accept_infinite_loss", "output.level", in_file=True)
@click.option("--out", type=OneFile(), metavar="FILE", help="Record with the estimate in it.")
@LEDGER
@click.option("--force", is_flag=True, help="Replace the file. The estimate is not drawn again.")
def command(record: Path, data: str, options: Options, as_json: bool, **given: Any) -> None:
    """Draw the estimate that a record paid for, once.

    RECORD was written by "price --record" or by "run" without data; DATA is a CSV, Parquet or Excel file, or - for
    standard input. The estimate is kept in the release ledger, under what is asked of whom, and asking again gives the
    same one. Question and wave are those of RECORD if it says them; the level is 0.95 unless you state another. A
    record with the estimate is written to RECORD's name with .released.json at its end.
    """
    from hushbid.campaign.recorded import release_recorded

    out = given.pop("out") or record.with_name(f"{record.name.removesuffix('.json')}.released.json")
    refuse_clashes([out], [record, data])
    if not given["force"]:
        refuse_existing([out])
    with announced_ledger(given["ledger"]), Steps(4) as step:
        released = release_recorded(record, data, out=out, step=step, **options.checked(), **given)
    tell(released.facts(), released.text(), as_json=as_json)
