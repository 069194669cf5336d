"""What was answered to a call that made something, kept for whoever repeats it with the same idempotency key.

An answer may hold a secret that is shown once, or an address. So it is stored encrypted, and nothing readable tells of
the call, its caller or its body. An erased address is gone from here when the answer's day is over.
"""

from hashlib import sha256
from typing import NamedTuple

import orjson
from sqlalchemy import Connection, text

from app.encryption import SecretsKeyMissing, SecretUnreadable, decrypted, encrypted, require_key
from app.errors import IdempotencyKeyReused
from app.postgres.locks import Kind, wait_for

_KEPT_HOURS = 24


class KeptAnswer(NamedTuple):
    """An answer as it was given."""

    status: int
    location: str | None
    document: str


def name_of(*call: object) -> bytes:
    """Return the name of an answer, made of caller, call and idempotency key."""
    return sha256(repr(call).encode()).digest()


def find(connection: Connection, name: bytes, body: object) -> KeptAnswer | None:
    """Return the answer that is kept under a name, which is locked until the transaction ends.

    Args:
        body: what was read of the call's body. Two that are written differently may mean the same.

    Raises:
        IdempotencyKeyReused: the answer is to another body.
        SecretsKeyMissing: nothing can be kept, or what is kept cannot be read.
    """
    require_key()
    # Otherwise two calls at once would both find nothing, and both make something.
    wait_for(connection, Kind.KEPT_ANSWER, int.from_bytes(name[:6]))
    stored: str | None = connection.execute(_FIND, {"name": name}).scalar_one_or_none()
    if stored is None:
        return None
    try:
        meaning, *answer = orjson.loads(decrypted(stored))
    except SecretUnreadable:
        raise SecretsKeyMissing("No key of POINTS_SECRETS_KEY decrypts the answer to this Idempotency-Key.") from None
    if meaning != _meaning(body):
        raise IdempotencyKeyReused
    return KeptAnswer._make(answer)


_FIND = text("SELECT answer FROM kept_answers WHERE name = :name")


def keep(connection: Connection, name: bytes, body: object, answer: KeptAnswer) -> None:
    """Keep an answer, to be committed with what the call made."""
    stored = encrypted(orjson.dumps([_meaning(body), *answer]).decode())
    connection.execute(_KEEP, {"name": name, "answer": stored})


_KEEP = text("INSERT INTO kept_answers (name, answer) VALUES (:name, :answer)")


def _meaning(body: object) -> str:
    return sha256(repr(body).encode()).hexdigest()


def forget(connection: Connection, *, at_most: int) -> int:
    """Delete up to `at_most` answers past their time, the oldest first; return how many."""
    return connection.execute(_FORGET, {"at_most": at_most}).rowcount


# A subquery reads the clock once: a value that may change from row to row cannot be looked up in an index.
_FORGET = text(f"""
    DELETE FROM kept_answers
    WHERE name = ANY(ARRAY(SELECT name FROM kept_answers
                           WHERE created_at < (SELECT clock_timestamp() - interval '{_KEPT_HOURS} hours')
                           ORDER BY created_at LIMIT :at_most))
""")
