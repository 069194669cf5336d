"""Reversals under the locks: the order among sends, and what crosses them."""

import contextlib
from collections.abc import MutableMapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from app import api_keys, organizations, users
from app.batches.schedule import cancel
from app.errors import PointsError
from app.ledger import claim
from app.ledger.drain import drain
from app.ledger.fold import fold
from app.ledger.issue import reverse
from app.postgres.database import transaction
from app.reversals.accept import require_batch
from app.reversals.request import ReverseRequest, recoverable
from app.scope import Scope
from app.values.ids import POSITIONS
from tests.integration import books, races

pytestmark = pytest.mark.usefixtures("many_connections", "balanced")

ANN, BOB = "ann@example.com", "bob@example.com"


def test_a_reversal_that_is_delivered_twice_takes_once() -> None:
    organization_id = books.make_organization(10)
    batch_id = books.issue_now(organization_id, [ANN], 10)
    reversal = books.queue_reversal(organization_id, batch_id=batch_id, amount=3)
    for _ in range(2):
        books.run(reverse, organization_id, only=reversal)
    assert books.balance_of(organization_id) == 3


def test_a_preview_tells_how_many_reversals_of_these_transactions_are_queued() -> None:
    organization_id = books.make_organization(40)
    first, second = (books.issue_now(organization_id, [ANN, BOB], 10) for _ in range(2))
    for request in ({"batch_id": first}, {"transaction_ids": [first * POSITIONS]}, {"batch_id": second}):
        books.queue_reversal(organization_id, **request)

    def queued(**of: Any) -> int:
        whole: dict[str, Any] = {"batch_id": None, "transaction_ids": None, "amount": None, "atomic": False} | of
        organization = books.run(organizations.get, Scope(organization_id, sandbox=False))
        request = ReverseRequest(**whole, reason="x")
        return books.run(recoverable, request, organization, batch_status=None).queued

    assert [queued(batch_id=one) for one in (first, second)] == [2, 1]
    assert [queued(transaction_ids=[first * POSITIONS + place]) for place in (0, 1)] == [2, 1]
    books.drain_all(organization_id)
    assert queued(batch_id=first) == 0


def test_a_reversal_waits_for_its_batch_that_was_put_aside() -> None:
    organization_id = books.make_organization(10)
    batch_id = books.queue_batch(organization_id, [ANN], 10)
    books.execute(f"UPDATE batches SET retry_at = clock_timestamp() + interval '9 s' WHERE id = {batch_id}")
    reversal = books.queue_reversal(organization_id, batch_id=batch_id)
    assert books.drain_all(organization_id) == []
    books.execute("UPDATE batches SET retry_at = NULL", "UPDATE reversals SET retry_at = NULL")
    assert books.drain_all(organization_id) == [batch_id, reversal]
    assert books.entries_of(reversal) == [(10, None)]


def test_a_disabled_organization_is_found_under_the_lock_and_its_key_is_free_again() -> None:
    organization_id = books.make_organization(10)
    batch_id = books.issue_now(organization_id, [ANN], 10)
    books.queue_reversal(organization_id, batch_id=batch_id, idempotency_key="once")
    books.set_flags(organization_id, is_disabled=True)
    books.drain_all(organization_id)
    assert books.balance_of(organization_id) == 0
    books.set_flags(organization_id, is_disabled=False)
    reversal = books.queue_reversal(organization_id, batch_id=batch_id, idempotency_key="once")
    books.drain_all(organization_id)
    assert books.entries_of(reversal) == [(10, None)]


# Whether a reversal is atomic, and what it takes of a batch of 10 points for each of two.
_STATES: dict[str, tuple[bool, int]] = {
    "paid": (False, 20),
    "paid in part": (False, 10),
    "paid in part, and all or nothing": (True, 0),
    "taken back": (False, 0),
    "taken back partly by what is queued": (False, 7),
    "scheduled": (False, 0),
    "cancelled": (False, 0),
    "of a disabled organization": (False, 0),
    "of a balance without room": (False, 0),
}


def _batch_in(state: str) -> tuple[int, int]:
    """Return an organization and its batch in a state."""
    organization_id = books.make_organization(10 if "in part" in state else 20)
    later = datetime.now(UTC) + timedelta(days=1) if state in ("scheduled", "cancelled") else None
    batch_id = books.queue_batch(organization_id, [ANN, BOB], 10, send_at=later)
    books.drain_all(organization_id)
    if state == "taken back":
        books.reverse_now(organization_id, batch_id=batch_id)
    elif "queued" in state:  # Of the first 4 and 5 points, since 7 are no longer left; of the second 4.
        books.queue_reversal(organization_id, batch_id=batch_id, amount=4)
        for amount in (7, 5):
            books.queue_reversal(organization_id, transaction_ids=[batch_id * POSITIONS], amount=amount)
    elif state == "cancelled":
        books.run(cancel, batch_id, Scope(organization_id, sandbox=False))
    elif state == "of a disabled organization":
        books.set_flags(organization_id, is_disabled=True)
    elif state == "of a balance without room":
        books.refill_now(organization_id, 2**63 - 10)
    return organization_id, batch_id


@pytest.mark.parametrize("state", _STATES)
def test_verify_says_what_a_reversal_then_takes(state: str) -> None:
    atomic, points = _STATES[state]
    organization_id, batch_id = _batch_in(state)
    request = ReverseRequest(batch_id=batch_id, transaction_ids=None, amount=None, atomic=atomic, reason="x")
    with transaction() as connection:
        who = api_keys.get_caller(connection, books.key_of(connection, organization_id))
        status = require_batch(connection, who, request)
        verdict = recoverable(connection, request, who.organization, batch_status=status)
    assert (verdict.recoverable, verdict.refusal is None) == (points, points > 0)
    taken = 0
    with contextlib.suppress(PointsError):  # Some are refused at once.
        reversal = books.reverse_now(organization_id, batch_id=batch_id, atomic=atomic)
        taken = sum(entry for entry, _ in books.entries_of(reversal))
    assert taken == points


def test_a_reversal_that_fails_is_put_aside_and_holds_up_nobody(
    monkeypatch: pytest.MonkeyPatch, events: list[MutableMapping[str, Any]]
) -> None:
    organization_id = books.make_organization(30)
    batch_id = books.issue_now(organization_id, [ANN], 10)
    reversal = books.queue_reversal(organization_id, batch_id=batch_id)
    later = books.queue_batch(organization_id, [BOB], 10)

    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError

    with monkeypatch.context() as patched:
        patched.setattr("app.ledger.issue.exclude_claims", fail)
        assert books.drain_all(organization_id) == [later]
    assert [event["reversal_id"] for event in events if event["event"] == "reversal_postponed"] == [reversal]
    assert not books.has_due(organization_id)
    books.execute("UPDATE reversals SET retry_at = NULL")
    assert books.has_due(organization_id)
    assert books.drain_all(organization_id) == [reversal]


def test_a_registration_that_comes_first_has_its_points_taken_from_the_user() -> None:
    organization_id = books.make_organization(20)
    batch_id = books.issue_now(organization_id, [ANN, BOB], 10)
    books.queue_reversal(organization_id, batch_id=batch_id)
    races.behind(
        lambda connection: claim.register(connection, [users.new_user(ANN, "Ann", "")]),
        lambda: books.drain_all(organization_id),
    )
    assert (books.balance_of_user(ANN), books.balance_of(organization_id)) == (0, 20)


def test_a_registration_that_comes_second_finds_nothing_held() -> None:
    organization_id = books.make_organization(20)
    batch_id = books.issue_now(organization_id, [ANN, BOB], 10)
    books.queue_reversal(organization_id, batch_id=batch_id, amount=4)
    races.behind(lambda connection: reverse(connection, organization_id), lambda: books.make_users(ANN))
    assert (books.balance_of_user(ANN), books.balance_of(organization_id)) == (6, 8)


def test_a_fold_that_comes_first_has_its_credits_taken_back() -> None:
    organization_id = books.make_organization(20)
    books.make_users(ANN)
    batch_id = books.issue_now(organization_id, [ANN], 10)
    books.queue_reversal(organization_id, batch_id=batch_id)
    races.behind(fold, lambda: books.drain_all(organization_id))
    assert books.balance_of_user(ANN) == 0


def test_a_fold_that_comes_second_adds_what_is_left() -> None:
    organization_id = books.make_organization(20)
    books.make_users(ANN)
    batch_id = books.issue_now(organization_id, [ANN], 10)
    books.queue_reversal(organization_id, batch_id=batch_id, amount=4)
    races.behind(lambda connection: reverse(connection, organization_id), books.fold)
    assert books.balance_of_user(ANN) == 6
    assert books.value("SELECT points FROM user_balances") == 6


@pytest.mark.usefixtures("no_failure")
@races.first_of("attempt", range(5))
def test_reversals_registrations_folds_and_issues_at_once_move_every_point_once(attempt: int) -> None:
    one, other = books.make_organization(100_000), books.make_organization(100_000)
    emails = [f"{attempt}-{n}@example.com" for n in range(20)]
    for organization_id in (one, other):
        for _ in range(4):
            batch_id = books.queue_batch(organization_id, emails, 10)
            books.queue_reversal(organization_id, batch_id=batch_id, amount=3)
            books.queue_reversal(organization_id, batch_id=batch_id)
            books.queue_batch(organization_id, emails[::-1], 10)
    before = books.deadlocks()
    races.at_once(
        lambda: books.drain_all(one),
        lambda: books.drain_all(other),
        lambda: books.make_users(*emails[:15]),
        lambda: books.make_users(*reversed(emails[5:])),
        books.fold,
        books.fold,
        books.claim_crossed,
    )
    for organization_id in (one, other):
        while drain(organization_id, announce=lambda *_: None):
            pass
    books.claim_crossed()
    assert [books.balance_of_user(email) for email in emails] == [80] * 20
    assert [books.balance_of(organization_id) for organization_id in (one, other)] == [100_000 - 800] * 2
    assert books.breaches() == []
    assert books.deadlocks() == before
