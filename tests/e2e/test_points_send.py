"""`points send` against the running service: paid once and told line by line, whatever happens in between."""

import csv
import json
import os
import pty
import signal
import subprocess
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Organization, Service
from tests.e2e.flaky_front import BUSY, HELD, LOST, PASS, QUEUED, RATE_LIMITED, FlakyFront

_AMOUNT = 10


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
    done = service.run(_arguments(path, caller, url or service.url, "--yes", "--json", *more))
    assert done.returncode == status, done.stdout + done.stderr
    return json.loads(done.stdout) if done.stdout else done.stderr


def _results(path: Path, name: str = "people.result.csv") -> list[dict[str, str]]:
    with path.with_name(name).open(newline="") as file:
        return list(csv.DictReader(file))


def test_each_line_of_a_file_is_sent_or_named_and_its_result_written(
    service: Service, path: Path, caller: Organization
) -> None:
    mark = uuid.uuid4().hex
    service.register(f"ann.{mark}@example.com")
    path.write_text(
        f"name;email\nAnn;ann.{mark}@example.com\nNo;nonsense\nBob;bob.{mark}@example.com\nAgain;ANN.{mark}@example.com\n"
    )
    done = service.run(_arguments(path, caller, service.url, "--label", "spring", "--yes"))
    assert done.returncode == 1, "two lines were left out"
    assert "line 3: must be an e-mail address" in done.stderr
    assert "line 5: is the same address as line 2." in done.stderr
    assert "Left after" in done.stdout
    assert service.balance(caller.live) == 1_000 - 2 * _AMOUNT
    rows = _results(path)
    assert [(row["line"], row["debited"], row["credited"], row["held"]) for row in rows] == [
        ("2", "yes", "yes", "no"),
        ("3", "", "", ""),
        ("4", "yes", "no", "yes"),
        ("5", "", "", ""),
    ]
    transactions = service.call("GET", f"/v1/batches/{rows[0]['batch_id']}", key=caller.live).json()["data"][
        "transactions"
    ]
    assert [str(transaction["id"]) for transaction in transactions] == [
        rows[0]["transaction_id"],
        rows[2]["transaction_id"],
    ]
    assert {transaction["label"] for transaction in transactions} == {"spring"}


def test_a_file_given_again_is_not_paid_again_unless_that_is_what_is_wanted(
    service: Service, path: Path, caller: Organization
) -> None:
    emails = _write(path, 3)
    first = _send(service, path, caller)
    assert (first["complete"], first["debited"], first["replayed_batches"]) == (True, 3, 0)
    rows = _results(path)
    again = _send(service, path, caller)
    assert (again["debited"], again["replayed_batches"], again["current_balance"]) == (3, 1, 970)
    assert _results(path) == rows
    # Saved by another program, with a bad line taken away: the same recipients, so the same campaign.
    path.write_bytes("\r\n".join(["x;mail", *(f";{email.upper()}" for email in emails)]).encode("utf-8-sig"))
    assert _send(service, path, caller)["replayed_batches"] == 1
    assert service.balance(caller.live) == 970
    assert _send(service, path, caller, "--again", "May")["replayed_batches"] == 0
    assert _send(service, path, caller, "--again", "May")["replayed_batches"] == 1
    assert service.balance(caller.live) == 940


@pytest.mark.parametrize("empty", ["--label", "--again"])
def test_a_variable_that_is_not_set_makes_no_other_campaign(
    service: Service, path: Path, caller: Organization, tmp_path: Path, empty: str
) -> None:
    _write(path, 3)
    _send(service, path, caller)
    more = (empty, "", "--result", str(tmp_path / "other.csv"))
    if empty == "--label":
        assert _send(service, path, caller, *more)["replayed_batches"] == 1
    else:
        assert "needs a name" in service.run(_arguments(path, caller, service.url, "--yes", *more)).stderr
    assert service.balance(caller.live) == 970


def test_what_became_of_another_campaign_or_another_file_is_not_overwritten(
    service: Service, path: Path, caller: Organization
) -> None:
    _write(path, 2)
    assert _send(service, path, caller)["debited"] == 2
    first = _results(path)
    assert _send(service, path, caller, "--label", "May")["debited"] == 2
    assert {row["label"] for row in _results(path)} == {"May"}
    assert _results(path, "people.result.1.csv") == first
    assert _send(service, path, caller, "--label", "May")["replayed_batches"] == 1
    assert not path.with_name("people.result.2.csv").exists()
    # What is kept still tells who was paid.
    path.write_text(path.read_text() + "new@example.com\n")
    assert "2 of its recipients were paid then" in _send(service, path, caller, status=1)
    other = path.rename(path.with_suffix(".txt"))
    assert Path(_send(service, other, caller, "--label", "other")["result"]).name == "people.txt.result.csv"


def test_a_file_that_was_changed_since_it_was_sent_is_not_paid_a_second_time(
    service: Service, path: Path, caller: Organization
) -> None:
    emails = _write(path, 3)
    _send(service, path, caller)
    path.write_text("".join(f"{email}\n" for email in (*emails, "new@example.com")))
    refused = _send(service, path, caller, status=1)
    assert "3 of its recipients were paid then" in refused
    assert service.balance(caller.live) == 970
    assert len(_results(path)) == 3
    assert _send(service, path, caller, "--label", "another thing")["debited"] == 4
    assert _send(service, path, caller, "--again", "June")["debited"] == 4
    path.write_text(path.read_text() + "newest@example.com\n")
    refused = _send(service, path, caller, "--again", "June", status=1)
    assert "4 of its recipients were paid then" in refused
    assert "with another --again NAME" in refused


@pytest.mark.parametrize("say_limit", [True, False])
def test_a_file_above_the_limit_is_split_and_a_busy_flaky_queueing_service_is_waited_for(
    service: Service, path: Path, caller: Organization, say_limit: bool
) -> None:
    emails = _write(path, 10)
    fates = [BUSY, PASS, RATE_LIMITED, LOST, BUSY, QUEUED]
    with FlakyFront(service.url, fates=fates, recipients_max=4, say_limit=say_limit) as front:
        done = _send(service, path, caller, url=front.url)
        assert front.fates == []
    assert (done["batches"], done["debited"], done["current_balance"]) == (3, 10, 900)
    assert service.balance(caller.live) == 900
    rows = _results(path)
    assert [row["email"] for row in rows] == emails
    assert [row["line"] for row in rows] == [str(line) for line in range(2, 12)]
    assert len({row["batch_id"] for row in rows}) == len({row["idempotency_key"] for row in rows}) == 3


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_ends_once_it_is_known_what_became_of_the_batch_under_way(
    service: Service, path: Path, caller: Organization, number: signal.Signals
) -> None:
    _write(path, 10)
    with FlakyFront(service.url, fates=[PASS, HELD], recipients_max=4) as front:
        process = subprocess.Popen(
            service.command(*_arguments(path, caller, front.url, "--yes", "--json", "--atomic")),
            env=service.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert front.is_holding.wait(60), "the second batch is accepted, and its answer never comes"
        process.send_signal(number)
        printed, told = process.communicate(timeout=60)
        assert process.returncode == 1
        assert "carry on" in told
        assert (json.loads(printed)["complete"], json.loads(printed)["sent"]) == (False, 8)
        assert service.balance(caller.live) == 1_000 - 8 * _AMOUNT
        assert [row["reason"] for row in _results(path)] == [""] * 8 + ["not sent yet"] * 2
        front.release()
        done = _send(service, path, caller, "--atomic", url=front.url)
    assert (done["complete"], done["replayed_batches"], done["debited"]) == (True, 2, 10)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_interrupted_run_is_carried_on_by_giving_it_again_and_pays_nobody_twice(
    service: Service, path: Path, caller: Organization, number: signal.Signals
) -> None:
    _write(path, 10)
    with FlakyFront(service.url, fates=[PASS, HELD, HELD], recipients_max=4) as front:
        command = service.command(*_arguments(path, caller, front.url, "--yes", "--json"))
        process = subprocess.Popen(
            command, env=service.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert front.is_holding.wait(60), "the second batch is accepted, and its answer never comes"
        front.is_holding.clear()
        process.send_signal(number)
        if number != signal.SIGKILL:
            assert front.is_holding.wait(60), "it asks what became of the batch, and is not told"
            process.send_signal(number)
        printed, told = process.communicate(timeout=60)
        if number == signal.SIGKILL:
            assert not path.with_name("people.result.csv").exists()
        else:
            assert process.returncode == 1
            assert "carry on" in told
            assert (json.loads(printed)["complete"], json.loads(printed)["sent"]) == (False, 4)
            assert [row["reason"] for row in _results(path)] == [
                *[""] * 4, *["sent, but not answered"] * 4, *["not sent yet"] * 2,
            ]  # fmt: skip
        front.release()
        done = _send(service, path, caller, url=front.url)
    assert (done["complete"], done["batches"], done["replayed_batches"], done["debited"]) == (True, 3, 2, 10)
    assert service.balance(caller.live) == 900
    assert [row["debited"] for row in _results(path)] == ["yes"] * 10
    assert not path.with_name("people.result.csv.unfinished").exists()


def test_a_service_that_stays_away_ends_the_run_and_what_is_known_of_it_is_kept(
    service: Service, path: Path, caller: Organization
) -> None:
    _write(path, 6)
    with FlakyFront(service.url, recipients_max=2) as front:
        _send(service, path, caller, url=front.url)
        before = _results(path)
        front.fates = [PASS, *[BUSY] * 99]
        cut = _send(service, path, caller, "--patience", "1", url=front.url, status=1)
        assert (cut["complete"], cut["sent"]) == (False, 2)
        assert "answers 503" in cut["error"]
    assert _results(path) == before, "a line that an earlier run has paid is not said to be unsent"
    assert service.balance(caller.live) == 940


def test_what_the_balance_does_not_pay_is_said_and_with_atomic_nothing_is_sent(service: Service, path: Path) -> None:
    caller = service.organization(25)
    _write(path, 4)
    refused = service.run(_arguments(path, caller, service.url, "--yes", "--atomic"))
    assert refused.returncode == 1
    assert "pays only the first 2" in refused.stdout
    assert "Nothing was sent" in refused.stderr
    done = _send(service, path, caller)
    assert (done["debited"], done["not_debited"], done["current_balance"]) == (2, 2, 5)
    assert [row["reason"] for row in _results(path)] == ["", "", *["the balance was too low"] * 2]
    service.points("organizations", "refill", str(caller.id), "100")
    assert _send(service, path, caller)["not_debited"] == 2, "the same file is the same answer"
    rest = _send(service, Path(done["undebited"]), caller)
    assert (rest["debited"], rest["current_balance"]) == (2, 85)


@pytest.mark.parametrize(("answer", "status", "left"), [("n", 1, 1_000), ("y", 0, 970)])
def test_a_person_at_a_terminal_is_asked(
    service: Service, path: Path, caller: Organization, answer: str, status: int, left: int
) -> None:
    _write(path, 3)
    terminal, stdin = pty.openpty()
    try:
        os.write(terminal, f"{answer}\n".encode())
        done = subprocess.run(
            service.command(*_arguments(path, caller, service.url)),
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
    assert service.balance(caller.live) == left


@pytest.mark.parametrize(("answer", "status", "left"), [("n", 1, 1_000), ("", 1, 1_000), ("y", 0, 970)])
def test_an_answer_may_come_from_a_pipe(
    service: Service, path: Path, caller: Organization, answer: str, status: int, left: int
) -> None:
    _write(path, 3)
    done = service.run(_arguments(path, caller, service.url), stdin=f"{answer}\n")
    assert done.returncode == status, done.stderr
    assert service.balance(caller.live) == left


def test_the_running_service_of_the_data_directory_is_where_a_file_goes_and_the_key_may_be_in_the_environment(
    service: Service, path: Path, caller: Organization
) -> None:
    _write(path, 1)
    arguments = ["send", str(path), "--amount", "1", "--yes", "--json", "--data-dir", str(service.data_dir)]
    done = service.run(arguments, POINTS_KEY=caller.development)
    assert (json.loads(done.stdout)["sandbox"], json.loads(done.stdout)["debited"]) == (True, 1)
    assert service.balance(caller.live) == 1_000


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        ([], 1, "there was no answer"),
        (["--yes", "--key", "pts_live_nonsense"], 1, "does not know this key"),
        (["--yes", "--key", "pts_live_schlüssel"], 2, "a key holds letters, digits and _ only"),
        (["--yes", "--key", "pts_live_a pts_live_b"], 2, "a key holds letters, digits and _ only"),
        (["--yes", "--url", "http://127.0.0.1:1"], 1, "cannot be reached"),
        (["--yes", "--url", "ftp://127.0.0.1"], 1, "must begin with http:// or https://"),
        (["--yes", "--label", "x" * 256], 1, "at most 255 characters"),
        (["--yes", "--result", "FILE"], 1, "would replace the file itself"),
        (["--yes", "--column", "nonsense"], 1, "its columns are “E-mail” (1)"),
        (["--yes", "--amount", "0"], 2, "is not in the range"),
        (["--yes", "--amount", str(2**63)], 2, "is not in the range"),
        (["--yes", "--label", "\udcff"], 2, "it is not in UTF-8."),
        (["--yes", "--again", "\udcff"], 2, "it is not in UTF-8."),
        (["--yes", "--amount", "many"], 2, "not a valid integer"),
    ],
)
def test_what_cannot_be_sent_is_one_sentence_on_standard_error_and_pays_nobody(
    service: Service, path: Path, caller: Organization, arguments: Sequence[str], status: int, words: str
) -> None:
    _write(path, 2)
    arguments = [str(path) if word == "FILE" else word for word in arguments]
    done = service.run(_arguments(path, caller, service.url, *arguments, "--json"))
    assert done.returncode == status, done.stderr
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert caller.live not in done.stderr
    assert done.stdout == ""
    assert service.balance(caller.live) == 1_000
    assert not path.with_name("people.result.csv").exists()


def test_a_suspended_organization_sends_nothing(service: Service, path: Path, caller: Organization) -> None:
    _write(path, 2)
    service.points("organizations", "suspend", str(caller.id))
    assert "suspended" in _send(service, path, caller, status=1)


def test_a_disk_that_is_full_ends_the_run_with_what_to_do_and_the_next_one_pays_nobody_twice(
    service: Service, path: Path, caller: Organization
) -> None:
    _write(path, 90)
    command = service.points_command(*_arguments(path, caller, service.url, "--yes", "--json"))
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


@pytest.mark.parametrize("moment", ["2026-11-23T09:30:00", "23.11.2026 09:30"])
def test_a_result_that_another_program_has_saved_still_tells_who_was_paid_or_is_refused(
    service: Service, path: Path, caller: Organization, moment: str
) -> None:
    _write(path, 2)
    _send(service, path, caller)
    result = path.with_name("people.result.csv")
    rows = _results(path)
    result.write_text(result.read_text().replace(rows[1]["created_at"], moment))
    if "." in moment:
        refused = _send(service, path, caller, status=1)
        assert "people.result.csv was changed by another program, and what it says of line 2 cannot be read" in refused
    else:
        assert _send(service, path, caller)["replayed_batches"] == 1
    assert service.balance(caller.live) == 980


def test_a_result_that_would_be_a_folder_is_refused_before_anything_is_sent(
    service: Service, path: Path, caller: Organization
) -> None:
    _write(path, 2)
    path.with_name("people.result.csv").mkdir()
    assert "people.result.csv is a folder" in _send(service, path, caller, status=1)
    assert service.balance(caller.live) == 1_000


def test_a_key_is_taken_with_the_blanks_that_came_along(service: Service, path: Path, caller: Organization) -> None:
    _write(path, 2)
    for key in (f" {caller.development}", f"{caller.development}\r\n"):
        done = service.run([*_arguments(path, caller, service.url, "--yes", "--json", "--key", key)])
        assert json.loads(done.stdout)["sandbox"] is True
    assert service.balance(caller.live) == 1_000


def test_what_is_not_in_utf_8_is_named_in_json_all_the_same(service: Service, path: Path, caller: Organization) -> None:
    _write(path, 1)
    path.write_bytes(path.read_bytes() + b"j\xfcr@example.com\n")
    path = path.rename(path.with_name(os.fsdecode(b"f\xfcr.csv")))
    outcome = _send(service, path, caller, status=1)
    assert (outcome["debited"], outcome["bad_lines"][0]["email"]) == (1, "j�r@example.com")
    assert outcome["result"].endswith("f�r.result.csv")
