"""What the service answers about organizations, sends and reversals.

Amounts and balances are whole points. Moments are in UTC. Fields that a newer service adds are ignored. A newer service
may also use a status that is not listed here: look at `final`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from points_client.answers import Answer
from points_client.reading import read

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True, slots=True)
class Scheduled:
    """What an organization has scheduled: batches, the points for all their recipients, the moment of the next."""

    batches: int
    amount: int
    next_at: datetime | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """The limits of a send: how many recipients, how many points for one, and how many bytes of a body."""

    recipients: int
    amount: int
    body_bytes: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Organization:
    """An organization with the balance of the key's mode; inside a transaction, the balance right after that one.

    `last_refill` is the balance right after the last refill. Only `organization()` fills `scheduled` and `limits`.
    """

    id: int
    name: str
    is_disabled: bool
    is_suspended: bool
    balance: int
    created_at: datetime
    last_refill: int | None = None
    scheduled: Scheduled | None = None
    limits: Limits | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class User:
    """An account."""

    id: int
    first_name: str
    last_name: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Transaction:
    """One recipient of a batch.

    Paid: `debited`, `credited` and `allocated` are true. Held, because no account has the address yet: only `debited`.
    Unpaid, because the balance was too low: none of them. `state` says it in a word: `credited`, `held`, `unpaid`,
    `reversed`, `returned`. `reversed` is how many points were taken back.
    """

    id: int
    organization: Organization
    email: str
    amount: int
    debited: bool
    credited: bool
    allocated: bool
    sandbox: bool
    created_at: datetime
    recipient: User | None = None
    sender: User | None = None
    label: str | None = None
    reference: str | None = None
    reversed: int = 0
    held_until: datetime | None = None
    state: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Sent:
    """The outcome of a send.

    If `status` is `issued`, all fields are filled. If it is `queued` (the wait ran out; the send is accepted and will
    be issued once), `scheduled` or `awaiting_approval` (it may be rejected), `transactions` is empty, and `amount` and
    `current_balance` are None. `amount` is the sum of the debited points. `replayed`: the batch was issued before this
    call was made.
    """

    batch_id: int
    status: str
    transactions: tuple[Transaction, ...]
    amount: int | None
    current_balance: int | None
    replayed: bool
    idempotency_key: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Verified:
    """Whether a send would pay everybody. If not, `error` is a sentence and `code` a word.

    `required` and `available` are points. `affordable_recipients` is how many the balance pays, from the first on.
    """

    validated: bool
    error: str | None
    code: str | None
    required: int
    available: int
    affordable_recipients: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Counts:
    """How many recipients of a batch are in each state."""

    recipients: int
    debited: int
    credited: int
    held: int
    unpaid: int
    reversed: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Approval:
    """Who approved or rejected a batch, and when. Rejected, `reason` says why.

    `by` is a member, `api_key_id` a key. Both are None if it was rejected because nobody answered in time.
    """

    at: datetime
    by: User | None = None
    api_key_id: int | None = None
    reason: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Batch:
    """A batch as it is now. Until it is issued, and in a list, `transactions` is None.

    `status`: `awaiting_approval`, `scheduled`, `queued`, `issued`, `refused` (then `refusal` says why), `cancelled`,
    `rejected` (then `approval` says why). `final`: it will not change.
    """

    batch_id: int
    status: str
    final: bool
    created_at: datetime
    refusal: str | None = None
    label: str | None = None
    metadata: Mapping[str, str] | None = None
    idempotency_key: str | None = None
    api_key_id: int | None = None
    sender: User | None = None
    approval: Approval | None = None
    counts: Counts | None = None
    send_at: datetime | None = None
    issued_at: datetime | None = None
    transactions: tuple[Transaction, ...] | None = None
    amount: int | None = None
    current_balance: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class AlikeBatch:
    """A batch in which `recipients` of those asked about were sent the same. `issued_at` is None until it is issued."""

    batch_id: int
    recipients: int
    issued_at: datetime | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class SentBefore:
    """How many `recipients` were sent the same within `days`, each counted once, by what was most alike.

    `same`: the same amount with the same label, or both without one. `same_label`: another amount with the same label.
    `same_amount`: the same amount with another label. `batches` are some of the `batch_count` batches, those with the
    most of the recipients first. `complete` is False if there were so many that only the newest were compared.
    """

    days: int
    recipients: int
    same: int
    same_label: int
    same_amount: int
    batch_count: int
    batches: tuple[AlikeBatch, ...]
    complete: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class SandboxTime:
    """The time of the sandbox."""

    now: datetime


@dataclass(frozen=True, kw_only=True, slots=True)
class Claimed:
    """What was held for an address and is now credited."""

    transactions: int
    amount: int


@dataclass(frozen=True, kw_only=True, slots=True)
class SandboxUser:
    """A user of the sandbox; `claimed` is what this call has credited."""

    id: int
    email: str
    first_name: str
    last_name: str
    created_at: datetime
    claimed: Claimed | None = None


def read_sandbox_user(answer: Answer) -> SandboxUser:
    """Return an answer as a user of the sandbox, with what was claimed."""
    return read(SandboxUser, {**answer.data, "claimed": answer.additional.get("claimed")})


def read_organization(answer: Answer) -> Organization:
    """Return an answer as an organization, with what is scheduled and the limits."""
    more = {name: answer.additional.get(name) for name in ("scheduled", "limits")}
    return read(Organization, {**answer.data, **more})


def read_verdict(kind: type[T], answer: Answer) -> T:
    """Return an answer of a verify, whose figures stand in `additional_data`."""
    return read(kind, {**answer.additional, **answer.data})
