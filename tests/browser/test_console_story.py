"""One story in a browser: somebody who has read nothing sends a workbook, mends it, takes one back, finds it again."""

from io import BytesIO

from playwright.sync_api import Browser, Download, FilePayload, Page, expect
from python_calamine import CalamineWorkbook

from tests.browser.conftest import PATIENCE_MS, choose_password, sign_in
from tests.service.inside import Service
from tests.unit.workbooks import Rows, xlsx

_EMAIL = "story@example.com"
_XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
_HEADING = ["Name", "E-mail", "Points", "Reference"]
# The lines as a person counts them: the heading is line 1.
_FAULTY = {
    10: ("E-mail", "person.10(at)example.com"),
    120: ("Points", "five"),
    300: ("E-mail", "person.300@example.com or sam@example.com"),
}


def test_a_workbook_of_300_lines_is_sent_mended_taken_back_in_part_and_found_again(
    browser: Browser, service: Service
) -> None:
    company = service.organization(10_000)
    page, tomorrow = (browser.new_context(viewport={"width": 1280, "height": 844}).new_page() for _ in range(2))
    page.set_default_timeout(PATIENCE_MS)
    made = service.json(
        *("members", "create", _EMAIL, "Sam", "Story", "--organization", str(company.id), "--role", "sender")
    )
    choose_password(page, made["link"])
    page.get_by_role("link", name="Send points").first.click()

    _check(page, _workbook("June.xlsx", _rows()), 3)
    with page.expect_download() as left_out:
        page.get_by_role("link", name="as a workbook").click()
    _issue(page, "Issue 1,485 points to 297 recipients")

    page.get_by_role("link", name="Send another list").click()
    _check(page, _workbook("June, mended.xlsx", _mended(left_out.value)), 0)
    _issue(page, "Issue 15 points to 3 recipients")

    page.get_by_role("link", name="Batches", exact=True).click()
    page.get_by_role("main").get_by_role("rowheader").first.get_by_role("link").click()
    page.get_by_role("link", name="Take it back").click()
    page.get_by_label("Reason").fill("Twice by mistake")
    page.get_by_role("button", name="Take back 15 points").click()
    expect(page.get_by_text("Points taken back")).to_be_visible()

    tomorrow.goto(f"{service.url}/console/sign-in")
    sign_in(tomorrow, _EMAIL)
    tomorrow.get_by_role("link", name="Lists", exact=True).click()
    for name in ("June.xlsx", "June, mended.xlsx"):
        expect(tomorrow.get_by_role("main")).to_contain_text(name)
    tomorrow.get_by_role("link", name="June.xlsx", exact=True).click()
    with tomorrow.expect_download() as outcome:
        tomorrow.get_by_role("link", name="Download the result file").click()
    assert outcome.value.path().read_text(encoding="utf-8-sig").count("left out") == 3
    tomorrow.get_by_role("link", name="Reversals", exact=True).click()
    expect(tomorrow.get_by_role("main")).to_contain_text("Twice by mistake")
    assert service.balance(company.live) == 10_000 - 1_485


def _rows() -> list[list[object]]:
    """Return 300 recipients below the heading, three of whom nobody can pay."""
    rows: list[list[object]] = [list(_HEADING)]
    rows += [[f"Person {number}", f"person.{number}@example.com", 5, f"r-{number}"] for number in range(2, 302)]
    for line, (column, typed) in _FAULTY.items():
        rows[line - 1][_HEADING.index(column)] = typed
    return rows


def _mended(left_out: Download) -> Rows:
    """Return the downloaded lines as a person mends them."""
    with CalamineWorkbook.from_filelike(BytesIO(left_out.path().read_bytes())) as book:
        heading, *rows = [list(row) for row in book.get_sheet_by_index(0).iter_rows()]
    assert [float(str(row[heading.index("line")])) for row in rows] == list(_FAULTY)
    for row, number in zip(rows, _FAULTY, strict=True):
        row[heading.index("E-mail")], row[heading.index("Points")] = f"person.{number}@example.com", 5
    return [heading, *rows]


def _workbook(name: str, rows: Rows) -> FilePayload:
    return FilePayload(name=name, mimeType=_XLSX, buffer=xlsx({"People": rows}))


def _check(page: Page, file: FilePayload, left_out: int) -> None:
    page.get_by_label("A file").set_input_files(file)
    page.get_by_role("button", name="Check the list").click()
    expect(page.get_by_text("Lines left out", exact=True).locator("xpath=following-sibling::dd")).to_have_text(
        str(left_out)
    )


def _issue(page: Page, button: str) -> None:
    page.get_by_role("link", name="Go on to the cost").click()
    page.get_by_role("button", name="Go on to confirm").click()
    page.get_by_role("button", name=button).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Outcome")
