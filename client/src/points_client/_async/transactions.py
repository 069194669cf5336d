"""The transactions of an organization, in the key's mode."""

from collections.abc import AsyncIterator
from datetime import datetime
from functools import partial

from points_client._async.calling import AsyncCaller, as_
from points_client._async.paging import rows
from points_client.requests import Call, moment, path, query
from points_client.results import Transaction


class AsyncTransactions:
    """`points.transactions`."""

    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    async def get(self, transaction_id: int) -> Transaction:
        """Return a transaction as it is now.

        Raises:
            Refused: there is no such transaction (404).
        """
        return await self._caller.get(Transaction, path("transactions", transaction_id), id=transaction_id)

    def list(
        self,
        *,
        reference: str | None = None,
        state: str | None = None,
        email: str | None = None,
        batch: int | None = None,
        user: int | None = None,
        created_from: datetime | str | None = None,
        created_to: datetime | str | None = None,
        debited: bool | None = None,
        credited: bool | None = None,
        allocated: bool | None = None,
        page_size: int = 100,
    ) -> AsyncIterator[Transaction]:
        """Yield all transactions that match, newest first. Both ends of a period are included; `user`: an id."""
        asked = query(
            reference=reference,
            state=state,
            email=email,
            batch=batch,
            user=user,
            created_from=created_from,
            created_to=created_to,
            debited=debited,
            credited=credited,
            allocated=allocated,
            limit=page_size,
        )
        return rows(self._caller, Transaction, "/v1/transactions", "transactions", asked)

    async def extend(self, transaction_id: int, held_until: datetime | str) -> Transaction:
        """Hold a transaction until a later moment, given with a zone. It must still be held.

        Raises:
            Refused: it is not held, or has no end (409), or there is no such transaction (404).
            Invalid: the moment is not later.
        """
        where = path("transactions", transaction_id, "extend")
        call = Call(method="POST", path=where, body={"held_until": moment(held_until)})
        return await self._caller.call(call, partial(as_, Transaction, id=transaction_id))
