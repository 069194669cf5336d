"""`AsyncPoints` and `AsyncPlatformPoints`: the calls of one key."""

from collections.abc import AsyncIterable, AsyncIterator, Iterable, Mapping
from datetime import date

from points_client._async import nouns
from points_client._async.calling import AsyncCaller, AsyncConnected
from points_client._async.events import AsyncEvents
from points_client._async.sending import send_all
from points_client.parts import PART_SIZE, Run
from points_client.requests import AnyItem, Call, query
from points_client.results import Statement, Transaction


class AsyncPoints(AsyncConnected, nouns.AsyncOwn):
    """A Points Issuing Service, called with one API key.

    Args:
        key: `pts_live_…` or `pts_dev_…`. With a development key, no real points move.
        url: where the service is, such as `https://points.example.com`.
        patience_s: for how many seconds a call without `wait_s` is tried again; `math.inf`: without end; 0: once. As
            long as nothing has ever taken a connection, each call is tried for 4 s only, or if this is above 60, for so
            long.
        transport: replaces the network in tests: `points_client.testing.FakePoints`.
        ssl_context: which certificates are trusted; None: those that `SSL_CERT_FILE` or `SSL_CERT_DIR` names, or
            those of httpx.
        on_wait: called before each wait with its reason and length. If it raises, the call ends.
        retried: the statuses that are tried again.

    `sandbox` tells whether the key is a development key.

    Every call may raise a `PointsError`: `Invalid`, `NotAuthorized`, `Refused`, or `NoAnswer`.

    Raises:
        ValueError: the key, the URL, or what the environment says of proxies and certificates is not valid.
    """

    _KEY = "POINTS_KEY"

    def _make(self, key: str, caller: AsyncCaller) -> None:
        self.sandbox = key.startswith("pts_dev_")
        self.batches = nouns.AsyncBatches(caller)
        self.transactions = nouns.AsyncTransactions(caller)
        self.reversals = nouns.AsyncReversals(caller)
        self.requests = nouns.AsyncRequests(caller)
        self.events = AsyncEvents(caller)
        self.webhooks = nouns.AsyncWebhooks(caller)
        self.rehearsing = nouns.AsyncRehearsing(caller)

    async def statement(self, *, from_: date | str, to: date | str) -> Statement:
        """Return what moved the balance of the key's mode, one row for each day in UTC, both ends included.

        Raises:
            Invalid: there are more than 366 days, `to` is after today, or `from_` after `to`.
        """
        days = query(**{"from": from_, "to": to})
        return await self._caller.answer(Statement, Call(method="GET", path="/v1/statement", query=days), days)

    def send_all(
        self,
        items: Iterable[AnyItem | str] | AsyncIterable[AnyItem | str],
        *,
        run: str,
        amount: int | None = None,
        label: str | None = None,
        metadata: Mapping[str, str] | None = None,
        part_size: int = PART_SIZE,
        in_flight: int = 2,
        wait_s: float = 300.0,
        allow_repeats: bool = False,
    ) -> AsyncIterator[Transaction]:
        """Send to any number of recipients, and yield each transaction, in their order.

        Args:
            items: addresses, or items with their own amounts, labels or references. They are read while they are sent.
            run: the name of this run, such as `2026-03`. It begins the idempotency key of each part, which ends with
                the part's number: `2026-03-part-1`.
            part_size: items in one part; at most as many as the service takes in one send.
            in_flight: parts that are sent at the same time. With 1, each part is paid after the one before it: choose
                that if the balance may not pay all.
            wait_s: seconds to wait for each part.
            allow_repeats: an address may come again without a reference. The service must allow it too.

        **Safe to run again** after any interruption, within 30 days: paid transactions are yielded again, but not paid
        again. For that, these must stay the same: `run`, the items and their order, `amount`, `label`, `metadata`,
        `part_size`. If they differ, the service answers `Invalid` (422), and that part is not paid again. A new run
        needs a new name. An address or a reference that comes again is a fault wherever it stands, as in one send; the
        same address may come again when each has a reference.

        Nothing is sent before you ask for the first transaction. When a part fails, all parts before it were yielded,
        and a part that was sent at the same time may be paid: run it again.

        Raises:
            NoAnswer: a part was not issued in time. Run it again.
            Invalid, Refused: as by `send`.
            ValueError: `run`, `part_size` or `in_flight` is not valid; or an item cannot be sent, or comes again: the
                parts before it are paid, nothing of its own part.
        """
        more = {"amount": amount, "label": label, "metadata": metadata}
        parts = Run(run, amount=amount, size=part_size, allow_repeats=allow_repeats)
        return send_all(self._caller, items, parts, more=more, in_flight=in_flight, wait_s=wait_s)


class AsyncPlatformPoints(AsyncConnected, nouns.AsyncActions):
    """A Points Issuing Service, called by the platform that runs it.

    Args:
        key: `pts_platform_…`.
        url: where the service is, such as `https://points.example.com`.
        patience_s, transport, ssl_context, on_wait, retried: as of `AsyncPoints`.

    Every call may raise a `PointsError`: `Invalid`, `NotAuthorized`, `Refused`, or `NoAnswer`.

    Raises:
        ValueError: the key, the URL, or what the environment says of proxies and certificates is not valid.
    """

    _KEY = "POINTS_PLATFORM_KEY"

    def _make(self, key: str, caller: AsyncCaller) -> None:
        self.users = nouns.AsyncUsers(caller)
        self.organizations = nouns.AsyncOrganizations(caller)
        self.events = AsyncEvents(caller, "/v1/platform/events", rare="user.erased")
