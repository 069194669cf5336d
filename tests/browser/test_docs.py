"""`/docs` in a browser: a caller pastes a key, reads about every call, tries it, and sees what is answered."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Look
from tests.browser.page_checks import (
    faint_texts,
    ids_used_twice,
    nameless_controls,
    open_everything,
    width_beyond_the_window,
)
from tests.e2e.conftest import Service


def try_call(page: Page, call: str, status: int) -> None:
    form = page.locator(f"#{call} form")
    form.get_by_role("button", name="Try it").click()
    expect(form.locator(".outcome .status")).to_have_text(str(status), timeout=60_000)


def test_a_caller_pastes_a_key_and_verifies_and_sends(look: Look, service: Service) -> None:
    caller = service.organization(0, sandbox_balance=1_000)
    page = look.at("/docs#send")
    page.get_by_label("API key").fill(caller.development)
    expect(page.locator("#key-says")).to_contain_text("sandbox")
    try_call(page, "verify", 200)
    expect(page.locator("#verify pre.body")).to_contain_text('"validated": true')
    page.locator("#send").get_by_label("Idempotency-Key").fill("january")
    try_call(page, "send", 201)
    expect(page.locator("#send pre.body")).to_contain_text('"current_balance": 900')
    expect(page.locator("#send .headers")).to_contain_text("x-request-id")
    expect(page.locator("#send .warning")).to_be_hidden()
    try_call(page, "send", 201)
    expect(page.locator("#send .headers")).to_contain_text("idempotency-replayed")
    assert service.balance(caller.development) == 900


def test_every_call_is_on_the_page_and_can_be_tried(look: Look, service: Service) -> None:
    caller = service.organization(0, sandbox_balance=1_000)
    sent = service.send(caller.development, {"recipient": "a@example.com", "amount": 1}).json()
    known = {
        "showBatch": sent["additional_data"]["batch_id"],
        "showTransaction": sent["data"]["transactions"][0]["id"],
    }
    page = look.at("/docs")
    page.get_by_label("API key").fill(caller.development)
    for methods in service.call("GET", "/openapi.json").json()["paths"].values():
        for operation in methods.values():
            call = operation["operationId"]
            expect(page.locator(f"nav a[href='#{call}']")).to_be_visible()
            for parameter in operation["parameters"]:
                if parameter.get("in") == "path":
                    page.locator(f"#{call}-{parameter['name']}").fill(str(known[call]))
            try_call(page, call, 201 if call == "send" else 200)


def test_a_live_key_is_told_that_points_are_real(look: Look, service: Service) -> None:
    page = look.at("/docs")
    page.get_by_label("API key").fill(service.organization(10).live)
    expect(page.locator("#key-says")).to_contain_text("real")
    expect(page.locator("#send .warning")).to_be_visible()
    expect(page.locator("#verify .warning")).to_be_hidden()


def test_a_key_may_be_pasted_with_the_word_before_it_and_is_known_all_the_same(look: Look, service: Service) -> None:
    caller = service.organization(100)
    page = look.at("/docs")
    page.get_by_label("API key").fill(f"Bearer {caller.live}")
    expect(page.locator("#key-says")).to_contain_text("A live key")
    try_call(page, "verify", 200)


def test_a_refusal_is_shown_with_what_it_means(look: Look, service: Service) -> None:
    caller = service.organization(10)
    page = look.at("/docs")
    page.get_by_label("API key").fill(caller.live)
    page.locator("#send").get_by_label("Body", exact=True).fill('{"recipients": ["nonsense"], "amount": "5"}')
    try_call(page, "send", 400)
    expect(page.locator("#send [role=status]")).to_contain_text("faults")
    expect(page.locator("#send pre.body")).to_contain_text("no @-sign")


def test_without_a_key_the_page_asks_for_one_and_not_the_service(look: Look) -> None:
    page = look.at("/docs")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.locator("#send").get_by_role("button", name="Try it").click()
    expect(page.get_by_label("API key")).to_be_focused()
    expect(page.locator("#key-says")).to_contain_text("Paste yours")
    try_call(page, "showHealth", 200)
    assert [url for url in asked if "/v1/" in url] == []


def test_the_key_is_gone_when_the_page_is_loaded_again(look: Look) -> None:
    page = look.at("/docs")
    page.get_by_label("API key").fill("pts_dev_0")
    page.reload()
    expect(page.get_by_label("API key")).to_have_value("")
    assert page.evaluate("localStorage.length + sessionStorage.length + document.cookie.length") == 0


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [320, 390, 1280])
def test_it_is_readable_at_any_width_in_light_and_in_the_dark(
    look: Look, service: Service, width: int, dark: bool
) -> None:
    page = look.at("/docs", width=width, dark=dark)
    page.get_by_label("API key").fill(service.organization(1_000).live)
    try_call(page, "send", 201)
    open_everything(page)
    assert width_beyond_the_window(page) <= 0
    assert faint_texts(page) == []
    colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
    red, green, blue = map(int, re.findall(r"\d+", colour)[:3])
    assert (red + green + blue < 3 * 64) is dark


def test_it_is_used_by_keyboard_and_by_ear(look: Look) -> None:
    page = look.at("/docs")
    expect(page.locator("#send")).to_be_visible()
    open_everything(page)
    assert nameless_controls(page) == []
    assert ids_used_twice(page) == []
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the calls")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#calls")).to_be_focused()
    page.locator("#showHealth").get_by_label("X-Request-Id").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#showHealth .outcome .status")).to_have_text("200")


def test_an_answer_shows_its_fields_with_types_and_meaning(look: Look) -> None:
    page = look.at("/docs")
    page.locator("#send .answers > details").first.locator("summary").click()
    fields = page.locator("#send .answers > details").first.locator("table", has_text="Fields")
    expect(fields).to_contain_text("data.transactions[].organization.last_refill")
    expect(fields).to_contain_text("The balance right after the last refill.")
    expect(fields).to_contain_text("User or null")
    expect(page.locator("#send table", has_text="Body, JSON").locator("th code").first).to_have_text("recipients")
