"""People may say where they are to be paid; sealed, with a key outside the database that has its own end."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Campaigns from before ask nobody where she is paid."""
    with op.batch_alter_table("campaigns") as table:
        table.add_column(sa.Column("payouts_destroyed_at", sa.Text(), nullable=True))
    op.create_table(
        "payouts",
        sa.Column("participant_id", sa.Text(), nullable=False),
        sa.Column("sealed", sa.LargeBinary(), nullable=False),
        sa.Column("stated_at", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["participant_id"], ["participants.id"], name=op.f("fk_payouts_participant_id")),
        sa.PrimaryKeyConstraint("participant_id", name=op.f("pk_payouts")),
    )
