"""What lies behind the view of send, imagined: the send path of one batch, which writes down what was asked of it."""

from typing import Protocol

from app.api.sending.send_path import Sent
from app.api_keys import Caller
from app.batches.accept import Acceptance, IssueRequest, Send
from app.batches.read import QUEUED, BatchRow
from app.errors import PointsError
from app.organizations import may_not_issue
from app.values.keys import hash_key
from tests.unit import rows
from tests.unit.answers import KEY


class HasCaller(Protocol):
    """Whoever calls at present; a test may change it."""

    caller: Caller


def acceptance(
    batch_id: int = 42, *, organization_id: int = 7, status: str = QUEUED, existed: bool = False
) -> Acceptance:
    """Return what became of a send that the key 1 sent: a batch."""
    return Acceptance(
        api_key_id=1,
        key_use_is_old=False,
        organization_id=organization_id,
        batch_id=batch_id,
        status=status,
        existed=existed,
        created_at=rows.MOMENT,
    )


class House:
    """The batch 42 of the organization 7, for which nobody but the test does anything.

    `accepted_at` is when it was accepted, and `after_the_wait` what it has become once somebody has waited for it,
    read by the way when `reads_by_the_way`; `had_place` is whether it might wait at all; `known` is what the
    idempotency keys name, `error` what a send ends with.
    """

    def __init__(self, calling: HasCaller) -> None:
        self._calling = calling
        self.accepted: list[tuple[IssueRequest, str | None]] = []
        self.batch: BatchRow = rows.queued_batch()
        self.after_the_wait: BatchRow | None = None
        self.reads_by_the_way = False
        self.had_place = True
        self.known: dict[str, Acceptance] = {}
        self.error: PointsError | None = None
        self.accepted_at = 0.0
        self.waited_s: list[float] = []

    def process(self, send: Send, *, wait_s: float, request_id: str) -> Sent:
        assert send.sender == hash_key(KEY)
        if self.error is not None:
            raise self.error
        known = self.known.get(send.idempotency_key or "")
        if known is None:
            self._accept(send)
        outcome = known or acceptance()
        if outcome.status != QUEUED or wait_s == 0:
            return Sent(outcome, self.accepted_at, None)
        self.waited_s.append(wait_s)
        self.batch = self.after_the_wait or self.batch
        read = (self.batch, rows.issue().transactions) if self.reads_by_the_way else None
        return Sent(outcome, self.accepted_at, read, self.had_place)

    def _accept(self, send: Send) -> None:
        flags = self._calling.caller.organization
        refusal = may_not_issue(is_disabled=flags.is_disabled, is_suspended=flags.is_suspended)
        if refusal is not None:
            raise refusal
        self.accepted.append((send.request, send.idempotency_key))

    def find_accepted(self, _connection: object, batch_id: int) -> BatchRow:
        assert batch_id == 42
        return self.batch
