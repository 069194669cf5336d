"""A list of amounts, references and labels of its own, sent again: it is paid once, whatever was changed in between."""

import csv
import re
from pathlib import Path

import pytest

from tests.unit.paying_front import PayingFront, result_of, rows_of

ANN, BOB, CY = "ann@example.com", "bob@example.com", "cy@example.com"
_LIST = f"email,amount,reference,label\n{ANN},5,A-1,May\n{ANN},6,A-2,\n{BOB},7,,\n"


@pytest.fixture
def people(tmp_path: Path) -> Path:
    path = tmp_path / "people.csv"
    path.write_text(_LIST)
    return path


def test_a_list_sent_twice_is_paid_once_in_whatever_form_and_without_itsresult_of(
    front: PayingFront, people: Path
) -> None:
    assert front.run(people).document["points"] == 18
    before = result_of(people).read_bytes()
    rows = ["x;Reference;E-Mail;LABEL;Points", f";A-1;{ANN.upper()};May;5", f";A-2;{ANN};;6", f";;{BOB.title()};;7"]
    people.write_bytes("\r\n".join(rows).encode("utf-16"))
    done = front.run(people)
    assert (done.status, done.document["replayed_batches"], front.points) == (0, 1, [5, 6, 7])
    assert result_of(people).read_bytes() == before
    result_of(people).unlink()
    assert front.run(people).document["replayed_batches"] == 1
    assert len(rows_of(result_of(people))) == 3
    assert front.points == [5, 6, 7]


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("6,A-2", "60,A-2", "Line 3 of people.csv has 60 points, but had 6, and what was sent cannot be changed."),
        (f"{BOB},7,,\n", f"{BOB},7,,\n{CY},8,,\n", "3 of its recipients were paid then with this label, or may"),
        (f"{BOB},7,,\n", f"{BOB},70,,\n{CY},8,,\n", "3 of its recipients were paid then with this label, or may"),
        (f"{ANN},6,A-2", f"{CY},6,A-2", "3 of its recipients were paid then"),
        ("A-2", "", "2 of its recipients were paid then"),
        ("A-1", "B-1", "2 of its recipients were paid then"),
        (",May", ",", "2 of its recipients were paid then"),
        (f"{BOB},7,,\n", f"{BOB},7,B-1,\n", "3 of its recipients were paid then"),
        (f"{BOB},7,,\n", f"{BOB},7,,June\n", "3 of its recipients were paid then"),
        (f"{ANN},5,A-1,May\n{ANN},6,A-2,\n", f"{ANN},11,,May\n", "2 of its recipients were paid then"),
    ],
)
def test_a_list_that_was_changed_since_pays_nobody_again(
    front: PayingFront, people: Path, before: str, after: str, words: str
) -> None:
    front.run(people)
    assert before in _LIST
    people.write_text(_LIST.replace(before, after))
    done = front.run(people)
    assert (done.status, front.points) == (1, [5, 6, 7])
    assert words in done.told
    assert front.run(people, "--again", "once more").status in (0, 3), "unless that is what is wanted"
    assert len(front.points) > 3


@pytest.mark.parametrize(
    "content",
    [
        f"email,amount,reference\n{ANN},5,A-3\n{ANN},6,A-4\n{BOB},7,B-1\n",
        f"email,amount,label\n{ANN},5,June\n{BOB},7,July\n",
        f"email,amount\n{CY},5\n",
    ],
)
def test_new_references_new_labels_and_new_people_are_new_payments(
    front: PayingFront, people: Path, content: str
) -> None:
    people.write_text(f"email,amount,reference,label\n{ANN},5,A-1,May\n{ANN},6,A-2,May\n{BOB},7,B-0,May\n")
    front.run(people)
    people.write_text(content)
    done = front.run(people)
    assert (done.status, len(front.paid)) == (0, 3 + content.count("@"))


def test_offered_list_pays_the_unpaid_recipients_the_same_items(front: PayingFront, people: Path) -> None:
    rows = [[ANN, "5", "=A", "-May"], [ANN, "6", "'=A", ""], [BOB, "1", "'b", 'x,"y'], [CY, "2", "", ""]]
    with people.open("w", newline="") as file:
        csv.writer(file).writerows([["email", "amount", "reference", "label"], *rows])
    front.balance = 8
    first = front.run(people, "--label", "June")
    assert (first.document["debited"], first.document["not_debited"]) == (1, 3), "the first too high ends the paying"
    unpaid = Path(first.document["undebited"])
    assert not re.search(r"(^|[,\n])\"?[=+\-@]", unpaid.read_text())
    told = front.bodies[0]["items"][1:]
    front.balance = 1_000
    second = front.run(unpaid, "--label", "June")
    assert (second.status, second.document["debited"], front.points) == (0, 3, [5, 6, 1, 2])
    spelled_out = [{"label": "June", **item} for item in told]
    assert front.bodies[1]["items"] == spelled_out
    for path in (people, unpaid):
        front.run(path, "--label", "June")
    assert front.points == [5, 6, 1, 2]
