"""Lists that can be read page by page at a flat cost: what finds a page's rows, in the order of the list."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

# Read by the check for statements that lock a table in use: this migration is for a service that is stopped.
LOCKS_BECAUSE = "It builds indexes before the first release; there is no service to keep running yet."


def upgrade() -> None:
    # Newest first is by the time that a list shows, so a range of times is a range of the index.
    op.create_index("ix_batches_created", "batches", ["organization_id", "sandbox", "created_at", "id"])
    op.create_index(
        "ix_batches_issued",
        "batches",
        ["organization_id", "sandbox", "issued_at", "id"],
        postgresql_where=sa.text("issued_at IS NOT NULL"),
    )
    # The few batches that a balance did not pay whole; a batch that was paid takes no room in these two.
    unpaid = sa.text("debited_count < recipient_count")
    for name, moment in (("ix_batches_created_unpaid", "created_at"), ("ix_batches_issued_unpaid", "issued_at")):
        op.create_index(name, "batches", ["organization_id", "sandbox", moment, "id"], postgresql_where=unpaid)
    # An address of any length takes 8 bytes here, and the id that its rows are listed by 8 more; the rows found are
    # compared with the address itself. Over both as expressions no other index has this order, so none is walked.
    address = "hashtextextended(coalesce(email_key, email), organization_id * 2 + sandbox::int)"
    transaction_id = sa.text("(batch_id * 131072 + position)")
    op.create_index("ix_transactions_address", "transactions", [sa.text(address), transaction_id])
    op.drop_index("ix_batches_organization_id_sandbox_id", "batches")


def downgrade() -> None:
    op.create_index("ix_batches_organization_id_sandbox_id", "batches", ["organization_id", "sandbox", "id"])
    op.drop_index("ix_transactions_address", "transactions")
    for name in ("issued_unpaid", "created_unpaid", "issued", "created"):
        op.drop_index(f"ix_batches_{name}", "batches")
