"""Redis killed, silent, or refusing to write, under load: every send is answered and paid once, and no part dies."""

import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import httpx
import pytest
from redis import Redis, ResponseError

from app.cli.status import faults_with_redis, look_at_redis
from app.local import ports
from app.local.datadir import DataDir
from app.local.valkey import Valkey
from tests.conftest import forget_everything
from tests.deadline import TIMEOUT_S, until
from tests.operations.load import issued_exactly, load
from tests.pace import in_time
from tests.ports import free_port
from tests.service.deployment import Deployment, deployment
from tests.service.parts import Part

_AWAY_S = 4.0
_ANSWERED_WITHIN_S = 5.0
# Whatever has stayed slow is slow each time; a machine that is busy elsewhere makes it slow once.
_LOOKS, _LOOK_S = 5, 1.5


class Broker:
    """A Valkey of the test's own, which it may hurt."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.folder = folder
        self._server = Valkey(DataDir(folder))
        self._server.prepare()
        self.url = self._server.url()
        self.part = Part("valkey", self._server.command(), {}, folder / "log")
        self.start()

    def start(self) -> None:
        self.part.start()
        assert self._server.answers(within_s=TIMEOUT_S)

    def tell(self, *words: object) -> None:
        with Redis.from_url(self.url) as client:
            client.execute_command(*words)


@pytest.fixture
def broker(tmp_path: Path, database: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Broker]:
    made = Broker(tmp_path / "valkey")
    monkeypatch.setenv("REDIS_URL", made.url)
    forget_everything()
    yield made
    made.part.hold_down()


@pytest.fixture
def running(broker: Broker, tmp_path: Path) -> Iterator[tuple[Deployment, int]]:
    """Run web and two workers, and no beat: it sweeps nothing."""
    with deployment(tmp_path) as parts:
        for name in ("worker1", "worker2"):
            parts.worker(name)
        port = free_port()
        parts.web(port)
        yield parts, port


def _readiness(port: int) -> tuple[int, object]:
    answer = httpx.get(f"http://{ports.HOST}:{port}/readyz", timeout=30)
    return answer.status_code, answer.json()["data"]["redis"]


def _stop_and_continue(broker: Broker, stack: ExitStack) -> None:
    broker.part.send(signal.SIGSTOP)
    stack.callback(broker.part.send, signal.SIGCONT)


def _kill_and_start(broker: Broker, stack: ExitStack) -> None:
    broker.part.hold_down()
    stack.callback(broker.start)


def _save(broker: Broker) -> None:
    with suppress(ResponseError):  # It saves already.
        broker.tell("BGSAVE")


def _refuse_by_disk(broker: Broker, stack: ExitStack) -> None:
    """Have it fail to save, after which it refuses every write (MISCONF)."""
    in_the_way = broker.folder / "valkey" / "dump.rdb"
    in_the_way.mkdir()
    stack.callback(_save, broker)
    stack.callback(in_the_way.rmdir)
    broker.tell("CONFIG", "SET", "save", "1 1")


def _fill_and_empty(broker: Broker, stack: ExitStack) -> None:
    """Have its memory full, after which it refuses every write (OOM); then give it more, and empty it."""
    stack.callback(broker.tell, "FLUSHALL")
    stack.callback(broker.tell, "CONFIG", "SET", "maxmemory", 0)
    broker.tell("CONFIG", "SET", "maxmemory", 1)


_WAYS = {
    _kill_and_start: "does not answer",
    _stop_and_continue: "does not answer",
    _refuse_by_disk: "cannot save to its disk",
    _fill_and_empty: "has no memory left",
}


@pytest.mark.long
def test_while_redis_is_away_each_send_is_201_and_status_says_why(
    running: tuple[Deployment, int], broker: Broker
) -> None:
    parts, port = running
    with load(port, callers=8, organizations=2, recipients=1) as calls:
        for hurt, said in _WAYS.items():
            with ExitStack() as back:
                hurt(broker, back)
                until(lambda: _readiness(port) == (200, "away"), hurt.__name__)
                calls.goes_on(calls=8)
                down = parts.points("status")["down"]
            [sentence] = [one for one in down if one.startswith("Redis ")]
            assert sentence.startswith(f"Redis {said}"), sentence
            assert "worker" not in " ".join(down), "whether they answer is not known without Redis"
            until(lambda: _readiness(port) == (200, "ok"), hurt.__name__)
            calls.goes_on(calls=50)
    assert parts.deaths() == {}
    issued_exactly(calls)


@pytest.mark.long
@pytest.mark.alone
def test_while_redis_is_away_sends_are_201_soon_and_with_it_back_all_is_as_fast_as_before(
    running: tuple[Deployment, int], broker: Broker
) -> None:
    _, port = running
    with load(port, callers=8, organizations=2, recipients=1, pause_s=0.0) as calls:
        calls.goes_on(calls=200)
        began = time.monotonic()
        before = calls.during(2)
        with ExitStack() as back:
            _kill_and_start(broker, back)
            away = calls.during(_AWAY_S)
        afterwards: list[float] = []
        while len(afterwards) < _LOOKS and max(afterwards, default=0) <= before / 2:
            afterwards.append(calls.during(_LOOK_S))
    slowest = max(answer.seconds for answer in calls.answers if answer.at - answer.seconds > began)
    print(f"{before:.0f}/s, away {away:.1f}/s, back {afterwards}/s; slowest {slowest:.2f} s; {dict(calls.statuses)}")
    assert in_time(slowest, _ANSWERED_WITHIN_S)
    assert away > 1
    assert afterwards[-1] > before / 2
    issued_exactly(calls)


def test_a_redis_that_takes_no_more_clients_is_named_with_what_ends_it(broker: Broker) -> None:
    with Redis.from_url(broker.url) as one:
        one.config_set("maxclients", 1)
        [(_, sentence, _)] = faults_with_redis(look_at_redis())
        one.config_set("maxclients", 100)
    assert sentence.startswith("Redis takes no more clients, until some of them end (CLIENT LIST) or ")
    assert look_at_redis()["redis_error"] is None
