"""RabbitMQ as the broker, and Redis for hints and limits alone: sends are issued, and no message is left behind."""

import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from app.local import ports
from app.messaging import process_redis
from tests.crash.conftest import SEED
from tests.crash.faults_of_servers import AWAY_S
from tests.crash.proxy import Proxy
from tests.crash.run import Run
from tests.deadline import comes_true, until
from tests.operations.load import issued_exactly, load
from tests.ports import free_port
from tests.service.deployment import STARTED_IN_S, deployment
from tests.service.parts import Part

# The program itself: what lies in /usr/sbin changes to a user of its own, and to folders of the system.
_PROGRAM = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
_PORT_MAPPER = shutil.which("epmd")

# A second or two for the sweep, and the noise of a busy machine.
_ANSWERED_WITHIN_S = 5.0
# Three heartbeats, a connection, and the noise.
_FINDS_OUT_WITHIN_S = 60.0

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
        self._log = folder / "rabbitmq.log"
        self.part = Part("rabbitmq", [str(_PROGRAM)], self.environment, self._log)

    def start(self) -> None:
        self.part.start()
        assert comes_true(lambda: not ports.is_free(self.port), within_s=STARTED_IN_S), self._log.read_text()


@pytest.fixture
def rabbitmq(tmp_path: Path) -> Iterator[RabbitMQ]:
    if not _PROGRAM.exists() or _PORT_MAPPER is None:
        pytest.skip("RabbitMQ is not installed (Debian: apt-get install rabbitmq-server)")
    folder = tmp_path / "rabbitmq"
    folder.mkdir()
    mapper = free_port()
    made = RabbitMQ(folder, mapper)
    names = [_PORT_MAPPER, "-port", str(mapper), "-address", ports.HOST]
    with _ended(Part("epmd", names, made.environment, folder / "epmd.log")) as epmd, _ended(made.part):
        epmd.start()
        made.start()
        yield made


@contextmanager
def _ended(part: Part) -> Iterator[Part]:
    """End a part that was started in the block."""
    try:
        yield part
    finally:
        if part.hold_down(signal.SIGTERM) is None:
            part.hold_down(signal.SIGKILL)


@pytest.mark.usefixtures("broker", "database")
def test_sends_are_issued_over_rabbitmq_and_redis_carries_no_message(rabbitmq: RabbitMQ, tmp_path: Path) -> None:
    with deployment(tmp_path, POINTS_BROKER_URL=rabbitmq.url) as parts:
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
def test_while_rabbitmq_is_away_sends_are_201_soon(rabbitmq: RabbitMQ, away: list[str], tmp_path: Path) -> None:
    proxy = Proxy(free_port(), rabbitmq.port)
    url = rabbitmq.url.replace(f":{rabbitmq.port}/", f":{proxy.port}/")
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
    issued_exactly(callers)
    assert max(answer.seconds for answer in callers.answers) < _ANSWERED_WITHIN_S


@pytest.mark.usefixtures("broker", "database")
def test_a_worker_whose_connection_to_rabbitmq_fell_silent_makes_another(rabbitmq: RabbitMQ, tmp_path: Path) -> None:
    proxy = Proxy(free_port(), rabbitmq.port)
    try:
        with deployment(
            tmp_path, POINTS_BROKER_URL=rabbitmq.url.replace(f":{rabbitmq.port}/", f":{proxy.port}/")
        ) as parts:
            parts.worker("worker1")
            until(lambda: parts.points("status")["workers"], "the worker answers", within_s=STARTED_IN_S)
            proxy.tell("silence")  # For good; but whoever connects anew finds all well.
            assert parts.points("status")["workers"] == []
            until(lambda: parts.points("status")["workers"], "the worker answers again", within_s=_FINDS_OUT_WITHIN_S)
    finally:
        proxy.stop()


def test_killed_rabbitmq_and_beat_lose_nothing_and_pay_nothing_twice(rabbitmq: RabbitMQ, tmp_path: Path) -> None:
    run = Run(tmp_path / "crash", SEED, POINTS_BROKER_URL=rabbitmq.url)
    try:
        run.start()
        beat = run.service.part("beat")
        for part in (rabbitmq.part, beat):
            part.hold_down(signal.SIGKILL)
        run.scene.sends_are_answered_soon(for_s=AWAY_S)
        rabbitmq.start()
        beat.start()
        violations = run.settle("rabbitmq_is_killed") + run.finish()
    finally:
        run.stop()
    assert violations == []
