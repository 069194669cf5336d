"""The dashboard and the alert rules speak of metrics, and of labels, that the running service shows."""

import json
import re
import shutil
import subprocess
import uuid
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from tests.deadline import until
from tests.service.inside import Service

FOLDER = Path(__file__).parents[2] / "docs" / "monitoring"
DASHBOARD = FOLDER / "grafana" / "dashboards" / "points.json"

_NAME = re.compile(r"\bpoints_\w+")
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
    }
    until(lambda: comes_late <= look().keys(), within_s=30)
    return look()


def test_there_are_alerts_and_panels() -> None:
    assert len([*_expressions_of_alerts()]) > 10
    assert len([*_expressions_of_dashboard()]) > 20


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_an_expression_speaks_of_what_is_there(shown: dict[str, set[str]], expression: str) -> None:
    assert set(_NAME.findall(expression)) <= shown.keys()
    for name, matchers in _SELECTOR.findall(expression):
        assert set(re.findall(r"(\w+)[=!]", matchers)) <= shown[name]
    for labels, name in _GROUPING.findall(expression):
        assert set(re.split(r",\s*", labels)) <= shown[name] | {"instance"}


def test_every_metric_is_in_the_dashboard_or_in_an_alert_or_in_neither_for_a_reason(
    shown: dict[str, set[str]],
) -> None:
    spoken_of = {name for expression in EXPRESSIONS for name in _NAME.findall(expression)}
    base = {re.sub(r"_(total|bucket|sum|count)$", "", name) for name in spoken_of}
    silent = {re.sub(r"_(total|bucket|sum|count)$", "", name) for name in shown if name.startswith("points_")} - base
    # How often an audit ran, and what the last one took, only explains what the others show.
    assert silent == {"points_audits", "points_audit_seconds"}


@pytest.fixture
def promtool() -> str:
    """Return Prometheus' own checker; without it the test is skipped."""
    path = shutil.which("promtool")
    if path is None:
        pytest.skip("promtool is not installed, so Prometheus was not asked (Debian: apt-get install prometheus)")
    return path


def test_prometheus_reads_its_files(promtool: str) -> None:
    subprocess.run([promtool, "check", "config", FOLDER / "prometheus.yml"], check=True)


@pytest.mark.parametrize(
    ("labels", "before"), [({}, ""), ({"points_docs": "https://wiki.example.com/"}, "https://wiki.example.com/")]
)
def test_an_alert_leads_to_its_heading_by_a_link_where_the_label_is_set(
    promtool: str, tmp_path: Path, labels: dict[str, str], before: str
) -> None:
    annotations = {
        "summary": "The last audit found 2 breaches. Run `points audit`, which names each.",
        "runbook_url": f"{before}docs/operating.md#the-audit-is-red",
    }
    alert = {"exp_labels": {"severity": "page"}, "exp_annotations": annotations}
    expected = {"eval_time": "1m", "alertname": "PointsBooksDoNotBalance", "exp_alerts": [alert]}
    series = {"series": "points_audit_breaches", "values": "2x9"}
    test = {"external_labels": labels, "input_series": [series], "alert_rule_test": [expected]}
    file = tmp_path / "alerts.test.yml"
    file.write_text(yaml.safe_dump({"rule_files": [str(FOLDER / "alerts.yml")], "tests": [test]}))
    done = subprocess.run([promtool, "test", "rules", file], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
