"""What lies behind the view of send, imagined: one batch, the queue and the wait, which write down what happens."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from app.acceptance import Acceptance, IssueRequest
from app.batches import BatchRow
from tests.unit import rows


class House:
    """The batch 42 of the organization 7, for which nobody but the test does anything.

    `after_the_wait` is what the batch has become once somebody has waited for it, `known` what the
    idempotency keys name, and `taken_by` a request that takes the key in the very moment.
    """

    def __init__(self) -> None:
        self.events: list[str] = []
        self.accepted: list[tuple[IssueRequest, str | None]] = []
        self.batch: BatchRow = rows.queued_batch()
        self.after_the_wait: BatchRow | None = None
        self.known: dict[str, Acceptance] = {}
        self.taken_by: Acceptance | None = None
        self.waited_s: list[float] = []

    def find_by_idempotency_key(
        self, _connection: object, _organization_id: int, _request: object, *, sandbox: bool, idempotency_key: str
    ) -> Acceptance | None:
        assert not sandbox
        return self.known.get(idempotency_key)

    def accept(
        self, _connection: object, _id: int, request: IssueRequest, *, sandbox: bool, idempotency_key: str | None
    ) -> int | None:
        assert not sandbox
        self.events.append("accept")
        self.accepted.append((request, idempotency_key))
        if self.taken_by is not None and idempotency_key is not None:
            self.known[idempotency_key] = self.taken_by
            return None
        return 42

    def submit(self, organization_id: int, *, batch_id: int, recipients: int, request_id: str) -> bool:
        self.events.append(f"submit {organization_id} {batch_id} {recipients}")
        return True

    def find(self, _connection: object, batch_id: int, *, organization_id: int, sandbox: bool) -> BatchRow:
        assert (batch_id, organization_id, sandbox) == (42, 7, False)
        return self.batch

    @contextmanager
    def expect(self, batch_id: int) -> Iterator[threading.Event]:
        self.events.append(f"expect {batch_id}")
        house = self

        class Final(threading.Event):
            def wait(self, timeout: float | None = None) -> bool:
                assert timeout is not None, "nobody waits for ever"
                house.waited_s.append(timeout)
                house.batch = house.after_the_wait or house.batch
                return house.after_the_wait is not None

        yield Final()
