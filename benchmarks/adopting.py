"""Section `adopting`: the calls of the platform, beside the command's transaction and beside COPY of as many users.

The pages of entries are of a user who has 100,000, each of another batch; they are timed by the caller.
"""

import itertools
import time
from collections.abc import Iterator
from functools import partial

from app.ledger.registering import register_user
from app.local.ports import HOST
from app.pages import cursors
from app.pages.filters import CursorPosition, Filters
from app.platform import keys as platform_keys
from app.postgres.database import transaction
from app.users import new_user
from benchmarks import floor
from benchmarks.caller import Caller
from benchmarks.load import answered_s, get, post
from benchmarks.options import Options
from benchmarks.rows import Measurement, Name, Row, named, repeated, take_turns
from benchmarks.stored import store

_BULK = 1_000
_ENTRIES = 100_000
_TABLE = "CREATE TABLE bench_users (LIKE users INCLUDING ALL)"
_COPY = "COPY bench_users (email, email_key, first_name, last_name) FROM STDIN"
_ENTRY = """
    SELECT user_id, created_at, transaction_id FROM user_entries
    ORDER BY user_id, created_at DESC, transaction_id DESC OFFSET %s LIMIT 1
"""


def measure(options: Options) -> list[Row]:
    """Measure registering one and many, and pages of entries at three depths."""
    with floor.beside() as (service, connection):
        with transaction() as granting:
            _, key = platform_keys.create(granting, "Bench")
        service.accounts("entries", 1)
        store(connection, service.sender().organization_id, batches=_ENTRIES)
        connection.execute("ANALYZE")
        connection.execute(_TABLE)
        bench = _Bench(service.port, key, connection)
        measures: dict[Name, Measurement] = {
            named("floor", recipients=_BULK): bench.copy,
            named("register in bulk", recipients=_BULK): bench.bulk,
            named("register one", over="HTTP"): repeated(bench.register, times=20),
            named("register one", over="transaction"): repeated(bench.register_here, times=20),
        }
        for depth, place in (("first", None), ("middle", _ENTRIES // 2), ("last", _ENTRIES - 1_000)):
            for limit in (100, 1_000):
                read = partial(bench.page, place, limit)
                measures[named("page of entries", limit=limit, depth=depth)] = repeated(read, times=5)
        return take_turns(measures, rounds=options.rounds, wait_idle=service.wait_until_folded)


class _Bench:
    """One caller, and new addresses for it."""

    def __init__(self, port: int, key: str, connection: floor.Connection) -> None:
        self._port = port
        self._key = key
        self._connection = connection
        self._numbers = itertools.count()

    def copy(self) -> dict[str, float]:
        rows = [(email, email, "Ada", "Lovelace") for email in itertools.islice(self._emails(), _BULK)]
        started = time.perf_counter()
        with self._connection.transaction(), self._connection.cursor() as cursor, cursor.copy(_COPY) as copy:
            for row in rows:
                copy.write_row(row)
        return _times(time.perf_counter() - started, users=_BULK)

    def bulk(self) -> dict[str, float]:
        users = [_user(email) for email in itertools.islice(self._emails(), _BULK)]
        return _times(self._call(post(self._key, "/v1/platform/users/bulk", {"users": users}), 200), users=_BULK)

    def register(self) -> dict[str, float]:
        return _times(self._call(post(self._key, "/v1/platform/users", _user(next(self._emails()))), 201))

    def register_here(self) -> dict[str, float]:
        user = new_user(next(self._emails()), "Ada", "Lovelace")
        started = time.perf_counter()
        with transaction() as connection:
            register_user(connection, user)
        return _times(time.perf_counter() - started)

    def page(self, place: int | None, limit: int) -> dict[str, float]:
        row = self._connection.execute(_ENTRY, (place or 0,)).fetchone()
        assert row is not None, "it was stored"
        user_id, moment, transaction_id = row
        start = CursorPosition(moment, transaction_id)  # type: ignore[arg-type]  # As the table has them.
        filters = Filters(organization_id=0, sandbox=False, user_id=user_id)  # type: ignore[arg-type]
        cursor = "" if place is None else f"&cursor={cursors.encode('entries', filters, start)}"
        path = f"/v1/platform/users/{user_id}/entries?limit={limit}{cursor}"
        return _times(self._call(get(path, key=self._key), 200))

    def _emails(self) -> Iterator[str]:
        return (f"{number}.adopting@example.com" for number in self._numbers)

    def _call(self, request: bytes, status: int) -> float:
        caller = Caller(HOST, self._port, [get("/healthz")], 0)
        caller.exchange(get("/healthz"))
        try:
            return answered_s(caller, request, expect=status)
        finally:
            caller.close()


def _user(email: str) -> dict[str, str]:
    return {"email": email, "first_name": "Ada", "last_name": "Lovelace"}


def _times(seconds: float, *, users: int = 0) -> dict[str, float]:
    return {"time_s": seconds} | ({"users_per_s": users / seconds} if users else {})
