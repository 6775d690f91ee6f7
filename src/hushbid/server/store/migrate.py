"""Bringing a database up to date, and tying it to its folder; done when the server starts, in one transaction."""

from pathlib import Path

from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, insert, select

from hushbid.errors import CampaignError
from hushbid.server.installation import Home
from hushbid.server.store.schema import installation

_FOLDER = Path(__file__).parent / "migrations"


def is_current(connection: Connection) -> bool:
    """Whether the tables are those that this version needs."""
    steps = ScriptDirectory.from_config(_config(connection))
    return MigrationContext.configure(connection).get_current_revision() == steps.get_current_head()


def migrate(connection: Connection) -> None:
    """Create the tables, or change them step by step to what this version needs; refused if they are newer."""
    from alembic import command

    config = _config(connection)
    steps = ScriptDirectory.from_config(config)
    at = MigrationContext.configure(connection).get_current_revision()
    known = {step.revision for step in steps.walk_revisions()}
    if at is not None and at not in known:
        raise CampaignError("The database was made by a newer version of Hushbid: install that version.")
    if at != steps.get_current_head():
        command.upgrade(config, "head")


def _config(connection: Connection) -> Config:
    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", str(_FOLDER).replace("%", "%%"))
    return config


def bind_installation(connection: Connection, home: Home) -> None:
    """Make a new database this folder's, and refuse one that belongs to another folder.

    The folder holds the claims: a database that came without its own could be made to release twice.
    """
    known = connection.execute(select(installation.c.value).where(installation.c.name == "home")).scalar()
    if known is None:
        connection.execute(insert(installation).values(name="home", value=home.name()))
    elif known != home.name():
        raise CampaignError(
            "The database belongs to the folder of another installation, whose keys and claims it needs: start the"
            " server with that folder."
        )
