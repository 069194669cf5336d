"""Where a client may be used: in forked processes and in event loops, each with connections of its own."""

import asyncio
from typing import Any

import httpx
import pytest

from points_client import AsyncPoints, NoAnswer, Points, PointsError
from points_client.testing import KEY, URL, FakePoints
from tests.forks import in_children
from tests.unit.served_fake import served

CHILDREN, SENDS = 6, 15

pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")


def test_children_of_a_process_that_has_called_get_their_own_answers() -> None:
    fake = FakePoints(balance=10_000)
    with served(fake) as url, Points(KEY, url) as points:
        points.organization()

        def work(child: int) -> None:
            for number in range(SENDS):
                email = f"{child}-{number}@example.com"
                assert [one.email for one in points.send(recipients=[email], amount=1).transactions] == [email]

        assert in_children(work, CHILDREN) == [0] * CHILDREN
        assert points.organization().balance == 10_000 - CHILDREN * SENDS


def test_one_asynchronous_client_is_used_in_several_event_loops_and_after_a_fork() -> None:
    with served(FakePoints(balance=10_000)) as url:
        points = AsyncPoints(KEY, url)

        async def send(email: str) -> None:
            sent = await points.send(recipients=[email], amount=1)
            assert [one.email for one in sent.transactions] == [email]

        def work(child: int) -> None:
            for number in range(SENDS):
                asyncio.run(send(f"{child}-{number}@example.com"))

        async def send_and_close() -> None:
            await send("last@example.com")
            await points.close()

        asyncio.run(send_and_close())
        assert in_children(work, CHILDREN) == [0] * CHILDREN
        with Points(KEY, url) as other:
            assert other.organization().balance == 10_000 - CHILDREN * SENDS - 1


def test_a_transport_of_ones_own_is_not_shared_with_a_child() -> None:
    with served(FakePoints()) as url, Points(KEY, url, transport=httpx.HTTPTransport()) as points:
        points.organization()

        def work(_child: int) -> None:
            with pytest.raises(PointsError, match="make other Points"):
                points.organization()

        assert in_children(work, CHILDREN) == [0] * CHILDREN


@pytest.mark.parametrize(
    "changed",
    [{"email": "other@example.com"}, {"reference": "r-2"}, {"amount": 3}],
    ids=lambda changed: next(iter(changed)),
)
def test_an_answer_about_something_else_than_what_was_sent_is_not_believed(changed: dict[str, Any]) -> None:
    fake = FakePoints()

    class Swapping(httpx.MockTransport):
        def handle_request(self, request: httpx.Request) -> httpx.Response:
            document = fake.handle_request(request).json()
            document["data"]["transactions"][1] |= changed
            return httpx.Response(201, json=document)

    items = [{"email": "ann@example.com"}, {"email": "bob@example.com", "reference": "r-1"}]
    with Points(KEY, URL, transport=Swapping(lambda _: httpx.Response(500))) as points, pytest.raises(NoAnswer) as none:
        points.send(items=items, amount=2, idempotency_key="mine")
    assert none.value.key == "mine"


@pytest.mark.parametrize("again", [" ann@EXAMPLE.com", "ann@example.com"])
def test_a_replay_may_show_an_address_as_it_was_written_first(again: str) -> None:
    with Points(KEY, URL, transport=FakePoints()) as points:
        points.send(recipients=["Ann@example.com"], amount=2, idempotency_key="mine")
        assert points.send(recipients=[again], amount=2, idempotency_key="mine").replayed


def test_a_reversal_of_other_transactions_is_not_believed() -> None:
    taken = [{"id": 7, "email": "ann@example.com", "amount": 1, "reversed": 1, "code": None}]
    data = {"reversal_id": 1, "transactions": taken, "amount": 1, "current_balance": 1}
    answer = httpx.Response(201, json={"success": True, "data": data, "errors": None, "additional_data": {}})
    with Points(KEY, URL, transport=httpx.MockTransport(lambda _: answer)) as points:
        assert points.reverse(transactions=[7], reason="x").amount == 1
        with pytest.raises(NoAnswer, match="other transactions") as none:
            points.reverse(transactions=[8], reason="x", idempotency_key="mine")
    assert none.value.key == "mine"
