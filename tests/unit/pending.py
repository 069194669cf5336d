"""The rows that waiting looks at, imagined: a test says which batches are final, and sees what was asked."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest
from sqlalchemy.exc import OperationalError

from app.api import waiting


class Rows:
    """The batches of the database: which are final, and what was asked about them."""

    def __init__(self) -> None:
        self.final: set[int] = set()
        self.asked: list[list[int]] = []
        self.is_away = False

    @contextmanager
    def transaction(self) -> Iterator[None]:
        if self.is_away:
            raise OperationalError("SELECT", {}, Exception("away"))
        yield

    def final_among(self, _connection: None, batch_ids: Sequence[int]) -> list[int]:
        self.asked.append(list(batch_ids))
        return [batch_id for batch_id in batch_ids if batch_id in self.final]

    def put_behind_waiting(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Let these rows be the database of `app.api.waiting`, which now looks at them without a pause."""
        monkeypatch.setattr(waiting, "transaction", self.transaction)
        monkeypatch.setattr("app.batches.final_among", self.final_among)
        monkeypatch.setattr(waiting, "POLL_EVERY_S", 0.001)
        monkeypatch.setattr(waiting, "_LISTEN_AGAIN_AFTER_S", 0.001)
