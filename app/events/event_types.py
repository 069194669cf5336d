"""The types of events: of the log of an organization, and of the platform's."""

import re
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

BATCH_SCHEDULED, BATCH_ISSUED = "batch.scheduled", "batch.issued"
BATCH_REFUSED, BATCH_CANCELLED = "batch.refused", "batch.cancelled"
BATCH_AWAITING_APPROVAL, BATCH_APPROVED, BATCH_REJECTED = "batch.awaiting_approval", "batch.approved", "batch.rejected"
TRANSACTION_CLAIMED, TRANSACTION_RETURNED = "transaction.claimed", "transaction.returned"
REVERSAL_ISSUED = "reversal.issued"
BALANCE_REFILLED, BALANCE_LOW = "balance.refilled", "balance.low"
ORGANIZATION_SUSPENDED, ORGANIZATION_RESUMED = "organization.suspended", "organization.resumed"
ORGANIZATION_DISABLED, ORGANIZATION_ENABLED = "organization.disabled", "organization.enabled"
KEY_CREATED, KEY_REVOKED, KEY_LIMIT_REACHED = "key.created", "key.revoked", "key.limit_reached"
WEBHOOK_DISABLED = "webhook.disabled"
PING = "ping"
USER_REGISTERED, USER_CHANGED, USER_ERASED = "user.registered", "user.changed", "user.erased"
ORGANIZATION_CREATED = "organization.created"

TYPES = (
    *(BATCH_SCHEDULED, BATCH_ISSUED, BATCH_REFUSED, BATCH_CANCELLED),
    *(BATCH_AWAITING_APPROVAL, BATCH_APPROVED, BATCH_REJECTED),
    *(TRANSACTION_CLAIMED, TRANSACTION_RETURNED, REVERSAL_ISSUED, BALANCE_REFILLED, BALANCE_LOW),
    *(ORGANIZATION_SUSPENDED, ORGANIZATION_RESUMED, ORGANIZATION_DISABLED, ORGANIZATION_ENABLED),
    *(KEY_CREATED, KEY_REVOKED, KEY_LIMIT_REACHED, WEBHOOK_DISABLED, PING),
)
# The types in the log of the platform.
PLATFORM_TYPES = (
    *(USER_REGISTERED, USER_CHANGED, USER_ERASED, ORGANIZATION_CREATED, BALANCE_REFILLED),
    *(ORGANIZATION_SUSPENDED, ORGANIZATION_RESUMED, ORGANIZATION_DISABLED, ORGANIZATION_ENABLED),
)
# The kinds of mail to members (app/mail), and the events that members are told of.
MAIL_KINDS = AWAITING, ANSWERED, LATER, LOW_BALANCE, LINK = "awaiting", "answered", "later", "low_balance", "link"
MAILED = {
    BATCH_AWAITING_APPROVAL: AWAITING,
    BATCH_APPROVED: ANSWERED,
    BATCH_REJECTED: ANSWERED,
    BATCH_ISSUED: LATER,
    BATCH_REFUSED: LATER,
    BALANCE_LOW: LOW_BALANCE,
}
# Where the log of the platform stands among those of organizations, whose ids begin at 1.
PLATFORM = 0
# The usual patterns of types, to find the nearest one to a misspelt one.
PATTERNS = ("*", *sorted({f"{kind.partition('.')[0]}.*" for kind in TYPES if "." in kind}), *TYPES)


def types_like(glob: str, types: Sequence[str] = TYPES) -> list[str]:
    """Return those of `types` that match `glob`, in which `*` stands for any characters; none if it matches nothing.

    Webhooks and the calls that read a log choose types by it.
    """
    return [kind for kind in types if fnmatchcase(kind, glob)] if GLOB.fullmatch(glob) else []


GLOB = re.compile(r"^[a-z._*]{1,64}$")


def matching(patterns: Iterable[str]) -> list[str] | None:
    """Return the types that any of the patterns matches; None if that is all of them."""
    written = set(patterns)
    if "*" in written:
        return None
    meant = {kind for pattern in written for kind in types_like(pattern)}
    return [kind for kind in TYPES if kind in meant]
