"""Bringing a database up to date; done when the server starts, in one transaction."""

from pathlib import Path

from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

from hushbid.errors import CampaignError

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
