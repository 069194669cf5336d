"""`make bench`: the floor, the worker's body and a whole send, interleaved, as medians with their spread."""

import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
import uuid
from collections.abc import Callable
from pathlib import Path

import psycopg

from app import api_keys, batches, organizations, users
from app.batches import IssueRequest
from app.database import transaction
from app.ledger.claim import register
from app.ledger.drain import drain
from app.ledger.refill import refill
from app.local import ports
from app.local.datadir import DataDir
from app.local.servers import name_servers
from benchmarks import floor

ROUNDS = 7
SIZES = (1, 100, 1_000, 10_000)
_RESULTS = Path(__file__).parent / "results.json"

Measure = Callable[[list[str]], float]


def main() -> None:
    """Start a service of our own, measure, print a table and write `results.json`. It reports and never fails."""
    with tempfile.TemporaryDirectory(prefix="points-bench-") as folder:
        datadir = DataDir(folder)
        port = ports.any_free()
        with _service(datadir, port):
            name_servers(datadir)
            results = [_measure(size, port) for size in SIZES]
    _RESULTS.write_text(json.dumps({"machine": platform.machine(), "cores": os.cpu_count(), "rows": results}, indent=2))
    _print(results)


class _service:  # noqa: N801  # Used as a statement: with _service(…).
    def __init__(self, datadir: DataDir, port: int) -> None:
        datadir.create()
        options = ["--port", str(port), "--flower-port", str(ports.any_free()), "--data-dir", str(datadir.path)]
        self._command = [sys.executable, "-c", "from app.cli import main; main()", "up", *options]

    def __enter__(self) -> None:
        environment = {**os.environ, "POINTS_RATE_LIMIT": "off"}
        self._process = subprocess.Popen(self._command, stdout=subprocess.PIPE, text=True, env=environment)
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if "Ctrl-C stops everything" in line:
                return
        raise SystemExit("the service did not come up")

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.communicate()


def _measure(size: int, port: int) -> dict[str, object]:
    """Measure one size: in each round the floor, the worker's body and the whole send, one after the other."""
    mark = uuid.uuid4().hex[:8]
    emails = [f"{place}.{mark}@example.com" for place in range(size)]
    with transaction() as connection:
        organization_id = organizations.create(connection, "Bench", sandbox_start_balance=0)
        refill(connection, organization_id, 10**12)
        _, key = api_keys.create(connection, organization_id, sandbox=False)
        register(connection, [users.new_user(email, "First", "Last") for email in emails])
    with psycopg.connect(os.environ["DATABASE_URL"]) as raw:
        floor.prepare(raw)
        measures: dict[str, Measure] = {
            "floor": lambda emails: floor.copy_rows(raw, emails),
            "worker body": lambda emails: _worker_body(organization_id, emails),
            "whole send": lambda emails: _whole_send(port, key, emails),
        }
        for measure in measures.values():
            measure(emails)  # Once to warm up, not counted.
        seconds: dict[str, list[float]] = {name: [] for name in measures}
        for _ in range(ROUNDS):
            for name, measure in measures.items():
                seconds[name].append(measure(emails))
    return {"recipients": size, "seconds": seconds}


def _worker_body(organization_id: int, emails: list[str]) -> float:
    """Drain one queued batch in this process; accepting it is not counted."""
    request = IssueRequest(emails=emails, email_keys=emails, amount=1, atomic=False, label=None)
    with transaction() as connection:
        batches.accept(connection, organization_id, request, sandbox=False, idempotency_key=None)
    started = time.perf_counter()
    drain(organization_id, announce=lambda _: None)
    return time.perf_counter() - started


def _whole_send(port: int, key: str, emails: list[str]) -> float:
    """Send over HTTP and read the whole 201."""
    body = json.dumps({"recipients": emails, "amount": 1}).encode()
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    request = urllib.request.Request(f"http://{ports.HOST}:{port}/v1/points/send", body, headers)
    started = time.perf_counter()
    with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310  # Our own address.
        assert answer.status == 201
        answer.read()
    return time.perf_counter() - started


def _print(results: list[dict[str, object]]) -> None:
    print(f"{'recipients':>10}  {'what':<12} {'median ms':>10} {'min':>8} {'max':>8} {'× floor':>8}")
    for row in results:
        seconds = row["seconds"]
        assert isinstance(seconds, dict)
        ground = statistics.median(seconds["floor"])
        for name, times in seconds.items():
            median = statistics.median(times)
            print(
                f"{row['recipients']:>10}  {name:<12} {median * 1e3:>10.1f} {min(times) * 1e3:>8.1f}"
                f" {max(times) * 1e3:>8.1f} {median / ground:>8.1f}"
            )


if __name__ == "__main__":
    main()
