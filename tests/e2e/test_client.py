"""The client through the door. What `FakePoints` can do is held by the same cases as the service itself."""

import asyncio
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from points_client import AsyncPoints, Invalid, Item, Limits, NotAuthorized, Points, Refused, Sent
from points_client.testing import KEY, URL, FakePoints
from tests.deadline import until
from tests.service.inside import Service

BALANCE = 1_000


@dataclass(frozen=True)
class Front:
    """An organization with `BALANCE` points, a user, and how to call as it."""

    user: str
    key: str
    url: str
    transport: FakePoints | None
    suspend: Callable[[], object]

    def points(self, key: str | None = None) -> Points:
        return Points(key or self.key, self.url, transport=self.transport)

    def async_points(self) -> AsyncPoints:
        return AsyncPoints(self.key, self.url, transport=self.transport)


def address() -> str:
    return f"{uuid.uuid4().hex}@example.com"


@pytest.fixture(params=["fake", "service"])
def front(request: pytest.FixtureRequest) -> Front:
    user = address()
    if request.param == "fake":
        fake = FakePoints(balance=BALANCE, users=[user])
        return Front(user, KEY, URL, fake, lambda: setattr(fake, "suspended", True))
    service: Service = request.getfixturevalue("service")
    service.account(user)
    caller = service.organization(sandbox_balance=BALANCE)
    return Front(
        user,
        caller.development,
        service.url,
        None,
        lambda: service.command("organizations", "suspend", str(caller.id)),
    )


@pytest.fixture
def points(front: Front) -> Iterator[Points]:
    with front.points() as made:
        yield made


def flags(sent: Sent) -> list[tuple[bool, bool, bool, str]]:
    return [(one.debited, one.credited, one.allocated, one.state) for one in sent.transactions]


def test_verify_tells_whether_the_balance_pays_everybody(points: Points) -> None:
    pays = points.verify(recipients=[address(), address()], amount=500)
    assert (pays.validated, pays.error, pays.code, pays.required, pays.available) == (True, None, None, 1_000, 1_000)
    lacks = points.verify(items=[Item(email=address(), amount=900), {"email": address(), "amount": 101}])
    assert (lacks.validated, lacks.code, lacks.required, lacks.affordable_recipients) == (
        False,
        "insufficient_balance",
        1_001,
        1,
    )
    assert lacks.error is not None
    organization = points.organization()
    assert organization.balance == 1_000
    assert organization.limits == Limits(recipients=10_000, amount=1_000_000_000, body_bytes=8_388_608)


def test_a_send_pays_in_order_until_the_balance_ends(front: Front, points: Points) -> None:
    held = address()
    items = [Item(email=front.user, label="x"), Item(email=held, reference="r-2"), Item(email=address(), amount=900)]
    sent = points.send(items=[*items, Item(email=address(), amount=1)], amount=100, label="all")
    assert flags(sent) == [
        (True, True, True, "credited"),
        (True, False, False, "held"),
        (False, False, False, "unpaid"),
        (False, False, False, "unpaid"),
    ]
    assert (sent.status, sent.amount, sent.current_balance, sent.replayed) == ("issued", 200, 800, False)
    first, second, *_ = sent.transactions
    assert (first.email, first.label, first.recipient is not None) == (front.user, "x", True)
    assert (second.label, second.reference, second.recipient, second.sandbox) == ("all", "r-2", None, True)
    assert [one.organization.balance for one in sent.transactions] == [900, 800, 800, 800]
    assert datetime.now(UTC) - first.created_at < timedelta(minutes=5)
    assert points.organization().balance == 800


def test_what_was_called_is_listed_with_what_was_answered(points: Points) -> None:
    sent = points.send(recipients=[address()], amount=5)
    points.batches.get(sent.batch_id)
    with pytest.raises(Invalid) as invalid:
        points.send(recipients=["nobody"], amount=5)
    points.verify(recipients=[address()], amount=BALANCE)

    def calls(**asked: Any) -> list[tuple[str, str | None, int, str | None, int | None]]:
        found = points.requests.list(page_size=2, **asked)
        shown = [(one.method, one.route, one.status, one.code, one.batch_id) for one in found]
        return [one for one in shown if one[1] != "/v1/requests"]

    until(lambda: len(calls()) == 4, "a call is listed a moment after its answer")
    assert calls() == [
        ("POST", "/v1/points/verify", 200, "insufficient_balance", None),
        ("POST", "/v1/points/send", 400, None, None),
        ("GET", "/v1/batches/{id}", 200, None, sent.batch_id),
        ("POST", "/v1/points/send", 201, None, sent.batch_id),
    ]
    assert calls(status="4xx") == calls(request_id=invalid.value.request_id) == calls()[1:2]
    assert calls(batch=sent.batch_id, status=201) == calls()[3:]
    [key] = {one.api_key_id for one in points.requests.list()}
    assert calls(api_key=key + 1) == []
    with pytest.raises(Invalid):
        list(points.requests.list(status="held"))


def test_atomic_pays_all_or_nobody(points: Points) -> None:
    sent = points.send(recipients=[address(), address()], amount=501, atomic=True)
    assert (sent.amount, sent.current_balance) == (0, 1_000)


def test_a_key_of_ones_own_is_kept_and_pays_once(points: Points) -> None:
    body: dict[str, Any] = {"recipients": [address()], "amount": 7}
    first = points.send(**body, idempotency_key="march-1")
    again = points.send(**body, idempotency_key="march-1")
    assert (first.idempotency_key, first.replayed, again.replayed) == ("march-1", False, True)
    assert again.transactions == first.transactions
    with pytest.raises(Invalid) as reused:
        points.send(recipients=[address()], amount=7, idempotency_key="march-1")
    assert (reused.value.status, reused.value.code) == (422, "idempotency_key_reused")
    assert points.organization().balance == 993


def test_each_send_without_a_key_is_one_of_its_own(points: Points) -> None:
    email = address()
    sent = [points.send(recipients=[email], amount=1) for _ in range(2)]
    assert len({one.idempotency_key for one in sent}) == len({one.batch_id for one in sent}) == 2


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        ({}, {"amount", "recipient", "recipients"}),
        ({"recipients": ["nobody"], "amount": 0}, {"recipients.0", "amount"}),
        (
            {"items": [{"email": "a@example.com"}, {"email": "nobody", "amount": 1}]},
            {"items.0.amount", "items.1.email"},
        ),
        ({"recipients": ["a@example.com", "A@example.com"], "amount": 1}, {"recipients.1"}),
        ({"recipients": ["a@example.com"], "amount": 1, "expect": {"recipients": 2}}, {"expect"}),
    ],
)
def test_a_send_with_faults_is_invalid_and_pays_nobody(points: Points, body: dict[str, Any], fields: set[str]) -> None:
    calls: tuple[Callable[..., object], ...] = (points.verify, points.send)
    for call in calls:
        with pytest.raises(Invalid) as invalid:
            call(**body)
        assert (invalid.value.status, set(invalid.value.errors)) == (400, fields)
        assert invalid.value.request_id
    assert points.organization().balance == 1_000


def test_a_wrong_key_is_not_authorized(front: Front) -> None:
    with front.points("pts_dev_other") as stranger, pytest.raises(NotAuthorized) as refused:
        stranger.send(recipients=[address()], amount=1)
    assert (refused.value.status, refused.value.code) == (401, "invalid_key")


def test_an_organization_that_may_not_issue_is_refused(front: Front, points: Points) -> None:
    done = points.send(recipients=[address()], amount=1, idempotency_key="before")
    front.suspend()
    assert points.verify(recipients=[address()], amount=1).code == "organization_suspended"
    with pytest.raises(Refused) as refused:
        points.send(recipients=[address()], amount=1)
    assert (refused.value.status, refused.value.code) == (403, "organization_suspended")
    assert points.organization().is_suspended
    assert points.batches.get(done.batch_id).status == "issued"


def test_who_does_not_wait_gets_a_queued_batch_and_may_wait_for_it(points: Points) -> None:
    email = address()
    sent = points.send(recipients=[email], amount=5, wait_s=0)
    assert (sent.status, sent.transactions, sent.amount, sent.current_balance) == ("queued", (), None, None)
    batch = points.batches.wait(sent.batch_id)
    assert (batch.status, batch.final, batch.amount, batch.current_balance) == ("issued", True, 5, 995)
    assert batch.idempotency_key == sent.idempotency_key
    assert batch.transactions is not None
    [transaction] = batch.transactions
    assert points.transactions.get(transaction.id).email == email


def test_lists_go_over_all_pages_and_are_filtered(points: Points) -> None:
    keys = [f"key-{number}" for number in range(5)]
    for key in keys:
        points.send(items=[Item(email=address(), amount=1, reference=f"r-{key}")], idempotency_key=key)
    assert [batch.idempotency_key for batch in points.batches.list(page_size=2)] == keys[::-1]
    assert [one.reference for one in points.transactions.list(page_size=3)] == [f"r-{key}" for key in keys[::-1]]
    [found] = points.transactions.list(reference="r-key-3")
    assert points.batches.get(found.id // 131_072).idempotency_key == "key-3"
    assert list(points.batches.list(status="queued")) == []


def test_what_is_not_there_is_refused(points: Points) -> None:
    finds: tuple[Callable[[int], object], ...] = (points.batches.get, points.transactions.get)
    for find in finds:
        with pytest.raises(Refused) as refused:
            find(2**40)
        assert (refused.value.status, refused.value.code) == (404, "not_found")


def test_a_run_is_sent_in_parts_and_again_without_a_second_payment(front: Front, points: Points) -> None:
    emails = [front.user, *(address() for _ in range(6))]
    sent = list(points.send_all(iter(emails), run="2026-03", amount=2, part_size=3))
    assert [one.email for one in sent] == emails
    assert points.organization().balance == 986
    keys = sorted(batch.idempotency_key or "" for batch in points.batches.list())
    assert keys == ["2026-03-part-1", "2026-03-part-2", "2026-03-part-3"]
    assert list(points.send_all(emails, run="2026-03", amount=2, part_size=3)) == sent
    assert points.organization().balance == 986


def test_async_points_does_the_same(front: Front) -> None:
    emails = [address() for _ in range(5)]

    async def run() -> None:
        async with front.async_points() as points:
            assert (await points.verify(recipients=emails, amount=1)).validated
            sent = await points.send(recipients=emails[:1], amount=1)
            assert [one.email async for one in points.transactions.list()] == [sent.transactions[0].email]
            all_sent = [one.email async for one in points.send_all(emails, run="async", amount=1, part_size=2)]
            assert all_sent == emails
            queued = await points.send(recipients=emails[:1], amount=1, wait_s=0)
            assert (await points.batches.wait(queued.batch_id)).final
            assert (await points.organization()).balance == BALANCE - 7

    asyncio.run(run())


def test_what_the_fake_answers_has_just_the_fields_of_the_service(service: Service) -> None:
    caller = service.organization()
    for path, method, body in (
        ("/v1/organization", "GET", None),
        ("/v1/points/verify", "POST", {"recipients": ["a@example.com"], "amount": 1}),
        ("/v1/points/send", "POST", {"recipients": ["a@example.com"], "amount": 1}),
    ):
        real = service.call(method, path, key=caller.development, json=body).json()
        headers = {"Authorization": f"Bearer {KEY}"}
        with httpx.Client(transport=FakePoints(), base_url=URL, headers=headers) as fake:
            made = fake.request(method, path, json=body).json()
        assert _shape(made["data"]) == _shape(real["data"])
        assert set(made["additional_data"]) | {"scheduled"} == set(real["additional_data"]) | {"scheduled"}


def _shape(value: object) -> object:
    if isinstance(value, dict):
        return {name: _shape(each) for name, each in value.items()}
    return [_shape(each) for each in value] if isinstance(value, list) else None
