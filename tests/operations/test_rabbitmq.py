"""RabbitMQ as the broker, and Redis for hints and limits alone: sends are issued, also while RabbitMQ is away."""

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.local import ports
from app.messaging import process_redis
from tests.crash.proxy import Proxy
from tests.deadline import until
from tests.operations.beside import beside
from tests.operations.load import issued_exactly, load
from tests.ports import free_port
from tests.service.deployment import deployment
from tests.service.parts import Part

pytestmark = [pytest.mark.usefixtures("broker", "database"), pytest.mark.long]

# The program itself: what lies in /usr/sbin changes to a user of its own, and to folders of the system.
_PROGRAM = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
_PORT_MAPPER = shutil.which("epmd")

_CONFIGURATION = """
listeners.tcp.1 = {host}:{port}
default_user = points
default_pass = hush
default_vhost = points
log.console = true
log.console.level = warning
"""


class RabbitMQ:
    """A RabbitMQ of the test's own on the loopback address, with its folder and its ports."""

    def __init__(self, folder: Path, mapper: int) -> None:
        self.port = free_port()
        self.url = f"amqp://points:hush@{ports.HOST}:{self.port}/points"
        (folder / "rabbitmq.conf").write_text(_CONFIGURATION.format(host=ports.HOST, port=self.port))
        (folder / "enabled_plugins").write_text("[].\n")
        self.environment = {
            **os.environ,
            "HOME": str(folder),
            "ERL_EPMD_PORT": str(mapper),
            "ERL_EPMD_ADDRESS": ports.HOST,
            "RABBITMQ_NODENAME": f"points{self.port}@localhost",
            "RABBITMQ_DIST_PORT": str(free_port()),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}",
            "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq.conf"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "enabled_plugins"),
            "RABBITMQ_MNESIA_BASE": str(folder),
            "RABBITMQ_LOG_BASE": str(folder),
            "RABBITMQ_LOGS": "-",
        }
        self.part: Part

    def start_again(self) -> None:
        self.part.hold_down(signal.SIGKILL)
        self.part.start()
        until(lambda: not ports.is_free(self.port), "RabbitMQ listens")


@pytest.fixture
def rabbitmq(tmp_path: Path) -> Iterator[RabbitMQ]:
    if not _PROGRAM.exists() or _PORT_MAPPER is None:
        pytest.skip("RabbitMQ is not installed (Debian: apt-get install rabbitmq-server)")
    folder = tmp_path / "rabbitmq"
    folder.mkdir()
    mapper = free_port()
    made = RabbitMQ(folder, mapper)
    names = [_PORT_MAPPER, "-port", str(mapper), "-address", ports.HOST]
    with (
        beside(names, folder, mapper, made.environment),
        beside([str(_PROGRAM)], folder, made.port, made.environment) as made.part,
    ):
        yield made


def test_sends_are_issued_over_rabbitmq_and_redis_carries_no_message(rabbitmq: RabbitMQ, tmp_path: Path) -> None:
    with deployment(tmp_path, POINTS_BROKER_URL=rabbitmq.url) as parts:
        parts.worker("worker1")
        parts.beat()
        port = free_port()
        parts.web(port)
        with load(port) as callers:
            callers.goes_on(calls=100)
        until(lambda: parts.points("status")["queued_messages"] == 0)
        found = parts.points("status")
        assert [name.partition("@")[0] for name in found["workers"]] == ["worker1"]
        assert found["beat"] is True
    assert parts.deaths() == {}
    issued_exactly(callers)
    # What Celery keeps on Redis has its name or Kombu's; hints and limits have ours.
    assert [key for key in process_redis.redis().scan_iter() if not key.startswith("points:")] == []


def test_while_rabbitmq_is_away_each_send_is_201_and_a_worker_finds_it_again(
    rabbitmq: RabbitMQ, tmp_path: Path
) -> None:
    port = free_port()
    with Proxy(free_port(), rabbitmq.port) as proxy:
        url = rabbitmq.url.replace(f":{rabbitmq.port}/", f":{proxy.port}/")
        with deployment(tmp_path, POINTS_BROKER_URL=url) as parts:
            parts.worker("worker1")
            parts.web(port)
            with load(port) as callers:
                for away in (["refuse", "drop"], ["hole"], ["silence", "hole"]):
                    for word in away:
                        proxy.tell(word)
                    callers.goes_on()
                    proxy.tell("forward")
                    callers.goes_on()
                rabbitmq.start_again()
                callers.goes_on()
            until(lambda: parts.points("status")["workers"], "the worker answers")
            proxy.tell("silence")  # For good; but whoever connects anew finds all well.
            assert parts.points("status")["workers"] == []
            # Three heartbeats, and a connection.
            until(lambda: parts.points("status")["workers"], "the worker answers again")
        assert parts.deaths() == {}
    issued_exactly(callers)
