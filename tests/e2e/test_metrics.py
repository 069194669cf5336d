"""GET /metrics of the running service, and the dashboard and alerts that speak of it."""

import json
import re
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from tests.deadline import until
from tests.service.inside import Service


def figures(service: Service) -> dict[tuple[str, ...], float]:
    """Return every sample of the page: its name and the values of its labels, by the labels' names."""
    answer = service.call("GET", "/metrics")
    assert answer.status_code == 200
    assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    return {
        (sample.name, *(value for _, value in sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


def settled(service: Service) -> dict[tuple[str, ...], float]:
    """Return the figures once they hold all that was done so far: when two looks, some time apart, agree."""
    looks = [_of_callers(figures(service))]

    def agree() -> bool:
        looks.append(_of_callers(figures(service)))
        return looks[-1] == looks[-2]

    # A page is kept for a second.
    time.sleep(1.5)
    until(agree, every_s=1.5)
    return looks[-1]


def _of_callers(found: dict[tuple[str, ...], float]) -> dict[tuple[str, ...], float]:
    """Leave out what moves without anybody sending anything."""
    unrelated = (
        *("points_sweeps", "points_last_sweep", "points_last_beat", "points_database", "points_broker"),
        *("points_archive", "points_slot", "points_transaction_id"),
        *("points_webhook", "points_unnumbered", "points_oldest_unnumbered"),
    )
    return {
        name: value for name, value in found.items() if not name[0].startswith(unrelated) and "/metrics" not in name
    }


def page_where(service: Service, holds: Callable[[dict[tuple[str, ...], float]], bool]) -> dict[tuple[str, ...], float]:
    """Return the figures of a page for which something holds; the next may be another process's, and a second old."""
    pages: list[dict[tuple[str, ...], float]] = []

    def look() -> bool:
        pages.append(figures(service))
        return holds(pages[-1])

    until(look)
    return pages[-1]


def rise(service: Service, before: dict[tuple[str, ...], float], *name: str) -> float:
    return figures(service).get(name, 0) - before.get(name, 0)


def test_every_request_is_counted_once_whichever_process_answered(narrow: Service) -> None:
    caller = narrow.organization(100)
    before = settled(narrow)
    for _ in range(20):  # A connection each, so that more than one process has its share.
        narrow.call("GET", "/v1/organization", key=caller.live)
    route = ("GET", "/v1/organization")
    answered, counted = ("points_requests_total", *route, "200"), ("points_request_seconds_count", *route)
    page = page_where(
        narrow, lambda page: all(page.get(name, 0) - before.get(name, 0) >= 20 for name in (answered, counted))
    )
    assert [page[name] - before.get(name, 0) for name in (answered, counted)] == [20, 20]
    total = ("points_request_seconds_sum", *route)
    assert page[total] > before.get(total, 0)


def test_a_send_is_counted_by_web_and_worker_in_each_mode(narrow: Service) -> None:
    caller = narrow.organization(50)
    before = settled(narrow)
    addresses = [f"{uuid.uuid4().hex}@example.com" for _ in range(3)]
    for key in (caller.live, caller.development):
        assert narrow.send(key, {"recipients": addresses, "amount": 20}).status_code == 201
    for name, expected in {
        ("points_issued_points_total", "live"): 40,
        ("points_issued_points_total", "sandbox"): 60,
        ("points_recipients_total", "true", "live"): 2,
        ("points_recipients_total", "false", "live"): 1,
        ("points_recipients_total", "true", "sandbox"): 3,
        ("points_final_batches_total", "live", "issued"): 1,
        ("points_final_batches_total", "sandbox", "issued"): 1,
        ("points_drain_batches_sum",): 2,
        ("points_drain_recipients_sum",): 6,
        ("points_drains_total", "done"): 2,
        ("points_issue_seconds_count",): 2,
        ("points_send_wait_seconds_count", "201"): 2,
        ("points_requests_total", "POST", "/v1/points/send", "201"): 2,
    }.items():
        until(lambda name=name, expected=expected: rise(narrow, before, *name) == expected)


def test_a_path_or_method_that_a_caller_makes_up_adds_no_series(narrow: Service) -> None:
    narrow.call("GET", "/v1/organization/none@example.com")
    narrow.call("BREW", "/v1/points/send")
    before = settled(narrow)
    for n in range(5):
        narrow.call("GET", f"/nowhere/{n}")
        narrow.call(f"BREW{n}", "/v1/points/send")
    until(lambda: rise(narrow, before, "points_requests_total", "other", "no route", "404") == 5)
    until(lambda: rise(narrow, before, "points_requests_total", "other", "no route", "405") == 5)
    added = {name for name in figures(narrow).keys() - before.keys() if "nowhere" in str(name) or "BREW" in str(name)}
    assert added == set()


def test_the_queue_the_sweeps_and_the_last_audit_can_be_read(narrow: Service) -> None:
    narrow.command("audit")
    found = page_where(narrow, lambda page: ("points_last_audit_timestamp_seconds",) in page)
    assert found["points_audit_breaches",] == 0
    assert found["points_last_sweep_timestamp_seconds",] > 0
    assert found["points_queued_batches",] >= 0
    assert found["points_oldest_queued_seconds",] >= 0
    assert found["points_broker_messages",] >= 0
    assert found["points_database_connections", "allowed"] == 20  # Two processes of ten each.


FOLDER = Path(__file__).parents[2] / "docs" / "monitoring"
DASHBOARD = FOLDER / "grafana" / "dashboards" / "points.json"
_NAME = re.compile(r"\bpoints_\w+")

# A service without a standby does not show them; tests/operations/test_standby.py sees them.
_OF_A_STANDBY = {"points_standby_up", "points_standby_lag_seconds"}
_SELECTOR = re.compile(r"(points_\w+)\{([^}]*)\}")
_GROUPING = re.compile(r"by \(([^)]*)\) \((?:rate\()?(points_\w+)")


def _expressions_of_alerts() -> Iterator[str]:
    for group in yaml.safe_load((FOLDER / "alerts.yml").read_text())["groups"]:
        for rule in group["rules"]:
            yield rule["expr"]


def _expressions_of_dashboard() -> Iterator[str]:
    for panel in json.loads(DASHBOARD.read_text())["panels"]:
        for target in panel.get("targets", ()):
            yield target["expr"]


EXPRESSIONS = [*_expressions_of_alerts(), *_expressions_of_dashboard()]


@pytest.fixture(scope="module")
def shown(service: Service) -> dict[str, set[str]]:
    """Return the names of all samples that a service shows which has done a little of everything, with their labels."""
    caller = service.organization(10)
    body = {"recipient": f"{uuid.uuid4().hex}@example.com", "amount": 1}
    assert service.verify(caller.live, body).status_code == 200
    sent = service.send(caller.live, body)
    assert sent.status_code == 201
    back = {"batch": sent.json()["additional_data"]["batch_id"], "reason": "a test"}
    assert service.call("POST", "/v1/points/reverse", key=caller.live, json=back).status_code == 201
    service.command("audit")

    def look() -> dict[str, set[str]]:
        found: defaultdict[str, set[str]] = defaultdict(set)
        for family in text_string_to_metric_families(service.call("GET", "/metrics").text):
            for sample in family.samples:
                found[sample.name] |= sample.labels.keys()
        return found

    comes_late = {
        "points_issued_points_total",
        "points_reversed_points_total",
        "points_audit_breaches",
        "points_last_sweep_timestamp_seconds",
        "points_last_beat_timestamp_seconds",
    }
    until(lambda: comes_late <= look().keys())
    return look()


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_an_expression_speaks_of_what_is_there(shown: dict[str, set[str]], expression: str) -> None:
    assert set(_NAME.findall(expression)) <= shown.keys() | _OF_A_STANDBY
    for name, matchers in _SELECTOR.findall(expression):
        assert set(re.findall(r"(\w+)[=!]", matchers)) <= shown[name]
    for labels, name in _GROUPING.findall(expression):
        assert set(re.split(r",\s*", labels)) <= shown[name] | {"instance"}


def test_every_metric_is_in_the_dashboard_or_an_alert_or_left_out_on_purpose(shown: dict[str, set[str]]) -> None:
    spoken_of = {name for expression in EXPRESSIONS for name in _NAME.findall(expression)}
    base = {re.sub(r"_(total|bucket|sum|count)$", "", name) for name in spoken_of}
    silent = {re.sub(r"_(total|bucket|sum|count)$", "", name) for name in shown if name.startswith("points_")} - base
    # How often an audit ran, and what the last one took, only explains what the others show.
    assert silent == {"points_audits", "points_audit_seconds"}
