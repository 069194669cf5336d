"""The event log: each change writes its event with it, and an event that has been told never changes."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from app import api_keys, organizations
from app.batches import schedule
from app.events import event_types, log, sequencer
from app.events.restores import SKIPPED, leave_behind
from app.ledger.refill import refill, reset_sandbox
from app.postgres.database import transaction
from app.scope import Scope
from app.values.timestamps import timestamp
from app.web.application import create_app
from tests.integration import books
from tests.integration.logs_of_events import events_of, number_all, rendered, types_of

pytestmark = pytest.mark.usefixtures("database")

ANN, BOB, CID = (f"{name}@example.com" for name in ("ann", "bob", "cid"))


def last_event(organization_id: int, *, sandbox: bool = False) -> dict[str, Any]:
    return events_of(organization_id, sandbox=sandbox)[-1]


def test_what_changes_nothing_writes_no_event() -> None:
    organization_id = books.make_organization(100)
    books.queue_batch(organization_id, [ANN], 1)
    books.run(api_keys.revoke, 1)
    before = types_of(organization_id)
    with transaction() as connection:
        organizations.change(connection, organization_id, {"is_suspended": False})
        api_keys.revoke(connection, 1)
        reset_sandbox(connection, organization_id)
    books.make_users(ANN)  # Nothing is held.
    assert types_of(organization_id) == before
    assert types_of(organization_id, sandbox=True) == []


def test_a_transaction_that_is_rolled_back_writes_no_event_and_leaves_no_gap() -> None:
    organization_id = books.make_organization(100)
    books.queue_batch(organization_id, [ANN], 10)
    with transaction() as connection:
        assert books.issue(connection, organization_id) == [1]
        connection.rollback()
    assert "batch.issued" not in types_of(organization_id)
    books.drain_all(organization_id)
    events = events_of(organization_id)
    assert [event["sequence"] for event in events] == list(range(1, len(events) + 1))
    assert [event["type"] for event in events].count("batch.issued") == 1


def test_an_issued_batch_is_told_as_it_was_whatever_happened_since() -> None:
    organization_id = books.make_organization(25)
    books.make_users(BOB)
    books.queue_batch(organization_id, [ANN, BOB, CID], 10, label="Spring", idempotency_key="order-1")
    books.drain_all(organization_id)
    told = [event for event in rendered_after_numbering(organization_id) if b'"batch.issued"' in event]
    event = last_event(organization_id)
    assert event["data"]["batch"] | {"created_at": None, "issued_at": None} == {
        "batch_id": 1,
        "status": "issued",
        "final": True,
        "refusal": None,
        "label": "Spring",
        "metadata": None,
        "idempotency_key": "order-1",
        "api_key_id": 1,
        "sender": None,
        "approval": None,
        "counts": {"recipients": 3, "debited": 2, "credited": 1, "held": 1, "unpaid": 1, "reversed": 0},
        "created_at": None,
        "send_at": None,
        "issued_at": None,
        "amount": 20,
        "current_balance": 5,
    }
    books.make_users(ANN)
    books.reverse_now(organization_id, transaction_ids=[131072, 131073])
    books.execute("UPDATE organizations SET name = 'Renamed'", "UPDATE users SET first_name = 'Renamed'")
    books.execute("UPDATE batches SET idempotency_key = NULL, idempotency_hash = NULL")
    assert [event for event in rendered_after_numbering(organization_id) if b'"batch.issued"' in event] == told


def rendered_after_numbering(organization_id: int) -> list[bytes]:
    number_all()
    return rendered(organization_id)


def test_the_largest_metadata_stands_with_the_batch_and_not_in_its_event() -> None:
    organization_id = books.make_organization(100)
    books.queue_batch(organization_id, [ANN], 1)
    metadata = "{" + ",".join(f'"{place:02}{"k" * 38}": "{"語" * 500}"' for place in range(20)) + "}"
    books.rewrite(f"UPDATE batches SET metadata = '{metadata}'")
    books.drain_all(organization_id)
    told = rendered_after_numbering(organization_id)[-1]
    assert len(told) < 20_000
    batch = last_event(organization_id)["data"]["batch"]
    assert (batch["metadata"], batch["more"]) == (None, "/v1/batches/1")


def test_a_scheduled_batch_is_told_with_its_moment_of_then_each_time_it_is_moved_and_when_it_is_cancelled() -> None:
    organization_id = books.make_organization(100)
    first, second = (datetime.now(UTC).replace(microsecond=0) + timedelta(days=days) for days in (1, 2))
    batch_id = books.queue_batch(organization_id, [ANN], 1, send_at=first)
    with transaction() as connection:
        schedule.reschedule(connection, batch_id, second, Scope(organization_id, sandbox=False))
        schedule.cancel(connection, batch_id, Scope(organization_id, sandbox=False))
        schedule.cancel(connection, batch_id, Scope(organization_id, sandbox=False))
    told = [event for event in events_of(organization_id) if event["type"].startswith("batch.")]
    shown = [(event["type"], event["data"]["batch"]["status"], event["data"]["batch"]["send_at"]) for event in told]
    assert shown == [
        ("batch.scheduled", "scheduled", timestamp(first)),
        ("batch.scheduled", "scheduled", timestamp(second)),
        ("batch.cancelled", "cancelled", timestamp(second)),
    ]
    assert [event["data"]["batch"]["final"] for event in told] == [False, False, True]


def test_a_low_balance_is_told_once_for_each_time_that_it_is_crossed_downwards() -> None:
    organization_id = books.make_organization(100, sandbox_balance=100)
    books.execute("UPDATE organizations SET low_balance = 50")
    for amount in (50, 1, 1):  # 50 is not below 50.
        books.queue_batch(organization_id, [ANN], amount)
    books.queue_batch(organization_id, [ANN], 100, sandbox=True)
    books.drain_all(organization_id)
    told = [event for event in events_of(organization_id) if event["type"].startswith("ba")]
    assert [event["type"] for event in told] == [
        *("balance.refilled", "batch.issued", "batch.issued", "balance.low", "batch.issued")
    ]
    assert told[3]["data"]["low_balance"] == 50
    assert told[3]["data"]["organization"]["balance"] == 49
    assert told[3]["data"]["organization"]["created_at"] == told[0]["data"]["organization"]["created_at"]
    assert "balance.low" not in types_of(organization_id, sandbox=True)
    books.run(refill, organization_id, 10)
    books.issue_now(organization_id, [ANN], 9)
    assert types_of(organization_id).count("balance.low") == 2


def test_events_past_their_time_are_dropped_in_steps_and_the_numbers_go_on() -> None:
    organization_id = books.make_organization(100)
    for _ in range(3):
        books.issue_now(organization_id, [ANN], 1)
    number_all()
    books.rewrite(
        "UPDATE events SET created_at = created_at - interval '91 days'"
        f" WHERE organization_id = {organization_id} AND (sequence <= 3 OR sequence = 5)",
    )
    with transaction() as connection:
        assert sequencer.drop_old_events(connection, older_than_days=90, at_most=2) == 2
        assert sequencer.drop_old_events(connection, older_than_days=90, at_most=2) == 1
        assert sequencer.drop_old_events(connection, older_than_days=90, at_most=2) == 0
    assert [event["sequence"] for event in events_of(organization_id)] == [4, 5]
    books.rewrite(
        f"UPDATE events SET created_at = '2020-01-01Z' WHERE organization_id = {organization_id}",
    )
    assert books.run(sequencer.drop_old_events, older_than_days=90, at_most=100) == 2
    assert events_of(organization_id) == []
    books.issue_now(organization_id, [ANN], 1)
    assert [event["sequence"] for event in events_of(organization_id)] == [6]
    headers = {"Authorization": f"Bearer {books.make_live_key(organization_id)}"}
    gone, kept = (create_app().test_client().get(f"/v1/events?after={after}", headers=headers) for after in (4, 5))
    assert (gone.status_code, gone.get_json()["additional_data"]) == (410, {"code": "events_expired", "oldest": 6})
    assert (list(gone.get_json()["errors"]), kept.status_code) == (["after"], 200)


def test_what_a_restore_skips_is_passed_in_one_step_told_by_each_later_event_and_dropped_like_others() -> None:
    organization_id = books.make_organization(100)
    headers = {"Authorization": f"Bearer {books.make_live_key(organization_id)}"}
    last = [event["sequence"] for event in events_of(organization_id)][-1]
    first, second = books.run(leave_behind), books.run(leave_behind)
    end = last + 2 * SKIPPED
    for types in ("", "&types=ping"):
        page = create_app().test_client().get(f"/v1/events?after={last + 3}{types}", headers=headers).get_json()
        assert page["data"] == {"events": [], "last_sequence": end}
    for _ in range(2):
        books.issue_now(organization_id, [ANN], 1)
    told = [(event["sequence"], event.get("restored_at")) for event in events_of(organization_id, after=last - 1)]
    assert first.restored_at < second.restored_at
    restored_at = timestamp(second.restored_at)
    assert told == [(last, None), (end + 1, restored_at), (end + 2, restored_at)]
    assert books.breaches() == []
    books.rewrite(f"UPDATE events SET created_at = '2020-01-01Z' WHERE organization_id = {organization_id}")
    assert [books.run(sequencer.drop_old_events, older_than_days=90, at_most=last) for _ in range(3)] == [last, 2, 0]
    assert _named() == set()


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM restores WHERE organization_id = 1 AND NOT sandbox",
        "UPDATE event_logs SET last_sequence = last_sequence + 1 WHERE organization_id = 1 AND NOT sandbox",
        "DELETE FROM events WHERE organization_id = 1 AND sequence = 1",
        "UPDATE events SET sequence = 500 WHERE organization_id = 1 AND sequence = 1",
    ],
)
def test_a_gap_that_no_restore_has_noted_is_named(statement: str) -> None:
    books.issue_now(books.make_organization(100), [ANN], 1)
    number_all()
    books.run(leave_behind)
    assert _named() == set()
    books.rewrite(statement)
    assert _named() == {"organization 1, live"}


def _named() -> set[str]:
    """Return whose events the audit does not find numbered one after the other."""
    return {breach.subject for breach in books.breaches() if breach.rule.startswith("event sequences")}


@pytest.mark.parametrize(
    "damaged",
    ['NULL, \'{"key": {"id": 18446744073709551616}}\'', "NULL, '[7]'", "999999, NULL"],
    ids=["a number of 65 bits", "no object", "no such batch"],
)
def test_an_event_that_cannot_be_rendered_is_shown_without_its_data_and_hides_no_other(damaged: str) -> None:
    organization_id = books.make_organization(100)
    key = books.make_live_key(organization_id)
    number_all()
    before = len(rendered(organization_id))
    books.rewrite(
        "INSERT INTO unnumbered_events (organization_id, sandbox, type, batch_id, data)"
        f" VALUES ({organization_id}, false, 'key.created', {damaged})",
    )
    books.run(log.write, event_types.KEY_REVOKED, organization_id, data={"key": {"id": 1, "sandbox": False}})
    number_all()
    answer = create_app().test_client().get(f"/v1/events?after={before}", headers={"Authorization": f"Bearer {key}"})
    assert answer.status_code == 200
    broken, whole = answer.get_json()["data"]["events"]
    assert (broken["sequence"], broken["type"], broken["id"][:4]) == (before + 1, "key.created", "evt_")
    assert list(broken["data"]) == ["error"]
    assert "cannot be shown" in broken["data"]["error"]
    assert whole["data"] == {"key": {"id": 1, "sandbox": False}}
