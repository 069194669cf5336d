"""`points send` against the running service: paid once and told line by line, whatever happens in between."""

import csv
import json
import os
import pty
import signal
import subprocess
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from app import api_keys
from app.values.key_bounds import Bounds
from tests.e2e.flaky_front import BUSY, HELD, LOST, PASS, QUEUED, RATE_LIMITED, FlakyFront
from tests.service.inside import Organization, Service
from tests.service.template import POINTS
from tests.unit.workbooks import ods

_AMOUNT = 10
_BOUNDS = Bounds(daily_limit=100)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "people.csv"


@pytest.fixture
def caller(service: Service) -> Organization:
    return service.organization(1_000)


def _write(path: Path, number: int) -> list[str]:
    """Write a file of new addresses and return them; the first stands in line 2."""
    emails = [f"{place}.{uuid.uuid4().hex}@example.com" for place in range(number)]
    path.write_text("".join(f"{line}\n" for line in ("E-mail", *emails)))
    return emails


def _arguments(path: Path, caller: Organization, url: str, *more: str) -> list[str]:
    return ["send", str(path), "--amount", str(_AMOUNT), "--key", caller.live, "--url", url, *more]


def _send(service: Service, path: Path, caller: Organization, *more: str, url: str = "", status: int = 0) -> Any:
    done = service.run(*_arguments(path, caller, url or service.url, "--yes", "--json", *more))
    assert done.returncode == status, done.stdout + done.stderr
    return json.loads(done.stdout) if done.stdout else done.stderr


@contextmanager
def _running(
    service: Service, path: Path, caller: Organization, url: str, *more: str
) -> Iterator[subprocess.Popen[str]]:
    """Give the command and do not wait for it."""
    command = service.words(*_arguments(path, caller, url, "--yes", "--json", *more))
    with subprocess.Popen(
        command, env=service.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def _left_behind(path: Path) -> list[str]:
    """Return what a run has left besides its result."""
    return [each.name for each in path.parent.iterdir() if each.name not in (path.name, "people.result.csv")]


def _results(path: Path, name: str = "people.result.csv") -> list[dict[str, str]]:
    with path.with_name(name).open(newline="") as file:
        return list(csv.DictReader(file))


def test_one_result_tells_of_every_campaign_of_a_list(service: Service, path: Path, caller: Organization) -> None:
    _write(path, 2)
    rehearsal = service.run(*_arguments(path, caller, service.url), "--yes", "--json", "--key", caller.development)
    assert json.loads(rehearsal.stdout)["debited"] == 2
    for label, replayed in (("April", 0), ("May", 0), ("May", 1)):
        assert _send(service, path, caller, "--label", label)["replayed_batches"] == replayed
    assert [(row["label"], row["sandbox"]) for row in _results(path)] == [
        *[("", "yes")] * 2, *[("April", "no")] * 2, *[("May", "no")] * 2,
    ]  # fmt: skip
    assert service.balance(caller.live) == 960
    other = path.rename(path.with_suffix(".txt"))
    assert Path(_send(service, other, caller, "--label", "other")["result"]).name == "people.txt.result.csv"


def test_a_workbook_is_sent_by_the_columns_and_without_the_hidden_rows_that_are_named(
    service: Service, path: Path, caller: Organization
) -> None:
    book = path.with_suffix(".ods")
    rows = [
        ["E-mail", "Pts", "Invoice", "Season"],
        *([f"{name}@example.com", "7", f"i-{name}", "May"] for name in "abc"),
    ]
    book.write_bytes(ods(rows, hidden=[3]))
    words = ["send", str(book), "--key", caller.live, "--url", service.url, "--yes", "--json", "--amount-column", "Pts"]
    words += ["--reference-column", "Invoice", "--label-column", "4"]
    refused = service.run(*words)
    assert refused.returncode == 1
    assert "1 of these rows is hidden in the workbook" in refused.stderr
    assert service.balance(caller.live) == 1_000
    done = service.run(*words, "--hidden-rows", "leave-out")
    assert (done.returncode, json.loads(done.stdout)["bad"]) == (3, 1), done.stderr
    told = [(row["email"], row["reference"], row["label"]) for row in _results(path, "people.ods.result.csv")]
    left_out = ("b@example.com, 7, i-b, May", "", "")
    assert told == [("a@example.com", "i-a", "May"), left_out, ("c@example.com", "i-c", "May")]
    assert service.balance(caller.live) == 1_000 - 2 * 7


def test_a_file_above_the_limit_is_split_and_a_busy_flaky_queueing_service_is_waited_for(
    service: Service, path: Path, caller: Organization
) -> None:
    emails = _write(path, 10)
    fates = [BUSY, PASS, RATE_LIMITED, LOST, BUSY, QUEUED]
    with FlakyFront(service.url, fates=fates, recipients_max=4) as front:
        done = _send(service, path, caller, url=front.url)
        assert front.fates == []
    assert (done["batches"], done["debited"], done["current_balance"]) == (3, 10, 900)
    assert service.balance(caller.live) == 900
    rows = _results(path)
    assert [row["email"] for row in rows] == emails
    assert [row["line"] for row in rows] == [str(line) for line in range(2, 12)]
    assert len({row["batch_id"] for row in rows}) == len({row["idempotency_key"] for row in rows}) == 3


def test_an_interrupted_run_ends_once_it_is_known_what_became_of_the_batches_under_way(
    service: Service, path: Path, caller: Organization
) -> None:
    emails = _write(path, 10)
    # Batches on their way together arrive in any order, so the second and the third are told by their addresses.
    with FlakyFront(service.url, held=[emails[2], emails[4]], recipients_max=2) as front:
        with _running(service, path, caller, front.url) as process:
            assert front.is_holding(2), "two batches are accepted, and their answers never come"
            process.send_signal(signal.SIGINT)
            printed, told = process.communicate(timeout=60)
        assert (process.returncode, json.loads(printed)["complete"], json.loads(printed)["sent"]) == (1, False, 6)
        assert "carry on" in told
        assert service.balance(caller.live) == 1_000 - 6 * _AMOUNT
        assert [row["debited"] for row in _results(path)] == ["yes"] * 6
        front.release()
        done = _send(service, path, caller, url=front.url)
    assert (done["complete"], done["replayed_batches"], done["debited"]) == (True, 3, 10)
    assert _left_behind(path) == []


@pytest.mark.parametrize(
    ("number", "is_changed"),
    [
        (signal.SIGKILL, False),
        (signal.SIGKILL, True),
        *(pytest.param(signal.SIGTERM, is_changed, marks=pytest.mark.long) for is_changed in (False, True)),
    ],
)
def test_a_run_that_was_cut_off_pays_nobody_twice_when_it_is_given_again_though_the_list_was_changed(
    service: Service, path: Path, number: signal.Signals, is_changed: bool
) -> None:
    # What is sent leaves too little of the balance, and of the key's limit, for as much once more.
    caller = service.organization(100)
    with service.connection() as connection:
        caller = replace(caller, live=api_keys.create(connection, caller.id, sandbox=False, bounds=_BOUNDS)[1])
    _write(path, 10)
    with FlakyFront(service.url, fates=[HELD] * 5, recipients_max=4) as front:
        with _running(service, path, caller, front.url, "--atomic") as process:
            assert front.is_holding(2), "two batches are accepted, and their answers never come"
            process.send_signal(number)
            if number != signal.SIGKILL:
                assert front.is_holding(3), "it asks what became of them, and is not told"
                process.send_signal(number)
            printed, _ = process.communicate(timeout=60)
        if number != signal.SIGKILL:
            assert process.returncode == 1
            assert (json.loads(printed)["sent"], json.loads(printed)["unanswered"]) == (0, 8)
        assert not path.with_name("people.result.csv").exists()
        assert len(_left_behind(path)) == 2
        front.release()
        if is_changed:
            path.write_text(path.read_text() + "new@example.com\n")
        done = _send(service, path, caller, "--atomic", url=front.url, status=int(is_changed))
    assert _left_behind(path) == []
    if is_changed:
        assert "8 of its recipients were paid then" in done["error"]
        assert service.balance(caller.live) == 100 - 8 * _AMOUNT
        assert len(_results(path)) == 8
    else:
        assert (done["complete"], done["batches"], done["replayed_batches"], done["debited"]) == (True, 3, 2, 10)
        assert service.balance(caller.live) == 0
        assert [row["debited"] for row in _results(path)] == ["yes"] * 10


def test_a_list_whose_batch_was_cancelled_is_said_to_be_so_and_the_corrected_one_is_sent(
    service: Service, path: Path, caller: Organization
) -> None:
    service.command("organizations", "approval", str(caller.id), "--above", "0", "--of", "all")
    [wrong, _] = _write(path, 2)
    assert "awaits an approval" in _send(service, path, caller, status=1)["error"]
    assert len(_left_behind(path)) == 1
    [batch] = service.call("GET", "/v1/batches", key=caller.live).json()["data"]["batches"]
    assert service.call("POST", f"/v1/batches/{batch['batch_id']}/cancel", key=caller.live).status_code == 200
    service.command("organizations", "approval", str(caller.id), "--above", "none")
    same = path.with_name("same.csv")
    same.write_text(path.read_text())
    path.write_text(path.read_text().replace(wrong, f"right.{wrong}"))
    assert _send(service, path, caller)["debited"] == 2
    assert "cancelled or rejected: nobody in it was debited" in _send(service, same, caller, status=1)["error"]
    assert _left_behind(path) == ["same.csv"]
    assert service.balance(caller.live) == 1_000 - 2 * _AMOUNT


def test_two_runs_of_a_list_do_not_go_on_at_the_same_time(service: Service, path: Path, caller: Organization) -> None:
    _write(path, 2)
    with FlakyFront(service.url, fates=[HELD]) as front, _running(service, path, caller, front.url) as process:
        assert front.is_holding(1)
        assert "Another run sends this file at this moment" in _send(service, path, caller, status=1)
        front.release()
        assert process.wait(60) == 0
        process.communicate()


def test_a_service_that_stays_away_ends_the_run(service: Service, path: Path, caller: Organization) -> None:
    first, *_ = _write(path, 6)
    with FlakyFront(service.url, recipients_max=2, passed=first) as front:
        _send(service, path, caller, url=front.url)
        before = _results(path)
        front.fates = [BUSY] * 99
        # Half of the time is the first try's: on a busy machine, 0.5 s were too short for the one that passes.
        cut = _send(service, path, caller, "--patience", "8", url=front.url, status=1)
        assert (cut["complete"], cut["sent"]) == (False, 2)
        assert "answers 503" in cut["error"]
    assert _results(path) == before, "a line that an earlier run has paid is not said to be unsent"
    assert service.balance(caller.live) == 940


@pytest.mark.parametrize(("answer", "status", "left"), [("n", 1, 1_000), ("y", 0, 970)])
def test_a_person_at_a_terminal_is_asked(
    service: Service, path: Path, caller: Organization, answer: str, status: int, left: int
) -> None:
    _write(path, 3)
    terminal, stdin = pty.openpty()
    try:
        os.write(terminal, f"{answer}\n".encode())
        done = subprocess.run(
            service.words(*_arguments(path, caller, service.url)),
            env=service.environment,
            stdin=stdin,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    finally:
        os.close(terminal)
        os.close(stdin)
    assert done.returncode == status, done.stderr
    assert "Send?" in done.stdout
    assert ("points: Nothing was sent." in done.stderr) is bool(status)
    assert service.balance(caller.live) == left


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        ([], 1, "there was no answer"),
        (["--yes", "--key", "pts_live_nonsense"], 1, "does not know this key"),
        (["--yes", "--url", "http://127.0.0.1:1"], 1, "http://127.0.0.1:1 cannot be reached"),
    ],
)
def test_what_cannot_be_sent_is_one_sentence_on_standard_error_and_pays_nobody(
    service: Service, path: Path, caller: Organization, arguments: Sequence[str], status: int, words: str
) -> None:
    _write(path, 2)
    done = service.run(*_arguments(path, caller, service.url, *arguments, "--json"))
    assert done.returncode == status, done.stderr
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert caller.live not in done.stderr
    assert done.stdout == ""
    assert service.balance(caller.live) == 1_000
    assert not path.with_name("people.result.csv").exists()


def test_a_full_disk_ends_the_run_and_pays_nobody_twice(service: Service, path: Path, caller: Organization) -> None:
    _write(path, 90)
    command = [POINTS, *_arguments(path, caller, service.url, "--yes", "--json")]
    # No file of this process may grow beyond 10 KiB: the result of 90 lines would.
    done = subprocess.run(
        ["/bin/sh", "-c", 'ulimit -f 20 && exec "$@"', "sh", *command],
        env=service.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    outcome = json.loads(done.stdout)
    assert (done.returncode, outcome["complete"]) == (1, False)
    assert "people.result.csv cannot be written: File too large. Make room, and give the same command" in done.stderr
    assert done.stderr.count("\n") == 1
    again = _send(service, path, caller)
    assert (again["complete"], again["debited"], again["replayed_batches"]) == (True, 90, 1)
    assert service.balance(caller.live) == 100
    assert len(_results(path)) == 90
