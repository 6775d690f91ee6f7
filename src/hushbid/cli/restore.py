"""``hushbid restore``: a server's database from one file."""

from dataclasses import asdict
from pathlib import Path

import click

from hushbid.cli.common import OneFile, tell
from hushbid.cli.common import command as make_command
from hushbid.cli.installation import installation


@make_command("restore")
@click.argument("file", type=OneFile())
@click.option("--replace", is_flag=True, help="Put the backup in place of a database that is not empty.")
@installation
def command(file: Path, replace: bool, home: Path, database: str | None, as_json: bool) -> None:
    """Put a backup in place of a server's database.

    The folder must be the same, and the server must not run. The backup may go into the other kind of database, which
    is how a server moves from SQLite to PostgreSQL. Estimates that were drawn after the backup stand: they lie in the
    folder, and the server takes them up when it starts. Accounts, tokens and links are again those of the backup, so
    withdraw again what was withdrawn since.
    """
    from hushbid.server.admin import Administration

    with file.open("rb"):  # a backup that is not there makes no folder
        pass
    with Administration.at(home, database=database, alone=True) as server:
        found = server.restore(file, replace=replace)
    text = f"{found.campaigns} campaigns, {found.rows} rows from {found.made_at} are in place."
    tell(asdict(found), text, as_json=as_json)
