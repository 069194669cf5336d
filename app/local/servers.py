"""Finding the servers: those the environment names, else the embedded ones of the data directory."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from app.local.datadir import DataDir
from app.local.postgresql import PostgreSQL
from app.local.valkey import Valkey

# Notes the server that a command has started.
_STARTED_FILE = "started.json"


def name_servers(datadir: DataDir) -> None:
    """Put the addresses of the embedded servers into the environment where it names none."""
    if "DATABASE_URL" not in os.environ:
        os.environ["DATABASE_URL"] = PostgreSQL(datadir).url()
    if "REDIS_URL" not in os.environ:
        os.environ["REDIS_URL"] = Valkey(datadir).url()


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
    datadir.create()
    server = PostgreSQL(datadir)
    with datadir.locked("start.lock"):
        in_use = datadir.try_lock("use.lock", shared=True)
        assert in_use is not None, "the exclusive form is only ever held under start.lock"
        is_ours = False
        if server.process() is None:
            server.prepare()
            server.start_detached()
            is_ours = True
        server.wait_until_ready()
        if is_ours:
            datadir.update(_STARTED_FILE, postgresql=_identity(server))
    os.environ["DATABASE_URL"] = server.url()
    try:
        yield True
    finally:
        del os.environ["DATABASE_URL"]
        with datadir.locked("start.lock"):
            in_use.close()
            if (alone := datadir.try_lock("use.lock")) is not None:
                if _identity(server) == datadir.read(_STARTED_FILE).get("postgresql"):
                    server.stop()
                alone.close()


def _identity(server: PostgreSQL) -> list[float] | None:
    """Return what tells the server that runs from every other one, or None when none runs."""
    process = server.process()
    return None if process is None else [process.pid, process.create_time()]
