"""Finding the servers: those the environment names, else the embedded ones of the data directory."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from app.local.datadir import DataDir
from app.local.identity import moment_of_birth
from app.local.interrupts import undisturbed
from app.local.postgresql import PostgreSQL
from app.local.supervisor import keeps
from app.local.valkey import Valkey

# Notes the server that a command has started.
_STARTED_FILE = "started.json"
# So long it may take to note itself where `PostgreSQL.process` finds it.
_APPEARS_WITHIN_S = 5.0
# So long `points up` may take to start again what has died.
_COMES_BACK_WITHIN_S = 30.0


def name_servers(datadir: DataDir) -> None:
    """Put the addresses of the embedded servers into the environment where it names none."""
    if "DATABASE_URL" not in os.environ:
        _forget_other_servers()
        os.environ["DATABASE_URL"] = PostgreSQL(datadir).url()
    if "REDIS_URL" not in os.environ:
        os.environ["REDIS_URL"] = Valkey(datadir).url()


def _forget_other_servers() -> None:
    """Take out of the environment what PostgreSQL's library reads there: it is meant for other servers than ours.

    With PGSSLMODE=require, say, it would not speak to one that is embedded.
    """
    for name in [name for name in os.environ if name.startswith("PG")]:
        del os.environ[name]


@contextmanager
def database(datadir: DataDir) -> Iterator[bool]:
    """Give a command its database: yield whether it is the embedded one, started if it does not run.

    Several commands may use it at once, with `points up` or without. Each holds a shared lock while
    it does; the last one out finds itself alone and stops the server. (`points up` holds it too.) One that no
    command has started is left to run: where `points up` was killed, its other parts still serve with it.
    """
    if "DATABASE_URL" in os.environ:
        yield False
        return
    _forget_other_servers()
    datadir.create()
    server = PostgreSQL(datadir)
    with datadir.locked("start.lock"):
        in_use = datadir.try_lock("use.lock", shared=True)
        assert in_use is not None, "the exclusive form is only ever held under start.lock"
        try:
            _start(datadir, server)
        except BaseException:  # Ctrl-C as well: what was begun is ended.
            _leave(datadir, server, in_use)
            raise
    os.environ["DATABASE_URL"] = server.url()
    try:
        yield True
    finally:
        del os.environ["DATABASE_URL"]
        with datadir.locked("start.lock"):
            _leave(datadir, server, in_use)


def _start(datadir: DataDir, server: PostgreSQL) -> None:
    """Start the server if it does not run, and wait until it answers.

    One that has died under `points up` is started again by that: another, beside it, would hold the data, which
    that never gets again, and outlive it.
    """
    deadline = time.monotonic() + _COMES_BACK_WITHIN_S
    while server.process() is None and keeps(datadir, "postgresql") and time.monotonic() < deadline:
        time.sleep(0.05)
    if server.process() is None and not keeps(datadir, "postgresql"):
        server.prepare()
        with undisturbed():  # Else it would run, and nobody would know who has started it.
            server.start_detached()
            datadir.update(_STARTED_FILE, postgresql=_identity(server, within_s=_APPEARS_WITHIN_S))
    server.wait_until_ready()


def _leave(datadir: DataDir, server: PostgreSQL, in_use: IO[str]) -> None:
    """Stop the server if nobody else uses it, and if a command has started it."""
    in_use.close()
    if (alone := datadir.try_lock("use.lock")) is not None:
        if (identity := _identity(server)) and identity == datadir.read(_STARTED_FILE).get("postgresql"):
            server.stop()
        alone.close()


def _identity(server: PostgreSQL, *, within_s: float = 0.0) -> list[int | str] | None:
    """Return what tells the server that runs, or does so in time, from every other one; None when there is none."""
    deadline = time.monotonic() + within_s
    while (process := server.process()) is None and time.monotonic() < deadline:
        time.sleep(0.01)
    return None if process is None else [process.pid, moment_of_birth(process)]
