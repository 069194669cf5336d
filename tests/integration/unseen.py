"""Changes of the books that a trigger refuses, those that no audit sees first. docs/threat-model.md says why."""

from app import api_keys
from app.postgres.database import transaction
from app.values.key_bounds import Bounds
from tests.integration import books
from tests.integration.breaks import ANN

# The trigger, what is wrong, and the statements that make it so.
UNSEEN: list[tuple[str, str, list[str]]] = [
    (
        "batches_addresses_only_erased",
        "the keys of a batch and of its transactions, changed together",
        [
            "UPDATE batches SET email_keys = ARRAY['ann@example.com', 'eve@example.com'] WHERE id = 1",
            "UPDATE transactions SET email_key = 'eve@example.com' WHERE (batch_id, position) = (1, 1)",
        ],
    ),
    (
        "transactions_written_once",
        "a batch that nobody paid, gone whole",
        [
            "DELETE FROM transactions WHERE batch_id = 14",
            "DELETE FROM batches WHERE id = 14",
            "DELETE FROM unnumbered_events WHERE batch_id = 14",
        ],
    ),
    ("api_keys_made_once", "a key that others know", ["UPDATE api_keys SET hash = sha256(id::text::bytea)"]),
    (
        "api_keys_made_once",
        "a key that may send more at once",
        ["UPDATE api_keys SET batch_limit = NULL WHERE batch_limit IS NOT NULL"],
    ),
    (
        "users_known_since_a_moment",
        "a key that is not the normal form of its address",
        ["UPDATE users SET email = 'Eve@example.com' WHERE id = 1"],
    ),
    (
        "transactions_held_until_only_rises",
        "an end of what is claimed already",
        ["UPDATE transactions SET held_until = now() + interval '99 d' WHERE (batch_id, position) = (12, 2)"],
    ),
    ("reversals_accepted_once", "a reversal that waits, gone", ["DELETE FROM reversals WHERE id = 11"]),
]

# What the audit sees too, by the rules of `tests.integration.breaks_of_answers`.
SEEN_TOO: list[tuple[str, str, list[str]]] = [
    ("users_registered_once", "a user without points, gone", ["DELETE FROM users WHERE id = 5"]),
    ("batches_accepted_once", "other metadata", ["UPDATE batches SET metadata = '{}' WHERE id = 1"]),
    ("batches_accepted_once", "another sender", ["UPDATE batches SET api_key_id = 9 WHERE id = 1"]),
    ("batches_accepted_once", "another label", ["UPDATE batches SET label = 'another' WHERE id = 1"]),
    ("batches_accepted_once", "another amount that nobody paid", ["UPDATE batches SET amount = 40 WHERE id = 14"]),
    ("batches_accepted_once", "another flag where nobody paid", ["UPDATE batches SET atomic = true WHERE id = 14"]),
    ("batches_final_once", "another name in an answer", ["UPDATE batches SET organization_name = 'x' WHERE id = 1"]),
    ("batches_final_once", "another last refill in an answer", ["UPDATE batches SET last_refill = 1 WHERE id = 1"]),
    (
        "batches_answer_to_one_key",
        "an answer given to another body",
        ["UPDATE batches SET idempotency_hash = sha256('x') WHERE id = 15"],
    ),
    (
        "batches_answer_to_one_key",
        "an answer given to another key",
        ["UPDATE batches SET idempotency_key = 'x' WHERE id = 15"],
    ),
    (
        "transactions_claimed_once",
        "a claim from before the issue",
        ["UPDATE transactions SET claimed_at = 'epoch' WHERE (batch_id, position) = (2, 1)"],
    ),
    (
        "transactions_claimed_once",
        "a claim that is forgotten",
        ["UPDATE transactions SET claimed_at = NULL WHERE (batch_id, position) = (2, 1)"],
    ),
    (
        "transactions_claimed_once",
        "a claim where there was none",
        ["UPDATE transactions SET claimed_at = now() WHERE (batch_id, position) = (1, 0)"],
    ),
    ("api_keys_made_once", "a key of another organization", ["UPDATE api_keys SET organization_id = 2"]),
    ("api_keys_made_once", "a key of the other mode", ["UPDATE api_keys SET sandbox = NOT sandbox"]),
    ("api_keys_made_once", "a key that never was", ["DELETE FROM api_keys"]),
    (
        "api_keys_revoked_once",
        "a revoked key that works again",
        ["UPDATE api_keys SET revoked_at = NULL WHERE revoked_at IS NOT NULL"],
    ),
    ("reversals_accepted_once", "another reason", ["UPDATE reversals SET reason = 'another' WHERE id = 8"]),
    ("reversals_accepted_once", "another who reverses", ["UPDATE reversals SET api_key_id = 9 WHERE id = 8"]),
    (
        "batches_accepted_once",
        "other days",
        ["UPDATE batches SET hold_days = 1 WHERE id = 15"],
    ),
    ("reversals_final_once", "another moment", ["UPDATE reversals SET done_at = 'epoch' WHERE id = 8"]),
    (
        "reversals_answer_to_one_key",
        "a reversal's answer given to another body",
        ["UPDATE reversals SET idempotency_hash = sha256('x') WHERE id = 16"],
    ),
    (
        "reversal_entries_written_once",
        "another reason why nothing was taken",
        ["UPDATE reversal_entries SET code = 'more_than_left' WHERE (reversal_id, position) = (8, 3)"],
    ),
]


def write_what_no_audit_sees() -> None:
    """Write, after `write_the_books`, what the statements above change."""
    books.make_users("eli@example.com")  # 5: nothing was credited.
    books.issue_now(1, [ANN], 30)  # Batch 14: of 20 points nobody could be paid.
    books.queue_batch(1, [ANN], 30, idempotency_key="once")  # Batch 15 stays queued.
    books.queue_reversal(4, batch_id=7, idempotency_key="once")  # Reversal 16 stays queued.
    with transaction() as connection:
        revoked, _ = api_keys.create(connection, 1, sandbox=False, bounds=Bounds(batch_limit=5))
        api_keys.revoke(connection, revoked)
