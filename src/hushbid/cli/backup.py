"""``hushbid backup``: a server's database as one file."""

from dataclasses import asdict
from pathlib import Path

import click

from hushbid.cli.common import command as make_command
from hushbid.cli.common import tell
from hushbid.cli.installation import installation, refuse_nowhere


@make_command("backup")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--force", is_flag=True, help="Replace a file that exists.")
@installation
def command(file: Path, force: bool, home: Path, database: str | None, as_json: bool) -> None:
    """Write a server's database into one file.

    Works beside a running server. The file holds everybody's bids, so keep it as safe as the server. It does not
    hold keys or claims: from the folder's keys/ keep identity.key and signing/ apart, but never keys/data or an old
    copy of claims/, which are what makes a value unreadable and an estimate final.
    """
    from hushbid.common.staging import refuse_clashes
    from hushbid.server.admin import Administration

    refuse_clashes([file], [home])
    refuse_nowhere(home)

    with Administration.at(home, database=database) as server:
        made = server.back_up(file, force=force)
    tell(asdict(made), f"{made.campaigns} campaigns, {made.rows} rows in {file}.", as_json=as_json)
