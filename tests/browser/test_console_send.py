"""Sending from the console in a browser: from a file with faults to its outcome and the undo."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from playwright.sync_api import Browser, BrowserContext, FilePayload, Page, expect

from tests.browser.conftest import PATIENCE_MS, choose_password
from tests.browser.page_checks import require_readable, wait_until_shown
from tests.faulty_list import FAULTY_LIST
from tests.service.inside import Organization, Service
from tests.unit.deployment.files import ROOT

_FILE = FilePayload(name="spring.csv", mimeType="text/csv", buffer=FAULTY_LIST.encode())
# Delete it to have it made anew.
_PICTURE = ROOT / "docs" / "console-send.png"

pytestmark = pytest.mark.long


@dataclass(frozen=True, kw_only=True)
class Window:
    """How a member looks at the console."""

    width: int
    dark: bool
    has_script: bool
    mode: str


WINDOWS = {
    "wide": Window(width=1280, dark=False, has_script=True, mode="live"),
    "phone-dark": Window(width=390, dark=True, has_script=True, mode="sandbox"),
    "phone-no-script": Window(width=390, dark=False, has_script=False, mode="live"),
}


@pytest.fixture(scope="module")
def acme(service: Service) -> Organization:
    return service.organization(1_000, sandbox_balance=1_000)


@pytest.fixture(scope="module")
def signed_in(browser: Browser, service: Service, acme: Organization) -> BrowserContext:
    """Have a new sender choose a password by the link, as people do, and return where it is signed in."""
    made = service.json(
        *("members", "create", "sam@example.com", "Sam", "Sender"), "--organization", str(acme.id), "--role", "sender"
    )
    context = browser.new_context()
    page = context.new_page()
    choose_password(page, made["link"])
    return context


@pytest.fixture
def window() -> Window:
    """Look from a wide window, unless a test is parametrized."""
    return WINDOWS["wide"]


@pytest.fixture
def page(window: Window, browser: Browser, signed_in: BrowserContext) -> Iterator[Page]:
    """Open a window of the member who is signed in."""
    context = browser.new_context(
        viewport={"width": window.width, "height": 844},
        color_scheme="dark" if window.dark else "light",
        java_script_enabled=window.has_script,
        storage_state=signed_in.storage_state(),
    )
    page = context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda said: complaints.append(said.text) if "Content Security" in said.text else None)
    yield page
    context.close()
    assert complaints == []


def looked_at(page: Page, window: Window, heading: str) -> None:
    """See that a page is right. Nothing can be measured without a script; the same pages are measured with one."""
    (require_readable if window.has_script else wait_until_shown)(page, heading)


@pytest.mark.parametrize("window", WINDOWS.values(), ids=list(WINDOWS))
def test_a_file_with_ten_kinds_of_faults_goes_to_its_outcome_and_back(
    page: Page, window: Window, service: Service
) -> None:
    page.goto(f"{service.url}/console/{window.mode}/send")
    looked_at(page, window, "Send points")
    page.get_by_role("button", name="Check the list").click()
    expect(page.locator("#file-wrong-1")).to_have_text("Choose a file, or paste addresses below.")
    expect(page.locator("#problems")).to_be_focused()
    page.get_by_role("link", name="Choose a file").click()
    expect(page.get_by_label("A file")).to_be_focused()
    page.get_by_label("A file").set_input_files(_FILE)
    page.get_by_label("Label").fill(f"Spring, {window.width}")
    page.get_by_role("button", name="Check the list").click()
    looked_at(page, window, "Check the list")
    expect(page.get_by_role("heading", name="10 lines left out")).to_be_visible()
    if window == WINDOWS["wide"] and not _PICTURE.exists():
        page.set_viewport_size({"width": 1000, "height": 760})
        page.screenshot(path=_PICTURE)
    page.get_by_role("link", name="Go on to the cost").click()
    looked_at(page, window, "What it costs")
    page.get_by_role("button", name="Go on to confirm").click()
    looked_at(page, window, "Confirm")
    expect(page.get_by_role("main")).to_contain_text(window.mode.capitalize())
    if page.get_by_role("checkbox").count():  # Another window has sent it in this mode.
        page.get_by_role("checkbox").check()
    page.get_by_role("button", name="Issue 60 points to 3 recipients").click()
    expect(page.get_by_text("60 points issued to 3 recipients.")).to_be_visible()
    looked_at(page, window, "Outcome")
    with page.expect_download() as outcome:
        page.get_by_role("link", name="Download the result file").click()
    assert outcome.value.suggested_filename == f"spring.result-{window.mode}.csv"
    assert outcome.value.path().read_text().count("left out") == 10
    page.get_by_role("link", name="Batches", exact=True).click()
    looked_at(page, window, "Batches")
    page.get_by_role("main").get_by_role("rowheader").first.get_by_role("link").click()
    looked_at(page, window, "Batch [0-9]+")
    page.get_by_role("link", name="Take it back").click()
    looked_at(page, window, "Take back batch")
    page.get_by_label("Reason").fill("The wrong list")
    page.get_by_role("button", name="Take back 60 points").click()
    expect(page.get_by_text("Points taken back")).to_be_visible()
    looked_at(page, window, "Reversal")
    for name in ("Transactions", "Held"):
        page.get_by_role("link", name=name, exact=True).click()
        looked_at(page, window, name)


def test_a_double_click_and_the_back_button_issue_once(page: Page, service: Service, acme: Organization) -> None:
    before = service.balance(acme.live)
    page.goto(f"{service.url}/console/live/send")
    page.get_by_label("paste").fill("double@example.com")
    page.get_by_label("Points for each recipient").fill("7")
    page.get_by_role("button", name="Check the list").click()
    page.get_by_role("link", name="Go on to the cost").click()
    page.get_by_role("button", name="Go on to confirm").click()
    page.get_by_role("button", name="Issue 7 points to 1 recipient").dblclick()
    expect(page.get_by_text("7 points issued to 1 recipient.")).to_be_visible()
    page.go_back()
    page.reload()
    expect(page.get_by_role("heading", level=1)).to_have_text("Outcome")
    assert service.balance(acme.live) == before - 7


def test_a_file_is_dropped_on_its_field(page: Page, service: Service) -> None:
    page.goto(f"{service.url}/console/live/send")
    dropped = page.evaluate_handle(
        "() => { const d = new DataTransfer(); d.items.add(new File(['email\\na@example.com'], 'few.csv')); return d; }"
    )
    page.dispatch_event("[data-drop]", "drop", {"dataTransfer": dropped})
    page.get_by_label("Points for each recipient").fill("2")
    page.get_by_role("button", name="Check the list").click()
    expect(page.get_by_role("main")).to_contain_text("few.csv")


@pytest.mark.parametrize("window", [WINDOWS["phone-no-script"]], ids=["phone-no-script"])
def test_the_page_of_a_long_list_goes_on_by_itself_without_a_script(
    page: Page, window: Window, service: Service
) -> None:
    lines = "\n".join(f"someone.{number}@example.com" for number in range(21_000))
    page.goto(f"{service.url}/console/{window.mode}/send")
    long = FilePayload(name="long.csv", mimeType="text/csv", buffer=f"email\n{lines}\n".encode())
    page.get_by_label("A file").set_input_files(long)
    page.get_by_label("Points for each recipient").fill("1")
    page.get_by_role("button", name="Check the list").click()
    looked_at(page, window, "Check the list")
    expect(page.get_by_role("main")).to_contain_text("long.csv")
