"""What the page of metrics shows before anything has happened, and what it leaves out."""

import pytest
from celery import Celery
from fakeredis import FakeRedis, FakeServer
from flask.testing import FlaskClient

from app.messaging import jobs
from app.metrics.page import page, work


def test_what_an_alert_waits_for_is_zero_before_it_happens() -> None:
    with FakeRedis(server=FakeServer(), decode_responses=True) as redis:
        samples = [sample for metric in work(redis) for sample in metric.samples]
    shown = {(sample.name, sample.labels.get("outcome")): sample.value for sample in samples}
    assert [shown["points_drains_total", outcome] for outcome in ("done", "failed")] == [0, 0]
    for outcome in ("balanced", "not_balanced", "not_finished"):
        assert shown["points_audits_total", outcome] == 0
    assert shown["points_postponed_batches_total", None] == 0


def test_the_page_leaves_out_what_is_away(client: FlaskClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "_text", None)
    client.get("/healthz")
    # The service's own keeps the broker that it was first used with.
    with Celery(set_as_current=False, amqp=jobs._Protocol) as app:
        app.add_defaults(jobs._configuration)
        monkeypatch.setattr(jobs, "celery", app)
        response = client.get("/metrics")  # PostgreSQL, Redis and the broker are out of reach.
    assert response.status_code == 200
    assert "points_requests_total{" in response.text
    for name in ("points_queued_batches", "points_sweeps_total", "points_broker_messages", "points_audit_breaches"):
        assert name not in response.text
