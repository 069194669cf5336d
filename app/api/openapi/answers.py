"""The data of answers and the additional data, as models that only describe them.

`app/api/answers/envelope.py` renders the answers, ten times as fast as models would.
A model's docstring is for callers: it becomes the description of a schema.
"""

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import BaseModel, Field, WithJsonSchema

from app.batches.approval import ANSWERED_WITHIN_DAYS
from app.batches.read import AWAITING_APPROVAL, QUEUED, SCHEDULED, STATES, STATUSES
from app.batches.sent_lately import NAMED_MAX
from app.errors import InsufficientBalance, KeyLimit, OrganizationDisabled, OrganizationSuspended
from app.ledger.sandbox import NOW


def says(description: str, *example: Any, **more: Any) -> Any:
    """Return a field with its description and its example. A field that is a model needs no example."""
    return Field(description=description, examples=list(example) or None, **more)


def says_one_of(words: Sequence[str], description: str, *example: Any) -> Any:
    """Return a field that is one of these words. It is described as any text: a client must not fail at a new word."""
    known = f"{description} Known: {', '.join(f'`{word}`' for word in words)}; others may come."
    return says(known, *example, json_schema_extra={"x-extensible-enum": list(words)})


Id = Annotated[int, Field(ge=1, json_schema_extra={"format": "int64"})]
Points = Annotated[int, Field(ge=0, json_schema_extra={"format": "int64"})]
_TIME = r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$"
Time = Annotated[str, Field(pattern=_TIME, json_schema_extra={"format": "date-time"})]


_MAY_NOT_ISSUE = (OrganizationDisabled.code, OrganizationSuspended.code)

# Always null. Described as an object or null, because some client generators know no type that is only null.
Null = Annotated[None, WithJsonSchema({"type": ["object", "null"]})]


class Organization(BaseModel):
    """An organization, with the balance of the key's mode."""

    id: Id = says("The id of the organization.", 1)
    name: str = says("Its name.", "Acme")
    is_disabled: bool = says("True: it cannot issue until it is enabled.", False)
    is_suspended: bool = says("True: it cannot issue until it is resumed.", False)
    balance: Points = says("Its balance; in a transaction, the balance right after that transaction.", 1_000)
    last_refill: Points = says("The balance right after the last refill.", 1_000)
    created_at: Time = says("When it was made. ISO 8601 in UTC, six decimals.", "2026-01-05T08:00:00.000000Z")


class User(BaseModel):
    """An account."""

    id: Id = says("The id of the account.", 7)
    first_name: str = says("The given name.", "Ada")
    last_name: str = says("The family name.", "Lovelace")


class Transaction(BaseModel):
    """One recipient of a batch."""

    id: Id = says("The id of the transaction.", 131_072)
    organization: Organization = says("The issuing organization, with the balance right after this transaction.")
    recipient: User | None = says("The account with this address; null if there is none.")
    email: str = says("The address as it was sent, trimmed.", "ada@example.com")
    amount: Points = says("Points for this recipient.", 50)
    debited: bool = says("The organization was debited. False: its balance was too low.", True)
    credited: bool = says("The recipient was credited.", True)
    allocated: bool = says("The same as `credited`. If `debited` is true and this is false, the points are held.", True)
    sender: User | None = says("The member who sent it from the console. Null: sent through this interface.", None)
    label: str | None = says("The label of its item, or of the batch; null if they have none.", None)
    reference: str | None = says("The caller's own id of its item; null if it has none.", None)
    reversed: Points = says("Points taken back so far.", 0)
    held_until: Time | None = says(
        "Until when its points are held, ISO 8601 in UTC, six decimals; null unless it is held and has an end.",
        None,
    )
    state: str = says_one_of(STATES, "Its state. Returned: it was held too long.", "credited")
    sandbox: bool = says("Issued in the sandbox, with a development key.", False)
    created_at: Time = says("When it was issued. ISO 8601 in UTC, six decimals.", "2026-01-31T09:30:00.482913Z")


class Verdict(BaseModel):
    """Whether the whole issue is possible now."""

    validated: bool = says("True: it is possible.", True)
    error: str | None = says("Why not, as a sentence; null when it is possible.", None)


class AlikeBatch(BaseModel):
    """A batch in which some of the recipients were sent the same."""

    batch_id: Id = says("The id of the batch.", 1)
    recipients: int = says("How many of the recipients asked about it concerns.", 2, ge=1)
    issued_at: Time | None = says(
        "When it was issued, ISO 8601 in UTC, six decimals; null until then.", "2026-01-31T09:30:00.482913Z"
    )


class SentBefore(BaseModel):
    """How many of the recipients were sent the same lately, each counted once, by what was most alike."""

    days: int = says("How far back the batches were compared, from now.", 30, ge=1)
    recipients: int = says("The sum of the next three.", 2, ge=0)
    same: int = says("The same amount with the same label, or both without a label.", 2, ge=0)
    same_label: int = says("Another amount with the same label.", 0, ge=0)
    same_amount: int = says("The same amount with another label.", 0, ge=0)
    batch_count: int = says("How many batches these are in.", 1, ge=0)
    batches: list[AlikeBatch] = says(f"Up to {NAMED_MAX} of them, those with the most of the recipients first.")
    complete: bool = says("False: there were so many batches that only the newest ones were compared.", True)


class SendResult(BaseModel):
    """An issued batch: one transaction per recipient, in the order of the request."""

    transactions: list[Transaction] = says("One per recipient, in the order of the request.")
    amount: Points = says("The sum of the debited transactions.", 100)
    current_balance: Points = says("The balance right after this batch.", 900)


class AcceptedBatch(BaseModel):
    """A batch that is accepted and will be issued exactly once, if it is approved; read it at `Location`."""

    batch_id: Id = says("The id of the batch.", 1)
    status: str = says_one_of(
        (QUEUED, SCHEDULED, AWAITING_APPROVAL),
        "Queued: it waits for a worker. Scheduled: it waits for its `send_at`. Awaiting approval: another than its"
        f" sender must approve it within {ANSWERED_WITHIN_DAYS} days.",
        "queued",
    )


class Counts(BaseModel):
    """How many of a batch's transactions are in each state now."""

    recipients: int = says("All of them.", 2, ge=1)
    debited: int = says("Debited from the balance.", 2, ge=0)
    credited: int = says("Credited to a user.", 1, ge=0)
    held: int = says("Debited, and held until there is an account with the address.", 1, ge=0)
    unpaid: int = says("Not debited: the balance was too low.", 0, ge=0)
    reversed: int = says("Taken back completely.", 0, ge=0)


class Approval(BaseModel):
    """Who approved or rejected a batch, and when."""

    by: User | None = says("The member who did; null if a key did, or if nobody answered in time.", None)
    api_key_id: Id | None = says("The key that did; null if a member did, or if nobody answered in time.", 2)
    at: Time = says("When. ISO 8601 in UTC, six decimals.", "2026-01-31T09:30:00.475113Z")
    reason: str | None = says("Why it was rejected; null if it was approved.", None)


class _BatchHead(BaseModel):
    batch_id: Id = says("The id of the batch.", 1)
    status: str = says_one_of(
        STATUSES,
        "Scheduled: it waits for its `send_at`. Refused: the organization may not issue. Awaiting approval: another"
        " than its sender must approve or reject it.",
        "issued",
    )
    final: bool = says("Its status will not change. Rely on this, as more statuses may be added.", True)
    refusal: str | None = says_one_of(
        _MAY_NOT_ISSUE, "Why it was refused, as a stable word; null unless it was refused.", None
    )
    label: str | None = says("The label that it was sent with; null if none.", None)
    metadata: dict[str, str] | None = says("The metadata that it was sent with; null if none.", None)
    idempotency_key: str | None = says(
        "The `Idempotency-Key` that it was sent with; null if none, and once it is no longer kept.", None
    )
    api_key_id: Id | None = says("The id of the key that sent it; null if a member sent it.", 1)
    sender: User | None = says("The member who sent it from the console. Null: sent through this interface.", None)
    approval: Approval | None = says("Who approved or rejected it, and when; null unless it was.", None)
    counts: Counts | None = says("How many transactions are in each state now; null until issued.")
    created_at: Time = says("When it was accepted. ISO 8601 in UTC, six decimals.", "2026-01-31T09:30:00.471006Z")
    send_at: Time | None = says("When it is to be issued; null if at once.", None)
    issued_at: Time | None = says(
        "When it was issued, ISO 8601 in UTC, six decimals; null until then.", "2026-01-31T09:30:00.482913Z"
    )


_Amount = Annotated[Points | None, says("The sum of the debited transactions; null until issued.", 100)]
_Balance = Annotated[Points | None, says("The balance right after this batch; null until issued.", 900)]


class ListedBatch(_BatchHead):
    """A batch as it is now, without its transactions."""

    amount: _Amount
    current_balance: _Balance


class Batch(_BatchHead):
    """A batch as it is now."""

    transactions: list[Transaction] | None = says("One per recipient, in the order of the request; null until issued.")
    amount: _Amount
    current_balance: _Balance


Cursor = Annotated[str | None, says("The `cursor` of the next page; null at the end of the list.", None)]


BATCH_IN_EVENT = {
    "batch": {
        "batch_id": 1,
        "status": "issued",
        "final": True,
        "refusal": None,
        "label": None,
        "metadata": None,
        "idempotency_key": None,
        "api_key_id": 1,
        "sender": None,
        "approval": None,
        "counts": {"recipients": 2, "debited": 2, "credited": 1, "held": 1, "unpaid": 0, "reversed": 0},
        "created_at": "2026-01-31T09:30:00.471006Z",
        "send_at": None,
        "issued_at": "2026-01-31T09:30:00.482913Z",
        "amount": 100,
        "current_balance": 900,
    }
}


class BatchList(BaseModel):
    """A page of batches, newest first."""

    batches: list[ListedBatch] = says("The batches of this page.")
    next_cursor: Cursor


class TransactionList(BaseModel):
    """A page of transactions, newest first."""

    transactions: list[Transaction] = says("The transactions of this page.")
    next_cursor: Cursor


class Additions(BaseModel):
    """The additional data."""

    version: str = says("The version of the interface.", "1.0")


class VerifyAdditions(Additions):
    """The verdict, for programs."""

    code: str | None = says_one_of(
        (InsufficientBalance.code, KeyLimit.code, *_MAY_NOT_ISSUE),
        "Why not, as a stable word; null when it is possible.",
        None,
    )
    required: Points = says("Points for all recipients together.", 100)
    available: Points = says("The balance of the organization.", 1_000)
    affordable_recipients: int = says("How many recipients, from the first on, the balance pays.", 2, ge=0)


class ReverseVerifyAdditions(Additions):
    """What would be taken, for programs: the points, and the number of transactions in each state."""

    recoverable: Points = says("Points that would come back.", 100)
    transactions: int = says("All transactions asked for.", 2, ge=0)
    held: int = says("Transactions with points left that are held.", 1, ge=0)
    credited: int = says("Transactions with points left that were credited to a user.", 1, ge=0)
    already_reversed: int = says("Transactions with no points left.", 0, ge=0)
    not_debited: int = says("Transactions for which the balance was too low.", 0, ge=0)


class SendAdditions(Additions):
    """The batch of the send."""

    batch_id: Id = says("The id of the batch: `GET /v1/batches/{id}` reads it.", 1)


class Scheduled(BaseModel):
    """The scheduled batches of the organization in the key's mode. No points are reserved for them."""

    batches: int = says("How many batches are scheduled.", 0, ge=0)
    amount: Points = says("The points for all their recipients together, at most what 64 bits hold.", 0)
    next_at: Time | None = says("When the next one is due; null if there is none.", None)


class SandboxTime(BaseModel):
    """The time of the sandbox."""

    now: Time = says("Its time from now on. ISO 8601 in UTC, six decimals.", str(NOW.example).replace("Z", ".000000Z"))


class SandboxUser(BaseModel):
    """A user of the sandbox."""

    id: Id = says("The id of the user.", 8)
    email: str = says("The address, trimmed.", "ada@example.com")
    first_name: str = says("The given name.", "Ada")
    last_name: str = says("The family name; empty if there is none.", "Lovelace")
    created_at: Time = says("When it was registered, by the clock of the sandbox.", "2026-01-31T09:30:00.000000Z")


class Claimed(BaseModel):
    """What was held for the address and is now credited."""

    transactions: int = says("How many transactions.", 1, ge=0)
    amount: Points = says("Their points together.", 50)


class ClaimedAdditions(Additions):
    """What was claimed."""

    claimed: Claimed = says("What was held for the address and is now credited.")


class OrganizationAdditions(Additions):
    """The scheduled batches."""

    scheduled: Scheduled = says("The scheduled batches.")
