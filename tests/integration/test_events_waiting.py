"""Calls that wait for an event: how many of one process may."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from flask import Flask

from app.events import event_types, log
from app.postgres.database import transaction
from tests.deadline import until
from tests.integration import books
from tests.integration.logs_of_events import number_all

pytestmark = pytest.mark.usefixtures("many_connections", "broker")


def test_of_a_process_eight_calls_wait_and_the_others_are_answered_at_once(app: Flask) -> None:
    organization_ids = [books.make_organization() for _ in range(10)]
    keys = list(map(books.make_live_key, organization_ids))

    def told(key: str) -> int:
        headers = {"Authorization": f"Bearer {key}"}
        answer = app.test_client().get("/v1/events?wait=20&types=ping", headers=headers)
        assert answer.status_code == 200
        return len(answer.get_json()["data"]["events"])

    with ThreadPoolExecutor(len(keys)) as threads:
        calls = [threads.submit(told, key) for key in keys]
        until(lambda: sum(call.done() for call in calls) == len(keys) - 8, "the others are answered")
        with transaction() as connection:
            for organization_id in organization_ids:
                log.write(connection, event_types.PING, organization_id, sandbox=False, data={"webhook": {"id": 7}})
        number_all()
        assert sorted(call.result() for call in calls) == [0, 0, *[1] * 8]
