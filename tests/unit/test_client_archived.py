"""What the client says of a batch of the archive, by `FakePoints`."""

import pytest

from points_client import Archived, Points, Refused
from points_client.testing import KEY, URL, FakePoints

ANN, BOB = "ann@example.com", "bob@example.com"


def test_a_batch_of_the_archive_is_refused_as_archived_and_listed() -> None:
    fake = FakePoints(users=[ANN])
    with Points(KEY, URL, transport=fake) as points:
        sent = points.send(recipients=[ANN], amount=5, idempotency_key="mine")
        held = points.send(recipients=[BOB], amount=5)
        fake.archive(sent.batch_id)
        for call in (
            lambda: points.batches.get(sent.batch_id),
            lambda: points.transactions.get(sent.transactions[0].id),
            lambda: list(points.transactions.list(batch=sent.batch_id)),
        ):
            with pytest.raises(Archived) as gone:
                call()
            assert isinstance(gone.value, Refused)
            assert (gone.value.status, gone.value.code) == (410, "archived")
            assert gone.value.errors["batch"][0].startswith(f"The batch {sent.batch_id} was archived on 20")
        listed = {batch.batch_id: batch.amount for batch in points.batches.list()}
        assert listed == {sent.batch_id: 5, held.batch_id: 5}
        assert [one.email for one in points.transactions.list()] == [BOB]
        # Its key is forgotten with it, so the same call is another batch.
        assert points.send(recipients=[ANN], amount=5, idempotency_key="mine").batch_id not in listed
        with pytest.raises(ValueError, match="are held"):
            fake.archive(held.batch_id)
