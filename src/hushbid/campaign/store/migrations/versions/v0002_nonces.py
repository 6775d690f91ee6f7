"""A delivery is named by its client's nonce."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add what has come; deliveries from before have no nonce, so whatever comes after them is refused."""
    op.add_column("participants", sa.Column("delivery_nonce", sa.Text(), nullable=True))
