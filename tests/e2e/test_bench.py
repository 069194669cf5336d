"""The bench's load generator against a running service, and the bench itself, run as `make bench` does."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.load import Plan, get, load, post_send
from benchmarks.options import NotMeasured
from tests.e2e.conftest import Service


def test_callers_see_as_many_answers_as_the_service_gave(service: Service) -> None:
    organization = service.organization(1_000_000)
    send = Plan(port=service.port, requests=[post_send(organization.live, ["ann@example.com"])], callers=4)
    view = Plan(port=service.port, requests=[get("/healthz")], callers=1, expect=200)
    sends, views = load(send, view, seconds=0.5)
    issued = 1_000_000 - service.balance(organization.live)
    # Each of the four callers had one more send under way when the time was up.
    assert 1 <= sends.calls <= sends.calls_in_all <= issued <= sends.calls_in_all + 4
    assert views.calls >= 1
    assert list(sends.latencies_s) == sorted(sends.latencies_s)
    assert sends.cpu_s > 0


def test_a_load_that_is_refused_measures_nothing(service: Service) -> None:
    with pytest.raises(NotMeasured, match="401"):
        load(Plan(port=service.port, requests=[post_send("pts_live_no", ["ann@example.com"])], callers=1), seconds=0.1)


def test_the_bench_measures_a_section_and_keeps_its_figures(tmp_path: Path) -> None:
    output = tmp_path / "results.json"
    options = ["--only", "floor", "--rounds", "1", "--output", str(output)]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", *options], capture_output=True, text=True, timeout=170, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    floor = json.loads(output.read_text())["floor"]
    assert [row["of"]["recipients"] for row in floor["rows"]] == [1, 10, 100, 1_000, 10_000]
    assert all(value > 0 for row in floor["rows"] for value in row["values"])
    assert "floor, 10,000 recipients" in done.stdout
    assert "not measured" in done.stdout
