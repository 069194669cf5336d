"""RabbitMQ as the broker, and Redis for hints and limits alone: sends are issued, and no message is left behind."""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from app import process_redis
from app.local import ports
from tests.crash.parts import Part
from tests.crash.proxy import Proxy
from tests.deadline import comes_true
from tests.operations.deployment import STARTED_IN_S, deployment
from tests.operations.load import issued_exactly, load
from tests.ports import free_port

# The program itself: what lies in /usr/sbin changes to a user of its own, and to folders of the system.
_PROGRAM = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
_PORT_MAPPER = shutil.which("epmd")

# A second or two for the sweep, and the noise of a busy machine.
_ANSWERED_WITHIN_S = 5.0

_CONFIGURATION = """
listeners.tcp.1 = {host}:{port}
default_user = points
default_pass = hush
default_vhost = points
log.console = true
log.console.level = warning
"""


@pytest.fixture
def rabbitmq(tmp_path: Path) -> Iterator[str]:
    """Run a RabbitMQ with folders and ports of its own, on the loopback address, and yield its URL."""
    if not _PROGRAM.exists() or _PORT_MAPPER is None:
        pytest.skip("RabbitMQ is not installed (Debian: apt-get install rabbitmq-server)")
    folder = tmp_path / "rabbitmq"
    folder.mkdir()
    port, mapper = free_port(), free_port()
    (folder / "rabbitmq.conf").write_text(_CONFIGURATION.format(host=ports.HOST, port=port))
    (folder / "enabled_plugins").write_text("[].\n")
    environment = {
        **os.environ,
        "HOME": str(folder),
        "ERL_EPMD_PORT": str(mapper),
        "ERL_EPMD_ADDRESS": ports.HOST,
        "RABBITMQ_NODENAME": f"points{port}@localhost",
        "RABBITMQ_DIST_PORT": str(free_port()),
        "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}",
        "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq.conf"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "enabled_plugins"),
        "RABBITMQ_MNESIA_BASE": str(folder),
        "RABBITMQ_LOG_BASE": str(folder),
        "RABBITMQ_LOGS": "-",
    }
    with (
        _running("epmd", [_PORT_MAPPER, "-port", str(mapper), "-address", ports.HOST], environment, folder),
        _running("rabbitmq", [str(_PROGRAM)], environment, folder),
    ):
        log = folder / "rabbitmq.log"
        assert comes_true(lambda: not ports.is_free(port), within_s=STARTED_IN_S), log.read_text()
        yield f"amqp://points:hush@{ports.HOST}:{port}/points"


@contextmanager
def _running(name: str, command: list[str], environment: dict[str, str], folder: Path) -> Iterator[None]:
    part = Part(name, command, environment, folder / f"{name}.log")
    part.start()
    try:
        yield
    finally:
        try:
            part.hold_down(signal.SIGTERM)
        except subprocess.TimeoutExpired:
            part.hold_down(signal.SIGKILL)


@pytest.mark.usefixtures("broker", "database")
def test_sends_are_issued_over_rabbitmq_and_redis_carries_no_message(rabbitmq: str, tmp_path: Path) -> None:
    with deployment(tmp_path, POINTS_BROKER_URL=rabbitmq) as parts:
        parts.worker("worker1")
        parts.beat()
        port = free_port()
        parts.web(port)
        with load(port) as callers:
            callers.goes_on(calls=100)
        assert comes_true(lambda: parts.points("status")["queued_messages"] == 0, within_s=STARTED_IN_S)
        found = parts.points("status")
        assert [name.partition("@")[0] for name in found["workers"]] == ["worker1"]
        assert found["beat"] is True
    assert parts.deaths() == {}
    issued_exactly(callers)
    # What Celery keeps on Redis has its name or Kombu's; hints and limits have ours.
    assert [key for key in process_redis.redis().scan_iter() if not key.startswith("points:")] == []


@pytest.mark.parametrize("away", [["refuse", "drop"], ["hole"], ["silence", "hole"]], ids="-".join)
@pytest.mark.usefixtures("broker", "database")
def test_while_rabbitmq_is_away_sends_are_201_soon_and_with_it_back_nothing_is_left(
    rabbitmq: str, away: list[str], tmp_path: Path
) -> None:
    server = urlsplit(rabbitmq)
    assert server.port is not None
    proxy = Proxy(free_port(), server.port)
    url = server._replace(netloc=server.netloc.replace(str(server.port), str(proxy.port))).geturl()
    try:
        with deployment(tmp_path, POINTS_BROKER_URL=url) as parts:
            parts.worker("worker1")
            port = free_port()
            parts.web(port)
            with load(port) as callers:
                for word in away:
                    proxy.tell(word)
                assert callers.during(10) > 1
                proxy.tell("forward")
                callers.goes_on(calls=50)
        assert parts.deaths() == {}
    finally:
        proxy.stop()
    print(f"slowest {max(answer.seconds for answer in callers.answers):.2f} s of {len(callers.answers)}")
    issued_exactly(callers)
    assert max(answer.seconds for answer in callers.answers) < _ANSWERED_WITHIN_S
