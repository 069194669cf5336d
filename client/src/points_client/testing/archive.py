"""The archive of `FakePoints`: batches that answer 410."""

from typing import Any

from points_client.testing.accounts import Refusal


class Archive:
    """The batches of the archive, each with its day."""

    def __init__(self) -> None:
        self._days: dict[int, str] = {}

    def __contains__(self, batch_id: object) -> bool:
        return batch_id in self._days

    def add(self, batch: dict[str, Any], moment: str) -> None:
        """Put an issued batch into the archive; the service waits until nothing is held and its key is forgotten."""
        if batch["counts"]["held"]:
            raise ValueError(f"Points of the batch {batch['batch_id']} are held: such a batch is never archived.")
        batch["idempotency_key"] = None
        self._days[batch["batch_id"]] = moment[:10]

    def refuse(self, batch_id: int) -> None:
        """Refuse a call about a batch of the archive."""
        if batch_id in self:
            day = self._days[batch_id]
            sentence = f"The batch {batch_id} was archived on {day} and can no longer be read or taken back here."
            raise Refusal(410, "archived", {"batch": [sentence]})
