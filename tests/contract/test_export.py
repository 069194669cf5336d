"""`points export`: everything, however much, whole or known to be broken off, and then gone on with."""

import csv
import json
import os
import shlex
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.contract.calls import Organization, address, addresses, organization, success
from tests.service.up import Service

_AGAIN = "Not even its first part was written whole: give the command again."
_BATCHES, _RECIPIENTS, _POINTS = 3, 10_000, 2


class Large(NamedTuple):
    """An organization with more transactions than one piece of an export has, and their ids in order."""

    organization: Organization
    ids: list[int]

    def words(self, *options: str) -> list[str]:
        return ["export", "transactions", str(self.organization.id), *options]

    def export(self, *options: str) -> tuple[str, str]:
        """Give the command; return what it wrote, and what it said."""
        done = self.organization.service.command(*self.words(*options))
        return done.stdout, done.stderr


@pytest.fixture(scope="module")
def large(service: Service) -> Large:
    made = organization(service, _BATCHES * _RECIPIENTS * _POINTS)
    ids: list[int] = []
    for number in range(_BATCHES):
        recipients = [f"export-{number}-{place}@example.com" for place in range(_RECIPIENTS)]
        body = {"recipients": recipients, "amount": _POINTS, "label": "=Spring"}
        ids += [one["id"] for one in success(made.live.send(body), 201)["transactions"]]
    return Large(made, ids)


def _ids(lines: list[str]) -> list[int]:
    return [int(line.partition(",")[0]) for line in lines]


def test_an_export_has_every_transaction_in_order_and_ends_with_their_number_and_sum(large: Large) -> None:
    written, said = large.export()
    heading, *lines, _ = written.splitlines()
    assert heading.startswith("transaction_id,batch_id,issued_at,email,")
    assert _ids(lines) == large.ids
    rows = list(csv.DictReader(StringIO(written)))
    last = rows[-1]["transaction_id"], rows[-1]["points"], rows[-1]["reversed"]
    assert last == ("total of 30000 rows", "60000", "0")
    assert {row["label"] for row in rows[:-1]} == {"'=Spring"}, "no spreadsheet takes it for a formula"
    assert said == "Exported 30,000 transactions: 60,000 points.\n"
    documents = [json.loads(line) for line in large.export("--jsonl")[0].splitlines()]
    assert [one.get("transaction_id") for one in documents] == [*large.ids, None]
    assert documents[0]["label"] == "=Spring"
    assert documents[-1]["total"] == {"rows": len(large.ids), "points": 60_000, "reversed": 0, "after": None}


def test_a_disk_that_is_full_leaves_whole_lines_to_go_on_from(large: Large, tmp_path: Path) -> None:
    whole, file = large.export()[0], tmp_path / "export.csv"
    service = large.organization.service
    command = shlex.join(service.words(*large.words()))
    # Room for more than the first piece and less than everything.
    blocks = len("".join(whole.splitlines(keepends=True)[:22_000])) // 1_024
    limited = f"ulimit -f {blocks}; exec {command} > {shlex.quote(str(file))}"
    done = subprocess.run(
        ["/bin/bash", "-c", limited], env=service.environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    begun = file.read_text()
    assert whole.startswith(begun)
    assert begun.endswith("\n")
    last = begun.splitlines()[-1].partition(",")[0]
    assert "File too large" in done.stderr
    assert f"The file ends with transaction {last}: go on with --after {last}" in done.stderr
    rest, said = large.export("--after", last)
    assert (begun + rest).splitlines()[:-1] == whole.splitlines()[:-1]
    left = len(large.ids) - (len(begun.splitlines()) - 1)
    assert rest.splitlines()[-1].startswith(f"total of {left} rows after {last},")
    assert said.startswith(f"Exported {left:,} transactions")


def test_a_disk_without_room_for_a_row_is_one_sentence(large: Large) -> None:
    service = large.organization.service
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            service.words(*large.words()),
            env=service.environment,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr == f"points: The export could not be written: No space left on device. {_AGAIN}\n"


@contextmanager
def _reading(large: Large) -> Iterator[subprocess.Popen[str]]:
    """Give the command and read the beginning: it then waits for the pipe, which holds less than a piece."""
    service = large.organization.service
    with subprocess.Popen(
        service.words(*large.words()),
        env=service.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("transaction_id,")
        assert process.stdout.readline().startswith(f"{large.ids[0]},")
        yield process


def test_ctrl_c_and_a_reader_that_ends_are_one_sentence_without_a_trace(large: Large) -> None:
    for words in ("The export was stopped", "The program that reads the export has ended"):
        with _reading(large) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            if "stopped" in words:
                os.killpg(process.pid, signal.SIGINT)
            else:
                process.stdout.close()
            said = process.stderr.read()
            assert process.wait() == 1
        assert said == f"points: {words}. {_AGAIN}\n"


def test_what_is_asked_is_read_by_the_rules_of_the_lists(service: Service) -> None:
    made, ann = organization(service, 100, sandbox_balance=7), address()
    [first, _] = success(made.live.send({"recipients": [ann, address()], "amount": 5}), 201)["transactions"]
    success(made.development.send({"recipients": addresses(1), "amount": 3, "label": "x"}), 201)
    number = str(made.id)

    def rows(*options: str) -> list[str]:
        done = service.command("export", *options)
        return done.stdout.splitlines()[1:-1]

    assert (
        len(rows("transactions", number, "--email", ann, "--batch", str(first["id"] // 131_072), "--state", "held"))
        == 1
    )
    assert len(rows("transactions", number, "--sandbox")) == 1
    yesterday, tomorrow = (f"{datetime.now(UTC).date() + timedelta(days=days)}" for days in (-1, 1))
    assert len(rows("batches", number, "--from", yesterday, "--to", tomorrow, "--status", "issued")) == 1
    assert rows("batches", number, "--to", yesterday) == []
    assert rows("reversals", number, "--status", "done") == []
    wrong = service.command("export", "transactions", number, "--from", "yesterday", "--state", "lost", status=2)
    assert "--from must be a day such as 2026-01-31, or a time in ISO 8601 with its zone" in wrong.stderr
    assert "--state must be one of" in wrong.stderr
    unknown = service.command("export", "transactions", number, "--after", "131072", "--sandbox", status=1)
    assert unknown.stderr == "points: There is no transaction 131072.\n"
    assert wrong.stdout == unknown.stdout == ""
    assert "There is no organization 999999." in service.command("export", "batches", "999999", status=1).stderr
