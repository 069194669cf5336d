"""Partitions of transactions: made ahead, made late, made while somebody is killed; which of them a statement asks."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, MutableMapping
from itertools import pairwise
from typing import Any

import pytest
from sqlalchemy import text

from app.batches.batch import find_final
from app.ledger import held_list
from app.postgres import partitions
from app.postgres.connections import engine
from app.postgres.database import snapshot, transaction
from tests.conftest import forget_everything
from tests.deadline import until
from tests.integration import books, races

SIZE = 64
# The ids that one hash of the index of addresses goes through.
ID_RANGE = 16_384
ANN, BOB = "ann@example.com", "bob@example.com"


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
    return bounds[0][0] == 0 and all(end == first for (_, end), (first, _) in pairwise(bounds))


def _ahead() -> int:
    with transaction() as connection:
        return partitions.look(connection).ahead


@pytest.mark.usefixtures("small_partitions")
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


@pytest.mark.usefixtures("small_partitions")
def test_another_size_holds_from_the_next_partition_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POINTS_PARTITION_BATCH_IDS", "100")
    forget_everything()
    _draw_ids_to(6 * SIZE - 1)
    partitions.make()
    assert _bounds()[-5:] == [(384, 400), (400, 500), (500, 600), (600, 700), (700, 800)]


@pytest.mark.usefixtures("small_partitions")
def test_processes_that_look_at_once_make_each_partition_once() -> None:
    _draw_ids_to(20 * SIZE)
    races.at_once(*[partitions.make] * 8)
    assert (_ahead(), _follow_each_other()) == (5, True)


@pytest.mark.usefixtures("small_partitions")
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


@pytest.mark.usefixtures("small_partitions")
def test_a_send_that_has_no_partition_is_issued_all_the_same() -> None:
    organization_id = books.make_organization(100)
    _draw_ids_to(50 * SIZE)
    ids = [books.queue_batch(organization_id, [ANN, BOB], 1) for _ in range(3)]
    assert books.drain_all(organization_id) == ids
    assert [books.read_batch(organization_id, batch_id)[0].debited_count for batch_id in ids] == [2, 2, 2]
    assert (_ahead(), books.breaches()) == (5, [])


@pytest.mark.usefixtures("small_partitions")
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
    assert [event["event"] for event in events if event["log_level"] != "info"] == ["organization_locked"]
    forget_everything()  # For how long the organization is left alone.
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


@pytest.mark.usefixtures("small_partitions")
def test_a_process_that_is_killed_while_it_makes_partitions_leaves_whole_ones_or_none() -> None:
    chance = random.Random(50)  # noqa: S311  # The same moments in each run.
    with subprocess.Popen(
        [sys.executable, "-c", _MAKERS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as makers:
        assert makers.stdin is not None
        assert makers.stdout is not None
        for _ in range(8):
            made = len(_bounds())
            makers.stdin.write("one more\n")
            makers.stdin.flush()
            maker = int(makers.stdout.readline())
            until(lambda made=made: len(_bounds()) > made, "it makes partitions")
            time.sleep(chance.uniform(0, 0.02))  # So that it is killed at another place each time.
            os.kill(maker, signal.SIGKILL)
            assert makers.stdout.readline() == "gone\n"
            assert _follow_each_other()
            assert books.values(_NOT_ATTACHED) == []
        makers.stdin.close()
    partitions.make()
    assert _ahead() == 5


_NOT_ATTACHED = text(
    "SELECT relname FROM pg_class WHERE relname LIKE 'transactions_from_%' AND relkind = 'r' AND NOT relispartition"
)


_TOUCHED = text("""
    SELECT CAST(split_part(relname, '_', 3) AS bigint) / :size,
           heap_blks_read + heap_blks_hit + coalesce(idx_blks_read + idx_blks_hit, 0)
    FROM pg_statio_user_tables WHERE relname LIKE 'transactions_from_%'
""")


def _touched(work: Callable[[], object]) -> list[int]:
    """Return the partitions that work has looked into, by their number; it is done before until plans are kept."""
    for _ in range(8):
        work()
    before = _blocks()
    work()
    return sorted(number for number, blocks in _blocks().items() if blocks > before.get(number, 0))


def _blocks() -> dict[int, int]:
    with transaction() as connection:
        connection.exec_driver_sql("SELECT pg_stat_force_next_flush()")
    with transaction() as connection:
        rows = connection.execute(_TOUCHED, {"size": ID_RANGE})
        return {number: blocks for number, blocks in rows}  # noqa: C416  # They have no type to be a dict of.


# Plans that are kept, as in a service that runs for long: PostgreSQL knows no value when it makes them.
_KEPT_PLANS = (ID_RANGE, "-c plan_cache_mode=force_generic_plan")


@pytest.fixture
def filled(small_partitions: None, monkeypatch: pytest.MonkeyPatch) -> dict[int, list[int]]:
    """Issue in each of five partitions batches to Ann, who has an account, and to others."""
    monkeypatch.setenv("POINTS_DATABASE_CONNECTIONS_MAX", "1")
    forget_everything()
    books.make_users(ANN)
    organization_id = books.make_organization(10**6)
    others = [f"other{place}@example.com" for place in range(19)]
    ids: dict[int, list[int]] = {}
    for number in range(5):
        _draw_ids_to(number * ID_RANGE + 10)
        ids[number] = [books.queue_batch(organization_id, [ANN, *others], 1) for _ in range(12)]
        books.drain_all(organization_id)
    books.fold()
    return ids


@pytest.mark.parametrize("small_partitions", [(ID_RANGE, "")], indirect=True)
def test_the_read_of_an_answer_opens_its_partition_alone_by_a_plan_that_is_kept(filled: dict[int, list[int]]) -> None:
    batch_ids = filled[2][:2]
    for _ in range(20):
        with transaction() as connection:
            assert list(find_final(connection, batch_ids)) == batch_ids
            kept = connection.execute(_OF_THE_READ).one()
    assert (kept.generic_plans > 0, kept.custom_plans <= 5) == (True, True)
    with transaction() as connection:
        first, last = min(batch_ids), max(batch_ids)
        [plan] = connection.exec_driver_sql(
            f"EXPLAIN (FORMAT JSON) EXECUTE {kept.name}('{batch_ids}', {first}, {last})"
        ).one()
    assert '"Subplans Removed": 5' in json.dumps(plan)


_OF_THE_READ = text("""
    SELECT name, generic_plans, custom_plans FROM pg_prepared_statements
    WHERE statement LIKE '%AS asked%batch_id BETWEEN%' ORDER BY generic_plans DESC LIMIT 1
""")


def _list_all_held() -> None:
    for _ in range(2):
        held_list.list_full()


@pytest.mark.parametrize("small_partitions", [_KEPT_PLANS], indirect=True)
def test_what_moves_points_asks_the_partitions_of_its_batches_alone(filled: dict[int, list[int]]) -> None:
    newcomers = iter(range(100))
    _draw_ids_to(5 * ID_RANGE + 10)

    def send() -> None:
        books.issue_now(1, [ANN, f"stranger{next(newcomers)}@example.com"], 1)
        books.fold()

    assert _touched(send) == [5]
    _list_all_held()
    claiming, others = iter(range(100)), iter(range(19))
    assert _touched(lambda: books.make_users(f"stranger{next(claiming)}@example.com")) == [5]
    assert _touched(lambda: books.make_users(f"nobody{next(newcomers)}@example.com")) == [5], "the newest has an index"
    assert _touched(lambda: books.make_users(f"other{next(others)}@example.com")) == [0, 1, 2, 3, 4, 5]
    reversing = iter([*filled[0][:2], *filled[3][:2], *filled[4][:3], *filled[2][:2]])
    assert _touched(lambda: books.reverse_now(1, batch_id=next(reversing), amount=1)) == [2]
