"""Ways to break what was answered and told, in the form of `tests.integration.breaks`."""

from datetime import UTC, datetime, timedelta

from sqlalchemy import Connection

from app import api_keys, organizations
from app.api_keys import Caller
from app.batches import approval, schedule
from app.batches.accept import Acceptance, Send, SendingMember, accept
from app.batches.request import IssueRequest
from app.members import members
from app.postgres.database import transaction
from app.scope import Scope
from app.webhooks.webhook import webhooks
from tests.integration import books
from tests.integration.breaks import (
    ANN,
    ANSWERED,
    BOB,
    CLAIM_TOLD,
    DATA,
    EVENTS,
    OWNED,
    STATE,
    TELLS,
    TIMED,
    TOLD,
    WITHIN,
)
from tests.integration.logs_of_events import number_all


def write_what_was_answered() -> None:
    """Write, after `write_the_books`, what the statements below change, in organization 6."""
    organization_id = books.make_organization(100)
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    for key in ("one", "two"):  # Batches 14 and 15.
        books.queue_batch(organization_id, [ANN, BOB], 5, idempotency_key=key)
    books.drain_all(organization_id)
    batch_id = books.queue_batch(organization_id, [ANN], 10, send_at=tomorrow)  # Batch 16 is moved, and then
    with transaction() as connection:
        schedule.reschedule(
            connection, batch_id, tomorrow + timedelta(hours=1), organization_id=organization_id, sandbox=False
        )
        schedule.cancel(connection, batch_id, organization_id=organization_id, sandbox=False)  # cancelled.
        organizations.change(connection, organization_id, {"is_suspended": True})
    books.queue_batch(organization_id, [ANN], 10)  # Batch 17 is refused.
    books.drain_all(organization_id)
    with transaction() as connection:
        organizations.change(connection, organization_id, {"is_suspended": False})
        organizations.change(connection, organization_id, {"low_balance": 50})
        member = members.create(connection, organization_id, "eli@example.com", "Eli", "E", role="sender", by=None)
        request = IssueRequest(emails=[BOB], email_keys=[BOB], amount=40, atomic=False, label=None)
        [sent] = accept(connection, [Send(SendingMember(member.id, False), request, None)])  # Batch 18 makes
        assert isinstance(sent, Acceptance)
        hook = {"url": "https://192.0.2.7/", "types": ["*"], "secret": "s", "position": 0}
        webhooks.add(connection, Scope(organization_id, sandbox=False), **hook)
        scheduled = IssueRequest(emails=[BOB], email_keys=[BOB], amount=1, atomic=False, label=None, send_at=tomorrow)
        accept(connection, [Send(SendingMember(member.id, False), scheduled, None)])  # Batch 19 stays scheduled.
    books.drain_all(organization_id)  # the balance low.
    with transaction() as connection:  # Key 7 is revoked, and that is told last.
        revoked, _ = api_keys.create(connection, organization_id, sandbox=False)
        _answer_three(connection, organization_id, revoked)
        api_keys.revoke(connection, revoked)
    number_all()


def _answer_three(connection: Connection, organization_id: int, other_key: int) -> None:
    """Send batches 20 to 22, of which the first is approved, the second rejected, and the third awaits an approval."""
    organizations.change(connection, organization_id, {"approval_above": 0, "approval_of": "all"})
    request = IssueRequest(emails=[BOB], email_keys=[BOB], amount=1, atomic=False, label=None)
    sends = [Send(books.key_of(connection, organization_id), request, None)] * 3
    first, second, _ = [one.batch_id for one in accept(connection, sends) if isinstance(one, Acceptance)]
    organization = organizations.get(connection, organization_id, sandbox=False)
    who = Caller(api_key_id=other_key, sandbox=False, organization=organization)
    approval.approve(connection, who, first)
    approval.reject(connection, who, second, "a mistake")


def _event(change: str, which: str) -> list[str]:
    return [f"UPDATE events SET {change} WHERE {which}"]


_ALL_SENT = {(OWNED, f"batch {number}") for number in (14, 15, 16, 20, 21, 22)}
_OF_APPROVAL, _OF_REJECTION = "type = 'batch.approved'", "type = 'batch.rejected'"

BREAKS_OF_ANSWERS: list[tuple[str, set[tuple[str, str]], list[str]]] = [
    (
        "a refill told as a ping",
        {(EVENTS, "refill of 100 to 100, no reference"), (DATA, "event 38")},
        _event("type = 'ping'", "organization_id = 6 AND type = 'balance.refilled'"),
    ),
    (
        "a cancellation told as a refusal",
        {(TOLD, "batch 16")},
        _event("type = 'batch.refused'", "type = 'batch.cancelled'"),
    ),
    ("a reversal told as a return", {(TOLD, "reversal 9")}, _event("type = 'transaction.returned'", "reversal_id = 9")),
    (
        "other data of an event",
        {(DATA, "event 53")},
        _event("data = '{}'", "organization_id = 6 AND type = 'balance.low'"),
    ),
    ("another number of the credited told", {(TELLS, "batch 14")}, _event("credited = 2", "batch_id = 14")),
    ("another key told", {(TELLS, "batch 14")}, _event("idempotency_key = 'two'", "batch_id = 14")),
    (
        "another time told of what is scheduled",
        {(TELLS, "batch 19")},
        _event("send_at = send_at + interval '1 s'", "batch_id = 19"),
    ),
    ("another time of what is scheduled", {(TELLS, "batch 19")}, ["UPDATE batches SET send_at = now() WHERE id = 19"]),
    (
        "a log that lost its last event with its number, of a key",
        {(EVENTS, "key 7, sandbox: f")},
        [
            "DELETE FROM events WHERE organization_id = 6 AND type = 'key.revoked'",
            "UPDATE event_logs SET last_sequence = last_sequence - 1 WHERE organization_id = 6 AND NOT sandbox",
        ],
    ),
    (
        "two batches whose keys are swapped",
        {(ANSWERED, "batch 14"), (ANSWERED, "batch 15"), (TELLS, "batch 14"), (TELLS, "batch 15")},
        [
            "UPDATE batches SET idempotency_key = 'swapped' WHERE id = 14",
            "UPDATE batches SET idempotency_key = 'one' WHERE id = 15",
            "UPDATE batches SET idempotency_key = 'two' WHERE id = 14",
        ],
    ),
    (
        "a key that is gone, so that a retry would pay again",
        {(ANSWERED, "batch 14")},
        ["UPDATE batches SET idempotency_key = NULL, idempotency_hash = NULL WHERE id = 14"],
    ),
    ("an answer to another body", {(ANSWERED, "batch 14")}, ["UPDATE batches SET idempotency_hash = '' WHERE id = 14"]),
    ("another label", {(ANSWERED, "batch 1")}, ["UPDATE batches SET label = 'another' WHERE id = 1"]),
    ("other metadata", {(ANSWERED, "batch 1")}, ["UPDATE batches SET metadata = '{}' WHERE id = 1"]),
    ("another name in an answer", {(ANSWERED, "batch 1")}, ["UPDATE batches SET organization_name = 'x' WHERE id = 1"]),
    ("another refill in an answer", {(ANSWERED, "batch 1")}, ["UPDATE batches SET last_refill = 1 WHERE id = 1"]),
    (
        "another refusal",
        {(ANSWERED, "batch 17")},
        ["UPDATE batches SET refusal = 'organization_disabled' WHERE id = 17"],
    ),
    (
        "another time of an issue",
        {(ANSWERED, "batch 14")},
        ["UPDATE batches SET issued_at = created_at - interval '1 s' WHERE id = 14"],
    ),
    (
        "another time of a reversal",
        {(TIMED, "transaction 917504"), (TIMED, "transaction 917506"), (ANSWERED, "reversal 8")},
        ["UPDATE reversals SET done_at = 'epoch' WHERE id = 8"],
    ),
    ("another reason", {(ANSWERED, "reversal 8")}, ["UPDATE reversals SET reason = 'another' WHERE id = 8"]),
    (
        "another reason why nothing was taken",
        {(ANSWERED, "reversal 8")},
        ["UPDATE reversal_entries SET code = 'more_than_left' WHERE (reversal_id, position) = (8, 3)"],
    ),
    (
        "a claim from before the issue",
        {(CLAIM_TOLD, "user 3")},
        [
            "UPDATE transactions SET claimed_at = 'epoch' WHERE (batch_id, position) = (2, 1)",
            "UPDATE user_entries SET created_at = 'epoch' WHERE transaction_id = 262145",
        ],
    ),
    (
        "a claim that is forgotten",
        {(TIMED, "transaction 262145"), (CLAIM_TOLD, "user 3"), (TELLS, "batch 2")},
        ["UPDATE transactions SET claimed_at = NULL WHERE (batch_id, position) = (2, 1)"],
    ),
    (
        "a claim where there was none",
        {(TIMED, "transaction 131072"), (CLAIM_TOLD, "user 1"), (TELLS, "batch 1")},
        ["UPDATE transactions SET claimed_at = now() WHERE (batch_id, position) = (1, 0)"],
    ),
    (
        "a key of another organization",
        _ALL_SENT | {(EVENTS, "key 6, sandbox: f")},
        ["UPDATE api_keys SET organization_id = 2 WHERE id = 6"],
    ),
    (
        "a key of the other mode",
        _ALL_SENT | {(EVENTS, "key 6, sandbox: f"), (EVENTS, "key 6, sandbox: t")},
        ["UPDATE api_keys SET sandbox = true WHERE id = 6"],
    ),
    (
        "a key that never was",
        _ALL_SENT | {(EVENTS, "key 6, sandbox: f")},
        ["DELETE FROM api_keys WHERE id = 6"],
    ),
    (
        "a revoked key that works again",
        {(EVENTS, "key 7, sandbox: f")},
        ["UPDATE api_keys SET revoked_at = NULL WHERE id = 7"],
    ),
    (
        "a batch sent by a key of another organization",
        {(ANSWERED, "batch 14"), (OWNED, "batch 14")},
        ["UPDATE batches SET api_key_id = 1 WHERE id = 14"],
    ),
    (
        "a member of another organization",
        {(OWNED, "action 16"), (OWNED, "batch 18"), (OWNED, "batch 19")},
        ["UPDATE members SET organization_id = 2 WHERE id = 1"],
    ),
    ("an approval told as a rejection", {(TOLD, "batch 20")}, _event("type = 'batch.rejected'", _OF_APPROVAL)),
    ("a rejection told as an approval", {(TOLD, "batch 21")}, _event("type = 'batch.approved'", _OF_REJECTION)),
    ("an approval told that nobody gave", {(TOLD, "batch 22")}, _event("type = 'batch.approved'", "batch_id = 22")),
    (
        "an approval by a key of another organization",
        {(ANSWERED, "batch 20"), (OWNED, "approval 20")},
        ["UPDATE batches SET answered_by_key_id = 1 WHERE id = 20"],
    ),
    (
        "another reason of a rejection",
        {(ANSWERED, "batch 21")},
        ["UPDATE batches SET rejection_reason = 'another' WHERE id = 21"],
    ),
    ("a webhook beyond its log", {(WITHIN, "webhook 1")}, ["UPDATE webhooks SET position = 1000"]),
    ("a refused batch that is gone", {(TOLD, "batch 17")}, ["DELETE FROM batches WHERE id = 17"]),
    (
        "a cancelled batch that is queued again",
        {(ANSWERED, "batch 16"), (TOLD, "batch 16")},
        ["UPDATE batches SET status = 'queued', cancelled_at = NULL WHERE id = 16"],
    ),
    (
        "an organization that is suspended without a word",
        {(STATE, "organization 6")},
        ["UPDATE organizations SET is_suspended = true WHERE id = 6"],
    ),
]
