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


@pytest.mark.parametrize(
    "content",
    [
        f"name;E-Mail;Points\r\nAnn;{ANN};500\r\nBob;{BOB};7\r\n".encode("utf-16"),
        f"sep=;\r\nemail;amount\r\n{ANN};500\r\n{BOB};7\r\n".encode("cp1252"),
        f'\ufeff"email"\t"amount"\t"Straße"\r"{ANN}"\t"500"\tx\r"{BOB}"\t"7"\t\r'.encode(),
        f'email, amount ,,\n"{ANN}" , "500" ,,\n{BOB},\u00a07\u00a0,,\n,,,\n'.encode(),
    ],
)
def test_a_list_of_any_form_is_read_alike(front: PayingFront, people: Path, content: bytes) -> None:
    assert _send(front, people, content).status == 0
    assert list(zip(front.paid, front.points, strict=True)) == [(ANN, 500), (BOB, 7)]


@pytest.mark.parametrize(
    "cell",
    [
        *(
            "0",
            "-5",
            "+5",
            "007",
            "1.000",
            "10.0",
            "10.5",
            "1 000",
            "1\u00a0000",
            "1\u202f000",
            "1'000",
            "1e3",
            "1E+03",
        ),
        *("5 points", "€5", "=5", "five", "٣", "²", "½", "1_000", "0x10", "1000000001", "9" * 19, "nan"),
        pytest.param("9" * 5_000, id="5000 digits"),
        *('"1,000"', '"10,5"', '"1\n000"', '"5;6"', "true", "#REF!", "\u200b\u20605\u20056"),
    ],
)
def test_an_amount_that_is_not_a_plain_whole_number_is_not_guessed_at(
    front: PayingFront, people: Path, cell: str
) -> None:
    done = _send(front, people, f"email,amount\n{ANN},5\n{BOB},{cell}\n{CY},6\n")
    [(line, reason)] = _bad(done).items()
    assert (done.status, line, front.points) == (3, 3, [5, 6])
    assert reason.endswith("it must be a whole number from 1 to 1000000000, in digits alone.")
    assert len(reason) < 150


@pytest.mark.parametrize("cell", ["", " ", "\u00a0", "\u200b", '""'])
def test_a_blank_amount_is_none(front: PayingFront, people: Path, cell: str) -> None:
    done = _send(front, people, f"email,amount\n{ANN},{cell}\n{BOB},6\n")
    assert (done.status, _bad(done), front.paid) == (3, {2: "has no amount."}, [BOB])


def test_an_amount_is_bounded_by_what_this_service_allows(front: PayingFront, people: Path) -> None:
    front.amount_max = 100
    done = _send(front, people, f"email,amount\n{ANN},100\n{BOB},101\n")
    assert (front.points, list(_bad(done))) == ([100], [3])
    assert "a whole number from 1 to 100," in _bad(done)[3]
    front.forget()
    front.amount_max = 2**63 - 1
    front.balance = 2**63 - 1
    assert _send(front, people, f"email,amount\n{ANN},{2**63 - 1}\n{BOB},{2**63}\n", "--again", "2").status == 3
    assert front.points == [2**63 - 1]


@pytest.mark.parametrize("row", [f"{ANN},1,000", f"{ANN},5,", f"{ANN}", f"5,{ANN}"])
def test_a_row_that_does_not_fit_the_heading_pays_nobody(front: PayingFront, people: Path, row: str) -> None:
    done = _send(front, people, f"email,amount\n{BOB},5\n{row}\n")
    assert (done.status, list(_bad(done)), front.paid) == (3, [3], [BOB])


def test_of_two_columns_of_amounts_none_is_guessed(front: PayingFront, people: Path) -> None:
    content = f"email,amount,points\n{ANN},5,6\n"
    done = _send(front, people, content)
    assert (done.status, front.paid) == (1, [])
    assert "“amount” (2) and “points” (3) of people.csv may hold the amounts: keep one of them, or give" in done.told
    assert _send(front, people, content, "--amount", "7").status == 0
    assert front.points == [7]


@pytest.mark.parametrize("column", ["2", "Adresse"])
def test_a_list_whose_addresses_are_named_by_number_has_its_heading_all_the_same(
    front: PayingFront, people: Path, column: str
) -> None:
    done = _send(front, people, f"Kunde,Adresse,Points,Chef\nAnn,{ANN},5,{CY}\nBob,{BOB},6,{CY}\n", "--column", column)
    assert (done.status, front.paid, front.points) == (0, [ANN, BOB], [5, 6])


@pytest.mark.parametrize("heading", ["reference", "label"])
def test_of_two_columns_of_one_name_none_is_guessed(front: PayingFront, people: Path, heading: str) -> None:
    done = _send(front, people, f"email,{heading},{heading}\n{ANN},5,6\n", "--amount", "5")
    assert (done.status, front.paid) == (1, [])
    assert f"“{heading}” (2) and “{heading}” (3) of people.csv may hold the {heading}s: keep one" in done.told


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


def test_a_list_with_nothing_of_its_own_is_sent_as_ever(front: PayingFront, people: Path) -> None:
    _send(front, people, f"email,reference,label,points\n{ANN},,,5\n{BOB}, ,\u200b,6\n", "--amount", "10")
    expected = {"recipients": 2, "amount": 20}
    assert _body(front) == {"recipients": [ANN, BOB], "amount": 10, "atomic": False, "expect": expected}
    front.forget()
    _send(front, people, f"{ANN}\n", "--amount", "10", "--label", "May", "--atomic")
    whole = {"recipients": [ANN], "amount": 10, "atomic": True, "label": "May"}
    assert _body(front) == {**whole, "expect": {"recipients": 1, "amount": 10}}


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


def test_with_an_amount_for_all_references_and_labels_are_used_all_the_same(front: PayingFront, people: Path) -> None:
    done = _send(front, people, f"email,amount,Reference\n{ANN},5,4711\n{BOB},6,\n", "--amount", "10")
    assert _body(front) == {
        "items": [{"email": ANN, "reference": "4711"}, {"email": BOB}],
        "amount": 10,
        "atomic": False,
        "expect": {"recipients": 2, "amount": 20},
    }
    assert (done.document["reference_column"], done.document["amount_column"]) == ("“Reference” (3)", None)


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


def test_a_line_that_is_left_out_takes_no_reference(front: PayingFront, people: Path) -> None:
    rows = f"nonsense,a,5\n{ANN},a,x\n{BOB},a,5\n"
    done = _send(front, people, f"email,reference,amount\n{rows}")
    assert (list(_bad(done)), front.paid) == ([2, 3], [BOB])


def test_a_label_is_up_to_255_characters_on_one_line(front: PayingFront, people: Path) -> None:
    rows = f'{ANN},{"ä" * 255}\n{BOB},{"ä" * 256}\n{CY},"a\nb"\n'
    done = _send(front, people, f"email,label\n{rows}", "--amount", "1")
    assert (front.paid, list(_bad(done))) == ([ANN], [3, 4])


def test_a_reference_is_read_for_sure_or_not_at_all(front: PayingFront, people: Path) -> None:
    """Windows-1252 cannot be told from its neighbours; in a label a wrong letter does no harm."""
    content = f"email,reference,label\n{ANN},Nº1,Frühling\n{BOB},No1,Frühling\n".encode("cp1252")
    done = _send(front, people, content, "--amount", "1")
    assert (front.paid, list(_bad(done))) == ([BOB], [2])
    assert _body(front)["items"] == [{"email": BOB, "reference": "No1", "label": "Frühling"}]


@pytest.mark.parametrize("field", ["email", "amount", "reference"])
def test_an_item_that_the_service_refuses_stops_the_send_with_its_line(
    front: PayingFront, people: Path, field: str
) -> None:
    front.refusal = {f"items.1.{field}": ["It is refused."]}
    done = _send(front, people, f"email,label\n{ANN},x\nnonsense,\n{BOB},\n", "--amount", "1")
    assert "the service refuses line 4: It is refused." in done.told


def _plan(front: PayingFront, people: Path, content: str, *options: str) -> dict[str, str]:
    people.write_text(content)
    plan, _, _ = front.shown(people, *options).partition("\nBatches")
    return {name: value.strip() for name, _, value in (line.partition("  ") for line in plan.splitlines()) if value}


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


def test_the_plan_names_a_column_of_amounts_that_is_not_used(front: PayingFront, people: Path) -> None:
    shown = _plan(front, people, f"email,amount,points\n{ANN},5,6\n", "--amount", "10")
    assert shown["Not used"] == "“amount” (2), “points” (3)"
    assert (shown["Points each"], shown["In total"]) == ("10", "10")


@pytest.mark.parametrize(
    ("balance", "left"), [(4, "pays nobody."), (10, "pays only the first 1;"), (11, "the first 2;")]
)
def test_the_plan_says_how_far_the_balance_reaches(front: PayingFront, people: Path, balance: int, left: str) -> None:
    front.balance = balance
    shown = _plan(front, people, f"email,amount\n{ANN},5\n{BOB},6\n{CY},1\nd@example.com,9\n")
    assert left in shown["Left after"]
    assert len(front.paid) == balance // 5 - (balance == 10)


def test_in_a_list_of_several_batches_each_pays_as_far_as_the_balance_reaches(front: PayingFront, people: Path) -> None:
    front.balance, front.recipients_max = 7, 2
    shown = _plan(front, people, f"email,amount\n{ANN},5\n{BOB},9\n{CY},1\nd@example.com,2\n")
    assert shown["Left after"] == "The balance pays only 2; the others are not debited."
    assert front.paid == [ANN, CY]
