"""What is done with a webhook: each rule takes a row that is locked. An action is also a call and a button."""

import base64
import secrets
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, text

from app.actions import log as actions
from app.encryption import SecretsKeyMissing, encrypted, reencrypted
from app.errors import InvalidRequest
from app.event import state_of
from app.events import event_types, log
from app.fields.field import Table
from app.fields.kinds import Integer
from app.noun import SQL
from app.postgres.locks import lock_organization
from app.scope import Scope
from app.settings import INT64_MAX
from app.webhooks.webhook import (
    BY_CALLER,
    DISABLED,
    PREVIOUS_SECRETS_MAX,
    WEBHOOKS_MAX,
    Webhook,
    WebhookDisabled,
    WebhookLimit,
    WebhookNotStuck,
    WebhookRotatedOften,
    upcoming,
    webhooks,
)

# The values without failures: the webhook is tried at once.
_AFRESH: Mapping[str, Any] = {"failures": 0, "failing_since": None, "retry_at": None}
LAST_SEQUENCE = SQL(
    "coalesce((SELECT last_sequence FROM event_logs"
    " WHERE organization_id = :organization_id AND sandbox = :sandbox), 0)"
)
_FROM_SEQUENCE = Integer(
    "from_sequence",
    "The sequence of the first event to send again.",
    1,
    minimum=1,
    maximum=INT64_MAX,
    bounds="the sequence of an event, an integer of at least 1",
    is_required=True,
)
REPLAY = Table("Replay", "Where to start again.", _FROM_SEQUENCE)


def make(connection: Connection, scope: Scope, values: Mapping[str, Any]) -> tuple[Webhook, str]:
    """Make a webhook that begins after the last event so far; return it, and its secret, which is stored encrypted.

    Raises:
        SecretsKeyMissing: the operator has set no key for secrets.
        WebhookLimit: the organization has as many as it may in this mode.
    """
    # Otherwise two calls could count at the same time, without each other's webhook.
    lock_organization(connection, scope.organization_id)
    if webhooks.count(connection, scope) >= WEBHOOKS_MAX:
        raise WebhookLimit(WEBHOOKS_MAX)
    secret = new_secret()
    return webhooks.add(connection, scope, **values, secret=encrypted(secret), position=LAST_SEQUENCE), secret


def new_secret() -> str:
    """Return a secret in the form of Standard Webhooks: `whsec_` and 256 random bits in base64."""
    return f"whsec_{base64.b64encode(secrets.token_bytes(32)).decode()}"


def change(connection: Connection, webhook: Webhook, values: Mapping[str, Any]) -> Webhook:
    """Change its URL, types or description. A new URL is tried at once, and starts with no failures."""
    afresh = _AFRESH if values.get("url", webhook.url) != webhook.url else {}
    return _set(connection, webhook, **values, **afresh)


def _set(connection: Connection, webhook: Webhook, **values: Any) -> Webhook:
    """Set columns, and end its ownership, so that a worker that delivers cannot undo the change.

    A running attempt is not stopped, and its event may be sent again.
    """
    return webhooks.set(connection, webhook, **values, owned_until=None)


@webhooks.action("Have a ping sent", done="pinged", refuses=[WebhookDisabled()])
def ping(connection: Connection, webhook: Webhook) -> Webhook:
    """Writes an event `ping`, which is sent to this webhook only, in order, even if its types do not include it."""
    if webhook.status == DISABLED:
        raise WebhookDisabled
    data = {"webhook": {"id": webhook.id, "url": webhook.url}}
    log.write(connection, event_types.PING, webhook.organization_id, sandbox=webhook.sandbox, data=data)
    return webhook


@webhooks.action(
    "Change the secret of a webhook",
    done="rotated its secret",
    answers="The webhook, with its new secret.",
    refuses=[SecretsKeyMissing(), WebhookRotatedOften()],
)
def rotate(connection: Connection, webhook: Webhook) -> tuple[Webhook, str]:
    """The new `secret` is shown only in this answer. For 24 hours the old one signs too, and so does each that was the
    newest within them: there are several signatures.
    """
    secret = new_secret()
    if connection.execute(_STILL_SIGNING, {"id": webhook.id}).scalar_one() >= PREVIOUS_SECRETS_MAX:
        raise WebhookRotatedOften
    held = {"previous_secrets": _BEFORE, "previous_until": _BEFORE_UNTIL, "secret": encrypted(secret)}
    return webhooks.set(connection, webhook, **held), secret


# The newest first.
_SIGNING = "FROM unnest(previous_secrets, previous_until) AS p (secret, until) WHERE until > clock_timestamp()"
_STILL_SIGNING = text(f"SELECT (SELECT count(*) {_SIGNING}) FROM webhooks WHERE id = :id")
_BEFORE = SQL(f"secret || ARRAY(SELECT p.secret {_SIGNING})")
_BEFORE_UNTIL = SQL(f"clock_timestamp() + interval '24 hours' || ARRAY(SELECT until {_SIGNING})")


@webhooks.action("Disable a webhook", done="disabled", answers="The webhook, disabled now or before.")
def disable(connection: Connection, webhook: Webhook) -> Webhook:
    """Nothing is sent until it is enabled again. Nothing is lost: it keeps its position."""
    if webhook.status == DISABLED:
        return webhook
    disabled = _set(connection, webhook, disabled_reason=BY_CALLER, retry_at=None)
    write_disabled(connection, disabled)
    return disabled


def write_disabled(connection: Connection, webhook: Webhook) -> None:
    """Write the event that a webhook is disabled."""
    data = {"webhook": {name: getattr(webhook, name) for name in ("id", "url", "disabled_reason", "position")}}
    log.write(connection, event_types.WEBHOOK_DISABLED, webhook.organization_id, sandbox=webhook.sandbox, data=data)


@webhooks.action("Enable a webhook", done="enabled", answers="The webhook, enabled now or before.")
def enable(connection: Connection, webhook: Webhook) -> Webhook:
    """It goes on from its position at once. A failing webhook is also tried at once."""
    return _set(connection, webhook, disabled_reason=None, **_AFRESH)


@webhooks.action("Have events sent again", done="replayed", answers="The webhook, moved back.", body=REPLAY)
def replay(connection: Connection, webhook: Webhook, from_sequence: int) -> Webhook:
    """Sends all events again from a sequence that it has passed."""
    oldest = state_of(connection, Scope(webhook.organization_id, webhook.sandbox)).dropped_to + 1
    if from_sequence < oldest:
        raise InvalidRequest({"from_sequence": [f"The oldest event that is kept has the sequence {oldest}."]})
    if from_sequence > webhook.position + 1:
        sentence = f"The webhook has not passed event {from_sequence} yet: it stands at {webhook.position}."
        raise InvalidRequest({"from_sequence": [sentence]})
    return _set(connection, webhook, position=from_sequence - 1, failures=0, retry_at=None)


@webhooks.action(
    "Skip the event that a webhook is stuck at",
    done="skipped the event that it was stuck at",
    answers="The webhook, moved on.",
    refuses=[WebhookNotStuck()],
)
def skip(connection: Connection, webhook: Webhook) -> Webhook:
    """It goes on with the next event at once. The skipped event stays in the log."""
    last_sequence = state_of(connection, Scope(webhook.organization_id, webhook.sandbox)).last_sequence
    position = webhook.position
    while webhook.failures and position < last_sequence:
        events, position = upcoming(connection, webhook._replace(position=position), last_sequence=last_sequence)
        if events:
            return _set(connection, webhook, position=events[0].sequence, failures=0, retry_at=None)
    raise WebhookNotStuck


def reencrypt_all(connection: Connection) -> int:
    """Encrypt the secrets of all webhooks again, with the newest key; return how many webhooks there are.

    Raises:
        SecretsKeyMissing: there is no key.
        Refused: no key decrypts a secret.
    """
    rows = connection.execute(_ALL_SECRETS).all()
    for webhook_id, secret, previous in rows:
        first, *more = (reencrypted(each, f"the secret of webhook {webhook_id}") for each in (secret, *previous))
        connection.execute(_STORE_SECRETS, {"id": webhook_id, "secret": first, "previous": more})
    actions.record(connection, actions.SECRETS_REENCRYPTED, detail=str(len(rows)))
    return len(rows)


_ALL_SECRETS = text("SELECT id, secret, previous_secrets FROM webhooks ORDER BY id FOR NO KEY UPDATE")
_STORE_SECRETS = text("UPDATE webhooks SET secret = :secret, previous_secrets = :previous WHERE id = :id")
