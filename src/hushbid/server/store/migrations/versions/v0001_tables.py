"""All tables, as `hushbid.server.store.schema` has them.

Nothing has been released, so there is one step. A change of a table gives it the next number, by which a database with
other tables is refused; the first released tables are to be written out here, and changed by further steps. Names that
are digits alone, up to 0010, are those of databases made before: none of them is this one, and all are older.
"""

from alembic import op

from hushbid.server.store.schema import metadata

revision = "t0002"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create all tables."""
    metadata.create_all(op.get_bind())
