"""Partitions of transactions: made ahead, made late, made while somebody is killed; and which of them a statement asks."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, MutableMapping
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

import pytest
from sqlalchemy import Engine, text

import migrations
from app.exports import export
from app.ledger.extend import extend
from app.pages import batch_pages, transaction_pages
from app.pages.filters import Filters
from app.postgres import partitions
from app.postgres.connections import engine
from app.postgres.database import snapshot, transaction
from app.values.ids import POSITIONS
from tests.conftest import Servers, forget_everything
from tests.deadline import until
from tests.integration import books, races

SIZE = 64
# The ids that one hash of the index of addresses goes through.
ID_RANGE = 16_384
ANN, BOB, CEM = (f"{name}@example.com" for name in ("ann", "bob", "cem"))


@pytest.fixture
def small(
    scratch: Engine, server_url: str, servers: Servers, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[None]:
    """Give a test a database whose partitions are small, and have everything of ours use it."""
    size, options = getattr(request, "param", (SIZE, ""))
    monkeypatch.setenv("POINTS_PARTITION_BATCH_IDS", str(size))
    monkeypatch.setenv("POINTS_DATABASE_CONNECTIONS_MAX", "20")
    monkeypatch.setenv("REDIS_URL", servers.redis_url)
    migrations.upgrade(server_url)
    monkeypatch.setenv("DATABASE_URL", f"{server_url}?options={quote(options)}")
    forget_everything()
    yield
    forget_everything()


def _bounds() -> list[tuple[int, int]]:
    """Return the first id of each partition and the first behind it, in order."""
    with transaction() as connection:
        rows = connection.execute(_BOUNDS).all()
    return sorted((int(first), int(end)) for first, end in rows)


_BOUNDS = text(r"""
    SELECT split_part(relname, '_', 3), substring(pg_get_expr(relpartbound, oid) FROM 'TO \(''(\d+)''\)')
    FROM pg_class WHERE relname ~ '^transactions_from_\d+$' AND relispartition
""")


def _draw_ids_to(newest_id: int) -> None:
    """Have the next batch get the id after this one, as if as many had been accepted and then cancelled."""
    books.execute(f"SELECT setval('batches_id_seq', {newest_id})")


def _follow_each_other() -> bool:
    bounds = _bounds()
    return bounds[0][0] == 0 and all(end == first for (_, end), (first, _) in zip(bounds, bounds[1:], strict=False))


def _ahead() -> int:
    with transaction() as connection:
        return partitions.look(connection).ahead


@pytest.mark.usefixtures("small")
def test_there_are_always_four_partitions_ahead_and_no_id_is_without_one() -> None:
    assert _bounds() == [(first, first + SIZE) for first in range(0, 6 * SIZE, SIZE)]
    for newest_id in (1, SIZE - 1, SIZE, 3 * SIZE, 6 * SIZE, 6 * SIZE + 5, 900 * SIZE + 1):
        _draw_ids_to(newest_id)
        partitions.make()
        assert _ahead() == 5
        assert _follow_each_other()
    assert len(_bounds()) < 30, "what was passed over has one partition"
    _draw_ids_to(newest_id + SIZE)
    assert _ahead() == 4, "one may begin before the upkeep looks"


@pytest.mark.usefixtures("small")
def test_another_size_holds_from_the_next_partition_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POINTS_PARTITION_BATCH_IDS", "100")
    forget_everything()
    _draw_ids_to(6 * SIZE - 1)
    partitions.make()
    assert _bounds()[-5:] == [(384, 400), (400, 500), (500, 600), (600, 700), (700, 800)]


@pytest.mark.usefixtures("small")
def test_processes_that_look_at_once_make_each_partition_once() -> None:
    _draw_ids_to(20 * SIZE)
    races.at_once(*[partitions.make] * 8)
    assert (_ahead(), _follow_each_other()) == (5, True)


@pytest.mark.usefixtures("small")
def test_partitions_are_made_while_others_write_and_read() -> None:
    organization_id = books.make_organization(100)
    books.queue_batch(organization_id, [ANN], 1)
    with transaction() as writer, snapshot() as reader:
        assert reader.exec_driver_sql("SELECT count(*) FROM transactions").scalar() == 0
        assert books.issue(writer, organization_id) is not None
        _draw_ids_to(6 * SIZE)
        partitions.make()
        assert _ahead() == 5
        assert reader.exec_driver_sql("SELECT count(*) FROM transactions").scalar() == 0
    assert books.breaches() == []


@pytest.mark.usefixtures("small")
def test_a_send_that_has_no_partition_is_issued_all_the_same() -> None:
    organization_id = books.make_organization(100)
    _draw_ids_to(50 * SIZE)
    ids = [books.queue_batch(organization_id, [ANN, BOB], 1) for _ in range(3)]
    assert books.drain_all(organization_id) == ids
    assert [books.read_batch(organization_id, batch_id)[0].debited_count for batch_id in ids] == [2, 2, 2]
    assert (_ahead(), books.breaches()) == (5, [])


@pytest.mark.usefixtures("small")
def test_what_is_accepted_waits_while_no_partition_can_be_made(
    monkeypatch: pytest.MonkeyPatch, events: list[MutableMapping[str, Any]]
) -> None:
    monkeypatch.setattr("app.postgres.connections.LOCK_TIMEOUT_MS", 300)
    engine().dispose()
    organization_id = books.make_organization(100)
    _draw_ids_to(50 * SIZE)
    batch_id = books.queue_batch(organization_id, [ANN], 1)
    with transaction() as somebody:
        somebody.exec_driver_sql("LOCK TABLE transactions IN SHARE UPDATE EXCLUSIVE MODE")
        assert books.drain_all(organization_id) == []
    [batch, transactions] = books.read_batch(organization_id, batch_id)
    assert (batch.status, transactions) == ("queued", [])
    assert [event["event"] for event in events if event["log_level"] != "info"] == ["partitions_not_made"]
    assert books.drain_all(organization_id) == [batch_id], "it was not put aside"
    assert books.breaches() == []


# A process that forks one for each line it reads; each makes partitions again and again until it is killed.
_MAKERS = """
import os, sys
from sqlalchemy import text
from app.postgres import partitions
from app.postgres.database import transaction
for line in sys.stdin:
    maker = os.fork()
    if not maker:
        while True:
            with transaction() as connection:
                connection.execute(text("SELECT setval('batches_id_seq', nextval('batches_id_seq') + 200)"))
            partitions.make()
    print(maker, flush=True)
    os.waitpid(maker, 0)
    print("gone", flush=True)
"""


@pytest.mark.usefixtures("small")
def test_a_process_that_is_killed_while_it_makes_partitions_leaves_whole_ones_or_none() -> None:
    chance = random.Random(50)
    with subprocess.Popen(
        [sys.executable, "-c", _MAKERS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as makers:
        assert makers.stdin is not None
        assert makers.stdout is not None
        for _ in range(20):
            made = len(_bounds())
            makers.stdin.write("one more\n")
            makers.stdin.flush()
            maker = int(makers.stdout.readline())
            until(lambda made=made: len(_bounds()) > made, "it makes partitions")
            time.sleep(chance.uniform(0, 0.02))  # So that it is killed at another place each time.
            os.kill(maker, signal.SIGKILL)
            assert makers.stdout.readline() == "gone\n"
            assert _follow_each_other()
            with transaction() as connection:
                assert connection.execute(_NOT_ATTACHED).scalars().all() == []
        makers.stdin.close()
    partitions.make()
    assert _ahead() == 5


_NOT_ATTACHED = text("SELECT relname FROM pg_class WHERE relname LIKE 'transactions_from_%' AND relkind = 'r'"
                     " AND NOT relispartition")
