"""The data of answers about batches and their transactions."""

from pydantic import BaseModel

from app.api.openapi.answer_values import Additions
from app.batches.approval import ANSWERED_WITHIN_DAYS
from app.batches.batch import AWAITING_APPROVAL, QUEUED, SCHEDULED
from app.batches.transaction import Transaction
from app.noun import Id, Points, page_of, says, says_one_of

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
