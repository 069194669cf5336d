"""What workers count, by way of Redis, and the page when a server is away."""

from functools import lru_cache
from types import SimpleNamespace
from typing import Any

import pytest
from celery import Celery
from fakeredis import FakeRedis, FakeServer
from flask.testing import FlaskClient
from prometheus_client.core import CollectorRegistry

from app.messaging import jobs, last_runs, process_redis, queue_state
from app.messaging.worker_counters import DRAIN_BATCHES, DRAINS, FAMILIES, POINTS, SWEEPS, count
from app.metrics import state
from app.metrics.page import Page, page
from app.metrics.work import work


@pytest.fixture
def redis(monkeypatch: pytest.MonkeyPatch) -> FakeRedis:
    """Give the module a Redis of its own."""
    client = FakeRedis(server=FakeServer(), decode_responses=True)
    monkeypatch.setattr(process_redis, "redis", lru_cache(lambda: client))
    return client


def sample(client: Any, name: str, **labels: str) -> float | None:
    class Read:
        def collect(self) -> Any:
            return work(client)

    registry = CollectorRegistry()
    registry.register(Read())
    return registry.get_sample_value(name, labels)


def test_what_many_rounds_count_is_added_up(redis: FakeRedis) -> None:
    for amount in (3, 4):
        count({POINTS.field("live"): amount, SWEEPS.field(): 1})
    assert sample(redis, "points_issued_points_total", mode="live") == 7
    assert sample(redis, "points_sweeps_total") == 2


@pytest.mark.parametrize(
    ("values", "buckets"),
    [
        ([1], {"1.0": 1, "2.0": 1, "200.0": 1, "+Inf": 1}),
        ([2, 3, 1_000], {"1.0": 0, "2.0": 1, "5.0": 2, "200.0": 2, "+Inf": 3}),
    ],
)
def test_a_histogram_puts_a_value_into_every_bucket_from_its_own_on(
    redis: FakeRedis, values: list[int], buckets: dict[str, int]
) -> None:
    for value in values:
        count(DRAIN_BATCHES.observed(value))
    assert {le: sample(redis, "points_drain_batches_bucket", le=le) for le in buckets} == buckets
    assert sample(redis, "points_drain_batches_sum") == sum(values)
    assert sample(redis, "points_drain_batches_count") == len(values)


def test_what_an_alert_waits_for_is_zero_before_it_happens(redis: FakeRedis) -> None:
    for family, outcomes in {
        "drains": ("done", "failed"),
        "audits": ("balanced", "not_balanced", "not_finished"),
    }.items():
        shown = {outcome: sample(redis, f"points_{family}_total", outcome=outcome) for outcome in outcomes}
        assert shown == dict.fromkeys(outcomes, 0)
    assert sample(redis, "points_postponed_batches_total") == 0


def test_no_two_families_share_a_name_and_no_bucket_is_out_of_order() -> None:
    assert len({family.name for family in FAMILIES}) == len(FAMILIES)
    for family in FAMILIES:
        assert list(family.buckets) == sorted(family.buckets)
    assert DRAINS.known


def test_the_page_is_200_without_the_figures_of_what_is_away(
    client: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, "_text", None)
    client.get("/healthz")
    # The service's own keeps the broker that it was first used with.
    with Celery(set_as_current=False, amqp=jobs._Protocol) as app:
        app.add_defaults(jobs._configuration)
        monkeypatch.setattr(queue_state, "celery", app)
        response = client.get("/metrics")  # PostgreSQL, Redis and the broker are out of reach.
    assert response.status_code == 200
    assert "points_requests_total{" in response.text
    for name in ("points_queued_batches", "points_sweeps_total", "points_broker_messages", "points_audit_breaches"):
        assert name not in response.text


def test_a_page_is_kept_for_a_second_and_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    pages, moments = iter((b"first", b"second")), iter((100.0, 100.9, 101.1, 101.1))
    monkeypatch.setattr("app.metrics.page._generate", lambda: next(pages))
    monkeypatch.setattr("app.metrics.page.time", SimpleNamespace(monotonic=lambda: next(moments)))
    asked = Page()
    assert [asked.text() for _ in range(3)] == [b"first", b"first", b"second"]


def test_what_nobody_has_noted_is_absent_and_what_was_noted_is_there(
    redis: FakeRedis, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert list(state.notes(redis)) == []
    monkeypatch.setattr("time.time", lambda: 1_000.0)
    last_runs.note_sweep({SWEEPS.field(): 1})
    last_runs.note_audit(seconds=1.5, breaches=2)
    assert {metric.name: metric.samples[0].value for metric in state.notes(redis)} == {
        "points_last_sweep_timestamp_seconds": 1_000.0,
        "points_last_audit_timestamp_seconds": 1_000.0,
        "points_audit_seconds": 1.5,
        "points_audit_breaches": 2,
    }
