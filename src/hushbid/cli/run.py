"""``hushbid run``: the main job."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hushbid.cli import BY_FILES
from hushbid.cli.common import LEDGER, OneFile, Steps, announced_ledger, tell
from hushbid.cli.common import command as make_command
from hushbid.cli.options import CAMPAIGN, Options, campaign_options, reading_options

if TYPE_CHECKING:
    from hushbid.campaign.people import Reading
    from hushbid.campaign.results import Purchase, PurchaseByStratum


@make_command("run")
@click.argument("campaign", type=OneFile())
@campaign_options(*CAMPAIGN, in_file=True)
@reading_options
@click.option("--audit/--no-audit", default=True, show_default=True, help="Attack our own claims for the report.")
@LEDGER
@click.option("--force", is_flag=True, help="Write the files again. The estimate is not drawn again.")
@click.pass_context
def command(
    ctx: click.Context,
    campaign: Path,
    options: Options,
    reading_of: "Callable[[str], Reading]",
    audit: bool,
    ledger: Path | None,
    force: bool,
    as_json: bool,
) -> None:
    """Buy: from a campaign file to decisions, an estimate, a record and a report.

    The file is described in docs/reference/campaign-file.md; options take the place of what it says. Without data the
    command stops after the decisions; run it again once the data are there. The same question to the same people has
    one estimate: it is drawn once, kept in the release ledger, and shown again whenever it is asked for; only campaigns
    that say they are synthetic are exempt. Large Parquet files are priced in batches; above a million people there is
    then a summary and no report. Above 100,000 people the record is a folder.
    """
    from hushbid.campaign.buying import run_campaign, steps_of
    from hushbid.campaign.terms import campaign_of

    ctx.meta[BY_FILES] = True
    wanted = campaign_of(options.stated(campaign))
    reading = reading_of(str(wanted.bids.file))
    run: Callable[..., Purchase | PurchaseByStratum] = run_campaign
    if wanted.each:
        from hushbid.campaign.by_stratum import run_by_stratum as run
    with announced_ledger(ledger), Steps(steps_of(reading)) as step:
        purchase = run(wanted, reading=reading, audit=audit, ledger=ledger, force=force, step=step)
    tell(purchase.facts(), purchase.text(), as_json=as_json)
    if purchase.failed:
        ctx.exit(1)
