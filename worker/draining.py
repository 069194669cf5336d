"""A drain, for a task or a sweep, that tells the fronts of each round and numbers its events."""

from collections.abc import Sequence

from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from app import logs
from app.events.sequencer import NUMBERED_MAX, number_events
from app.ledger.drain import drain
from app.messaging import hints
from app.messaging.worker_counters import Counts
from app.postgres.database import transaction

_log = logs.logger()


def drain_and_tell(organization_id: int) -> tuple[list[int], bool]:
    """Drain an organization's queue; return the ids of the batches that are final now, and whether more may wait.

    Raises:
        DBAPIError, TimeoutError: no connection can be made. What was not committed is still queued.
    """
    final: list[int] = []

    def tell(batch_ids: Sequence[int], counts: Counts) -> None:
        final.extend(batch_ids)
        hints.publish(organization_id, batch_ids, counts)

    has_more = drain(organization_id, announce=tell)
    if final:
        _number_what_it_told(organization_id)
    return final, has_more


def _number_what_it_told(organization_id: int) -> None:
    """Number the drain's events. An error does not fail the drain: the upkeep numbers the events that are left."""
    try:
        number(organization_id)
    except (DBAPIError, PoolTimeout) as error:
        _log.warning("events_not_numbered", organization_id=organization_id, **logs.kind_of(error))


def number(organization_id: int) -> None:
    """Number the organization's events.

    Raises:
        DBAPIError, TimeoutError: PostgreSQL is out of reach, or another sequencer takes too long.
    """
    while True:
        with transaction() as connection:
            numbered = number_events(connection, organization_id)
        if numbered < NUMBERED_MAX:
            return
