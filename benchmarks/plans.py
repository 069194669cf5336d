"""What statements cost and how they are planned: PostgreSQL explains each one that a block runs in this process."""

import contextlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus
from sqlalchemy import event

from app.postgres.connections import engine

_EXPLAIN = "EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) "
_COMMENT, _NUMBER = re.compile(r"^\s*--.*$", re.MULTILINE), re.compile(r"\d+")
WHOLE = "the whole of "
_EXPLAINED = ("WITH", "SELECT", "INSERT", "UPDATE", "DELETE")


@dataclass
class Seen:
    """The pages touched, the server's seconds, the indexes used and the tables read whole; partitions count as one."""

    pages: int = 0
    time_s: float = 0.0
    ways: set[str] = field(default_factory=set)

    def note(self, explained: dict[str, Any]) -> None:
        self.pages += explained["Plan"]["Shared Hit Blocks"] + explained["Plan"]["Shared Read Blocks"]
        self.time_s += explained["Execution Time"] / 1_000
        self._note_ways(explained["Plan"])

    def _note_ways(self, plan: dict[str, Any]) -> None:
        if plan["Node Type"] == "Seq Scan":
            self.ways.add(f"{WHOLE}{plan['Relation Name']}")
        elif "Index Name" in plan:
            self.ways.add(_NUMBER.sub("N", plan["Index Name"]))
        for part in plan.get("Plans", []):
            self._note_ways(part)


@contextlib.contextmanager
def explained() -> Iterator[Seen]:
    """Explain each statement of this process before it runs; what the explanation did is rolled back."""
    seen = Seen()

    class Cursor(psycopg.Cursor[Any]):
        def execute(self, query: Any, params: Any = None, **named: Any) -> Any:
            words = (query if isinstance(query, bytes) else str(query).encode()).decode()
            if _COMMENT.sub("", words).lstrip("( \n").split(maxsplit=1)[0].upper() in _EXPLAINED:
                seen.note(_explanation(self.connection, words, params))
            return super().execute(query, params, **named)

    def choose(driver: Any, *_: object) -> None:
        driver.cursor_factory = Cursor

    def leave(driver: Any, *_: object) -> None:
        driver.cursor_factory = psycopg.Cursor

    event.listen(engine(), "checkout", choose)
    event.listen(engine(), "checkin", leave)
    try:
        yield seen
    finally:
        event.remove(engine(), "checkout", choose)
        event.remove(engine(), "checkin", leave)


def _explanation(connection: psycopg.Connection[Any], words: str, params: Any) -> dict[str, Any]:
    """Run a statement to explain it, and undo it: to a savepoint where a transaction is open or begins with it."""
    is_alone = connection.autocommit and connection.info.transaction_status == TransactionStatus.IDLE
    with psycopg.Cursor(connection) as cursor:
        cursor.execute("BEGIN" if is_alone else "SAVEPOINT explained")
        cursor.execute((_EXPLAIN + words).encode(), params)
        [[[document]]] = cursor.fetchall()
        cursor.execute("ROLLBACK" if is_alone else "ROLLBACK TO explained")
    explanation: dict[str, Any] = document
    return explanation
