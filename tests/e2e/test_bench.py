"""The bench's load generator against a running service, and the bench itself, run as `make bench` does."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.load import Plan, Seen, get, load, post_send
from benchmarks.service import ROOT
from tests.service.inside import Service


def test_callers_see_as_many_answers_as_the_service_gave(service: Service) -> None:
    # A busy machine may answer nobody within half a second, and no answer proves nothing: then for longer.
    for seconds in (0.5, 2, 8, 30):
        sends, views, issued = _load(service, seconds)
        if sends.calls and views.calls:
            break
    # Each of the four callers had one more send under way when the time was up.
    assert 1 <= sends.calls <= sends.calls_in_all <= issued <= sends.calls_in_all + 4
    assert views.calls >= 1
    assert list(sends.latencies_s) == sorted(sends.latencies_s)
    assert sends.cpu_s > 0


def _load(service: Service, seconds: float) -> tuple[Seen, Seen, int]:
    """Return what the callers of an organization of their own saw, and how many points it issued."""
    organization = service.organization(1_000_000)
    send = Plan(port=service.port, requests=[post_send(organization.live, ["ann@example.com"])], callers=4)
    view = Plan(port=service.port, requests=[get("/healthz")], callers=1, expect=200)
    sends, views = load(send, view, seconds=seconds)
    return sends, views, 1_000_000 - service.balance(organization.live)


@pytest.mark.long
def test_two_checkouts_are_compared_each_with_its_own_code_in_all_parts(tmp_path: Path) -> None:
    before = _checkout(tmp_path)
    modules = [
        "app/cli/up.py",
        "app/web/gunicorn_worker.py",
        "worker/tasks.py",
        "worker/processes.py",
    ]
    for module in modules:
        with (before / module).open("a") as code:
            code.write("\nopen(__file__ + '.was_run', 'w').close()\n")
    done = _compare(before, "--only", "/healthz", "--rounds", "1", "--seconds", "0.2")
    assert done.returncode == 0, done.stdout + done.stderr
    [line] = [line for line in done.stdout.splitlines() if "/healthz, callers 32" in line]
    assert "rate per s" in line
    assert "×" in line
    assert [module for module in modules if not (before / f"{module}.was_run").exists()] == []


@pytest.mark.long
def test_a_checkout_that_does_not_come_up_is_not_measured(tmp_path: Path) -> None:
    before = _checkout(tmp_path)
    (before / "app/__init__.py").write_text("raise SystemExit('It is the code from before.')")
    done = _compare(before, "--only", "/healthz")
    assert done.returncode == 1
    assert "Nothing was measured. The service did not come up:\nIt is the code from before." in done.stderr


def _checkout(folder: Path) -> Path:
    """Make another checkout of what runs; without an environment of its own it is run in this one."""
    for name in ("app", "migrations", "worker"):
        shutil.copytree(ROOT / name, folder / name)
    return folder


def _compare(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchmarks.compare", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=170, check=False)


@pytest.mark.long
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
