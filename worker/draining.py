"""A drain that tells the fronts of each round: of a task that was asked for it, and of a sweep."""

from collections.abc import Sequence

from app.ledger.drain import drain
from app.messaging import hints
from app.messaging.worker_counters import Counts


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
    return final, has_more
