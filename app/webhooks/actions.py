"""The actions on a webhook besides changing it. Each takes a webhook whose row is locked; `act` locks it."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from sqlalchemy import Connection

from app.errors import InvalidRequest
from app.events import log
from app.events.payloads import Event
from app.events.read import state_of
from app.postgres.database import transaction
from app.webhooks.cursors import upcoming
from app.webhooks.errors import WebhookDisabled, WebhookNotStuck
from app.webhooks.secrets import encrypted, new_secret
from app.webhooks.webhooks import (
    AFRESH,
    BY_CALLER,
    DISABLED,
    WebhookRow,
    change,
    create,
    get,
    remove,
    replace_secret,
)

_Outcome = TypeVar("_Outcome")


def act(
    webhook_id: int,
    action: Callable[[Connection, WebhookRow], _Outcome],
    *,
    organization_id: int,
    sandbox: bool,
    also: Callable[[Connection], None] | None = None,
) -> _Outcome:
    """Do an action on a webhook with its row locked, in a transaction of its own.

    Args:
        also: called after the action, in the same transaction.

    Raises:
        NotFound: the organization has no such webhook in this mode.
        PointsError: the action is not possible; nothing is changed.
    """
    with transaction() as connection:
        # Otherwise two who act at once both see the webhook as it was before the other.
        webhook = get(connection, webhook_id, organization_id=organization_id, sandbox=sandbox, lock=True)
        outcome = action(connection, webhook)
        if also is not None:
            also(connection)
    return outcome


def make(
    connection: Connection, columns: Mapping[str, Any], *, organization_id: int, sandbox: bool
) -> tuple[WebhookRow, str]:
    """Make a webhook with a new secret, and return both; the secret is stored encrypted.

    Args:
        columns: its `url`, `types` and `description`, checked.

    Raises:
        SecretsKeyMissing: the operator has set no key for secrets.
        WebhookLimit: the organization has as many as it may in this mode.
    """
    secret = new_secret()
    webhook = create(connection, organization_id=organization_id, sandbox=sandbox, secret=encrypted(secret), **columns)
    return webhook, secret


def edit(connection: Connection, webhook: WebhookRow, columns: Mapping[str, Any]) -> WebhookRow:
    """Change its URL, types or description. A new URL is tried at once, and starts with no failures."""
    afresh = AFRESH if columns.get("url", webhook.url) != webhook.url else {}
    return change(connection, webhook.id, **columns, **afresh)


def rotate(connection: Connection, webhook: WebhookRow) -> tuple[WebhookRow, str]:
    """Give it a new secret, and return both; the old one signs along for 24 hours.

    Raises:
        SecretsKeyMissing: the operator has set no key for secrets.
    """
    secret = new_secret()
    return replace_secret(connection, webhook.id, secret=encrypted(secret)), secret


def delete(connection: Connection, webhook: WebhookRow) -> None:
    """Delete it, with its attempts."""
    remove(connection, webhook.id)


def ping(connection: Connection, webhook: WebhookRow) -> WebhookRow:
    """Write an event `ping` for it.

    Raises:
        WebhookDisabled: nothing is sent to it.
    """
    if webhook.status == DISABLED:
        raise WebhookDisabled
    data = {"webhook": {"id": webhook.id, "url": webhook.url}}
    log.write(connection, log.PING, webhook.organization_id, sandbox=webhook.sandbox, data=data)
    return webhook


def disable(connection: Connection, webhook: WebhookRow) -> WebhookRow:
    """Disable it and write an event. Disabling it again changes nothing."""
    if webhook.status == DISABLED:
        return webhook
    disabled = change(connection, webhook.id, disabled_reason=BY_CALLER, retry_at=None)
    write_disabled(connection, disabled)
    return disabled


def write_disabled(connection: Connection, webhook: WebhookRow) -> None:
    """Write the event that a webhook is disabled."""
    told = {"id": webhook.id, "url": webhook.url, "disabled_reason": webhook.disabled_reason}
    data = {"webhook": told | {"position": webhook.position}}
    log.write(connection, log.WEBHOOK_DISABLED, webhook.organization_id, sandbox=webhook.sandbox, data=data)


def enable(connection: Connection, webhook: WebhookRow) -> WebhookRow:
    """Enable it: it goes on from its position at once, and its failures are forgotten."""
    return change(connection, webhook.id, disabled_reason=None, **AFRESH)


def replay(connection: Connection, webhook: WebhookRow, from_sequence: int) -> WebhookRow:
    """Set it back to an event that it has passed.

    Raises:
        InvalidRequest: the event is dropped, or not passed yet.
    """
    oldest = state_of(connection, webhook.organization_id, sandbox=webhook.sandbox).dropped_to + 1
    if from_sequence < oldest:
        raise InvalidRequest({"from_sequence": [f"The oldest event that is kept has the sequence {oldest}."]})
    if from_sequence > webhook.position + 1:
        sentence = f"The webhook has not passed event {from_sequence} yet: it stands at {webhook.position}."
        raise InvalidRequest({"from_sequence": [sentence]})
    return change(connection, webhook.id, position=from_sequence - 1, failures=0, retry_at=None)


def skip(connection: Connection, webhook: WebhookRow) -> WebhookRow:
    """Skip the event whose delivery has failed, and try the next one at once.

    Raises:
        WebhookNotStuck: no attempt to deliver its next event has failed.
    """
    if webhook.failures == 0:
        raise WebhookNotStuck
    last_sequence = state_of(connection, webhook.organization_id, sandbox=webhook.sandbox).last_sequence
    events: list[Event] = []
    position = webhook.position
    while not events and position < last_sequence:
        events, position = upcoming(connection, webhook._replace(position=position), last_sequence=last_sequence)
    if not events:
        raise WebhookNotStuck
    return change(connection, webhook.id, position=events[0].sequence, failures=0, retry_at=None)
