"""The calls of the client that no fake answers, through the door: reversals, what is later, held, events, webhooks."""

import threading
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from app import api_keys, organizations
from app.platform import keys as platform_keys
from points_client import Claimed, Consumer, Invalid, InvalidSignature, PlatformPoints, Points, Refused, verify_webhook
from tests.deadline import until
from tests.receiver import Receiver
from tests.service.inside import Service


@pytest.fixture
def points(service: Service) -> Iterator[Points]:
    caller = service.organization(sandbox_balance=1_000)
    with Points(caller.development, service.url) as made:
        yield made


def address() -> str:
    return f"{uuid.uuid4().hex}@example.com"


def test_points_are_taken_back_once_and_the_same_key_shows_it_again(points: Points) -> None:
    sent = points.send(recipients=[address(), address()], amount=400)
    found = points.verify_reverse(batch=sent.batch_id, reason="mistake")
    assert (found.validated, found.recoverable, found.transactions, found.held) == (True, 800, 2, 2)
    body = {"transactions": [sent.transactions[0].id], "reason": "mistake", "amount": 100}
    back = [points.reverse(**body, idempotency_key="back-1") for _ in range(2)]  # type: ignore[arg-type]
    assert [(one.status, one.amount, one.current_balance, one.replayed) for one in back] == [
        ("done", 100, 300, False),
        ("done", 100, 300, True),
    ]
    queued = points.reverse(batch=sent.batch_id, reason="all of it", wait_s=0)
    done = points.reversals.wait(queued.reversal_id)
    assert (queued.status, done.status, done.amount, done.reason) == ("queued", "done", 700, "all of it")
    assert [one.reversal_id for one in points.reversals.list(page_size=1)] == [queued.reversal_id, back[0].reversal_id]
    assert points.transactions.get(sent.transactions[0].id).state == "reversed"
    with pytest.raises(Invalid) as reused:
        points.reverse(batch=sent.batch_id, reason="other", idempotency_key="back-1")
    assert reused.value.code == "idempotency_key_reused"


def test_what_is_scheduled_is_moved_and_cancelled(points: Points) -> None:
    moment = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=1)
    email = address()
    sent = points.send(recipients=[email], amount=5, send_at=moment, idempotency_key="later")
    assert sent.status == "scheduled"
    scheduled = points.organization().scheduled
    assert scheduled is not None
    assert (scheduled.batches, scheduled.amount, scheduled.next_at) == (1, 5, moment)
    assert points.batches.reschedule(sent.batch_id, moment + timedelta(hours=1)).send_at == moment + timedelta(hours=1)
    for _ in range(2):
        assert points.batches.cancel(sent.batch_id).status == "cancelled"
    with pytest.raises(Refused) as cancelled:
        points.send(recipients=[email], amount=5, send_at=moment, idempotency_key="later")
    assert (cancelled.value.status, cancelled.value.code) == (409, "batch_cancelled")
    issued = points.send(recipients=[address()], amount=5)
    with pytest.raises(Refused) as final:
        points.batches.cancel(issued.batch_id)
    assert (final.value.status, final.value.code) == (409, "batch_final")


def test_what_awaits_an_approval_is_approved_or_rejected_with_another_key(service: Service) -> None:
    made = service.organization(sandbox_balance=1_000)
    with service.connection() as connection:
        organizations.change(connection, made.id, {"approval_above": 4, "approval_of": "all"})
        _, other = api_keys.create(connection, made.id, sandbox=True)
    with Points(made.development, service.url) as sender, Points(other, service.url) as approver:
        first, second = (
            sender.send(recipients=[address()], amount=5, idempotency_key=key).batch_id for key in ("first", "second")
        )
        waiting = sender.batches.wait(first, wait_s=0)
        assert (waiting.status, waiting.final, waiting.approval) == ("awaiting_approval", False, None)
        with pytest.raises(Refused) as own:
            sender.batches.approve(first)
        assert (own.value.status, own.value.code) == (403, "own_batch")
        for _ in range(2):
            approved = approver.batches.approve(first).approval
            assert approved is not None
            assert (approved.by, approved.reason) == (None, None)
            assert approver.batches.reject(second, "The wrong list").status == "rejected"
        assert sender.batches.wait(first).status == "issued"
        rejected = sender.batches.wait(second, wait_s=5)
        assert rejected.final
        assert rejected.approval is not None
        assert rejected.approval.reason == "The wrong list"
        with pytest.raises(Refused) as over:
            sender.batches.cancel(second)
        assert over.value.code == "batch_final"


def test_transactions_of_a_user_are_found_and_the_sandbox_is_reset(points: Points, service: Service) -> None:
    user = address()
    service.register(user)
    sent = points.send(recipients=[address(), user], amount=5)
    [found] = points.transactions.list(user=(sent.transactions[1].recipient or pytest.fail("no user")).id)
    assert found.email == user
    assert points.organization().balance == 990
    assert points.reset_sandbox().balance == 1_000


def test_a_statement_tells_what_moved_the_balance_on_each_day(points: Points) -> None:
    sent = points.send(recipients=[address(), address()], amount=400)
    points.reverse(batch=sent.batch_id, reason="mistake", amount=100)
    points.send(recipients=[address()], amount=5_000)
    today = datetime.now(UTC).date()
    found = points.statement(from_=today - timedelta(days=2), to=today)
    assert (found.from_, found.to) == (today - timedelta(days=2), today)
    assert [day.date for day in found.days] == [today - timedelta(days=number) for number in (2, 1, 0)]
    total = found.total
    assert (total.opening_balance, total.refilled, total.debited, total.reversed, total.returned) == (
        *(0, 1_000, 800, 200, 0),
    )
    assert (total.closing_balance, total.batches, total.transactions, total.unpaid) == (400, 2, 3, 1)
    with pytest.raises(Invalid) as invalid:
        points.statement(from_="2026-01-01", to="2026-13-01")
    assert set(invalid.value.errors) == {"to"}


def test_what_is_held_is_extended(points: Points) -> None:
    sent = points.send(recipients=[address()], amount=5, hold_days=1)
    [held] = sent.transactions
    assert held.held_until is not None
    later = held.held_until + timedelta(days=9)
    assert points.transactions.extend(held.id, later).held_until == later
    with pytest.raises(Invalid):
        points.transactions.extend(held.id, held.held_until)


def test_a_consumer_handles_what_a_follower_is_told_as_it_happens(points: Points) -> None:
    handled: list[tuple[int, str]] = []
    stored = [0]
    lock = threading.RLock()
    consumer = Consumer(
        points,
        transaction=lambda: lock,
        load=lambda _: stored[-1],
        handle=lambda _, event: handled.append((event.sequence, event.type)),
        store=lambda _, sequence: stored.append(sequence),
        types=("batch.*", "reversal.*"),
    )
    first = points.send(recipients=[address()], amount=1)
    follower = points.events.follow(after=points.events.last_sequence())
    second = points.send(recipients=[address()], amount=2)
    told = next(event for event in follower if event.type == "batch.issued" and event.data["batch"]["amount"] == 2)
    assert told.data["batch"]["batch_id"] == second.batch_id
    points.reverse(batch=first.batch_id, reason="x")
    until(lambda: consumer.catch_up() and handled[-1][1] == "reversal.issued", "the reversal is told")
    assert [kind for _, kind in handled] == ["batch.issued", "batch.issued", "reversal.issued"]
    assert consumer.catch_up() == 0


def test_a_webhook_brings_a_signed_event_and_is_changed_and_removed(points: Points) -> None:
    with Receiver().running() as receiver:
        webhook = points.webhooks.create(receiver.url, types=("batch.*", "ping"), description="Shop")
        assert webhook.secret is not None
        sent = points.send(recipients=[address()], amount=1)
        until(lambda: receiver.calls, "the event arrives")
        call = receiver.calls[0]
        event = verify_webhook(call.body, call.headers, webhook.secret)
        assert (event.type, event.data["batch"]["batch_id"]) == ("batch.issued", sent.batch_id)
        assert next(points.events.list(after=event.sequence - 1)) == event
        with pytest.raises(InvalidSignature):
            verify_webhook(call.body.replace(b"issued", b"refused"), call.headers, webhook.secret)
        rotated = points.webhooks.rotate(webhook.id)
        assert rotated.secret not in (None, webhook.secret)
        points.webhooks.ping(webhook.id)
        until(lambda: len(receiver.calls) == 2, "the ping arrives")
        ping = receiver.calls[1]
        for secret in (webhook.secret, rotated.secret or ""):  # The old one signs along.
            assert verify_webhook(ping.body, ping.headers, secret).type == "ping"
        points.webhooks.replay(webhook.id, from_sequence=event.sequence)
        until(lambda: len(receiver.calls) == 4, "both arrive once more")
    until(lambda: len(list(points.webhooks.deliveries(webhook.id))) == 4, "every delivery is shown")
    assert {one.event.type for one in points.webhooks.deliveries(webhook.id)} == {"batch.issued", "ping"}
    assert points.webhooks.update(webhook.id, description="Other").description == "Other"
    assert points.webhooks.update(webhook.id, description="").description is None
    assert points.webhooks.disable(webhook.id).disabled_reason == "caller"
    assert points.webhooks.enable(webhook.id).status == "enabled"
    assert [one.id for one in points.webhooks.list()] == [webhook.id]
    for _ in range(2):  # Also when it is gone already.
        points.webhooks.delete(webhook.id)
    with pytest.raises(Refused):
        points.webhooks.get(webhook.id)
    with pytest.raises(Invalid) as invalid:
        points.webhooks.create("http://example.com")
    assert set(invalid.value.errors) == {"url"}


def test_the_platform_registers_finds_and_changes_users_and_runs_organizations(service: Service) -> None:
    with service.connection() as connection:
        _, key = platform_keys.create(connection, "Tests")
    emails = [address() for _ in range(4)]
    with PlatformPoints(key, service.url) as platform:
        acme = platform.organizations.create("Acme", balance=100, held_days=30)
        assert (acme.balance, acme.held_days) == (100, 30)
        caller = service.organization(100)
        with Points(caller.live, service.url) as points:
            points.send(recipients=emails, amount=5)
        ada = platform.users.register(emails[0], "Ada", "Lovelace", external_id=emails[0])
        assert (ada.balance, ada.claimed) == (5, Claimed(transactions=1, amount=5))
        assert platform.users.get(ada.id).balance == 5
        assert [one.id for one in platform.users.list(external_id=emails[0])] == [ada.id]
        moved = platform.users.change(ada.id, email=emails[1], external_id=None)
        assert (moved.email, moved.external_id, moved.balance) == (emails[1], None, 10)
        entries = list(platform.users.entries(ada.id, page_size=1))
        assert [(one.type, one.amount, one.organization.id) for one in entries] == [("credit", 5, caller.id)] * 2
        many = platform.users.register_many([{"email": email, "first_name": "A"} for email in (emails[2], "x")])
        assert [one.status for one in many] == ["created", "conflict"]
        assert list(many[1].errors or ()) == ["users.1.email"]
        with pytest.raises(Refused) as taken:
            platform.users.register(emails[1], "Grace", "Hopper")
        assert (taken.value.status, taken.value.code) == (409, "user_conflict")

        booked = [platform.organizations.refill(acme.id, 50, idempotency_key="once") for _ in range(2)]
        assert booked[0] == booked[1]
        assert [one.amount for one in platform.organizations.refills(acme.id, page_size=1)] == [50, 100]
        assert platform.organizations.change(acme.id, is_suspended=True).is_suspended
        assert platform.organizations.get(acme.id).balance == 150
        assert acme.id in [one.id for one in platform.organizations.list()]
        [done] = [one for one in platform.actions(organization=acme.id) if one.action == "organization.made"]
        assert done.by is not None
        assert (done.by.type, done.by.name, done.subject_id) == ("platform_key", "Tests", acme.id)
        assert "/console/link/" in platform.organizations.add_member(acme.id, address(), "Mary", role="admin").link

        made = platform.organizations.create_key(acme.id, "Till", sandbox=True)
        assert made.key not in repr(made)
        with Points(made.key, service.url) as points:
            assert points.organization().id == acme.id
        for _ in range(2):
            platform.organizations.revoke_key(acme.id, made.id)
        [listed] = platform.organizations.keys(acme.id)
        assert (listed.id, listed.name, listed.sandbox, listed.revoked_at is None) == (made.id, "Till", True, False)
        with pytest.raises(Refused):
            platform.organizations.revoke_key(caller.id, made.id)

        after = platform.events.last_sequence()
        bob = platform.users.register(address(), "Bob")
        follower = platform.events.follow(after=after, types=["user.*"])
        told = next(event for event in follower if event.data["user"]["id"] == bob.id)
        assert (told.type, told.organization, told.data) == ("user.registered", {}, {"user": {"id": bob.id}})
