"""The calls of the client that no fake answers, through the door: reversals, what is later, held, events, webhooks."""

import threading
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from app import api_keys, organizations
from app.platform import keys as platform_keys
from points_client import Invalid, Points, Refused, verify_webhook
from tests.client_halves import SYNC_FIRST, consumer_of, platform_of, points_of
from tests.deadline import until
from tests.receiver import Receiver
from tests.service.inside import Service


@pytest.fixture(params=SYNC_FIRST)
def half(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def points(service: Service, half: str) -> Iterator[Points]:
    caller = service.organization(sandbox_balance=1_000)
    with points_of(half, caller.development, service.url) as made:
        yield made


def address() -> str:
    return f"{uuid.uuid4().hex}@example.com"


def test_points_are_taken_back_once_and_the_statement_tells_it(points: Points) -> None:
    sent = points.send(recipients=[address(), address()], amount=400)
    found = points.verify_reverse(batch=sent.batch_id, reason="mistake")
    assert (found.validated, found.recoverable, found.transactions, found.held) == (True, 800, 2, 2)
    body: dict[str, Any] = {"transactions": [sent.transactions[0].id], "reason": "mistake", "amount": 100}
    back = [points.reverse(**body, idempotency_key="back-1") for _ in range(2)]
    assert [(one.status, one.amount, one.replayed) for one in back] == [("done", 100, False), ("done", 100, True)]
    queued = points.reverse(batch=sent.batch_id, reason="all of it", wait_s=0)
    done = points.reversals.wait(queued.reversal_id)
    assert (queued.status, done.status, done.amount, done.reason) == ("queued", "done", 700, "all of it")
    assert [one.reversal_id for one in points.reversals.list(page_size=1)] == [queued.reversal_id, back[0].reversal_id]
    assert points.transactions.get(sent.transactions[0].id).state == "reversed"
    today = datetime.now(UTC).date()
    found_days = points.statement(from_=today - timedelta(days=2), to=today)
    assert [day.date for day in found_days.days] == [today - timedelta(days=number) for number in (2, 1, 0)]
    total = found_days.total
    assert (total.refilled, total.debited, total.reversed, total.closing_balance) == (1_000, 800, 800, 1_000)
    with pytest.raises(Invalid) as invalid:
        points.statement(from_="2026-01-01", to="2026-13-01")
    assert set(invalid.value.errors) == {"to"}


def test_what_is_scheduled_is_moved_and_cancelled_and_what_is_held_is_extended(points: Points) -> None:
    moment = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=1)
    body: dict[str, Any] = {"recipients": [address()], "amount": 5, "send_at": moment, "idempotency_key": "later"}
    sent = points.send(**body)
    scheduled = points.organization().scheduled
    assert scheduled is not None
    assert (sent.status, scheduled.batches, scheduled.amount, scheduled.next_at) == ("scheduled", 1, 5, moment)
    assert points.batches.reschedule(sent.batch_id, moment + timedelta(hours=1)).send_at == moment + timedelta(hours=1)
    assert points.batches.cancel(sent.batch_id).status == "cancelled"
    with pytest.raises(Refused) as cancelled:
        points.send(**body)
    assert cancelled.value.code == "batch_cancelled"
    [held] = points.send(recipients=[address()], amount=5, hold_days=1).transactions
    assert held.held_until is not None
    later = held.held_until + timedelta(days=9)
    assert points.transactions.extend(held.id, later).held_until == later
    with pytest.raises(Invalid):
        points.transactions.extend(held.id, held.held_until)


def test_what_awaits_an_approval_is_approved_or_rejected_with_another_key(service: Service, half: str) -> None:
    made = service.organization(sandbox_balance=1_000)
    with service.connection() as connection:
        organizations.change(connection, made.id, {"approval_above": 4, "approval_of": "all"})
        _, other = api_keys.create(connection, made.id, sandbox=True)
    with points_of(half, made.development, service.url) as sender, points_of(half, other, service.url) as approver:
        first, second = (sender.send(recipients=[address()], amount=5).batch_id for _ in range(2))
        waiting = sender.batches.get(first)
        assert [one.amount for one in approver.batches.recipients(first, page_size=1)] == [5]
        assert sender.verify(recipients=[address()], amount=5).awaits_approval
        assert (waiting.status, waiting.final, waiting.approval) == ("awaiting_approval", False, None)
        with pytest.raises(Refused) as own:
            sender.batches.approve(first)
        assert own.value.code == "own_batch"
        assert approver.batches.approve(first).approval is not None
        approver.batches.reject(second, "The wrong list")
        assert sender.batches.wait(first).status == "issued"
        rejected = sender.batches.wait(second)
        assert (rejected.status, rejected.final) == ("rejected", True)
        assert rejected.approval is not None
        assert rejected.approval.reason == "The wrong list"


def test_the_sandbox_is_reset_and_its_calls_are_listed(points: Points) -> None:
    user = address()
    points.rehearsing.register(user, "First", "Last")
    sent = points.send(recipients=[address(), user], amount=5)
    [found] = points.transactions.list(user=(sent.transactions[1].recipient or pytest.fail("no user")).id)
    assert found.email == user
    alike = points.sent_before(recipients=[user, address()], amount=5)
    assert (alike.recipients, alike.same, [one.batch_id for one in alike.batches]) == (1, 1, [sent.batch_id])
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    assert points.rehearsing.set_clock(tomorrow) >= tomorrow
    assert points.reset_sandbox().balance == 1_000
    with pytest.raises(Invalid) as invalid:
        points.verify(recipients=["nobody"], amount=5)

    def refused() -> list[tuple[str, str | None, int, str | None]]:
        found = points.requests.list(status="4xx", page_size=1)
        return [(one.method, one.route, one.status, one.code) for one in found]

    until(refused, "a call is listed a moment after its answer")
    assert refused() == [("POST", "/v1/points/verify", 400, None)]
    answers = (sent, found, alike, invalid.value)
    calls = [[call.status for call in points.requests.list(request_id=answer.request_id)] for answer in answers]
    assert calls == [[201], [200], [200], [400]]
    assert [one.route for one in points.requests.list(batch=sent.batch_id)] == ["/v1/points/send"]


def test_a_consumer_handles_what_a_follower_is_told_as_it_happens(points: Points) -> None:
    handled: list[tuple[int, str]] = []
    stored, lock = [0], threading.RLock()
    consumer = consumer_of(
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


def test_a_webhook_brings_a_signed_event_and_is_changed_and_removed(points: Points) -> None:
    webhooks = points.webhooks
    with Receiver().running() as receiver:
        webhook = webhooks.create(receiver.url, types=("batch.*", "ping"), description="Shop")
        assert webhook.secret is not None
        sent = points.send(recipients=[address()], amount=1)
        until(lambda: receiver.calls, "the event arrives")
        call = receiver.calls[0]
        event = verify_webhook(call.body, call.headers, webhook.secret)
        assert (event.type, event.data["batch"]["batch_id"]) == ("batch.issued", sent.batch_id)
        assert next(points.events.list(after=event.sequence - 1)) == event
        rotated = webhooks.rotate(webhook.id)
        webhooks.ping(webhook.id)
        until(lambda: len(receiver.calls) == 2, "the ping arrives")
        ping = receiver.calls[1]
        for secret in (webhook.secret, rotated.secret or ""):  # The old one signs along.
            assert verify_webhook(ping.body, ping.headers, secret).type == "ping"
        webhooks.replay(webhook.id, from_sequence=event.sequence)
        until(lambda: len(receiver.calls) == 4, "both arrive once more")
    until(lambda: len(list(webhooks.deliveries(webhook.id))) == 4, "every delivery is shown")
    assert webhooks.update(webhook.id, description="Other").description == "Other"
    assert webhooks.update(webhook.id, description="").description is None
    assert webhooks.disable(webhook.id).disabled_reason == "caller"
    assert webhooks.enable(webhook.id).status == "enabled"
    assert [one.id for one in webhooks.list()] == [webhook.id]
    for _ in range(2):  # Also when it is gone already.
        webhooks.delete(webhook.id)
    with pytest.raises(Refused):
        webhooks.skip(webhook.id)


def test_the_platform_registers_finds_and_changes_users_and_runs_organizations(service: Service, half: str) -> None:
    with service.connection() as connection:
        _, key = platform_keys.create(connection, "Tests")
    emails = [address() for _ in range(3)]
    caller = service.organization(100)
    with platform_of(half, key, service.url) as platform, points_of(half, caller.live, service.url) as points:
        users, made_of = platform.users, platform.organizations
        points.send(recipients=emails, amount=5)
        ada = users.register(emails[0], "Ada", "Lovelace", external_id=emails[0])
        moved = users.change(ada.id, email=emails[1], external_id=None)
        assert (moved.email, moved.external_id, moved.balance) == (emails[1], None, 10)
        entries = list(users.entries(ada.id, page_size=1))
        assert [(one.type, one.amount, one.organization.id) for one in entries] == [("credit", 5, caller.id)] * 2
        many = users.register_many([{"email": email, "first_name": "A"} for email in (emails[2], "x")])
        assert [(one.status, list(one.errors or ())) for one in many] == [
            *(("created", []), ("conflict", ["users.1.email"]))
        ]
        after = platform.events.last_sequence()
        assert users.erase(ada.id).first_name != "Ada"
        follower = platform.events.follow(after=after, types=["user.*"])
        of_ada = (event for event in follower if event.data["user"]["id"] == ada.id)
        told = next(event for event in of_ada if event.type == "user.erased")
        assert (told.organization, told.data) == ({}, {"user": {"id": ada.id}})

        acme = made_of.create("Acme", balance=100, held_days=30)
        booked = [made_of.refill(acme.id, 50, idempotency_key="once") for _ in range(2)]
        assert booked[0] == booked[1]
        assert [one.amount for one in made_of.refills(acme.id, page_size=1)] == [50, 100]
        assert made_of.change(acme.id, is_suspended=True).is_suspended
        assert (made_of.get(acme.id).balance, acme.held_days) == (150, 30)
        assert acme.id in (one.id for one in made_of.list())
        [done] = [one for one in platform.actions(organization=acme.id) if one.action == "organization.made"]
        assert done.by is not None
        assert (done.by.type, done.by.name, done.subject_id) == ("platform_key", "Tests", acme.id)
        mary = made_of.add_member(acme.id, address(), "Mary", role="admin")
        assert "/console/link/" in mary.link != made_of.link_member(acme.id, mary.id).link
        assert [(one.id, one.has_password) for one in made_of.members(acme.id)] == [(mary.id, False)]
        made_of.remove_member(acme.id, mary.id)
        assert list(made_of.members(acme.id)) == []

        made = made_of.create_key(acme.id, "Till", sandbox=True)
        assert made.key not in repr(made)
        with points_of(half, made.key, service.url) as till:
            assert till.organization().id == acme.id
        made_of.revoke_key(acme.id, made.id)
        [listed] = made_of.keys(acme.id)
        assert (listed.id, listed.name, listed.sandbox, listed.revoked_at is None) == (made.id, "Till", True, False)
