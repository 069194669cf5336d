"""What an earlier run of `points send` has written down, and the file that it stands in."""

import csv
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from app.cli.send.earlier import (
    Intent,
    KnownRows,
    holds_another,
    read_earlier,
    read_rows,
    require_no_second_payment,
)
from app.cli.send.recipients import Part, Recipients, idempotency_key
from app.cli.send.results import COLUMNS, ResultFile, write_undebited
from app.cli.send.service import Issued
from app.errors import Refused

ANN = "ann@example.com"
OURS, OTHER = "a" * 64, "b" * 64
INTENT = Intent(campaign=OURS, amount=10, label=None, sandbox=False, organization_id=7)
ANOTHER = replace(INTENT, campaign=OTHER)


@pytest.fixture
def recipients() -> Iterator[Recipients]:
    with closing(Recipients()) as found:
        found.add(2, ANN)
        yield found


def _row(campaign: str = OURS, *, days: int = 0, **other: object) -> dict[str, object]:
    moment = (datetime.now(UTC) - timedelta(days=days)).isoformat()
    row: dict[str, object] = {
        "line": 2,
        "email": ANN,
        "transaction_id": 131_072,
        "amount": 10,
        "debited": "yes",
        "sandbox": "no",
        "organization_id": 7,
    }
    return row | {"created_at": moment, "idempotency_key": idempotency_key(campaign, 1)} | other


def _write(path: Path, *rows: dict[str, object]) -> Path:
    with path.open("w", newline="") as file:
        written = csv.DictWriter(file, COLUMNS, restval="")
        written.writeheader()
        written.writerows(rows)
    return path


@pytest.mark.parametrize("days", [(31,), (32, 12), (12, 32)])
def test_a_file_of_which_a_part_was_sent_longer_ago_than_the_service_remembers_is_not_sent_again(
    tmp_path: Path, recipients: Recipients, days: tuple[int, ...]
) -> None:
    result = _write(tmp_path / "r.csv", *(_row(days=each, line=line) for line, each in enumerate(days, start=2)))
    with pytest.raises(Refused, match="for 30 days only"):
        require_no_second_payment(read_earlier([result], INTENT, recipients), INTENT, name="people.csv", result=result)


def test_a_file_that_was_sent_lately_may_be_sent_again(tmp_path: Path, recipients: Recipients) -> None:
    result = _write(tmp_path / "r.csv", _row(days=29), _row(days=12, line=3))
    require_no_second_payment(read_earlier([result], INTENT, recipients), INTENT, name="people.csv", result=result)


@pytest.mark.parametrize(
    ("other", "paid"),
    [
        ({}, 1),
        ({"amount": 5}, 0),
        ({"label": "May"}, 0),
        ({"debited": "no"}, 0),
        ({"sandbox": "yes"}, 0),
        ({"organization_id": 8}, 0),
        ({"email": "bob@example.com"}, 0),
    ],
)
def test_only_who_was_paid_alike_would_be_paid_twice(
    tmp_path: Path, recipients: Recipients, other: dict[str, Any], paid: int
) -> None:
    result = _write(tmp_path / "r.csv", _row(OTHER, **other))
    assert read_earlier([result], INTENT, recipients).paid_otherwise == paid


@pytest.mark.parametrize(
    ("again", "noted", "paid"),
    [(None, "", 1), (None, "June", 1), ("June", "June", 1), ("June", "May", 0), ("June", "", 0)],
)
def test_a_repetition_is_made_once_for_each_of_its_recipients_though_its_file_has_changed(
    tmp_path: Path, recipients: Recipients, again: str | None, noted: str, paid: int
) -> None:
    intent = replace(INTENT, again=again)
    result = _write(tmp_path / "r.csv", _row(OTHER, again=noted))
    found = read_earlier([result], intent, recipients)
    assert found.paid_otherwise == paid
    if paid:
        with pytest.raises(Refused, match=f"with {'another ' if again else ''}--again NAME"):
            require_no_second_payment(found, intent, name="people.csv", result=result)


def test_a_repetition_too_is_not_made_again_once_the_service_has_forgotten_it(
    tmp_path: Path, recipients: Recipients
) -> None:
    intent = replace(INTENT, again="June")
    result = _write(tmp_path / "r.csv", _row(days=31, again="June"))
    with pytest.raises(Refused, match="for 30 days only"):
        require_no_second_payment(read_earlier([result], intent, recipients), intent, name="people.csv", result=result)


def test_who_was_sent_points_and_not_answered_of_may_have_been_paid(tmp_path: Path, recipients: Recipients) -> None:
    """The service may have accepted it, and issues it once the run has ended."""
    with ResultFile(tmp_path / "r.csv") as stopped:
        stopped.begin([])
        part = Part(number=1, lines=[2], emails=[ANN])
        stopped.finish([part], INTENT, unanswered=1)
    [row] = read_rows(tmp_path / "r.csv")
    assert (row["reason"], row["transaction_id"], row["debited"]) == ("sent, but not answered", "", "")
    same = read_earlier([tmp_path / "r.csv"], INTENT, recipients)
    assert (same.settled, same.sent_at is not None, same.paid_otherwise) == (0, True, 0)
    assert read_earlier([tmp_path / "r.csv"], ANOTHER, recipients).paid_otherwise == 1
    with ResultFile(tmp_path / "r.csv") as following:  # Which comes to nothing.
        following.begin([])
        following.finish([part], INTENT, unanswered=None)
    assert list(read_rows(tmp_path / "r.csv")) == [row]


def test_of_two_files_the_one_that_warns_counts(tmp_path: Path, recipients: Recipients) -> None:
    settled = _write(tmp_path / "one.csv", _row(), _row(line=3))
    otherwise = _write(tmp_path / "two.csv", _row(OTHER))
    assert read_earlier([settled, otherwise], INTENT, recipients).paid_otherwise == 1


def _issued(number: int, email: str, intent: Intent) -> Issued:
    transaction = {"email": email, "id": number, "amount": 10, "debited": True, "credited": False, "label": None}
    transaction |= {"sandbox": intent.sandbox, "organization": {"id": intent.organization_id}}
    transaction |= {"created_at": datetime.now(UTC).isoformat()}
    return Issued(batch_id=number, transactions=[transaction], current_balance=0, replayed=False)


PARTS = [Part(number=number, lines=[number + 1], emails=[f"{number}@example.com"]) for number in (1, 2, 3)]


def _send(results: ResultFile, part: Part, intent: Intent = INTENT) -> None:
    issued = _issued(part.number, part.emails[0], intent)
    results.write(part, issued, intent)


def test_what_a_killed_run_has_written_is_read_by_the_next_and_two_at_once_are_refused(
    tmp_path: Path, recipients: Recipients
) -> None:
    with ResultFile(tmp_path / "r.csv") as killed:
        killed.begin([])
        _send(killed, PARTS[0])
        assert read_earlier([killed.draft], INTENT, recipients).settled == 1, "it is on the disk before the next part"
        with pytest.raises(Refused, match="Another run sends this file"), ResultFile(tmp_path / "r.csv"):
            pass
    with ResultFile(tmp_path / "r.csv") as following:
        assert read_earlier(following.earlier(), INTENT, recipients).settled == 1


def test_what_killed_runs_have_written_stands_in_the_result_of_one_that_comes_less_far(
    tmp_path: Path, recipients: Recipients
) -> None:
    with ResultFile(tmp_path / "r.csv") as killed:
        killed.begin([])
        for part in PARTS[:2]:
            _send(killed, part)
    with ResultFile(tmp_path / "r.csv") as killed_at_once:
        killed_at_once.begin([])
    with ResultFile(tmp_path / "r.csv") as stopped:
        assert read_earlier(stopped.earlier(), INTENT, recipients).settled == 2
        stopped.begin([])
        _send(stopped, PARTS[0])
        stopped.finish(PARTS[1:], INTENT, unanswered=None)
    rows = [(row["line"], row["transaction_id"], row["reason"]) for row in read_rows(tmp_path / "r.csv")]
    assert rows == [("2", "1", ""), ("3", "2", ""), ("4", "", "not sent yet")]
    assert [path.name for path in tmp_path.iterdir()] == ["r.csv"]


@pytest.mark.parametrize("other", [ANOTHER, replace(INTENT, sandbox=True), replace(INTENT, organization_id=8)])
def test_what_a_killed_run_of_another_campaign_mode_or_organization_has_written_is_kept(
    tmp_path: Path, recipients: Recipients, other: Intent
) -> None:
    with ResultFile(tmp_path / "r.csv") as killed:
        killed.begin([])
        _send(killed, PARTS[0])
    with ResultFile(tmp_path / "r.csv") as another:
        another.begin([])
        _send(another, PARTS[0], other)
        another.finish([], other, unanswered=None)
        assert sorted(path.name for path in tmp_path.iterdir()) == ["r.1.csv", "r.csv"]
        assert read_earlier(another.earlier(), INTENT, recipients).settled == 1


@pytest.mark.parametrize("rehearsed_with", [replace(INTENT, sandbox=True), replace(INTENT, organization_id=8)])
def test_no_line_that_a_rehearsal_has_sent_counts_as_sent(
    tmp_path: Path, recipients: Recipients, rehearsed_with: Intent
) -> None:
    with ResultFile(tmp_path / "r.csv") as rehearsal:
        rehearsal.begin([])
        for part in PARTS:
            _send(rehearsal, part, rehearsed_with)
        rehearsal.finish([], rehearsed_with, unanswered=None)
    with ResultFile(tmp_path / "r.csv") as stopped:
        assert read_earlier(stopped.earlier(), INTENT, recipients).settled == 0
        stopped.begin([])
        _send(stopped, PARTS[0])
        stopped.finish(PARTS[1:], INTENT, unanswered=None)
    rows = [(row["line"], row["transaction_id"], row["reason"]) for row in read_rows(tmp_path / "r.csv")]
    assert rows == [("2", "1", ""), ("3", "", "not sent yet"), ("4", "", "not sent yet")]
    assert [row["organization_id"] for row in read_rows(tmp_path / "r.1.csv")] == [
        str(rehearsed_with.organization_id)
    ] * 3


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_a_result_that_a_spreadsheet_has_saved_still_tells_who_was_paid(
    tmp_path: Path, recipients: Recipients, delimiter: str
) -> None:
    ours = _write(tmp_path / "r.csv", _row(), _row(line=3, email="bob@example.com"))
    with ours.open(newline="") as file:
        cells = list(csv.reader(file))
    with ours.open("w", encoding="utf-8-sig", newline="") as file:  # As “CSV UTF-8” is saved.
        csv.writer(file, delimiter=delimiter).writerows(cells)
    assert read_earlier([ours], INTENT, recipients).settled == 2
    assert KnownRows([ours], INTENT).row(3, "bob@example.com") == cells[2]
    assert holds_another(ours, ANOTHER)


def test_a_result_without_its_lines_is_not_read_for_one_of_ours(tmp_path: Path, recipients: Recipients) -> None:
    result = tmp_path / "r.csv"
    with result.open("w", newline="") as file:
        row = {name: value for name, value in _row().items() if name != "line"}
        written = csv.DictWriter(file, row)
        written.writeheader()
        written.writerow(row)
    with pytest.raises(Refused, match=r"r\.csv was changed by another program"):
        read_earlier([result], INTENT, recipients)


def test_of_the_results_that_are_kept_one_may_be_deleted(tmp_path: Path, recipients: Recipients) -> None:
    _write(tmp_path / "r.2.csv", _row(OTHER))
    _write(tmp_path / "r.10.csv", _row(OTHER))
    _write(tmp_path / "r.csv.unfinished.3", _row(OTHER))
    with ResultFile(tmp_path / "r.csv") as results:
        assert [path.name for path in results.earlier()][2:] == ["r.csv.unfinished.3", "r.2.csv", "r.10.csv"]
        assert read_earlier(results.earlier(), INTENT, recipients).paid_otherwise == 1


def test_who_was_left_undebited_by_another_campaign_is_kept_beside_its_result(tmp_path: Path) -> None:
    for intent, expected in ((INTENT, ["r.csv", "r.undebited.csv"]), (ANOTHER, ["r.1.csv", "r.csv"])):
        with ResultFile(tmp_path / "r.csv") as results:
            results.begin([])
            _send(results, PARTS[0], intent)
            results.finish([], intent, unanswered=None)
            if intent is INTENT:
                write_undebited(results.path)
        assert {*expected} <= {path.name for path in tmp_path.iterdir()}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["r.1.csv", "r.csv", "r.undebited.1.csv"]


def test_a_run_that_never_began_leaves_nothing(tmp_path: Path) -> None:
    with ResultFile(tmp_path / "r.csv"):
        pass
    assert list(tmp_path.iterdir()) == []
