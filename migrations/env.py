"""How a migration runs: on one connection, limited in time, and never beside another one."""

import time

from alembic import context
from sqlalchemy import Connection, text

from app.connections import disable_timeouts, new_engine
from app.models import Base
from app.settings import settings
from migrations import require_fit

# Two deployments may start at once: the second waits here, and then finds nothing left to do.
_MIGRATION_LOCK = 0x5054_4D49_4752_4154
_ASK_AGAIN_AFTER_S = 0.2


def write() -> None:
    """Write the SQL down and run none of it (`--sql`), for those who want to read it first."""
    context.configure(dialect_name="postgresql", literal_binds=True, transaction_per_migration=True)
    with context.begin_transaction():
        context.run_migrations()


def run() -> None:
    engine = new_engine(context.config.attributes.get("url") or settings().database_url, pool_size=1)
    try:
        with engine.connect() as connection:
            _wait_for_our_turn(connection)
            require_fit(connection)
            # A lock on a table is not waited for long: it would hold up every query behind it. Better to come again.
            connection.execute(text("SET lock_timeout = '5s'"))
            connection.execute(text("SET statement_timeout = '60s'"))
            connection.commit()
            context.configure(connection=connection, target_metadata=Base.metadata, transaction_per_migration=True)
            with context.begin_transaction():
                context.run_migrations()
    finally:
        engine.dispose()  # Closing the connection releases the advisory lock.


def _wait_for_our_turn(connection: Connection) -> None:
    """Wait until no other deployment migrates, as long as that takes.

    By asking again, and not in the queue of the lock: who stands there keeps a snapshot, and CREATE INDEX
    CONCURRENTLY waits until nobody has an old one. The two would wait for each other.
    """
    disable_timeouts(connection)
    connection.execution_options(isolation_level="AUTOCOMMIT")
    while not connection.execute(text("SELECT pg_try_advisory_lock(:lock)"), {"lock": _MIGRATION_LOCK}).scalar_one():
        time.sleep(_ASK_AGAIN_AFTER_S)
    connection.commit()
    connection.execution_options(isolation_level="READ COMMITTED")


if context.is_offline_mode():
    write()
else:
    run()
