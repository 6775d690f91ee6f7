"""Links are exchanged for secrets, and a delivery is named by its client's nonce."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Move every link to a table of its own, where it can be exchanged; nobody has to be sent a new one.

    Deliveries from before have no nonce, so whatever comes after them is refused. Renewals from before are written down
    for everybody whose receipt is not fixed yet.
    """
    connection = op.get_bind()
    known = connection.execute(
        sa.text(
            "SELECT participants.id, participants.token, campaigns.created_at FROM participants"
            " JOIN campaigns ON campaigns.id = participants.campaign_id"
        )
    ).all()
    with op.batch_alter_table("participants") as table:
        table.add_column(sa.Column("delivery_nonce", sa.Text(), nullable=True))
        for name in ("renewed", "own_links", "own_links_used"):
            table.add_column(sa.Column(name, sa.Text(), nullable=False, server_default=""))
        table.drop_constraint("uq_participants_token", type_="unique")
        table.drop_column("token")
    links = op.create_table(
        "links",
        sa.Column("token", sa.Text(), nullable=False),
        sa.Column("participant_id", sa.Text(), nullable=False),
        sa.Column("made_by", sa.Text(), nullable=False),
        sa.Column("reads_only", sa.Integer(), nullable=False),
        sa.Column("made_at", sa.Text(), nullable=False),
        sa.Column("used_at", sa.Text(), nullable=True),
        sa.Column("secret", sa.Text(), nullable=True),
        sa.Column("ended_at", sa.Text(), nullable=True),
        sa.Column("ended_by", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["participant_id"], ["participants.id"], name=op.f("fk_links_participant_id")),
        sa.PrimaryKeyConstraint("token", name=op.f("pk_links")),
        sa.UniqueConstraint("secret", name=op.f("uq_links_secret")),
    )
    op.create_index(op.f("ix_links_participant_id"), "links", ["participant_id"], unique=False)
    made = [
        {"token": row.token, "participant_id": row.id, "made_by": "analyst", "reads_only": 0, "made_at": row.created_at}
        for row in known
    ]
    if made:
        connection.execute(sa.insert(links), made)
    _write_renewals_down(connection)


def _write_renewals_down(connection: sa.Connection) -> None:
    renewed: dict[str, list[str]] = {}
    for row in connection.execute(
        sa.text(
            "SELECT events.participant_id, events.at FROM events JOIN campaigns ON campaigns.id = events.campaign_id"
            " WHERE events.kind = 'link-renewed' AND campaigns.root IS NULL ORDER BY events.number"
        )
    ):
        renewed.setdefault(row.participant_id, []).append(row.at)
    for who, times in renewed.items():
        connection.execute(
            sa.text("UPDATE participants SET renewed = :times WHERE id = :who"), {"times": ",".join(times), "who": who}
        )
