"""The words of actions, and writing them, each in the transaction of its deed: neither exists without the other.

Whoever opens a transaction for somebody says for whom, by `transaction(by=…)`; the deed then calls `record`. What an
organization's programs do with their keys is in the log of their requests (`app/request_log`). An action names what it
is about by ids, and holds no address and no name of a user, no key and no password.
"""

from sqlalchemy import Connection, text

from app.postgres.database import author_of
from app.scope import Author

# On members, sessions, keys and webhooks.
MEMBER_ADDED, MEMBER_REMOVED, ROLE_CHANGED = "member.added", "member.removed", "member.role_changed"
LINK_MADE, PASSWORD_CHOSEN, SESSIONS_ENDED = "member.link_made", "member.password_chosen", "member.sessions_ended"
SIGNED_IN, WRONG_PASSWORD, ZONE_CHOSEN = "member.signed_in", "member.wrong_password", "member.zone_chosen"
MAIL_CHOSEN = "member.mail_chosen"
WRONG_CODE = "member.wrong_code"
SECOND_FACTOR_ON, SECOND_FACTOR_OFF = "member.second_factor_on", "member.second_factor_off"
KEY_MADE, KEY_REVOKED = "key.made", "key.revoked"
WEBHOOK_MADE, WEBHOOK_CHANGED = "webhook.made", "webhook.changed"
# On batches, and on a transaction.
SENT, MOVED, CANCELLED, REVERSED = "batch.sent", "batch.moved", "batch.cancelled", "batch.reversed"
APPROVED, REJECTED = "batch.approved", "batch.rejected"
EXTENDED = "transaction.extended"
# On organizations; the words of their flags are those of the events (`app/events/log.py`).
ORGANIZATION_MADE, ORGANIZATION_CHANGED = "organization.made", "organization.changed"
ORGANIZATION_SUSPENDED, ORGANIZATION_RESUMED = "organization.suspended", "organization.resumed"
ORGANIZATION_DISABLED, ORGANIZATION_ENABLED = "organization.disabled", "organization.enabled"
REFILLED = "balance.refilled"
# On the sandbox of an organization.
CLOCK_SET, SANDBOX_RESET = "sandbox.clock_set", "sandbox.reset"
# On what belongs to no organization.
USER_REGISTERED, USERS_REGISTERED = "user.registered", "users.registered"
USER_CHANGED, USER_ERASED = "user.changed", "user.erased"
PLATFORM_KEY_MADE, PLATFORM_KEY_REVOKED = "platform_key.made", "platform_key.revoked"
SECRETS_REENCRYPTED = "webhooks.reencrypted"
DATABASE_RESTORED = "database.restored"

DETAIL_LENGTH_MAX = 255
# What an organization's actions are about: the first part of their words.
ABOUT = ("batch", "transaction", "balance", "key", "webhook", "member", "organization", "sandbox")


def record(
    connection: Connection,
    action: str,
    *,
    organization_id: int | None = None,
    subject_id: int | None = None,
    sandbox: bool | None = None,
    detail: str | None = None,
    by: Author | None = None,
) -> None:
    """Write an action, to be committed with its deed.

    Args:
        organization_id: whose matter it is; None: nobody's, such as a user.
        subject_id: the id of what was made or changed.
        by: who did it; None: the one for whom the transaction was opened.
    """
    values = {
        "action": action,
        "organization_id": organization_id,
        "subject_id": subject_id,
        "sandbox": sandbox,
        "detail": detail,
        **(by or author_of(connection))._asdict(),
    }
    connection.execute(_RECORD, values)


def record_of_organization(
    connection: Connection, action: str, organization_id: int, detail: str | None = None
) -> None:
    """Write an action on an organization itself."""
    record(connection, action, organization_id=organization_id, subject_id=organization_id, detail=detail)


_RECORD = text("""
    INSERT INTO actions (action, organization_id, member_id, platform_key_id, operator, subject_id, sandbox, detail)
    VALUES (:action, :organization_id, :member_id, :platform_key_id, :operator, :subject_id, :sandbox, :detail)
""")
