"""The data of answers about reversals."""

from typing import Annotated

from pydantic import BaseModel

from app.api.openapi.answer_values import Additions
from app.errors import BalanceTooLarge, BatchNotIssued, OrganizationDisabled
from app.noun import Id, Points, Time, page_of, says, says_one_of
from app.reversals.read import QUEUED, STATUSES, reversed_transactions


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


class _ReversalHead(BaseModel):
    reversal_id: Id = says("The id of the reversal.", 2)
    status: str = says_one_of(STATUSES, "Refused: nothing was taken, and `refusal` says why.", "done")
    final: bool = says("Its status will not change. Rely on this, as more statuses may be added.", True)
    refusal: str | None = says_one_of(
        (OrganizationDisabled.code, BatchNotIssued.code, BalanceTooLarge.code),
        "Why it was refused, as a stable word; null unless it was refused.",
        None,
    )
    reason: str = says("The reason that it was sent with.", "The wrong list")
    batch_id: Id | None = says("The batch to take back; null if the request named transactions.", 1)
    idempotency_key: str | None = says(
        "The `Idempotency-Key` that it was sent with; null if none, and once it is no longer kept.", None
    )
    api_key_id: Id | None = says("The id of the key that sent it.", 1)
    created_at: Time = says("When it was accepted. ISO 8601 in UTC, six decimals.", "2026-01-31T09:40:00.471006Z")
    done_at: Time | None = says(
        "When it was done, ISO 8601 in UTC, six decimals; null until then.", "2026-01-31T09:40:00.482913Z"
    )


_Taken = Annotated[Points | None, says("The sum of the points taken; null until done.", 100)]
_BalanceThen = Annotated[Points | None, says("The balance right after it; null until done.", 1_000)]


class ListedReversal(_ReversalHead):
    """A reversal as it is now, without its transactions."""

    amount: _Taken
    current_balance: _BalanceThen


class Reversal(_ReversalHead):
    """A reversal as it is now."""

    transactions: list[reversed_transactions.model] | None = says(  # type: ignore[name-defined]
        "One per transaction asked for, in order; null until done."
    )
    amount: _Taken
    current_balance: _BalanceThen


ReversalList = page_of(ListedReversal, "reversal", "reversals")
