"""The web processes of one gunicorn ask for an organization's drain with one message, whichever has its sends."""

import time
from collections.abc import Sequence
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

_CALLERS = 8
# A message is relied on for a second; what is lost is asked for again.
_SURELY_BEFORE_THAT_S = 0.8
_ALL_ASKED_AGAIN_S = 2.5


def test_sends_that_come_to_several_processes_are_asked_for_with_one_message(tmp_path: Path) -> None:
    """No worker takes the messages, so that all of them can be counted."""
    with deployment(tmp_path, WEB_CONCURRENCY="2", POINTS_WAIT_S="0") as parts, ExitStack() as opened:
        port = ports.any_free()
        parts.web(port)
        url = f"http://{ports.HOST}:{port}"
        callers = [opened.enter_context(httpx.Client(base_url=url)) for _ in range(_CALLERS)]
        send_once(callers)  # Now half of them are connected with each process, and it soon hears the hints.
        messages = process_redis.redis()
        for _ in range(20):
            time.sleep(_ALL_ASKED_AGAIN_S)  # So that no message for earlier sends is counted.
            before, began = messages.llen(QUEUE), time.monotonic()
            send_once(callers)
            after = messages.llen(QUEUE)
            if time.monotonic() - began < _SURELY_BEFORE_THAT_S:
                assert after == before + 1
                return
        pytest.fail("the machine is too slow to tell")


def send_once(callers: Sequence[httpx.Client]) -> None:
    """Let each caller send for one organization, which nobody has sent for before."""
    key = books.make_live_key(books.make_organization(10**6))
    body = {"recipient": "a@example.com", "amount": 1}
    for caller in callers:
        sent = caller.post("/v1/points/send", json=body, headers={"Authorization": f"Bearer {key}"})
        assert sent.status_code == 202
