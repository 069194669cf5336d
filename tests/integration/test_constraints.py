"""The constraints: each refuses what its name says, whatever code there is above it."""

from collections.abc import Callable

import pytest
from sqlalchemy import text

from app.members import links
from app.postgres.database import transaction
from tests.integration import books

_BATCH = "INSERT INTO batches (organization_id, sandbox, amount, atomic, recipient_count, emails, email_keys"
_REFILL = "INSERT INTO refills (organization_id, sandbox, amount, balance)"
_MEMBER = "INSERT INTO members (organization_id, email, email_key, first_name, last_name, role)"
_ACTION = "INSERT INTO actions (organization_id, member_id, action)"
_SESSION = "INSERT INTO member_sessions (member_id, hash, expires_at)"
_ENTRY = "INSERT INTO user_entries (user_id, organization_id, created_at, transaction_id, reversal_id, amount)"
_FORM = "INSERT INTO used_forms (member_id, form_id)"
_UPLOAD = "INSERT INTO uploads (organization_id, member_id, sandbox, token, name, question)"
_PART = "INSERT INTO upload_parts (upload_id, number, lines, emails)"
_WEBHOOK = "INSERT INTO webhooks (organization_id, sandbox, url, types, secret, position"
_DELIVERY = "INSERT INTO webhook_deliveries (webhook_id, sequence, event_id, type, attempt, ms)"
_DAY = "INSERT INTO daily_sums"
_REQUEST = "INSERT INTO api_requests (organization_id, sandbox, api_key_id, created_at, request_id, method, status, ms)"
_KEY = "INSERT INTO api_keys (organization_id, sandbox, hash, start)"
_KEY_DAY = "INSERT INTO key_days (api_key_id, day, daily_limit, used)"
_PLATFORM_KEY = "INSERT INTO platform_keys (name, scopes, hash, start)"
_EVENT = "INSERT INTO unnumbered_events (organization_id, sandbox, type, batch_id"
_NUMBERED = "INSERT INTO events (organization_id, sandbox, sequence, id, created_at, type)"
_MAIL = "INSERT INTO mails (organization_id, sandbox, kind, state, member_id, link)"
_LOG = "INSERT INTO event_logs (organization_id, sandbox, last_sequence, dropped_to, dropped_until)"
_RESTORE = "INSERT INTO restores (organization_id, sandbox, skipped_from, skipped_to, restored_at)"

_CREDITED, _HELD, _UNPAID = (f"WHERE (batch_id, position) = ({place})" for place in ("1, 0", "1, 1", "2, 0"))


def _batch(**values: str) -> str:
    """Word an INSERT of a batch of one recipient with these values too."""
    return (
        f"{_BATCH}, {', '.join(values)}) VALUES (1, false, 1, false, 1, '{{a}}', '{{a}}', {', '.join(values.values())})"
    )


# There are an organization 1 with two members, who have a link each, a user 1, and two issued batches of two recipients
# each: batch 1 credited the user (transaction 1) and holds for another (2); batch 2, atomic, debited nobody (3 and 4).
# Reversal 3 has taken batch 1 back, and reversal 4 of it waits. Upload 1 is a list of two that is not sent.
REFUSED = [
    ("ck_organizations_balance_not_negative", "UPDATE organizations SET balance = -1"),
    ("ck_organizations_sandbox_balance_not_negative", "UPDATE organizations SET sandbox_balance = -1"),
    ("ck_organizations_name_length", "UPDATE organizations SET name = ''"),
    ("ck_organizations_name_length", "UPDATE organizations SET name = repeat('x', 256)"),
    ("ck_organizations_held_not_negative", "UPDATE organizations SET sandbox_held_count = -1"),
    ("ck_organizations_low_balance_positive", "UPDATE organizations SET low_balance = 0"),
    ("ck_organizations_approval_above_not_negative", "UPDATE organizations SET approval_above = -1"),
    ("ck_organizations_approval_of_known", "UPDATE organizations SET approval_of = 'nobody'"),
    ("ck_unnumbered_events_type_known", f"{_EVENT}) VALUES (1, false, 'batch.lost', 1)"),
    ("ck_unnumbered_events_tells_of_one", f"{_EVENT}) VALUES (1, false, 'batch.issued', NULL)"),
    ("ck_unnumbered_events_tells_of_one", f"{_EVENT}, data) VALUES (1, false, 'batch.issued', 1, '{{}}')"),
    ("ck_unnumbered_events_in_their_log", f"{_EVENT}, data) VALUES (1, false, 'user.erased', NULL, '{{}}')"),
    ("ck_unnumbered_events_in_their_log", f"{_EVENT}, data) VALUES (0, true, 'user.erased', NULL, '{{}}')"),
    ("ck_unnumbered_events_in_their_log", f"{_EVENT}) VALUES (0, false, 'batch.issued', 1)"),
    (
        "pk_unnumbered_events",
        (
            "INSERT INTO unnumbered_events (organization_id, id, sandbox, type, batch_id) OVERRIDING SYSTEM VALUE"
            " VALUES (1, 99, false, 'batch.issued', 1), (1, 99, false, 'batch.issued', 2)"
        ),
    ),
    ("ck_events_sequence_positive", f"{_NUMBERED} VALUES (1, false, 0, 1, now(), 'ping')"),
    ("pk_events", f"{_NUMBERED} VALUES (1, false, 1, 1, now(), 'ping'), (1, false, 1, 2, now(), 'ping')"),
    ("ck_event_logs_dropped_to_in_range", f"{_LOG} VALUES (1, false, 1, 2, now())"),
    ("ck_event_logs_dropped_to_in_range", f"{_LOG} VALUES (1, false, 1, -1, now())"),
    ("ck_event_logs_dropped_until_a_moment", f"{_LOG} VALUES (1, false, 1, 1, NULL)"),
    ("pk_event_logs", f"{_LOG} VALUES (1, false, 1, 0, NULL), (1, false, 2, 0, NULL)"),
    ("ck_restores_skipped_in_order", f"{_RESTORE} VALUES (1, false, 0, 2, now())"),
    ("ck_restores_skipped_in_order", f"{_RESTORE} VALUES (1, false, 3, 2, now())"),
    ("pk_restores", f"{_RESTORE} VALUES (1, false, 1, 2, now()), (1, false, 2, 2, now())"),
    ("fk_api_keys_organization_id", f"{_KEY} VALUES (9, false, sha256('x'), 'pts')"),
    ("ck_api_keys_hash_is_sha256", f"{_KEY} VALUES (1, false, 'the key itself', 'pts')"),
    ("ck_api_keys_name_length", f"{_KEY[:-1]}, name) VALUES (1, false, sha256('x'), 'pts', '')"),
    ("ck_api_keys_name_length", f"{_KEY[:-1]}, name) VALUES (1, false, sha256('x'), 'pts', repeat('x', 101))"),
    ("uq_api_keys_hash", f"{_KEY} VALUES (1, false, sha256('x'), 'pts'), (1, true, sha256('x'), 'pts')"),
    ("ck_api_keys_scopes_known", f"{_KEY[:-1]}, scopes) VALUES (1, false, sha256('x'), 'pts', '{{}}')"),
    ("ck_api_keys_scopes_known", f"{_KEY[:-1]}, scopes) VALUES (1, false, sha256('x'), 'pts', '{{write}}')"),
    ("fk_api_keys_made_by_member_id", f"{_KEY[:-1]}, made_by_member_id) VALUES (1, false, sha256('x'), 'pts', 9)"),
    (
        "fk_api_keys_made_by_platform_key_id",
        f"{_KEY[:-1]}, made_by_platform_key_id) VALUES (1, false, sha256('x'), 'pts', 9)",
    ),
    (
        "ck_api_keys_made_by_operator_length",
        f"{_KEY[:-1]}, made_by_operator) VALUES (1, false, sha256('x'), 'pts', '')",
    ),
    (
        "ck_api_keys_made_by_one",
        f"{_KEY[:-1]}, made_by_member_id, made_by_operator) VALUES (1, false, sha256('x'), 'pts', 1, 'ada')",
    ),
    ("ck_api_keys_batch_limit_positive", f"{_KEY[:-1]}, batch_limit) VALUES (1, false, sha256('x'), 'pts', 0)"),
    ("ck_api_keys_daily_limit_positive", f"{_KEY[:-1]}, daily_limit) VALUES (1, false, sha256('x'), 'pts', 0)"),
    ("ck_key_days_used_within_the_limit", f"{_KEY_DAY} VALUES (1, '2026-01-31', 5, 6)"),
    ("ck_key_days_used_within_the_limit", f"{_KEY_DAY} VALUES (1, '2026-01-31', 5, -1)"),
    ("pk_key_days", f"{_KEY_DAY} VALUES (1, '2026-01-31', 5, 0), (1, '2026-01-31', 5, 1)"),
    (
        "ck_points_given_back_points_positive",
        "INSERT INTO points_given_back (api_key_id, day, points) VALUES (1, '2026-01-31', 0)",
    ),
    ("ck_platform_keys_name_length", f"{_PLATFORM_KEY} VALUES ('', '{{users:read}}', sha256('x'), 'pts')"),
    (
        "ck_platform_keys_name_length",
        f"{_PLATFORM_KEY} VALUES (repeat('x', 256), '{{users:read}}', sha256('x'), 'pts')",
    ),
    ("ck_platform_keys_scopes_known", f"{_PLATFORM_KEY} VALUES ('x', '{{}}', sha256('x'), 'pts')"),
    ("ck_platform_keys_scopes_known", f"{_PLATFORM_KEY} VALUES ('x', '{{users:all}}', sha256('x'), 'pts')"),
    ("ck_platform_keys_hash_is_sha256", f"{_PLATFORM_KEY} VALUES ('x', '{{users:read}}', 'the key itself', 'pts')"),
    (
        "uq_platform_keys_hash",
        (
            f"{_PLATFORM_KEY} VALUES ('x', '{{users:read}}', sha256('x'), 'pts'),"
            " ('y', '{users:read}', sha256('x'), 'pts')"
        ),
    ),
    ("fk_members_organization_id", f"{_MEMBER} VALUES (9, 'b@x.org', 'b@x.org', 'B', 'C', 'viewer')"),
    ("uq_members_email_key", f"{_MEMBER} VALUES (1, 'M@x.org', 'm@x.org', 'B', 'C', 'viewer')"),
    ("ck_members_role_known", "UPDATE members SET role = 'owner'"),
    ("ck_members_time_zone_length", "UPDATE members SET time_zone = repeat('x', 65)"),
    ("ck_members_mails_off_known", "UPDATE members SET mails_off = '{everything}'"),
    ("fk_members_second_factor_id", "UPDATE members SET second_factor_id = 9"),
    ("ck_members_link_hash_is_sha256", "UPDATE members SET link_hash = 'the token itself'"),
    ("uq_members_link_hash", "UPDATE members SET link_hash = sha256('x'), link_expires_at = now()"),
    ("ck_members_link_with_an_end", "UPDATE members SET link_expires_at = NULL WHERE id = 1"),
    ("ck_members_removed_has_no_way", "UPDATE members SET removed_at = now() WHERE id = 1"),
    ("fk_member_sessions_member_id", f"{_SESSION} VALUES (9, sha256('x'), now())"),
    ("ck_member_sessions_hash_is_sha256", f"{_SESSION} VALUES (1, 'the token itself', now())"),
    (
        "ck_member_sessions_browser_length",
        f"{_SESSION[:-1]}, browser) VALUES (1, sha256('x'), now(), repeat('x', 101))",
    ),
    (
        "ck_member_sessions_address_length",
        f"{_SESSION[:-1]}, address) VALUES (1, sha256('x'), now(), repeat('x', 101))",
    ),
    ("uq_member_sessions_hash", f"{_SESSION} VALUES (1, sha256('x'), now()), (2, sha256('x'), now())"),
    ("fk_actions_organization_id", f"{_ACTION} VALUES (9, 1, 'x')"),
    ("fk_actions_member_id", f"{_ACTION} VALUES (1, 9, 'x')"),
    ("ck_actions_detail_length", f"{_ACTION[:-1]}, detail) VALUES (1, 1, 'x', repeat('x', 256))"),
    ("fk_actions_platform_key_id", "INSERT INTO actions (action, platform_key_id) VALUES ('x', 9)"),
    ("ck_actions_operator_length", "INSERT INTO actions (action, operator) VALUES ('x', '')"),
    ("ck_actions_done_by_one", "INSERT INTO actions (action, member_id, operator) VALUES ('x', 1, 'ada')"),
    ("fk_used_forms_member_id", f"{_FORM} VALUES (9, repeat('x', 24))"),
    ("pk_used_forms", f"{_FORM} VALUES (1, repeat('x', 24)), (1, repeat('x', 24))"),
    ("ck_used_forms_form_id_length", f"{_FORM} VALUES (1, 'x')"),
    ("ck_service_secrets_secret_of_256_bits", "INSERT INTO service_secrets (name, secret) VALUES ('x', 'short')"),
    ("ck_kept_answers_name_is_sha256", "INSERT INTO kept_answers (name, answer) VALUES ('x', 'a')"),
    ("uq_organizations_external_id", "INSERT INTO organizations (name, external_id) VALUES ('x', 'y'), ('z', 'y')"),
    ("ck_organizations_external_id_length", "UPDATE organizations SET external_id = ''"),
    ("ck_organizations_sandbox_ahead_in_range", "UPDATE organizations SET sandbox_ahead = '732 days'"),
    ("ck_organizations_sandbox_ahead_in_range", "UPDATE organizations SET sandbox_ahead = '-1 s'"),
    ("pk_held_transactions", "INSERT INTO held_transactions VALUES (1, 131072, 7), (1, 131072, 7)"),
    ("ck_held_listing_one_row", "INSERT INTO held_listing VALUES (false, 0, 0)"),
    ("ck_held_listing_in_order", "INSERT INTO held_listing VALUES (true, 2, 1)"),
    ("ck_user_balances_points_not_negative", "INSERT INTO user_balances VALUES (1, 1, -1)"),
    ("pk_user_balances", "INSERT INTO user_balances VALUES (1, 1, 0), (1, 1, 0)"),
    ("pk_unfolded_batches", "INSERT INTO unfolded_batches VALUES (1, 9), (1, 9)"),
    ("ck_users_external_id_length", "UPDATE users SET external_id = ''"),
    ("ck_users_external_id_length", "UPDATE users SET external_id = repeat('x', 129)"),
    (
        "uq_users_external_id",
        (
            "INSERT INTO users (email, email_key, first_name, last_name, external_id)"
            " VALUES ('c@x.org', 'c@x.org', 'A', 'B', 'x'), ('d@x.org', 'd@x.org', 'A', 'B', 'x')"
        ),
    ),
    ("ck_users_erased_whole", "UPDATE users SET email_key = NULL, address_changed_at = now()"),
    (
        "fk_former_addresses_user_id",
        "INSERT INTO former_addresses (user_id, email_key, last_batch_id) VALUES (9, 'c@x.org', 1)",
    ),
    (
        "pk_former_addresses",
        "INSERT INTO former_addresses (user_id, email_key, last_batch_id) VALUES (1, 'c@x.org', 1), (1, 'c@x.org', 1)",
    ),
    ("ck_user_entries_below_zero_of_a_reversal", f"{_ENTRY} VALUES (1, 1, now(), 131072, NULL, -1)"),
    ("ck_user_entries_below_zero_of_a_reversal", f"{_ENTRY} VALUES (1, 1, now(), 131072, 2, 1)"),
    ("ck_user_entries_below_zero_of_a_reversal", f"{_ENTRY} VALUES (1, 1, now(), 131072, 2, NULL)"),
    ("fk_users_sandbox_of", "UPDATE users SET sandbox_of = 9"),
    (
        "uq_users_sandbox_of_email_key",
        (
            "INSERT INTO users (email, email_key, first_name, last_name, sandbox_of)"
            " VALUES ('A@x.org', 'a@x.org', 'A', 'B', 1), ('a@x.org', 'a@x.org', 'A', 'B', 1)"
        ),
    ),
    (
        "uq_users_email_key",
        "INSERT INTO users (email, email_key, first_name, last_name) VALUES ('A@x.org', 'a@x.org', 'A', 'B')",
    ),
    ("ck_batches_amount_positive", "UPDATE batches SET amount = 0"),
    ("ck_batches_sent_by_one", "UPDATE batches SET api_key_id = 1, member_id = 1"),
    ("ck_batches_recipients_counted", _BATCH + ") VALUES (1, false, 1, false, 0, '{}', '{}')"),
    ("ck_batches_recipients_counted", _BATCH + ") VALUES (1, false, 1, false, 1, '{a,b}', '{a}')"),
    ("ck_batches_recipients_counted", _BATCH + ") VALUES (1, false, 1, false, 1, '{a}', '{a,b}')"),
    ("ck_batches_recipients_counted", "UPDATE batches SET running_totals = '{1}', amount = NULL WHERE id = 2"),
    ("ck_batches_recipients_counted", "UPDATE batches SET labels = '{x}'"),
    ("ck_batches_recipients_counted", "UPDATE batches SET item_references = '{x}'"),
    ("ck_batches_amount_or_running_totals", "UPDATE batches SET amount = NULL"),
    ("ck_batches_amount_or_running_totals", "UPDATE batches SET running_totals = '{1,2}' WHERE id = 2"),
    ("ck_batches_debited_amount_of_the_debited", "UPDATE batches SET debited_amount = 10 WHERE id = 1"),
    (
        "ck_batches_debited_amount_of_the_debited",
        "UPDATE batches SET running_totals = '{5,12}', amount = NULL WHERE id = 1",
    ),
    ("ck_batches_issued_when_complete", "UPDATE batches SET debited_amount = NULL"),
    ("ck_organizations_held_days_in_range", "UPDATE organizations SET held_days = 0"),
    ("ck_organizations_held_days_in_range", "UPDATE organizations SET held_days = 3651"),
    ("ck_batches_hold_days_in_range", _batch(hold_days="0")),
    ("ck_batches_rehearsed_unpaid_in_the_sandbox", _batch(rehearsed_unpaid="true")),
    ("ck_batches_hold_days_in_range", _batch(hold_days="3651")),
    ("ck_batches_held_until_after_the_issue", "UPDATE batches SET held_until = issued_at WHERE id = 1"),
    ("ck_batches_held_until_after_the_issue", "UPDATE batches SET hold_days = 1 WHERE id = 1"),
    ("ck_batches_held_until_after_the_issue", _batch(held_until="now()")),
    ("ck_batches_return_at_of_what_has_an_end", "UPDATE batches SET return_at = now() WHERE id = 1"),
    ("ck_batches_label_length", "UPDATE batches SET label = repeat('x', 256)"),
    ("ck_batches_status_known", _batch(status="'lost'")),
    ("ck_batches_issued_when_complete", "UPDATE batches SET status = 'queued'"),
    ("ck_batches_cancelled_at_a_moment", "UPDATE batches SET cancelled_at = now()"),
    ("ck_batches_cancelled_at_a_moment", _batch(status="'cancelled'")),
    ("ck_batches_scheduled_for_a_moment", _batch(status="'scheduled'")),
    ("ck_batches_issued_when_complete", "UPDATE batches SET issued_at = NULL"),
    ("ck_batches_issued_when_complete", "UPDATE batches SET debited_count = NULL"),
    ("ck_batches_issued_when_complete", "UPDATE batches SET current_balance = NULL"),
    ("ck_batches_issued_when_complete", "UPDATE batches SET organization_name = NULL"),
    ("ck_batches_issued_when_complete", "UPDATE batches SET last_refill = NULL"),
    ("ck_batches_rejected_with_a_reason", "UPDATE batches SET rejection_reason = 'x'"),
    ("ck_batches_rejected_with_a_reason", _batch(status="'rejected'")),
    ("ck_batches_rejection_reason_length", _batch(status="'rejected'", rejected_at="now()", rejection_reason="''")),
    ("ck_batches_approved_once", "UPDATE batches SET queue_place = 1"),
    (
        "ck_batches_approved_once",
        _batch(status="'awaiting_approval'", approved_at="now()", queue_place="9", answered_by_key_id="1"),
    ),
    ("ck_batches_answered_by_another", "UPDATE batches SET answered_by_key_id = 1"),
    ("ck_batches_answered_by_another", "UPDATE batches SET approved_at = now(), queue_place = 9"),
    (
        "ck_batches_answered_by_another",
        "UPDATE batches SET api_key_id = 7, approved_at = now(), queue_place = 9, answered_by_key_id = 7",
    ),
    ("ck_batches_refused_with_a_reason", "UPDATE batches SET refusal = 'organization_disabled'"),
    ("ck_batches_refused_with_a_reason", _batch(status="'refused'")),
    ("ck_batches_debited_count_in_range", "UPDATE batches SET debited_count = 3, debited_amount = 30 WHERE id = 1"),
    ("ck_batches_debited_count_in_range", "UPDATE batches SET debited_count = -1, debited_amount = -10 WHERE id = 1"),
    ("ck_batches_atomic_all_or_none", "UPDATE batches SET debited_count = 1, debited_amount = 1000 WHERE id = 2"),
    ("ck_batches_current_balance_not_negative", "UPDATE batches SET current_balance = -1"),
    ("ck_batches_idempotency_key_with_hash", "UPDATE batches SET idempotency_key = 'once'"),
    ("ck_batches_idempotency_key_with_hash", "UPDATE batches SET idempotency_hash = sha256('x')"),
    ("ck_batches_idempotency_key_length", "UPDATE batches SET idempotency_key = '', idempotency_hash = sha256('x')"),
    (
        "ck_batches_idempotency_key_length",
        "UPDATE batches SET idempotency_key = repeat('x', 256), idempotency_hash = sha256('x')",
    ),
    (
        "uq_batches_idempotency_key",
        "UPDATE batches SET idempotency_key = 'once', idempotency_hash = sha256(id::text::bytea)",
    ),
    ("pk_transactions", "UPDATE transactions SET position = 0"),
    ("ck_transactions_position_in_range", f"UPDATE transactions SET position = -1 {_CREDITED}"),
    ("ck_transactions_position_in_range", f"UPDATE transactions SET position = 131072 {_CREDITED}"),
    ("ck_transactions_amount_positive", "UPDATE transactions SET amount = 0"),
    ("uq_transactions_reference", "UPDATE transactions SET reference = 'r'"),
    ("ck_transactions_balance_not_negative", "UPDATE transactions SET balance = -1"),
    ("ck_transactions_debited_is_credited_or_held", f"UPDATE transactions SET debited = false {_CREDITED}"),
    ("ck_transactions_debited_is_credited_or_held", f"UPDATE transactions SET user_id = NULL {_CREDITED}"),
    ("ck_transactions_debited_is_credited_or_held", f"UPDATE transactions SET credited = false {_CREDITED}"),
    ("ck_transactions_debited_is_credited_or_held", f"UPDATE transactions SET user_id = 1 {_HELD}"),
    ("ck_transactions_claimed_only_if_credited", f"UPDATE transactions SET claimed_at = now() {_HELD}"),
    ("ck_transactions_points_left_of_the_debited", f"UPDATE transactions SET points_left = 1 {_UNPAID}"),
    ("ck_transactions_points_left_of_the_debited", f"UPDATE transactions SET points_left = -1 {_CREDITED}"),
    (
        "ck_transactions_points_left_of_the_debited",
        f"UPDATE transactions SET amount = 10, points_left = 10 {_CREDITED}",
    ),
    ("ck_transactions_held_until_of_the_debited", f"UPDATE transactions SET held_until = now() {_UNPAID}"),
    ("ck_transactions_returned_whole_and_never_credited", f"UPDATE transactions SET returned_at = now() {_CREDITED}"),
    (
        "ck_transactions_returned_whole_and_never_credited",
        f"UPDATE transactions SET returned_at = now(), points_left = NULL {_HELD}",
    ),
    ("ck_reversals_return_of_a_batch_done", "UPDATE reversals SET is_return = true WHERE id = 4"),
    ("ck_reversals_return_of_a_batch_done", "UPDATE reversals SET is_return = true, atomic = true WHERE id = 3"),
    ("ck_reversals_return_of_a_batch_done", "UPDATE reversals SET is_return = true, amount = 1 WHERE id = 3"),
    (
        "ck_reversals_return_of_a_batch_done",
        "UPDATE reversals SET is_return = true, batch_id = NULL, transaction_ids = '{1}' WHERE id = 3",
    ),
    ("ck_reversals_status_known", "UPDATE reversals SET status = 'lost' WHERE id = 4"),
    ("ck_reversals_asked_by_one", "UPDATE reversals SET api_key_id = 1, member_id = 1"),
    ("ck_reversals_amount_positive", "UPDATE reversals SET amount = 0 WHERE id = 4"),
    ("ck_reversals_expected_not_negative", "UPDATE reversals SET expected = -1 WHERE id = 4"),
    ("ck_reversals_reason_length", "UPDATE reversals SET reason = ''"),
    ("ck_reversals_reason_length", "UPDATE reversals SET reason = repeat('x', 256)"),
    ("ck_reversals_idempotency_key_length", "UPDATE reversals SET idempotency_key = '', idempotency_hash = 'x'"),
    (
        "ck_reversals_idempotency_key_length",
        "UPDATE reversals SET idempotency_key = repeat('x', 256), idempotency_hash = 'x'",
    ),
    ("ck_reversals_idempotency_key_with_hash", "UPDATE reversals SET idempotency_key = 'once'"),
    (
        "uq_reversals_idempotency_key",
        "UPDATE reversals SET idempotency_key = 'once', idempotency_hash = sha256(id::text::bytea)",
    ),
    ("ck_reversals_reversed_amount_not_negative", "UPDATE reversals SET reversed_amount = -1 WHERE id = 3"),
    ("ck_reversals_current_balance_not_negative", "UPDATE reversals SET current_balance = -1 WHERE id = 3"),
    ("ck_reversals_of_a_batch_or_of_transactions", "UPDATE reversals SET batch_id = NULL"),
    ("ck_reversals_of_a_batch_or_of_transactions", "UPDATE reversals SET batch_id = NULL, transaction_ids = '{}'"),
    ("ck_reversals_of_a_batch_or_of_transactions", "UPDATE reversals SET transaction_ids = '{1}'"),
    ("ck_reversals_refused_with_a_reason", "UPDATE reversals SET refusal = 'organization_disabled' WHERE id = 4"),
    ("ck_reversals_done_when_complete", "UPDATE reversals SET done_at = NULL WHERE id = 3"),
    ("ck_reversals_done_when_complete", "UPDATE reversals SET reversed_amount = NULL WHERE id = 3"),
    ("ck_reversals_done_when_complete", "UPDATE reversals SET current_balance = NULL WHERE id = 3"),
    ("ck_reversals_done_when_complete", "UPDATE reversals SET done_at = now() WHERE id = 4"),
    ("ck_reversal_entries_code_known", "UPDATE reversal_entries SET code = 'lost', reversed = 0"),
    ("ck_reversal_entries_reversed_unless_a_code", "UPDATE reversal_entries SET code = 'not_debited'"),
    ("ck_reversal_entries_reversed_unless_a_code", "UPDATE reversal_entries SET reversed = -1"),
    ("pk_reversal_entries", "UPDATE reversal_entries SET position = 0"),
    ("fk_webhooks_organization_id", f"{_WEBHOOK}) VALUES (9, false, 'u', '{{*}}', 's', 0)"),
    ("ck_mails_kind_known", f"{_MAIL} VALUES (1, false, 'praise', 'waiting', 1, NULL)"),
    ("ck_mails_state_known", f"{_MAIL} VALUES (1, false, 'later', 'read', 1, NULL)"),
    ("ck_mails_news_of_nobody_yet", f"{_MAIL} VALUES (1, false, 'later', 'news', 1, NULL)"),
    ("ck_mails_news_of_nobody_yet", f"{_MAIL} VALUES (1, false, 'later', 'waiting', NULL, NULL)"),
    ("ck_mails_link_until_sent", f"{_MAIL} VALUES (1, false, 'link', 'waiting', 1, NULL)"),
    ("ck_mails_link_until_sent", f"{_MAIL} VALUES (1, false, 'link', 'done', 1, 'x')"),
    ("fk_mails_member_id", f"{_MAIL} VALUES (1, false, 'later', 'waiting', 9, NULL)"),
    ("ck_webhooks_url_length", f"{_WEBHOOK}) VALUES (1, false, '', '{{*}}', 's', 0)"),
    ("ck_webhooks_url_length", f"{_WEBHOOK}) VALUES (1, false, repeat('u', 2001), '{{*}}', 's', 0)"),
    ("ck_webhooks_types_counted", f"{_WEBHOOK}) VALUES (1, false, 'u', '{{}}', 's', 0)"),
    ("ck_webhooks_position_not_negative", f"{_WEBHOOK}) VALUES (1, false, 'u', '{{*}}', 's', -1)"),
    ("ck_webhooks_description_length", f"{_WEBHOOK}, description) VALUES (1, false, 'u', '{{*}}', 's', 0, '')"),
    ("ck_webhooks_failures_not_negative", f"{_WEBHOOK}, failures) VALUES (1, false, 'u', '{{*}}', 's', 0, -1)"),
    (
        "ck_webhooks_disabled_reason_known",
        f"{_WEBHOOK}, disabled_reason) VALUES (1, false, 'u', '{{*}}', 's', 0, 'lost')",
    ),
    (
        "ck_webhooks_previous_secrets_until_a_moment",
        f"{_WEBHOOK}, previous_secrets) VALUES (1, false, 'u', '{{*}}', 's', 0, '{{s}}')",
    ),
    ("ck_webhook_deliveries_attempt_counted", f"{_DELIVERY} VALUES (1, 1, 'evt_1', 'ping', 0, 1)"),
    ("ck_daily_sums_not_negative", f"{_DAY} VALUES (1, '2026-01-31', false, 0, -1, 0, 0, 0, 0, 0)"),
    ("ck_daily_sums_not_negative", f"{_DAY} VALUES (1, '2026-01-31', false, 0, 0, 0, 0, 1, 1, 2)"),
    ("pk_daily_sums", f"{_DAY} SELECT 1, '2026-01-31', false, 0, 0, 0, 0, 0, 0, 0 FROM generate_series(1, 2)"),
    ("ck_api_requests_status_of_an_answer", f"{_REQUEST} VALUES (1, false, 1, now(), 'r', 'GET', 100, 1)"),
    ("ck_api_requests_ms_not_negative", f"{_REQUEST} VALUES (1, false, 1, now(), 'r', 'GET', 200, -1)"),
    ("ck_api_requests_request_id_length", f"{_REQUEST} VALUES (1, false, 1, now(), '', 'GET', 200, 1)"),
    ("fk_refills_organization_id", f"{_REFILL} VALUES (9, false, 1, 1)"),
    ("ck_refills_below_zero_named_or_of_a_sandbox", f"{_REFILL} VALUES (1, false, -1, 1)"),
    ("ck_refills_below_zero_named_or_of_a_sandbox", f"{_REFILL} VALUES (1, false, 0, 1)"),
    ("ck_refills_below_zero_named_or_of_a_sandbox", f"{_REFILL} VALUES (1, true, 0, 1)"),
    (
        "uq_refills_organization_id_reference",
        f"{_REFILL[:-1]}, reference) VALUES (1, false, 1, 1, 'r'), (1, true, 2, 2, 'r')",
    ),
    ("ck_refills_reference_length", f"{_REFILL[:-1]}, reference) VALUES (1, false, 1, 1, '')"),
    ("ck_refills_balance_not_negative", f"{_REFILL} VALUES (1, true, -1, -1)"),
    ("fk_uploads_organization_id", f"{_UPLOAD} VALUES (9, 1, false, 'x', 'x', 'column')"),
    ("fk_uploads_member_id", f"{_UPLOAD} VALUES (1, 9, false, 'x', 'x', 'column')"),
    ("uq_uploads_token", f"{_UPLOAD} VALUES (1, 1, false, 'token', 'x', 'column')"),
    ("ck_uploads_question_known", f"{_UPLOAD} VALUES (1, 1, false, 'x', 'x', 'what')"),
    ("ck_uploads_checked_unless_a_question", f"{_UPLOAD} VALUES (1, 1, false, 'x', 'x', NULL)"),
    ("ck_uploads_checked_unless_a_question", "UPDATE uploads SET points = NULL"),
    ("ck_uploads_checked_unless_a_question", "UPDATE uploads SET digest = NULL"),
    ("ck_uploads_amount_positive", "UPDATE uploads SET amount = 0"),
    ("ck_uploads_hidden_rows_known", "UPDATE uploads SET hidden_rows = 'what'"),
    ("ck_uploads_label_length", "UPDATE uploads SET label = repeat('x', 256)"),
    ("ck_uploads_sent_once_checked", "UPDATE uploads SET sent_at = now(), batch_ids = '{1}'"),
    ("ck_uploads_sent_as_batches", "UPDATE uploads SET batch_ids = '{1}'"),
    ("fk_upload_parts_upload_id", f"{_PART} VALUES (9, 1, '{{1}}', '{{a}}')"),
    ("pk_upload_parts", f"{_PART} VALUES (1, 1, '{{1}}', '{{a}}')"),
    ("ck_upload_parts_recipients_counted", f"{_PART} VALUES (1, 2, '{{}}', '{{}}')"),
    ("ck_upload_parts_recipients_counted", "UPDATE upload_parts SET lines = '{1}'"),
    ("ck_upload_parts_recipients_counted", "UPDATE upload_parts SET amounts = '{1}'"),
    ("ck_upload_parts_recipients_counted", "UPDATE upload_parts SET item_references = '{r}'"),
    ("ck_upload_parts_recipients_counted", "UPDATE upload_parts SET labels = '{l}'"),
]


def _write_the_rows() -> None:
    organization_id = books.make_organization(100)
    with transaction() as connection:
        for email in ("m@x.org", "n@x.org"):
            links.add(connection, organization_id, email, "M", "N", role="viewer", by=None)
    books.make_users("a@x.org")
    books.issue_now(organization_id, ["a@x.org", "b@x.org"], 10)
    books.queue_batch(organization_id, ["a@x.org", "b@x.org"], 1_000, atomic=True)
    books.drain_all(organization_id)
    books.reverse_now(organization_id, batch_id=1)
    books.queue_reversal(organization_id, batch_id=1)
    books.execute(
        "INSERT INTO uploads (organization_id, member_id, sandbox, token, name, content, recipients, points, digest)"
        f" VALUES ({organization_id}, 1, false, 'token', 'list', 'a', 2, 2, 'digest')",
        f"{_PART} VALUES (1, 1, '{{2,3}}', '{{a@x.org,b@x.org}}')",
    )


# The triggers would refuse before a constraint has its turn.
_WITHOUT_GUARDS = [
    f"ALTER TABLE {table} DISABLE TRIGGER USER"
    for table in (
        *("transactions", "batches", "refills", "users", "api_keys", "reversals", "reversal_entries"),
        *("unnumbered_events", "events", "event_logs", "members", "user_entries", "user_balances"),
    )
]


@pytest.mark.parametrize(("constraint", "statement"), REFUSED, ids=[name for name, _ in REFUSED])
def test_the_constraint_refuses_what_its_name_says(
    given: Callable[[Callable[[], None]], None], constraint: str, statement: str
) -> None:
    given(_write_the_rows)
    assert _of_the_table(books.refused_by(*_WITHOUT_GUARDS, statement)) == constraint


def _of_the_table(name: str | None) -> str | None:
    """Return the name that a partition's index has in the table of which it is a part; other names are the table's."""
    return next(iter(books.values(_OF_THE_TABLE, {"name": name})), name)


_OF_THE_TABLE = text("""
    SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhparent WHERE i.inhrelid = to_regclass(:name)
""")


@pytest.mark.usefixtures("reached")
def test_every_constraint_of_the_database_is_tried_here() -> None:
    names = books.values(_CONSTRAINTS)
    assert sorted(names) == sorted({name for name, _ in REFUSED})


_CONSTRAINTS = text(r"""
    SELECT conname FROM pg_constraint WHERE connamespace = 'public'::regnamespace AND contype IN ('c', 'f', 'u', 'x')
       AND conname <> 'ck_batches_sound'
    UNION
    SELECT (regexp_matches(prosrc, '\mck_\w+', 'g'))[1] FROM pg_proc WHERE proname = 'batch_is_sound'
    UNION
    SELECT relname FROM pg_index JOIN pg_class ON oid = indexrelid
    WHERE relnamespace = 'public'::regnamespace AND indisunique AND (NOT indisprimary OR indnatts > 1)
      AND NOT relispartition
""")
