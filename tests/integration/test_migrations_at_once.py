"""Migrations at once: one waits for the other however long that takes, and one that failed holds up nobody."""

import subprocess
import sys

import pytest
from sqlalchemy import Engine, inspect
from sqlalchemy.exc import ProgrammingError

import migrations
from app.models import Organization
from tests.integration import races


def _is_migrated(scratch: Engine) -> bool:
    return set(Organization.metadata.tables) <= set(inspect(scratch).get_table_names())


def _upgrade_in_a_process(url: str) -> "subprocess.Popen[bytes]":
    """Upgrade as a deployment does. (Alembic keeps what it works on in a global, so threads would not do.)"""
    return subprocess.Popen([sys.executable, "-c", f"import migrations; migrations.upgrade({url!r})"])


def _awaited(scratch: Engine) -> list[str]:
    """Return the kinds of locks that connections wait for."""
    with scratch.connect() as connection:
        return list(connection.exec_driver_sql("SELECT locktype FROM pg_locks WHERE NOT granted ORDER BY 1").scalars())


def test_of_two_upgrades_at_once_one_waits_and_both_succeed(server_url: str, scratch: Engine) -> None:
    with scratch.connect() as connection:
        # A table of the same name, not committed yet, holds up whichever upgrade comes to make its own.
        connection.exec_driver_sql("CREATE TABLE alembic_version ()")
        upgrades = [_upgrade_in_a_process(server_url) for _ in range(2)]
        races.until(lambda: len(_awaited(scratch)) == 2, what="both upgrades wait")
        assert _awaited(scratch) == ["advisory", "transactionid"]
        connection.rollback()
    assert [upgrade.wait(races.PATIENCE_S) for upgrade in upgrades] == [0, 0]
    assert _is_migrated(scratch)


def test_an_upgrade_waits_for_one_that_takes_longer_than_any_lock_may(server_url: str, scratch: Engine) -> None:
    # What is limited is how long a migration may hold up others, not how long it waits for its turn.
    with scratch.connect() as blocker, scratch.connect() as other:
        blocker.exec_driver_sql("CREATE TABLE alembic_version ()")
        first = _upgrade_in_a_process(server_url)
        races.until(lambda: _awaited(scratch) == ["transactionid"], what="the upgrade waits")
        lock = other.exec_driver_sql("SELECT classid, objid FROM pg_locks WHERE locktype = 'advisory'").one()
        blocker.rollback()
        assert first.wait(races.PATIENCE_S) == 0
        other.exec_driver_sql("SELECT pg_advisory_xact_lock((%s::bigint << 32) | %s)", tuple(lock))
        second = _upgrade_in_a_process(server_url)
        races.until(lambda: _awaited(scratch) == ["advisory"], what="the second upgrade waits")
        with pytest.raises(subprocess.TimeoutExpired):  # It ends within this time if it gives up.
            second.wait(timeout=6)
    assert second.wait(races.PATIENCE_S) == 0


def test_an_upgrade_that_failed_lets_the_next_one_in(server_url: str, scratch: Engine) -> None:
    with scratch.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE organizations ()")
    with pytest.raises(ProgrammingError, match="already exists"):
        migrations.upgrade(server_url)
    with scratch.begin() as connection:
        connection.exec_driver_sql("DROP TABLE organizations")
        held = connection.exec_driver_sql("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'")
        assert held.scalar_one() == 0
    migrations.upgrade(server_url)
    assert _is_migrated(scratch)
