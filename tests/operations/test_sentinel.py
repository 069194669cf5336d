"""Redis behind three Sentinels: its master dies while calls come in, another takes over, and no call fails."""

import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from redis import Redis
from redis.exceptions import RedisError

from app.local import ports
from app.local.valkey import _binary as valkey_program
from app.messaging import process_redis
from tests.conftest import forget_everything
from tests.deadline import until
from tests.operations.beside import beside
from tests.operations.load import issued_exactly, load
from tests.ports import free_port
from tests.service.deployment import deployment
from tests.service.parts import Part

# A master that many processes share a machine with may be quiet for a moment and yet live.
_DOWN_AFTER_MS = 3_000

_SERVER = """
bind {host}
port {port}
dir "{folder}"
requirepass hush
masterauth hush
save ""
loglevel warning
"""

_SENTINEL = """
bind {host}
port {port}
dir "{folder}"
requirepass quiet
sentinel monitor points {host} {master} 2
sentinel auth-pass points hush
sentinel down-after-milliseconds points {down_after_ms}
sentinel failover-timeout points 10000
loglevel warning
"""


@pytest.fixture
def watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[int, Part]]:
    """Run two servers that three Sentinels watch, and give them by their ports, the master first."""
    with ExitStack() as stack:
        first, second = free_port(), free_port()
        servers = {
            first: stack.enter_context(_valkey(tmp_path, first, _SERVER)),
            second: stack.enter_context(_valkey(tmp_path, second, f"{_SERVER}replicaof {ports.HOST} {first}\n")),
        }
        sentinels = [free_port() for _ in range(3)]
        for port in sentinels:
            stack.enter_context(_valkey(tmp_path, port, _SENTINEL, "--sentinel", master=first))
        hosts = ",".join(f"{ports.HOST}:{port}" for port in sentinels)
        url = f"sentinel://:hush@{hosts}/0?master=points&sentinel_password=quiet"
        until(lambda: all(_knows_the_others(port) for port in sentinels))
        monkeypatch.setenv("REDIS_URL", url)
        forget_everything()
        yield servers


@contextmanager
def _valkey(folder: Path, port: int, form: str, *options: str, master: int = 0) -> Iterator[Part]:
    """Run a Valkey, as a server or as a Sentinel, with a file of its own that it may write to."""
    own = folder / str(port)
    own.mkdir()
    configuration = own / "valkey.conf"
    configuration.write_text(
        form.format(host=ports.HOST, port=port, folder=own, master=master, down_after_ms=_DOWN_AFTER_MS)
    )
    with beside([str(valkey_program()), str(configuration), *options], own, port) as part:
        yield part


def _knows_the_others(port: int) -> bool:
    """Tell whether a Sentinel has found the two others and the replica, without which it could replace nobody."""
    with Redis(host=ports.HOST, port=port, password="quiet", decode_responses=True) as sentinel:
        try:
            state = sentinel.sentinel_master("points")
        except RedisError:
            return False
        return bool(state["num-other-sentinels"] == 2 and state["num-slaves"] == 1)


def _master() -> int:
    """Return the port of the server that the service's own client is led to."""
    try:
        return int(process_redis.redis().info("server")["tcp_port"])
    except RedisError:
        return 0


@pytest.mark.long
@pytest.mark.usefixtures("database")
def test_a_master_dies_under_load_another_takes_over_and_no_call_fails(
    watched: dict[int, Part], tmp_path: Path
) -> None:
    first, second = watched
    # Calls wait for as long as it takes: the machine may be slow, and nobody shall be answered 202 for it.
    with deployment(tmp_path, POINTS_WAIT_S="100", POINTS_RATE_LIMIT="10000/second") as parts:
        parts.worker("worker1")
        parts.beat()
        port = free_port()
        parts.web(port)
        assert _master() == first
        with load(port) as callers:
            watched[first].hold_down(signal.SIGKILL)
            until(lambda: _master() == second)
            # A worker that gives messages back while it loses its master may end (Kombu finds no client any more),
            # and is started again, as every worker is that dies.
            callers.goes_on(calls=50)
        until(lambda: parts.points("status")["workers"] != [])
    issued_exactly(callers)
