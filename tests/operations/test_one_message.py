"""The web processes of a machine ask for an organization's drain with one message, whichever has its sends."""

import time
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from app import process_redis
from app.local import ports
from app.queue import QUEUE
from tests.integration import books
from tests.operations.deployment import deployment

pytestmark = pytest.mark.usefixtures("broker", "database")

_PROCESSES = 2
_CALLERS = 8
# A message is relied on for a second; what is lost is asked for again.
_SURELY_BEFORE_THAT_S = 0.8


def test_sends_that_come_to_several_processes_are_asked_for_with_one_message(tmp_path: Path) -> None:
    """No worker takes the messages, so that all of them can be counted."""
    with deployment(tmp_path, WEB_CONCURRENCY=str(_PROCESSES), POINTS_WAIT_S="0") as parts, ExitStack() as opened:
        port = ports.any_free()
        parts.web(port)
        url = f"http://{ports.HOST}:{port}"
        callers = [opened.enter_context(httpx.Client(base_url=url)) for _ in range(_CALLERS)]
        for caller in callers:  # Now they are connected, half of them with each process.
            assert caller.get("/healthz").status_code == 200
        messages = process_redis.redis()
        for _ in range(20):
            before, began = messages.llen(QUEUE), time.monotonic()
            key = books.make_live_key(books.make_organization(10**6))
            for caller in callers:
                body = {"recipient": "a@example.com", "amount": 1}
                sent = caller.post("/v1/points/send", json=body, headers={"Authorization": f"Bearer {key}"})
                assert sent.status_code == 202
            after = messages.llen(QUEUE)
            if time.monotonic() - began < _SURELY_BEFORE_THAT_S:
                assert after == before + 1
                return
        pytest.fail("the machine is too slow to tell")
