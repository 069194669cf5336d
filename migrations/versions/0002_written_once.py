"""What is written once: triggers refuse to change or delete what has moved points."""

from alembic import op

revision = "0002"
down_revision = "0001"

# Table, name, and when. `UPDATE OF` fires only where those columns are set: inserts, and the claim of a
# held transaction, which sets the other three, pass it by at no cost.
_TRIGGERS = (
    (
        "transactions",
        "transactions_written_once",
        "DELETE OR UPDATE OF id, batch_id, position, sandbox, debited, balance, email, email_key",
        "",
    ),
    (
        "transactions",
        "transactions_claimed_once",
        "UPDATE OF user_id, credited, claimed_at",
        "WHEN (OLD.credited OR NOT OLD.debited OR OLD.sandbox)",
    ),
    (
        "batches",
        "batches_accepted_once",
        "DELETE OR UPDATE OF id, organization_id, sandbox, amount, atomic, label, recipient_count, emails, email_keys",
        "",
    ),
    (
        "batches",
        "batches_final_once",
        "UPDATE OF status, refusal, issued_at, debited_count, current_balance, organization_name, last_refill",
        "WHEN (OLD.status <> 'queued')",
    ),
    ("refills", "refills_written_once", "DELETE OR UPDATE", ""),
)


def upgrade() -> None:
    op.execute("""
        CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            RAISE EXCEPTION 'a row of % is written once', TG_TABLE_NAME
                USING ERRCODE = 'restrict_violation', CONSTRAINT = TG_NAME;
        END $$
    """)
    for table, name, event, condition in _TRIGGERS:
        op.execute(
            f"CREATE TRIGGER {name} BEFORE {event} ON {table} FOR EACH ROW {condition} EXECUTE FUNCTION refuse_change()"
        )


def downgrade() -> None:
    for table, name, _, _ in _TRIGGERS:
        op.execute(f"DROP TRIGGER {name} ON {table}")
    op.execute("DROP FUNCTION refuse_change()")
