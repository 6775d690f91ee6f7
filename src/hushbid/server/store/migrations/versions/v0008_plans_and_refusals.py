"""A draft keeps how many people are planned, and a failed job which setting was refused."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Drafts and jobs from before say nothing about it."""
    with op.batch_alter_table("campaigns") as table:
        table.add_column(sa.Column("planned_people", sa.Integer(), nullable=True))
    with op.batch_alter_table("jobs") as table:
        table.add_column(sa.Column("field", sa.Text(), nullable=True))
