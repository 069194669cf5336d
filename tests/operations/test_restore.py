"""Backup, and restore to a point in time, with PostgreSQL's own tools, in the steps of docs/backup.md."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.ledger.refill import refill
from app.postgres.database import transaction
from app.webhooks import delivery
from app.webhooks.webhook import Webhook
from tests.deadline import until
from tests.integration import books, hooks
from tests.operations.server import Server
from tests.operations.shown import figures
from tests.receiver import Receiver
from tests.unit.deployment.files import ROOT

# What an operator is told to write, so that just that is tried.
_PAGE = (ROOT / "docs" / "backup.md").read_text()
_LAST_IDS = "SELECT coalesce(last_value, 0) FROM pg_sequences WHERE schemaname = 'public'"


def _told(form: str, archive: Path) -> str:
    """Return what stands on the page in place of the group of a form, for an archive that is here."""
    found = re.findall(form, _PAGE)
    assert len(found) == 1, f"{form} stands once in docs/backup.md"
    return str(found[0]).replace("/archive", str(archive))


def _status_of(batch: int) -> str | None:
    with transaction() as connection:
        found = connection.exec_driver_sql("SELECT status FROM batches WHERE id = %s", (batch,)).scalar()
    return None if found is None else str(found)


@pytest.fixture
def receiver(environment: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    hooks.allow_receivers_here(monkeypatch)
    with Receiver().running() as running:
        yield running


@pytest.mark.long
def test_a_restore_has_exactly_what_was_there_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, receiver: Receiver
) -> None:
    server = Server.migrated(tmp_path / "server")
    archive = server.folder(tmp_path / "archive")
    backup = server.folder(tmp_path / "backup")
    server.set(archive_mode="on", archive_command=_told(r"archive_command = '(.*)'", archive))
    with server.running(monkeypatch):
        acme = books.make_organization(1_000)
        books.make_users("ada@example.com")
        webhook = hooks.make(acme, receiver.url)
        before_the_backup = books.issue_now(acme, ["ada@example.com", "held@example.com"], 10)
        server.tool("pg_basebackup", f"--pgdata={backup}", "--checkpoint=fast", "--wal-method=stream")
        server.tool("pg_verifybackup", str(backup))
        after_the_backup = books.issue_now(acme, ["ada@example.com"], 20)
        accepted = books.queue_batch(acme, ["grace@example.com"], 30)
        kept = _push(webhook, receiver)[-1]["sequence"]
        moment = server.ask("SELECT clock_timestamp()")
        too_late = books.issue_now(acme, ["ada@example.com", "late@example.com"], 40)
        books.run(refill, acme, 7, sandbox=True)
        assert [event["sequence"] for event in _push(webhook, receiver)] == [kept + 1, kept + 2]
        server.archive_log()

    command = _told(r"restore_command = '(.*)'", archive)
    restored = server.restored(tmp_path / "restored", backup, restore_command=command, moment=moment)
    with restored.running(monkeypatch):
        restored.wait_until_restored()
        batches = (before_the_backup, after_the_backup, accepted, too_late)
        assert [_status_of(batch) for batch in batches] == ["issued", "issued", "queued", None]
        assert (books.balance_of(acme), books.balance_of_user("ada@example.com")) == (960, 30)
        assert _points("audit")["balanced"] is True
        # It goes on from there: what was accepted is issued, once, and no id is given a second time.
        told = _points(_told(r"\$ points (restored)\n", archive))
        assert min(books.values(_LAST_IDS)) >= told["skipped"]
        books.drain_all(acme)
        assert _status_of(accepted) == "issued"
        assert books.issue_now(acme, ["ada@example.com"], 5) > too_late + 100_000
        books.run(refill, acme, 7, sandbox=True)
        # A receiver that drops what it knows takes each event, and is told of the restore.
        first = kept + told["skipped"] + 1
        taken = [(event["sequence"], event["restored_at"]) for event in _push(webhook, receiver)]
        assert taken == [(first, told["restored_at"]), (first + 1, told["restored_at"])]
        assert books.values("SELECT sequence FROM events WHERE sandbox") == [told["skipped"] + 1]
        assert (books.balance_of(acme), _points("audit")["breaches"]) == (925, [])


def _points(command: str) -> dict[str, Any]:
    """Return what a command says of the database that this process is the service of."""
    program = Path(sys.executable).with_name("points")
    done = subprocess.run([str(program), command, "--json"], capture_output=True, text=True, check=False)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _push(webhook: Webhook, receiver: Receiver) -> list[dict[str, Any]]:
    """Number and deliver what waits for a webhook; return the events that came and that were not known by then."""
    known = [call.event for call in receiver.calls]
    numbers, ids = ({event[name] for event in known} for name in ("sequence", "id"))
    hooks.number(webhook.organization_id)
    delivery.deliver(webhook.id, tell=lambda _: None)
    came = [call.event for call in receiver.calls[len(known) :]]
    return [event for event in came if event["sequence"] not in numbers and event["id"] not in ids]


def test_a_segment_that_is_archived_already_is_no_failure_unless_it_is_another(tmp_path: Path) -> None:
    archive, segment = tmp_path / "archive", tmp_path / "000000010000000000000001"
    archive.mkdir()
    command = _told(r"archive_command = '(.*)'", archive).replace("%p", str(segment)).replace("%f", segment.name)
    for content, is_archived in (("one", True), ("one", True), ("another", False)):
        segment.write_text(content)
        assert (subprocess.run(["/bin/sh", "-c", command], check=False).returncode == 0) is is_archived
    assert (archive / segment.name).read_text() == "one"


@pytest.mark.usefixtures("broker")
def test_the_metrics_tell_of_a_failing_archive_a_kept_log_and_old_transaction_ids(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = Server.migrated(tmp_path / "server")
    server.set(archive_mode="on", archive_command="false")
    with server.running(monkeypatch):
        assert books.value("SELECT rolsuper FROM pg_roles WHERE rolname = current_user") is False
        shown = figures()
        assert [shown[f"points_{name}"] for name in ("archive_failing", "slot_retained_bytes")] == [0, 0]
        server.ask("SELECT pg_create_physical_replication_slot('left', true)")
        server.ask("SELECT pg_switch_wal()")
        until(lambda: figures()["points_archive_failing"] == 1)
        assert figures()["points_slot_retained_bytes"] > 0
        server.set_now(archive_command="true")
        until(lambda: figures()["points_archive_failing"] == 0)
        age = figures()["points_transaction_id_age"]
        books.make_organization()
        assert 0 < age < figures()["points_transaction_id_age"] < 10_000
        # The runbooks ask the same role.
        page = (ROOT / "docs" / "operating.md").read_text()
        asked = re.findall(r'-c "([^"]+)"', "".join(re.findall(r'^\$ psql "\$DATABASE_URL" .*$', page, re.MULTILINE)))
        assert len(asked) >= page.count('$ psql "$DATABASE_URL"') > 0
        books.execute(*(query.replace("%", "%%") for query in asked))
