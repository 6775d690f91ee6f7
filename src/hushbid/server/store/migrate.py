"""Creating the tables, and tying a database to its folder; done when the server starts, in one transaction."""

from pathlib import Path

from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, insert, select

from hushbid.errors import CampaignError
from hushbid.server.installation import DataDir
from hushbid.server.store.schema import installation

_FOLDER = Path(__file__).parent / "migrations"


def is_current(connection: Connection) -> bool:
    """Whether the tables are those that this version needs."""
    steps = ScriptDirectory.from_config(_config(connection))
    return MigrationContext.configure(connection).get_current_revision() == steps.get_current_head()


def migrate(connection: Connection) -> None:
    """Create the tables in a database that has none; refuse tables of another version."""
    from alembic import command

    config = _config(connection)
    needed = str(ScriptDirectory.from_config(config).get_current_head())
    found = MigrationContext.configure(connection).get_current_revision()
    if found is None:
        command.upgrade(config, "head")
    elif found != needed:
        age = "an older" if found < needed else "a newer"
        raise CampaignError(
            f"The database was made by {age} version of Hushbid: its tables have number {found}, and this version needs"
            f" {needed}. Use it with the version that made it, or start with an empty database and a new folder."
        )


def _config(connection: Connection) -> Config:
    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", str(_FOLDER).replace("%", "%%"))
    return config


def bind_installation(connection: Connection, home: DataDir) -> None:
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
