"""A browser for the tests of pages: Debian's Chromium, headless; without one these tests are skipped."""

import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, Request, expect, sync_playwright

from tests.service.inside import Service

_NAMES = ("chromium", "chromium-browser", "google-chrome")
_QUIET = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
# A busy machine may take its time; a page that never gets there is still seen.
PATIENCE_MS = 60_000
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
