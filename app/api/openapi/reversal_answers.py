"""The data of answers about reversals."""

from pydantic import BaseModel

from app.api.openapi.answer_values import Additions
from app.noun import Id, Points, says, says_one_of
from app.reversals.reversal import QUEUED, reversed_transactions


class ReverseVerdict(BaseModel):
    """Whether a reversal would take any points back now."""

    validated: bool = says("True: it would; with `atomic`, all that was asked for.", True)
    error: str | None = says("Why not, as a sentence; null when it is possible.", None)


class ReverseVerifyAdditions(Additions):
    """What would be taken, for programs: the points, and the number of transactions in each state."""

    recoverable: Points = says("Points that would come back.", 100)
    transactions: int = says("All transactions asked for.", 2, ge=0)
    held: int = says("Transactions with points left that are held.", 1, ge=0)
    credited: int = says("Transactions with points left that were credited to a user.", 1, ge=0)
    already_reversed: int = says("Transactions with no points left.", 0, ge=0)
    not_debited: int = says("Transactions for which the balance was too low.", 0, ge=0)


class ReverseResult(BaseModel):
    """Points taken back, in the order of the request, or of the batch."""

    reversal_id: Id = says("The id of the reversal: `GET /v1/reversals/{id}` reads it.", 2)
    transactions: list[reversed_transactions.model] = says(  # type: ignore[name-defined]
        "One per transaction asked for, in order."
    )
    amount: Points = says("The sum of the points taken.", 100)
    current_balance: Points = says("The balance right after this reversal.", 1_000)


class QueuedReversal(BaseModel):
    """A reversal that is accepted and will be done exactly once; read it at `Location`."""

    reversal_id: Id = says("The id of the reversal.", 2)
    status: str = says_one_of((QUEUED,), "It waits for a worker.", "queued")
