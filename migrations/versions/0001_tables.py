"""The tables: organizations, api_keys, users, batches, transactions, refills."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "organizations",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("is_disabled", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("is_suspended", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("balance", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("last_refill", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("sandbox_balance", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("sandbox_last_refill", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("sandbox_start_balance", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column(
            "created_at",
            postgresql.TIMESTAMP(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.CheckConstraint("balance >= 0", name=op.f("ck_organizations_balance_not_negative")),
        sa.CheckConstraint("char_length(name) BETWEEN 1 AND 255", name=op.f("ck_organizations_name_length")),
        sa.CheckConstraint("sandbox_balance >= 0", name=op.f("ck_organizations_sandbox_balance_not_negative")),
        sa.PrimaryKeyConstraint("id", name="pk_organizations"),
        postgresql_with={"fillfactor": 50},
    )
    op.create_table(
        "users",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("email", sa.Text(), nullable=False),
        sa.Column("email_key", sa.Text(), nullable=False),
        sa.Column("first_name", sa.Text(), nullable=False),
        sa.Column("last_name", sa.Text(), nullable=False),
        sa.Column("balance", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column(
            "created_at",
            postgresql.TIMESTAMP(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.CheckConstraint("balance >= 0", name=op.f("ck_users_balance_not_negative")),
        sa.PrimaryKeyConstraint("id", name="pk_users"),
        sa.UniqueConstraint("email_key", name="uq_users_email_key"),
        postgresql_with={"fillfactor": 70},
    )
    op.create_index("ix_users_created_at", "users", ["created_at"])
    op.create_table(
        "api_keys",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("organization_id", sa.BigInteger(), nullable=False),
        sa.Column("sandbox", sa.Boolean(), nullable=False),
        sa.Column("hash", sa.LargeBinary(), nullable=False),
        sa.Column("start", sa.Text(), nullable=False),
        sa.Column(
            "created_at",
            postgresql.TIMESTAMP(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.Column("last_used_at", postgresql.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("revoked_at", postgresql.TIMESTAMP(timezone=True), nullable=True),
        sa.CheckConstraint("octet_length(hash) = 32", name=op.f("ck_api_keys_hash_is_sha256")),
        sa.ForeignKeyConstraint(["organization_id"], ["organizations.id"], name="fk_api_keys_organization_id"),
        sa.PrimaryKeyConstraint("id", name="pk_api_keys"),
        sa.UniqueConstraint("hash", name="uq_api_keys_hash"),
    )
    op.create_index("ix_api_keys_organization_id", "api_keys", ["organization_id"])
    op.create_table(
        "batches",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("organization_id", sa.BigInteger(), nullable=False),
        sa.Column("sandbox", sa.Boolean(), nullable=False),
        sa.Column("status", sa.Text(), server_default="queued", nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column("atomic", sa.Boolean(), nullable=False),
        sa.Column("label", sa.Text(), nullable=True),
        sa.Column("recipient_count", sa.Integer(), nullable=False),
        sa.Column("emails", postgresql.ARRAY(sa.Text()), nullable=False),
        sa.Column("email_keys", postgresql.ARRAY(sa.Text()), nullable=False),
        sa.Column("idempotency_key", sa.Text(), nullable=True),
        sa.Column("idempotency_hash", sa.LargeBinary(), nullable=True),
        sa.Column(
            "created_at",
            postgresql.TIMESTAMP(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.Column("failures", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("retry_at", postgresql.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("refusal", sa.Text(), nullable=True),
        sa.Column("issued_at", postgresql.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("debited_count", sa.Integer(), nullable=True),
        sa.Column("current_balance", sa.BigInteger(), nullable=True),
        sa.Column("organization_name", sa.Text(), nullable=True),
        sa.Column("last_refill", sa.BigInteger(), nullable=True),
        sa.CheckConstraint(
            "(status = 'issued') = (issued_at IS NOT NULL) AND (status = 'issued') = (debited_count IS NOT NULL)"
            " AND (status = 'issued') = (current_balance IS NOT NULL)"
            " AND (status = 'issued') = (organization_name IS NOT NULL)"
            " AND (status = 'issued') = (last_refill IS NOT NULL)",
            name=op.f("ck_batches_issued_when_complete"),
        ),
        sa.CheckConstraint(
            "(status = 'refused') = (refusal IS NOT NULL)", name=op.f("ck_batches_refused_with_a_reason")
        ),
        sa.CheckConstraint("status IN ('queued', 'issued', 'refused')", name=op.f("ck_batches_status_known")),
        sa.CheckConstraint(
            "(idempotency_key IS NULL) = (idempotency_hash IS NULL)",
            name=op.f("ck_batches_idempotency_key_with_hash"),
        ),
        sa.CheckConstraint(
            "NOT atomic OR debited_count IN (0, recipient_count)", name=op.f("ck_batches_atomic_all_or_none")
        ),
        sa.CheckConstraint("amount > 0", name=op.f("ck_batches_amount_positive")),
        sa.CheckConstraint(
            "char_length(idempotency_key) BETWEEN 1 AND 255", name=op.f("ck_batches_idempotency_key_length")
        ),
        sa.CheckConstraint("char_length(label) <= 255", name=op.f("ck_batches_label_length")),
        sa.CheckConstraint("current_balance >= 0", name=op.f("ck_batches_current_balance_not_negative")),
        sa.CheckConstraint(
            "debited_count BETWEEN 0 AND recipient_count", name=op.f("ck_batches_debited_count_in_range")
        ),
        sa.CheckConstraint(
            "recipient_count > 0 AND cardinality(emails) = recipient_count"
            " AND cardinality(email_keys) = recipient_count",
            name=op.f("ck_batches_recipients_counted"),
        ),
        sa.ForeignKeyConstraint(["organization_id"], ["organizations.id"], name="fk_batches_organization_id"),
        sa.PrimaryKeyConstraint("id", name="pk_batches"),
    )
    op.create_index("ix_batches_organization_id_sandbox_id", "batches", ["organization_id", "sandbox", "id"])
    op.create_index(
        "ix_batches_idempotency_age",
        "batches",
        ["created_at"],
        postgresql_where=sa.text("idempotency_key IS NOT NULL"),
    )
    op.create_index(
        "ix_batches_queued",
        "batches",
        ["organization_id", "id"],
        postgresql_where=sa.text("status = 'queued'"),
    )
    op.create_index(
        "uq_batches_idempotency_key",
        "batches",
        ["organization_id", "sandbox", "idempotency_key"],
        unique=True,
        postgresql_where=sa.text("idempotency_key IS NOT NULL"),
    )
    op.create_table(
        "refills",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("organization_id", sa.BigInteger(), nullable=False),
        sa.Column("sandbox", sa.Boolean(), nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column("balance", sa.BigInteger(), nullable=False),
        sa.Column(
            "created_at",
            postgresql.TIMESTAMP(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.CheckConstraint(
            "amount > 0 OR (sandbox AND amount <> 0)", name=op.f("ck_refills_amount_positive_unless_sandbox")
        ),
        sa.CheckConstraint("balance >= 0", name=op.f("ck_refills_balance_not_negative")),
        sa.ForeignKeyConstraint(["organization_id"], ["organizations.id"], name="fk_refills_organization_id"),
        sa.PrimaryKeyConstraint("id", name="pk_refills"),
    )
    op.create_index("ix_refills_organization_id_sandbox", "refills", ["organization_id", "sandbox"])
    op.create_table(
        "transactions",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("batch_id", sa.BigInteger(), nullable=False),
        sa.Column("balance", sa.BigInteger(), nullable=False),
        sa.Column("user_id", sa.BigInteger(), nullable=True),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("sandbox", sa.Boolean(), nullable=False),
        sa.Column("debited", sa.Boolean(), nullable=False),
        sa.Column("credited", sa.Boolean(), nullable=False),
        sa.Column("email", sa.Text(), nullable=False),
        sa.Column("email_key", sa.Text(), nullable=False),
        sa.Column("claimed_at", postgresql.TIMESTAMP(timezone=True), nullable=True),
        sa.CheckConstraint("NOT credited OR debited", name=op.f("ck_transactions_credited_only_if_debited")),
        sa.CheckConstraint("NOT credited OR user_id IS NOT NULL", name=op.f("ck_transactions_credited_to_somebody")),
        sa.CheckConstraint(
            "NOT debited OR credited = (user_id IS NOT NULL)",
            name=op.f("ck_transactions_debited_is_credited_or_held"),
        ),
        sa.CheckConstraint("balance >= 0", name=op.f("ck_transactions_balance_not_negative")),
        sa.CheckConstraint(
            "claimed_at IS NULL OR (credited AND NOT sandbox)",
            name=op.f("ck_transactions_claimed_only_if_live_and_credited"),
        ),
        sa.CheckConstraint("position >= 0", name=op.f("ck_transactions_position_not_negative")),
        sa.ForeignKeyConstraint(["batch_id"], ["batches.id"], name="fk_transactions_batch_id"),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name="fk_transactions_user_id"),
        sa.PrimaryKeyConstraint("id", name="pk_transactions"),
        sa.UniqueConstraint("batch_id", "position", name="uq_transactions_batch_id_position"),
    )
    op.create_index(
        "ix_transactions_held",
        "transactions",
        ["email_key"],
        postgresql_where=sa.text("debited AND NOT credited AND NOT sandbox"),
    )


def downgrade() -> None:
    for table in ("transactions", "refills", "batches", "api_keys", "users", "organizations"):
        op.drop_table(table)
