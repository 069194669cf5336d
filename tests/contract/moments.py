"""Time that passes: a test that would have to wait for days moves the moments that are stored.

Here alone the tests look inside: at columns with moments.
"""

import json

import psycopg
from psycopg import sql

from tests.service.up import Service

_BATCH = ("created_at", "issued_at", "held_until", "return_at")
_TRANSACTION = ("claimed_at", "held_until")


def let_days_pass(service: Service, days: int, *batch_ids: int) -> None:
    """Put the moments of these batches, and of their transactions, so many days into the past."""
    past = {"past": f"{24 * days} hours", "ids": list(batch_ids)}
    # A service whose workers are stopped has a status of 1.
    status = service.run("status", "--json", "--data-dir", str(service.data_dir))
    with psycopg.connect(json.loads(status.stdout)["database_url"]) as connection:
        for table, its_id, columns in (("batches", "id", _BATCH), ("transactions", "batch_id", _TRANSACTION)):
            name = sql.Identifier(table)
            changes = sql.SQL(", ").join(
                sql.SQL("{0} = {0} - CAST(%(past)s AS interval)").format(sql.Identifier(column)) for column in columns
            )
            # What has moved points is written once, and triggers see to that.
            connection.execute(sql.SQL("ALTER TABLE {} DISABLE TRIGGER USER").format(name))
            update = sql.SQL("UPDATE {} SET {} WHERE {} = ANY(%(ids)s)")
            connection.execute(update.format(name, changes, sql.Identifier(its_id)), past)
            connection.execute(sql.SQL("ALTER TABLE {} ENABLE TRIGGER USER").format(name))
        # What the audit holds against these moments: the digests, the days that are counted, what made the balances
        # of users, and the events of claims.
        connection.execute(_DIGESTED, past)
        connection.execute(_COUNTED_AGAIN)
        for table, statement in (("user_entries", _CREDITED), ("events", _CLAIMS_TOLD)):
            name = sql.Identifier(table)
            connection.execute(sql.SQL("ALTER TABLE {} DISABLE TRIGGER USER").format(name))
            connection.execute(statement, past)
            connection.execute(sql.SQL("ALTER TABLE {} ENABLE TRIGGER USER").format(name))


_DIGESTED = """
    UPDATE batches SET digest = sha256(convert_to(CAST(ROW(
        id, organization_id, sandbox, api_key_id, member_id, amount, atomic, label, metadata, hold_days,
        idempotency_key, encode(idempotency_hash, 'hex'), extract(epoch FROM created_at), refusal,
        extract(epoch FROM cancelled_at), extract(epoch FROM issued_at), organization_name, last_refill,
        extract(epoch FROM approved_at), extract(epoch FROM rejected_at), answered_by_member_id, answered_by_key_id,
        rejection_reason) AS text), 'UTF8'))
    WHERE id = ANY(%(ids)s)
"""
_COUNTED_AGAIN = "UPDATE organizations SET counted_until = '-infinity', sandbox_counted_until = '-infinity'"
# A transaction's id is 131,072 times its batch's, and its position.
_CREDITED = """
    UPDATE user_entries SET created_at = created_at - CAST(%(past)s AS interval)
    WHERE transaction_id / 131072 = ANY(%(ids)s) AND reversal_id IS NULL
"""
_CLAIMS_TOLD = """
    UPDATE events SET created_at = created_at - CAST(%(past)s AS interval)
    WHERE type = 'transaction.claimed' AND (data #>> '{transactions,0}')::bigint / 131072 = ANY(%(ids)s)
"""
