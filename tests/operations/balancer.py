"""A balancer of connections as small as can be: each new one goes to the next address it was given."""

import asyncio
import contextlib
import itertools
import threading
from collections.abc import Iterator

from app.local import ports
from tests.ports import free_port

_CHUNK_BYTES = 65_536


class Balancer:
    """It listens on `port`. What is taken out gets no new connection, and keeps those it has."""

    def __init__(self) -> None:
        self.port = free_port()
        self.targets: list[int] = []
        self._turn = itertools.count()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._listen()), daemon=True)
        self._listening = threading.Event()
        self._loop: asyncio.AbstractEventLoop
        self._over: asyncio.Event

    def start(self) -> None:
        self._thread.start()
        assert self._listening.wait(10), "it listens"

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join()

    async def _listen(self) -> None:
        self._loop, self._over = asyncio.get_running_loop(), asyncio.Event()
        async with await asyncio.start_server(self._serve, ports.HOST, self.port, backlog=128):
            self._listening.set()
            await self._over.wait()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        target = self.targets[next(self._turn) % len(self.targets)]
        there, back = await asyncio.open_connection(ports.HOST, target)
        await asyncio.gather(_pass_on(reader, back), _pass_on(there, writer))


async def _pass_on(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    """Pass on what comes, and that nothing more comes."""
    with contextlib.suppress(OSError, asyncio.CancelledError):
        while data := await source.read(_CHUNK_BYTES):
            target.write(data)
            await target.drain()
    target.close()


@contextlib.contextmanager
def balancer() -> Iterator[Balancer]:
    made = Balancer()
    made.start()
    try:
        yield made
    finally:
        made.stop()
