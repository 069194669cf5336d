"""The lists of the console: as they come and go as files, made from sent ones, found again, and dropped in time."""

import csv
import re
import zipfile
from io import BytesIO, StringIO

import pytest
from flask import Flask
from python_calamine import CalamineWorkbook
from sqlalchemy import text
from werkzeug.http import parse_options_header
from werkzeug.test import TestResponse

from app.console import slow_work
from app.postgres.database import transaction
from app.recipient_files import checking
from app.recipient_files.workbook_process import text_of
from app.uploads import uploads
from tests.conftest import forget_everything
from tests.integration import books
from tests.integration.console_lists import checked, confirm, hidden, rows_of, sent, upload, value
from tests.integration.visitors import Visitor, forgery_token, visitor, words_of
from tests.unit.workbooks import Rows, xlsx

pytestmark = pytest.mark.usefixtures("database", "broker")

_SEVEN = "email\n" + "".join(f"p{number}@example.com\n" for number in range(7))


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let three lines be a long list, and two recipients a batch."""
    monkeypatch.setenv("POINTS_RECIPIENTS_MAX", "2")
    forget_everything()
    monkeypatch.setattr(checking, "TOLD_EVERY_LINES", 3)


def test_of_a_workbook_the_sheet_and_then_the_column_are_asked_for(ann: Visitor) -> None:
    may: Rows = [["email", "Mail", "amount"], ["ann@example.com", "boss@example.com", 5], ["bob@example.com", None, 6]]
    june: Rows = [["email", "amount"], ["cy@example.com", 7]]
    path = checked(ann, xlsx({"Notes": [["none"]], "May": may, "June": june}, hidden="June"))
    assert "has addresses in 2 sheets: “May” and “June” (hidden)" in words_of(ann.get(path))

    def answered(**fields: str) -> str:
        answer = ann.post(path, of="/account", **fields)
        return words_of(answer if answer.status_code == 400 else ann.get(path))

    assert "Choose the sheet." in answered()
    columns = answered(sheet="May")
    assert "“email” (1) ann@example.com, bob@example.com" in columns
    assert "“Mail” (2) boss@example.com" in columns
    assert "Recipients 1" in answered(sheet="June")
    answered(sheet="May")
    found = answered(sheet="May", column="0")
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
    assert upload(ann, file.data).status_code == 400, "nobody is paid by an unmended line"
    rows = _rows(file.data, kind)
    assert rows[0][:7] == ["name", "e-mail", "amount", "reference", "label", "line", "reason"]
    assert rows[3][5:6] + rows[3][7:] == ["5", "Dan", "x", "dan@example.com", "40", "r-4", "Spring"]
    rows[1][1], rows[2][2] = "bob@example.com", "30"
    mended = sent(ann, _written(rows, kind))
    outcome = rows_of(ann.get(f"{mended}/outcome.csv"))
    assert [(row["email"].strip("'"), row["amount"]) for row in outcome[:2]] == [
        ("bob@example.com", "20"),
        ("+cy@example.com", "30"),
    ]
    with transaction() as connection:
        kept = connection.execute(text("SELECT reference, label FROM transactions ORDER BY position")).all()
    assert [tuple(one) for one in kept] == [("-r2", "=Summer, late"), ("'-r3", "'-Spring")]


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


def test_result_files_are_named_in_any_script_and_a_workbook_holds_no_formula(ann: Visitor) -> None:
    path = sent(ann, 'email,amount,label\nann@example.com,5,"=1+1"\n')
    for page in (f"{path}/outcome.xlsx", f"/batches/{value('SELECT max(id) FROM batches')}/outcome.xlsx"):
        [heading, row] = _rows(ann.get(page).data, "xlsx")
        assert dict(zip(heading, row, strict=True))["label"] == "=1+1"
        assert b"<f>" not in zipfile.ZipFile(BytesIO(ann.get(page).data)).read("xl/worksheets/sheet1.xml")
    for name in ("Spring", "Frühling – 2026", "メール", "“\"a\\b';x", "100 % 😀"):
        with transaction() as connection:
            connection.execute(text("UPDATE uploads SET name = :name"), {"name": f"{name}.csv"})
        header = ann.get(f"{path}/outcome.csv").headers["Content-Disposition"]
        assert header.isascii()
        assert parse_options_header(header)[1]["filename"] == f"{name}.result-live.csv"
    sandbox = sent(ann, "email\nann@example.com\n", mode="sandbox", amount="1")
    file = ann.get(f"{sandbox}/outcome.csv")
    assert file.headers["Content-Disposition"] == "attachment; filename=people.result-sandbox.csv"
    assert [row["mode"] for row in rows_of(file)] == ["sandbox"]


def test_the_example_file_is_a_list_as_it_is_and_a_broken_workbook_is_none(ann: Visitor) -> None:
    example = ann.get("/send/example.xlsx")
    assert example.headers["Content-Disposition"] == "attachment; filename=points.xlsx"
    assert "Recipients 3 Points in all 400 Lines left out 0" in words_of(ann.get(checked(ann, example.data)))
    refused = upload(ann, b"PK\x03\x04 and no more")
    assert refused.status_code == 400
    assert "cannot be read as a workbook" in refused.text


def test_pasted_addresses_are_read_as_mail_programs_write_them_and_other_text_pays_nobody(ann: Visitor) -> None:
    for pasted, told in (
        ("a@example.com\r\n b@example.com \r\n\r\n", "Recipients 2 Points in all 10"),
        ("ann@example.com, bob@example.com; cy@example.com", "Recipients 3"),
        ('Ann <ann@example.com>; "Lee, Bob" <bob@example.com>,\n Lee, Cy <cy@example.com>', "Recipients 3"),
        ("email\nann@example.com\nbob@example.com", "Recipients 2"),
        ("ann@example.com, x@y, bob@example.com", "Recipients 2 Points in all 10 Lines left out 1"),
        ("ann@example.com, bob@example.com\ncy@example.com\ndan@example.com;bob@example.com", "Recipients 4 "),
        ("ann@example.com\tboss@example.com\nbob@example.com\tboss@example.com", "4 boss@example.com It is the same"),
    ):
        answer = ann.post("/send", of="/send", pasted=pasted, amount="5")
        assert answer.status_code == 303, words_of(answer)
        assert told in words_of(ann.get(answer.location))
    text_with_addresses = "ask ann@example.com or bob@example.com"
    assert ann.post("/send", of="/send", pasted=text_with_addresses, amount="5").status_code == 400


@pytest.mark.usefixtures("small_parts")
def test_a_long_list_is_told_line_by_line_and_leads_on_by_itself(ann: Visitor) -> None:
    page = upload(ann, _SEVEN, amount="5")
    assert page.status_code == 200
    assert [int(line) for line in re.findall(r'<progress max="\d+" value="(\d+)"', page.text)] == [3, 7]
    assert page.text.rstrip().endswith("</html>")
    [check] = re.findall(r'http-equiv="refresh" content="0; url=([^"]+)"', page.text)
    assert "Recipients 7" in words_of(ann.get(check))
    again = ann.client.post(check, data=hidden(ann.get(check)) | {"amount": "6"})
    assert (again.status_code, f'href="{check}">Go on to the check' in again.text) == (200, True)
    assert "Points in all 42" in words_of(ann.get(check))
    assert confirm(ann, check).status_code == 303
    assert "0 of 7 recipients, 0 of 4 batches" in words_of(ann.get(f"{check}/outcome"))
    last = f"/batches/{value('SELECT max(id) FROM batches')}"
    assert "It is part 4 of 4 of its list. The parts are issued in order; 0 are done." in words_of(ann.get(last))
    books.drain_all(ann.organization_id)
    assert "of its list" not in words_of(ann.get(last))


@pytest.mark.usefixtures("small_parts")
def test_a_long_list_at_fault_is_not_kept_and_a_check_that_failed_is_not_called_done(
    ann: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(slow_work, "PARTS_MAX", 3)
        page = upload(ann, _SEVEN, amount="5")
        told_fault = words_of(page)  # It is written while it is read.
    assert "Nothing was kept of this check. People.csv has 7 recipients; one list may have at most 6." in told_fault
    assert "refresh" not in page.text
    assert value("SELECT count(*) FROM uploads") == 0
    assert "Go on to the check" in upload(ann, _SEVEN, amount="5").text, "the next one has its turn"

    def fail(*_: object) -> str:
        raise RuntimeError("a fault of ours")

    monkeypatch.setattr(uploads, "judge", fail)
    told: list[bytes] = []
    steps = upload(ann, _SEVEN, amount="5").iter_encoded()
    with pytest.raises(RuntimeError):
        told += iter(lambda: next(steps), None)
    whole = b"".join(told).decode()
    assert "It is not known whether the list was kept" in whole
    assert "refresh" not in whole
    assert whole.rstrip().endswith("</html>")


def _pressed(ann: Visitor, page: str, to: str) -> TestResponse:
    """Press the button of a page whose form goes to `to`."""
    form = re.search(rf'action="{re.escape(to)}".*?</form>', ann.get(page).text, re.DOTALL)
    assert form, "the page has this button"
    return ann.client.post(to, data=dict(re.findall(r'name="(csrf_token|form_id)" value="([^"]*)"', form[0])))


def test_the_unpaid_become_a_list_with_their_own_values_and_are_paid_after_a_refill(
    ann: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POINTS_RECIPIENTS_MAX", "2")
    forget_everything()
    lines = ("a@example.com,600,=1,", "b@example.com,600,r-2,Own", "c@example.com,300,,", "d@example.com,900,+4,=Label")
    path = sent(ann, "\n".join(("email,amount,reference,label", *lines)), label="Spring")
    assert "Send to the 2 unpaid" in words_of(ann.get(f"{path}/outcome"))
    file = ann.get(f"{path}/unpaid.csv")
    expected = [("b@example.com", "600", "r-2", "Own"), ("d@example.com", "900", "'+4", "'=Label")]
    assert [tuple(row.values())[:4] for row in rows_of(file)] == expected
    made = _pressed(ann, f"{path}/outcome", f"{path}/unpaid").location
    page = words_of(ann.get(made))
    assert "Points in all 1,500" in page
    assert "sent points before" not in page
    books.refill_now(ann.organization_id, 2_000)
    assert confirm(ann, made).status_code == 303
    books.drain_all(ann.organization_id)
    paid = rows_of(ann.get(f"{made}/outcome.csv"))
    assert [(row["email"], row["amount"], row["reference"], row["label"], row["state"]) for row in paid] == [
        (*row, "held") for row in expected
    ]
    assert "sent points before" in words_of(ann.get(checked(ann, file.data)))
    batch_id = books.issue_now(ann.organization_id, ["a@example.com", "b@example.com"], 500)
    of_batch = _pressed(ann, f"/batches/{batch_id}", f"/console/live/batches/{batch_id}/unpaid").location
    assert "First b@example.com" in words_of(ann.get(of_batch))


def test_a_sent_list_becomes_a_new_one_that_must_be_meant(ann: Visitor) -> None:
    path = sent(ann, "email,reference\na@example.com,=1\nb@example.com,r-2\nbad\n", amount="5", label="Spring")
    made = _pressed(ann, f"{path}/outcome", f"{path}/again").location
    assert confirm(ann, made).status_code == 409
    assert confirm(ann, made, again="yes").status_code == 303
    books.drain_all(ann.organization_id)
    paid = rows_of(ann.get(f"{made}/outcome.csv"))
    assert [(row["email"], row["amount"], row["reference"], row["label"]) for row in paid] == [
        ("a@example.com", "5", "'=1", "Spring"),
        ("b@example.com", "5", "r-2", "Spring"),
    ]


def test_a_list_that_is_not_sent_or_has_nobody_unpaid_becomes_no_other(ann: Visitor) -> None:
    unsent, paid = checked(ann, "email\na@example.com\n", amount="5"), sent(ann, "email\nb@example.com\n", amount="5")
    form = {"csrf_token": forgery_token(ann.get()), "form_id": "f" * 24}
    assert ann.client.post(f"{unsent}/again", data=form).status_code == 404
    assert ann.client.post(f"{paid}/unpaid", data=form).location == f"{paid}/outcome"
    assert value("SELECT count(*) FROM uploads") == 2


def test_a_list_is_found_again_before_and_after_it_is_sent_with_who_when_and_outcome(app: Flask, ann: Visitor) -> None:
    path = checked(ann, "email\na@example.com\nb@example.com\nbad\n", amount="600", label="Spring")
    checked(ann, "one@example.com,two@example.com\n", amount="1", mode="sandbox")
    waiting = ann.get("/lists")
    assert f'href="{path}">people.csv' in waiting.text
    assert re.search(r"people.csv Spring( \d{4}-\d\d-\d\d \d\d:\d\d UTC){2} Ann Sender 2 1,200", words_of(waiting))
    assert waiting.text.count("people.csv") == 1
    confirm(ann, path)
    [batch_id] = books.drain_all(ann.organization_id)
    viewer = visitor(app, ann.organization_id, "viewer")
    page = viewer.get("/lists")
    assert re.search(r"people.csv Spring \S+ \S+ UTC Ann Sender issued 1 of 2 600 Download", words_of(page))
    [result] = re.findall(r'href="([^"]+/outcome.csv)"', page.text)
    assert [row["state"] for row in rows_of(viewer.get(result))] == ["held", "unpaid", "left out"]
    assert f'href="{path}/outcome">people.csv' in viewer.get(f"/batches/{batch_id}").text


def test_sent_lists_go_on_where_a_page_ends(ann: Visitor) -> None:
    books.execute(
        "INSERT INTO uploads (organization_id, member_id, sandbox, token, name, recipients, points, digest, sent_at,"
        f" batch_ids) SELECT 1, {ann.member_id}, false, 't' || n, 'list ' || n, 1, 1, 'd', now(), '{{}}'"
        " FROM generate_series(1, 120) n"
    )
    seen, path = [], "/lists"
    while path:
        page = ann.get(path).text
        seen += re.findall(r">list (\d+)</a>", page)
        path = next(iter(re.findall(r'href="([^"]+)">Older', page)), "")
    assert seen == [str(number) for number in range(120, 0, -1)]


def test_lists_past_their_time_are_dropped_and_a_sent_one_is_still_known(ann: Visitor) -> None:
    list_ = "email\na@example.com\nbad\n"
    path, unsent, young, opened, waits = (checked(ann, list_, amount=amount) for amount in "12345")
    for one in (path, waits):
        assert confirm(ann, one, again="yes").status_code == 303
    books.execute(
        "UPDATE uploads SET created_at = now() - interval '8 days' WHERE amount = 4",
        "UPDATE uploads SET created_at = now() - interval '32 days' WHERE amount = 5",
        "UPDATE uploads SET created_at = now() - interval '8 days', used_at = now() - interval '8 days'"
        " WHERE amount = 2",
        "UPDATE uploads SET created_at = now() - interval '32 days' WHERE amount = 1",
    )
    forgotten = []
    for _ in range(4):
        with transaction() as connection:
            forgotten.append(uploads.forget(connection, at_most=1))
    assert forgotten == [1, 1, 1, 0]
    assert [ann.get(one).status_code for one in (path, unsent, young, opened)] == [302, 404, 200, 200]
    [row] = rows_of(ann.get(f"{waits}/outcome.csv"))
    assert (row["line"], row["email"], row["amount"], row["state"]) == ("", "a@example.com", "5", "queued")
    books.drain_all(ann.organization_id)
    assert "no longer kept" in words_of(ann.get(f"{path}/outcome"))
    [row] = rows_of(ann.get(f"{path}/outcome.csv"))
    assert (row["line"], row["email"], row["state"]) == ("", "a@example.com", "held")
    assert "sent points before" in ann.get(young).text


def test_an_organization_keeps_few_lists_that_it_does_not_send_and_says_first_which_one_makes_way(
    ann: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uploads, "UNSENT_MAX", 2)
    list_ = "email\na@example.com\n"
    paths = [checked(ann, list_, amount="1", file=f"{name}.csv") for name in ("one", "two")]
    assert "All were opened lately" in words_of(ann.get("/send"))
    same = {"pasted": "a@example.com", "amount": "1"} | hidden(ann.get("/send"))
    books.execute(f"UPDATE uploads SET token = '{same['form_id']}' WHERE name = 'two.csv'")
    assert ann.client.post("/console/live/send", data=same).status_code == 303, "the same form leads to its list"
    paths[1] = f"/console/live/send/{same['form_id']}"
    refused = upload(ann, list_, amount="1")
    assert (refused.status_code, "each was opened within 12 hours" in refused.text) == (400, True)
    books.execute("UPDATE uploads SET used_at = now() - interval '2 days'")
    ann.get(paths[0])
    assert "If you check another list, “two.csv” is deleted" in words_of(ann.get("/send"))
    paths.append(checked(ann, list_, amount="1"))
    assert [ann.get(path).status_code for path in paths] == [200, 404, 200]


def test_a_list_is_deleted_by_who_has_uploaded_it_and_only_before_it_is_sent(app: Flask, ann: Visitor) -> None:
    bob = visitor(app, ann.organization_id, "admin")
    path, kept = (checked(ann, "email\na@example.com\n", amount="1") for _ in range(2))
    assert "Delete this list" not in bob.get(path).text
    assert bob.post(f"{path}/delete", of="/keys").location == path
    form = hidden(ann.get(kept))
    assert confirm(ann, kept).status_code == 303
    assert ann.client.post(f"{kept}/delete", data=form).location == f"{kept}/outcome"
    assert ann.post(f"{path}/delete", of=path).location == "/console/live/lists"
    assert "The list people.csv is deleted." in words_of(ann.get("/lists"))
    assert [ann.get(one).status_code for one in (path, f"{kept}/outcome")] == [404, 200]


def test_an_address_on_several_lines_is_one_recipient_named_once_with_its_sum(ann: Visitor) -> None:
    list_ = (
        "email,amount,reference\na@example.com,10,r1\nA@example.com,20,r2\nb@example.com,5,r3\na@example.com,30,r4\n"
    )
    first = checked(ann, list_)
    assert "A@example.com on 3 lines, 60 points in all." in words_of(ann.get(first))
    assert confirm(ann, first).status_code == 303
    [batch_id] = books.drain_all(ann.organization_id)
    page = words_of(ann.get(checked(ann, list_)))
    assert "2 of 2 recipients were sent the same points or the same label within 30 days" in page
    assert f"batch {batch_id} (2 of them," in page
    assert "On several lines" not in words_of(ann.get(checked(ann, "email,reference\na@example.com,r1\n", amount="1")))
