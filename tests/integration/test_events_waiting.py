"""Calls that wait for an event: how many of one process may."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from app.web.application import create_app
from tests.integration import books

pytestmark = pytest.mark.usefixtures("database", "broker")

# Far apart: a machine that is busy elsewhere makes even an answer at once take a while.
_WAIT_S = 8
_AT_ONCE_S = 6


@pytest.mark.alone
def test_of_a_process_eight_calls_wait_and_the_others_are_answered_at_once() -> None:
    app = create_app()
    keys = [books.make_live_key(books.make_organization()) for _ in range(10)]

    def waited_s(key: str) -> float:
        began = time.monotonic()
        answer = app.test_client().get(
            f"/v1/events?wait={_WAIT_S}&types=ping", headers={"Authorization": f"Bearer {key}"}
        )
        assert (answer.status_code, answer.get_json()["data"]["events"]) == (200, [])
        return time.monotonic() - began

    with ThreadPoolExecutor(len(keys)) as threads:
        waits = list(threads.map(waited_s, keys))
    assert sum(seconds < _AT_ONCE_S for seconds in waits) == len(keys) - 8
