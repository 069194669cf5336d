"""The rows that waiting looks at, imagined: a test says which batches are final, and sees what was asked."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest
from sqlalchemy.exc import OperationalError

from app.api import waiting
from tests.unit import rows


class Pending:
    """The batches of the database: which are final, and what was asked about them (`read`: with their rows)."""

    def __init__(self) -> None:
        self.final: set[int] = set()
        self.asked: list[list[int]] = []
        self.read: list[list[int]] = []
        self.is_away = False

    @contextmanager
    def connection(self) -> Iterator[None]:
        if self.is_away:
            raise OperationalError("SELECT", {}, Exception("away"))
        yield

    def final_among(self, _connection: None, batch_ids: Sequence[int]) -> list[int]:
        self.asked.append(list(batch_ids))
        return [batch_id for batch_id in batch_ids if batch_id in self.final]

    def find_final(self, _connection: None, batch_ids: Sequence[int]) -> dict[int, waiting.Rows]:
        self.read.append(list(batch_ids))
        return {batch_id: self.rows_of(batch_id) for batch_id in batch_ids if batch_id in self.final}

    def rows_of(self, batch_id: int) -> waiting.Rows:
        """Return a batch as it is read once it is final."""
        return rows.issued_batch(id=batch_id), rows.issue().transactions

    def put_behind_waiting(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Let these rows be the database of `app.api.waiting`, which now looks at them without a pause."""
        monkeypatch.setattr(waiting, "single_statement", self.connection)
        monkeypatch.setattr("app.batches.final_among", self.final_among)
        monkeypatch.setattr("app.batches.find_final", self.find_final)
        monkeypatch.setattr(waiting, "POLL_EVERY_S", 0)
        monkeypatch.setattr(waiting, "_TICK_EVERY_S", 0.001)
        monkeypatch.setattr(waiting, "_LISTEN_AGAIN_AFTER_S", 0.001)
