"""An exchange with PostgreSQL: statements that go there in one message, and whose answers come in one.

For the few that every send asks. psycopg's cursors do more than these need, and its pipeline sends each
statement by itself, so that the server wakes up for each: an empty drain took twice as long, and three times
as long in a loop (decision 12).
"""

import re
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from typing import Any, Self

import psycopg
from psycopg import generators
from psycopg.abc import PQGen
from psycopg.adapt import Transformer
from psycopg.errors import error_from_result
from psycopg.pq import ExecStatus, PipelineStatus
from psycopg.pq.abc import PGresult

from app.timed_connection import TimedConnection

_PARAMETER = re.compile(r"%\((\w+)\)s")


class Statement:
    """A statement as it is asked in an exchange; each connection keeps it prepared.

    Its parameters are written `%(name)s`. They go as text, so what stands beside each says of which type it is.
    """

    def __init__(self, sql: str) -> None:
        self.parameters = tuple(dict.fromkeys(_PARAMETER.findall(sql)))
        self.sql = _PARAMETER.sub(lambda found: f"${self.parameters.index(found[1]) + 1}", sql).encode()
        # Two texts never have one name, whatever version of this program has prepared them.
        self.name = b"points_" + sha256(self.sql).hexdigest()[:16].encode()


class Answer:
    """The rows that a statement returned; there once its exchange has ended."""

    __slots__ = ("rows",)

    rows: list[tuple[Any, ...]]


class Exchange:
    """What is asked on one connection within a `with`, and goes to PostgreSQL when that ends.

    When the block raises, nothing of it was asked. When a statement fails, the end of the block raises
    psycopg's error, and what was asked after that statement was not run.
    """

    def __init__(self, connection: TimedConnection) -> None:
        self._connection = connection
        self._unsent: list[tuple[Statement, list[bytes | None], Answer]] = []
        # What PostgreSQL will answer, in this order: statements to be prepared, and statements asked.
        self._awaited: list[Statement | Answer] = []
        self._meanwhile: Callable[[], None] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self._end()
        elif self._awaited:  # What `send` has sent is answered also when the block has failed.
            self._unsent.clear()
            self._meanwhile = None
            with suppress(psycopg.Error):
                self._end()

    def ask(self, statement: Statement, **values: str | int | None) -> Answer:
        """Ask a statement. It goes to PostgreSQL with all others, when the exchange ends.

        Raises:
            psycopg.DataError: a text holds a NUL, as none in PostgreSQL can.
        """
        answer = Answer()
        self._unsent.append((statement, [_as_text(values[name]) for name in statement.parameters], answer))
        return answer

    def meanwhile(self, work: Callable[[], None]) -> None:
        """Have something done once all statements are on their way, before an answer is read.

        It is done whatever the statements come to, but not where the block fails.
        """
        self._meanwhile = work

    def send(self) -> None:
        """Send what was asked so far, and wait for no answer: for tests that look at what it does meanwhile."""
        self._put()
        self._connection.wait(generators.send(self._connection.pgconn))

    def _end(self) -> None:
        try:
            self._put()
            failed = self._send_and_read()
            self._connection.pgconn.exit_pipeline_mode()
        except BaseException:
            self._connection.close()  # What nobody has read would be taken for the answer to what is asked next.
            raise
        if failed is not None:
            raise failed

    def _put(self) -> None:
        """Put what was asked where it is sent from."""
        pgconn = self._connection.pgconn
        if pgconn.pipeline_status == PipelineStatus.OFF:
            pgconn.enter_pipeline_mode()
        for statement, values, answer in self._unsent:
            if self._connection.prepare_threshold is None:  # Behind a pooler: nothing outlives a transaction.
                pgconn.send_query_params(statement.sql, values)
            else:
                if statement.name not in self._connection.prepared and statement not in self._awaited:
                    pgconn.send_prepare(statement.name, statement.sql)
                    self._awaited.append(statement)
                pgconn.send_query_prepared(statement.name, values)
            self._awaited.append(answer)
        self._unsent.clear()

    def _send_and_read(self) -> psycopg.Error | None:
        """Send all of it and hand out the answers; return what the first of them failed with."""
        pgconn, count = self._connection.pgconn, len(self._awaited)
        pgconn.pipeline_sync()
        if self._meanwhile is not None:
            self._connection.wait(generators.send(pgconn))
            self._meanwhile()
        results = self._connection.wait(self._fetch())
        failed = self._hand_out(results[:count])
        for result in results[count:-1]:  # The last one answers the sync. Before it stands why nothing was committed.
            failed = failed or error_from_result(result)
        return failed

    def _fetch(self) -> PQGen[list[PGresult]]:
        """Send what is not sent yet, and fetch all results."""
        pgconn = self._connection.pgconn
        results: list[PGresult] = yield from generators.execute(pgconn)
        while not (results and results[-1].status == ExecStatus.PIPELINE_SYNC):
            more = yield from generators.fetch_many(pgconn)
            if not more:
                raise psycopg.OperationalError("PostgreSQL has gone before it answered everything")
            results += more
        return results

    def _hand_out(self, results: list[PGresult]) -> psycopg.Error | None:
        transformer = Transformer(self._connection)
        failed = None
        for awaited, result in zip(self._awaited, results, strict=True):
            if result.status == ExecStatus.FATAL_ERROR:
                failed = failed or error_from_result(result)
            elif result.status == ExecStatus.PIPELINE_ABORTED:
                continue
            elif isinstance(awaited, Statement):
                self._connection.prepared.add(awaited.name)
            else:
                transformer.set_pgresult(result)
                awaited.rows = transformer.load_rows(0, result.ntuples, tuple)
        self._awaited.clear()
        if isinstance(failed, psycopg.errors.InvalidSqlStatementName):  # The server was made to forget them.
            self._connection.prepared.clear()
        return failed


def _as_text(value: str | int | None) -> bytes | None:
    if value is None:
        return None
    text = str(value).encode()
    if b"\0" in text:  # libpq would send what stands before it.
        raise psycopg.DataError("PostgreSQL text fields cannot contain NUL (0x00) bytes")
    return text
