"""Lean rows: a transaction keeps only what differs from its batch, and users are credited later, in bulk.

What is dropped here is guarded elsewhere. The foreign keys of `transactions` and `batches` cost a look-up a
row, and those of `batches` a lock on the organization's row; the one statement that writes either joins what
they pointed at, nothing that they pointed at is ever deleted, and the audit proves it. A transaction's id is
made of its batch's and its position, so it needs neither a column nor an index (docs/decisions/0006).
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0003"
down_revision = "0002"

# Read by the check for statements that lock a table in use: this migration is for a service that is stopped.
LOCKS_BECAUSE = "It rewrites transactions before the first release; there is no service to keep running yet."

_ID = """
    CREATE FUNCTION transaction_id(batch_id bigint, "position" int) RETURNS bigint
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS 'SELECT $1 * 131072 + $2'
"""

# As in migration 0002, for the columns that there are now.
_TRIGGERS = (
    (
        "transactions_written_once",
        "transactions",
        "DELETE OR UPDATE OF organization_id, batch_id, position, sandbox, debited, balance, email, email_key",
        "",
    ),
    (
        "transactions_claimed_once",
        "transactions",
        "UPDATE OF user_id, credited, claimed_at",
        "WHEN (OLD.credited OR NOT OLD.debited OR OLD.sandbox)",
    ),
)


def upgrade() -> None:
    op.execute(_ID)
    op.drop_constraint("fk_batches_organization_id", "batches")
    op.execute("ALTER TABLE batches ALTER email_keys DROP NOT NULL")
    op.drop_constraint("ck_batches_recipients_counted", "batches")
    op.create_check_constraint(
        op.f("ck_batches_recipients_counted"),
        "batches",
        "recipient_count BETWEEN 1 AND 131072 AND cardinality(emails) = recipient_count"
        " AND (email_keys IS NULL OR cardinality(email_keys) = recipient_count)",
    )
    op.execute("ALTER TABLE batches ALTER emails SET STORAGE EXTERNAL, ALTER email_keys SET STORAGE EXTERNAL")
    _make_unfolded_batches()
    _remake_transactions()


def _make_unfolded_batches() -> None:
    """Make the list of batches whose credits no user's row holds yet. What was issued so far is folded."""
    op.execute("ALTER TABLE users DROP CONSTRAINT ck_users_balance_not_negative")
    op.alter_column("users", "balance", new_column_name="folded_balance", type_=sa.Numeric())
    op.create_check_constraint(op.f("ck_users_folded_balance_not_negative"), "users", "folded_balance >= 0")
    op.create_table(
        "unfolded_batches",
        sa.Column("batch_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.PrimaryKeyConstraint("batch_id", name="pk_unfolded_batches"),
        # Every row lives for seconds: vacuum must not wait until a share of a large table is dead.
        postgresql_with={"autovacuum_vacuum_scale_factor": 0, "autovacuum_vacuum_threshold": 5000},
    )


def _remake_transactions() -> None:
    op.rename_table("transactions", "transactions_before")
    for kind in ("written", "claimed"):
        op.execute(f"DROP TRIGGER transactions_{kind}_once ON transactions_before")
    op.execute("DROP INDEX ix_transactions_held")
    op.create_table(
        "transactions",
        # Wide columns first: without padding, a row is a tenth smaller.
        sa.Column("organization_id", sa.BigInteger(), nullable=False),
        sa.Column("batch_id", sa.BigInteger(), nullable=False),
        sa.Column("balance", sa.BigInteger(), nullable=False),
        sa.Column("user_id", sa.BigInteger(), nullable=True),
        sa.Column("claimed_at", postgresql.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("sandbox", sa.Boolean(), nullable=False),
        sa.Column("debited", sa.Boolean(), nullable=False),
        sa.Column("credited", sa.Boolean(), nullable=False),
        sa.Column("email", sa.Text(), nullable=False),
        sa.Column("email_key", sa.Text(), nullable=True),
        sa.CheckConstraint("position BETWEEN 0 AND 131071", name=op.f("ck_transactions_position_in_range")),
        sa.CheckConstraint("balance >= 0", name=op.f("ck_transactions_balance_not_negative")),
        sa.CheckConstraint(
            "CASE WHEN debited THEN credited = (user_id IS NOT NULL) ELSE NOT credited END",
            name=op.f("ck_transactions_debited_is_credited_or_held"),
        ),
        sa.CheckConstraint(
            "claimed_at IS NULL OR (credited AND NOT sandbox)",
            name=op.f("ck_transactions_claimed_only_if_live_and_credited"),
        ),
    )
    op.execute("""
        INSERT INTO transactions
        SELECT b.organization_id, t.batch_id, t.balance, t.user_id, t.claimed_at, t.position, t.sandbox, t.debited,
               t.credited, t.email, nullif(t.email_key, t.email)
        FROM transactions_before t JOIN batches b ON b.id = t.batch_id ORDER BY t.batch_id, t.position
    """)
    op.drop_table("transactions_before")
    op.create_primary_key("pk_transactions", "transactions", ["batch_id", "position"])
    op.create_index(
        "ix_transactions_held",
        "transactions",
        [sa.text("coalesce(email_key, email)")],
        postgresql_where=sa.text("debited AND NOT credited AND NOT sandbox"),
    )
    _add_triggers(_TRIGGERS)


def _add_triggers(triggers: tuple[tuple[str, str, str, str], ...]) -> None:
    for name, table, event, condition in triggers:
        op.execute(
            f"CREATE TRIGGER {name} BEFORE {event} ON {table} FOR EACH ROW {condition} EXECUTE FUNCTION refuse_change()"
        )


def downgrade() -> None:
    op.rename_table("transactions", "transactions_lean")
    op.execute("ALTER TABLE transactions_lean DROP CONSTRAINT pk_transactions")
    op.execute("DROP INDEX ix_transactions_held")
    _restore_users()
    _restore_batches()
    _restore_transactions()
    op.execute("DROP TABLE transactions_lean")
    op.execute("DROP FUNCTION transaction_id")


def _restore_users() -> None:
    """Fold what is not folded yet; a balance over 64 bits cannot go back, and stops the downgrade."""
    op.execute("""
        UPDATE users SET folded_balance = folded_balance + credits.points
        FROM (SELECT t.user_id, sum(b.amount) AS points
              FROM unfolded_batches u JOIN batches b ON b.id = u.batch_id JOIN transactions_lean t ON t.batch_id = b.id
              WHERE t.credited AND t.claimed_at IS NULL GROUP BY t.user_id) AS credits
        WHERE users.id = credits.user_id
    """)
    op.drop_table("unfolded_batches")
    op.execute("ALTER TABLE users DROP CONSTRAINT ck_users_folded_balance_not_negative")
    op.alter_column("users", "folded_balance", new_column_name="balance", type_=sa.BigInteger())
    op.create_check_constraint(op.f("ck_users_balance_not_negative"), "users", "balance >= 0")


def _restore_batches() -> None:
    op.execute("DROP TRIGGER batches_accepted_once ON batches")
    op.execute("UPDATE batches SET email_keys = emails WHERE email_keys IS NULL")
    op.execute("ALTER TABLE batches ALTER email_keys SET NOT NULL")
    op.execute("ALTER TABLE batches ALTER emails SET STORAGE EXTENDED, ALTER email_keys SET STORAGE EXTENDED")
    op.drop_constraint("ck_batches_recipients_counted", "batches")
    op.create_check_constraint(
        op.f("ck_batches_recipients_counted"),
        "batches",
        "recipient_count > 0 AND cardinality(emails) = recipient_count AND cardinality(email_keys) = recipient_count",
    )
    op.create_foreign_key("fk_batches_organization_id", "batches", "organizations", ["organization_id"], ["id"])
    columns = "id, organization_id, sandbox, amount, atomic, label, recipient_count, emails, email_keys"
    _add_triggers((("batches_accepted_once", "batches", f"DELETE OR UPDATE OF {columns}", ""),))


def _restore_transactions() -> None:
    op.execute("""
        CREATE TABLE transactions (
            id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT pk_transactions PRIMARY KEY,
            batch_id bigint NOT NULL CONSTRAINT fk_transactions_batch_id REFERENCES batches,
            balance bigint NOT NULL CONSTRAINT ck_transactions_balance_not_negative CHECK (balance >= 0),
            user_id bigint CONSTRAINT fk_transactions_user_id REFERENCES users,
            "position" int NOT NULL CONSTRAINT ck_transactions_position_not_negative CHECK (position >= 0),
            sandbox boolean NOT NULL, debited boolean NOT NULL, credited boolean NOT NULL,
            email text NOT NULL, email_key text NOT NULL, claimed_at timestamptz,
            CONSTRAINT ck_transactions_credited_only_if_debited CHECK (NOT credited OR debited),
            CONSTRAINT ck_transactions_credited_to_somebody CHECK (NOT credited OR user_id IS NOT NULL),
            CONSTRAINT ck_transactions_debited_is_credited_or_held
                CHECK (NOT debited OR credited = (user_id IS NOT NULL)),
            CONSTRAINT ck_transactions_claimed_only_if_live_and_credited
                CHECK (claimed_at IS NULL OR (credited AND NOT sandbox)),
            CONSTRAINT uq_transactions_batch_id_position UNIQUE (batch_id, "position"))
    """)
    op.execute("""
        INSERT INTO transactions (id, batch_id, balance, user_id, position, sandbox, debited, credited, email,
                                  email_key, claimed_at) OVERRIDING SYSTEM VALUE
        SELECT transaction_id(batch_id, position), batch_id, balance, user_id, position, sandbox, debited, credited,
               email, coalesce(email_key, email), claimed_at
        FROM transactions_lean
    """)
    op.execute(
        "SELECT setval(pg_get_serial_sequence('transactions', 'id'), coalesce(max(id), 0) + 1, false) FROM transactions"
    )
    op.create_index(
        "ix_transactions_held",
        "transactions",
        ["email_key"],
        postgresql_where=sa.text("debited AND NOT credited AND NOT sandbox"),
    )
    _add_triggers(
        (
            (
                "transactions_written_once",
                "transactions",
                "DELETE OR UPDATE OF id, batch_id, position, sandbox, debited, balance, email, email_key",
                "",
            ),
            _TRIGGERS[1],
        )
    )
