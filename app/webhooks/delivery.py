"""Delivering to a webhook: its events one after the other, from its position to the end of the log or a failure.

No transaction and no database connection is held while a receiver is called.
"""

import time
from collections.abc import Callable, Sequence

from app import logs
from app.encryption import SecretsKeyMissing, SecretUnreadable, decrypted
from app.postgres.database import single_statement, transaction
from app.webhooks import cursors
from app.webhooks.actions import write_disabled
from app.webhooks.attempts import Attempt, Delivery, delay_s
from app.webhooks.cursors import Owned
from app.webhooks.posting import Poster
from app.webhooks.webhook import DISABLED, upcoming

# A worker leaves a webhook after this time, so that a webhook with many events does not hold up others.
TURN_S = 15.0
# A webhook whose secret cannot be decrypted is tried again after this time. That does not count as a failure.
_WITHOUT_KEY_S = 60.0

# Called with each attempt, to count it.
Tell = Callable[[Attempt], None]

_log = logs.logger()


def deliver(webhook_id: int, *, tell: Tell, is_stopping: Callable[[], bool] = lambda: False) -> None:
    """Deliver the events that wait for a webhook, unless another worker does. What is left has its turn later.

    Raises:
        DBAPIError, TimeoutError: PostgreSQL is out of reach. What was not noted is delivered again.
    """
    ends_at = time.monotonic() + TURN_S

    def is_over() -> bool:
        return is_stopping() or time.monotonic() > ends_at

    with single_statement() as connection:
        owned = cursors.own(connection, webhook_id)
    if owned is None or (secrets := _secrets_of(owned)) is None:
        return
    with Poster(owned.url) as poster:
        still_owned = _go_on(owned, secrets, poster, tell, is_over)
    if still_owned is not None:
        with single_statement() as connection:
            cursors.release(connection, still_owned)


def _secrets_of(owned: Owned) -> list[str] | None:
    """Return the secrets that sign; if they cannot be read, release the webhook for a while and return None."""
    try:
        return [decrypted(secret) for secret in owned.secrets]
    except (SecretsKeyMissing, SecretUnreadable) as error:
        _log.error("webhook_secret_unreadable", webhook_id=owned.id, **logs.kind_of(error))
        with single_statement() as connection:
            cursors.release(connection, owned, for_s=_WITHOUT_KEY_S)
        return None


def _go_on(
    owned: Owned, secrets: Sequence[str], poster: Poster, tell: Tell, is_over: Callable[[], bool]
) -> Owned | None:
    """Deliver to the end of the log or of the turn; None after a failure, or if it is no longer owned."""
    while owned.position < owned.last_sequence:
        with transaction() as connection:
            events, looked_at_to = upcoming(connection, owned, last_sequence=owned.last_sequence)
        for event in events:
            if is_over():
                return owned
            attempt = poster.attempt(event, secrets)
            tell(attempt)
            noted = _note(owned, Delivery(event.sequence, event.name, event.type, attempt))
            if noted is None:
                return None
            owned = noted
        if looked_at_to > owned.position:
            with single_statement() as connection:
                passed = cursors.advance(connection, owned, looked_at_to)
            if passed is None:
                return None
            owned = passed
    return owned


def _note(owned: Owned, delivery: Delivery) -> Owned | None:
    if delivery.attempt.error is None:
        with single_statement() as connection:
            return cursors.advance(connection, owned, delivery.sequence, delivered=delivery)
    wait_s = delay_s(owned.failures + 1, retry_after_s=delivery.attempt.retry_after_s)
    with transaction() as connection:
        webhook = cursors.fail(connection, owned, delivery, delay_s=wait_s)
        if webhook is not None and webhook.status == DISABLED:
            write_disabled(connection, webhook)
    if webhook is not None:
        _log.warning(
            "webhook_failed",
            webhook_id=owned.id,
            organization_id=owned.organization_id,
            status=delivery.attempt.status,
            error=delivery.attempt.error,
            failures=webhook.failures,
            disabled_reason=webhook.disabled_reason,
        )
    return None
