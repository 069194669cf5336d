"""`/docs` in a browser: a caller pastes a key, reads about every call, tries it, and sees what is answered."""

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import Look
from tests.service.inside import Service


def key_field(page: Page) -> Locator:
    """Return the field of the key. It is looked for in the head alone: the page below has 100,000 nodes."""
    return page.locator("header").get_by_label("API key")


def unfold(page: Page, call: str) -> Locator:
    """Unfold a call once it is on the page, and return the form that tries it."""
    folded = page.locator(f"#{call}")
    folded.wait_for(state="attached")
    if folded.get_attribute("open") is None:
        folded.locator("> summary").click()
    return folded.locator("form")


def try_call(page: Page, call: str, status: int) -> None:
    form = unfold(page, call)
    form.get_by_role("button", name="Try it").click()
    answered(form, status)


def answered(form: Locator, status: int) -> None:
    expect(form.locator(".outcome .status")).to_have_text(str(status))


def test_a_caller_pastes_a_key_and_verifies_and_sends(look: Look, service: Service) -> None:
    caller = service.organization(0, sandbox_balance=1_000)
    page = look.at("/docs#send")
    key_field(page).fill(caller.development)
    expect(page.locator("#key-says")).to_contain_text("sandbox")
    try_call(page, "verify", 200)
    expect(page.locator("#verify pre.body")).to_contain_text('"validated": true')
    try_call(page, "send", 201)
    expect(page.locator("#send pre.body")).to_contain_text('"current_balance": 900')
    expect(page.locator("#send .headers")).to_contain_text("x-request-id")
    expect(page.locator("#send .warning")).to_be_hidden()
    assert service.balance(caller.development) == 900


@pytest.mark.long
def test_a_send_has_a_key_of_its_own_until_its_body_is_another(look: Look, service: Service) -> None:
    caller = service.organization(0, sandbox_balance=1_000)
    page = look.at("/docs#send")
    key_field(page).fill(caller.development)
    field = page.locator("#send").get_by_label("Idempotency-Key")
    first = field.input_value()
    assert re.fullmatch(r"[0-9a-f]{20}", first)
    try_call(page, "send", 201)
    try_call(page, "send", 201)
    expect(page.locator("#send .headers")).to_contain_text("idempotency-replayed")
    assert service.balance(caller.development) == 900
    page.locator("#send").get_by_label("Example").select_option(label="to one")
    assert field.input_value() not in (first, "")
    try_call(page, "send", 201)
    assert service.balance(caller.development) == 850
    field.fill("january")
    page.locator("#send").get_by_label("Example").select_option(label="to two")
    assert field.input_value() == "january"
    page.reload()
    assert field.input_value() not in (first, "january", "")


@pytest.mark.long
def test_with_a_live_key_a_send_needs_a_second_click(look: Look, service: Service) -> None:
    caller = service.organization(1_000)
    page = look.at("/docs#send", width=390)
    key_field(page).fill(caller.live)
    expect(page.locator("#key-says")).to_contain_text("real")
    form = unfold(page, "send")
    expect(form.locator(".warning")).to_be_visible()
    button, yes = form.get_by_role("button", name="Try it"), form.get_by_role("button", name="Yes, for real")
    button.dblclick()
    expect(button).to_be_visible()
    form.get_by_label("Prefer").press("Enter")
    expect(yes).to_be_visible()
    page.keyboard.press("Enter")
    expect(yes).to_be_hidden()
    button.click()
    form.get_by_label("Body", exact=True).press("Space")
    expect(yes).to_be_hidden()
    assert service.balance(caller.live) == 1_000
    button.click()
    yes.click()
    answered(form, 201)
    assert service.balance(caller.live) == 900
    try_call(page, "verify", 200)
    try_call(page, "showOrganization", 200)


def test_without_a_key_the_page_asks_for_one_and_it_keeps_none(look: Look) -> None:
    page = look.at("/docs#send")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.locator("#send").get_by_role("button", name="Try it").click()
    expect(key_field(page)).to_be_focused()
    expect(page.locator("#key-says")).to_contain_text("needs one")
    try_call(page, "showHealth", 200)
    assert [url for url in asked if "/v1/" in url] == []
    key_field(page).fill("pts_dev_0")
    page.reload()
    expect(key_field(page)).to_have_value("")
    assert page.evaluate("localStorage.length + sessionStorage.length + document.cookie.length") == 0
