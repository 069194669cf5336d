"""The index of addresses goes era by era: what a drain writes into it lies close together, however much is stored.

Batch ids are drawn so that an era holds a bounded number of transactions (docs/decisions/0013).
"""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"

# Read by the check for statements that lock a table in use: this migration is for a service that is stopped.
LOCKS_BECAUSE = "It remakes an index before the first release; there is no service to keep running yet."

_HASH = "hashtextextended(coalesce(email_key, email), organization_id * 2 + sandbox::int)"
_TRANSACTION_ID = "(batch_id * 131072 + position)"


def upgrade() -> None:
    op.drop_index("ix_transactions_address", "transactions")
    # An era and 4 bytes of hash take the room of the 8 bytes of hash that were enough for all eras together.
    _make_index("((batch_id >> 14)::int)", f"(({_HASH} >> 32)::int)", _TRANSACTION_ID)


def downgrade() -> None:
    op.drop_index("ix_transactions_address", "transactions")
    _make_index(_HASH, _TRANSACTION_ID)


def _make_index(*expressions: str) -> None:
    op.create_index("ix_transactions_address", "transactions", [sa.text(expression) for expression in expressions])
