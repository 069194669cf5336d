"""Ways to break the books past every function, and what an audit must name for each of them."""

from datetime import UTC, datetime, timedelta

from app.ledger.returns import extend
from app.postgres.database import transaction
from app.values.ids import POSITIONS
from tests.integration import books
from tests.integration.logs_of_events import number_all

ANN, BOB, CID, DAN = (f"{name}@example.com" for name in ("ann", "bob", "cid", "dan"))
EVE, FAY, GUS = (f"{name}@example.com" for name in ("eve", "fay", "gus"))

SUMS = "refills less debits plus reversals are the balance"
LAST_REFILL = "a last refill is the balance after the newest refill"
USERS = "a user's balance is the credited live transactions, less what was taken back"
LISTED = "what is held in full partitions is listed"
KEPT = "what is kept as held is the sum of the held transactions"
RECIPIENTS = "a batch's transactions are its recipients, in order"
ITEMS = "a transaction has the amount, label and reference of its item"
COVERED = "every recipient that the balance covers is debited"
FOLLOWS = "each balance follows from the one before"
CHAIN = "balances form one chain from zero to the present"
ONLY_ISSUED = "only an issued batch has transactions"
NOBODYS = "a batch belongs to an organization"
UNFOLDED = "only an issued live batch waits to be folded"
FLAGS = "flags follow the table of the contract"
ADDRESS = "a transaction's user is registered under its address"
TAKEN = "reversal entries are what was taken back of a transaction, up to its amount"
OF_USERS = "a user's entries are what was credited, and what was taken back of it"
TIMED = "an entry has the time of its issue, claim or reversal, and the points of the reversal"
ENTRIES = "a reversal has an entry for each transaction asked for, in order"
REVERSED = "a reversal's amount is the sum of its entries, all or none if atomic"
REVERSALS = "a reversal and its transactions have one organization and mode"
SEQUENCES = "event sequences rise by one, from the first kept to the last"
TOLD = "a batch that is over or was answered and a reversal that took something have one event each, of their type"
TELLS = "the events of a batch tell its send_at, its key and how many were credited"
KEY_DAYS = "a key's day counts the points of its batches, but for those refused, cancelled or not paid"
KEY_LIMITS = "a key's day has the limit of its key"
EVENTS = "a refill, a key, its limit of a day and its end have one event each, and these no others"
PLATFORM_TOLD = "a user, an organization and a refill have one event each in the platform's log, and these no others"
CLAIM_TOLD = "a user's claim at an organization has one event, of the same time and number of transactions"
STATE = "an organization is suspended and disabled as its log told last"
DATA = "an event's data is as it was numbered, and tells of a balance that was"
WITHIN = "a webhook stands within its log"
ANSWERED = "a batch and a reversal are as they were accepted and answered"
OWNED = "a key, a member and what they sent belong to one organization and mode"
HELD = "nothing stays held for a registered user"
CLAIMED = "no claim is later than held_until"
DAYS = "points are held for the days asked for, or longer if extended"
RETURNED = "returned points were held until held_until, and went back once"
LOOKED_AT = "a return looks at each batch when its held points end"
COUNTED = "what is counted of a day is what the books have of it"

_UNDEBITED = "UPDATE transactions SET debited = false, credited = false, user_id = NULL"

LIVE, SANDBOX = "organization 1, live", "organization 1, sandbox"


def write_the_books() -> None:
    """Write books that have one of everything; the ids in the statements below are those of this order."""
    organization_id = books.make_organization(100, sandbox_balance=50)
    books.make_organization()  # 2: nothing was ever refilled or issued.
    books.make_users(ANN, CID)  # 1 and 2.
    books.issue_now(organization_id, [ANN, BOB], 10)  # Batch 1: transaction 1 credited, 2 held.
    books.issue_now(organization_id, [CID, DAN], 15)  # Batch 2: 3 credited, 4 held,
    books.make_users(DAN)  # and then claimed by user 3.
    books.fold()
    books.issue_now(organization_id, [ANN, BOB, DAN], 30)  # Batch 3: 5 credited, 6 and 7 not debited.
    books.issue_now(organization_id, [ANN], 10, sandbox=True)  # Batch 4: transaction 8.
    books.queue_batch(organization_id, [ANN], 10)  # Batch 5 stays queued.
    with_items = books.make_organization(sandbox_balance=20)  # 3.
    batch_id = books.queue_batch(with_items, [ANN, BOB], [5, 7], sandbox=True, references=["a", "b"])  # Batch 6.
    books.drain_all(with_items)
    assert batch_id == 6
    reversing = books.make_organization(60)  # 4.
    batch_id = books.issue_now(reversing, [ANN, BOB, CID, DAN], 20)  # Batch 7: of 80 points 60 are paid.
    assert batch_id == 7
    books.reverse_now(reversing, batch_id=7, amount=5)  # Reversal 8: 5 of each, of Dan nothing.
    whole = books.reverse_now(reversing, transaction_ids=[917506, 917505])  # Reversal 9: what is left of two.
    assert whole == 9
    books.reverse_now(reversing, transaction_ids=[917504, 917505], atomic=True)  # Reversal 10: nothing.
    number_all()
    books.queue_reversal(reversing, transaction_ids=[917504])  # Reversal 11 stays queued.
    returning = books.make_organization(30)  # 5.
    batch_id = books.issue_now(returning, [EVE, FAY, GUS], 10, hold_days=10)  # Batch 12,
    assert batch_id == 12
    books.make_users(GUS)  # of which the last is claimed, by user 4,
    with transaction() as connection:  # the second extended,
        later = datetime.now(UTC) + timedelta(days=20)
        extend(connection, 12 * POSITIONS + 1, later, organization_id=returning, sandbox=False)
    books.let_days_pass(11)
    books.return_unclaimed()  # and the first returned, by reversal 13.


def _without(table: str, *constraints: str) -> str:
    """Word the statement that drops constraints, which would refuse the breach before any audit."""
    return f"ALTER TABLE {table} " + ", ".join(f"DROP CONSTRAINT ck_{table}_{name}" for name in constraints)


def _and_a_transaction(values: str) -> str:
    columns = "(organization_id, batch_id, position, balance, email, sandbox, debited, credited)"
    return f"INSERT INTO transactions {columns} VALUES (1, {values}, false, false, false)"


def _a_user_of_an_hour_ago(email: str) -> str:
    columns = "(email, email_key, first_name, last_name, created_at)"
    values = f"'{email}', '{email}', 'First', 'Last', now() - interval '1 hour'"
    return books.and_told(f"INSERT INTO users {columns} VALUES ({values})")


# What is wrong; what an audit names, as rule and subject; and the statements that make it so.
BREAKS: list[tuple[str, set[tuple[str, str]], list[str]]] = [
    (
        "held points that are kept as more than there are",
        {(KEPT, LIVE), (KEPT, "organization 3, sandbox")},
        [
            "UPDATE organizations SET held_points = held_points + 1 WHERE id = 1",
            "UPDATE organizations SET sandbox_held_count = sandbox_held_count - 1 WHERE id = 3",
        ],
    ),
    (
        "what is held and not listed, or listed for another address or of another organization",
        {(LISTED, f"transaction {id_}") for id_ in (POSITIONS + 1, 6 * POSITIONS + 1, 12 * POSITIONS + 1)},
        [
            "INSERT INTO held_listing (listed_to, listing_to) VALUES (13, 64)",
            f"INSERT INTO held_transactions VALUES (1, {6 * POSITIONS + 1}, 7)",
            f"INSERT INTO held_transactions VALUES (1, {12 * POSITIONS + 1}, held_hash('{FAY}', false, 0))",
        ],
    ),
    (
        "claims that are taken off twice",
        {(KEPT, LIVE), (KEPT, "organization 5, live")},
        ["INSERT INTO unfolded_claims SELECT * FROM unfolded_claims"],
    ),
    (
        "points given back that no batch of the key has taken",
        {(KEY_DAYS, "key 1 on 2026-01-31")},
        ["INSERT INTO points_given_back (api_key_id, day, points) VALUES (1, '2026-01-31', 5)"],
    ),
    (
        "a day of a key without a limit",
        {(KEY_LIMITS, "key 1 on 2026-01-31")},
        ["INSERT INTO key_days (api_key_id, day, daily_limit) VALUES (1, '2026-01-31', 5)"],
    ),
    (
        "a point from nowhere",
        {(SUMS, LIVE), (CHAIN, LIVE)},
        ["UPDATE organizations SET balance = balance + 1 WHERE id = 1"],
    ),
    (
        "sandbox points that are gone",
        {(SUMS, SANDBOX), (CHAIN, SANDBOX)},
        ["UPDATE organizations SET sandbox_balance = 0 WHERE id = 1"],
    ),
    (
        "a balance that every refill explains, but negative",
        {(SUMS, "organization 2, live")},
        [
            _without("organizations", "balance_not_negative"),
            _without("refills", "balance_not_negative", "amount_positive_unless_sandbox"),
            "INSERT INTO refills (organization_id, sandbox, amount, balance) VALUES (2, false, -1, -1)",
            "UPDATE organizations SET balance = -1, last_refill = -1 WHERE id = 2",
            (
                "INSERT INTO unnumbered_events (organization_id, sandbox, type, data) VALUES (2, false,"
                """ 'balance.refilled', '{"amount": -1, "organization": {"balance": -1}}'), (0, false,"""
                """ 'balance.refilled', '{"amount": -1, "organization": {"id": 2, "balance": -1}, "sandbox": false}')"""
            ),
        ],
    ),
    (
        "two batches paid from one balance, and one debit of the two lost",
        {(SUMS, LIVE), (CHAIN, LIVE), (COVERED, "batch 3")},
        [
            "UPDATE batches SET current_balance = current_balance + 20 WHERE id IN (2, 3)",
            "UPDATE transactions SET balance = balance + 20 WHERE batch_id IN (2, 3)",
            "UPDATE organizations SET balance = balance + 20 WHERE id = 1",
        ],
    ),
    (
        "a batch, right in itself, from a balance that never was",
        {(CHAIN, LIVE)},
        [
            "UPDATE batches SET current_balance = current_balance + 1 WHERE id = 1",
            "UPDATE transactions SET balance = balance + 1 WHERE batch_id = 1",
        ],
    ),
    (
        "one who was passed over, with the points for it left",
        {(COVERED, "batch 3"), (TELLS, "batch 3")},
        [
            "UPDATE batches SET debited_count = 0, debited_amount = 0, current_balance = 50 WHERE id = 3",
            f"{_UNDEBITED}, balance = 50 WHERE batch_id = 3",
            "UPDATE organizations SET balance = 50 WHERE id = 1",
        ],
    ),
    (
        "an atomic batch that the balance would have paid, whole",
        {(COVERED, "batch 4"), (ANSWERED, "batch 4"), (TELLS, "batch 4")},
        [
            "UPDATE batches SET debited_count = 0, debited_amount = 0, current_balance = 50 WHERE id = 4",
            "UPDATE batches SET atomic = true WHERE id = 4",
            f"{_UNDEBITED}, balance = 50 WHERE batch_id = 4",
            "UPDATE organizations SET sandbox_balance = 50 WHERE id = 1",
        ],
    ),
    (
        "an amount so large that no 64 bits hold what was debited",
        {(SUMS, LIVE), (USERS, "user 2"), (USERS, "user 3"), (FOLLOWS, "batch 2"), (ANSWERED, "batch 2")},
        [
            _without("batches", "debited_amount_of_the_debited"),
            "UPDATE batches SET amount = 9223372036854775807 WHERE id = 2",
        ],
    ),
    (
        "more debited than 64 bits hold",
        {(FOLLOWS, "batch 2"), (CHAIN, LIVE)},
        [
            _without("batches", "debited_amount_of_the_debited"),
            "UPDATE batches SET debited_amount = 9223372036854775807 WHERE id = 2",
        ],
    ),
    (
        "another amount of an item",
        {(ITEMS, "batch 6"), (SUMS, "organization 3, sandbox")},
        ["UPDATE transactions SET amount = 6 WHERE (batch_id, position) = (6, 0)"],
    ),
    (
        "an item's amount where all have the same",
        {(ITEMS, "batch 4")},
        ["UPDATE transactions SET amount = 10 WHERE batch_id = 4"],
    ),
    (
        "another reference",
        {(ITEMS, "batch 6")},
        ["UPDATE transactions SET reference = 'another' WHERE (batch_id, position) = (6, 1)"],
    ),
    (
        "a label of its own where none was asked for",
        {(ITEMS, "batch 1")},
        ["UPDATE transactions SET label = 'its own' WHERE (batch_id, position) = (1, 1)"],
    ),
    (
        "running totals that do not rise",
        {(ITEMS, "batch 6"), (FOLLOWS, "batch 6")},
        ["UPDATE batches SET running_totals = ARRAY[12, 12] WHERE id = 6"],
    ),
    (
        "an item that was passed over, with the points for it left",
        {(COVERED, "batch 6")},
        [
            "UPDATE batches SET debited_count = 1, debited_amount = 5, current_balance = 15 WHERE id = 6",
            f"{_UNDEBITED}, balance = 15 WHERE (batch_id, position) = (6, 1)",
            "UPDATE organizations SET sandbox_balance = 15 WHERE id = 3",
        ],
    ),
    (
        "a refill so large that no 64 bits hold what was there before it",
        {
            (SUMS, SANDBOX),
            (CHAIN, SANDBOX),
            (EVENTS, "refill of -9223372036854775807 to 50, no reference"),
            (EVENTS, "refill of 50 to 50, no reference"),
            (PLATFORM_TOLD, "organization 1, refill of -9223372036854775807 to 50, no reference, sandbox: t"),
            (PLATFORM_TOLD, "organization 1, refill of 50 to 50, no reference, sandbox: t"),
        },
        ["UPDATE refills SET amount = -9223372036854775807 WHERE sandbox AND organization_id = 1"],
    ),
    ("another last refill", {(LAST_REFILL, LIVE)}, ["UPDATE organizations SET last_refill = 99 WHERE id = 1"]),
    (
        "another last refill of the sandbox",
        {(LAST_REFILL, SANDBOX)},
        ["UPDATE organizations SET sandbox_last_refill = 0 WHERE id = 1"],
    ),
    (
        "a last refill where there was none",
        {(LAST_REFILL, "organization 2, live")},
        ["UPDATE organizations SET last_refill = 1 WHERE id = 2"],
    ),
    (
        "a user with too much",
        {(USERS, "user 1")},
        ["UPDATE user_balances SET points = points + 1 WHERE user_id = 1"],
    ),
    ("a user whose claim was lost", {(USERS, "user 3")}, ["UPDATE user_balances SET points = 0 WHERE user_id = 3"]),
    (
        "another address",
        {(RECIPIENTS, "batch 3")},
        [f"UPDATE transactions SET email = '{CID}' WHERE (batch_id, position) = (3, 1)"],
    ),
    (
        "another key",
        {(RECIPIENTS, "batch 3")},
        [f"UPDATE transactions SET email_key = '{CID}' WHERE (batch_id, position) = (3, 1)"],
    ),
    (
        "recipients in another order",
        {(RECIPIENTS, "batch 1")},
        ["UPDATE batches SET emails = ARRAY[emails[2], emails[1]] WHERE id = 1"],
    ),
    (
        "a recipient too few",
        {(RECIPIENTS, "batch 3")},
        ["DELETE FROM transactions WHERE (batch_id, position) = (3, 2)"],
    ),
    ("a recipient too many", {(RECIPIENTS, "batch 3")}, [_and_a_transaction(f"3, 3, 20, '{DAN}'")]),
    (
        "a gap in the places",
        {(RECIPIENTS, "batch 3")},
        ["UPDATE transactions SET position = 3 WHERE (batch_id, position) = (3, 2)"],
    ),
    (
        "the other mode",
        {(RECIPIENTS, "batch 3")},
        ["UPDATE transactions SET sandbox = true WHERE (batch_id, position) = (3, 2)"],
    ),
    (
        "a first balance that does not follow",
        {(FOLLOWS, "batch 1")},
        ["UPDATE transactions SET balance = balance + 1 WHERE (batch_id, position) = (1, 0)"],
    ),
    (
        "a last balance that does not follow",
        {(FOLLOWS, "batch 3")},
        ["UPDATE transactions SET balance = balance - 1 WHERE (batch_id, position) = (3, 2)"],
    ),
    (
        "the second recipient served before the first",
        {(FOLLOWS, "batch 3"), (TELLS, "batch 3")},
        ["UPDATE transactions SET debited = (position = 1), credited = false WHERE batch_id = 3"],
    ),
    (
        "a transaction of a batch that is still queued",
        {(ONLY_ISSUED, "batch 5")},
        [_and_a_transaction(f"5, 0, 20, '{ANN}'")],
    ),
    (
        "a transaction of a batch that there is not",
        {(ONLY_ISSUED, "batch 9")},
        [_and_a_transaction(f"9, 0, 20, '{ANN}'")],
    ),
    (
        "a transaction of another organization than its batch",
        {(RECIPIENTS, "batch 3")},
        ["UPDATE transactions SET organization_id = 2 WHERE (batch_id, position) = (3, 1)"],
    ),
    (
        "a batch of nobody",
        {(NOBODYS, "batch 5")},
        ["UPDATE batches SET organization_id = 9, api_key_id = NULL WHERE id = 5", books.DIGEST_BATCHES],
    ),
    (
        "a sandbox batch that waits to be folded",
        {(UNFOLDED, "batch 4"), (USERS, "user 1")},
        ["INSERT INTO unfolded_batches VALUES (1, 4)"],
    ),
    ("a queued batch that waits to be folded", {(UNFOLDED, "batch 5")}, ["INSERT INTO unfolded_batches VALUES (1, 5)"]),
    (
        "a batch that waits to be folded for another organization",
        {(UNFOLDED, "batch 3"), (OF_USERS, "transaction 393216"), (USERS, "user 1")},
        ["UPDATE unfolded_batches SET organization_id = 2 WHERE batch_id = 3"],
    ),
    (
        "points of two organizations that are exchanged",
        {(USERS, "user 1")},
        [
            "UPDATE user_balances SET points = points - 1 WHERE user_id = 1",
            "INSERT INTO user_balances VALUES (1, 2, 1)",
        ],
    ),
    (
        "entries of another organization",
        {(OF_USERS, "transaction 131072"), (REVERSALS, "reversal 8")},
        [
            "UPDATE user_entries SET organization_id = 2 WHERE transaction_id = 131072",
            "UPDATE reversal_entries SET organization_id = 2 WHERE (reversal_id, position) = (8, 0)",
        ],
    ),
    (
        "a batch folded without its credits",
        {(OF_USERS, "transaction 393216"), (USERS, "user 1")},
        ["DELETE FROM unfolded_batches WHERE batch_id = 3"],
    ),
    (
        "credited, but not debited",
        {(FLAGS, "transaction 393217")},
        [
            _without("transactions", "debited_is_credited_or_held"),
            "UPDATE events SET credited = credited + 1 WHERE batch_id = 3",
            "UPDATE transactions SET credited = true WHERE (batch_id, position) = (3, 1)",
        ],
    ),
    (
        "held for a user",
        {
            (OF_USERS, "transaction 131072"),
            (TIMED, "transaction 131072"),
            (FLAGS, "transaction 131072"),
            (TELLS, "batch 1"),
        },
        [
            _without("transactions", "debited_is_credited_or_held"),
            "UPDATE transactions SET credited = false WHERE (batch_id, position) = (1, 0)",
            "UPDATE user_balances SET points = points - 10 WHERE user_id = 1",
        ],
    ),
    (
        "claimed, but held, or in the sandbox by a live user",
        {
            (FLAGS, "transaction 131073"),
            (ADDRESS, "transaction 524288"),
            (CLAIM_TOLD, "user none"),
            (CLAIM_TOLD, "user 1"),
            (TELLS, "batch 4"),
        },
        [
            _without("transactions", "claimed_only_if_credited"),
            "UPDATE transactions SET claimed_at = now() WHERE (batch_id, position) IN ((1, 1), (4, 0))",
        ],
    ),
    (
        "somebody else's",
        {(ADDRESS, "transaction 393217")},
        ["UPDATE transactions SET user_id = 2 WHERE (batch_id, position) = (3, 1)"],
    ),
    (
        "held for long, for a user who has been there for long",
        {(HELD, "transaction 131073")},
        [
            "UPDATE batches SET issued_at = issued_at - interval '1 hour' WHERE id = 1",
            books.DIGEST_BATCHES,
            "UPDATE user_entries SET created_at = created_at - interval '1 hour' WHERE transaction_id = 131072",
            _a_user_of_an_hour_ago(BOB),
        ],
    ),
    (
        "a day that was counted, but was not",
        {(COUNTED, "organization 1, live, 2020-01-01")},
        [
            "INSERT INTO daily_sums VALUES (1, '2020-01-01', false, 5, 0, 0, 0, 0, 0, 0)",
            "UPDATE organizations SET counted_until = '2020-06-01Z' WHERE id = 1",
        ],
    ),
    (
        "points that came back from nowhere",
        {
            (TIMED, "transaction 917504"),
            (TAKEN, "transaction 917504"),
            (REVERSED, "reversal 8"),
            (SUMS, "organization 4, live"),
        },
        ["UPDATE reversal_entries SET reversed = 6 WHERE (reversal_id, position) = (8, 0)"],
    ),
    (
        "points taken back that no entry tells of",
        {(TAKEN, "transaction 131073")},
        ["UPDATE transactions SET points_left = 9 WHERE (batch_id, position) = (1, 1)"],
    ),
    (
        "more taken back than there was",
        {
            (OF_USERS, "transaction 917506"),
            (TIMED, "transaction 917506"),
            (TAKEN, "transaction 917506"),
            (REVERSED, "reversal 9"),
            (SUMS, "organization 4, live"),
        },
        [
            _without("transactions", "points_left_of_the_debited"),
            "UPDATE transactions SET points_left = -1 WHERE (batch_id, position) = (7, 2)",
            "UPDATE reversal_entries SET reversed = 16 WHERE (reversal_id, position) = (9, 0)",
        ],
    ),
    (
        "taken back whole, and something is left",
        {(TAKEN, "transaction 917505")},
        ["UPDATE transactions SET points_left = 1 WHERE (batch_id, position) = (7, 1)"],
    ),
    (
        "taken back in part, and nothing is left",
        {(OF_USERS, "transaction 917504"), (TAKEN, "transaction 917504")},
        ["UPDATE transactions SET points_left = 0 WHERE (batch_id, position) = (7, 0)"],
    ),
    (
        "taken back from somebody who was never paid",
        {
            (TAKEN, "transaction 917507"),
            (SUMS, "organization 4, live"),
            (REVERSED, "reversal 8"),
            (ANSWERED, "reversal 8"),
        },
        [
            _without("transactions", "points_left_of_the_debited"),
            "UPDATE transactions SET points_left = 15 WHERE (batch_id, position) = (7, 3)",
            "UPDATE reversal_entries SET reversed = 5, code = NULL WHERE (reversal_id, position) = (8, 3)",
        ],
    ),
    (
        "a user's entry that is gone, and one that is another's",
        {(OF_USERS, "transaction 131072"), (OF_USERS, "transaction 262144")},
        [
            "DELETE FROM user_entries WHERE transaction_id = 131072",
            "UPDATE user_entries SET user_id = 1 WHERE transaction_id = 262144",
        ],
    ),
    (
        "a user's entries of a credit that is told twice, and of one that there is not",
        {(OF_USERS, "transaction 131072"), (OF_USERS, "transaction 393216")},
        [
            "INSERT INTO user_entries SELECT * FROM user_entries WHERE transaction_id = 131072",
            "INSERT INTO user_entries SELECT 1, 1, issued_at, 393216 FROM batches WHERE id = 3",
        ],
    ),
    (
        "a user's entries of other times",
        {(TIMED, "transaction 131072"), (TIMED, "transaction 917504")},
        ["UPDATE user_entries SET created_at = 'epoch' WHERE transaction_id IN (131072, 917504)"],
    ),
    (
        "an entry that is gone",
        {(ENTRIES, "reversal 8"), (ANSWERED, "reversal 8")},
        ["DELETE FROM reversal_entries WHERE (reversal_id, position) = (8, 3)"],
    ),
    (
        "entries in another order",
        {(ENTRIES, "reversal 10")},
        ["UPDATE reversal_entries SET transaction_position = 1 - transaction_position WHERE reversal_id = 10"],
    ),
    (
        "an entry of a reversal that waits",
        {(ENTRIES, "reversal 11"), (ANSWERED, "reversal 11")},
        ["INSERT INTO reversal_entries VALUES (11, 4, 7, 0, 0, 0, 'already_reversed')"],
    ),
    (
        "another sum than that of the entries",
        {(REVERSED, "reversal 8"), (CHAIN, "organization 4, live")},
        ["UPDATE reversals SET reversed_amount = 14 WHERE id = 8"],
    ),
    (
        "an atomic reversal that took a part",
        {(REVERSED, "reversal 8"), (ANSWERED, "reversal 8")},
        ["UPDATE reversals SET atomic = true WHERE id = 8"],
    ),
    (
        "another amount than was asked for",
        {(REVERSED, "reversal 8")},
        ["UPDATE reversals SET amount = 4 WHERE id = 8", books.DIGEST_REVERSALS],
    ),
    (
        "a reversal from a balance that never was",
        {(CHAIN, "organization 4, live")},
        ["UPDATE reversals SET current_balance = current_balance + 1 WHERE id = 8"],
    ),
    (
        "a reversal of another organization's batch",
        {(REVERSALS, "reversal 11"), (ANSWERED, "reversal 11"), (OWNED, "reversal 11")},
        [
            "UPDATE reversals SET organization_id = 2 WHERE id = 11",
            "UPDATE reversals SET transaction_ids = NULL, batch_id = 5 WHERE id = 11",
        ],
    ),
    (
        "a claim after the end",
        {(CLAIMED, "transaction 1572866")},
        [
            "UPDATE transactions SET claimed_at = now() WHERE (batch_id, position) = (12, 2)",
            "UPDATE events SET created_at = now() WHERE organization_id = 5 AND type = 'transaction.claimed'",
            "UPDATE user_entries SET created_at = now() WHERE transaction_id = 1572866",
        ],
    ),
    (
        "held for other days than asked for",
        {(DAYS, "batch 12")},
        ["UPDATE batches SET hold_days = 9 WHERE id = 12", books.DIGEST_BATCHES],
    ),
    (
        "an extension to a sooner moment",
        {(DAYS, "batch 12"), (LOOKED_AT, "transaction 1572865")},
        ["UPDATE transactions SET held_until = held_until - interval '30 d' WHERE (batch_id, position) = (12, 1)"],
    ),
    (
        "an end that nobody will look at",
        {(LOOKED_AT, "transaction 1572865")},
        ["UPDATE batches SET return_at = NULL WHERE id = 12"],
    ),
    (
        "a return before the end",
        {(RETURNED, "transaction 1572864")},
        ["UPDATE transactions SET held_until = now() + interval '1 h' WHERE (batch_id, position) = (12, 0)"],
    ),
    (
        "a return that left no mark",
        {(RETURNED, "transaction 1572864")},
        ["UPDATE transactions SET returned_at = NULL WHERE (batch_id, position) = (12, 0)"],
    ),
    (
        "a claim after a return",
        {(OF_USERS, "transaction 1572864"), (RETURNED, "transaction 1572864"), (TELLS, "batch 12")},
        [
            _without("transactions", "returned_whole_and_never_credited"),
            _a_user_of_an_hour_ago(EVE),
            "UPDATE transactions SET credited = true, user_id = 5 WHERE (batch_id, position) = (12, 0)",
        ],
    ),
    (
        "a return by a caller",
        {(RETURNED, "transaction 1572864"), (ENTRIES, "reversal 13"), (ANSWERED, "reversal 13"), (TOLD, "reversal 13")},
        ["UPDATE reversals SET is_return = false WHERE id = 13"],
    ),
    (
        "a reversal of nobody",
        {(REVERSALS, "reversal 11")},
        ["UPDATE reversals SET organization_id = 9, api_key_id = NULL WHERE id = 11", books.DIGEST_REVERSALS],
    ),
    (
        "an event that is gone",
        {(SEQUENCES, LIVE), (CLAIM_TOLD, "user 3")},
        ["DELETE FROM events WHERE organization_id = 1 AND type = 'transaction.claimed'"],
    ),
    (
        "a registration that is told twice",
        {(PLATFORM_TOLD, "user 2")},
        [
            (
                "INSERT INTO unnumbered_events (organization_id, sandbox, type, data)"
                """ VALUES (0, false, 'user.registered', '{"user": {"id": 2}}')"""
            )
        ],
    ),
    (
        "a user that nobody was told of",
        {(PLATFORM_TOLD, "user 5")},
        ["INSERT INTO users (email, email_key, first_name, last_name) VALUES ('x@x.org', 'x@x.org', 'First', 'Last')"],
    ),
    (
        "an event of the platform that is gone",
        {(SEQUENCES, "the platform"), (PLATFORM_TOLD, "organization 2")},
        [
            (
                "DELETE FROM events WHERE organization_id = 0 AND type = 'organization.created'"
                " AND data #>> '{organization,id}' = '2'"
            )
        ],
    ),
    (
        "an event in place of another that is gone",
        {(SEQUENCES, SANDBOX)},
        ["UPDATE events SET sequence = sequence + 1 WHERE organization_id = 1 AND sandbox AND sequence = 2"],
    ),
    (
        "a log that has forgotten how far it goes",
        {(SEQUENCES, LIVE)},
        ["DELETE FROM event_logs WHERE organization_id = 1 AND NOT sandbox"],
    ),
    (
        "a log that lost its last event with its number",
        {(TOLD, "reversal 9")},
        [
            "DELETE FROM events WHERE reversal_id = 9",
            "UPDATE event_logs SET last_sequence = last_sequence - 1 WHERE organization_id = 4 AND NOT sandbox",
        ],
    ),
    (
        "a batch that is told twice",
        {(TOLD, "batch 1")},
        [
            (
                "INSERT INTO unnumbered_events (organization_id, sandbox, type, batch_id, credited)"
                " VALUES (1, false, 'batch.issued', 1, 1)"
            )
        ],
    ),
    (
        "a batch told as issued that is not",
        {(TOLD, "batch 5")},
        [
            (
                "INSERT INTO unnumbered_events (organization_id, sandbox, type, batch_id, credited)"
                " VALUES (1, false, 'batch.issued', 5, 1)"
            )
        ],
    ),
    (
        "a batch told to another organization",
        {(TOLD, "batch 6"), (SEQUENCES, "organization 3, sandbox"), (SEQUENCES, "organization 2, sandbox")},
        ["UPDATE events SET organization_id = 2, sequence = 1 WHERE batch_id = 6"],
    ),
    (
        "events dropped before their time",
        {(TOLD, "batch 2"), (TOLD, "batch 3"), (CLAIM_TOLD, "user 3"), (EVENTS, "key 2, sandbox: t")},
        [
            "DELETE FROM events WHERE organization_id = 1 AND NOT sandbox",
            (
                "UPDATE event_logs SET dropped_to = last_sequence,"
                " dropped_until = (SELECT issued_at FROM batches WHERE id = 1)"
                " WHERE organization_id = 1 AND NOT sandbox"
            ),
        ],
    ),
]
