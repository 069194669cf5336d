"""What has moved points is written once: the database itself refuses to change or delete it."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from app import api_keys
from app.batches import key_limits, schedule
from app.erasing.erase import erase_user
from app.events.restores import leave_behind
from app.ledger.registering import change_user
from app.ledger.returns import extend
from app.members import links, members
from app.platform import keys as platform_keys
from app.postgres.database import transaction
from app.scope import Scope
from app.values.addresses import parse
from app.values.ids import POSITIONS
from app.values.key_bounds import Bounds
from app.values.key_hashes import hash_key
from tests.integration import books
from tests.integration.logs_of_events import number_all

# Transaction 1 is credited, 2 is held, 3 is not debited, 4 is held in the sandbox; batch 3 is queued, 4 scheduled, 5
# cancelled. Of batch 6 one is returned and one extended; batch 7 is claimed; reversal 8 takes of it, and 9 waits.
_CREDITED, _HELD, _NOT_DEBITED, _SANDBOX = (
    f"WHERE (batch_id, position) = ({batch_id}, {position})" for batch_id, position in ((1, 0), (1, 1), (1, 2), (2, 0))
)
_RETURNED, _EXTENDED = (f"WHERE (batch_id, position) = (6, {position})" for position in (0, 1))
_CLAIMED = "WHERE (batch_id, position) = (7, 0)"
REFUSED = [
    *(("transactions_written_once", f"UPDATE transactions SET {change} {_HELD}") for change in (
        "balance = balance + 1", "debited = false", "position = 7", "batch_id = 3", "sandbox = true",
        "email = 'erased-1', balance = 1",
    )),
    *(("transactions_addresses_only_erased", f"UPDATE transactions SET {change} {_HELD}") for change in (
        "email = 'x@example.com'", "email_key = 'x@example.com'", "email = 'erased-1', email_key = 'x@example.com'",
        "email = 'erased-x'", "email = ''",
    )),
    ("transactions_written_once", f"DELETE FROM transactions {_HELD}"),
    ("transactions_held_until_only_rises", f"UPDATE transactions SET held_until = now() {_CREDITED}"),
    ("transactions_held_until_only_rises", f"UPDATE transactions SET held_until = now() {_NOT_DEBITED}"),
    ("transactions_held_until_only_rises", f"UPDATE transactions SET held_until = now() {_RETURNED}"),
    ("transactions_held_until_only_rises", f"UPDATE transactions SET held_until = now() {_EXTENDED}"),
    ("transactions_held_until_only_rises", f"UPDATE transactions SET held_until = NULL {_EXTENDED}"),
    *(("transactions_returned_once", f"UPDATE transactions SET returned_at = {moment} {_RETURNED}") for moment in (
        "NULL", "now()",
    )),
    ("transactions_returned_once", f"UPDATE transactions SET returned_at = now() {_CREDITED}"),
    ("transactions_returned_once", f"UPDATE transactions SET returned_at = now() {_NOT_DEBITED}"),
    *(("transactions_points_left_only_fall", f"UPDATE transactions SET points_left = {left} {_CLAIMED}") for left in (
        "NULL", "14", "15",
    )),
    ("transactions_claimed_once", f"UPDATE transactions SET user_id = 1, credited = true {_RETURNED}"),
    ("transactions_claimed_once", f"UPDATE transactions SET credited = false, user_id = NULL {_CREDITED}"),
    ("transactions_claimed_once", f"UPDATE transactions SET user_id = 2 {_CREDITED}"),
    ("transactions_claimed_once", f"UPDATE transactions SET user_id = 1 {_NOT_DEBITED}"),
    ("transactions_claimed_once", f"UPDATE transactions SET user_id = 1, credited = true {_SANDBOX}"),
    ("transactions_claimed_once", f"UPDATE transactions SET claimed_at = now() {_CREDITED}"),
    *(("transactions_claimed_once", f"UPDATE transactions SET claimed_at = {moment} {_CLAIMED}") for moment in (
        "NULL", "'epoch'",
    )),
    *(("batches_accepted_once", f"UPDATE batches SET {change} WHERE id = 3") for change in (
        "amount = 1", "sandbox = true", "organization_id = 2", "label = 'x'", "atomic = true", "recipient_count = 2",
        "hold_days = 1", "rehearsed_unpaid = false", "labels = '{x}'", "item_references = '{x}'",
        "emails = '{erased-1}', label = 'x'", "metadata = '{}'", "api_key_id = 9",
    )),
    *(("batches_addresses_only_erased", f"UPDATE batches SET {change} WHERE id = 3") for change in (
        "emails = '{x@example.com}'", "email_keys = '{x@example.com}'", "emails = '{erased-1}', email_keys = '{x@y.z}'",
        "emails = '{erased-1,erased-1}'", "emails = '{}'",
    )),
    ("batches_accepted_once", "DELETE FROM batches WHERE id = 3"),
    *(("batches_final_once", f"UPDATE batches SET {change} WHERE id = 1") for change in (
        "status = 'queued'", "debited_count = 1", "current_balance = 1", "issued_at = now()", "last_refill = 1",
        "organization_name = 'x'", "refusal = 'x'", "cancelled_at = now()", "held_until = now()",
    )),
    *(("batches_final_once", f"UPDATE batches SET {change} WHERE id = 5") for change in (
        "status = 'queued'", "status = 'scheduled'", "cancelled_at = NULL",
    )),
    *(("batches_answer_to_one_key", f"UPDATE batches SET idempotency_{change} WHERE id = 3") for change in (
        "key = 'x'", "hash = sha256('x')",
    )),
    ("batches_queued_before_issued", "UPDATE batches SET status = 'issued' WHERE id = 4"),
    ("batches_queued_before_issued", "UPDATE batches SET status = 'refused' WHERE id = 4"),
    ("batches_queued_before_issued", "UPDATE batches SET status = 'scheduled' WHERE id = 3"),
    *(("batches_queued_before_issued", f"UPDATE batches SET status = 'awaiting_approval' WHERE id = {id_}")
      for id_ in (3, 4)),
    ("batches_queued_before_issued", "UPDATE batches SET status = 'rejected' WHERE id = 3"),
    *(("batches_answered_once", f"UPDATE batches SET {change} WHERE id = 3") for change in (
        "approved_at = now()", "rejected_at = now()", "answered_by_member_id = 1", "answered_by_key_id = 1",
        "rejection_reason = 'x'", "queue_place = 1",
    )),
    ("batches_payable_until_issued", "UPDATE batches SET payable_totals = '{5}' WHERE id = 1"),
    *(("batches_moved_while_scheduled", f"UPDATE batches SET send_at = now() WHERE id = {id_}") for id_ in (1, 3, 5)),
    ("refills_written_once", "UPDATE refills SET amount = amount + 1"),
    ("refills_written_once", "DELETE FROM refills"),
    ("batches_accepted_once", "UPDATE batches SET member_id = 1 WHERE id = 3"),
    *(("members_made_once", f"UPDATE members SET {change}") for change in (
        "organization_id = 2", "email = 'x'", "first_name = 'x'",
    )),
    ("members_made_once", "DELETE FROM members"),
    ("members_removed_once", "UPDATE members SET removed_at = NULL"),
    ("actions_written_once", "UPDATE actions SET member_id = 1"),
    ("actions_written_once", "DELETE FROM actions"),
    ("unnumbered_events_written_once", "UPDATE unnumbered_events SET send_at = NULL WHERE send_at IS NOT NULL"),
    ("events_written_once", "UPDATE events SET batch_id = 2 WHERE batch_id = 1"),
    ("event_logs_only_grow", "UPDATE event_logs SET last_sequence = last_sequence - 1"),
    ("event_logs_only_grow", "UPDATE event_logs SET dropped_to = 0, dropped_until = NULL"),
    ("restores_written_once", "UPDATE restores SET restored_at = 'epoch'"),
    ("restores_written_once", "DELETE FROM restores"),
    *(("api_keys_made_once", f"UPDATE api_keys SET {change}") for change in (
        "scopes = '{read}'", "expires_at = now()", "batch_limit = 1", "daily_limit = 1", "organization_id = 2",
        "sandbox = NOT sandbox", "hash = sha256(id::text::bytea)",
    )),
    ("api_keys_made_once", "DELETE FROM api_keys"),
    ("api_keys_revoked_once", "UPDATE api_keys SET revoked_at = NULL WHERE revoked_at IS NOT NULL"),
    *(("reversals_accepted_once", f"UPDATE reversals SET {change} WHERE id = 8") for change in (
        "reason = 'another'", "api_key_id = 9",
    )),
    ("reversals_accepted_once", "DELETE FROM reversals WHERE id = 9"),
    ("reversals_final_once", "UPDATE reversals SET done_at = 'epoch' WHERE id = 8"),
    ("reversals_answer_to_one_key", "UPDATE reversals SET idempotency_hash = sha256('x') WHERE id = 9"),
    ("reversal_entries_written_once", "UPDATE reversal_entries SET code = 'more_than_left' WHERE code IS NOT NULL"),
    ("key_days_of_a_key", "UPDATE key_days SET day = day + 1"),
    ("key_days_of_a_key", "UPDATE key_days SET daily_limit = 7"),
    ("key_days_of_a_key", "DELETE FROM key_days"),
    ("platform_keys_made_once", "UPDATE platform_keys SET scopes = '{users:read}'"),
    ("platform_keys_made_once", "DELETE FROM platform_keys"),
    ("platform_keys_revoked_once", "UPDATE platform_keys SET revoked_at = NULL"),
    ("events_written_once", "UPDATE events SET data = '{}' WHERE data IS NOT NULL"),
    ("users_registered_once", "UPDATE users SET sandbox_of = 1 WHERE id = 2"),
    ("users_registered_once", "DELETE FROM users WHERE id = 2"),
    ("users_known_since_a_moment", "UPDATE users SET email = 'Eve@example.com' WHERE id = 1"),
    ("users_erased_for_good", "UPDATE users SET first_name = 'Eve' WHERE email_key IS NULL"),
    ("users_known_since_a_moment", "UPDATE users SET email_key = 'x@example.com' WHERE id = 2"),
    ("user_balances_of_a_user", "UPDATE user_balances SET user_id = 2"),
    ("user_balances_of_a_user", "UPDATE user_balances SET organization_id = 2"),
    ("user_balances_of_a_user", "DELETE FROM user_balances"),
    ("user_entries_written_once", "UPDATE user_entries SET amount = 1"),
    ("user_entries_written_once", "DELETE FROM user_entries"),
    ("former_addresses_written_once", "UPDATE former_addresses SET email_key = 'x@example.com'"),
]  # fmt: skip


def _write_one_of_each() -> None:
    organization_id = books.make_organization(25, sandbox_balance=25)
    books.make_organization()
    books.make_users("a@example.com", "z@example.com")
    books.issue_now(organization_id, ["a@example.com", "b@example.com", "c@example.com"], 10)
    books.issue_now(organization_id, ["b@example.com"], 10, sandbox=True)
    number_all()
    books.fold()
    books.execute(
        "DELETE FROM events WHERE sequence = 1 AND NOT sandbox AND organization_id = 1",
        "UPDATE event_logs SET dropped_to = 1, dropped_until = now() WHERE NOT sandbox AND organization_id = 1",
    )
    books.queue_batch(organization_id, ["a@example.com"], 10, idempotency_key="once")
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    for _ in range(2):
        cancelled = books.queue_batch(organization_id, ["a@example.com"], 10, send_at=tomorrow)
    with transaction() as connection:
        member_id, _ = links.add(connection, organization_id, "m@example.com", "M", "N", role="viewer", by=None)
        members.remove(connection, members.lock(connection, member_id), by=None)
        platform_key, _ = platform_keys.create(connection, "Sign-up")
        platform_keys.revoke(connection, platform_key.id)
        change_user(connection, 2, {"address": parse("zz@example.com")})
        schedule.cancel(connection, cancelled, Scope(organization_id, sandbox=False))
        _, limited = api_keys.create(connection, organization_id, sandbox=False, bounds=Bounds(daily_limit=9))
        key_limits.lock(connection, [hash_key(limited)])
        api_keys.revoke(connection, api_keys.create(connection, organization_id, sandbox=False)[0])
    held = books.make_organization(25)
    assert books.issue_now(held, ["y@example.com", "x@example.com"], 5, hold_days=1) == 6
    books.run(extend, 6 * POSITIONS + 1, tomorrow + timedelta(days=9), Scope(held, sandbox=False))
    assert books.issue_now(held, ["d@example.com", "e@example.com"], 15) == 7  # Of whom the second is not paid.
    *_, erased = books.make_users("d@example.com", "e@example.com")
    erase_user(erased)
    assert books.reverse_now(held, batch_id=7, amount=1) == 8
    assert books.queue_reversal(held, batch_id=7, idempotency_key="once") == 9
    books.let_days_pass(2)
    books.return_unclaimed()
    books.run(leave_behind)
    assert books.breaches() == []


@pytest.mark.parametrize(("guard", "statement"), REFUSED, ids=[statement for _, statement in REFUSED])
def test_what_has_moved_points_cannot_be_rewritten(
    given: Callable[[Callable[[], None]], None], guard: str, statement: str
) -> None:
    given(_write_one_of_each)
    assert books.refused_by(statement) == guard


@pytest.mark.usefixtures("reached")
def test_every_guard_of_the_database_is_tried_here() -> None:
    with transaction() as connection:
        names = connection.exec_driver_sql("SELECT DISTINCT tgname FROM pg_trigger WHERE NOT tgisinternal").scalars()
        assert sorted(names) == sorted({name for name, _ in REFUSED})


@pytest.mark.usefixtures("database")
def test_a_claim_and_the_forgetting_of_a_key_are_let_through() -> None:
    organization_id = books.make_organization(25)
    batch_id = books.queue_batch(organization_id, ["b@example.com"], 10, idempotency_key="once")
    books.drain_all(organization_id)
    books.make_users("b@example.com")
    assert books.balance_of_user("b@example.com") == 10
    books.execute(
        f"UPDATE batches SET idempotency_key = NULL, idempotency_hash = NULL WHERE id = {batch_id}",
        books.DIGEST_BATCHES,
    )
    assert books.breaches() == []
