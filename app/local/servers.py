"""Finding the servers: those in the environment, or else the embedded ones of the data directory."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from app.local.datadir import DataDir
from app.local.postgresql import PostgreSQL
from app.local.supervisor import is_kept_running, process_identity
from app.local.terminal import interrupts_delayed
from app.local.valkey import Valkey

# Notes the PostgreSQL that a command has started.
_STARTED_FILE = "started.json"
# How long a new server may take until `PostgreSQL.process` finds it.
_PID_FILE_TIMEOUT_S = 5.0
# How long `points up` may take to restart a server that died.
_RESTART_TIMEOUT_S = 30.0


def name_servers(datadir: DataDir, *, makes_key: bool = False) -> None:
    """Set the URLs of the embedded servers, and this folder's key for secrets, unless the environment has them.

    With `makes_key`, the key is made if there is none yet.
    """
    if "POINTS_SECRETS_KEY" not in os.environ and (key := datadir.secrets_key(make=makes_key)) is not None:
        os.environ["POINTS_SECRETS_KEY"] = key
    if "DATABASE_URL" not in os.environ:
        _remove_libpq_variables()
        os.environ["DATABASE_URL"] = PostgreSQL(datadir).url()
    if "REDIS_URL" not in os.environ:
        os.environ["REDIS_URL"] = Valkey(datadir).url()


def _remove_libpq_variables() -> None:
    """Remove libpq's variables from the environment: they are meant for other servers.

    PGSSLMODE=require, for example, would make the embedded server unreachable.
    """
    for name in [name for name in os.environ if name.startswith("PG")]:
        del os.environ[name]


@contextmanager
def database(datadir: DataDir) -> Iterator[bool]:
    """Give a command its database, and start the embedded database if it does not run; yield whether it is embedded.

    Several commands, and `points up`, may use the embedded server at once; each holds a shared lock. The last to
    leave stops the server, but only if a command has started it: if `points up` was killed, its other parts still
    use the server it started.
    """
    if "DATABASE_URL" in os.environ:
        yield False
        return
    _remove_libpq_variables()
    datadir.create()
    server = PostgreSQL(datadir)
    with datadir.locked("start.lock"):
        in_use = datadir.try_lock("use.lock", shared=True)
        assert in_use is not None, "the exclusive form is only ever held under start.lock"
        try:
            _start(datadir, server)
        except BaseException:  # Ctrl-C too: stop a server that was just started.
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

    If it died under `points up`, that restarts it: a second server here would hold the data folder instead.
    """
    deadline = time.monotonic() + _RESTART_TIMEOUT_S
    while server.process() is None and is_kept_running(datadir, "postgresql") and time.monotonic() < deadline:
        time.sleep(0.05)
    if server.process() is None and not is_kept_running(datadir, "postgresql"):
        server.prepare()
        with interrupts_delayed():  # Otherwise an interrupt could leave a server that no command stops.
            server.start_detached()
            datadir.update(_STARTED_FILE, postgresql=_identity(server, within_s=_PID_FILE_TIMEOUT_S))
    server.wait_until_ready()


def _leave(datadir: DataDir, server: PostgreSQL, in_use: IO[str]) -> None:
    """Stop the server if this command was its last user, and a command has started it."""
    in_use.close()
    if (alone := datadir.try_lock("use.lock")) is not None:
        if (identity := _identity(server)) and identity == datadir.read(_STARTED_FILE).get("postgresql"):
            server.stop()
        alone.close()


def _identity(server: PostgreSQL, *, within_s: float = 0.0) -> list[int | str] | None:
    """Return the running server's identity, waiting up to `within_s` for it; None when there is none."""
    deadline = time.monotonic() + within_s
    while (process := server.process()) is None and time.monotonic() < deadline:
        time.sleep(0.01)
    return None if process is None else [process.pid, process_identity(process)]
