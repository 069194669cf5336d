"""The alerts: each fires for its own cause at its time and not before, leads to a runbook, and leaves Prometheus."""

import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.unit.deployment.files import ROOT, sections

_FOLDER = ROOT / "docs" / "monitoring"
_RULES = [rule for group in yaml.safe_load((_FOLDER / "alerts.yml").read_text())["groups"] for rule in group["rules"]]
_EVERY_S = 60
_LATER_S = 7_260  # The longest that an alert waits.

# All is just well: each figure at the limit that it may reach, and its rise a minute.
_WELL = {
    'up{job="points", instance="web:8000"}': "1+0",
    'points_requests_total{status="200"}': "0+990",
    'points_requests_total{status="500"}': "0+10",
    'points_send_wait_seconds_count{status="202"}': "7+0",
    "points_oldest_queued_seconds": "30+0",
    "points_oldest_overdue_seconds": "10+0",
    "points_oldest_unnumbered_seconds": "10+0",
    "points_oldest_snapshot_seconds": "300+0",
    "points_partitions_ahead": "4+0",
    "points_queued_batches": "0+0",
    "points_sweeps_total": "0+60",
    "points_last_sweep_timestamp_seconds": "-30+60",
    'points_drains_total{outcome="failed"}': "7+0",
    "points_postponed_batches_total": "7+0",
    "points_swept_batches_total": "0+6",
    'points_webhook_lag_seconds{status="enabled"}': "120+0",
    'points_webhook_lag_seconds{status="failing"}': "999999+0",
    'points_webhooks{status="failing"}': "0+0",
    'points_mails_total{outcome="failed"}': "0+1",
    'points_mails_total{outcome="sent"}': "0+1",
    "points_audit_breaches": "0+0",
    "points_last_audit_timestamp_seconds": "-86400+60",
    "points_standby_up": "1+0",
    "points_standby_lag_seconds": "60+0",
    'points_database_connections{instance="web:8000", which="in_use"}': "18+0",
    'points_database_connections{instance="web:8000", which="allowed"}': "20+0",
    "points_last_beat_timestamp_seconds": "-300+60",
    'up{job="points-flower", instance="flower:5555"}': "1+0",
    'probe_success{job="points-tls"}': "1+0",
    'probe_ssl_earliest_cert_expiry{job="points-tls"}': "1209600+60",
    'node_filesystem_avail_bytes{job="points-host", mountpoint="/"}': "10+0",
    'node_filesystem_size_bytes{job="points-host", mountpoint="/"}': "100+0",
    "points_archive_failing": "0+0",
    "points_slot_retained_bytes": "10000000000+0",
    "points_transaction_id_age": "1000000000+0",
}


def _without(*begin: str) -> dict[str, None]:
    """Return the series that begin so, as gone."""
    return {series: None for series in _WELL if series.startswith(begin)}


_NO_WEB = _without("points_")
_NO_REDIS = _without(
    *("points_sweeps", "points_last", "points_drains", "points_postponed", "points_swept", "points_mails"),
    "points_audit",
)
_NO_POSTGRESQL = _without(
    *("points_queued", "points_oldest", "points_partitions", "points_webhook", "points_standby"),
    *("points_archive", "points_slot", "points_transaction"),
)

# An alert, after how many seconds it fires, and what is then otherwise than well. No other alert fires; also not later,
# while figures are absent.
_CASES: list[tuple[str, int, Mapping[str, str | None]]] = [
    ("PointsWebDown", 60, {'up{job="points", instance="web:8000"}': "0+0", **_NO_WEB}),
    ("PointsWebDown", 60, dict.fromkeys(_WELL)),
    ("PointsErrors", 360, {'points_requests_total{status="500"}': "0+11"}),
    ("PointsSendsAnswered202", 360, {'points_send_wait_seconds_count{status="202"}': "0+1"}),
    ("PointsQueueStands", 60, {"points_oldest_queued_seconds": "31+0"}),
    ("PointsScheduleOverdue", 60, {"points_oldest_overdue_seconds": "11+0"}),
    ("PointsEventsUnnumbered", 60, {"points_oldest_unnumbered_seconds": "11+0"}),
    ("PointsSnapshotHeld", 900, {"points_oldest_snapshot_seconds": "301+0"}),
    ("PointsFewPartitions", 300, {"points_partitions_ahead": "3+0"}),
    ("PointsQueueUnknown", 120, _NO_POSTGRESQL),
    ("PointsRedisAway", 120, _NO_REDIS),
    ("PointsNoSweep", 60, {"points_last_sweep_timestamp_seconds": "-31+60"}),
    ("PointsDrainsFail", 60, {'points_drains_total{outcome="failed"}': "7+1"}),
    ("PointsBatchPostponed", 60, {"points_postponed_batches_total": "7+1"}),
    ("PointsMessagesLost", 660, {"points_swept_batches_total": "1000+100"}),
    ("PointsWebhookBehind", 300, {'points_webhook_lag_seconds{status="enabled"}': "121+0"}),
    ("PointsWebhooksFail", 3600, {'points_webhooks{status="failing"}': "1+0"}),
    ("PointsMailFails", 3660, {'points_mails_total{outcome="sent"}': "7+0"}),
    ("PointsBooksDoNotBalance", 0, {"points_audit_breaches": "1+0"}),
    ("PointsAuditStale", 7200, {"points_last_audit_timestamp_seconds": "-86401+60"}),
    ("PointsAuditStale", 7200, {"points_last_audit_timestamp_seconds": None}),
    ("PointsStandbyBehind", 600, {"points_standby_up": "0+0", "points_standby_lag_seconds": None}),
    ("PointsStandbyBehind", 600, {"points_standby_lag_seconds": "61+0"}),
    (
        "PointsConnectionsUsedUp",
        300,
        {'points_database_connections{instance="web:8000", which="in_use"}': "19+0"},
    ),
    ("PointsBeatStands", 600, {"points_last_beat_timestamp_seconds": "-301+60"}),
    ("PointsBeatStands", 600, {"points_last_beat_timestamp_seconds": None}),
    ("PointsTargetDown", 600, {'up{job="points-flower", instance="flower:5555"}': "0+0"}),
    ("PointsNotReached", 120, {'probe_success{job="points-tls"}': "0+0"}),
    ("PointsCertificateEnds", 3600, {'probe_ssl_earliest_cert_expiry{job="points-tls"}': "1209599+60"}),
    ("PointsDiskFull", 300, {'node_filesystem_avail_bytes{job="points-host", mountpoint="/"}': "9+0"}),
    ("PointsDiskFills", 3660, {'node_filesystem_avail_bytes{job="points-host", mountpoint="/"}': "40-0.01"}),
    ("PointsArchiveFails", 600, {"points_archive_failing": "1+0"}),
    ("PointsSlotHoldsLog", 300, {"points_slot_retained_bytes": "10000000001+0"}),
    ("PointsTransactionIdsAge", 3600, {"points_transaction_id_age": "1000000001+0"}),
]


def _firing(at_s: int, alerts: list[str]) -> dict[str, Any]:
    return {
        "expr": 'count by (alertname) (ALERTS{alertstate="firing"})',
        "eval_time": f"{at_s}s",
        "exp_samples": [{"labels": f'{{alertname="{alert}"}}', "value": 1} for alert in alerts],
    }


def _case(alert: str, fires_at_s: int, otherwise: Mapping[str, str | None]) -> dict[str, Any]:
    series = {**_WELL, **otherwise}
    before = [_firing(fires_at_s - _EVERY_S, [])] if fires_at_s else []
    last_s = _LATER_S if None in otherwise.values() else fires_at_s
    return {
        "name": f"{alert} after {fires_at_s} s: {otherwise}",
        "interval": f"{_EVERY_S}s",
        "input_series": [
            {"series": name, "values": f"{values}x{last_s // _EVERY_S}"} for name, values in series.items() if values
        ],
        "promql_expr_test": [*before, _firing(fires_at_s, [alert]), _firing(last_s, [alert])],
    }


def _accepts(program: str, *words: str | Path) -> None:
    found = shutil.which(program)
    if found is None:
        pytest.skip(f"{program} is not installed")
    finished = subprocess.run([found, *words], capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stdout + finished.stderr


def test_each_alert_fires_for_its_own_cause_at_its_time_and_not_before(tmp_path: Path) -> None:
    assert {alert for alert, _, _ in _CASES} == {rule["alert"] for rule in _RULES}
    tests = {
        "rule_files": [str(_FOLDER / "alerts.yml")],
        "evaluation_interval": f"{_EVERY_S}s",
        "tests": [_case(*case) for case in _CASES],
    }
    (tmp_path / "alerts_test.yml").write_text(yaml.safe_dump(tests))
    _accepts("promtool", "test", "rules", tmp_path / "alerts_test.yml")


def test_prometheus_and_alertmanager_take_what_is_here_and_every_severity_has_its_receiver() -> None:
    _accepts("promtool", "check", "config", _FOLDER / "prometheus.yml")
    _accepts("amtool", "check-config", _FOLDER / "alertmanager.yml")
    for severity in ("page", "ticket"):
        _accepts(
            *("amtool", "config", "routes", "test", f"--config.file={_FOLDER / 'alertmanager.yml'}"),
            *(f"--verify.receivers={severity}", f"severity={severity}"),
        )
    assert {rule["labels"]["severity"] for rule in _RULES} == {"page", "ticket"}


@pytest.mark.parametrize("rule", _RULES, ids=lambda rule: rule["alert"])
def test_an_alert_leads_to_a_runbook_that_begins_with_the_command_that_shows_the_cause(rule: dict[str, Any]) -> None:
    runbooks = {
        re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-"): text
        for heading, text in sections("operating.md").items()
    }
    page, _, anchor = rule["annotations"]["runbook_url"].partition("#")
    assert page == "{{ $externalLabels.points_docs }}docs/operating.md"
    assert runbooks[anchor].startswith("\n```console\n$ ")
