"""Sending what is due, one mail after the other, until nothing is or the server fails."""

from collections.abc import Callable

from app import logs
from app.mail import due as due_rows
from app.mail.due import Due
from app.mail.server import Server, why
from app.mail.texts import write
from app.postgres.database import single_statement, snapshot, transaction
from app.settings import settings

SENT, FAILED, GIVEN_UP = OUTCOMES = ("sent", "failed", "given_up")

_log = logs.logger()


def send_due(*, tell: Callable[[str], None], is_stopping: Callable[[], bool] = lambda: False) -> None:
    """Send the mail that is due; `tell` gets each outcome. After a failure the next run makes a new connection.

    Raises:
        DBAPIError, TimeoutError: PostgreSQL is out of reach. What was not noted is sent again.
    """
    with single_statement() as connection:
        if not due_rows.is_any(connection):
            return
    with Server() as server:
        while not is_stopping():
            with transaction() as connection:
                due = due_rows.take(connection)
            if due is None or not _send(server, due, tell):
                return


def _send(server: Server, due: Due, tell: Callable[[str], None]) -> bool:
    """Send a mail, and note the outcome; False if it failed."""
    try:
        with snapshot() as connection:
            mail = write(connection, due, url=settings().public_url or "")
        if mail is not None:
            # By the newest of its news: what came since the last attempt makes another mail.
            server.send(mail, f"points-{due.ids[-1]}-{due.member_id}")
            tell(SENT)
    except Exception as error:  # noqa: BLE001  # A mail that cannot be written must not keep back the others.
        with transaction() as connection:
            is_over = due_rows.note_failed(connection, due, why(error))
        tell(GIVEN_UP if is_over else FAILED)
        _log.warning("mail_failed", member_id=due.member_id, kind=due.kind, error=why(error), given_up=is_over)
        return False
    with single_statement() as connection:
        due_rows.note_done(connection, due)
    return True
