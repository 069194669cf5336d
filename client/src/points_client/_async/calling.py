"""One call: tried until there is an answer or its time is over."""

from asyncio import get_running_loop, sleep
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from functools import partial
from typing import Any, TypeVar

import httpx

from points_client.answers import Answer
from points_client.attempts import Attempts, Wait
from points_client.connections import Connections
from points_client.errors import NoAnswer, PointsError
from points_client.reading import read
from points_client.requests import base_url, checked_key, is_local

T = TypeVar("T")
_TIMEOUT = httpx.Timeout(60.0, connect=10.0)  # Longer than the service itself waits.


class AsyncCaller:
    """Calls with one key to one service, over connections that stay open."""

    def __init__(
        self,
        key: str,
        url: str,
        *,
        patience_s: float,
        transport: httpx.AsyncBaseTransport | None,
        on_wait: Callable[[Wait], object] | None,
        retried: AbstractSet[int],
    ) -> None:
        self.patience_s = patience_s
        self._on_wait, self._retried = on_wait, retried
        headers = {"Authorization": f"Bearer {checked_key(key)}", "Accept": "application/json"}
        make = partial(
            httpx.AsyncClient,
            base_url=base_url(url),
            headers=headers | {"User-Agent": "points-client/1.0"},
            timeout=_TIMEOUT,
            transport=transport,
            trust_env=not is_local(url),
        )
        is_fake = isinstance(transport, httpx.MockTransport)
        self._connections = Connections(make, shareable=transport is None or is_fake)

    @property
    def _http(self) -> httpx.AsyncClient:
        return self._connections.here(get_running_loop())

    async def close(self) -> None:
        await self._http.aclose()

    async def call(
        self,
        method: str,
        path: str,
        *,
        body: Mapping[str, Any] | None = None,
        query: Mapping[str, str] | None = None,
        key: str | None = None,
        wait_s: float | None = None,
        repeatable: bool = True,
    ) -> Answer:
        """Return the answer to a call. With an idempotency key, `wait_s` is how long to wait until it is done.

        Raises:
            NoAnswer: there was no clear answer in time.
            PointsError: the call is refused.
        """
        headers = {} if key is None else {"Idempotency-Key": key}
        if wait_s == 0:
            headers["Prefer"] = "respond-async"
        attempts = Attempts(
            key=key,
            repeatable=repeatable,
            until_done=bool(wait_s),
            time_s=wait_s or self.patience_s,
            retried=self._retried,
        )
        http = self._http
        while True:
            try:
                response = await http.request(method, path, json=body, params=query, headers=headers)
                next_step = attempts.answered(response)
            except httpx.DecodingError as error:
                message = f"{http.base_url} answers, but not as a Points Issuing Service does. Is the URL right?"
                raise NoAnswer(message, key=key) from error
            except (httpx.TransportError, UnicodeError) as error:  # UnicodeError: an impossible host name.
                next_step = attempts.lost(error)
            if isinstance(next_step, Answer):
                return next_step
            if self._on_wait is not None:
                self._on_wait(next_step)
            await sleep(next_step.seconds)

    async def get(self, kind: type[T], path: str) -> T:
        """Return the answer to a GET, as a dataclass."""
        return _as(kind, await self.call("GET", path))

    async def do(self, kind: type[T], method: str, path: str, body: Mapping[str, Any] | None = None) -> T:
        """Make a call that may be repeated without harm, and return its answer."""
        return _as(kind, await self.call(method, path, body=body))

    async def do_once(self, kind: type[T], method: str, path: str, body: Mapping[str, Any] | None = None) -> T:
        """Make a call that must not be done twice: it is tried again only if the try before surely did nothing."""
        return _as(kind, await self.call(method, path, body=body, repeatable=False))


def _as(kind: type[T], answer: Answer) -> T:
    return result(kind, answer.data)


def result(kind: type[T], document: Mapping[str, Any], *, key: str | None = None) -> T:
    """Return an answer's JSON as a dataclass.

    Raises:
        NoAnswer, PointsError (without an idempotency key): the JSON does not fit the dataclass.
    """
    try:
        return read(kind, document)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        message = f"The answer is not that of a Points Issuing Service: {kind.__name__} cannot be read from it."
        raise (PointsError(message) if key is None else NoAnswer(message, key=key)) from error
