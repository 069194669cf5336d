"""A real standby that follows by streaming replication: it answers the long reads, nobody sees less, and none fails."""

import signal
from collections.abc import Iterator, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from sqlalchemy import Connection, Engine, event, text

from app.cli.operating import audit
from app.exports import sources
from app.exports.columns import CSV, TRANSACTIONS
from app.exports.export import begin
from app.pages.filters import Filters
from app.postgres import standby as reads
from app.postgres.connections import psycopg_connection
from app.postgres.database import single_statement
from app.postgres.standby import long_read
from app.web.application import create_app
from tests.conftest import forget_everything
from tests.integration import books
from tests.operations.server import Pair, Server, standby_of
from tests.operations.shown import figures, status

pytestmark = [pytest.mark.usefixtures("broker"), pytest.mark.long]

Events = list[MutableMapping[str, Any]]


@pytest.fixture
def asked() -> Iterator[list[tuple[int, str]]]:
    """Collect the port of the server that each statement was sent to."""
    found: list[tuple[int, str]] = []

    def note(connection: Connection, _cursor: Any, statement: str, *_: Any) -> None:
        found.append((psycopg_connection(connection).info.port, statement))

    event.listen(Engine, "before_cursor_execute", note)
    yield found
    event.remove(Engine, "before_cursor_execute", note)


class Reader:
    """A caller who reads the statement of an organization, and knows who answered."""

    def __init__(self, asked: list[tuple[int, str]]) -> None:
        self._asked = asked
        self._client = create_app().test_client()
        self.organization_id = books.make_organization(100)
        self._bearer = {"Authorization": f"Bearer {books.make_live_key(self.organization_id)}"}

    def closing_balance(self) -> int:
        self._asked.clear()
        days = {"from": (datetime.now(UTC) - timedelta(days=1)).date(), "to": datetime.now(UTC).date()}
        answer = self._client.get("/v1/statement", query_string=days, headers=self._bearer)
        assert answer.status_code == 200, answer.text
        closing: int = answer.json["data"]["total"]["closing_balance"]  # type: ignore[index]
        return closing

    def answered_by(self, words: str = "daily_sums") -> set[int]:
        return {port for port, statement in self._asked if words in statement}


def test_the_standby_answers_long_reads_until_it_is_behind_away_or_promoted(
    pair: Pair, asked: list[tuple[int, str]], events: Events, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader, balance = Reader(asked), 100
    primary, standby = pair.primary.port(), pair.standby.port()
    monkeypatch.setattr(reads, "_PATIENCE_S", 60)
    for _ in range(20):
        books.refill_now(reader.organization_id, 1)
        balance += 1
        assert (reader.closing_balance(), reader.answered_by()) == (balance, {standby})
    assert (status()["standby"]["fault"], figures()["points_standby_up"]) == (None, 1)
    asked.clear()
    for _ in range(3):
        books.issue_now(reader.organization_id, ["ada@example.com", "bob@example.com"], 1)
        balance -= 2
    assert CliRunner().invoke(audit, ["--json"]).exit_code == 0
    assert reader.answered_by("WITH modes") == {standby}

    pair.standby.ask("SELECT pg_wal_replay_pause()")
    monkeypatch.setattr(reads, "_PATIENCE_S", 0.1)
    books.refill_now(reader.organization_id, 2)
    balance += 1
    books.issue_now(reader.organization_id, ["cid@example.com"], 1)
    filters = Filters(organization_id=reader.organization_id, sandbox=False)
    assert b"total of 7 rows" in b"".join(begin(TRANSACTIONS, CSV, filters).content())
    assert (reader.closing_balance(), reader.answered_by()) == (balance, {primary})
    assert "bytes behind" in _why_left_alone(events)
    assert figures()["points_standby_lag_bytes"] > 0
    pair.standby.ask("SELECT pg_wal_replay_resume()")
    _ask_it_again(monkeypatch)
    assert (reader.closing_balance(), reader.answered_by()) == (balance, {standby})

    with _frozen(pair.standby):
        monkeypatch.setattr(reads, "_LOOK_TIMEOUT_S", 0.5)
        on_primary = _backend()
        assert (reader.closing_balance(), reader.answered_by()) == (balance, {primary})
        assert _backend() == on_primary, "its connections are not given up for it"
    monkeypatch.setattr(reads, "_LOOK_TIMEOUT_S", 60)
    _ask_it_again(monkeypatch)

    whole = b"".join(begin(TRANSACTIONS, CSV, filters).content())
    monkeypatch.setattr(sources, "PIECE_ROWS", 1)
    export = begin(TRANSACTIONS, CSV, filters).content()
    asked.clear()
    pieces = [next(export), next(export)]
    assert reader.answered_by("looked_at") == {standby}
    _kill(pair.standby)
    assert b"".join([*pieces, *export]) == whole
    assert reader.answered_by("looked_at") == {standby, primary}
    assert (reader.closing_balance(), reader.answered_by()) == (balance, {primary})
    assert (status()["standby"]["fault"], figures()["points_standby_up"]) == ("it does not answer", 0)
    assert "points_standby_lag_bytes" not in figures()

    pair.standby.postgresql.start_detached()
    pair.standby.postgresql.wait_until_ready()
    _ask_it_again(monkeypatch)
    assert (reader.closing_balance(), reader.answered_by()) == (balance, {standby})
    assert pair.standby.ask("SELECT pg_promote()") == "True"
    books.refill_now(reader.organization_id, 1)
    balance += 1
    assert (reader.closing_balance(), reader.answered_by()) == (balance, {primary})
    [fault] = [fault for fault in status()["down"] if "standby" in fault]
    assert fault.startswith("The standby: it is none any more, and takes writes of its own. Reads ask the primary.")


def test_a_standby_that_follows_what_was_the_primary_before_a_failover_is_not_asked(
    pair: Pair, asked: list[tuple[int, str]], events: Events, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    reader = Reader(asked)
    left_behind = standby_of(pair.primary, tmp_path, "left_behind")
    with left_behind.running(monkeypatch):
        monkeypatch.setenv("DATABASE_URL", pair.primary.postgresql.url())
        monkeypatch.setenv("DATABASE_READ_URL", left_behind.postgresql.url())
        forget_everything()
        _ask_it_again(monkeypatch)
        assert (reader.closing_balance(), reader.answered_by()) == (100, {left_behind.port()})
        pair.standby.ask("SELECT pg_promote()")
        # By its position it is ahead of the new primary.
        books.execute("CREATE TABLE lost AS SELECT generate_series(1, 100000)")
        monkeypatch.setenv("DATABASE_URL", pair.standby.postgresql.url())
        forget_everything()
        books.refill_now(reader.organization_id, 1)
        assert (reader.closing_balance(), reader.answered_by()) == (101, {pair.standby.port()})
        assert "the primary before" in _why_left_alone(events)


def test_a_read_that_the_standby_breaks_off_is_begun_anew_on_the_primary(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reads, "_PATIENCE_S", 60)
    organization_id = books.make_organization(100)
    pair.standby.set_now(max_standby_streaming_delay="0")
    asked = []

    def clean_up() -> None:
        """Remove on the primary what a snapshot on the standby still sees."""
        books.refill_now(organization_id, 1)
        with single_statement() as connection:
            connection.exec_driver_sql("VACUUM organizations")

    with ThreadPoolExecutor() as pool:

        def read(connection: Connection) -> int:
            asked.append(psycopg_connection(connection).info.port)
            balance = connection.execute(text("SELECT balance FROM organizations")).scalar_one()
            if len(asked) == 1:
                pool.submit(clean_up)
                connection.execute(text("SET LOCAL statement_timeout = 0"))
                connection.execute(text("SELECT pg_sleep(3600)"))
            return int(balance)

        assert long_read(read) == 101
    assert asked == [pair.standby.port(), pair.primary.port()]


def _ask_it_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget that the standby is left alone, and wait for it as long as it takes."""
    monkeypatch.setattr(reads, "_PATIENCE_S", 60)
    reads._left_alone_until = 0.0


@contextmanager
def _frozen(server: Server) -> Iterator[None]:
    """Let a server keep its connections and answer nothing."""
    process = server.postgresql.process()
    assert process is not None
    frozen = [process, *process.children()]
    for one in frozen:
        one.suspend()
    yield
    for one in reversed(frozen):
        one.resume()


def _backend() -> int:
    with single_statement() as connection:
        return psycopg_connection(connection).info.backend_pid


def _kill(server: Server) -> None:
    """End a server at once, as a crash does."""
    process = server.postgresql.process()
    assert process is not None
    process.send_signal(signal.SIGQUIT)
    process.wait(60)


def _why_left_alone(events: Events) -> str:
    return str([event for event in events if event["event"] == "standby_left_alone"][-1]["reason"])
