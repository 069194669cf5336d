"""How migrations run: on one connection, limited in time, one at a time."""

import time
from collections.abc import Collection, Mapping
from typing import Any

from alembic import context
from alembic.runtime.migration import MigrationContext, MigrationInfo
from sqlalchemy import Connection, text

from app.errors import Refused
from app.postgres.connections import disable_timeouts, new_engine
from app.postgres.locks import Kind, number
from app.settings import settings
from migrations import fingerprint, require_fit, why_unfit

_ASK_AGAIN_AFTER_S = 0.2


def write() -> None:
    """Print the SQL instead of running it (`--sql`)."""
    context.configure(dialect_name="postgresql", literal_binds=True, transaction_per_migration=True)
    with context.begin_transaction():
        context.run_migrations()


def run() -> None:
    engine = new_engine(context.config.attributes.get("url") or settings().database_url, pool_size=1)
    try:
        with engine.connect() as connection:
            _wait_for_lock(connection)
            require_fit(connection)
            if (sentence := why_unfit(connection, whole=True, may_be_older=True)) is not None:
                raise Refused(sentence)
            # Do not wait long for a table lock, since every later query would wait behind it: fail, and run again.
            connection.execute(text("SET lock_timeout = '5s'"))
            connection.execute(text("SET statement_timeout = '60s'"))
            connection.commit()
            context.configure(connection=connection, transaction_per_migration=True, on_version_apply=_note)
            with context.begin_transaction():
                context.run_migrations()
    finally:
        engine.dispose()  # Closing the connection releases the advisory lock.


def _note(ctx: MigrationContext, step: MigrationInfo, heads: Collection[Any], run_args: Mapping[str, Any]) -> None:
    """Keep the fingerprint of what a migration has made, in its transaction; going down keeps that of what is left."""
    revision = step.up_revision_id if step.is_upgrade else step.down_revision_ids[0] if step.down_revision_ids else None
    assert ctx.connection is not None, "only SQL that is written down has none"
    if revision is None:
        return
    scripts = context.script.walk_revisions("base", revision)
    fingerprint.write(ctx.connection, revision, max(getattr(script.module, "READ_BY", "0001") for script in scripts))


def _wait_for_lock(connection: Connection) -> None:
    """Wait until no other deployment migrates, however long that takes. Then there is nothing left to do.

    It polls: a session that waits for a lock keeps its snapshot, and CREATE INDEX CONCURRENTLY in the other deployment
    waits for old snapshots to end. The two would wait for each other.
    """
    disable_timeouts(connection)
    connection.execution_options(isolation_level="AUTOCOMMIT")
    lock = {"lock": number(Kind.MIGRATION)}
    while not connection.execute(text("SELECT pg_try_advisory_lock(:lock)"), lock).scalar_one():
        time.sleep(_ASK_AGAIN_AFTER_S)
    connection.commit()
    connection.execution_options(isolation_level="READ COMMITTED")


if context.is_offline_mode():
    write()
else:
    run()
