"""Section `cost`: what sends leave on disk and in memory, what they write to the log, and the CPU time they take.

Everything is counted until the users' balances are folded too, so that nothing is paid for later.
"""

import time

import psycopg

from app.local.ports import HOST
from benchmarks.busy import ACCOUNTS
from benchmarks.caller import Caller
from benchmarks.load import answered_s, post_send
from benchmarks.options import Options
from benchmarks.rows import Row
from benchmarks.service import Service, running
from benchmarks.usage import cpu_s, resident_bytes

_SMALL_SENDS = 1_000
_LARGE = 10_000
_FOLDED_IN_S = 120.0
# PostgreSQL's processes pass on what they counted after at most ten idle seconds.
_COUNTED_AFTER_S = 11.0


def measure(options: Options) -> list[Row]:
    """Send 10,000 a few times and one a thousand times, on a service of its own each."""
    rows = []
    for size, sends in ((_LARGE, options.rounds), (1, _SMALL_SENDS)):
        with running() as service, service.connect() as connection:
            rows += _measure(service, connection, size=size, sends=sends)
    return rows


def _measure(
    service: Service, connection: psycopg.Connection[tuple[object, ...]], *, size: int, sends: int
) -> list[Row]:
    emails = service.accounts("cost", max(size, ACCOUNTS))
    key = service.sender().key
    starts = range(0, len(emails), size)
    requests = [post_send(key, emails[start : start + size]) for start in starts]
    _rest(connection)
    memory_before = resident_bytes(service.parts())
    before, cpu_before = _counted(connection), cpu_s(service.parts())
    caller = Caller(HOST, service.port, requests, 0)
    for number in range(sends):
        answered_s(caller, requests[number % len(requests)], expect=201)
    caller.close()
    _rest(connection)
    cpu_after, after = cpu_s(service.parts()), _counted(connection)
    memory_after = resident_bytes(service.parts())
    figures = {
        "transaction with indexes, on disk_bytes": _scalar(connection, _TRANSACTION_BYTES) / (size * sends),
        "all tables, on disk per recipient_bytes": (after["disk"] - before["disk"]) / (size * sends),
        "log per recipient_bytes": (after["log"] - before["log"]) / (size * sends),
        "log flushes per recipient": (after["flushes"] - before["flushes"]) / (size * sends),
    }
    figures |= {
        f"{part} per recipient cpu_ms": (cpu_after[part] - cpu_before[part]) * 1e3 / (size * sends)
        for part in cpu_after
    }
    for part in ("web", "worker1"):
        figures[f"{part} memory before_bytes"] = memory_before[part]
        figures[f"{part} memory after_bytes"] = memory_after[part]
    of = {"sends": sends, "recipients": size}
    return [Row(what="sends", of=of, figure=figure, values=[value]) for figure, value in figures.items()]


def _rest(connection: psycopg.Connection[tuple[object, ...]]) -> None:
    """Wait until every credit is folded, and every process of PostgreSQL has passed on its counts."""
    deadline = time.monotonic() + _FOLDED_IN_S
    while _scalar(connection, "SELECT count(*) FROM unfolded_batches") > 0:
        if time.monotonic() > deadline:
            raise SystemExit("The credits were not folded in time, so nothing was measured.")
        time.sleep(0.5)
    time.sleep(_COUNTED_AFTER_S)


_TRANSACTION_BYTES = "SELECT pg_total_relation_size('transactions')"
_COUNTED = """
    SELECT pg_database_size(current_database()), pg_current_wal_insert_lsn() - '0/0'::pg_lsn,
           (SELECT coalesce(sum(fsyncs), 0) FROM pg_stat_io WHERE object = 'wal')
"""


def _counted(connection: psycopg.Connection[tuple[object, ...]]) -> dict[str, float]:
    row = connection.execute(_COUNTED).fetchone()
    assert row is not None, "it is one row"
    return {name: float(str(value)) for name, value in zip(("disk", "log", "flushes"), row, strict=True)}


def _scalar(connection: psycopg.Connection[tuple[object, ...]], statement: str) -> float:
    row = connection.execute(statement).fetchone()
    assert row is not None, "an aggregate always gives a row"
    return float(str(row[0]))
