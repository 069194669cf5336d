"""The tables and their triggers: the SQL beside this file; then the first partitions."""

from pathlib import Path

from alembic import op

from app.postgres.partitions import first_partitions
from app.settings import size_of_partitions

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.execute(Path(__file__).with_suffix(".sql").read_text())
    for statement in first_partitions(size_of_partitions()):
        op.execute(statement)


def downgrade() -> None:
    op.execute("DROP FUNCTION batch_is_sound CASCADE")  # With the constraint of the table that is its type.
    op.execute(
        "DROP TABLE organizations, api_keys, platform_keys, members, member_sessions, second_factors,"
        " actions, used_forms, service_secrets, uploads, upload_parts, users, former_addresses, reversals,"
        " reversal_entries, batches, transactions, held_transactions, held_listing, user_balances,"
        " unfolded_batches, unfolded_claims, refills, daily_sums, unnumbered_events, events, event_logs,"
        " restores, mails, webhooks, webhook_deliveries, api_requests, key_days, points_given_back, user_entries,"
        " kept_answers"
    )
    op.execute(
        "DROP FUNCTION time_of, still_counted_until, paid_count, transaction_id, at_start, held_hash,"
        " reversal_batches, refuse_change, only_erased, only_names_erased"
    )
