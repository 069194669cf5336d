"""Sending from the console in a browser: from a file with faults to its outcome and the undo."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from tests.browser.page_checks import cut_off_texts, ids_used_twice, width_beyond_the_window
from tests.e2e.conftest import Service
from tests.integration.lists import FAULTY

_PASSWORD = "correct horse battery"
_RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]}


@dataclass(frozen=True, kw_only=True)
class Window:
    """How a member looks at the console."""

    width: int
    dark: bool
    has_script: bool


WINDOWS = {
    "wide": Window(width=1280, dark=False, has_script=True),
    "wide and dark, no script": Window(width=1280, dark=True, has_script=False),
    "phone and dark": Window(width=390, dark=True, has_script=True),
    "phone, no script": Window(width=390, dark=False, has_script=False),
}


@pytest.fixture(scope="module")
def link_of(service: Service) -> Iterator[str]:
    yield ""


def looked_at(page: Page, window: Window) -> None:
    """See that a page is right: nothing against WCAG, too wide, cut off or named twice."""
    if not window.has_script:  # Nothing can be measured in it; the same pages are measured with one.
        return
    found = Axe().run(page, options=_RULES)
    assert found.violations_count == 0, found.generate_report()
    assert width_beyond_the_window(page) <= 0
    assert cut_off_texts(page) == []
    assert ids_used_twice(page) == []
