"""The messages that wait in the broker, for the people who watch."""

import pytest
from celery import Celery

from app.messaging import jobs, queue_state
from app.metrics import state


@pytest.mark.usefixtures("broker")
def test_the_messages_that_no_worker_has_taken_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    with Celery(set_as_current=False) as app:  # The service's own keeps the broker that it was first used with.
        app.add_defaults(jobs._configuration)
        for module in (jobs, queue_state):
            monkeypatch.setattr(module, "celery", app)
        assert queue_state.messages_waiting() == 0
        assert jobs.submit(1)
        assert queue_state.messages_waiting() == 1
        assert [(metric.name, metric.samples[0].value) for metric in state.broker()] == [("points_broker_messages", 1)]


@pytest.mark.usefixtures("broker")
def test_a_broker_that_goes_while_it_is_asked_is_out_of_reach(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(*_: object) -> int:
        raise ConnectionResetError

    monkeypatch.setattr(queue_state, "_waiting_in", gone)
    with Celery(set_as_current=False) as app:
        app.add_defaults(jobs._configuration)
        for module in (jobs, queue_state):
            monkeypatch.setattr(module, "celery", app)
        assert queue_state.messages_waiting() is None
