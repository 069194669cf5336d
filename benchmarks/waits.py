"""What PostgreSQL's sessions wait for during a measurement, by sampling."""

import contextlib
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import psycopg

# Not more often: each sample takes a millisecond of the measured cores.
_LOOK_EVERY_S = 0.1
_KINDS = ("lock", "log flush")
# Row and advisory locks; the flush of the log at a commit (PostgreSQL 17 spells it differently).
_LOOK = """
    SELECT count(*) FILTER (WHERE wait_event_type = 'Lock'),
           count(*) FILTER (WHERE wait_event IN ('WalSync', 'WALSync', 'WalWrite', 'WALWrite'))
    FROM pg_stat_activity WHERE application_name = 'points'
"""


@dataclass(kw_only=True)
class Waited:
    """The seconds that all sessions waited, by kind, during the sampled `seconds`."""

    seconds: float = 0.0
    by_kind_s: dict[str, float] = field(default_factory=lambda: dict.fromkeys(_KINDS, 0.0))


@contextlib.contextmanager
def waits(database_url: str) -> Iterator[Waited]:
    """Sample ten times a second, in a thread, until the block ends."""
    waited, ended = Waited(), threading.Event()
    looker = threading.Thread(target=_look, args=(database_url, waited, ended))
    looker.start()
    try:
        yield waited
    finally:
        ended.set()
        looker.join()


def _look(database_url: str, waited: Waited, ended: threading.Event) -> None:
    with psycopg.connect(database_url, autocommit=True) as connection:
        looked_at = started_at = time.perf_counter()
        while not ended.wait(_LOOK_EVERY_S):
            counts = connection.execute(_LOOK).fetchone()
            now = time.perf_counter()
            assert counts is not None, "an aggregate always gives a row"
            for kind, count in zip(_KINDS, counts, strict=True):
                waited.by_kind_s[kind] += int(str(count)) * (now - looked_at)
            looked_at = now
        waited.seconds = time.perf_counter() - started_at
