"""The data of answers, and what stands beside it, as models that only describe.

`app/api/call/envelope.py` renders the answers, ten times as fast.
A model's docstring is for callers: it describes a schema.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field


def says(description: str, *example: Any, **more: Any) -> Any:
    """Return a field with its description and its example. A part that is a model has an example by its own fields."""
    return Field(description=description, examples=list(example) or None, **more)


Id = Annotated[int, Field(ge=1, json_schema_extra={"format": "int64"})]
Points = Annotated[int, Field(ge=0, json_schema_extra={"format": "int64"})]
_TIME = r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$"
Time = Annotated[str, Field(pattern=_TIME, json_schema_extra={"format": "date-time"})]


class Organization(BaseModel):
    """Who issues, as the mode of the key sees it."""

    id: Id = says("The id of the organization.", 1)
    name: str = says("Its name.", "Acme")
    is_disabled: bool = says("It cannot issue until it is enabled.", False)
    is_suspended: bool = says("It cannot issue until it is resumed.", False)
    balance: Points = says("Points it can still issue; in a transaction, the balance right after it.", 1_000)
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
    organization: Organization = says("Who issued, with the balance right after this transaction.")
    recipient: User | None = says("The account with this address; null if there is none.")
    email: str = says("The address as it was sent, trimmed.", "ada@example.com")
    amount: Points = says("Points for this recipient.", 50)
    debited: bool = says("The points were taken from the organization. False: the balance was too low.", True)
    credited: bool = says("The points were given to the account.", True)
    allocated: bool = says("The same as `credited`. Debited but not allocated: the points are held.", True)
    sender: User | None = says("Null: sent through this interface.", None)
    label: str | None = says("The label of its item, or of the batch; null if they have none.", None)
    reference: str | None = says("The caller's own id of its item; null if it has none.", None)
    reversed: Points = says("Points taken back so far.", 0)
    state: Literal["credited", "held", "unpaid", "reversed", "returned"] = says(
        "What the flags say, in a word. Another may come.", "credited"
    )
    sandbox: bool = says("Issued with a development key, so not for real.", False)
    created_at: Time = says("When it was issued. ISO 8601 in UTC, six decimals.", "2026-01-31T09:30:00.482913Z")


class Verdict(BaseModel):
    """Whether the whole issue is possible at this moment."""

    validated: bool = says("It is possible.", True)
    error: str | None = says("Why not, as a sentence; null when it is possible.", None)


class SendResult(BaseModel):
    """An issued batch: one transaction per recipient, in the order of the request."""

    transactions: list[Transaction] = says("One per recipient, in the order of the request.")
    amount: Points = says("The sum of the debited transactions.", 100)
    current_balance: Points = says("The balance right after this batch.", 900)


class AcceptedBatch(BaseModel):
    """A batch that is accepted and will be issued exactly once; read it at `Location`."""

    batch_id: Id = says("The id of the batch.", 1)
    status: Literal["queued", "scheduled"] = says("It waits for a worker, or for its moment.", "queued")


class Counts(BaseModel):
    """How many of a batch's transactions are in each state now."""

    recipients: int = says("All of them.", 2, ge=1)
    debited: int = says("Paid by the balance.", 2, ge=0)
    credited: int = says("Given to an account.", 1, ge=0)
    held: int = says("Debited, and kept until there is an account with the address.", 1, ge=0)
    unpaid: int = says("Not debited: the balance was too low.", 0, ge=0)
    reversed: int = says("Taken back whole.", 0, ge=0)


class _BatchHead(BaseModel):
    batch_id: Id = says("The id of the batch.", 1)
    status: Literal["scheduled", "queued", "issued", "refused", "cancelled"] = says(
        "Scheduled: it waits for its `send_at`. Refused: the organization may not issue.", "issued"
    )
    final: bool = says("Its status will not change. Another status may come: look at this.", True)
    refusal: Literal["organization_disabled", "organization_suspended"] | None = says(
        "Why it was refused, as a word that stays the same; null unless it was.", None
    )
    label: str | None = says("The label that it was sent with; null if none.", None)
    metadata: dict[str, str] | None = says("What it was sent with; null if nothing.", None)
    idempotency_key: str | None = says(
        "The `Idempotency-Key` that it was sent with; null if none, and once it is no longer kept.", None
    )
    api_key_id: Id | None = says("The id of the key that sent it.", 1)
    sender: User | None = says("Null: sent through this interface.", None)
    counts: Counts | None = says("How many transactions are in each state now; null until issued.")
    created_at: Time = says("When it was accepted. ISO 8601 in UTC, six decimals.", "2026-01-31T09:30:00.471006Z")
    send_at: Time | None = says("When it is to be issued; null: at once.", None)
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


_Cursor = Annotated[str | None, says("Leads to the next page; null at the end of the list.", None)]


class BatchList(BaseModel):
    """A page of batches, newest first."""

    batches: list[ListedBatch] = says("The batches of this page.")
    next_cursor: _Cursor


class TransactionList(BaseModel):
    """A page of transactions, newest first."""

    transactions: list[Transaction] = says("The transactions of this page.")
    next_cursor: _Cursor


class Health(BaseModel):
    """That the process answers."""

    status: Literal["ok"] = says("Always `ok`.", "ok")


class Readiness(BaseModel):
    """That PostgreSQL answers too, and whether Redis does."""

    status: Literal["ready"] = says("Always `ready`; when it is not, the answer is 503.", "ready")
    postgresql: Literal["ok"] = says("Always `ok`; when it is away, the answer is 503.", "ok")
    redis: Literal["ok", "away"] = says("Sends go on while it is away, and take up to 3 s more.", "ok")


class Additions(BaseModel):
    """What is said beside the payload."""

    version: str = says("The version of the interface.", "1.0")


class VerifyAdditions(Additions):
    """The verdict, for programs."""

    code: Literal["insufficient_balance", "organization_disabled", "organization_suspended"] | None = says(
        "Why not, as a word that stays the same; null when it is possible.", None
    )
    required: Points = says("Points for all recipients together.", 100)
    available: Points = says("Points the organization has.", 1_000)
    affordable_recipients: int = says("How many recipients, from the first on, the balance pays.", 2, ge=0)


class SendAdditions(Additions):
    """Which batch it became."""

    batch_id: Id = says("The id of the batch: `GET /v1/batches/{id}` reads it.", 1)


class Scheduled(BaseModel):
    """What the organization has scheduled in the key's mode. Nothing of it is reserved."""

    batches: int = says("How many batches wait for their moment.", 0, ge=0)
    amount: Points = says("The points for all their recipients together; no more than 64 bits hold.", 0)
    next_at: Time | None = says("When the next of them is due; null if there is none.", None)


class OrganizationAdditions(Additions):
    """What waits for its moment."""

    scheduled: Scheduled = says("What is scheduled.")
