"""Every advisory lock of the service, the lock on an organization's row, and waiting for those of writers.

A transaction takes what it needs in this order, so that no two wait for each other: the lock that makes it the owner
of a piece of work, the organization's row, `BALANCES` of organizations by their ids, `IDENTITIES`, users (new ones by
address, others by id), the balances of users by organization and user. Only a claim waits for several organizations.
Who accepts sends takes `SCHEDULES`, then the days of keys by their ids (app/batches/key_limits.py), and waits for no
organization. Who accepts reversals takes `REVERSALS`, and waits for nothing else.
"""

import time
from collections.abc import Iterable, Sequence
from enum import IntEnum, unique

from sqlalchemy import Connection, text

from app.postgres.database import fetch_all, row_with_id

# Longer than any transaction of the service may last (app/postgres/connections.py).
_WRITES_AT_MOST_S = 25.0
_LOOK_AGAIN_AFTER_S = 0.005


@unique
class Kind(IntEnum):
    """What an advisory lock is for. One kind is one number, so two kinds never share a lock."""

    # One organization's: one worker drains it. Others leave, and do not wait.
    DRAIN = 0x5054
    # One organization's: one process at a time gives its events their sequence.
    SEQUENCE = 0x5045
    # One organization's: one front at a time counts its scheduled batches and adds to them.
    SCHEDULES = 0x5053
    # One organization's: one call at a time compares its recipients with what was sent lately. Others are refused.
    SENT_LATELY = 0x534C
    # One organization's: whoever accepts a reversal shares it. The console, which first counts what is queued, excludes
    # them: none comes in between.
    REVERSALS = 0x5256
    # One organization's: its folds and claims share it, and whatever takes its points back excludes them. So held
    # points are either claimed or taken back, and a credit is either folded before it is taken back or after.
    BALANCES = 0x4241
    # One idempotency key of a call that makes something: the second of two at once finds the answer of the first.
    KEPT_ANSWER = 0x4B41
    # One change of an address or an external id runs: of two users who exchange theirs, each would wait for the other.
    # Registrations of several users share it.
    IDENTITIES = 0x4944
    # One search for crossed registrations of each length of time (in seconds; 0: of all users) runs.
    CROSSED_SEARCH = 0x434C
    # One return of points that were held too long runs.
    RETURN = 0x5254
    # One process at a time looks which mail is due.
    MAIL = 0x4D4C
    # One process at a time makes partitions, in a transaction that does nothing else.
    PARTITIONS = 0x5041
    # One deployment migrates. It is held by the session, since a migration has several transactions.
    MIGRATION = 0x4D49


def number(kind: Kind, which: int = 0) -> int:
    """Return the number of a lock: its kind in the upper 16 bits, and in the lower 48 which of its kind it is.

    Args:
        which: the organization's id, as a rule; 0 if there is one lock of this kind.
    """
    assert 0 <= which < 1 << 48, "an id that does not fit would be a lock of another kind"
    return kind << 48 | which


def wait_for(connection: Connection, kind: Kind, which: int = 0) -> None:
    """Take a lock until the transaction ends, after everybody who holds it."""
    fetch_all(connection, b"SELECT pg_advisory_xact_lock(%(lock)s)", {"lock": number(kind, which)})


def share(connection: Connection, kind: Kind, which: Iterable[int]) -> None:
    """Take some locks together with others who share them, until the transaction ends, each after who holds it alone.

    They are taken in the order of their numbers.
    """
    ordered = sorted(number(kind, row_id) for row_id in which)
    connection.execute(_SHARE, {"locks": ordered})


_SHARE = text("SELECT pg_advisory_xact_lock_shared(lock) FROM unnest(CAST(:locks AS bigint[])) AS lock")


def try_to_share(connection: Connection, kind: Kind, which: Iterable[int]) -> list[int]:
    """Share those of some locks that nobody holds alone or waits for; return which these are, without waiting."""
    numbers = {number(kind, row_id): row_id for row_id in which}
    shared = connection.execute(_TRY_TO_SHARE, {"locks": sorted(numbers)}).scalars()
    return [numbers[lock] for lock in shared]


_TRY_TO_SHARE = text("""
    SELECT lock FROM unnest(CAST(:locks AS bigint[])) AS lock WHERE pg_try_advisory_xact_lock_shared(lock)
""")


def try_to_take(connection: Connection, kind: Kind, which: int = 0) -> bool:
    """Take a lock until the transaction ends; False, without waiting, if somebody else holds it."""
    parameters = {"lock": number(kind, which)}
    return bool(connection.execute(text("SELECT pg_try_advisory_xact_lock(:lock)"), parameters).scalar_one())


def lock_organization(connection: Connection, organization_id: int) -> None:
    """Lock an organization's row until the transaction ends, as everything does that changes a balance or a flag.

    It is a statement of its own, so that the next one sees what the holder before has committed. A drain takes the same
    lock in one statement with its own (`app.ledger.issue`).

    The lock is FOR NO KEY UPDATE: a plain FOR UPDATE would also hold up every INSERT whose foreign key points at this
    row, such as a new key's or a refill's.

    Raises:
        NotFound: there is no such organization.
    """
    row_with_id(connection, _LOCK_ORGANIZATION, {"id": organization_id}, "organization")


_LOCK_ORGANIZATION = text("SELECT id FROM organizations WHERE id = :id FOR NO KEY UPDATE")


def outlast_writers(connection: Connection, tables: Sequence[str], *, within_s: float | None = None) -> bool:
    """Wait for everybody who writes to some tables now; False if any of them takes longer (None: than anything may).

    Whoever writes to a table holds a lock on it from before the statement looks at anything until after the commit. So
    it is enough to wait for the few who hold it now. They are not kept from anything.
    """
    give_up_at = time.monotonic() + (_WRITES_AT_MOST_S if within_s is None else within_s)
    writing = now_writing = _writing_to(connection, tables)
    while writing := writing & now_writing:
        if time.monotonic() > give_up_at:
            return False
        time.sleep(_LOOK_AGAIN_AFTER_S)
        now_writing = _writing_to(connection, tables)
    return True


def _writing_to(connection: Connection, tables: Sequence[str]) -> set[str]:
    return set(connection.execute(_WRITING_TO, {"tables": list(tables)}).scalars())


# PostgreSQL's own name of a transaction, which is never used again.
_WRITING_TO = text("""
    SELECT virtualtransaction FROM pg_locks
    WHERE locktype = 'relation' AND relation = ANY(CAST(CAST(:tables AS text[]) AS regclass[]))
      AND mode = 'RowExclusiveLock' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
""")
