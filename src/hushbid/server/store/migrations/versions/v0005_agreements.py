"""That people agree to what they are shown is stored, and so is every document that somebody agreed to."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Of people from before it is not known what they were shown; whoever has reported goes on as before."""
    with op.batch_alter_table("participants") as table:
        table.add_column(sa.Column("agreed_at", sa.Text(), nullable=True))
        table.add_column(sa.Column("agreed_version", sa.Text(), nullable=True))
        table.add_column(sa.Column("agreed_language", sa.Text(), nullable=True))
    op.create_table(
        "consents",
        sa.Column("campaign_id", sa.Text(), nullable=False),
        sa.Column("version", sa.Text(), nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["campaign_id"], ["campaigns.id"], name=op.f("fk_consents_campaign_id")),
        sa.PrimaryKeyConstraint("campaign_id", "version", name=op.f("pk_consents")),
    )
