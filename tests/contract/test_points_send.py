"""`points send`: a list in a file is paid once, and each of its lines is accounted for."""

import csv
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.contract.calls import Key, Organization, address, addresses, nothing_changes, organization
from tests.contract.service import POINTS, Service
from tests.deadline import until

_AMOUNT = 10


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "people.csv"


def _write(path: Path, number: int) -> list[str]:
    emails = addresses(number)
    path.write_text("".join(f"{line}\n" for line in ("E-mail", *emails)))
    return emails


def _arguments(path: Path, key: Key, *more: str) -> list[str]:
    return ["send", str(path), "--amount", str(_AMOUNT), "--key", key.text, "--url", key.service.url, *more]


def _send(path: Path, key: Key, *more: str, status: int = 0) -> Any:
    done = key.service.run(*_arguments(path, key, "--yes", "--json", *more))
    assert done.returncode == status, done.stdout + done.stderr
    return json.loads(done.stdout)


def _results(path: Path) -> list[dict[str, str]]:
    with path.with_name("people.result.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_each_line_is_sent_or_named_and_a_second_run_pays_nobody_again(acme: Organization, path: Path) -> None:
    ann, bob, before = address(), address(), acme.live.balance
    acme.service.register(ann)
    path.write_text(f"name;email\nAnn;{ann}\nNo;nonsense\nBob;{bob}\nAgain;{ann.upper()}\n")
    done = acme.service.run(*_arguments(path, acme.live, "--label", "spring", "--yes"))
    assert done.returncode == 3, "two lines were left out"
    assert all(line in done.stderr for line in ("line 3", "line 5"))
    assert acme.live.balance == before - 2 * _AMOUNT
    rows = _results(path)
    told = [(row["line"], row["debited"], row["credited"], row["held"]) for row in rows]
    assert told == [("2", "yes", "yes", "no"), ("3", "", "", ""), ("4", "yes", "no", "yes"), ("5", "", "", "")]
    transactions = acme.live.batch(int(rows[0]["batch_id"]))["transactions"]
    assert [str(one["id"]) for one in transactions] == [rows[0]["transaction_id"], rows[2]["transaction_id"]]
    assert {one["label"] for one in transactions} == {"spring"}

    again = _send(path, acme.live, "--label", "spring", status=3)
    assert (again["debited"], again["replayed_batches"]) == (2, 1)
    assert _results(path) == rows
    assert acme.live.balance == before - 2 * _AMOUNT


def test_a_list_above_the_limit_is_split_and_a_run_that_is_killed_is_carried_on_and_pays_nobody_twice(
    narrow: Service, path: Path
) -> None:
    caller = organization(narrow, 100_000).live
    emails = _write(path, 4_500)
    with narrow.frozen("worker"):
        command = [POINTS, *_arguments(path, caller, "--yes", "--json")]
        process = subprocess.Popen(command, env=narrow.environment, stdout=subprocess.DEVNULL)
        until(lambda: caller.listed("batches"), "the first batch is accepted", every_s=0.25)
        process.kill()
        process.wait(30)
    for replayed in (1, 3):
        done = _send(path, caller)
        assert (done["complete"], done["batches"], done["debited"]) == (True, 3, 4_500)
        assert done["replayed_batches"] >= replayed
        assert done["current_balance"] == caller.balance == 100_000 - 4_500 * _AMOUNT
        assert [(row["email"], row["debited"]) for row in _results(path)] == [(email, "yes") for email in emails]


def test_what_the_balance_does_not_pay_is_said_and_with_atomic_nothing_is_sent(service: Service, path: Path) -> None:
    caller = organization(service, 25).live
    _write(path, 4)
    assert service.run(*_arguments(path, caller, "--yes", "--atomic")).returncode == 1
    assert caller.balance == 25
    done = _send(path, caller)
    assert (done["debited"], done["not_debited"], done["current_balance"]) == (2, 2, 5)
    assert [row["debited"] for row in _results(path)] == ["yes", "yes", "no", "no"]


@pytest.mark.parametrize("answer", ["n\n", ""])
def test_who_does_not_say_yes_sends_nothing(acme: Organization, path: Path, answer: str) -> None:
    _write(path, 2)
    with nothing_changes(acme.live):
        assert acme.service.run(*_arguments(path, acme.live), stdin=answer).returncode == 1


@pytest.mark.parametrize(
    ("more", "status"),
    [
        ("--key pts_live_nonsense", 1),
        ("--url http://127.0.0.1:1 --patience 1", 1),
        ("--column nonsense", 1),
        ("--amount many", 2),
        ("--amount 0", 2),
    ],
)
def test_what_cannot_be_sent_is_a_sentence_on_standard_error_and_pays_nobody(
    acme: Organization, path: Path, more: str, status: int
) -> None:
    _write(path, 2)
    with nothing_changes(acme.live):
        done = acme.service.run(*_arguments(path, acme.live, "--yes", *more.split()))
    assert (done.returncode, done.stdout) == (status, "")
    assert done.stderr
    assert not any(word in done.stderr for word in ("Traceback", acme.live.text))
