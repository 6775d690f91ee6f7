"""What an analyst has typed into a draft's form is kept, whether it could be a campaign or not."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Nothing was kept before."""
    op.create_table(
        "forms",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("campaign_id", sa.Text(), nullable=True),
        sa.Column("language", sa.Text(), nullable=False),
        sa.Column("fields", sa.Text(), nullable=True),
        sa.Column("changed_at", sa.Text(), nullable=False),
        sa.Column("sent_at", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_forms"),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name="fk_forms_user_id"),
        sa.ForeignKeyConstraint(["campaign_id"], ["campaigns.id"], name="fk_forms_campaign_id"),
        sa.UniqueConstraint("user_id", "campaign_id", name="uq_forms_user_id_campaign_id"),
    )
