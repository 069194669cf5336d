"""Webhooks: created, read and changed by their organization. `delivery` moves them along the log."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection, text

from app.postgres.database import row_with_id
from app.postgres.locks import lock_organization
from app.webhooks.errors import WebhookLimit

WEBHOOKS_MAX = 10
ENABLED, FAILING, DISABLED = STATUSES = ("enabled", "failing", "disabled")
BY_CALLER, GONE, TOO_LONG_FAILING = "caller", "gone", "failing"
# How long the old secret still signs too after a rotation.
_ROTATION = "interval '24 hours'"


class WebhookRow(NamedTuple):
    """A webhook as it is now, without its secrets."""

    id: int
    organization_id: int
    sandbox: bool
    url: str
    types: list[str]
    description: str | None
    position: int
    disabled_reason: str | None
    failures: int
    failing_since: datetime | None
    retry_at: datetime | None
    previous_secret_until: datetime | None
    created_at: datetime

    @property
    def status(self) -> str:
        if self.disabled_reason is not None:
            return DISABLED
        return ENABLED if self.failing_since is None else FAILING


COLUMNS = ", ".join(WebhookRow._fields)


def create(
    connection: Connection,
    *,
    organization_id: int,
    sandbox: bool,
    url: str,
    types: Sequence[str],
    description: str | None,
    secret: str,
) -> WebhookRow:
    """Make a webhook that begins after the last event so far.

    Args:
        secret: encrypted.

    Raises:
        WebhookLimit: the organization has as many as it may in this mode.
    """
    scope = {"organization_id": organization_id, "sandbox": sandbox}
    # Otherwise two calls could count at the same time, without each other's webhook.
    lock_organization(connection, organization_id)
    if connection.execute(_COUNT, scope).scalar_one() >= WEBHOOKS_MAX:
        raise WebhookLimit(WEBHOOKS_MAX)
    values = {"url": url, "types": list(types), "description": description, "secret": secret}
    return WebhookRow._make(connection.execute(_CREATE, scope | values).one())


_COUNT = text("SELECT count(*) FROM webhooks WHERE organization_id = :organization_id AND sandbox = :sandbox")
_LAST_SEQUENCE = """coalesce((SELECT last_sequence FROM event_logs
                                WHERE organization_id = :organization_id AND sandbox = :sandbox), 0)"""
_CREATE = text(f"""
    INSERT INTO webhooks (organization_id, sandbox, url, types, description, secret, position)
    VALUES (:organization_id, :sandbox, :url, :types, :description, :secret, {_LAST_SEQUENCE})
    RETURNING {COLUMNS}
""")


def get(
    connection: Connection, webhook_id: int, *, organization_id: int, sandbox: bool, lock: bool = False
) -> WebhookRow:
    """Return a webhook; with `lock`, to change it, its row is locked until the transaction ends.

    Raises:
        NotFound: the organization has no such webhook in this mode.
    """
    parameters = {"id": webhook_id, "organization_id": organization_id, "sandbox": sandbox}
    return WebhookRow._make(row_with_id(connection, _LOCK if lock else _GET, parameters, "webhook"))


_ONE = f"SELECT {COLUMNS} FROM webhooks WHERE id = :id AND organization_id = :organization_id AND sandbox = :sandbox"
_GET = text(_ONE)
_LOCK = text(f"{_ONE} FOR NO KEY UPDATE")


def find_all(connection: Connection, *, organization_id: int, sandbox: bool) -> list[WebhookRow]:
    """Return an organization's webhooks in one mode, oldest first."""
    rows = connection.execute(_FIND_ALL, {"organization_id": organization_id, "sandbox": sandbox})
    return [WebhookRow._make(row) for row in rows]


_FIND_ALL = text(f"""
    SELECT {COLUMNS} FROM webhooks WHERE organization_id = :organization_id AND sandbox = :sandbox ORDER BY id
""")


def change(connection: Connection, webhook_id: int, **values: object) -> WebhookRow:
    """Set columns of a webhook, and end its ownership, so that a worker that delivers cannot undo the change.

    A running attempt is not stopped, and its event may be sent again.
    """
    assignments = ", ".join(f"{name} = :{name}" for name in values)
    statement = text(f"UPDATE webhooks SET {assignments}, owned_until = NULL WHERE id = :id RETURNING {COLUMNS}")
    return WebhookRow._make(connection.execute(statement, {"id": webhook_id, **values}).one())


# The values without failures: the webhook is tried at once.
AFRESH: dict[str, object] = {"failures": 0, "failing_since": None, "retry_at": None}


def replace_secret(connection: Connection, webhook_id: int, *, secret: str) -> WebhookRow:
    """Give a webhook another secret (encrypted); the present one still signs too for 24 hours."""
    return WebhookRow._make(connection.execute(_ROTATE, {"id": webhook_id, "secret": secret}).one())


_ROTATE = text(f"""
    UPDATE webhooks SET previous_secret = secret, previous_secret_until = clock_timestamp() + {_ROTATION},
                        secret = :secret
    WHERE id = :id RETURNING {COLUMNS}
""")


def remove(connection: Connection, webhook_id: int) -> None:
    connection.execute(_DELETE, {"id": webhook_id})


_DELETE = text("DELETE FROM webhooks WHERE id = :id")


def all_secrets(connection: Connection) -> list[tuple[int, str, str | None]]:
    """Return the id, the secret and the previous secret of every webhook, encrypted, and lock the rows."""
    return [(row.id, row.secret, row.previous_secret) for row in connection.execute(_ALL_SECRETS)]


_ALL_SECRETS = text("SELECT id, secret, previous_secret FROM webhooks ORDER BY id FOR NO KEY UPDATE")


def store_secrets(connection: Connection, webhook_id: int, *, secret: str, previous: str | None) -> None:
    """Set the secrets of a webhook, encrypted."""
    connection.execute(_STORE_SECRETS, {"id": webhook_id, "secret": secret, "previous": previous})


_STORE_SECRETS = text("UPDATE webhooks SET secret = :secret, previous_secret = :previous WHERE id = :id")
