"""A backup that was taken while the archive worked: once it is restored, the archive goes on with it."""

from pathlib import Path

import pytest

import migrations
from app.archive import ranges
from tests.conftest import forget_everything
from tests.integration import archiving, books
from tests.integration.archiving import ANN, SIZE, archive, draw_ids_to, finish, rows
from tests.operations.server import Server


class _Stopped(Exception):
    """The archive was stopped at a place."""


def test_the_archive_goes_on_with_a_database_that_was_restored_from_its_midst(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POINTS_PARTITION_BATCH_IDS", str(SIZE))
    forget_everything()
    files = tmp_path / "files"
    server = Server(tmp_path / "server")
    server.postgresql.prepare()
    log, backup = server.folder(tmp_path / "log"), server.folder(tmp_path / "backup")
    server.set(archive_mode="on", archive_command=f"cp %p {log}/%f")
    with server.running(monkeypatch):
        migrations.upgrade(server.postgresql.url())
        organization_id = books.make_organization(1_000)
        books.make_users(ANN)
        for number in range(3):
            books.issue_now(organization_id, [ANN], number + 1)
            draw_ids_to((number + 1) * SIZE)
        finish()
        was = {first: rows(first, first + SIZE) for first in (0, SIZE, 2 * SIZE)}
        server.tool("pg_basebackup", f"--pgdata={backup}", "--checkpoint=fast", "--wal-method=stream")
        _stop_before_the_second_is_archived(files, monkeypatch)
        moment = server.ask("SELECT clock_timestamp()")
        assert [len(archive(files)[what]) for what in ("archived", "waiting")] == [2, 0]
        assert rows(0, 3 * SIZE) == []
        server.archive_log()

    restored = server.restored(tmp_path / "restored", backup, restore_command=f"cp {log}/%f %p", moment=moment)
    with restored.running(monkeypatch):
        restored.wait_until_restored()
        assert books.breaches() == []
        assert [rows(first, first + SIZE) == those for first, those in was.items()] == [False, True, True]
        assert [len(archive(files)[what]) for what in ("archived", "waiting")] == [2, 0]
        assert books.breaches() == []
        for first, those in was.items():
            assert archiving.is_in_one_place(files, those, first, first + SIZE)
        assert rows(0, 3 * SIZE) == []
        assert books.issue_now(organization_id, [ANN], 5)
        assert books.breaches() == []


def _stop_before_the_second_is_archived(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Archive the first range whole, and of the second write and compare the files."""
    note = ranges.note_archived

    def stop(connection: object, first: int) -> None:
        if first:
            raise _Stopped
        note(connection, first)  # type: ignore[arg-type]

    with monkeypatch.context() as patched:
        patched.setattr(ranges, "note_archived", stop)
        with pytest.raises(_Stopped):
            archive(files)
