"""The webhooks of an organization, in the key's mode."""

from collections.abc import AsyncIterator, Mapping, Sequence
from functools import partial
from typing import Any

from points_client._async.calling import AsyncCaller, as_
from points_client._async.paging import rows
from points_client.errors import Refused
from points_client.event_results import Delivery, Webhook
from points_client.requests import Call, path, types_of


class AsyncWebhooks:
    """`points.webhooks`. `create`, `ping`, `rotate` and `skip` have no idempotency key, so they are never repeated:
    after a lost answer they raise `NoAnswer`, and `list` or `get` shows the present state.
    """

    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    async def create(self, url: str, *, types: Sequence[str] = ("*",), description: str | None = None) -> Webhook:
        """Make a webhook; only this answer shows its `secret`. `types` are types of events, such as `batch.*`.

        Raises:
            Invalid: the address is not https, or leads to a machine that is not public.
            Refused: there are ten already.
        """
        body = _told(url=url, types=types, description=description)
        call = Call(method="POST", path="/v1/webhooks", body=body, repeatable=False)
        return await self._caller.call(call, partial(as_, Webhook))

    def list(self) -> AsyncIterator[Webhook]:
        """Yield all webhooks."""
        return rows(self._caller, Webhook, "/v1/webhooks", "webhooks", {})

    async def get(self, webhook_id: int) -> Webhook:
        """Return a webhook.

        Raises:
            Refused: there is no such webhook (404); so do all calls below.
        """
        return await self._caller.get(Webhook, path("webhooks", webhook_id), id=webhook_id)

    async def update(
        self,
        webhook_id: int,
        *,
        url: str | None = None,
        types: Sequence[str] | None = None,
        description: str | None = None,
    ) -> Webhook:
        """Change a webhook; a value that is None stays as it is. `description=""` clears it."""
        return await self._do("PATCH", webhook_id, "", _told(url=url, types=types, description=description))

    async def delete(self, webhook_id: int) -> None:
        """Remove a webhook. A missing webhook is not an error: an earlier try may have removed it."""
        try:
            await self._caller.call(Call(method="DELETE", path=path("webhooks", webhook_id)), lambda _: None)
        except Refused as error:
            if error.status != 404:
                raise

    async def ping(self, webhook_id: int) -> Webhook:
        """Write a `ping` into the log of events; it is delivered only to this webhook."""
        return await self._do("POST", webhook_id, "ping", repeatable=False)

    async def rotate(self, webhook_id: int) -> Webhook:
        """Give it a new `secret`, which only this answer shows. The old one still signs too for 24 hours."""
        return await self._do("POST", webhook_id, "rotate", repeatable=False)

    async def disable(self, webhook_id: int) -> Webhook:
        """Stop the deliveries. Nothing is lost: enabled again, it goes on where it stood."""
        return await self._do("POST", webhook_id, "disable")

    async def enable(self, webhook_id: int) -> Webhook:
        """Go on with the deliveries."""
        return await self._do("POST", webhook_id, "enable")

    async def replay(self, webhook_id: int, *, from_sequence: int) -> Webhook:
        """Deliver again all events from this sequence on."""
        return await self._do("POST", webhook_id, "replay", {"from_sequence": from_sequence})

    async def skip(self, webhook_id: int) -> Webhook:
        """Skip the event that it is stuck at."""
        return await self._do("POST", webhook_id, "skip", repeatable=False)

    def deliveries(self, webhook_id: int) -> AsyncIterator[Delivery]:
        """Yield the attempts of the last 30 days, newest first."""
        return rows(self._caller, Delivery, path("webhooks", webhook_id, "deliveries"), "deliveries", {})

    async def _do(
        self, method: str, webhook_id: int, verb: str, body: Mapping[str, Any] | None = None, *, repeatable: bool = True
    ) -> Webhook:
        call = Call(method=method, path=path("webhooks", webhook_id, verb), body=body, repeatable=repeatable)
        return await self._caller.call(call, partial(as_, Webhook, id=webhook_id))


def _told(*, types: Sequence[str] | None, **fields: Any) -> dict[str, Any]:
    types_of(types)  # It may raise.
    told = {**fields, "types": None if types is None else [*types]}
    return {name: value for name, value in told.items() if value is not None}
