"""One call: tried until there is an answer or its time is over."""

import logging
from asyncio import get_running_loop, sleep
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from functools import partial
from ssl import SSLContext
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx

from points_client._async.in_order import within
from points_client.answers import Answer, Unlike
from points_client.attempts import Attempts, Clock, Done, Wait
from points_client.connections import Connections
from points_client.errors import PointsError
from points_client.reading import read
from points_client.requests import Call
from points_client.service_address import base_url, checked_key, is_local
from points_client.tls import context

T = TypeVar("T")
_CONNECT_S = 10.0
_log = logging.getLogger("points_client")


class AsyncCaller:
    """Calls with one key to one service, over connections that stay open."""

    def __init__(
        self,
        key: str,
        url: str,
        *,
        patience_s: float,
        transport: httpx.AsyncBaseTransport | None,
        ssl_context: SSLContext | None,
        on_wait: Callable[[Wait], object] | None,
        retried: AbstractSet[int],
    ) -> None:
        Clock(patience_s)  # It may raise.
        self._patience_s, self._on_wait, self._retried = patience_s, on_wait, retried
        self._is_timed = transport is None
        headers = {"Authorization": f"Bearer {checked_key(key)}", "Accept": "application/json"}
        make = partial(
            httpx.AsyncClient,
            base_url=base_url(url),
            headers=headers | {"User-Agent": "points-client/1.0"},
            transport=transport,
            verify=transport is not None or context(ssl_context),
            trust_env=not is_local(url),
        )
        is_fake = isinstance(transport, httpx.MockTransport)
        try:
            self._connections = Connections(make, shareable=transport is None or is_fake)
        except (ImportError, ValueError, httpx.InvalidURL) as error:
            raise ValueError(f"A proxy that the environment names cannot be used: {error}") from error

    @property
    def _http(self) -> httpx.AsyncClient:
        http = self._connections.here(get_running_loop())
        if http.is_closed:
            raise PointsError("It is closed: make another one.")
        return http

    async def close(self) -> None:
        await self._connections.here(get_running_loop()).aclose()

    def clock(self, wait_s: float | None) -> Clock:
        """Return the time of a call that waits so long; 0 and None: as long as patience lasts.

        Raises:
            ValueError: it is below 0.
        """
        return Clock(wait_s or self._patience_s)

    async def call(self, call: Call, read: Callable[[Answer], T], clock: Clock | None = None) -> T:
        """Return what `read` finds in the answer to a call.

        Raises:
            NoAnswer: there was no clear answer in time.
            PointsError: the call is refused.
            ValueError: a value cannot be sent.
        """
        done = await self.tried(call, read, clock or self.clock(call.wait_s))
        return done.value

    async def tried(
        self, call: Call, read: Callable[[Answer], T], clock: Clock, *, may_be_accepted: bool = False
    ) -> Done[T]:
        """Make a call, as `call` does; also tell when to ask again."""
        attempts = Attempts(call, clock, retried=self._retried, may_be_accepted=may_be_accepted)
        content, http = call.content(), self._http
        while True:
            try:
                step = attempts.answered(await self._answer(http, call, content, attempts), read)
            except (PointsError, NotImplementedError):  # NotImplementedError: what `FakePoints` does not know.
                raise
            except Exception as error:  # noqa: BLE001  # `lost` raises what is no fault of the network.
                step = attempts.lost(error)
            if isinstance(step, Done):
                return step
            await self.waited(step, call)
            if step.is_last:
                raise attempts.over(step) from step.error

    async def waited(self, wait: Wait, call: Call) -> None:
        """Say why a call waits, and wait."""
        _log.info("%s %s: %s (waiting %.1f s)", call.method, call.path, wait.trouble, wait.seconds)
        if self._on_wait is not None:
            self._on_wait(wait)
        await sleep(wait.seconds)

    async def _answer(
        self, http: httpx.AsyncClient, call: Call, content: bytes | None, attempts: Attempts
    ) -> httpx.Response:
        try_s = attempts.try_s()
        headers = {
            "Idempotency-Key": call.key,
            "Prefer": attempts.prefer(try_s),
            "Content-Type": None if content is None else "application/json",
        }
        request = http.build_request(
            call.method,
            call.path,
            content=content,
            params=call.query,
            headers={name: value for name, value in headers.items() if value is not None},
            timeout=httpx.Timeout(try_s, connect=min(_CONNECT_S, try_s)),
        )
        return await within(try_s if self._is_timed else None, partial(http.send, request))

    async def get(self, kind: type[T], path: str, clock: Clock | None = None, **known: Any) -> T:
        """Return the answer to a GET as a dataclass; `known`: fields that it must have, such as the id."""
        return await self.call(Call(method="GET", path=path), partial(as_, kind, **known), clock)


class AsyncConnected:
    """A client of one key, whose connections are closed with it."""

    _caller: AsyncCaller

    async def close(self) -> None:
        """Close the connections."""
        await self._caller.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


def as_(kind: type[T], answer: Answer, **known: Any) -> T:
    """Return an answer as a dataclass.

    Raises:
        Unlike: it is about something else than `known`.
        Exception: the JSON does not fit the dataclass; `Attempts.answered` is the guard.
    """
    for name, value in known.items():
        if answer.data[name] != value:
            raise Unlike(f"its {name} is another")
    return read(kind, answer.data)
