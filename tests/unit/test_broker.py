"""The broker: what Celery is told about each kind of it, and that one which never answers holds nobody up."""

import os
import socket
import subprocess
import sys

from app.messaging.broker import VISIBILITY_TIMEOUT_S, broker_settings
from app.messaging.redis_client import redis_client
from app.values.redis_address import Sentinels

# In a process of its own, because Celery reads its settings once. It prints how many seconds it was held up.
_SUBMIT = """
import time
from app.messaging.jobs import submit
before = time.monotonic()
assert submit(1) is False
print(time.monotonic() - before)
"""


def test_redis_is_told_when_a_message_is_to_come_again() -> None:
    found = broker_settings("redis://:hush@cache:6379/0")
    assert found["broker_url"] == "redis://:hush@cache:6379/0"
    assert found["broker_transport_options"]["visibility_timeout"] == VISIBILITY_TIMEOUT_S


def test_rabbitmq_is_asked_to_confirm_and_is_told_nothing_of_redis() -> None:
    found = broker_settings("amqps://points:hush@rabbit/points")
    assert found["broker_transport_options"]["confirm_publish"] is True
    assert "visibility_timeout" not in found["broker_transport_options"]


def test_each_sentinel_is_an_address_of_the_broker() -> None:
    found = broker_settings("sentinel://:hu%40sh@w1:1,w2/3?master=points&sentinel_password=quiet")
    assert found["broker_url"] == "sentinel://:hu%40sh@w1:1/3;sentinel://:hu%40sh@w2:26379/3"
    options = found["broker_transport_options"]
    assert options["master_name"] == "points"
    assert options["sentinel_kwargs"]["password"] == "quiet"
    assert options["sentinel_kwargs"]["socket_timeout"] == options["socket_timeout"]


def test_a_client_behind_sentinels_uses_the_database_and_the_password_of_its_address() -> None:
    with redis_client("sentinel://:hu%40sh@w1:1/3?master=points", timeout_s=1) as client:
        options = client.connection_pool.connection_kwargs
    assert (options["db"], options["password"]) == (3, "hu@sh")


def test_sentinels_without_a_password_get_none() -> None:
    found = Sentinels.of("sentinel://w1,w2/?master=points")
    assert (found.password, found.sentinel_password, found.db) == (None, None, 0)
    assert found.urls() == ["sentinel://w1:26379/0", "sentinel://w2:26379/0"]


def test_a_rabbitmq_that_accepts_and_never_answers_holds_nobody_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        done = subprocess.run(
            [sys.executable, "-c", _SUBMIT],
            env={**os.environ, "POINTS_BROKER_URL": f"amqp://points:hush@127.0.0.1:{port}/"},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
    assert done.returncode == 0, done.stderr
    assert "hush" not in done.stderr
    # Twice its limit, because it is tried twice; without a limit this would not end.
    assert float(done.stdout) < 15
