"""The reversals of an organization, in the key's mode."""

from collections.abc import Iterator
from datetime import datetime
from functools import partial

from points_client._sync.calling import Caller
from points_client._sync.paging import rows
from points_client._sync.waiting import until_final
from points_client.attempts import Clock
from points_client.requests import WAIT_S, path, query
from points_client.reversal_results import Reversal


class Reversals:
    """`points.reversals`. `points.reverse` makes one."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def get(self, reversal_id: int) -> Reversal:
        """Return a reversal as it is now.

        Raises:
            Refused: there is no such reversal (404).
        """
        return self._look(reversal_id, None)

    def list(
        self,
        *,
        status: str | None = None,
        idempotency_key: str | None = None,
        created_from: datetime | str | None = None,
        created_to: datetime | str | None = None,
        page_size: int = 100,
    ) -> Iterator[Reversal]:
        """Yield all reversals that match, newest first, without their transactions."""
        asked = query(
            status=status,
            idempotency_key=idempotency_key,
            created_from=created_from,
            created_to=created_to,
            limit=page_size,
        )
        return rows(self._caller, Reversal, "/v1/reversals", "reversals", asked)

    def wait(self, reversal_id: int, *, wait_s: float = WAIT_S) -> Reversal:
        """Wait until a reversal is final, at most `wait_s` seconds, and return it. Look at `final`."""
        return until_final(partial(self._look, reversal_id), wait_s=wait_s)

    def _look(self, reversal_id: int, clock: Clock | None) -> Reversal:
        return self._caller.get(Reversal, path("reversals", reversal_id), clock, reversal_id=reversal_id)
