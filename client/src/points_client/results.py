"""What the service answers, and some of what it takes: made by `make_results.py` from /openapi.json.

Amounts and balances are whole points. Moments are in UTC. Fields that a newer service adds are ignored. A newer service
may also use a status that is not listed here: look at `final`. Values are compared without their `request_id`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import NotRequired, TypedDict

__all__ = [
    "Action",
    "ActionAuthor",
    "ActionOrganization",
    "AlikeBatch",
    "Approval",
    "Batch",
    "BatchRecipient",
    "ChangedOrganization",
    "ChangedUser",
    "Claimed",
    "Counts",
    "DeliveredEvent",
    "Delivery",
    "Entry",
    "IssuingOrganization",
    "Item",
    "Key",
    "KeyMaker",
    "Limits",
    "Member",
    "NewKey",
    "NewMember",
    "NewUser",
    "Organization",
    "PlatformOrganization",
    "PlatformUser",
    "Recoverable",
    "Refill",
    "RegisteredUser",
    "Request",
    "Result",
    "Reversal",
    "Reversed",
    "ReversedTransaction",
    "SandboxTime",
    "SandboxUser",
    "Scheduled",
    "Sent",
    "SentBefore",
    "Statement",
    "StatementDay",
    "StatementTotal",
    "Transaction",
    "User",
    "Verified",
    "Webhook",
]


@dataclass(frozen=True, kw_only=True, slots=True)
class Result:
    """An answer, or a row of a list.

    Attributes:
        request_id: The `X-Request-Id` of the answer in which it came, for the people who run the service. None if it
            stands inside a result: then that has it.
    """

    request_id: str | None = field(default=None, compare=False, repr=False)


class ChangedOrganization(TypedDict):
    """What to change of an organization; the rest stays as it is.

    Attributes:
        name: The name of the organization.
        external_id: Your own id of the organization: 1 to 128 visible characters, of one organization only.
        held_days: For how many days points are held; None: for ever. It holds for what is issued from then on.
        low_balance: Below which live balance an event says so; None: never.
        approval_above: Above how many points of one batch it awaits an approval; None: never. It holds for what is
            sent from then on.
        approval_of: Whose sends await an approval: console (those of members) or all (those of keys too).
        requires_second_factor: True: members must set up a second factor before anything else in the console.
        is_suspended: True: it cannot issue until it is resumed.
        is_disabled: True: it can neither issue nor take back until it is enabled.
    """

    name: NotRequired[str]
    external_id: NotRequired[str | None]
    held_days: NotRequired[int | None]
    low_balance: NotRequired[int | None]
    approval_above: NotRequired[int | None]
    approval_of: NotRequired[str]
    requires_second_factor: NotRequired[bool]
    is_suspended: NotRequired[bool]
    is_disabled: NotRequired[bool]


class ChangedUser(TypedDict):
    """The fields of a user to change; the others stay as they are.

    Attributes:
        email: The address by which the user is known from now on.
        first_name: The given name.
        last_name: The family name; None: none.
        external_id: Your own id of the user: 1 to 128 visible characters, of one user only. None: none.
    """

    email: NotRequired[str]
    first_name: NotRequired[str]
    last_name: NotRequired[str | None]
    external_id: NotRequired[str | None]


class NewUser(TypedDict):
    """A user to register.

    Attributes:
        email: The address of the person.
        first_name: The given name.
        last_name: The family name; some people have none. Default: `""`.
        external_id: Your own id of the user: 1 to 128 visible characters, of one user only.
    """

    email: str
    first_name: str
    last_name: NotRequired[str | None]
    external_id: NotRequired[str | None]


@dataclass(frozen=True, kw_only=True, slots=True)
class Action(Result):
    """Who did what, and when.

    Attributes:
        id: The id of the action.
        created_at: When it was done.
        action: What was done, in a word. Other words may come.
        by: Who did it; None: somebody unknown, who gave a wrong password.
        organization: Whose matter it is; None: nobody's, such as a user.
        subject_id: The id of what was made or changed; None if it is of several.
        sandbox: The mode; None if it has none.
        detail: What the id does not say, such as the points; None: nothing.
    """

    id: int
    created_at: datetime
    action: str
    by: ActionAuthor | None = None
    organization: ActionOrganization | None = None
    subject_id: int | None = None
    sandbox: bool | None = None
    detail: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ActionAuthor:
    """Who did something.

    Attributes:
        type: What kind of author it is. Known: `member`, `platform_key`, `operator`; others may come.
        id: The id of the member or the platform key; None for an operator.
        name: The name of the member or the key; for an operator that of the system user.
    """

    type: str
    id: int | None = None
    name: str


@dataclass(frozen=True, kw_only=True, slots=True)
class ActionOrganization:
    """The organization that an action concerns.

    Attributes:
        id: The id of the organization.
        name: Its name of now.
    """

    id: int
    name: str


@dataclass(frozen=True, kw_only=True, slots=True)
class AlikeBatch:
    """A batch in which some of the recipients were sent the same.

    Attributes:
        batch_id: The id of the batch.
        recipients: How many of the recipients asked about it concerns.
        issued_at: When it was issued; None until then.
    """

    batch_id: int
    recipients: int
    issued_at: datetime | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Approval:
    """Who approved or rejected a batch, and when.

    Attributes:
        by: The member who did; None if a key did, or if nobody answered in time.
        api_key_id: The key that did; None if a member did, or if nobody answered in time.
        at: When.
        reason: Why it was rejected; None if it was approved.
    """

    by: User | None = None
    api_key_id: int | None = None
    at: datetime
    reason: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Batch(Result):
    """A batch as it is now.

    Attributes:
        batch_id: The id of the batch.
        status: Scheduled: it waits for its `send_at`. Refused: the organization may not issue. Awaiting approval:
            another than its sender must approve or reject it. Known: `awaiting_approval`, `scheduled`, `queued`,
            `issued`, `refused`, `cancelled`, `rejected`; others may come.
        final: Its status will not change. Rely on this, as more statuses may be added.
        refusal: Why it was refused, as a stable word; None unless it was refused. Known: `organization_disabled`,
            `organization_suspended`; others may come.
        label: The label that it was sent with; None if none.
        metadata: The metadata that it was sent with; None if none.
        idempotency_key: The `idempotency_key` that it was sent with; None if none, and once it is no longer kept.
        api_key_id: The id of the key that sent it; None if a member sent it.
        sender: The member who sent it from the console. None: sent through this interface.
        approval: Who approved or rejected it, and when; None unless it was.
        counts: How many transactions are in each state now; None until issued.
        created_at: When it was accepted.
        send_at: When it is to be issued; None if at once.
        issued_at: When it was issued; None until then.
        transactions: One per recipient, in the order of the request; None until issued.
        amount: The sum of the debited transactions; None until issued.
        current_balance: The balance right after this batch; None until issued.
    """

    batch_id: int
    status: str
    final: bool
    refusal: str | None = None
    label: str | None = None
    metadata: Mapping[str, str] | None = None
    idempotency_key: str | None = None
    api_key_id: int | None = None
    sender: User | None = None
    approval: Approval | None = None
    counts: Counts | None = None
    created_at: datetime
    send_at: datetime | None = None
    issued_at: datetime | None = None
    transactions: tuple[Transaction, ...] | None = None
    amount: int | None = None
    current_balance: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class BatchRecipient(Result):
    """A recipient of a batch, whether it is issued or not; with 0 points if it was erased before the issue.

    Attributes:
        email: The address as it was sent, trimmed; `erased-<id>` of an erased user.
        amount: Points for this recipient.
        label: The label of its item, or of the batch; None if they have none.
        reference: The caller's own id of its item; None if it has none.
    """

    email: str
    amount: int
    label: str | None = None
    reference: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Claimed:
    """What was held for the address and is now credited.

    Attributes:
        transactions: How many transactions.
        amount: Their points together.
    """

    transactions: int
    amount: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Counts:
    """How many of a batch's transactions are in each state now.

    Attributes:
        recipients: All of them.
        debited: Debited from the balance.
        credited: Credited to a user.
        held: Debited, and held until there is an account with the address.
        unpaid: Not debited: the balance was too low, or the user was erased before the issue.
        reversed: Taken back completely.
    """

    recipients: int
    debited: int
    credited: int
    held: int
    unpaid: int
    reversed: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class DeliveredEvent:
    """The event that was sent.

    Attributes:
        id: The id of the event, as in `webhook-id`.
        sequence: Its sequence.
        type: Its type.
    """

    id: str
    sequence: int
    type: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Delivery(Result):
    """One attempt to deliver an event.

    Attributes:
        id: The id of the attempt.
        event: The event that was sent.
        attempt: The number of this attempt for the event, from 1.
        delivered: The receiver answered with a 2xx in time.
        status: The HTTP status of the answer; None without one.
        ms: How long it took, in milliseconds.
        error: Why it failed, as a stable word: `refused`, `redirected`, `timeout`, `not_connected`, `tls_failed`,
            `connection_lost`, `broken_answer`, `address_refused`, `name_not_found`, `https_required`,
            `not_renderable` (the event cannot be shown as JSON), `internal_error` (the service's own fault). None if
            it did not fail. More words may be added.
        created_at: When it ended.
    """

    id: int
    event: DeliveredEvent
    attempt: int
    delivered: bool
    status: int | None = None
    ms: int | None = None
    error: str | None = None
    created_at: datetime | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry(Result):
    """A credit of a user, or what was taken back of one.

    Attributes:
        type: Reversal: points were taken back. Known: `credit`, `reversal`; others may come.
        amount: The points; below 0 if they were taken back.
        transaction_id: The id of the transaction.
        reversal_id: The id of the reversal; None for a credit.
        organization: Who issued them.
        label: The label of the transaction; None if it has none.
        reference: The organization's own id of the transaction; None if it has none.
        created_at: When they were issued, claimed or taken back.
    """

    type: str
    amount: int
    transaction_id: int
    reversal_id: int | None = None
    organization: IssuingOrganization
    label: str | None = None
    reference: str | None = None
    created_at: datetime


@dataclass(frozen=True, kw_only=True, slots=True)
class IssuingOrganization:
    """The organization whose points they are.

    Attributes:
        id: The id of the organization.
        name: Its name.
    """

    id: int
    name: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Item:
    """One recipient, with its own amount, label and reference.

    Attributes:
        email: Its e-mail address. Twice only if both items have a `reference`.
        amount: Points for this recipient. Required unless the body has an `amount`.
        label: Kept on its transaction, in place of the body's label.
        reference: Your own id of the item: 1 to 128 visible characters, unique in the batch. Shown on its
            transaction; the list of transactions can filter by it.
    """

    email: str
    amount: int | None = None
    label: str | None = None
    reference: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Key(Result):
    """A key of an organization.

    Attributes:
        id: The id of the key.
        organization_id: The organization that it belongs to.
        sandbox: True: a development key, for the sandbox.
        name: What people call it; None if it has no name.
        start: Its first characters.
        scopes: What it may do; None: everything.
        expires_at: From when it opens nothing; None: it has no end.
        batch_limit: The most points of one batch; None: no limit.
        daily_limit: The most points of one day in UTC; None: no limit.
        created_at: When it was made.
        made_by: Who made it; None: nobody whom we know.
        last_used_at: When it was last used, to the minute; None: never.
        revoked_at: When it was revoked; None: it is good.
    """

    id: int
    organization_id: int
    sandbox: bool
    name: str | None = None
    start: str
    scopes: tuple[str, ...] | None = None
    expires_at: datetime | None = None
    batch_limit: int | None = None
    daily_limit: int | None = None
    created_at: datetime
    made_by: KeyMaker | None = None
    last_used_at: datetime | None = None
    revoked_at: datetime | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class KeyMaker:
    """Who has made a key.

    Attributes:
        type: What kind of author it is. Known: `member`, `platform_key`, `operator`; others may come.
        id: The id of the member or the platform key; None for an operator.
        name: The name of the member or the platform key; for an operator that of the system user.
    """

    type: str
    id: int | None = None
    name: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """The limits of a send; an operator may change them.

    Attributes:
        recipients: The most recipients.
        amount: The most points for one recipient.
        body_bytes: The most bytes of a body.
    """

    recipients: int
    amount: int
    body_bytes: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Member(Result):
    """A person who may use the console of an organization.

    Attributes:
        id: The id of the member.
        organization_id: The organization.
        email: The address, trimmed.
        first_name: The given name.
        last_name: The family name; empty if there is none.
        role: What the member may do. Known: `viewer`, `sender`, `approver`, `admin`; others may come.
        has_password: False: the link was not used yet.
        is_locked: True: ten wrong passwords; it ends after 15 minutes, or by a new link.
        created_at: When it was made.
        last_signed_in_at: When the member last signed in; None: never.
        has_second_factor: True: signing in also asks for a code of an app.
    """

    id: int
    organization_id: int
    email: str
    first_name: str
    last_name: str
    role: str
    has_password: bool
    is_locked: bool
    created_at: datetime
    last_signed_in_at: datetime | None = None
    has_second_factor: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class NewKey(Result):
    """A key, which is shown once.

    Attributes:
        id: The id of the key.
        key: The key. It is shown once: store it now.
        organization_id: The organization that it belongs to.
        name: What people call it; None if it has no name.
        sandbox: True: a development key, for the sandbox.
        scopes: What it may do; None: everything.
        expires_at: From when it opens nothing; None: it has no end.
        batch_limit: The most points of one batch; None: no limit.
        daily_limit: The most points of one day in UTC; None: no limit.
    """

    id: int
    key: str = field(repr=False)
    organization_id: int
    name: str | None = None
    sandbox: bool
    scopes: tuple[str, ...] | None = None
    expires_at: datetime | None = None
    batch_limit: int | None = None
    daily_limit: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class NewMember(Result):
    """A member, with the link that is shown once.

    Attributes:
        id: The id of the member.
        email: The address, trimmed.
        first_name: The given name.
        last_name: The family name; empty if there is none.
        role: What the member may do. Known: `viewer`, `sender`, `approver`, `admin`; others may come.
        link: Where the member chooses a password: good once, for 24 hours.
    """

    id: int
    email: str
    first_name: str
    last_name: str
    role: str
    link: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Organization(Result):
    """An organization, with the balance of the key's mode.

    Attributes:
        id: The id of the organization.
        name: Its name.
        is_disabled: True: it cannot issue until it is enabled.
        is_suspended: True: it cannot issue until it is resumed.
        balance: Its balance; in a transaction, the balance right after that transaction.
        last_refill: The balance right after the last refill.
        created_at: When it was made.
        scheduled: What is scheduled; only `organization()` fills it.
        limits: The limits of a send; only `organization()` fills them.
    """

    id: int
    name: str
    is_disabled: bool
    is_suspended: bool
    balance: int
    last_refill: int | None = None
    created_at: datetime
    scheduled: Scheduled | None = None
    limits: Limits | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class PlatformOrganization(Result):
    """An organization in both modes, with its options.

    Attributes:
        id: The id of the organization.
        name: Its name.
        is_disabled: True: it cannot issue until it is enabled.
        is_suspended: True: it cannot issue until it is resumed.
        balance: Its balance; in a transaction, the balance right after that transaction.
        last_refill: The balance right after the last refill.
        created_at: When it was made.
        external_id: Your own id of the organization; None if there is none.
        sandbox_balance: The sandbox balance.
        sandbox_last_refill: The sandbox balance right after its last refill.
        held_days: For how many days points are held; None: for ever.
        low_balance: Below which live balance an event says so; None: never.
        approval_above: Above how many points of one batch it awaits an approval; None: never.
        approval_of: Whose sends await it: those of members, or all. Known: `console`, `all`; others may come.
        requires_second_factor: True: its members sign in with a second factor.
    """

    id: int
    name: str
    is_disabled: bool
    is_suspended: bool
    balance: int
    last_refill: int
    created_at: datetime
    external_id: str | None = None
    sandbox_balance: int
    sandbox_last_refill: int
    held_days: int | None = None
    low_balance: int | None = None
    approval_above: int | None = None
    approval_of: str = "console"
    requires_second_factor: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class PlatformUser(Result):
    """A user as the platform sees it.

    Attributes:
        id: The id of the user.
        email: The address by which the user is known, trimmed.
        first_name: The given name.
        last_name: The family name; empty if there is none.
        external_id: Your own id of the user; None if there is none.
        balance: The user's points, exact at this moment.
        created_at: When it was registered.
        claimed: What the registration, or this change, has credited; None if the call only reads.
    """

    id: int
    email: str
    first_name: str
    last_name: str
    external_id: str | None = None
    balance: int
    created_at: datetime
    claimed: Claimed | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Recoverable(Result):
    """Whether a reversal would take any points back now.

    Attributes:
        validated: True: it would; with `atomic`, all that was asked for.
        error: Why not, as a sentence; None when it is possible.
        recoverable: Points that would come back, after what the queued reversals take.
        transactions: All transactions asked for.
        held: Transactions with points left that are held.
        credited: Transactions with points left that were credited to a user.
        already_reversed: Transactions with no points left.
        not_debited: Transactions that were not debited.
        queued: Reversals of these transactions that are not done yet, and come first.
    """

    validated: bool
    error: str | None = None
    recoverable: int
    transactions: int
    held: int
    credited: int
    already_reversed: int
    not_debited: int
    queued: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Refill(Result):
    """Points put into a balance; below 0, points taken off it.

    Attributes:
        id: The id of the refill.
        sandbox: True: into the sandbox balance.
        amount: The points; below 0 in a correction, and in a reset of the sandbox.
        balance: The balance right after it.
        reference: Your own name for it; None if it has none.
        created_at: When it was booked.
    """

    id: int
    sandbox: bool
    amount: int
    balance: int
    reference: str | None = None
    created_at: datetime


@dataclass(frozen=True, kw_only=True, slots=True)
class RegisteredUser(Result):
    """What became of one of many users.

    Attributes:
        user: The user; None if it is in conflict or at fault.
        status: Exists: it was registered before, with the same values. Known: `created`, `exists`, `conflict`;
            others may come.
        errors: Why it is not registered, by its place and field, such as `users.3.email`; None if it is.
    """

    user: PlatformUser | None = None
    status: str
    errors: Mapping[str, Sequence[str]] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """A call that one of the organization's keys made.

    Attributes:
        request_id: Its `X-Request-Id`. An id with an @ is shown as the beginning of its SHA-256, as in the service's
            own log.
        created_at: When it arrived.
        api_key_id: The id of its key.
        method: Its method.
        route: Its path, with `{id}` for each id; None if there is no such call.
        status: The status of the answer.
        code: The `additional_data.code` of the answer; None if it has none.
        batch_id: The batch that it sent, read, moved or cancelled; None if none.
        ms: How long it took, in milliseconds, with its body and its wait.
    """

    request_id: str
    created_at: datetime
    api_key_id: int
    method: str
    route: str | None = None
    status: int
    code: str | None = None
    batch_id: int | None = None
    ms: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Reversal(Result):
    """A reversal as it is now.

    Attributes:
        reversal_id: The id of the reversal.
        status: Refused: nothing was taken, and `refusal` says why. Known: `queued`, `done`, `refused`; others may
            come.
        final: Its status will not change. Rely on this, as more statuses may be added.
        refusal: Why it was refused, as a stable word; None unless it was refused. Known: `organization_disabled`,
            `batch_not_issued`, `other_sum`, `balance_too_large`; others may come.
        reason: The reason that it was sent with.
        batch_id: The batch to take back; None if the request named transactions.
        idempotency_key: The `idempotency_key` that it was sent with; None if none, and once it is no longer kept.
        api_key_id: The id of the key that sent it.
        created_at: When it was accepted.
        done_at: When it was done; None until then.
        transactions: One per transaction asked for, in order; None until done.
        amount: The sum of the points taken; None until done.
        current_balance: The balance right after it; None until done.
    """

    reversal_id: int
    status: str
    final: bool
    refusal: str | None = None
    reason: str
    batch_id: int | None = None
    idempotency_key: str | None = None
    api_key_id: int | None = None
    created_at: datetime
    done_at: datetime | None = None
    transactions: tuple[ReversedTransaction, ...] | None = None
    amount: int | None = None
    current_balance: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Reversed(Result):
    """The outcome of `reverse`. `transactions` is empty, and both figures are None, until it is done.

    Attributes:
        reversal_id: The id of the reversal.
        transactions: One per transaction asked for, in order.
        amount: The sum of the points taken.
        current_balance: The balance right after this reversal.
        status: `done`; or `queued`: the wait ran out, and it will be done once.
        idempotency_key: The key of the call, given or made.
        replayed: It was done before this call was made.
    """

    reversal_id: int
    transactions: tuple[ReversedTransaction, ...] = ()
    amount: int | None = None
    current_balance: int | None = None
    status: str
    idempotency_key: str
    replayed: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class ReversedTransaction:
    """What a reversal took from one transaction.

    Attributes:
        id: The id of the transaction.
        email: The address as it was sent, trimmed.
        amount: The amount of the transaction.
        reversed: Points that this reversal took.
        code: Why nothing could be taken, as a stable word; None if points were taken. Known: `not_debited`,
            `already_reversed`, `more_than_left`; others may come.
    """

    id: int
    email: str
    amount: int
    reversed: int
    code: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class SandboxTime(Result):
    """The time of the sandbox.

    Attributes:
        now: Its time from now on.
    """

    now: datetime


@dataclass(frozen=True, kw_only=True, slots=True)
class SandboxUser(Result):
    """A user of the sandbox.

    Attributes:
        id: The id of the user.
        email: The address, trimmed.
        first_name: The given name.
        last_name: The family name; empty if there is none.
        created_at: When it was registered, by the clock of the sandbox.
        claimed: What the registration has credited.
    """

    id: int
    email: str
    first_name: str
    last_name: str
    created_at: datetime
    claimed: Claimed | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Scheduled:
    """The scheduled batches of the organization in the key's mode. No points are reserved for them.

    Attributes:
        batches: How many batches are scheduled.
        amount: The points for all their recipients together, at most what 64 bits hold.
        next_at: When the next one is due; None if there is none.
    """

    batches: int
    amount: int
    next_at: datetime | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Sent(Result):
    """The outcome of a send. `transactions` is empty, and both figures are None, until it is issued.

    Attributes:
        transactions: One per recipient, in the order of the request.
        amount: The sum of the debited transactions.
        current_balance: The balance right after this batch.
        batch_id: The id of the batch: `GET /v1/batches/{id}` reads it.
        status: `issued`; or `queued`: the wait ran out, and it will be issued once; or `scheduled`, or
            `awaiting_approval`: it may be rejected.
        idempotency_key: The key of the call, given or made.
        replayed: It was issued before this call was made.
    """

    transactions: tuple[Transaction, ...] = ()
    amount: int | None = None
    current_balance: int | None = None
    batch_id: int
    status: str
    idempotency_key: str
    replayed: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class SentBefore(Result):
    """How many of the recipients were sent the same lately, each counted once, by what was most alike.

    Attributes:
        days: How far back the batches were compared, from now.
        recipients: The sum of the next three.
        same: The same amount with the same label, or both without a label.
        same_label: Another amount with the same label.
        same_amount: The same amount with another label.
        batch_count: How many batches these are in.
        batches: Up to 5 of them, those with the most of the recipients first.
        complete: False: there were so many batches that only the newest ones were compared.
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
class Statement(Result):
    """What moved the balance, day by day.

    Attributes:
        from_: The first day.
        to: The last day.
        days: Each day, in order, also those on which nothing moved the balance.
        total: All days together.
    """

    from_: date
    to: date
    days: tuple[StatementDay, ...]
    total: StatementTotal


@dataclass(frozen=True, kw_only=True, slots=True)
class StatementTotal:
    """All days together. `opening_balance + refilled - debited + reversed + returned = closing_balance`.

    Attributes:
        opening_balance: The balance at the beginning. Below 0 only if points were spent at a time before that of
            their refill, because a clock was put back: in a sandbox, by its reset.
        refilled: Points put in, less those of corrections and of resets of the sandbox.
        debited: Points of the debited transactions of batches issued then.
        reversed: Points that callers took back then.
        returned: Points that went back then because they were held too long.
        closing_balance: The balance at the end; of today, the balance as it is.
        batches: Batches issued.
        transactions: Their transactions.
        unpaid: Those of the transactions that were not debited.
    """

    opening_balance: int
    refilled: int
    debited: int
    reversed: int
    returned: int
    closing_balance: int
    batches: int
    transactions: int
    unpaid: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Transaction(Result):
    """One recipient of a batch.

    Attributes:
        id: The id of the transaction.
        organization: The issuing organization, with the balance right after this transaction.
        recipient: The account with this address; None if there is none.
        email: The address as it was sent, trimmed.
        amount: Points for this recipient.
        debited: The organization was debited. False: its balance was too low, or the user was erased before.
        credited: The recipient was credited.
        allocated: The same as `credited`. If `debited` is true and this is false, the points are held.
        sender: The member who sent it from the console. None: sent through this interface.
        label: The label of its item, or of the batch; None if they have none.
        reference: The caller's own id of its item; None if it has none.
        reversed: Points taken back so far.
        held_until: Until when its points are held; None unless it is held and has an end.
        state: Its state. Returned: it was held too long. Known: `credited`, `held`, `unpaid`, `reversed`,
            `returned`; others may come.
        sandbox: Issued in the sandbox, with a development key.
        created_at: When it was issued.
    """

    id: int
    organization: Organization
    recipient: User | None = None
    email: str
    amount: int
    debited: bool
    credited: bool
    allocated: bool
    sender: User | None = None
    label: str | None = None
    reference: str | None = None
    reversed: int = 0
    held_until: datetime | None = None
    state: str = ""
    sandbox: bool
    created_at: datetime


@dataclass(frozen=True, kw_only=True, slots=True)
class User:
    """An account.

    Attributes:
        id: The id of the account.
        first_name: The given name.
        last_name: The family name.
    """

    id: int
    first_name: str
    last_name: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Verified(Result):
    """Whether the whole issue is possible now.

    Attributes:
        validated: True: it is possible.
        error: Why not, as a sentence; None when it is possible.
        code: Why not, as a stable word; None when it is possible. Known: `insufficient_balance`, `key_limit`,
            `organization_disabled`, `organization_suspended`; others may come.
        required: Points for all recipients together.
        available: The balance of the organization.
        affordable_recipients: How many recipients, from the first on, the balance pays.
        awaits_approval: True: the send would await an approval.
    """

    validated: bool
    error: str | None = None
    code: str | None = None
    required: int
    available: int
    affordable_recipients: int
    awaits_approval: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Webhook(Result):
    """Where events are sent: a cursor over the log.

    Attributes:
        id: The id of the webhook.
        url: Where events are sent.
        types: The types of events that it takes, in which `*` stands for any part.
        description: Its description; None if it has none.
        status: Failing: the last attempt failed, and another follows. Disabled: nothing is sent. Known: `enabled`,
            `failing`, `disabled`; others may come.
        disabled_reason: Why it is disabled: by a call, by a 410 of the receiver, or after five days of failures.
            None if it is not. Known: `caller`, `gone`, `failing`; others may come.
        position: The sequence of the last event that it has passed.
        failures: How many attempts to deliver its next event have failed.
        failing_since: Since when every attempt has failed; None unless the last one failed.
        retry_at: When the next attempt is due; None if it waits for an event.
        old_secret_until: Until when the secret before the last rotation also signs, as others may; None if there is
            none.
        created_at: When it was made.
        secret: The signing secret, for `verify_webhook`: shown when it is made and when it is changed.
    """

    id: int
    url: str
    types: tuple[str, ...] = ()
    description: str | None = None
    status: str
    disabled_reason: str | None = None
    position: int = 0
    failures: int = 0
    failing_since: datetime | None = None
    retry_at: datetime | None = None
    old_secret_until: datetime | None = None
    created_at: datetime | None = None
    secret: str | None = field(default=None, repr=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class StatementDay(StatementTotal):
    """One day in UTC. It opens as the day before closed.

    Attributes:
        date: The day.
    """

    date: date
