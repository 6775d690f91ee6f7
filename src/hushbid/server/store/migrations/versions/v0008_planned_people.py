"""A draft keeps how many people are planned."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Drafts from before say nothing about it."""
    with op.batch_alter_table("campaigns") as table:
        table.add_column(sa.Column("planned_people", sa.Integer(), nullable=True))
