"""A month in a browser: invited, sent with hidden rows, told by mail, approved, taken back by two at once, limited."""

import re
from collections.abc import Iterator
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, FilePayload, Page, expect

from tests.browser.conftest import PATIENCE_MS, choose_password
from tests.deadline import until
from tests.post_office import PostOffice
from tests.service.inside import Service
from tests.unit.workbooks import ods

_ODS = "application/vnd.oasis.opendocument.spreadsheet"
_ROWS, _HIDDEN, _POINTS = 60, range(11, 14), 5
_PAID = _ROWS - len(_HIDDEN)
_ISSUED, _OPENING = _PAID * _POINTS, 10_000


@pytest.fixture
def office() -> Iterator[PostOffice]:
    with PostOffice().open() as opened:
        yield opened


@pytest.fixture
def mailing(office: PostOffice, tmp_path: Path) -> Iterator[Service]:
    with Service(
        tmp_path / "points", POINTS_SMTP_URL=office.url, POINTS_MAIL_FROM="points@example.com"
    ).running() as up:
        yield up


@pytest.mark.long
@pytest.mark.parametrize(
    "window",
    [
        {"viewport": {"width": 1280, "height": 844}},
        {"viewport": {"width": 390, "height": 844}, "java_script_enabled": False},
    ],
    ids=["wide", "phone without JavaScript"],
)
def test_a_month_of_an_admin_a_sender_and_an_approver(
    browser: Browser, mailing: Service, office: PostOffice, window: dict[str, Any]
) -> None:
    company = mailing.organization(_OPENING)
    admin, sender, approver = (_page(browser, window) for _ in range(3))
    made = mailing.json(
        *("members", "create", "ada@example.com", "Ada", "Admin", "--organization", str(company.id), "--role", "admin")
    )
    choose_password(admin, made["link"])
    _limit(admin, "100")
    for page, name, role in ((sender, "Sam", "sender"), (approver, "Ann", "approver")):
        _invite(admin, name, role)
        choose_password(page, _link(_mail(office, name, "you are invited")))

    _send_with_hidden_rows(sender)
    expect(sender.get_by_role("status")).to_contain_text("awaits an approval by somebody other than Sam Team")
    assert mailing.balance(company.live) == _OPENING
    approver.goto(_link(_mail(office, "Ann", "awaits your approval")))
    approver.get_by_role("link", name="Approvals").first.click()
    approver.get_by_role("link", name="Decide on June.ods").click()
    approver.get_by_role("button", name=f"Approve {_ISSUED} points to {_PAID} recipients").click()
    until(lambda: mailing.balance(company.live) == _OPENING - _ISSUED)
    batch = _link(_mail(office, "Sam", "was approved"))

    for page in (sender, approver):
        page.goto(f"{batch}/take-back")
        page.get_by_text("Take back only a part").click()
        page.get_by_label("Points from each").fill("2")
        page.get_by_role("button", name="See what would come back").click()
        page.get_by_label("Reason").fill("Too many")
    for page in (sender, approver):
        page.get_by_role("button", name=f"Take back {2 * _PAID} points").click()
    expect(approver.get_by_role("main")).to_contain_text("Nothing was taken back")
    until(lambda: mailing.balance(company.live) == _OPENING - _ISSUED + 2 * _PAID)

    _limit(admin, "1,000")
    _send_with_hidden_rows(sender, again=True)
    until(lambda: mailing.balance(company.live) == _OPENING - 2 * _ISSUED + 2 * _PAID)
    admin.get_by_role("link", name="Activity").first.click()
    for done in ("Ada Admin", "Sam Team", "Ann Team"):
        expect(admin.get_by_role("main")).to_contain_text(done)


def _page(browser: Browser, window: dict[str, Any]) -> Page:
    page = browser.new_context(**window).new_page()
    page.set_default_timeout(PATIENCE_MS)
    return page


def _limit(admin: Page, points: str) -> None:
    """Change above how many points a send awaits an approval."""
    _go(admin, "Settings")
    admin.get_by_label("Approval").first.fill(points)
    admin.get_by_role("button", name="See what the change does").click()
    admin.get_by_label("Your password").fill("correct horse battery")
    admin.get_by_role("button", name="Change the settings").click()
    _go(admin, "Settings")
    expect(admin.get_by_role("main")).to_contain_text("Ada Admin changed it")


def _go(page: Page, words: str) -> None:
    menu = page.get_by_text("Menu", exact=True)
    if menu.is_visible():
        menu.click()
    page.get_by_role("link", name=words, exact=True).first.click()


def _invite(admin: Page, name: str, role: str) -> None:
    _go(admin, "Members")
    admin.get_by_label("E-mail address").fill(f"{name.lower()}@example.com")
    admin.get_by_label("First name").fill(name)
    admin.get_by_label("Last name").fill("Team")
    admin.get_by_label("Role").select_option(role)
    admin.get_by_role("button", name="Add the member").click()


def _mail(office: PostOffice, name: str, subject: str) -> EmailMessage:
    """Wait for the mail to a member with this subject."""

    def fitting() -> list[EmailMessage]:
        return [
            mail for mail in office.mails if mail["To"] == f"{name.lower()}@example.com" and subject in mail["Subject"]
        ]

    until(lambda: bool(fitting()))
    return fitting()[-1]


def _link(mail: EmailMessage) -> str:
    """Return the first link of a mail, which tells no recipient."""
    text = mail.get_content()
    assert "person." not in text
    first = re.search(r"https?://\S+", text)
    assert first is not None
    return first[0]


def _send_with_hidden_rows(sender: Page, *, again: bool = False) -> None:
    """Send a workbook whose filter hides three rows, without them."""
    rows = [["Name", "E-mail", "Points"]]
    rows += [[f"Person {number}", f"person.{number}@example.com", str(_POINTS)] for number in range(_ROWS)]
    _go(sender, "Send")
    content = ods(rows, hidden=list(_HIDDEN))
    sender.get_by_label("A file").set_input_files(FilePayload(name="June.ods", mimeType=_ODS, buffer=content))
    sender.get_by_role("button", name="Check the list").click()
    expect(sender.get_by_role("main")).to_contain_text("3 of these rows are hidden in the workbook")
    sender.get_by_label("They are left out").check()
    sender.get_by_role("button", name="Check with this").click()
    sender.get_by_role("link", name="Go on to the cost").click()
    sender.get_by_role("button", name="Go on to confirm").click()
    if again:
        sender.get_by_label("Yes, issue points to them again").check()
    sender.get_by_role("button", name=f"Issue {_ISSUED} points to {_PAID} recipients").click()
