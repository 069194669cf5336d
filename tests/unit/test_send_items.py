"""`points send` of a list whose lines have amounts, references and labels of their own."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.unit.paying_front import Done, PayingFront

ANN, BOB, CY = "ann@example.com", "bob@example.com", "cy@example.com"
_LONGEST = "x" * 128


@pytest.fixture
def people(tmp_path: Path) -> Path:
    return tmp_path / "people.csv"


def _send(front: PayingFront, people: Path, content: str | bytes, *options: str) -> Done:
    people.write_bytes(content if isinstance(content, bytes) else content.encode())
    return front.run(people, *options)


def _bad(done: Done) -> dict[int, str]:
    return {line["line"]: line["reason"] for line in done.document["bad_lines"]}


@pytest.mark.parametrize("heading", ["amount", "Points", " POINTS ", "A-mount"])
def test_each_line_gets_its_own_amount(front: PayingFront, people: Path, heading: str) -> None:
    done = _send(front, people, f"email,{heading}\n{ANN},500\n{BOB}, 7 \n{CY},1000000000\n")
    assert (done.status, done.document["points"]) == (0, 1_000_000_507)
    assert list(zip(front.paid, front.points, strict=True)) == [(ANN, 500), (BOB, 7), (CY, 1_000_000_000)]
    assert done.document["amount"] is None
    assert done.document["amount_column"] == f"“{heading.strip()}” (2)"


_NO_AMOUNTS = """
    0 -5 +5 007 1.000 10.0 10.5 1'000 1e3 1E+03 €5 =5 five ٣ ² ½ 1_000 0x10 1000000001 nan "1,000" "10,5" "5;6"
"""


@pytest.mark.parametrize(
    "cell",
    [*_NO_AMOUNTS.split(), "1 000", "1\u00a0000", "1\u202f000", "9" * 19, '"1\n000"', "\u200b\u20605\u20056"],
)
def test_an_amount_that_is_not_a_plain_whole_number_is_not_guessed_at(
    front: PayingFront, people: Path, cell: str
) -> None:
    done = _send(front, people, f"email,amount\n{ANN},5\n{BOB},{cell}\n{CY},6\n")
    [(line, reason)] = _bad(done).items()
    assert (done.status, line, front.points) == (3, 3, [5, 6])
    assert reason.endswith("it must be a whole number from 1 to 1000000000, in digits alone.")
    assert len(reason) < 150


def test_of_two_columns_of_amounts_none_is_guessed(front: PayingFront, people: Path) -> None:
    content = f"email,amount,points\n{ANN},5,6\n"
    done = _send(front, people, content)
    assert (done.status, front.paid) == (1, [])
    assert "“amount” (2) and “points” (3) of people.csv may hold the amounts: keep one of them, or give" in done.told
    assert _send(front, people, content, "--amount", "7").status == 0
    assert front.points == [7]


@pytest.mark.parametrize("content", [f"email\n{ANN}\n", f"{ANN}\n", f"email,total amount,price\n{ANN},5,6\n"])
def test_without_any_amount_one_is_asked_for(front: PayingFront, people: Path, content: str) -> None:
    done = _send(front, people, content)
    assert (done.status, done.document, front.paid) == (2, {}, [])
    assert (
        "people.csv has no column “amount” or “points”: give the points of each recipient with --amount." in done.told
    )


def _body(front: PayingFront) -> Any:
    [body] = front.bodies
    return body


def test_what_lines_have_of_their_own_goes_along_and_nothing_else(front: PayingFront, people: Path) -> None:
    _send(front, people, f"email,amount,reference,label\n{ANN},5,4711,\n{BOB},6,,June\n{CY},7,,\n", "--label", "May")
    assert _body(front) == {
        "items": [
            {"email": ANN, "amount": 5, "reference": "4711"},
            {"email": BOB, "amount": 6, "label": "June"},
            {"email": CY, "amount": 7},
        ],
        "atomic": False,
        "label": "May",
        "expect": {"recipients": 3, "amount": 18},
    }


@pytest.mark.parametrize(
    ("references", "paid", "named"),
    [
        (["a", "b", "c"], 3, {}),
        (["a", "a", ""], 1, {3: "has the same reference as line 2.", 4: "is the same address as line 2: if that is"}),
        (["", "", "c"], 1, {3: "is the same address as line 2.", 4: "is the same address as line 2: if that is meant"}),
        (["a", "", "a"], 1, {3: "is the same address as line 2: if that is meant, give each", 4: "has the same ref"}),
        (["A", "a", " a "], 2, {4: "has the same reference as line 3."}),
        ([_LONGEST, f"{_LONGEST}x", "ü"], 2, {3: "has a reference of 129 characters: there may be at most 128."}),
        (["a b", "a\u00a0b", '"a\nb"'], 0, {2: "has the reference “a b”", 3: "“a?b”", 4: "“a?b”"}),
        (['"a,""b"""', "'=c", "=c"], 3, {}),
    ],
)
def test_an_address_may_come_twice_if_each_line_has_a_reference_of_its_own(
    front: PayingFront, people: Path, references: Sequence[str], paid: int, named: dict[int, str]
) -> None:
    rows = "".join(
        f"{email},{reference}\n" for email, reference in zip((ANN, ANN.upper(), ANN), references, strict=True)
    )
    done = _send(front, people, f"email,reference\n{rows}{BOB},\n", "--amount", "1")
    assert len(front.paid) == paid + 1
    found = _bad(done)
    assert found.keys() == named.keys()
    assert all(words in found[line] for line, words in named.items())


def test_a_reference_is_read_for_sure_or_not_at_all(front: PayingFront, people: Path) -> None:
    """Windows-1252 cannot be told from its neighbours; in a label a wrong letter does no harm."""
    content = f"email,reference,label\n{ANN},Nº1,Frühling\n{BOB},No1,Frühling\n".encode("cp1252")
    done = _send(front, people, content, "--amount", "1")
    assert (front.paid, list(_bad(done))) == ([BOB], [2])
    assert _body(front)["items"] == [{"email": BOB, "reference": "No1", "label": "Frühling"}]


def _plan(front: PayingFront, people: Path, content: str, *options: str) -> dict[str, str]:
    people.write_text(content)
    plan, _, _ = front.shown(people, *options).partition("\nBatches")
    return {name: value.strip() for name, _, value in (line.partition("  ") for line in plan.splitlines()) if value}


_EARNED = f"email;Points earned;Pers. No.;\n{ANN};7;r-1;20\n{BOB};9;r-2;30\n"


@pytest.mark.parametrize(
    ("options", "points", "not_used"),
    [
        (["--amount", "1,500"], [1500, 1500], ["“Points earned” (2)", "“Pers. No.” (3)", "column 4"]),
        (["--amount-column", "points EARNED", "--reference-column", "3"], [7, 9], ["column 4"]),
        (["--amount-column", "4", "--label-column", "Pers. No."], [20, 30], ["“Points earned” (2)"]),
        (["--column", "1", "--amount-column", "2", "--label-column", "4"], [7, 9], ["“Pers. No.” (3)"]),
    ],
)
def test_every_column_is_chosen_or_named_as_not_used(
    front: PayingFront, people: Path, options: list[str], points: list[int], not_used: list[str]
) -> None:
    done = _send(front, people, _EARNED, *options)
    assert (front.points, done.document["not_used"], done.document["bad"]) == (points, not_used, 0)


@pytest.mark.parametrize(
    ("options", "status", "words"),
    [
        ([], 2, "“Points earned” (2) and column 4 hold figures: choose with --amount-column."),
        (["--amount", "5", "--amount-column", "2"], 2, "not both"),
        (["--amount", "1.000"], 2, "is not a valid integer"),
        (["--amount-column", "Pts"], 1, "has no column Pts: its columns are"),
        (["--amount-column", "1"], 1, "“email” (1) of people.csv can be used for one thing only."),
        (["--amount-column", "2", "--label-column", "2"], 1, "“Points earned” (2) of people.csv can be used for one"),
    ],
)
def test_a_column_that_cannot_be_meant_pays_nobody(
    front: PayingFront, people: Path, options: list[str], status: int, words: str
) -> None:
    done = _send(front, people, _EARNED, *options)
    assert (done.status, front.paid) == (status, [])
    assert words in done.told


def test_the_plan_shows_the_sum_the_columns_and_the_first_and_last_addresses(front: PayingFront, people: Path) -> None:
    rows = "".join(f"u{number}@example.com,{number},r{number}\n" for number in range(1, 9))
    shown = _plan(front, people, f"email,points,reference\n{rows}bad@example.com,1.000,\n", "--label", "May")
    wanted = {
        "Column": "“email” (1)",
        "Amounts": "“points” (2)",
        "References": "“reference” (3)",
        "Lines": "9",
        "Left out": "1 bad line",
        "Recipients": "8",
        "First": "u1@example.com, u2@example.com, u3@example.com",
        "Last": "u6@example.com, u7@example.com, u8@example.com",
        "Label": "May",
        "Points each": "1 to 8",
        "In total": "36",
    }
    assert {name: shown.get(name) for name in wanted} == wanted
    assert "Not used" not in shown
