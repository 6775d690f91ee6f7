"""A report may name the largest privacy loss that its person accepts."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Reports from before name none; campaigns from before take none (`hushbid.server.store.schema`)."""
    with op.batch_alter_table("participants") as table:
        table.add_column(sa.Column("loss_limit", sa.Float(53), nullable=True))
