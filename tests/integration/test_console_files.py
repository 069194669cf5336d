"""The lists that the console reads and writes: workbooks, pasted addresses, lines that are left out and come back."""

import csv
import re
import zipfile
from io import BytesIO, StringIO

import pytest
from python_calamine import CalamineWorkbook
from sqlalchemy import text
from werkzeug.test import TestResponse

from app.postgres.database import transaction
from app.recipient_files.workbook_process import text_of
from tests.integration import books
from tests.integration.test_console_send import checked, confirm, hidden, upload
from tests.integration.visitors import Visitor, words_of
from tests.unit.workbooks import Rows, xlsx

pytestmark = pytest.mark.usefixtures("database", "broker")


def answered(of: Visitor, path: str, **fields: str) -> TestResponse:
    """Answer the open question of a list; return its page."""
    answer = of.post(path, of="/account", **fields)
    return answer if answer.status_code == 400 else of.get(path)


def test_of_a_workbook_the_sheet_and_then_the_column_are_asked_for(ann: Visitor) -> None:
    may: Rows = [["email", "Mail", "amount"], ["ann@example.com", "boss@example.com", 5], ["bob@example.com", None, 6]]
    june: Rows = [["email", "amount"], ["cy@example.com", 7]]
    path = checked(ann, xlsx({"Notes": [["none"]], "May": may, "June": june}, hidden="June"))
    asked = ann.get(path)
    assert "has addresses in 2 sheets: “May” and “June” (hidden)" in words_of(asked)
    assert "“May”: 2 lines with addresses" in words_of(asked)
    assert "Choose the sheet." in answered(ann, path).text
    columns = answered(ann, path, sheet="May")
    assert "“email” (1) ann@example.com, bob@example.com" in words_of(columns)
    assert "“Mail” (2) boss@example.com" in words_of(columns)
    assert "Recipients 1" in words_of(answered(ann, path, sheet="June"))
    assert "Choose the column." in answered(ann, path, sheet="May").text or "“Mail” (2)" in ann.get(path).text
    found = words_of(answered(ann, path, sheet="May", column="0"))
    assert "Sheet “May” Address column “email” (1)" in found
    assert "the addresses in the sheet “June” (hidden)" in found
    assert confirm(ann, path).status_code == 303
    books.drain_all(ann.organization_id)
    assert books.balance_of(ann.organization_id) == 1_000 - 11


_LIST = """name,e-mail,amount,reference,label
Ann,ann@example.com,10,r-1,Spring
Bob,bob@example,20,-r2,"=Summer, late"
Cy,+cy@example.com,thirty,'-r3,'-Spring
Dan,x,dan@example.com,40,r-4,Spring
"""


@pytest.mark.parametrize("kind", ["csv", "xlsx"])
def test_lines_that_are_left_out_come_back_whole_and_mended_are_paid_as_they_say(ann: Visitor, kind: str) -> None:
    path = checked(ann, _LIST)
    file = ann.get(f"{path}/bad-lines.{kind}")
    assert file.headers["Content-Disposition"] == f"attachment; filename=people.left-out.{kind}"
    unmended = upload(ann, file.data)
    assert unmended.status_code == 400, "nobody is paid by an unmended line"
    rows = _rows(file.data, kind)
    assert rows[0][:7] == ["name", "e-mail", "amount", "reference", "label", "line", "reason"]
    assert rows[3][5:6] + rows[3][7:] == ["5", "Dan", "x", "dan@example.com", "40", "r-4", "Spring"]
    rows[1][1], rows[2][2] = "bob@example.com", "30"
    mended = checked(ann, _written(rows, kind))
    assert "Recipients 2 Points in all 50 Lines left out 1" in words_of(ann.get(mended))
    assert confirm(ann, mended).status_code == 303
    books.drain_all(ann.organization_id)
    outcome = list(csv.DictReader(StringIO(ann.get(f"{mended}/outcome.csv").text)))
    assert [(row["email"].strip("'"), row["amount"]) for row in outcome[:2]] == [
        ("bob@example.com", "20"),
        ("+cy@example.com", "30"),
    ]
    with transaction() as connection:
        sent = connection.execute(text("SELECT reference, label FROM transactions ORDER BY position")).all()
    assert [tuple(one) for one in sent] == [("-r2", "=Summer, late"), ("'-r3", "'-Spring")]


def _rows(data: bytes, kind: str) -> list[list[str]]:
    if kind == "csv":
        return list(csv.reader(StringIO(data.decode("utf-8-sig"))))
    with CalamineWorkbook.from_filelike(BytesIO(data)) as book:
        return [[text_of(cell) for cell in row] for row in book.get_sheet_by_index(0).iter_rows()]


def _written(rows: list[list[str]], kind: str) -> bytes:
    if kind == "xlsx":
        return xlsx({"People": [[cell or None for cell in row] for row in rows]})
    file = StringIO()
    csv.writer(file).writerows(rows)
    return file.getvalue().encode("utf-8-sig")


def test_a_file_keeps_its_name_also_beyond_latin_letters(ann: Visitor) -> None:
    form = hidden(ann.get("/send")) | {"amount": "5"}
    list_file = (BytesIO(b"email\nx\nann@example.com\n"), "Frühling – 2026.csv")
    path = ann.client.post("/console/live/send", data=form | {"file": list_file}).location
    named = ann.get(f"{path}/bad-lines.csv").headers["Content-Disposition"]
    assert named.endswith("; filename*=UTF-8''Fr%C3%BChling%20%E2%80%93%202026.left-out.csv")


def test_a_result_file_is_also_a_workbook_and_holds_no_formula(ann: Visitor) -> None:
    path = checked(ann, 'email,amount,label\nann@example.com,5,"=1+1"\n')
    confirm(ann, path)
    [batch_id] = books.drain_all(ann.organization_id)
    for page in (f"{path}/outcome.xlsx", f"/batches/{batch_id}/outcome.xlsx"):
        [heading, row] = _rows(ann.get(page).data, "xlsx")
        assert dict(zip(heading, row, strict=True))["label"] == "=1+1"
        assert b"<f>" not in zipfile.ZipFile(BytesIO(ann.get(page).data)).read("xl/worksheets/sheet1.xml")


def test_a_file_that_is_no_readable_workbook_is_told_beside_its_field(ann: Visitor) -> None:
    refused = upload(ann, b"PK\x03\x04 and no more")
    assert refused.status_code == 400
    assert "cannot be read as a workbook" in refused.text


def test_the_example_file_is_a_list_as_it_is(ann: Visitor) -> None:
    example = ann.get("/send/example.xlsx")
    assert example.headers["Content-Disposition"] == "attachment; filename=points.xlsx"
    assert re.search("An example file", ann.get("/send").text)
    found = words_of(ann.get(checked(ann, BytesIO(example.data).getvalue())))
    assert "Recipients 3 Points in all 400 Lines left out 0" in found


@pytest.mark.parametrize(
    ("pasted", "told"),
    [
        ("ann@example.com, bob@example.com; cy@example.com", "Recipients 3"),
        ('Ann <ann@example.com>; "Lee, Bob" <bob@example.com>,\n Lee, Cy <cy@example.com>', "Recipients 3"),
        ("ann@example.com,\nbob@example.com,\ncy@example.com,\n", "Recipients 3"),
        ("email\nann@example.com\nbob@example.com", "Recipients 2"),
        ("ann@example.com, x@y, bob@example.com", "Recipients 2 Points in all 10 Lines left out 1"),
        # Perhaps a table of people and their managers.
        ("ann@example.com,boss@example.com\nbob@example.com,boss@example.com", "may hold the addresses that are meant"),
    ],
)
def test_pasted_addresses_are_read_as_mail_programs_write_them(ann: Visitor, pasted: str, told: str) -> None:
    answer = ann.post("/send", of="/send", pasted=pasted, amount="5")
    assert answer.status_code == 303, words_of(answer)
    assert told in words_of(ann.get(answer.location))


def test_other_text_that_is_pasted_pays_nobody(ann: Visitor) -> None:
    answer = ann.post("/send", of="/send", pasted="ask ann@example.com or bob@example.com", amount="5")
    assert answer.status_code == 400, words_of(answer)
