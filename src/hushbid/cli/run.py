"""``hushbid run``: the main job."""

from pathlib import Path

import click

from hushbid.cli.frame import Steps, tell
from hushbid.cli.frame import command as make_command


@make_command("run")
@click.argument("campaign", type=click.Path(path_type=Path))
@click.option("--audit/--no-audit", default=True, show_default=True, help="Attack our own claims for the report.")
@click.option("--force", is_flag=True, help="Write the files again. The estimate is never drawn again.")
def command(campaign: Path, audit: bool, force: bool, as_json: bool) -> None:
    """Buy: from a campaign file to decisions, an estimate, a record and a report.

    The file is described in docs/reference/campaign-file.md. Without data the command stops after the decisions; run it
    again once the data are there. An estimate is drawn once, whatever happens and whatever is asked.
    """
    from hushbid.cli.campaign_file import read_campaign
    from hushbid.cli.conduct import STEPS, conduct

    with Steps(STEPS) as step:
        results = conduct(read_campaign(campaign), force=force, audit=audit, step=step)
    tell(results.facts(), results.text(), as_json=as_json)
