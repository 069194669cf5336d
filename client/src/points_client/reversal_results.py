"""What the service answers about points that are taken back. Amounts are whole points."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, kw_only=True, slots=True)
class ReversedTransaction:
    """What a reversal took from one transaction: `reversed` of `amount` points.

    `code` is None, or why nothing was taken: `not_debited`, `already_reversed`, `more_than_left`.
    """

    id: int
    email: str
    amount: int
    reversed: int
    code: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Reversed:
    """The outcome of `reverse`.

    `status` is `done`, or `queued` if the wait ran out: it is accepted and will be done once. Then `transactions` is
    empty, and `amount` and `current_balance` are None. `replayed`: it was done before this call was made.
    """

    reversal_id: int
    status: str
    transactions: tuple[ReversedTransaction, ...]
    amount: int | None
    current_balance: int | None
    replayed: bool
    idempotency_key: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Recoverable:
    """What `reverse` would take: `recoverable` counts points, the other numbers count transactions.

    If nothing may be taken back, `error` is a sentence.
    """

    validated: bool
    error: str | None
    recoverable: int
    transactions: int
    held: int
    credited: int
    already_reversed: int
    not_debited: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Reversal:
    """A reversal as it is now. Until it is done, and in a list, `transactions` is None.

    `status`: `queued`, `done`, `refused` (then `refusal` says why). `final`: it will not change.
    """

    reversal_id: int
    status: str
    final: bool
    reason: str
    created_at: datetime
    refusal: str | None = None
    batch_id: int | None = None
    idempotency_key: str | None = None
    api_key_id: int | None = None
    done_at: datetime | None = None
    transactions: tuple[ReversedTransaction, ...] | None = None
    amount: int | None = None
    current_balance: int | None = None
