"""The console with the longest words that it can be given, on a phone and on a screen: no page is wider than either."""

from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, FilePayload, Page, expect

from app import users
from app.ledger.claim import register
from tests.browser.conftest import choose_password
from tests.browser.page_checks import open_everything, width_beyond_the_window
from tests.service.inside import Service

_DOMAIN = ".".join(["d" * 60] * 3)
_HELD, _PAID = (f"{letter * 60}@{_DOMAIN}.{'e' * 5}" for letter in "ab")
_AMOUNT = 1_000_000_000


@pytest.fixture(scope="module")
def link(service: Service) -> str:
    """Fill an organization with long words, and return the link of its admin."""
    organization = service.organization(9_000_000_000_000_000_000, name="o" * 255)
    with service.connection() as connection:
        register(connection, [users.new_user(_PAID, "u" * 250, "v" * 250)])
    items = [
        {"email": email, "amount": _AMOUNT, "label": "l" * 255, "reference": letter * 128}
        for email, letter in ((_HELD, "r"), (_PAID, "s"))
    ]
    sent = service.send(organization.live, {"items": items, "label": "b" * 255, "hold_days": 3})
    body = {"batch": sent.json()["additional_data"]["batch_id"], "reason": "w" * 255, "amount": 7}
    assert service.call("POST", "/v1/points/reverse", key=organization.live, json=body).status_code == 201
    member = (f"m{_HELD}", "f" * 250, "l" * 250, "--organization", str(organization.id), "--role", "admin")
    return str(service.json("members", "create", *member)["link"])


def _give_long_words(page: Page, service: Service, wide: list[str]) -> None:
    """Make a key, a webhook and lists by the pages."""
    page.goto(f"{service.url}/console/live/keys")
    page.get_by_label("Name").fill("k" * 100)
    page.get_by_role("button", name="Make a key").click()
    _look(page, wide)
    page.goto(f"{service.url}/console/live/webhooks")
    page.get_by_label("URL").fill(f"https://127.0.0.1:65000/{'h' * 250}")
    page.get_by_label("Name").fill("n" * 255)
    page.get_by_role("button", name="Make the webhook").click()
    _look(page, wide)
    file = f"email,amount,reference\n{_HELD},{_AMOUNT},{'t' * 128}\n{'x' * 300},1,\n"
    for _ in range(2):
        page.goto(f"{service.url}/console/live/send")
        page.get_by_label("A file").set_input_files(
            FilePayload(name=f"{'n' * 90}.csv", mimeType="text/csv", buffer=file.encode())
        )
        page.get_by_label("Label").fill("c" * 255)
        page.get_by_role("button", name="Check the list").click()
        _look(page, wide)
        checked = page.url
        page.get_by_role("link", name="Go on to the cost").click()
        _look(page, wide)
        page.get_by_role("button", name="Go on to confirm").click()
        _look(page, wide)
        if page.get_by_role("checkbox").count():
            page.goto(checked)  # The second list stays unsent.
        else:
            page.get_by_role("button", name="Issue").click()


def _look(page: Page, wide: list[str]) -> None:
    """Add the page to `wide` if it is wider than a window."""
    page.wait_for_load_state("load")
    open_everything(page)
    for width in (390, 1280):
        page.set_viewport_size({"width": width, "height": 844})
        if (beyond := width_beyond_the_window(page)) > 0:
            wide.append(f"{page.url} by {beyond} at {width}")


def _leads_on(path: str) -> bool:
    return path.startswith("/console/live") and "." not in path


@pytest.mark.long
def test_no_long_word_widens_a_page(browser: Browser, service: Service, link: str) -> None:
    context = browser.new_context()
    page, wide = context.new_page(), list[str]()
    page.goto(link)
    _look(page, wide)
    choose_password(page, link)
    _give_long_words(page, service, wide)
    waiting, seen = ["/console/live"], {"/console/live"}
    while waiting:
        page.goto(service.url + waiting.pop())
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        _look(page, wide)
        for path in page.eval_on_selector_all("a[href]", "links => links.map((link) => link.href)"):
            whole = urlsplit(path).path
            if _leads_on(whole) and whole not in seen:
                seen.add(whole)
                waiting.append(whole)
    assert len(seen) >= 22, seen
    page.goto(f"{service.url}/console/live/members")
    page.get_by_label("First name").fill("x" * 300)
    page.get_by_role("button", name="Add the member").click()
    expect(page.locator("#problems")).to_be_focused()
    _look(page, wide)
    context.close()
    assert wide == []
