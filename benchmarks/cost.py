"""Section `cost`: the disk, memory, log and CPU time that sends take.

Disk and log are counted until all credits are folded; CPU time until the last answer.
"""

import contextlib
import time

from app.local.ports import HOST
from benchmarks.busy import ACCOUNTS
from benchmarks.caller import Caller
from benchmarks.floor import Connection
from benchmarks.load import answered_s, post_send
from benchmarks.options import Options
from benchmarks.rows import Row
from benchmarks.service import Service, running
from benchmarks.usage import cpu_s, resident_bytes

_SMALL_SENDS = 1_000
_LARGE = 10_000
# PostgreSQL's processes report their counts after at most ten idle seconds.
_COUNTED_AFTER_S = 11.0


def measure(options: Options) -> list[Row]:
    """Send to 10,000 a few times and to one a thousand times, each on a new service."""
    rows = []
    for size, sends in ((_LARGE, options.rounds), (1, _SMALL_SENDS)):
        with running() as service, service.connect() as connection:
            rows += _measure(service, connection, size=size, sends=sends)
    return rows


def _measure(service: Service, connection: Connection, *, size: int, sends: int) -> list[Row]:
    emails = service.accounts("cost", max(size, ACCOUNTS))
    key = service.sender().key
    requests = [post_send(key, emails[start : start + size]) for start in range(0, len(emails), size)]
    idle_cpu_s = cpu_s(service.parts())
    rest_s = _rest(service)
    before, cpu_before, memory_before = _counted(connection), cpu_s(service.parts()), resident_bytes(service.parts())
    with contextlib.closing(Caller(HOST, service.port, requests, 0)) as caller:
        for number in range(sends):
            answered_s(caller, requests[number % len(requests)], expect=201)
    sending_s = caller.sent_at - before["at"]
    cpu_after = cpu_s(service.parts())
    _rest(service)
    after, memory_after = _counted(connection), resident_bytes(service.parts())
    count = size * sends
    figures = {
        "transaction with indexes, on disk_bytes": _scalar(connection, _TRANSACTION_BYTES) / count,
        "all tables, on disk per recipient_bytes": (after["disk"] - before["disk"]) / count,
        "log per recipient_bytes": (after["log"] - before["log"]) / count,
        "log flushes per recipient": (after["flushes"] - before["flushes"]) / count,
    }
    for part, used_s in cpu_after.items():
        # Subtract what the part uses without sends, such as for the sweeps.
        idle_s = (cpu_before[part] - idle_cpu_s[part]) / rest_s * sending_s
        figures[f"{part} per recipient cpu_ms"] = max(0.0, used_s - cpu_before[part] - idle_s) * 1e3 / count
    for part in ("web", "worker1"):
        figures[f"{part} resident before_bytes"] = memory_before[part]
        figures[f"{part} resident after_bytes"] = memory_after[part]
    of = {"times": sends, "recipients": size}
    return [Row(what="sends", of=of, figure=figure, values=[value]) for figure, value in figures.items()]


def _rest(service: Service) -> float:
    """Wait until all credits are folded and PostgreSQL has reported its counts; return the seconds."""
    started = time.monotonic()
    service.wait_until_folded()
    time.sleep(_COUNTED_AFTER_S)
    return time.monotonic() - started


_TRANSACTION_BYTES = "SELECT pg_total_relation_size('transactions')"
_COUNTED = """
    SELECT pg_database_size(current_database()), pg_current_wal_insert_lsn() - '0/0'::pg_lsn,
           (SELECT coalesce(sum(fsyncs), 0) FROM pg_stat_io WHERE object = 'wal')
"""


def _counted(connection: Connection) -> dict[str, float]:
    row = connection.execute(_COUNTED).fetchone()
    assert row is not None, "it is one row"
    counts = {name: float(str(value)) for name, value in zip(("disk", "log", "flushes"), row, strict=True)}
    return {"at": time.perf_counter(), **counts}


def _scalar(connection: Connection, statement: str) -> float:
    row = connection.execute(statement).fetchone()
    assert row is not None, "an aggregate always gives a row"
    return float(str(row[0]))
