"""What is counted and told: of requests, of rounds of a drain, and of what is there."""

from collections.abc import MutableMapping
from functools import lru_cache
from types import SimpleNamespace
from typing import Any

import pytest
from celery import Celery
from fakeredis import FakeRedis, FakeServer
from flask.testing import FlaskClient
from prometheus_client.core import CollectorRegistry

from app.ledger.issue import Outcome
from app.ledger.report import counts_of, report
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
def test_a_histogram_counts_in_buckets(redis: FakeRedis, values: list[int], buckets: dict[str, int]) -> None:
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


def test_the_page_leaves_out_what_is_away(client: FlaskClient, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_only_what_was_noted_is_shown(redis: FakeRedis, monkeypatch: pytest.MonkeyPatch) -> None:
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


_PAID = Outcome(id=1, sandbox=False, recipients=3, debited_count=3, debited_amount=30, is_late=False)


_PARTLY = Outcome(id=2, sandbox=False, recipients=5, debited_count=2, debited_amount=14, is_late=False)


_SANDBOX = Outcome(id=3, sandbox=True, recipients=4, debited_count=1, debited_amount=9, is_late=False)


_REFUSED = Outcome(id=4, sandbox=True, recipients=2, debited_count=None, debited_amount=None, is_late=False)


def test_each_batch_recipient_and_point_is_counted_under_its_mode_and_its_end() -> None:
    counts = counts_of([_PAID, _PARTLY, _SANDBOX, _REFUSED], seconds=0.02)
    families = ("points_final_batches", "points_recipients", "points_issued_points", "points_drains")
    assert {field: count for field, count in counts.items() if field.split("|")[0] in families} == {
        "points_drains|done": 1,
        "points_final_batches|live|issued": 2,
        "points_final_batches|sandbox|issued": 1,
        "points_final_batches|sandbox|refused": 1,
        "points_recipients|live|true": 5,
        "points_recipients|live|false": 3,
        "points_recipients|sandbox|true": 1,
        "points_recipients|sandbox|false": 3,
        "points_issued_points|live": 44,
        "points_issued_points|sandbox": 9,
    }
    assert (counts["points_drain_batches|sum"], counts["points_drain_recipients|sum"]) == (4, 14)
    assert (counts["points_issue_seconds|0.025"], counts["points_issue_seconds|sum"]) == (1, 0.02)


def test_a_round_that_found_nothing_to_issue_is_not_counted() -> None:
    assert counts_of([], seconds=0.02) == {}


def test_one_line_names_every_batch_of_a_round(events: list[MutableMapping[str, Any]]) -> None:
    report(7, [_PAID, _PARTLY, _SANDBOX, _REFUSED], seconds=0.0212345678)
    [line] = events
    assert (line["event"], line["organization_id"], line["batch_ids"]) == ("drained", 7, [1, 2, 3, 4])
    assert (line["refused"], line["recipients"], line["points"], line["seconds"]) == (1, 14, 53, 0.021235)
