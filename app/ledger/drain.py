"""Draining: an organization's whole queue, one transaction a round, by one worker at a time."""

import logging
from collections.abc import Callable, Sequence

from sqlalchemy.exc import DBAPIError

from app import batches
from app.database import single_statement, transaction
from app.ledger.issue import BATCHES_MAX, issue

# After this many rounds a busy organization makes room for the others: its owner asks for a fresh task.
ROUNDS_MAX = 10

_log = logging.getLogger(__name__)


def drain(organization_id: int, *, announce: Callable[[Sequence[int]], None]) -> bool:
    """Issue an organization's queued batches until none is left; tell whether more may be waiting.

    `announce` is given the ids of the batches that each round has committed.

    The look that ends a drain is made while *not* owning it. Whoever found it owned has left, and
    counts on the owner to look again after releasing; a last look from inside would miss a batch
    that was committed between that look and the release, and strand it until the sweep.

    Raises:
        DBAPIError: PostgreSQL went away. What was not committed is still queued.
    """
    for _ in range(ROUNDS_MAX):
        try:
            with transaction() as connection:
                final = issue(connection, organization_id)
            if final is None:
                return False
        except Exception as error:  # Whatever it was, it must not hold up the other batches.
            if isinstance(error, DBAPIError) and error.connection_invalidated:
                raise
            log_failure("A drain failed and is tried again batch by batch", organization_id, None, error)
            final = _one_at_a_time(organization_id)
        if final:
            _log.info("Final: organization_id=%d batch_ids=%s", organization_id, ",".join(map(str, final)))
            announce(final)
        with single_statement() as connection:
            if not batches.has_due(connection, organization_id):
                return False
    return True


def _one_at_a_time(organization_id: int) -> list[int]:
    """Issue each due batch in a transaction of its own, so that one that fails harms only itself."""
    with single_statement() as connection:
        due = batches.due(connection, organization_id, at_most=BATCHES_MAX)
    final: list[int] = []
    for batch_id in due:
        try:
            with transaction() as connection:
                issued = issue(connection, organization_id, [batch_id])
            if issued is None:
                return final
            final += issued
        except Exception as error:  # As above: the next batch shall have its turn.
            if isinstance(error, DBAPIError) and error.connection_invalidated:
                raise
            log_failure("A batch failed and is postponed", organization_id, batch_id, error)
            with transaction() as connection:
                batches.postpone(connection, batch_id)
    return final


def log_failure(what: str, organization_id: int, batch_id: int | None, error: Exception) -> None:
    """Log an error by its kind. Never its text: PostgreSQL repeats values in it, and values are addresses."""
    cause = getattr(error, "orig", None)
    diagnostic = getattr(cause, "diag", None)
    _log.error(
        "%s: organization_id=%d batch_id=%s error=%s sqlstate=%s constraint=%s",
        what,
        organization_id,
        batch_id,
        type(cause or error).__name__,
        getattr(cause, "sqlstate", None),
        getattr(diagnostic, "constraint_name", None),
    )
