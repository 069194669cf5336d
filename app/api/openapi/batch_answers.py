"""The data of answers about batches and their transactions."""

from typing import Annotated

from pydantic import BaseModel

from app.api.openapi.answer_values import MAY_NOT_ISSUE, Additions, User
from app.batches.approval import ANSWERED_WITHIN_DAYS
from app.batches.read import AWAITING_APPROVAL, QUEUED, SCHEDULED, STATES, STATUSES
from app.noun import Id, Points, Time, page_of, says, says_one_of
from app.organizations import in_mode


class Transaction(BaseModel):
    """One recipient of a batch."""

    id: Id = says("The id of the transaction.", 131_072)
    organization: in_mode.model = says(  # type: ignore[name-defined]
        "The issuing organization, with the balance right after this transaction."
    )
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


TransactionList = page_of(Transaction, "transaction", "transactions")


class SendResult(BaseModel):
    """An issued batch: one transaction per recipient, in the order of the request."""

    transactions: list[Transaction] = says("One per recipient, in the order of the request.")
    amount: Points = says("The sum of the debited transactions.", 100)
    current_balance: Points = says("The balance right after this batch.", 900)


class SendAdditions(Additions):
    """The batch of the send."""

    batch_id: Id = says("The id of the batch: `GET /v1/batches/{id}` reads it.", 1)


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
        MAY_NOT_ISSUE, "Why it was refused, as a stable word; null unless it was refused.", None
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


BatchList = page_of(ListedBatch, "batch", "batches")
