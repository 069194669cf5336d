"""The calls with one key: each is tried until there is an answer or its time is over."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from ssl import SSLContext
from time import sleep
from types import TracebackType
from typing import Any, Self, TypedDict, TypeVar, Unpack

import httpx

from points_client._sync.in_order import within
from points_client.answers import Answer, Unlike, read
from points_client.attempts import RETRIED, Attempts, Clock, Contact, Done, Wait
from points_client.connections import Connections
from points_client.errors import NotFound, PointsError
from points_client.requests import PATIENCE_S, Call
from points_client.service_address import base_url, checked_key, from_environment, host_and_port, proxy_of, trusted
from points_client.version import __version__

T = TypeVar("T")
_log = logging.getLogger("points_client")


class Caller:
    """Calls with one key to one service, over connections that stay open."""

    def __init__(
        self,
        key: str,
        url: str,
        patience_s: float,
        transport: httpx.BaseTransport | None,
        ssl_context: SSLContext | None,
        on_wait: Callable[[Wait], object] | None,
        retried: AbstractSet[int],
    ) -> None:
        Clock(patience_s)  # It may raise.
        self._patience_s, self._on_wait, self._retried = patience_s, on_wait, retried
        self._is_timed = transport is None
        headers = {"Authorization": f"Bearer {checked_key(key)}", "Accept": "application/json"}
        url = base_url(url)
        proxy = None if transport is not None else proxy_of(url)
        make = partial(
            httpx.Client,
            base_url=url,
            headers=headers | {"User-Agent": f"points-client/{__version__}"},
            transport=transport,
            verify=transport is not None or trusted(ssl_context),
            proxy=proxy,
            trust_env=False,
        )
        is_fake = isinstance(transport, httpx.MockTransport)
        try:
            self._connections = Connections(make, shareable=transport is None or is_fake)
        except (ImportError, ValueError, httpx.InvalidURL) as error:
            raise ValueError(f"The proxy that the environment names cannot be used: {error}") from error
        through = "" if proxy is None else f"{host_and_port(proxy)}, the proxy of the environment for "
        self._contact = Contact(through + host_and_port(url), patience_s)

    @property
    def _http(self) -> httpx.Client:
        http = self._connections.here()
        if http.is_closed:
            raise PointsError("It is closed: make another one.")
        return http

    def close(self) -> None:
        self._connections.here().close()

    def clock(self, wait_s: float | None) -> Clock:
        """Return the time of a call that waits so long; 0 and None: as long as patience lasts.

        Raises:
            ValueError: it is below 0.
        """
        return Clock(wait_s or self._patience_s)

    def call(self, call: Call, read: Callable[[Answer], T], clock: Clock | None = None) -> T:
        """Return what `read` finds in the answer to a call.

        Raises:
            NoAnswer: there was no clear answer in time.
            PointsError: the call is refused.
            ValueError: a value cannot be sent.
        """
        done = self.tried(call, read, clock or self.clock(call.wait_s))
        return done.value

    def tried(self, call: Call, read: Callable[[Answer], T], clock: Clock, *, may_be_accepted: bool = False) -> Done[T]:
        """Make a call, as `call` does; also tell when to ask again."""
        attempts = Attempts(call, clock, self._contact, retried=self._retried, may_be_accepted=may_be_accepted)
        content, http = call.content(), self._http
        while True:
            try:
                step = attempts.answered(self._answer(http, call, content, attempts), read)
            except (PointsError, NotImplementedError):  # NotImplementedError: what `FakePoints` does not know.
                raise
            except Exception as error:  # noqa: BLE001  # `lost` raises what is no fault of the network.
                step = attempts.lost(error)
            if isinstance(step, Done):
                return step
            self.waited(step, call)
            if step.is_last:
                raise attempts.over(step) from step.error

    def waited(self, wait: Wait, call: Call) -> None:
        """Say why a call waits, and wait."""
        _log.info("%s %s: %s (waiting %.1f s)", call.method, call.path, wait.trouble, wait.seconds)
        if self._on_wait is not None:
            self._on_wait(wait)
        sleep(wait.seconds)

    def _answer(self, http: httpx.Client, call: Call, content: bytes | None, attempts: Attempts) -> httpx.Response:
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
            timeout=httpx.Timeout(try_s, connect=min(self._contact.connect_s(), try_s)),
        )
        return within(try_s if self._is_timed else None, partial(http.send, request))

    def answer(self, kind: type[T], call: Call, known: Mapping[str, object] = {}, clock: Clock | None = None) -> T:
        """Return the answer to a call as a dataclass; `known`: fields that it must have, such as the id."""
        return self.call(call, partial(_as, kind, known), clock)

    def rows(self, kind: type[T], path: str, name: str, query: Mapping[str, str]) -> Iterator[T]:
        """Yield each row of the list `name`, page by page. A page may be short or empty and still have a next one."""
        cursor: dict[str, str] = {}
        while True:
            call = Call(method="GET", path=path, query={**query, **cursor})
            page, next_cursor = self.call(call, partial(_page, kind, name))
            for row in page:
                yield row
            if next_cursor is None:
                return
            cursor = {"cursor": next_cursor}

    def delete(self, path: str, *, may_be_gone: bool = False) -> None:
        """Delete what is at a path.

        Raises:
            NotFound: there is nothing, unless it `may_be_gone`.
        """
        try:
            self.call(Call(method="DELETE", path=path), lambda _: None)
        except NotFound:
            if not may_be_gone:
                raise


class Noun:
    """Calls about one noun."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller


class Options(TypedDict, total=False):
    """What a client may be made with, beside its key and its URL."""

    patience_s: float
    transport: httpx.BaseTransport | None
    ssl_context: SSLContext | None
    on_wait: Callable[[Wait], object] | None
    retried: AbstractSet[int]


class Connected:
    """A client of one key, whose connections are closed with it."""

    _KEY: str  # The variable of the environment that has the key.

    def __init__(
        self,
        key: str,
        url: str,
        *,
        patience_s: float = PATIENCE_S,
        transport: httpx.BaseTransport | None = None,
        ssl_context: SSLContext | None = None,
        on_wait: Callable[[Wait], object] | None = None,
        retried: AbstractSet[int] = RETRIED,
    ) -> None:
        self._caller = Caller(key, url, patience_s, transport, ssl_context, on_wait, retried)
        self._make(key.strip(), self._caller)

    def _make(self, key: str, caller: Caller) -> None:
        """Make the attributes that have calls of their own."""
        raise NotImplementedError

    @classmethod
    def from_env(cls, **options: Unpack[Options]) -> Self:
        """Return the client of the key in `POINTS_KEY` (`POINTS_PLATFORM_KEY` for the platform) and the URL in
        `POINTS_URL`; `options` as of the class.

        Raises:
            ValueError: one of them is not set or not valid.
        """
        return cls(from_environment(cls._KEY), from_environment("POINTS_URL"), **options)

    def close(self) -> None:
        """Close the connections."""
        self._caller.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _as(kind: type[T], known: Mapping[str, object], answer: Answer) -> T:
    """Return an answer as a dataclass: its fields stand in `data` and in `additional_data`.

    Raises:
        Unlike: it is about something else than `known`.
        Exception: the JSON does not fit the dataclass; `Attempts.answered` is the guard.
    """
    for name, value in known.items():
        if answer.data[name] != value:
            raise Unlike(f"its {name} is another")
    return read(kind, {"request_id": answer.request_id, **answer.additional, **answer.data})


def _page(kind: type[T], name: str, answer: Answer) -> tuple[Sequence[T], str | None]:
    next_cursor: Any = answer.data["next_cursor"]
    if not isinstance(next_cursor, str | None):
        raise TypeError("next_cursor is no string.")
    return rows_of(kind, name, answer), next_cursor


def rows_of(kind: type[T], name: str, answer: Answer) -> tuple[T, ...]:
    """Return a list in an answer; each row has the answer's id, unless it is about another call."""
    return tuple(read(kind, {"request_id": answer.request_id, **row}) for row in answer.data[name])
