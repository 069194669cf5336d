"""Deliveries: an endpoint is a cursor over the log, moved by one owner at a time, whatever the receiver does."""

import threading
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography.fernet import Fernet
from sqlalchemy import text
from standardwebhooks import Webhook as Signer
from standardwebhooks import WebhookVerificationError

from app.encryption import encrypted
from app.errors import InvalidRequest
from app.events.restores import SKIPPED, leave_behind
from app.pages import lists
from app.pages.filters import Filters
from app.postgres.database import transaction
from app.scope import Scope
from app.settings import settings
from app.webhooks import actions as webhook_actions
from app.webhooks import attempts, cursors, delivery, posting
from app.webhooks.actions import new_secret
from app.webhooks.lag import lag_by_status, lags
from app.webhooks.webhook import PREVIOUS_SECRETS_MAX, Webhook, WebhookRotatedOften, webhooks
from tests.deadline import until
from tests.integration import books, hooks, races
from tests.receiver import Receiver, close_in_the_middle, flood, hang, status

pytestmark = pytest.mark.usefixtures("database")


@pytest.fixture(autouse=True)
def _settings(environment: None, monkeypatch: pytest.MonkeyPatch) -> None:
    hooks.allow_receivers_here(monkeypatch)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver().running() as running:
        yield running


@pytest.fixture
def organization_id() -> int:
    """Make an organization whose log is numbered as far as it goes."""
    made = books.make_organization(100)
    hooks.number(made)
    return made


@pytest.fixture
def webhook(organization_id: int, receiver: Receiver) -> Webhook:
    """Make a webhook whose log has one event for it."""
    made = hooks.make(organization_id, receiver.url)
    hooks.write(organization_id, "key.created")
    return made


def _read(webhook: Webhook) -> Webhook:
    return books.run(webhooks.get, webhook.id, Scope(webhook.organization_id, webhook.sandbox))


def _do(action: Callable[..., Any], webhook: Webhook, *more: Any) -> Any:
    with transaction() as connection:
        row = webhooks.get(connection, webhook.id, Scope(webhook.organization_id, webhook.sandbox), lock=True)
        return action(connection, row, *more)


def _deliver(webhook: Webhook) -> None:
    delivery.deliver(webhook.id, tell=lambda _: None)


def _set(webhook: Webhook, **moments: str) -> None:
    """Let time pass for a webhook: set moments of its row to SQL expressions."""
    changes = ", ".join(f"{name} = {value}" for name, value in moments.items())
    books.execute(f"UPDATE webhooks SET {changes} WHERE id = {webhook.id}")


def _retry(webhook: Webhook) -> None:
    """Let the time until the next attempt pass, and deliver."""
    _set(webhook, retry_at="clock_timestamp()")
    _deliver(webhook)


def _after(webhook: Webhook, receiver: Receiver) -> list[int]:
    """Return what has come, counted from the webhook's beginning."""
    return [sequence - webhook.position for sequence in receiver.sequences]


def test_a_flapping_receiver_gets_each_event_at_least_once_in_order(organization_id: int, receiver: Receiver) -> None:
    webhook = hooks.make(organization_id, receiver.url)
    hooks.write(organization_id, *["key.created"] * 6)
    answers = [status(500), status(200), close_in_the_middle, status(302, Location=receiver.url), status(200)]
    plan = iter([*answers, status(404), flood, status(200), status(429), status(200)])

    receiver.answer = lambda handler: next(plan)(handler)  # noqa: PLW0108  # Each call takes the next.
    for _ in range(7):
        _retry(webhook)
    seen = _after(webhook, receiver)
    assert seen == [1, 1, 2, 3, 3, 4, 4, 5, 6, 6]
    assert _read(webhook).status == "enabled"


def test_a_hanging_receiver_is_given_up_and_holds_no_connection(
    organization_id: int, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(posting, "ATTEMPT_TIMEOUT_S", 1.5)
    webhook = hooks.make(organization_id, receiver.url)
    hooks.write(organization_id, "key.created")
    receiver.answer = hang
    under_way = threading.Thread(target=_deliver, args=(webhook,))
    under_way.start()
    until(lambda: receiver.calls, "the receiver is asked")
    others = books.value(_OTHER_TRANSACTIONS)
    under_way.join()
    assert others == 0
    assert _read(webhook).failures == 1


_OTHER_TRANSACTIONS = text("""
    SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND state <> 'idle' AND pid <> pg_backend_pid()
      AND backend_type = 'client backend'
""")


@pytest.mark.parametrize("asked", ["Thu, 99 Foo 99999", "9" * 400])
def test_an_impossible_retry_after_changes_neither_a_failed_attempt_nor_a_success(
    webhook: Webhook, receiver: Receiver, asked: str
) -> None:
    receiver.answer = status(503, Retry_After=asked)
    before = datetime.now(UTC)
    _deliver(webhook)
    failing = _read(webhook)
    assert (failing.status, failing.failures, failing.position) == ("failing", 1, webhook.position)
    assert failing.retry_at is not None
    assert before + timedelta(seconds=3) < failing.retry_at <= datetime.now(UTC) + timedelta(seconds=10)
    receiver.answer = status(204, Retry_After=asked)
    _retry(webhook)
    assert (_read(webhook).status, _read(webhook).position) == ("enabled", webhook.position + 1)
    assert _attempts(webhook) == [(1, 503, "refused"), (2, 204, None)]


def _attempts(webhook: Webhook) -> list[tuple[int, int | None, str | None]]:
    """Return the number, status and error of each attempt that is shown, the oldest first."""
    with transaction() as connection:
        filters = Filters(organization_id=webhook.organization_id, sandbox=False, webhook_id=webhook.id)
        shown = lists.deliveries(connection, filters, start=None, limit=50)
    return [(one.attempt, one.status, one.error) for one in reversed(shown.rows)]


_UNRENDERABLE = {
    "a number of 65 bits": '{"key": {"id": 18446744073709551616}}',
    "a number of 5000 digits": f'{{"key": {{"id": {"9" * 5_000}}}}}',
    "half a character": r'{"key": {"id": "\ud800"}}',
}


@pytest.mark.parametrize("data", _UNRENDERABLE.values(), ids=_UNRENDERABLE)
def test_an_event_that_cannot_be_rendered_is_a_failed_attempt_and_can_be_skipped(
    webhook: Webhook, organization_id: int, receiver: Receiver, data: str
) -> None:
    books.execute(
        f"INSERT INTO unnumbered_events (organization_id, sandbox, type, data) VALUES ({organization_id}, false,"
        f" 'key.created', '{data}')"
    )
    hooks.write(organization_id, "key.revoked")
    _deliver(webhook)
    failing = _read(webhook)
    assert (failing.status, failing.failures, failing.position) == ("failing", 1, webhook.position + 1)
    assert _attempts(webhook) == [(1, 200, None), (1, None, "not_renderable")]
    _retry(webhook)
    assert _attempts(webhook)[2:] == [(2, None, "not_renderable")]
    _do(webhook_actions.skip, webhook)
    _deliver(webhook)
    assert _after(webhook, receiver) == [1, 3]
    assert (_read(webhook).status, _read(webhook).failures) == ("enabled", 0)


def _spoil_secret(webhook: Webhook, _monkeypatch: pytest.MonkeyPatch) -> None:
    with transaction() as connection:
        webhooks.set(connection, webhook, secret=encrypted("whsec_%"))


def _spoil_url(webhook: Webhook, _monkeypatch: pytest.MonkeyPatch) -> None:
    _set(webhook, url="'ftp://example.com/'")


def _spoil_authorities(webhook: Webhook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", __file__)
    posting._ssl_context.cache_clear()
    _set(webhook, url="'https://127.0.0.1:1024/'")


@pytest.mark.parametrize(
    ("spoil", "error"),
    [(_spoil_secret, "internal_error"), (_spoil_url, "address_refused"), (_spoil_authorities, "internal_error")],
)
def test_whatever_goes_wrong_in_an_attempt_is_a_failed_attempt(
    webhook: Webhook,
    monkeypatch: pytest.MonkeyPatch,
    events: list[MutableMapping[str, Any]],
    spoil: Callable[[Webhook, pytest.MonkeyPatch], None],
    error: str,
) -> None:
    spoil(webhook, monkeypatch)
    _deliver(webhook)
    assert (_read(webhook).status, _read(webhook).failures) == ("failing", 1)
    assert _attempts(webhook) == [(1, None, error)]
    assert [event["error"] for event in events if event["event"] == "webhook_failed"] == [error]
    _do(webhook_actions.skip, webhook)
    assert _read(webhook).position == webhook.position + 1


def test_410_disables_and_an_event_says_so(webhook: Webhook, organization_id: int, receiver: Receiver) -> None:
    receiver.answer = status(410)
    _deliver(webhook)
    gone = _read(webhook)
    assert (gone.status, gone.disabled_reason, gone.position) == ("disabled", "gone", webhook.position)
    assert gone.retry_at is None
    hooks.number(organization_id)
    told = books.values("SELECT data -> 'webhook' ->> 'disabled_reason' FROM events WHERE type = 'webhook.disabled'")
    assert told == ["gone"]


def test_five_days_of_nothing_but_failures_disable_and_a_success_in_between_does_not(
    organization_id: int, receiver: Receiver
) -> None:
    webhook = hooks.make(organization_id, receiver.url)
    hooks.write(organization_id, *["key.created"] * 3)
    receiver.answer = status(500)
    _deliver(webhook)
    _set(webhook, failing_since="clock_timestamp() - interval '4 days 23 hours'")
    _retry(webhook)
    assert _read(webhook).status == "failing"
    receiver.answer = status(200)
    _set(webhook, failing_since="clock_timestamp() - interval '6 days'")
    _retry(webhook)
    assert _read(webhook).status == "enabled"
    receiver.answer = status(500)
    hooks.write(organization_id, "key.created")
    _deliver(webhook)
    _set(webhook, failing_since="clock_timestamp() - interval '5 days'")
    _retry(webhook)
    assert (_read(webhook).status, _read(webhook).disabled_reason) == ("disabled", "failing")


@pytest.mark.parametrize(("action", "more"), [(webhook_actions.skip, []), (webhook_actions.replay, [1])])
def test_after_a_skip_or_a_replay_the_five_days_begin_anew(
    webhook: Webhook, organization_id: int, receiver: Receiver, action: Callable[..., Webhook], more: list[int]
) -> None:
    hooks.write(organization_id, "key.created")
    receiver.answer = status(500)
    _deliver(webhook)
    _do(action, webhook, *more)
    _set(webhook, failing_since="clock_timestamp() - interval '6 days'")
    for _ in range(2):
        _retry(webhook)
        assert _read(webhook).status == "failing"


def test_the_times_between_attempts_are_those_of_the_contract() -> None:
    hour = 3_600
    steps = [5, 300, 1_800, *(hours * hour for hours in (2, 5, 10, 14, 20, 24, 24, 24))]
    for failures, step in enumerate(steps, start=1):
        found = [attempts.delay_s(failures, retry_after_s=None) for _ in range(100)]
        assert 0.8 * step <= min(found) < 0.9 * step < 1.1 * step < max(found) <= 1.2 * step
        for asked, obeyed in ((1.9 * step, 1.9 * step), (100 * step, 2 * step), (0.3 * step, 0.3 * step), (0, 1)):
            assert attempts.delay_s(failures, retry_after_s=asked) == obeyed


def test_only_the_types_that_are_asked_for_arrive_of_one_mode_and_the_rest_is_passed(
    organization_id: int, receiver: Receiver
) -> None:
    webhook = hooks.make(organization_id, receiver.url, "batch.*", "key.revoked")
    hooks.write(organization_id, "batch.issued", sandbox=True)
    told = ("key.created", "batch.issued", "key.revoked", "balance.low", "batch.refused", "key.created")
    hooks.write(organization_id, *told)
    _deliver(webhook)
    assert _after(webhook, receiver) == [2, 3, 5]
    assert _read(webhook).position == webhook.position + 6


def test_of_many_that_are_not_asked_for_the_few_are_found(
    organization_id: int, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.webhooks.webhook._LOOKED_AT_MAX", 5)
    monkeypatch.setattr("app.webhooks.webhook._EVENTS_READ_MAX", 2)
    webhook = hooks.make(organization_id, receiver.url, "key.revoked")
    hooks.write(organization_id, *["key.created"] * 17, *["key.revoked"] * 3, *["key.created"] * 6, "key.revoked")
    _deliver(webhook)
    assert _after(webhook, receiver) == [18, 19, 20, 27]
    books.run(leave_behind)
    assert books.run(lags)[0].events == 0
    hooks.write(organization_id, "key.created", "key.revoked")
    assert books.run(lags)[0].events == 2
    _deliver(webhook)
    assert _after(webhook, receiver)[4:] == [29 + SKIPPED]


def test_a_ping_is_for_the_webhook_that_was_pinged(organization_id: int, receiver: Receiver) -> None:
    with Receiver().running() as other:
        pinged = hooks.make(organization_id, receiver.url, "batch.*")
        besides = hooks.make(organization_id, other.url)
        _do(webhook_actions.ping, pinged)
        hooks.write(organization_id, "key.created")
        _deliver(pinged)
        _deliver(besides)
        assert [call.event["type"] for call in receiver.calls] == ["ping"]
        assert [call.event["type"] for call in other.calls] == ["key.created"]


@pytest.mark.usefixtures("many_connections")
def test_some_that_deliver_at_once_send_each_event_once(organization_id: int, receiver: Receiver) -> None:
    webhook = hooks.make(organization_id, receiver.url)
    hooks.write(organization_id, *["key.created"] * 20)
    races.at_once(*[lambda: _deliver(webhook)] * 4)
    assert _after(webhook, receiver) == list(range(1, 21))


def test_an_owner_that_died_blocks_for_seconds_and_a_clock_that_was_set_back_for_none(
    webhook: Webhook, organization_id: int, receiver: Receiver
) -> None:
    assert books.run(cursors.own, webhook.id) is not None
    _deliver(webhook)
    assert receiver.calls == []
    _set(webhook, owned_until="clock_timestamp()")
    _deliver(webhook)
    assert _after(webhook, receiver) == [1]
    hooks.write(organization_id, "key.created")
    _set(webhook, owned_until="clock_timestamp() + interval '1 hour'")
    _deliver(webhook)
    assert _after(webhook, receiver) == [1, 2]
    hooks.write(organization_id, "key.created")
    _set(webhook, retry_at="clock_timestamp() + interval '48 hours'")
    _deliver(webhook)
    assert _after(webhook, receiver) == [1, 2], "a receiver may have asked for that long"
    _set(webhook, retry_at="clock_timestamp() + interval '400 days'")
    _deliver(webhook)
    assert _after(webhook, receiver) == [1, 2, 3]


@pytest.mark.parametrize("change", ["replay", "disable", "delete", "patch"])
def test_what_a_call_changes_meanwhile_is_not_undone(organization_id: int, receiver: Receiver, change: str) -> None:
    """The call comes while the receiver is asked: whoever delivers then moves nothing any more."""
    hooks.write(organization_id, "key.created")
    webhook = hooks.make(organization_id, receiver.url)
    hooks.write(organization_id, "key.created", "key.created")

    def answer(handler: Any) -> None:
        receiver.answer = status(200)
        with transaction() as connection:
            found = _read(webhook)
            if change == "replay":
                webhook_actions.replay(connection, found, webhook.position)
            elif change == "disable":
                webhook_actions.disable(connection, found)
            elif change == "delete":
                webhooks.delete(connection, found)
            else:
                webhook_actions.change(connection, found, {"types": ["balance.low"]})
        status(200)(handler)

    receiver.answer = answer
    _deliver(webhook)
    assert _after(webhook, receiver) == [1]
    if change != "delete":
        assert _read(webhook).position == webhook.position - (change == "replay")
    if change == "replay":
        _deliver(webhook)
        assert _after(webhook, receiver) == [1, 0, 1, 2]


def test_replay_goes_back_no_further_than_what_is_kept(organization_id: int, receiver: Receiver) -> None:
    webhook = hooks.make(organization_id, receiver.url)
    hooks.write(organization_id, *["key.created"] * 4)
    _deliver(webhook)
    books.rewrite(
        f"DELETE FROM events WHERE sequence <= {webhook.position + 2}",
        f"UPDATE event_logs SET dropped_to = {webhook.position + 2}, dropped_until = now() WHERE NOT sandbox",
    )
    with pytest.raises(InvalidRequest) as refused:
        _do(webhook_actions.replay, webhook, webhook.position + 2)
    assert str(webhook.position + 3) in refused.value.faults["from_sequence"][0]
    _do(webhook_actions.replay, webhook, webhook.position + 3)
    _deliver(webhook)
    assert _after(webhook, receiver) == [1, 2, 3, 4, 3, 4]


def test_a_secret_signs_until_a_day_after_the_rotation_that_replaced_it(
    organization_id: int, receiver: Receiver
) -> None:
    secrets = [new_secret()]
    webhook = hooks.make(organization_id, receiver.url, secret=secrets[0])
    for hours_ago, signing in ((0, 1), (10, 2), (10, 3), (10, 3), (20, 2)):
        _set(webhook, previous_until=f"ARRAY(SELECT u - interval '{hours_ago} h' FROM unnest(previous_until) u)")
        hooks.write(organization_id, "key.created")
        _deliver(webhook)
        call = receiver.calls[-1]
        assert len(call.headers["webhook-signature"].split()) == signing
        for number, secret in enumerate(reversed(secrets), start=1):
            with nullcontext() if number <= signing else pytest.raises(WebhookVerificationError):
                Signer(secret).verify(call.body, call.headers)
        secrets.append(_do(webhook_actions.rotate, webhook)[1])
    for _ in range(PREVIOUS_SECRETS_MAX - signing):
        _do(webhook_actions.rotate, webhook)
    with pytest.raises(WebhookRotatedOften, match=f"{PREVIOUS_SECRETS_MAX} times"):
        _do(webhook_actions.rotate, webhook)


def test_a_lost_key_for_secrets_is_no_failure_of_the_receiver(
    webhook: Webhook,
    receiver: Receiver,
    monkeypatch: pytest.MonkeyPatch,
    events: list[MutableMapping[str, Any]],
) -> None:
    right = settings().secrets_key[0]
    monkeypatch.setenv("POINTS_SECRETS_KEY", Fernet.generate_key().decode())
    settings.cache_clear()
    _deliver(webhook)
    assert (_read(webhook).failures, receiver.calls) == (0, [])
    assert "webhook_secret_unreadable" in [event["event"] for event in events]
    monkeypatch.setenv("POINTS_SECRETS_KEY", f"{settings().secrets_key[0]},{right}")
    settings.cache_clear()
    assert books.run(webhook_actions.reencrypt_all) == 1
    monkeypatch.setenv("POINTS_SECRETS_KEY", settings().secrets_key[0])
    settings.cache_clear()
    _retry(webhook)
    assert len(receiver.calls) == 1


def test_no_secret_stands_in_the_database_or_in_a_log_line(
    organization_id: int, receiver: Receiver, events: list[MutableMapping[str, Any]]
) -> None:
    secret = new_secret()
    webhook = hooks.make(organization_id, receiver.url, secret=secret)
    hooks.write(organization_id, "key.created")
    receiver.answer = status(500)
    _deliver(webhook)
    [stored] = books.values("SELECT secret FROM webhooks")
    bare = secret.removeprefix("whsec_")
    assert bare not in stored
    [failed] = [event for event in events if event["event"] == "webhook_failed"]
    assert (failed["webhook_id"], failed["status"], failed["error"]) == (webhook.id, 500, "refused")
    assert all(bare not in str(event) and receiver.url not in str(event) for event in events)


def test_attempts_past_their_time_are_dropped_in_steps(organization_id: int, receiver: Receiver) -> None:
    webhook = hooks.make(organization_id, receiver.url)
    hooks.write(organization_id, *["key.created"] * 5)
    _deliver(webhook)
    books.execute("UPDATE webhook_deliveries SET created_at = now() - interval '31 days' WHERE id <= 3")
    steps = []
    for _ in range(3):
        with transaction() as connection:
            steps.append(attempts.drop_old_deliveries(connection, at_most=2))
    assert steps == [2, 1, 0]
    assert books.values("SELECT count(*) FROM webhook_deliveries") == [2]


def test_the_lag_is_counted_in_events_and_seconds(organization_id: int, receiver: Receiver) -> None:
    webhook = hooks.make(organization_id, receiver.url)
    idle = hooks.make(organization_id, receiver.url)
    hooks.write(organization_id, "key.created", "key.created", "key.created")
    _deliver(idle)
    receiver.answer = status(500)
    _deliver(webhook)
    books.rewrite(
        f"UPDATE events SET created_at = now() - interval '90 s' WHERE sequence = {webhook.position + 1}",
    )
    found = books.run(lags)
    assert [(lag.webhook.id, lag.events) for lag in found] == [(webhook.id, 3), (idle.id, 0)]
    assert 90 <= found[0].seconds < 120
    assert found[1].seconds == 0
    by_status = lag_by_status(found)
    assert [(name, lag.webhooks, lag.events) for name, lag in by_status.items()] == [
        ("enabled", 1, 0),
        ("failing", 1, 3),
        ("disabled", 0, 0),
    ]


def test_who_has_something_to_deliver_is_found_without_a_message(organization_id: int, receiver: Receiver) -> None:
    webhook, waits, off = (hooks.make(organization_id, receiver.url) for _ in range(3))
    hooks.write(organization_id, "key.created")
    _set(waits, retry_at="clock_timestamp() + interval '1 minute'")
    _set(off, disabled_reason="'caller'")

    def due() -> list[int]:
        return [one.webhook_id for one in hooks.due()]

    assert due() == [webhook.id]
    _deliver(webhook)
    assert due() == []
    _set(waits, retry_at="clock_timestamp()")
    assert due() == [waits.id]
