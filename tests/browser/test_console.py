"""The console in a browser: read by axe on a dark phone and a light screen, and used without JavaScript."""

import re

import pytest
from playwright.sync_api import Browser, Page, expect

from app import api_keys, organizations
from app.values.key_bounds import Bounds, parse_end
from tests.browser.conftest import Look, choose_password, sign_in
from tests.browser.page_checks import require_readable, wait_until_shown, width_beyond_the_window
from tests.service.inside import Service

_PAGES = {
    "": "Overview",
    "/lists": "Lists",
    "/transactions?email=example": "Transactions",
    "/batches?label=may": "Batches",
    "/recipient?email=ann@example.com": "Recipient",
    "/reversals": "Reversals",
    "/statement": "Statement",
    "/requests": "Requests",
    "/keys": "Keys",
    "/webhooks": "Webhooks",
    "/members": "Members",
    "/activity": "Activity",
    "/settings": "Settings",
    "/account": "Your account",
}


def _link_of_admin(service: Service, email: str) -> str:
    organization = service.organization(1_000_000, name="Umbrella Coffee")
    bounds = Bounds(["read", "send", "reverse"], parse_end("2999-12-31"), 5_000_000, 20_000_000)
    with service.connection() as connection:
        for name in ("Loyalty app of the shop in Rosenheim", "R" * 100):
            api_keys.create(connection, organization.id, sandbox=False, name=name, bounds=bounds)
    service.send(organization.live, {"recipients": ["ann@example.com", "bo@example.com"], "amount": 50, "label": "May"})
    with service.connection() as connection:
        organizations.change(connection, organization.id, {"approval_above": 100, "approval_of": "all"})
    service.send(
        organization.live, {"recipients": ["cy@example.com", "di@example.com"], "amount": 51, "label": "Large"}
    )
    member = (email, "Mary", "Jackson", "--organization", str(organization.id), "--role", "admin")
    return str(service.json("members", "create", *member)["link"])


@pytest.fixture(scope="module")
def email(service: Service, browser: Browser) -> str:
    """Make an admin who has chosen a password, by the link."""
    address = "mary@example.com"
    page = browser.new_page()
    choose_password(page, _link_of_admin(service, address))
    page.close()
    return address


def _sign_in(page: Page, email: str) -> None:
    sign_in(page, email)
    expect(page.get_by_role("button", name="Sign out")).to_be_visible()


@pytest.mark.long
@pytest.mark.parametrize(("width", "dark"), [(390, True), (1280, False)], ids=["phone-dark", "wide-light"])
def test_every_page_can_be_read_by_everybody(look: Look, email: str, width: int, *, dark: bool) -> None:
    page = look.at("/console", width=width, dark=dark)
    require_readable(page, "Sign in")
    _sign_in(page, email)
    for mode, paths in (("live", list(_PAGES)), ("sandbox", ["", "/keys", "/sandbox"])):
        for path in paths:
            page.goto(f"{look.service.url}/console/{mode}{path}")
            require_readable(page, _PAGES.get(path, "Sandbox"))
    page.goto(f"{look.service.url}/console/live")
    page.get_by_role("link", name="Approve or reject it").click()
    require_readable(page, "Approvals")
    page.get_by_role("row", name="Large").get_by_role("link").first.click()
    require_readable(page, "Batch [0-9]+")
    page.get_by_role("link", name="Approve or reject it").click()
    require_readable(page, "Approve batch [0-9]+")
    page.goto(f"{look.service.url}/console/sandbox/keys")
    page.get_by_role("button", name="Make a key").click()
    require_readable(page, "Development key [0-9]+")
    page.goto(f"{look.service.url}/console/live/members")
    page.get_by_role("button", name="Add the member").click()
    expect(page.locator("#problems")).to_be_focused()
    expect(page.locator("#email-wrong-1")).to_have_text("Enter an e-mail address.")
    require_readable(page, "Members")
    page.get_by_role("link", name="Mary Jackson").click()
    require_readable(page, "Mary Jackson")
    page.goto(f"{look.service.url}/console/sandbox/webhooks")
    page.get_by_label("URL").fill("https://127.0.0.1:65000/")
    page.get_by_label("Name").fill(f"Shop {width} {dark}")
    page.get_by_role("button", name="Make the webhook").click()
    require_readable(page, "The secret of webhook [0-9]+")
    page.get_by_role("link", name="To the webhook").click()
    require_readable(page, f"Shop {width} {dark}")
    page.goto(f"{look.service.url}/console/live/nowhere")
    require_readable(page, "Not found")
    page.goto(f"{look.service.url}/console/live/members")
    page.get_by_label("First name").fill("Kept")
    with look.service.connection() as connection:
        own = "member_id = (SELECT id FROM members WHERE email = %s)"
        connection.exec_driver_sql(f"UPDATE member_sessions SET revoked_at = now() WHERE {own}", (email,))
    page.get_by_role("button", name="Add the member").click()
    expect(page.get_by_text("You were signed out.")).to_be_visible()
    require_readable(page, "Sign in")
    sign_in(page, email)
    expect(page.get_by_text("Kept", exact=True)).to_be_visible()
    require_readable(page, "Go on where you were")


def test_an_admin_adds_a_member_without_javascript(browser: Browser, service: Service, email: str) -> None:
    context = browser.new_context(java_script_enabled=False, viewport={"width": 390, "height": 844})
    page = context.new_page()
    page.goto(f"{service.url}/console")
    _sign_in(page, email)
    page.get_by_role("link", name="Members").click()
    page.get_by_label("E-mail address").fill("viewer@example.com")
    page.get_by_label("First name").fill("Bo")
    page.get_by_role("button", name="Add the member").click()
    link = page.locator("code.secret").inner_text()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("status")).to_have_text("You are signed out.")
    choose_password(page, link)
    expect(page.get_by_role("link", name="Activity")).to_be_visible()
    expect(page.get_by_role("link", name="Keys")).to_have_count(0)
    page.goto(f"{service.url}/console/live/keys")
    expect(page.get_by_role("heading", level=1)).to_have_text("Not for your role")
    context.close()


def test_the_keyboard_alone_skips_to_the_content_and_switches_the_mode(look: Look, email: str) -> None:
    page = look.at("/console")
    _sign_in(page, email)
    page.goto(f"{look.service.url}/console/live/batches")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    page.get_by_role("link", name="Sandbox", exact=True).focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/console/sandbox/batches")
    expect(page.get_by_text("A sandbox: nothing here is real.")).to_be_visible()
    assert re.search("Sandbox", page.title())


def test_a_double_click_and_the_back_button_issue_once_also_on_a_phone(look: Look, email: str) -> None:
    page = look.at("/console", width=390)
    _sign_in(page, email)
    page.goto(f"{look.service.url}/console/live/send")
    page.get_by_label("paste").fill("twice@example.com")
    page.get_by_label("Points for each recipient").fill("7")
    page.get_by_role("button", name="Check the list").click()
    page.get_by_role("link", name="Go on to the cost").click()
    page.get_by_role("button", name="Go on to confirm").click()
    wait_until_shown(page, "Confirm")
    assert width_beyond_the_window(page) <= 0
    page.get_by_role("button", name="Issue 7 points to 1 recipient").dblclick()
    expect(page.get_by_text("7 points issued to 1 recipient.")).to_be_visible()
    page.go_back()
    page.reload()
    wait_until_shown(page, "Outcome")
    assert width_beyond_the_window(page) <= 0
    with look.service.connection() as connection:
        sent = "SELECT count(*) FROM transactions WHERE email = 'twice@example.com'"
        assert connection.exec_driver_sql(sent).scalar_one() == 1
