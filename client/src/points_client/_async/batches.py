"""The batches of an organization, in the key's mode."""

from collections.abc import AsyncIterator
from datetime import datetime
from functools import partial
from typing import Any

from points_client._async.calling import AsyncCaller, as_
from points_client._async.paging import rows
from points_client._async.waiting import until_final
from points_client.attempts import Clock
from points_client.requests import WAIT_S, Call, moment, path, query
from points_client.results import Batch


class AsyncBatches:
    """`points.batches`."""

    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    async def get(self, batch_id: int) -> Batch:
        """Return a batch as it is now, with its transactions once it is issued.

        Raises:
            Refused: there is no such batch (404).
        """
        return await self._look(batch_id, None)

    def list(
        self,
        *,
        status: str | None = None,
        idempotency_key: str | None = None,
        label: str | None = None,
        email: str | None = None,
        batch: int | None = None,
        created_from: datetime | str | None = None,
        created_to: datetime | str | None = None,
        debited: bool | None = None,
        credited: bool | None = None,
        allocated: bool | None = None,
        page_size: int = 100,
    ) -> AsyncIterator[Batch]:
        """Yield all batches that match, newest first, without their transactions. Both ends of a period are included.

        The three flags find batches with at least one transaction that has all of them.
        """
        asked = query(
            status=status,
            idempotency_key=idempotency_key,
            label=label,
            email=email,
            batch=batch,
            created_from=created_from,
            created_to=created_to,
            debited=debited,
            credited=credited,
            allocated=allocated,
            limit=page_size,
        )
        return rows(self._caller, Batch, "/v1/batches", "batches", asked)

    async def wait(self, batch_id: int, *, wait_s: float = WAIT_S) -> Batch:
        """Wait until a batch is final, at most `wait_s` seconds, and return it. Look at `final`."""
        return await until_final(partial(self._look, batch_id), wait_s=wait_s)

    async def approve(self, batch_id: int) -> Batch:
        """Approve a batch that awaits an approval: it is queued, or scheduled. Approving it again does nothing.

        Raises:
            Refused: this key has sent it (403), it awaits no approval (409), or there is no such batch (404).
            NoAnswer: it may be approved; approve it again.
        """
        return await self._do("POST", batch_id, "approve", None)

    async def reject(self, batch_id: int, reason: str) -> Batch:
        """Reject a batch that awaits an approval, for good. Rejecting it again does nothing.

        Raises:
            Refused: this key has sent it (403), it awaits no approval (409), or there is no such batch (404).
            NoAnswer: it may be rejected; reject it again.
        """
        return await self._do("POST", batch_id, "reject", {"reason": reason})

    async def cancel(self, batch_id: int) -> Batch:
        """Cancel a batch that awaits an approval, is scheduled or queued. Cancelling it again does nothing.

        Raises:
            Refused: it is issued, refused or rejected already (409), or there is no such batch (404).
            NoAnswer: with the code `not_known`, it may still be issued. Cancel it again until it is known.
        """
        return await self._do("POST", batch_id, "cancel", None)

    async def reschedule(self, batch_id: int, send_at: datetime | str) -> Batch:
        """Move a scheduled batch to another moment, with a zone.

        Raises:
            Refused: it is no longer scheduled (409), or there is no such batch (404).
        """
        return await self._do("PATCH", batch_id, "", {"send_at": moment(send_at)})

    async def _look(self, batch_id: int, clock: Clock | None) -> Batch:
        return await self._caller.get(Batch, path("batches", batch_id), clock, batch_id=batch_id)

    async def _do(self, method: str, batch_id: int, verb: str, body: dict[str, Any] | None) -> Batch:
        call = Call(method=method, path=path("batches", batch_id, verb), body=body)
        return await self._caller.call(call, partial(as_, Batch, batch_id=batch_id))
