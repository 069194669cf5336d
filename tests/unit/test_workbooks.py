"""Workbooks as lists: each row is paid or named with its number, as in a text, and no workbook harms the reader."""

import io
import re
import zipfile
from collections.abc import Callable
from datetime import date, datetime
from pathlib import Path

import pytest

from tests.unit.paying_front import PayingFront
from tests.unit.workbooks import MISLEADING, Rows, misleading_ods, misleading_xlsx, ods, xlsx

ADA, BOB, CY = "ada@example.com", "bob@example.com", "cy@example.com"
ROWS: Rows = [
    ["E-Mail", "Amount", "Reference", "Label"],
    [ADA, 10, "r-1", "Spring"],
    ["grace@example.com", 20.0, 1002, None],
    ["nobody", 30, "r-3", None],
]


@pytest.mark.parametrize(
    ("ending", "content"),
    [
        ("xlsx", xlsx({"Notes": [["Nothing here"]], "People": ROWS})),
        ("ods", ods(ROWS)),
        ("xls", (Path(__file__).parent / "people.xls").read_bytes()),
    ],
)
def test_a_workbook_of_each_kind_is_paid_row_by_row(
    front: PayingFront, tmp_path: Path, ending: str, content: bytes
) -> None:
    path = tmp_path / f"people.{ending}"
    path.write_bytes(content)
    done = front.run(path)
    assert (front.paid, front.points) == ([ADA, "grace@example.com"], [10, 20])
    assert [item.get("reference") for item in front.bodies[0]["items"]] == ["r-1", "1002"]
    assert [(bad["line"], bad["email"]) for bad in done.document["bad_lines"]] == [(4, "nobody")]
    assert (done.status, done.document["sheet"]) == (3, "People")
    assert (tmp_path / f"people.{ending}.result.csv").exists()


_MISLEADING = {
    "xlsx": misleading_xlsx(),
    "ods": misleading_ods(),
    "xls": (Path(__file__).parent / "misleading.xls").read_bytes(),
}


@pytest.mark.parametrize("ending", _MISLEADING)
def test_a_cell_that_misleads_is_a_bad_line_that_says_what_is_in_it(
    front: PayingFront, tmp_path: Path, ending: str
) -> None:
    path = tmp_path / f"people.{ending}"
    path.write_bytes(_MISLEADING[ending])
    done = front.run(path, "--hidden-rows", "include")
    assert front.paid == ["good@example.com", "hidden@example.com"]
    reasons = {bad["email"].partition("@")[0]: bad["reason"] for bad in done.document["bad_lines"]}
    assert reasons.keys() | {"formula"} == MISLEADING.keys()
    assert ("formula" in reasons) == (ending != "xls")
    for name, reason in reasons.items():
        assert reason.startswith(MISLEADING[name]), reason
    assert [bad["line"] for bad in done.document["bad_lines"]] == list(range(4, 4 + len(reasons)))


@pytest.mark.parametrize("ending", _MISLEADING)
def test_hidden_rows_are_counted_and_nobody_is_paid_until_it_is_said_what_becomes_of_them(
    front: PayingFront, tmp_path: Path, ending: str
) -> None:
    path = tmp_path / f"people.{ending}"
    path.write_bytes(_MISLEADING[ending])
    asked = front.run(path)
    assert ": 1 of these rows is hidden in the workbook. Choose with --hidden-rows include or leave-out." in asked.told
    assert (asked.status, front.paid) == (1, [])
    assert re.search("Hidden rows +1, left out\n", front.shown(path, "--hidden-rows", "leave-out"))
    assert front.paid == ["good@example.com"]
    done = front.run(path, "--hidden-rows", "leave-out")
    hidden = {"line": 3, "email": "hidden@example.com, 2, r-2, Spring"}
    assert done.document["bad_lines"][0] == hidden | {"reason": "is hidden in the workbook, and left out as you chose."}


def test_what_misleads_in_a_column_that_is_not_used_does_no_harm(front: PayingFront, tmp_path: Path) -> None:
    path = tmp_path / "people.xlsx"
    path.write_bytes(misleading_xlsx())
    columns = ("--amount", "1", "--reference-column", "4", "--label-column", "1")
    assert "can be used for one thing only" in front.run(path, "--hidden-rows", "include", *columns).told
    done = front.run(path, "--hidden-rows", "include", "--amount", "1", "--column", "1")
    assert "percent@example.com" in front.paid
    assert "error@example.com" not in front.paid
    assert done.status == 3


def test_the_same_rows_as_text_are_the_same_list_and_not_paid_again(front: PayingFront, tmp_path: Path) -> None:
    book, text = tmp_path / "people.xlsx", tmp_path / "people.csv"
    book.write_bytes(xlsx({"People": ROWS[:2]}))
    text.write_text(f"email,amount,reference,label\n{ADA},10,r-1,Spring\n")
    front.run(book)
    assert front.run(text).document["replayed_batches"] == 1
    assert front.paid == [ADA]


def test_a_cell_is_read_as_what_a_person_sees(front: PayingFront, tmp_path: Path) -> None:
    path = tmp_path / "people.xlsx"
    people = [f"p{number}@example.com" for number in range(6)]
    moment = datetime(2026, 1, 31, 9, 30)  # noqa: DTZ001  # Excel has no zones.
    labels = [date(2026, 1, 31), moment, 0.1 + 0.2, True, 123456789012, "two\nlines"]
    rows = [[email, 1, label] for email, label in zip(people, labels, strict=True)]
    path.write_bytes(
        xlsx({"People": [["email", "amount", "label"], *rows, [f"{ADA}\n{BOB}", 1], [CY, 1.5], [CY, "x"]]})
    )
    done = front.run(path)
    assert [item["label"] for item in front.bodies[0]["items"]] == [
        *("2026-01-31", "2026-01-31 09:30:00", "0.3", "TRUE", "123456789012")
    ]
    assert {bad["line"]: bad["reason"].partition(":")[0] for bad in done.document["bad_lines"]} == {
        7: "has a label of several lines, or with a tab or another control character.",
        8: "must be one e-mail address",
        9: "has the amount “1.5”",
        10: "has the amount “x”",
    }


def test_a_row_is_named_by_its_number_in_the_sheet_wherever_the_table_begins(
    front: PayingFront, tmp_path: Path
) -> None:
    path = tmp_path / "people.xlsx"
    table = [[None, "Campaign"], [], [None, "Name", "E-Mail"], [None, "Ada", ADA], [], [None, "Bob", BOB, "a note"]]
    path.write_bytes(xlsx({"People": [[], *table]}))
    done = front.run(path, "--amount", "1")
    assert front.paid == [ADA]
    assert {bad["line"]: bad["reason"] for bad in done.document["bad_lines"]} == {
        2: "is above the heading.",
        7: "has something in column 4, which has no heading.",
    }
    assert done.document["column"] == "“E-Mail” (3)"


def test_of_several_sheets_with_addresses_none_is_guessed(front: PayingFront, tmp_path: Path) -> None:
    path = tmp_path / "people.xlsx"
    sheets = {"Plan": [["No address"]], "May": [["email"], [ADA], [BOB]], "June": [["email"], [CY]]}
    path.write_bytes(xlsx(sheets, hidden="May"))
    asked = front.run(path, "--amount", "1")
    assert asked.told == (
        "people.xlsx has addresses in 2 sheets: “May” (hidden) and “June”. Choose one with --sheet, by name or number."
    )
    wrong = front.run(path, "--amount", "1", "--sheet", "July")
    assert wrong.told == "people.xlsx has no sheet July: it has “Plan”, “May” (hidden), “June”."
    assert front.paid == []
    assert "the addresses in the sheet “June”" in front.shown(path, "--amount", "1", "--sheet", "may ")
    assert front.paid == [ADA, BOB]
    (tmp_path / "people.xlsx.result.csv").unlink()
    front.run(path, "--amount", "1", "--sheet", "3")
    assert front.paid == [ADA, BOB, CY]
    (text := tmp_path / "people.csv").write_text(f"email\n{ADA}\n")
    assert front.run(text, "--amount", "1", "--sheet", "May").told == "people.csv has no sheets: it is not a workbook."


def _inflated(marks: str) -> bytes:
    """Return a workbook of some kilobytes whose first sheet holds a gigabyte."""
    file, made = io.BytesIO(), zipfile.ZipFile(io.BytesIO(xlsx({"People": ROWS})))
    with made, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as inflated:
        for name in made.namelist():
            with inflated.open(name, "w") as part:
                content = made.read(name)
                before, mark, after = content.partition(b"</sheetData>")
                part.write(before)
                for _ in range(1_000 if mark else 0):
                    part.write(marks.encode() * (1_000_000 // len(marks)))
                part.write(mark + after)
    return file.getvalue()


def _with_entities() -> bytes:
    """Return a workbook whose sheet declares an entity, which might grow without end or name another file."""
    file, made = io.BytesIO(), zipfile.ZipFile(io.BytesIO(xlsx({"People": ROWS})))
    with made, zipfile.ZipFile(file, "w") as changed:
        for name in made.namelist():
            content = made.read(name).replace(b"<worksheet", b'<!DOCTYPE a [<!ENTITY a "b">]><worksheet', 1)
            changed.writestr(name, content)
    return file.getvalue()


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        pytest.param(
            lambda: xlsx({"People": [["email"], [ADA], *[[]] * 1_000_000, [None] * 16_000 + [BOB]]}),
            "is too large",
            id="a cell far away",
        ),
        pytest.param(
            lambda: _inflated('<row><c t="inlineStr"><is><t>a@example.com</t></is></c></row>'),
            "is too large",
            id="inflated",
            marks=pytest.mark.long,
        ),
        pytest.param(_with_entities, "cannot be read as a workbook", id="entities"),
        pytest.param(lambda: xlsx({"People": ROWS})[:2_000], "cannot be read as a workbook", id="cut off"),
        pytest.param(lambda: b"PK\x03\x04" + bytes(100), "cannot be read as a workbook", id="no workbook"),
        pytest.param(lambda: b"\xd0\xcf\x11\xe0" + bytes(100), "cannot be read as a workbook", id="no old workbook"),
        pytest.param(lambda: xlsx({"People": [["No address"]]}), "No sheet of people.xlsx holds", id="no address"),
    ],
)
def test_a_workbook_that_cannot_be_read_stops_with_a_sentence(
    front: PayingFront, tmp_path: Path, made: Callable[[], bytes], reason: str
) -> None:
    path = tmp_path / "people.xlsx"
    path.write_bytes(made())
    done = front.run(path, "--amount", "1")
    assert reason in done.told
    assert (done.status, front.paid) == (1, [])
