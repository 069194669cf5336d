"""`/docs` in a browser: a caller pastes a key, reads about every call, tries it, and sees what is answered."""

import json
import re
from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import Locator, Page, expect

from app import api_keys, organizations
from tests.browser.conftest import Look
from tests.browser.page_checks import open_everything, require_named, require_seen_whole
from tests.deadline import until
from tests.service.inside import Organization, Service


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
    page.get_by_label("API key").fill(caller.development)
    expect(page.locator("#key-says")).to_contain_text("sandbox")
    try_call(page, "verify", 200)
    expect(page.locator("#verify pre.body")).to_contain_text('"validated": true')
    try_call(page, "send", 201)
    expect(page.locator("#send pre.body")).to_contain_text('"current_balance": 900')
    expect(page.locator("#send .headers")).to_contain_text("x-request-id")
    expect(page.locator("#send .warning")).to_be_hidden()
    assert service.balance(caller.development) == 900


def test_a_send_has_a_key_of_its_own_until_its_body_is_another(look: Look, service: Service) -> None:
    caller = service.organization(0, sandbox_balance=1_000)
    page = look.at("/docs#send")
    page.get_by_label("API key").fill(caller.development)
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


def test_with_a_live_key_a_send_needs_a_second_click(look: Look, service: Service) -> None:
    caller = service.organization(1_000)
    page = look.at("/docs#send", width=390)
    page.get_by_label("API key").fill(caller.live)
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


def test_a_202_leads_to_its_batch(look: Look, service: Service) -> None:
    caller = service.organization(0, sandbox_balance=1_000)
    page = look.at("/docs#send")
    page.get_by_label("API key").fill(caller.development)
    page.locator("#send").get_by_label("Prefer").fill("respond-async")
    try_call(page, "send", 202)
    batches = service.call("GET", "/v1/batches", key=caller.development).json()["data"]["batches"]
    page.get_by_role("button", name=f"Read /v1/batches/{batches[0]['batch_id']}").click()
    answered(page.locator("#showBatch form"), 200)
    expect(page.locator("#showBatch pre.body")).to_contain_text(f'"batch_id": {batches[0]["batch_id"]}')
    expect(page.locator("#showBatch form")).to_be_in_viewport()


def _webhooks(service: Service, key: str) -> dict[str, int]:
    """Make webhooks and return, for each call of one, an id: one to be deleted, one stuck, and one for the others."""
    ids = [
        service.call("POST", "/v1/webhooks", key=key, json={"url": "http://127.0.0.1:1024/", "types": ["key.*"]}).json()
        for _ in range(3)
    ]
    deleted, stuck, other = (answer["data"]["id"] for answer in ids)
    assert service.call("POST", f"/v1/webhooks/{stuck}/ping", key=key).status_code == 200
    until(lambda: service.call("GET", f"/v1/webhooks/{stuck}", key=key).json()["data"]["failures"] == 1, within_s=30)
    calls = ("show", "change", "ping", "rotate", "disable", "enable", "replay")
    return {f"{call}Webhook": other for call in calls} | {
        "listDeliveries": other,
        "deleteWebhook": deleted,
        "skipWebhook": stuck,
    }


def _awaiting(service: Service, caller: Organization) -> dict[str, int]:
    """Make batches of another key that await an approval; return one for each of the calls that answer it."""
    with service.connection() as connection:
        _, another = api_keys.create(connection, caller.id, sandbox=True)
        organizations.change(connection, caller.id, {"approval_above": 900, "approval_of": "all"})
    large = {"recipient": "a@example.com", "amount": 901}
    return {call: service.send(another, large).json()["data"]["batch_id"] for call in ("approveBatch", "rejectBatch")}


@pytest.mark.long
def test_every_call_stands_in_its_group_and_can_be_tried(look: Look, service: Service) -> None:
    caller = service.organization(0, sandbox_balance=1_000)
    sent = service.send(caller.development, {"recipient": "a@example.com", "amount": 1}).json()
    batch_id, tomorrow = sent["additional_data"]["batch_id"], (datetime.now(UTC) + timedelta(days=1)).isoformat()
    later = {"recipient": "a@example.com", "amount": 1, "send_at": tomorrow}
    held = {"recipient": "a@example.com", "amount": 1, "hold_days": 1}
    taken_back = service.call(
        "POST", "/v1/points/reverse", key=caller.development, json={"batch": batch_id, "amount": 1, "reason": "x"}
    )
    webhooks = _webhooks(service, caller.development)
    known = {
        **webhooks,
        "showBatch": batch_id,
        "showTransaction": sent["data"]["transactions"][0]["id"],
        "showReversal": taken_back.json()["data"]["reversal_id"],
        "rescheduleBatch": service.send(caller.development, later).json()["data"]["batch_id"],
        "cancelBatch": service.send(caller.development, later).json()["data"]["batch_id"],
        "extendTransaction": service.send(caller.development, held).json()["data"]["transactions"][0]["id"],
        **_awaiting(service, caller),
    }
    bodies = {
        "verifyReverse": {"batch": batch_id, "reason": "x"},
        "reverse": {"batch": batch_id, "reason": "x"},
        "rescheduleBatch": {"send_at": tomorrow},
        "extendTransaction": {"held_until": (datetime.now(UTC) + timedelta(days=9)).isoformat()},
        "createWebhook": {"url": "http://127.0.0.1:1024/"},
        "changeWebhook": {"url": "http://127.0.0.1:1024/"},
        "replayWebhook": {"from_sequence": 1},
        "rejectBatch": {"reason": "x"},
    }
    statuses = {"registerSandboxUser": 201, "send": 201, "reverse": 201, "createWebhook": 201, "deleteWebhook": 204}
    page = look.at("/docs")
    page.get_by_label("API key").fill(caller.development)
    for path, methods in service.call("GET", "/openapi.json").json()["paths"].items():
        usual = 403 if path.startswith("/v1/platform/") else 200  # These take another key, and say so.
        for operation in methods.values():
            call = operation["operationId"]
            group = page.locator(
                "section.group", has=page.get_by_role("heading", name=operation["tags"][0], exact=True)
            )
            expect(group.locator(f"#{call}")).to_contain_text(operation["summary"])
            unfold(page, call)
            for parameter in operation["parameters"]:
                if parameter.get("in") == "path":
                    page.locator(f"#{call}-{parameter['name']}").fill(str(known[call] if usual == 200 else 1))
                elif parameter.get("in") == "query" and parameter.get("required"):  # A day.
                    page.locator(f"#{call}-{parameter['name']}").fill(f"{datetime.now(UTC):%Y-%m-%d}")
            if call in bodies:
                page.locator(f"#{call} textarea").fill(json.dumps(bodies[call]))
            try_call(page, call, statuses.get(call, usual))


def test_a_refusal_is_shown_with_what_it_means(look: Look, service: Service) -> None:
    page = look.at("/docs#send")
    page.get_by_label("API key").fill(service.organization().development)
    page.locator("#send").get_by_label("Body", exact=True).fill('{"recipients": ["nonsense"], "amount": "5"}')
    try_call(page, "send", 400)
    expect(page.locator("#send [role=status]")).to_contain_text("faults")
    expect(page.locator("#send pre.body")).to_contain_text("no @-sign")


def test_without_a_key_the_page_asks_for_one_and_it_keeps_none(look: Look) -> None:
    page = look.at("/docs#send")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.locator("#send").get_by_role("button", name="Try it").click()
    expect(page.get_by_label("API key")).to_be_focused()
    expect(page.locator("#key-says")).to_contain_text("needs one")
    try_call(page, "showHealth", 200)
    assert [url for url in asked if "/v1/" in url] == []
    page.get_by_label("API key").fill("pts_dev_0")
    page.reload()
    expect(page.get_by_label("API key")).to_have_value("")
    assert page.evaluate("localStorage.length + sessionStorage.length + document.cookie.length") == 0


@pytest.mark.long
@pytest.mark.parametrize(("width", "dark"), [(320, True), (1280, False)], ids=["phone-dark", "wide-light"])
def test_it_is_readable_at_any_width_light_or_dark(look: Look, service: Service, width: int, dark: bool) -> None:
    page = look.at("/docs#send", width=width, dark=dark)
    page.get_by_label("API key").fill(service.organization(1_000).live)
    try_call(page, "verify", 200)
    unfold(page, "send").get_by_role("button", name="Try it").click()
    open_everything(page)
    require_seen_whole(page)
    colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
    red, green, blue = map(int, re.findall(r"\d+", colour)[:3])
    assert (red + green + blue < 3 * 64) is dark


def test_it_is_used_by_keyboard_and_by_ear(look: Look) -> None:
    page = look.at("/docs#showHealth")
    expect(page.locator("#showHealth .inside")).to_be_visible()
    open_everything(page)
    require_named(page)
    page = look.at("/docs")  # Where the address names a call, the first Tab leads into that.
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the calls")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#calls")).to_be_focused()
    form = unfold(page, "showHealth")
    form.get_by_label("X-Request-Id").focus()
    page.keyboard.press("Enter")
    answered(form, 200)
