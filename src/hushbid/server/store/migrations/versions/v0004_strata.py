"""Everybody may be in a public stratum, in which the analyst invited her."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """People invited before are in none; campaigns from before have neither strata nor questions, and stay so."""
    with op.batch_alter_table("participants") as table:
        table.add_column(sa.Column("stratum", sa.Text(), nullable=True))
