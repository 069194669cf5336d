"""The pages of webhooks: made and shown with the secret once, what was delivered, and what an admin does with one."""

import html
import re

import pytest
from cryptography.fernet import Fernet

from app.events.sequencer import number_events
from app.members.members import ADMIN
from app.postgres.database import transaction
from app.web.application import create_app
from app.webhooks import actions as webhook_actions
from app.webhooks import webhooks
from tests.conftest import forget_everything
from tests.integration import books
from tests.integration.races import started, until_waiting
from tests.integration.visitors import Visitor, visitor

pytestmark = pytest.mark.usefixtures("database")

_URL = "https://192.0.2.7/hook"


@pytest.fixture
def admin(monkeypatch: pytest.MonkeyPatch) -> Visitor:
    monkeypatch.setenv("POINTS_SECRETS_KEY", Fernet.generate_key().decode())
    monkeypatch.setenv("POINTS_WEBHOOK_ALLOW", "192.0.2.0/24")
    forget_everything()
    return visitor(create_app(), books.make_organization(100), ADMIN)


def _make(admin: Visitor, **form: str) -> str:
    page = admin.post("/webhooks", of="/webhooks", **{"url": _URL, "types": "*", "description": "Shop", **form})
    assert page.status_code == 200, page.text
    return _secret_on(page.text)


def _secret_on(page: str) -> str:
    [secret] = re.findall(r"whsec_[\w+/=]+", html.unescape(page))
    return str(secret)


def test_a_webhook_is_made_in_the_mode_of_the_page_and_its_secret_is_shown_once(admin: Visitor) -> None:
    secret = _make(admin, types="batch.*, transaction.claimed")
    listed = admin.get("/webhooks").text
    assert "batch.*, transaction.claimed" in listed
    page = admin.get("/webhooks/1").text
    assert _URL in page
    assert secret not in listed + page
    assert "Shop" not in admin.get("/console/sandbox/webhooks").text
    assert admin.get("/console/sandbox/webhooks/1").status_code == 404
    assert "Ann Admin</td>" in admin.get("/activity").text
    assert "Made live webhook 1" in admin.get("/activity").text


@pytest.mark.parametrize(
    ("field", "value", "fault"),
    [
        ("url", "", "URL is required."),
        ("url", "http://10.0.0.1/", "URL "),
        ("types", "batch.*, bach.issued", "“bach.issued”: There is no type of this name: did you mean batch.issued"),
        ("types", ",".join(f"no.{number}" for number in range(51)), "may be 50 at most, but are 51"),
        ("description", "x" * 256, "255 characters"),
    ],
)
def test_a_fault_is_that_of_the_interface_in_the_words_of_the_page_beside_its_field(
    admin: Visitor, field: str, value: str, fault: str
) -> None:
    form = {"url": _URL, "types": "*", "description": ""} | {field: value}
    page = admin.post("/webhooks", of="/webhooks", **form)
    assert page.status_code == 400
    assert re.search(rf'id="{field}-wrong-1">[^<]*{fault}', html.unescape(page.text))


def test_without_a_key_for_secrets_the_page_says_what_is_missing() -> None:
    admin = visitor(create_app(), books.make_organization(), ADMIN)
    page = admin.post("/webhooks", of="/webhooks", url=_URL, types="*", description="")
    assert page.status_code == 400
    assert "POINTS_SECRETS_KEY" in page.text


def test_a_webhook_is_pinged_disabled_enabled_and_deleted(admin: Visitor) -> None:
    _make(admin)
    for action, state in (("ping", "enabled"), ("disable", "disabled"), ("enable", "enabled")):
        assert admin.post(f"/webhooks/1/{action}", of="/webhooks/1").location == "/console/live/webhooks/1"
        assert f'<span class="status {state}">' in admin.get("/webhooks/1").text
    with transaction() as connection:
        number_events(connection, admin.organization_id)
        types = connection.exec_driver_sql("SELECT type FROM events ORDER BY sequence").scalars().all()
    assert {"ping", "webhook.disabled"} <= set(types)
    admin.post("/webhooks/1/delete", of="/webhooks/1")
    assert "Webhook 1 is deleted." in admin.get("/webhooks").text
    activity = admin.get("/activity").text
    assert all(f"Live webhook 1: {done}" in activity for done in ("pinged", "disabled", "enabled", "deleted"))


def test_a_webhook_that_two_disable_at_once_is_disabled_by_one_event(admin: Visitor) -> None:
    _make(admin)
    with started() as start, transaction() as first:
        found = webhooks.get(first, 1, organization_id=admin.organization_id, sandbox=False, lock=True)
        webhook_actions.disable(first, found)
        second = start(lambda: admin.post("/webhooks/1/disable", of="/webhooks/1"))
        until_waiting()
        first.commit()
        assert second.result().location == "/console/live/webhooks/1"
    with transaction() as connection:
        number_events(connection, admin.organization_id)
        types = connection.exec_driver_sql("SELECT type FROM events").scalars().all()
    assert types.count("webhook.disabled") == 1


def test_what_cannot_be_done_is_said_on_the_page_and_is_no_activity(admin: Visitor) -> None:
    _make(admin)
    admin.post("/webhooks/1/skip", of="/webhooks/1")
    assert "not stuck" in admin.get("/webhooks/1").text
    for typed, fault in (("7", "has not passed event 7"), *((one, "Enter the number") for one in ("0", "x", "²", ""))):
        answer = admin.post("/webhooks/1/replay", of="/webhooks/1", from_sequence=typed)
        assert answer.status_code == 400
        assert re.search(f'id="from_sequence-wrong-1">[^<]*{fault}', answer.text)
    assert "Live webhook" not in admin.get("/activity").text


def test_a_stuck_webhook_shows_its_attempts_and_skips_and_replays(admin: Visitor) -> None:
    _make(admin)
    books.issue_now(admin.organization_id, ["bo@example.com"], 10)
    with transaction() as connection:
        number_events(connection, admin.organization_id)
        [(sequence, event_id)] = connection.exec_driver_sql(
            "SELECT sequence, id FROM events WHERE type = 'batch.issued'"
        ).all()
    books.execute(
        f"UPDATE webhooks SET position = {sequence - 1}, failures = 2, failing_since = now(), retry_at = now()",
        "INSERT INTO webhook_deliveries (webhook_id, sequence, event_id, type, attempt, status, ms, error)"
        f" VALUES (1, {sequence}, 'evt_{event_id}', 'batch.issued', 2, 500, 12, 'status')",
    )
    page = admin.get("/webhooks/1").text
    assert "2 attempts of the next event" in page
    assert re.search(r'data-label="Outcome">\s*status \(500\)', page)
    admin.post("/webhooks/1/skip", of="/webhooks/1")
    assert f"event {sequence} of" in admin.get("/webhooks/1").text
    admin.post("/webhooks/1/replay", of="/webhooks/1", from_sequence=str(sequence))
    assert f"event {sequence - 1} of" in admin.get("/webhooks/1").text
    assert f"replayed from event {sequence}" in admin.get("/activity").text


def test_a_new_secret_is_shown_once_and_the_old_one_signs_along(admin: Visitor) -> None:
    old = _make(admin)
    page = admin.post("/webhooks/1/rotate", of="/webhooks/1")
    assert _secret_on(page.text) != old
    with transaction() as connection:
        until = connection.exec_driver_sql("SELECT previous_secret_until > now() FROM webhooks").scalar()
    assert until
