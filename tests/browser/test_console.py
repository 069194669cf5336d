"""The console in a browser: read by axe at two widths and in two colours, and used without JavaScript."""

import re

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, Route, expect

from app import api_keys, organizations
from app.members import links
from app.values.key_bounds import Bounds, parse_end
from app.web.application import create_app
from tests.browser.conftest import Look
from tests.browser.page_checks import (
    cut_off_texts,
    faint_texts,
    ids_used_twice,
    nameless_controls,
    open_everything,
    wait_until_shown,
    width_beyond_the_window,
)
from tests.service.inside import Service
from tests.unit.deployment.files import ROOT

_PICTURE = ROOT / "docs" / "console.png"
_PASSWORD = "correct horse battery"
_PAGES = {
    "": "Overview",
    "/lists": "Lists",
    "/transactions?email=example": "Transactions",
    "/batches?label=may": "Batches",
    "/reversals": "Reversals",
    "/statement": "Statement",
    "/requests": "Requests",
    "/keys": "Keys",
    "/webhooks": "Webhooks",
    "/members": "Members",
    "/activity": "Activity",
    "/account": "Your account",
}
_BOTH = pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
_WIDTHS = pytest.mark.parametrize("width", [390, 1280])


def _link_of_admin(service: Service, email: str) -> str:
    organization = service.organization(1_000_000, name="Umbrella Coffee")
    bounds = Bounds(["read", "send", "reverse"], parse_end("2999-12-31"), 5_000_000, 20_000_000)
    with service.connection() as connection:
        for name in ("Loyalty app of the shop in Rosenheim", "R" * 100):
            api_keys.create(connection, organization.id, sandbox=False, name=name, bounds=bounds)
        _, token = links.add(connection, organization.id, email, "Mary", "Jackson", role="admin", by=None)
    service.send(organization.live, {"recipients": ["ann@example.com", "bo@example.com"], "amount": 50, "label": "May"})
    with service.connection() as connection:
        organizations.change(connection, organization.id, {"approval_above": 100, "approval_of": "all"})
    service.send(
        organization.live, {"recipients": ["cy@example.com", "di@example.com"], "amount": 51, "label": "Large"}
    )
    return f"/console/link/{token}"


@pytest.fixture(scope="module")
def email(service: Service, browser: Browser) -> str:
    """Make an admin who has chosen a password, by the link."""
    address = "mary@example.com"
    page = browser.new_page()
    page.goto(service.url + _link_of_admin(service, address))
    _choose_password(page)
    page.close()
    return address


def _choose_password(page: Page) -> None:
    page.get_by_label("New password").fill(_PASSWORD)
    page.get_by_label("The same again").fill(_PASSWORD)
    page.get_by_role("button", name="Choose this password").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Overview")


def _sign_in(page: Page, email: str) -> None:
    page.get_by_label("E-mail address").fill(email)
    page.get_by_label("Password").fill(_PASSWORD)
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Sign out")).to_be_visible()


def _require_good_page(page: Page, heading: str) -> None:
    wait_until_shown(page, heading)
    open_everything(page)
    found = Axe().run(page).response["violations"]
    assert [(one["id"], [node["html"] for node in one["nodes"]]) for one in found] == []
    assert faint_texts(page) == []
    assert cut_off_texts(page) == []
    assert nameless_controls(page) == []
    assert ids_used_twice(page) == []
    assert width_beyond_the_window(page) <= 0


@_WIDTHS
@_BOTH
def test_every_page_can_be_read_by_everybody(look: Look, email: str, width: int, *, dark: bool) -> None:
    page = look.at("/console", width=width, dark=dark)
    _require_good_page(page, "Sign in")
    _sign_in(page, email)
    for mode, paths in (("live", list(_PAGES)), ("sandbox", ["", "/keys"])):
        for path in paths:
            page.goto(f"{look.service.url}/console/{mode}{path}")
            _require_good_page(page, _PAGES[path])
    page.goto(f"{look.service.url}/console/live")
    page.get_by_role("link", name="Approve or reject it").click()
    page.get_by_role("row", name="Large").get_by_role("link").click()
    _require_good_page(page, "Batch [0-9]+")
    page.get_by_role("link", name="Approve or reject it").click()
    _require_good_page(page, "Approve batch [0-9]+")
    page.goto(f"{look.service.url}/console/sandbox/keys")
    page.get_by_role("button", name="Make a key").click()
    _require_good_page(page, "Development key [0-9]+")
    page.goto(f"{look.service.url}/console/live/members")
    page.get_by_role("button", name="Add the member").click()
    expect(page.locator("#problems")).to_be_focused()
    expect(page.locator("#email-wrong-1")).to_have_text("Enter an e-mail address.")
    _require_good_page(page, "Members")
    page.get_by_role("link", name="Mary Jackson").click()
    _require_good_page(page, "Mary Jackson")
    page.goto(f"{look.service.url}/console/sandbox/webhooks")
    page.get_by_label("URL").fill("https://127.0.0.1:65000/")
    page.get_by_label("Name").fill(f"Shop {width} {dark}")
    page.get_by_role("button", name="Make the webhook").click()
    _require_good_page(page, "The secret of webhook [0-9]+")
    page.get_by_role("link", name="To the webhook").click()
    _require_good_page(page, f"Shop {width} {dark}")
    page.goto(f"{look.service.url}/console/live/nowhere")
    _require_good_page(page, "Not found")
    page.goto(f"{look.service.url}/console/live/members")
    page.get_by_label("First name").fill("Kept")
    with look.service.connection() as connection:
        connection.exec_driver_sql("UPDATE member_sessions SET revoked_at = now() WHERE revoked_at IS NULL")
    page.get_by_role("button", name="Add the member").click()
    expect(page.get_by_text("You were signed out.")).to_be_visible()
    _require_good_page(page, "Sign in")
    page.get_by_label("E-mail address").fill(email)
    page.get_by_label("Password").fill(_PASSWORD)
    page.keyboard.press("Enter")
    expect(page.get_by_text("Kept", exact=True)).to_be_visible()
    _require_good_page(page, "Go on where you were")


@_WIDTHS
def test_an_admin_adds_a_member_without_javascript(browser: Browser, service: Service, email: str, width: int) -> None:
    context = browser.new_context(java_script_enabled=False, viewport={"width": width, "height": 844})
    page = context.new_page()
    page.goto(f"{service.url}/console")
    _sign_in(page, email)
    page.get_by_role("link", name="Members").click()
    page.get_by_label("E-mail address").fill(f"viewer-{width}@example.com")
    page.get_by_label("First name").fill("Bo")
    page.get_by_role("button", name="Add the member").click()
    link = page.locator("code.secret").inner_text()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("status")).to_have_text("You are signed out.")
    page.goto(link)
    _choose_password(page)
    expect(page.get_by_role("link", name="Activity")).to_be_visible()
    expect(page.get_by_role("link", name="Keys")).to_have_count(0)
    page.goto(f"{service.url}/console/live/keys")
    expect(page.get_by_role("heading", level=1)).to_have_text("Not for your role")
    context.close()


def test_the_picture_of_the_page_is_that_of_the_console(look: Look, email: str) -> None:
    """Look at what `docs/console.png` shows. Delete it to have this test make it anew."""
    page = look.at("/console", width=1000)
    page.set_viewport_size({"width": 1000, "height": 560})
    _sign_in(page, email)
    expect(page.locator("dt", has_text="Held").first).to_be_visible()
    expect(page.get_by_role("row", name="issued May")).to_be_visible()
    if not _PICTURE.exists():
        page.screenshot(path=_PICTURE)
    assert _PICTURE.read_bytes()[16:24] == (1000).to_bytes(4) + (560).to_bytes(4)


def test_a_page_that_finds_the_database_away_goes_on_by_itself(look: Look, email: str) -> None:
    page = look.at("/console")
    _sign_in(page, email)
    away = create_app().test_client().get("/console/live")  # In this process PostgreSQL is nowhere.
    assert away.status_code == 503
    failures = [away.text] * 2

    def answer(route: Route) -> None:
        if failures:
            route.fulfill(status=503, body=failures.pop(), content_type="text/html")
        else:
            route.continue_()

    page.route("**/console/live/batches", answer)
    page.goto(f"{look.service.url}/console/live/batches")
    expect(page.get_by_role("heading", level=1)).to_have_text("Batches")


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
