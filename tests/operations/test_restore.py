"""Backup, and restore to a point in time, with PostgreSQL's own tools, in the steps of docs/backup.md."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import migrations
from app.batches import find
from app.database import transaction
from tests.crash.parts import until
from tests.integration import books
from tests.operations.server import Server

_PATIENCE_S = 60


def _status_of(organization: int, batch: int) -> str | None:
    with transaction() as connection:
        found = find(connection, batch, organization_id=organization, sandbox=False)
    return None if found is None else found.status


def test_a_restore_has_exactly_what_was_there_at_its_moment_and_its_books_balance(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = Server(tmp_path / "server")
    server.postgresql.prepare()
    archive = server.folder(tmp_path / "archive")
    backup = server.folder(tmp_path / "backup")
    server.set(archive_mode="on", archive_command=f"test ! -f {archive}/%f && cp %p {archive}/%f")
    with server.running(monkeypatch):
        migrations.upgrade(server.postgresql.url())
        acme = books.make_organization(1_000)
        books.make_users("ada@example.com")
        before_the_backup = books.issue_now(acme, ["ada@example.com", "held@example.com"], 10)
        server.tool("pg_basebackup", f"--pgdata={backup}", "--checkpoint=fast", "--wal-method=stream")
        server.tool("pg_verifybackup", str(backup))
        after_the_backup = books.issue_now(acme, ["ada@example.com"], 20)
        accepted = books.queue_batch(acme, ["grace@example.com"], 30)
        moment = server.ask("SELECT clock_timestamp()")
        too_late = books.issue_now(acme, ["ada@example.com", "late@example.com"], 40)
        last = server.ask("SELECT pg_walfile_name(pg_switch_wal())")
        archived = f"SELECT coalesce(last_archived_wal >= '{last}', false) FROM pg_stat_archiver"
        assert until(lambda: server.ask(archived) == "True", within_s=_PATIENCE_S)

    restored = Server(tmp_path / "restored")
    shutil.copy(server.data.path / "secrets.json", restored.data.path)
    backup.rename(restored.cluster)
    restored.set(
        archive_mode="off",
        restore_command=f"cp {archive}/%f %p",
        recovery_target_time=moment,
        recovery_target_action="promote",
    )
    (restored.cluster / "recovery.signal").touch()
    with restored.running(monkeypatch):
        assert until(lambda: restored.ask("SELECT pg_is_in_recovery()") == "False", within_s=_PATIENCE_S)
        batches = (before_the_backup, after_the_backup, accepted, too_late)
        assert [_status_of(acme, batch) for batch in batches] == ["issued", "issued", "queued", None]
        assert (books.balance_of(acme), books.balance_of_user("ada@example.com")) == (960, 30)
        assert _audit()["balanced"] is True
        # It goes on from there: what was accepted is issued, once.
        books.drain_all(acme)
        assert _status_of(acme, accepted) == "issued"
        assert (books.balance_of(acme), _audit()["breaches"]) == (930, [])


def _audit() -> dict[str, object]:
    """Return what `points audit` says of the database that this process is the service of."""
    program = Path(sys.executable).with_name("points")
    done = subprocess.run([str(program), "audit", "--json"], capture_output=True, text=True, check=False)
    found: dict[str, object] = json.loads(done.stdout)
    return found
