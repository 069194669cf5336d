"""Migrations at once: one waits for the other however long that takes, and one that failed holds up nobody."""

import subprocess
import sys

import pytest
from sqlalchemy import Engine, inspect
from sqlalchemy.exc import ProgrammingError

import migrations
from app.postgres.locks import Kind, number
from tests.deadline import until
from tests.integration import races

# One deployment at a time holds it while it migrates.
_LOCK = number(Kind.MIGRATION)


def _is_migrated(scratch: Engine) -> bool:
    with scratch.connect() as connection:
        found = connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar_one_or_none()
        return found == migrations.newest() and "webhook_deliveries" in inspect(connection).get_table_names()


def _upgrade_in_a_process(url: str) -> "subprocess.Popen[bytes]":
    """Upgrade as a deployment does. (Alembic keeps what it works on in a global, so threads would not do.)"""
    return subprocess.Popen([sys.executable, "-c", f"import migrations; migrations.upgrade({url!r})"])


def _awaited(scratch: Engine) -> list[str]:
    """Return the kinds of locks that connections wait for."""
    with scratch.connect() as connection:
        return list(connection.exec_driver_sql("SELECT locktype FROM pg_locks WHERE NOT granted ORDER BY 1").scalars())


def _asking(scratch: Engine) -> int:
    """Return how many upgrades ask again and again whether it is their turn."""
    with scratch.connect() as connection:
        asking = "SELECT count(*) FROM pg_stat_activity WHERE state = 'idle' AND query LIKE '%%pg_try_advisory_lock%%'"
        return int(connection.exec_driver_sql(asking).scalar_one())


def test_of_two_upgrades_at_once_one_waits_and_both_succeed(server_url: str, scratch: Engine) -> None:
    with scratch.connect() as connection:
        # A table of the same name, not committed yet, holds up whichever upgrade comes to make its own.
        connection.exec_driver_sql("CREATE TABLE alembic_version ()")
        upgrades = [_upgrade_in_a_process(server_url) for _ in range(2)]
        until(lambda: _asking(scratch) == 1, what="one of the upgrades waits for its turn")
        until(lambda: _awaited(scratch) == ["transactionid"], what="the other waits for the table")
        connection.rollback()
    assert [upgrade.wait(races.PATIENCE_S) for upgrade in upgrades] == [0, 0]
    assert _is_migrated(scratch)


def test_an_upgrade_waits_for_one_that_takes_longer_than_any_lock_may(server_url: str, scratch: Engine) -> None:
    # What is limited is how long a migration may hold up others, not how long it waits for its turn.
    with scratch.connect() as blocker, scratch.connect() as other:
        blocker.exec_driver_sql("CREATE TABLE alembic_version ()")
        first = _upgrade_in_a_process(server_url)
        until(lambda: _awaited(scratch) == ["transactionid"], what="the upgrade waits")
        lock = other.exec_driver_sql("SELECT classid, objid FROM pg_locks WHERE locktype = 'advisory'").one()
        blocker.rollback()
        assert first.wait(races.PATIENCE_S) == 0
        other.exec_driver_sql("SELECT pg_advisory_xact_lock((%s::bigint << 32) | %s)", tuple(lock))
        second = _upgrade_in_a_process(server_url)
        until(lambda: _asking(scratch) == 1, what="the second upgrade waits")
        with pytest.raises(subprocess.TimeoutExpired):  # It ends within this time if it gives up.
            second.wait(timeout=6)
    assert second.wait(races.PATIENCE_S) == 0


def test_an_index_is_built_concurrently_while_another_upgrade_waits_for_its_turn(
    server_url: str, scratch: Engine
) -> None:
    # It ends once nobody has a snapshot older than it; whoever waited with one would wait for its end in turn.
    with scratch.connect().execution_options(isolation_level="AUTOCOMMIT") as building:
        building.exec_driver_sql("CREATE TABLE large (n bigint)")
        building.exec_driver_sql("SELECT pg_advisory_lock(%s)", (_LOCK,))
        waiting = _upgrade_in_a_process(server_url)
        until(lambda: _asking(scratch) == 1, what="the other upgrade waits")
        building.exec_driver_sql("CREATE INDEX CONCURRENTLY ix_large_n ON large (n)")
        assert waiting.poll() is None, "it still waits"
        building.exec_driver_sql("SELECT pg_advisory_unlock(%s)", (_LOCK,))
    assert waiting.wait(races.PATIENCE_S) == 0


def test_an_upgrade_that_failed_lets_the_next_one_in(server_url: str, scratch: Engine) -> None:
    with scratch.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE organizations ()")
    with pytest.raises(ProgrammingError, match="already exists"):
        migrations.upgrade(server_url)
    with scratch.begin() as connection:
        connection.exec_driver_sql("DROP TABLE organizations")
        # PostgreSQL lets go of it when it sees that the connection is closed.
        held = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"
        until(lambda: connection.exec_driver_sql(held).scalar_one() == 0, what="the lock is let go of")
    migrations.upgrade(server_url)
    assert _is_migrated(scratch)
