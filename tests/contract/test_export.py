"""`points export`: everything, however much, whole or known to be broken off, and then gone on with."""

import csv
import json
import shlex
import subprocess
from io import StringIO
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.contract.calls import Organization, organization, success
from tests.service.up import Service

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
