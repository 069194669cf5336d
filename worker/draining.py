"""A drain that tells the fronts of each round, and numbers its events: of a task that was asked for it, and a sweep."""

from collections.abc import Sequence

from app.events.sequencer import NUMBERED_MAX, number_events
from app.ledger.drain import drain
from app.messaging import hints
from app.messaging.worker_counters import Counts
from app.postgres.database import transaction


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
        number(organization_id)
    return final, has_more


def number(organization_id: int) -> None:
    """Number the organization's events: those of a drain once everybody who waits for it has been told.

    Raises:
        DBAPIError, TimeoutError: no connection can be made. What was not committed is numbered by the upkeep.
    """
    while True:
        with transaction() as connection:
            if number_events(connection, organization_id) < NUMBERED_MAX:
                return
