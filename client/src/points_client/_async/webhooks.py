"""The webhooks of an organization, in the key's mode."""

from collections.abc import AsyncIterator, Sequence
from typing import Any

from points_client._async.calling import AsyncCaller
from points_client._async.paging import rows
from points_client.errors import Refused
from points_client.event_results import Delivery, Webhook


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
        body = _told(url=url, types=[*types], description=description)
        return await self._caller.do_once(Webhook, "POST", "/v1/webhooks", body)

    def list(self) -> AsyncIterator[Webhook]:
        """Yield all webhooks."""
        return rows(self._caller, Webhook, "/v1/webhooks", "webhooks", {})

    async def get(self, webhook_id: int) -> Webhook:
        """Return a webhook.

        Raises:
            Refused: there is no such webhook (404); so do all calls below.
        """
        return await self._caller.get(Webhook, _path(webhook_id))

    async def update(
        self,
        webhook_id: int,
        *,
        url: str | None = None,
        types: Sequence[str] | None = None,
        description: str | None = None,
    ) -> Webhook:
        """Change a webhook; a value that is None stays as it is."""
        body = _told(url=url, types=None if types is None else [*types], description=description)
        return await self._caller.do(Webhook, "PATCH", _path(webhook_id), body)

    async def delete(self, webhook_id: int) -> None:
        """Remove a webhook. A missing webhook is not an error: an earlier try may have removed it."""
        try:
            await self._caller.call("DELETE", _path(webhook_id))
        except Refused as error:
            if error.status != 404:
                raise

    async def ping(self, webhook_id: int) -> Webhook:
        """Write a `ping` into the log of events; it is delivered only to this webhook."""
        return await self._caller.do_once(Webhook, "POST", _path(webhook_id, "ping"))

    async def rotate(self, webhook_id: int) -> Webhook:
        """Give it a new `secret`, which only this answer shows. The old one still signs too for 24 hours."""
        return await self._caller.do_once(Webhook, "POST", _path(webhook_id, "rotate"))

    async def disable(self, webhook_id: int) -> Webhook:
        """Stop the deliveries. Nothing is lost: enabled again, it goes on where it stood."""
        return await self._caller.do(Webhook, "POST", _path(webhook_id, "disable"))

    async def enable(self, webhook_id: int) -> Webhook:
        """Go on with the deliveries."""
        return await self._caller.do(Webhook, "POST", _path(webhook_id, "enable"))

    async def replay(self, webhook_id: int, *, from_sequence: int) -> Webhook:
        """Deliver again all events from this sequence on."""
        body = {"from_sequence": from_sequence}
        return await self._caller.do(Webhook, "POST", _path(webhook_id, "replay"), body)

    async def skip(self, webhook_id: int) -> Webhook:
        """Skip the event that it is stuck at."""
        return await self._caller.do_once(Webhook, "POST", _path(webhook_id, "skip"))

    def deliveries(self, webhook_id: int) -> AsyncIterator[Delivery]:
        """Yield the attempts of the last 30 days, newest first."""
        return rows(self._caller, Delivery, _path(webhook_id, "deliveries"), "deliveries", {})


def _path(webhook_id: int, verb: str | None = None) -> str:
    return f"/v1/webhooks/{webhook_id}" + (f"/{verb}" if verb else "")


def _told(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}
