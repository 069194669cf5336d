"""A browser for the tests of pages: Debian's Chromium, headless; without one these tests are skipped."""

import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, Request, expect, sync_playwright

from tests.deadline import TIMEOUT_S
from tests.service.inside import Service

_NAMES = ("chromium", "chromium-browser", "google-chrome")
_QUIET = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
_PASSWORD = "correct horse battery"
# A busy machine may take its time; a page that never gets there is still seen.
PATIENCE_MS = int(TIMEOUT_S * 1_000)
expect.set_options(timeout=PATIENCE_MS)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Start the browser. For a module and not for the session: its event loop would be in the way of other tests."""
    path = next(filter(None, map(shutil.which, _NAMES)), None)
    if path is None:
        pytest.skip("no Chromium is installed here, so no page was looked at (Debian: apt-get install chromium)")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path, args=list(_QUIET))
        yield started
        started.close()


def choose_password(page: Page, link: str) -> None:
    """Choose a password by the link that a new member is given, and be signed in."""
    page.goto(link)
    page.get_by_label("New password").fill(_PASSWORD)
    page.get_by_label("The same again").fill(_PASSWORD)
    page.get_by_role("button", name="Choose this password").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Overview")


def sign_in(page: Page, email: str) -> None:
    page.get_by_label("E-mail address").fill(email)
    page.get_by_label("Password").fill(_PASSWORD)
    page.keyboard.press("Enter")


@dataclass(kw_only=True)
class Look:
    """A look at the service's pages, in a window and in colours of its own. What the browser complains of is kept."""

    browser: Browser
    service: Service
    complaints: list[str] = field(default_factory=list)

    def at(self, path: str, *, width: int = 1280, dark: bool = False) -> Page:
        context = self.browser.new_context(
            viewport={"width": width, "height": 844}, color_scheme="dark" if dark else "light", reduced_motion="reduce"
        )
        page = context.new_page()
        page.set_default_timeout(PATIENCE_MS)
        page.on("console", self._on_console)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", self._on_request)
        page.goto(self.service.url + path)
        return page

    def _on_console(self, message: ConsoleMessage) -> None:
        # Chromium notes each answer of 400 or above as an error, also one that the page asked for and shows.
        if message.type in ("error", "warning") and not re.search("/v1/|/console", message.location["url"]):
            self.complaints.append(message.text)

    def _on_request(self, request: Request) -> None:
        if not request.url.startswith(self.service.url + "/"):
            self.complaints.append(f"asked another address: {request.url}")


@pytest.fixture
def look(browser: Browser, service: Service) -> Iterator[Look]:
    """Look at pages; in the end nothing was complained of, and no other address was asked."""
    looking = Look(browser=browser, service=service)
    yield looking
    for context in browser.contexts:
        context.close()
    assert looking.complaints == []
