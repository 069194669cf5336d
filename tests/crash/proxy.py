"""A TCP proxy in a process of its own, which balances, delays, cuts, refuses or says nothing when it is told to.

It is told by lines on its standard input: `forward`, `delay SECONDS`, `hole`, `silence` (what is connected now is
never answered again), `targets PORT…` (whoever connects from now on is led to these in turn), `refuse`, `drop`,
`cut_commit N` and `cut_answer N` (each Nth COMMIT is lost, or its answer is). Each line is answered by the number
of cuts so far.
"""

import asyncio
import contextlib
import itertools
import subprocess
import sys
from pathlib import Path
from typing import Self

HOST = "127.0.0.1"

# How psycopg sends a COMMIT: as a simple query, in PostgreSQL's protocol a letter, a length and the text.
_COMMIT = b"Q\x00\x00\x00\x0bCOMMIT\x00"
_CHUNK_BYTES = 65_536


class _Proxy:
    """Forwards every connection to one of `targets` in the way it was last told."""

    def __init__(self, port: int, *targets: int) -> None:
        self._port, self._targets, self._turn = port, targets, itertools.count()
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._silenced: set[asyncio.StreamWriter] = set()
        self._open = asyncio.Event()
        self._open.set()
        self._delay_s = 0.0
        self._commits = self._cuts = 0
        self._cut_commit = self._cut_answer = 0

    async def obey(self) -> None:
        """Do what standard input says, until it ends."""
        loop = asyncio.get_running_loop()
        lines = asyncio.StreamReader()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
        await self._listen()
        while line := await lines.readline():
            word, *numbers = line.decode().split()
            await self._become(word, *map(float, numbers))
            sys.stdout.write(f"{self._cuts}\n")
            sys.stdout.flush()

    async def _become(self, word: str, *numbers: float) -> None:
        if word == "targets":
            self._targets = tuple(map(int, numbers))
        elif word == "drop":
            for writer in list(self._writers):
                writer.transport.abort()
        elif word == "silence":
            self._silenced |= self._writers
        else:
            await self._treat_all(word, *numbers)

    async def _treat_all(self, word: str, number: float = 0) -> None:
        self._delay_s = number if word == "delay" else 0.0
        self._cut_commit = int(number) if word == "cut_commit" else 0
        self._cut_answer = int(number) if word == "cut_answer" else 0
        if word == "refuse" and self._server is not None:
            self._server.close()
            self._server = None
        elif self._server is None:
            await self._listen()
        if word == "hole":
            self._open.clear()
        else:
            self._open.set()

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._serve, HOST, self._port, backlog=1_024)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            await self._open.wait()  # Accepted, and nothing is said, while the proxy is a black hole.
            target = self._targets[next(self._turn) % len(self._targets)]
            there, back = await asyncio.open_connection(HOST, target)
        except OSError:
            writer.transport.abort()
            self._writers.discard(writer)
            return
        losing = asyncio.Event()  # Set once the next answer of this connection is to be lost.
        pumps = [
            asyncio.create_task(self._to_server(reader, writer, back, losing)),
            asyncio.create_task(self._to_client(there, writer, losing)),
        ]
        await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        for pump in pumps:
            pump.cancel()
        for end in (writer, back):
            end.close()  # What was passed on still arrives.
        self._writers.discard(writer)
        self._silenced.discard(writer)

    async def _to_server(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        server: asyncio.StreamWriter,
        losing: asyncio.Event,
    ) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(_CHUNK_BYTES):
                await self._hold_up()
                if writer in self._silenced:
                    continue
                if _COMMIT in data:
                    self._commits += 1
                    if self._cut_commit and self._commits % self._cut_commit == 0:
                        self._cuts += 1
                        return
                    if self._cut_answer and self._commits % self._cut_answer == 0:
                        losing.set()
                server.write(data)
                await server.drain()

    async def _to_client(
        self, server: asyncio.StreamReader, writer: asyncio.StreamWriter, losing: asyncio.Event
    ) -> None:
        with contextlib.suppress(OSError):
            while data := await server.read(_CHUNK_BYTES):
                if losing.is_set():  # The server has committed, and nobody will hear of it.
                    self._cuts += 1
                    return
                await self._hold_up()
                if writer in self._silenced:
                    break
                writer.write(data)
                await writer.drain()
            if writer in self._silenced:  # Nor is it told that the server has closed its end.
                await asyncio.Event().wait()

    async def _hold_up(self) -> None:
        if self._delay_s:
            await asyncio.sleep(self._delay_s)
        await self._open.wait()


class Proxy:
    """The proxy's process, and the words it understands."""

    def __init__(self, port: int, *targets: int) -> None:
        self.port = port
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.crash.proxy", *map(str, (port, *targets))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[2],
            start_new_session=True,
        )
        self.tell("forward")  # Answered once it listens.

    def tell(self, word: str, *numbers: float) -> int:
        """Give an order, wait until it is in force, and return the number of connections cut so far."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{' '.join(map(str, (word, *numbers)))}\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def stop(self) -> None:
        self._process.kill()
        self._process.communicate()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


async def _main() -> None:
    await _Proxy(*map(int, sys.argv[1:])).obey()


if __name__ == "__main__":
    asyncio.run(_main())
