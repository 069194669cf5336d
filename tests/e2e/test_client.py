"""The client through the door. `FakePoints` and the service answer each story alike, to both halves of the client."""

import dataclasses
import re
import ssl
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

import pytest

from app import organizations
from app.platform import keys as platform_keys
from points_client import Claimed, Item, NoAnswer, PlatformPoints, Points, PointsError, Refused
from points_client.testing import KEY, LIVE_KEY, PLATFORM_KEY, URL, FakePoints
from tests.client_halves import HALVES, platform_of, points_of
from tests.service.inside import Service

BALANCE = 1_000
_NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # Made once: to read the authorities takes long.
RESERVED = ("disabled", "Suspended", "insufficient", "accepted", "silent", "rate_limited", "unavailable")


@dataclass(frozen=True)
class Front:
    """An organization with `BALANCE` points, a user, and who calls it: with another key too, and as the platform."""

    mark: str
    user: str
    points: Points
    stranger: Points
    live: Points
    platform: PlatformPoints
    suspend: Callable[[], object]

    def new(self, name: str) -> str:
        return f"{name}-{self.mark}@example.com"


Story = Callable[[Front], Iterator[object]]


def _fake(half: str, stack: ExitStack) -> Front:
    mark = uuid.uuid4().hex
    user = f"user-{mark}@example.com"
    fake, live = FakePoints(balance=BALANCE, users=[user]), FakePoints(balance=BALANCE, users=[user], live=True)
    points, stranger, real = (
        stack.enter_context(points_of(half, key, URL, transport=transport))
        for key, transport in ((KEY, fake), ("pts_dev_other", fake), (LIVE_KEY, live))
    )
    platform = stack.enter_context(platform_of(half, PLATFORM_KEY, URL, transport=live))
    return Front(mark, user, points, stranger, real, platform, lambda: setattr(fake, "suspended", True))


def _served(half: str, stack: ExitStack, service: Service) -> Front:
    mark = uuid.uuid4().hex
    user = f"user-{mark}@example.com"
    service.account(user)
    caller = service.organization(BALANCE, sandbox_balance=BALANCE)
    with service.connection() as connection:
        _, key = platform_keys.create(connection, "Tests")
    points, stranger, live = (
        stack.enter_context(points_of(half, key, service.url, ssl_context=_NO_TLS))
        for key in (caller.development, "pts_dev_other", caller.live)
    )
    points.rehearsing.register(user, "First", "Last")
    platform = stack.enter_context(platform_of(half, key, service.url, ssl_context=_NO_TLS))

    def suspend() -> None:
        with service.connection() as connection:
            organizations.change(connection, caller.id, {"is_suspended": True})

    return Front(mark, user, points, stranger, live, platform, suspend)


class Plain:
    """What a story tells, without what must differ: moments, names of ours, and ids, which become places."""

    def __init__(self, mark: str) -> None:
        self._mark = mark
        self._batches: dict[int, int] = {}

    def __call__(self, told: Any) -> Any:
        if isinstance(told, PointsError):
            return (
                type(told).__name__,
                told.status,
                told.code,
                sorted(told.errors),
                told.request_id is None,
                None if _is_made(told.key) else told.key,
            )
        if dataclasses.is_dataclass(told):
            fields = {field.name: getattr(told, field.name) for field in dataclasses.fields(told)}
            return {name: self._field(name, value, fields) for name, value in fields.items()}
        if isinstance(told, dict):
            return {name: self(value) for name, value in told.items()}
        if isinstance(told, list | tuple):
            return [self(one) for one in told]
        return re.sub(self._mark, "", told, flags=re.IGNORECASE) if isinstance(told, str) else told

    def _field(self, name: str, value: Any, beside: dict[str, Any]) -> Any:
        if name == "batch_id" or (name == "id" and "debited" in beside):
            batch, place = (value, None) if name == "batch_id" else divmod(value, 131_072)
            return [self._batches.setdefault(batch, len(self._batches)), place]
        if name == "request_id":
            return value is None
        if name in ("id", "api_key_id", "last_refill") or (name == "name" and "balance" in beside):
            return None
        return None if isinstance(value, datetime) or _is_made(value) else self(value)


def _is_made(value: object) -> bool:
    """Tell whether it is an idempotency key that the client has made."""
    try:
        return bool(uuid.UUID(str(value)).version)
    except ValueError:
        return False


def raised(call: Callable[[], object]) -> PointsError:
    with pytest.raises(PointsError) as error:
        call()
    return error.value


def verify_tells_whether_the_balance_pays_everybody(front: Front) -> Iterator[object]:
    yield front.points.verify(recipients=[front.new("a"), front.new("b")], amount=500)
    items: list[Item | Mapping[str, Any]] = [
        Item(email=front.new("a"), amount=900),
        {"email": front.new("b"), "amount": 101},
    ]
    lacks = front.points.verify(items=items)
    yield lacks
    assert (lacks.code, lacks.required, lacks.available) == ("insufficient_balance", 1_001, 1_000)
    assert (lacks.affordable_recipients, lacks.error is None) == (1, False)
    yield front.points.organization()


def a_send_pays_in_order_until_the_balance_ends(front: Front) -> Iterator[object]:
    held = Item(email=front.new("held"), reference="r-2")
    items: list[Item | Mapping[str, Any]] = [
        Item(email=front.user, label="x"),
        held,
        Item(email=front.new("much"), amount=900),
    ]
    sent = front.points.send(items=[*items, Item(email=front.new("last"), amount=1)], amount=100, label="all")
    assert [one.state for one in sent.transactions] == ["credited", "held", "unpaid", "unpaid"]
    assert (sent.amount, sent.current_balance) == (200, 800)
    yield sent
    yield front.points.send(recipients=[front.new("a"), front.new("b")], amount=401, atomic=True, metadata={"k": "v"})
    yield front.points.organization()


def a_key_pays_once_and_shows_what_was_issued(front: Front) -> Iterator[object]:
    body: dict[str, Any] = {"recipients": [front.new("late")], "amount": 7}
    first = front.points.send(**body, idempotency_key="march-1")
    claimed = front.points.rehearsing.register(front.new("late"), "Ada").claimed
    assert claimed == Claimed(transactions=1, amount=7)
    again = front.points.send(recipients=[front.new("late").upper()], amount=7, idempotency_key="march-1")
    assert (again.replayed, again.transactions) == (True, first.transactions)
    yield from (first, again)
    yield raised(lambda: front.points.send(**body, label="other", idempotency_key="march-1"))
    without = [front.points.send(recipients=[front.user], amount=1) for _ in range(2)]
    assert len({one.idempotency_key for one in without}) == 2
    yield from (*without, front.points.organization())


def what_is_held_is_claimed_once(front: Front) -> Iterator[object]:
    front.points.send(recipients=[front.new("ada"), front.new("bob")], amount=5)
    for _ in range(2):
        yield front.points.rehearsing.register(f" {front.new('ada').upper()} ", "Ada", "Lovelace")
    yield raised(lambda: front.points.rehearsing.register(front.new("ada"), "Grace"))
    yield raised(lambda: front.points.rehearsing.register("nobody", " "))
    yield list(front.points.transactions.list(email=front.new("ada")))
    yield [batch.counts for batch in front.points.batches.list()]


def a_sign_up_of_the_platform_claims_real_points(front: Front) -> Iterator[object]:
    users = front.platform.users
    assert [
        one.state for one in front.live.send(recipients=[front.new("ada"), front.user], amount=10).transactions
    ] == [
        "held",
        "credited",
    ]
    for _ in range(2):
        ada = users.register(front.new("ada"), "Ada", "Lovelace", external_id=front.mark)
        yield ada
    assert ada.balance == 10
    yield from (users.get(ada.id), list(users.list(external_id=front.mark)), list(users.list(email=front.user.upper())))
    yield raised(lambda: users.register(front.user, "Robert"))
    yield raised(lambda: users.register(front.new("bob"), "Bob", external_id=front.mark))
    yield raised(lambda: users.get(2**40))
    yield list(front.live.transactions.list(state="credited"))


def faults_are_told_by_their_fields_and_pay_nobody(front: Front) -> Iterator[object]:
    bodies: tuple[dict[str, Any], ...] = (
        {},
        {"recipients": ["nobody"], "amount": 0},
        {"items": [{"email": front.user}, {"email": " ", "amount": 10**9 + 1}, {"amount": "1"}]},
        {"recipients": [front.user, front.user.upper()], "amount": 1},
        {"items": [{"email": front.user}, {"email": front.user, "reference": "r"}], "amount": 1},
        {"items": [{"email": front.new(name), "reference": "r"} for name in "ab"], "amount": 1},
        {"recipients": [front.user], "amount": 1, "expect": {"recipients": 2, "amount": 3}},
        {"recipients": [f"{number}@example.com" for number in range(10_001)], "amount": 1},
    )
    for body in bodies:
        yield raised(partial(front.points.verify, **body))
        error = raised(partial(front.points.send, **body))
        assert (error.status, error.request_id is None) == (400, False)
        yield error
    yield front.points.organization()


def who_may_not_call_or_issue_is_refused(front: Front) -> Iterator[object]:
    yield raised(lambda: front.stranger.send(recipients=[front.user], amount=1))
    done = front.points.send(recipients=[front.user], amount=1)
    front.suspend()
    yield front.points.verify(recipients=[front.user], amount=1)
    yield raised(lambda: front.points.send(recipients=[front.user], amount=1))
    yield from (front.points.organization(), front.points.batches.get(done.batch_id))


def a_reserved_recipient_is_refused_or_silent(front: Front) -> Iterator[object]:
    for name in RESERVED:
        body: dict[str, Any] = {"recipients": [front.user, f"{name}@sandbox.points.test"], "amount": 1}
        yield front.points.verify(**body)
        wait_s = 1.0 if name in ("rate_limited", "unavailable") else 20.0
        try:
            yield front.points.send(**body, idempotency_key=name, wait_s=wait_s)
        except (Refused, NoAnswer) as error:
            yield error
    yield front.points.organization()


def who_does_not_wait_gets_a_queued_batch_and_may_wait_for_it(front: Front) -> Iterator[object]:
    sent = front.points.send(recipients=[front.user], amount=5, wait_s=0)
    assert (sent.status, sent.transactions, sent.amount, sent.current_balance) == ("queued", (), None, None)
    batch = front.points.batches.wait(sent.batch_id)
    assert (batch.status, batch.final, batch.amount, batch.current_balance) == ("issued", True, 5, 995)
    assert batch.transactions is not None
    yield from (sent, batch, front.points.transactions.get(batch.transactions[0].id))


def lists_go_over_all_pages_and_are_filtered(front: Front) -> Iterator[object]:
    for key in ("k-1", "k-2", "k-3"):
        item = Item(email=front.new(key), amount=1, reference=f"r-{key}")
        front.points.send(items=[item], label="first" if key == "k-1" else None, idempotency_key=key)
    batches, transactions = front.points.batches.list, front.points.transactions.list
    assert [one.idempotency_key for one in batches(page_size=2)] == ["k-3", "k-2", "k-1"]
    for found in (batches(), batches(status="queued"), batches(label="first"), batches(idempotency_key="k-2")):
        yield list(found)
    assert [one.reference for one in transactions(page_size=2)] == ["r-k-3", "r-k-2", "r-k-1"]
    for paid in (transactions(state="held"), transactions(credited=True), transactions(debited=True)):
        yield list(paid)
    [second] = transactions(reference="r-k-2")
    yield list(transactions(batch=second.id // 131_072))
    yield raised(lambda: front.points.batches.get(2**40))
    yield raised(lambda: front.points.transactions.get(2**40))


def a_run_is_sent_in_parts_and_again_without_a_second_payment(front: Front) -> Iterator[object]:
    emails = [front.user, *(front.new(str(number)) for number in range(6))]
    sent = list(front.points.send_all(iter(emails), run="2026-03", amount=2, part_size=3, in_flight=1))
    assert [one.email for one in sent] == emails
    assert list(front.points.send_all(emails, run="2026-03", amount=2, part_size=3, in_flight=1)) == sent
    keys = sorted(batch.idempotency_key or "" for batch in front.points.batches.list())
    assert keys == ["2026-03-part-1", "2026-03-part-2", "2026-03-part-3"]
    yield from (sent, front.points.organization())


STORIES: tuple[Story, ...] = (
    verify_tells_whether_the_balance_pays_everybody,
    a_send_pays_in_order_until_the_balance_ends,
    a_key_pays_once_and_shows_what_was_issued,
    what_is_held_is_claimed_once,
    a_sign_up_of_the_platform_claims_real_points,
    faults_are_told_by_their_fields_and_pay_nobody,
    who_may_not_call_or_issue_is_refused,
    a_reserved_recipient_is_refused_or_silent,
    who_does_not_wait_gets_a_queued_batch_and_may_wait_for_it,
    lists_go_over_all_pages_and_are_filtered,
    a_run_is_sent_in_parts_and_again_without_a_second_payment,
)


@pytest.mark.parametrize("halves", [HALVES, pytest.param(HALVES[::-1], marks=pytest.mark.long)], ids="-".join)
@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_the_fake_and_the_service_answer_a_story_alike(service: Service, story: Story, halves: tuple[str, str]) -> None:
    with ExitStack() as stack:
        fronts = _fake(halves[0], stack), _served(halves[1], stack, service)
        fake, served = ([*map(Plain(front.mark), story(front))] for front in fronts)
        assert fake == served
