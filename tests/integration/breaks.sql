-- Ways to break the books of `breaks.py`: what is wrong, each rule that an audit names with its subjects,
-- and the statements that make it so.

-- held points that are kept as more than there are
-- what is kept as held is the sum of the held transactions: organization 1, live; organization 3, sandbox
UPDATE organizations SET held_points = held_points + 1 WHERE id = 1;
UPDATE organizations SET sandbox_held_count = sandbox_held_count - 1 WHERE id = 3;

-- what is held and not listed, or listed for another address or of another organization
-- what is held in full partitions is listed: transaction 131073; transaction 1572865; transaction 786433
INSERT INTO held_listing (listed_to, listing_to) VALUES (13, 64);
INSERT INTO held_transactions VALUES (1, 786433, 7);
INSERT INTO held_transactions VALUES (1, 1572865, held_hash('fay@example.com', false, 0));

-- claims that are taken off twice
-- what is kept as held is the sum of the held transactions: organization 1, live; organization 5, live
INSERT INTO unfolded_claims SELECT * FROM unfolded_claims;

-- points given back that no batch of the key has taken
-- a key's day counts the points of its batches, but for those refused, cancelled or not paid: key 1 on 2026-01-31
INSERT INTO points_given_back (api_key_id, day, points) VALUES (1, '2026-01-31', 5);

-- a day of a key without a limit
-- a key's day has the limit of its key: key 1 on 2026-01-31
INSERT INTO key_days (api_key_id, day, daily_limit) VALUES (1, '2026-01-31', 5);

-- a batch that is to pay a recipient who was erased, and one that is to pay nobody
-- who was erased before the issue counts for nothing, and everybody else in full: batch 5; batch 19
UPDATE batches SET emails = '{erased-1}' WHERE id = 5;
UPDATE batches SET payable_totals = '{0}' WHERE id = 19;

-- a debited recipient of a batch that counts for nothing
-- who was erased before the issue counts for nothing, and everybody else in full: batch 7
-- each balance follows from the one before: batch 7
UPDATE batches SET payable_totals = '{20, 20, 40, 60}' WHERE id = 7;

-- a point from nowhere
-- balances form one chain from zero to the present: organization 1, live
-- refills less debits plus reversals are the balance: organization 1, live
UPDATE organizations SET balance = balance + 1 WHERE id = 1;

-- sandbox points that are gone
-- balances form one chain from zero to the present: organization 1, sandbox
-- refills less debits plus reversals are the balance: organization 1, sandbox
UPDATE organizations SET sandbox_balance = 0 WHERE id = 1;

-- a balance that every refill explains, but negative
-- refills less debits plus reversals are the balance: organization 2, live
ALTER TABLE organizations DROP CONSTRAINT ck_organizations_balance_not_negative;
ALTER TABLE refills DROP CONSTRAINT ck_refills_balance_not_negative, DROP CONSTRAINT
    ck_refills_below_zero_named_or_of_a_sandbox;
INSERT INTO refills (organization_id, sandbox, amount, balance) VALUES (2, false, -1, -1);
UPDATE organizations SET balance = -1, last_refill = -1 WHERE id = 2;
INSERT INTO unnumbered_events (organization_id, sandbox, type, data)
    VALUES (2, false, 'balance.refilled', '{"amount": -1, "organization": {"balance": -1}}'), (0, false,
    'balance.refilled', '{"amount": -1, "organization": {"id": 2, "balance": -1}, "sandbox": false}');

-- two batches paid from one balance, and one debit of the two lost
-- balances form one chain from zero to the present: organization 1, live
-- every recipient that the balance covers is debited: batch 3
-- refills less debits plus reversals are the balance: organization 1, live
UPDATE batches SET current_balance = current_balance + 20 WHERE id IN (2, 3);
UPDATE transactions SET balance = balance + 20 WHERE batch_id IN (2, 3);
UPDATE organizations SET balance = balance + 20 WHERE id = 1;

-- a batch, right in itself, from a balance that never was
-- balances form one chain from zero to the present: organization 1, live
UPDATE batches SET current_balance = current_balance + 1 WHERE id = 1;
UPDATE transactions SET balance = balance + 1 WHERE batch_id = 1;

-- one who was passed over, with the points for it left
-- every recipient that the balance covers is debited: batch 3
-- the events of a batch tell its send_at, its key and how many were credited: batch 3
UPDATE batches SET debited_count = 0, debited_amount = 0, current_balance = 50 WHERE id = 3;
UPDATE transactions SET debited = false, credited = false, user_id = NULL, balance = 50 WHERE batch_id = 3;
UPDATE organizations SET balance = 50 WHERE id = 1;

-- an atomic batch that the balance would have paid, whole
-- a batch and a reversal are as they were accepted and answered: batch 4
-- every recipient that the balance covers is debited: batch 4
-- the events of a batch tell its send_at, its key and how many were credited: batch 4
UPDATE batches SET debited_count = 0, debited_amount = 0, current_balance = 50 WHERE id = 4;
UPDATE batches SET atomic = true WHERE id = 4;
UPDATE transactions SET debited = false, credited = false, user_id = NULL, balance = 50 WHERE batch_id = 4;
UPDATE organizations SET sandbox_balance = 50 WHERE id = 1;

-- an amount so large that no 64 bits hold what was debited
-- a batch and a reversal are as they were accepted and answered: batch 2
-- a user's balance is the credited live transactions, less what was taken back: user 2; user 3
-- each balance follows from the one before: batch 2
-- refills less debits plus reversals are the balance: organization 1, live
ALTER TABLE batches DROP CONSTRAINT ck_batches_sound;
UPDATE batches SET amount = 9223372036854775807 WHERE id = 2;

-- more debited than 64 bits hold
-- balances form one chain from zero to the present: organization 1, live
-- each balance follows from the one before: batch 2
ALTER TABLE batches DROP CONSTRAINT ck_batches_sound;
UPDATE batches SET debited_amount = 9223372036854775807 WHERE id = 2;

-- another amount of an item
-- a transaction has the amount, label and reference of its item: batch 6
-- refills less debits plus reversals are the balance: organization 3, sandbox
UPDATE transactions SET amount = 6 WHERE (batch_id, position) = (6, 0);

-- an item's amount where all have the same
-- a transaction has the amount, label and reference of its item: batch 4
UPDATE transactions SET amount = 10 WHERE batch_id = 4;

-- another reference
-- a transaction has the amount, label and reference of its item: batch 6
UPDATE transactions SET reference = 'another' WHERE (batch_id, position) = (6, 1);

-- a label of its own where none was asked for
-- a transaction has the amount, label and reference of its item: batch 1
UPDATE transactions SET label = 'its own' WHERE (batch_id, position) = (1, 1);

-- running totals that do not rise
-- a transaction has the amount, label and reference of its item: batch 6
-- each balance follows from the one before: batch 6
UPDATE batches SET running_totals = ARRAY[12, 12] WHERE id = 6;

-- an item that was passed over, with the points for it left
-- every recipient that the balance covers is debited: batch 6
UPDATE batches SET debited_count = 1, debited_amount = 5, current_balance = 15 WHERE id = 6;
UPDATE transactions SET debited = false, credited = false, user_id = NULL, balance = 15
    WHERE (batch_id, position) = (6, 1);
UPDATE organizations SET sandbox_balance = 15 WHERE id = 3;

-- a refill so large that no 64 bits hold what was there before it
-- a refill, a key, its limit of a day and its end have one event each, and these no others: refill of
--   -9223372036854775807 to 50, no reference; refill of 50 to 50, no reference
-- a user, an organization and a refill have one event each in the platform's log, and these no others: organization 1,
--   refill of -9223372036854775807 to 50, no reference, sandbox: t; organization 1, refill of 50 to 50, no reference,
--   sandbox: t
-- balances form one chain from zero to the present: organization 1, sandbox
-- refills less debits plus reversals are the balance: organization 1, sandbox
UPDATE refills SET amount = -9223372036854775807 WHERE sandbox AND organization_id = 1;

-- another last refill
-- a last refill is the balance after the newest refill: organization 1, live
UPDATE organizations SET last_refill = 99 WHERE id = 1;

-- another last refill of the sandbox
-- a last refill is the balance after the newest refill: organization 1, sandbox
UPDATE organizations SET sandbox_last_refill = 0 WHERE id = 1;

-- a last refill where there was none
-- a last refill is the balance after the newest refill: organization 2, live
UPDATE organizations SET last_refill = 1 WHERE id = 2;

-- a user with too much
-- a user's balance is the credited live transactions, less what was taken back: user 1
UPDATE user_balances SET points = points + 1 WHERE user_id = 1;

-- a user whose claim was lost
-- a user's balance is the credited live transactions, less what was taken back: user 3
UPDATE user_balances SET points = 0 WHERE user_id = 3;

-- another address
-- a batch's transactions are its recipients, in order: batch 3
UPDATE transactions SET email = 'cid@example.com' WHERE (batch_id, position) = (3, 1);

-- another key
-- a batch's transactions are its recipients, in order: batch 3
UPDATE transactions SET email_key = 'cid@example.com' WHERE (batch_id, position) = (3, 1);

-- recipients in another order
-- a batch's transactions are its recipients, in order: batch 1
UPDATE batches SET emails = ARRAY[emails[2], emails[1]] WHERE id = 1;

-- a recipient too few
-- a batch's transactions are its recipients, in order: batch 3
DELETE FROM transactions WHERE (batch_id, position) = (3, 2);

-- a recipient too many
-- a batch's transactions are its recipients, in order: batch 3
INSERT INTO transactions (organization_id, batch_id, position, balance, email, sandbox, debited, credited)
    VALUES (1, 3, 3, 20, 'dan@example.com', false, false, false);

-- a gap in the places
-- a batch's transactions are its recipients, in order: batch 3
UPDATE transactions SET position = 3 WHERE (batch_id, position) = (3, 2);

-- the other mode
-- a batch's transactions are its recipients, in order: batch 3
UPDATE transactions SET sandbox = true WHERE (batch_id, position) = (3, 1);

-- a first balance that does not follow
-- each balance follows from the one before: batch 1
UPDATE transactions SET balance = balance + 1 WHERE (batch_id, position) = (1, 0);

-- a last balance that does not follow
-- each balance follows from the one before: batch 3
UPDATE transactions SET balance = balance - 1 WHERE (batch_id, position) = (3, 2);

-- the second recipient served before the first
-- each balance follows from the one before: batch 3
-- the events of a batch tell its send_at, its key and how many were credited: batch 3
UPDATE transactions SET debited = (position = 1), credited = false WHERE batch_id = 3;

-- a transaction of a batch that is still queued
-- only an issued batch has transactions: batch 5
INSERT INTO transactions (organization_id, batch_id, position, balance, email, sandbox, debited, credited)
    VALUES (1, 5, 0, 20, 'ann@example.com', false, false, false);

-- a transaction of a batch that there is not
-- only an issued batch has transactions: batch 9
INSERT INTO transactions (organization_id, batch_id, position, balance, email, sandbox, debited, credited)
    VALUES (1, 9, 0, 20, 'ann@example.com', false, false, false);

-- a transaction of another organization than its batch
-- a batch's transactions are its recipients, in order: batch 3
UPDATE transactions SET organization_id = 2 WHERE (batch_id, position) = (3, 1);

-- a batch of nobody
-- a batch belongs to an organization: batch 5
UPDATE batches SET organization_id = 9, api_key_id = NULL WHERE id = 5;
$DIGEST_BATCHES;

-- a sandbox batch that waits to be folded
-- a user's balance is the credited live transactions, less what was taken back: user 91
-- only an issued live batch waits to be folded: batch 4
INSERT INTO unfolded_batches VALUES (1, 4);

-- a queued batch that waits to be folded
-- only an issued live batch waits to be folded: batch 5
INSERT INTO unfolded_batches VALUES (1, 5);

-- a batch that waits to be folded for another organization
-- a user's balance is the credited live transactions, less what was taken back: user 1
-- a user's entries are what was credited, and what was taken back of it: transaction 393216
-- only an issued live batch waits to be folded: batch 3
UPDATE unfolded_batches SET organization_id = 2 WHERE batch_id = 3;

-- points of two organizations that are exchanged
-- a user's balance is the credited live transactions, less what was taken back: user 1
UPDATE user_balances SET points = points - 1 WHERE user_id = 1;
INSERT INTO user_balances VALUES (1, 2, 1);

-- entries of another organization
-- a reversal and its transactions have one organization and mode: reversal 8
-- a user's entries are what was credited, and what was taken back of it: transaction 131072
UPDATE user_entries SET organization_id = 2 WHERE transaction_id = 131072;
UPDATE reversal_entries SET organization_id = 2 WHERE (reversal_id, position) = (8, 0);

-- a batch folded without its credits
-- a user's balance is the credited live transactions, less what was taken back: user 1
-- a user's entries are what was credited, and what was taken back of it: transaction 393216
DELETE FROM unfolded_batches WHERE batch_id = 3;

-- credited, but not debited
-- flags follow the table of the contract: transaction 393217
ALTER TABLE transactions DROP CONSTRAINT ck_transactions_debited_is_credited_or_held;
UPDATE events SET credited = credited + 1 WHERE batch_id = 3;
UPDATE transactions SET credited = true WHERE (batch_id, position) = (3, 1);

-- held for a user
-- a user's entries are what was credited, and what was taken back of it: transaction 131072
-- an entry has the time of its issue, claim or reversal, and the points of the reversal: transaction 131072
-- flags follow the table of the contract: transaction 131072
-- the events of a batch tell its send_at, its key and how many were credited: batch 1
ALTER TABLE transactions DROP CONSTRAINT ck_transactions_debited_is_credited_or_held;
UPDATE transactions SET credited = false WHERE (batch_id, position) = (1, 0);
UPDATE user_balances SET points = points - 10 WHERE user_id = 1;

-- claimed, but held, or in the sandbox without an event
-- a user's claim at an organization has one event, of the same time and number of transactions: user 91; user none
-- flags follow the table of the contract: transaction 131073
-- the events of a batch tell its send_at, its key and how many were credited: batch 4
ALTER TABLE transactions DROP CONSTRAINT ck_transactions_claimed_only_if_credited;
UPDATE transactions SET claimed_at = now() WHERE (batch_id, position) IN ((1, 1), (4, 0));

-- a live user, or one of another sandbox, in a sandbox
-- a transaction's user is registered under its address: transaction 524288; transaction 786432
UPDATE transactions SET user_id = CASE batch_id WHEN 4 THEN 1 ELSE 91 END WHERE (batch_id, position) IN ((4, 0), (6, 0));

-- somebody else's
-- a transaction's user is registered under its address: transaction 393217
UPDATE transactions SET user_id = 2 WHERE (batch_id, position) = (3, 1);

-- held for long, for a user who has been there for long
-- nothing stays held for a registered user: transaction 131073
UPDATE batches SET issued_at = issued_at - interval '1 hour' WHERE id = 1;
$DIGEST_BATCHES;
UPDATE user_entries SET created_at = created_at - interval '1 hour' WHERE transaction_id = 131072;
$BOB_OF_AN_HOUR_AGO;

-- a day that was counted, but was not
-- what is counted of a day is what the books have of it: organization 1, live, 2020-01-01
INSERT INTO daily_sums VALUES (1, '2020-01-01', false, 5, 0, 0, 0, 0, 0, 0);
UPDATE organizations SET counted_until = '2020-06-01Z' WHERE id = 1;

-- points that came back from nowhere
-- a reversal's amount is the sum of its entries, all or none if atomic: reversal 8
-- an entry has the time of its issue, claim or reversal, and the points of the reversal: transaction 917504
-- refills less debits plus reversals are the balance: organization 4, live
-- reversal entries are what was taken back of a transaction, up to its amount: transaction 917504
UPDATE reversal_entries SET reversed = 6 WHERE (reversal_id, position) = (8, 0);

-- points taken back that no entry tells of
-- reversal entries are what was taken back of a transaction, up to its amount: transaction 131073
UPDATE transactions SET points_left = 9 WHERE (batch_id, position) = (1, 1);

-- more taken back than there was
-- a reversal's amount is the sum of its entries, all or none if atomic: reversal 9
-- a user's entries are what was credited, and what was taken back of it: transaction 917506
-- an entry has the time of its issue, claim or reversal, and the points of the reversal: transaction 917506
-- refills less debits plus reversals are the balance: organization 4, live
-- reversal entries are what was taken back of a transaction, up to its amount: transaction 917506
ALTER TABLE transactions DROP CONSTRAINT ck_transactions_points_left_of_the_debited;
UPDATE transactions SET points_left = -1 WHERE (batch_id, position) = (7, 2);
UPDATE reversal_entries SET reversed = 16 WHERE (reversal_id, position) = (9, 0);

-- taken back whole, and something is left
-- reversal entries are what was taken back of a transaction, up to its amount: transaction 917505
UPDATE transactions SET points_left = 1 WHERE (batch_id, position) = (7, 1);

-- taken back in part, and nothing is left
-- a user's entries are what was credited, and what was taken back of it: transaction 917504
-- reversal entries are what was taken back of a transaction, up to its amount: transaction 917504
UPDATE transactions SET points_left = 0 WHERE (batch_id, position) = (7, 0);

-- taken back from somebody who was never paid
-- a batch and a reversal are as they were accepted and answered: reversal 8
-- a reversal's amount is the sum of its entries, all or none if atomic: reversal 8
-- refills less debits plus reversals are the balance: organization 4, live
-- reversal entries are what was taken back of a transaction, up to its amount: transaction 917507
ALTER TABLE transactions DROP CONSTRAINT ck_transactions_points_left_of_the_debited;
UPDATE transactions SET points_left = 15 WHERE (batch_id, position) = (7, 3);
UPDATE reversal_entries SET reversed = 5, code = NULL WHERE (reversal_id, position) = (8, 3);

-- a user's entry that is gone, and one that is another's
-- a user's entries are what was credited, and what was taken back of it: transaction 131072; transaction 262144
DELETE FROM user_entries WHERE transaction_id = 131072;
UPDATE user_entries SET user_id = 1 WHERE transaction_id = 262144;

-- a user's entries of a credit that is told twice, and of one that there is not
-- a user's entries are what was credited, and what was taken back of it: transaction 131072; transaction 393216
INSERT INTO user_entries SELECT * FROM user_entries WHERE transaction_id = 131072;
INSERT INTO user_entries SELECT 1, 1, issued_at, 393216 FROM batches WHERE id = 3;

-- a user's entries of other times
-- an entry has the time of its issue, claim or reversal, and the points of the reversal: transaction 131072;
--   transaction 917504
UPDATE user_entries SET created_at = 'epoch' WHERE transaction_id IN (131072, 917504);

-- an entry that is gone
-- a batch and a reversal are as they were accepted and answered: reversal 8
-- a reversal has an entry for each transaction asked for, in order: reversal 8
DELETE FROM reversal_entries WHERE (reversal_id, position) = (8, 3);

-- entries in another order
-- a reversal has an entry for each transaction asked for, in order: reversal 10
UPDATE reversal_entries SET transaction_position = 1 - transaction_position WHERE reversal_id = 10;

-- an entry of a reversal that waits
-- a batch and a reversal are as they were accepted and answered: reversal 11
-- a reversal has an entry for each transaction asked for, in order: reversal 11
INSERT INTO reversal_entries VALUES (11, 4, 7, 0, 0, 0, 'already_reversed');

-- another sum than that of the entries
-- a reversal's amount is the sum of its entries, all or none if atomic: reversal 8
-- balances form one chain from zero to the present: organization 4, live
UPDATE reversals SET reversed_amount = 14 WHERE id = 8;

-- an atomic reversal that took a part
-- a batch and a reversal are as they were accepted and answered: reversal 8
-- a reversal's amount is the sum of its entries, all or none if atomic: reversal 8
UPDATE reversals SET atomic = true WHERE id = 8;

-- another amount than was asked for
-- a reversal's amount is the sum of its entries, all or none if atomic: reversal 8
UPDATE reversals SET amount = 4 WHERE id = 8;
$DIGEST_REVERSALS;

-- a reversal from a balance that never was
-- balances form one chain from zero to the present: organization 4, live
UPDATE reversals SET current_balance = current_balance + 1 WHERE id = 8;

-- a reversal of another organization's batch
-- a batch and a reversal are as they were accepted and answered: reversal 11
-- a key, a member and what they sent belong to one organization and mode: reversal 11
-- a reversal and its transactions have one organization and mode: reversal 11
UPDATE reversals SET organization_id = 2 WHERE id = 11;
UPDATE reversals SET transaction_ids = NULL, batch_id = 5 WHERE id = 11;

-- a claim after the end
-- no claim is later than held_until: transaction 1572866
UPDATE transactions SET claimed_at = now() WHERE (batch_id, position) = (12, 2);
UPDATE events SET created_at = now() WHERE organization_id = 5 AND type = 'transaction.claimed';
UPDATE user_entries SET created_at = now() WHERE transaction_id = 1572866;

-- held for other days than asked for
-- points are held for the days asked for, or longer if extended: batch 12
UPDATE batches SET hold_days = 9 WHERE id = 12;
$DIGEST_BATCHES;

-- an extension to a sooner moment
-- a return looks at each batch when its held points end: transaction 1572865
-- points are held for the days asked for, or longer if extended: batch 12
UPDATE transactions SET held_until = held_until - interval '30 d' WHERE (batch_id, position) = (12, 1);

-- an end that nobody will look at
-- a return looks at each batch when its held points end: transaction 1572865
UPDATE batches SET return_at = NULL WHERE id = 12;

-- a return before the end
-- returned points were held until held_until, and went back once: transaction 1572864
UPDATE transactions SET held_until = now() + interval '1 h' WHERE (batch_id, position) = (12, 0);

-- a return that left no mark
-- returned points were held until held_until, and went back once: transaction 1572864
UPDATE transactions SET returned_at = NULL WHERE (batch_id, position) = (12, 0);

-- a claim after a return
-- a user's entries are what was credited, and what was taken back of it: transaction 1572864
-- returned points were held until held_until, and went back once: transaction 1572864
-- the events of a batch tell its send_at, its key and how many were credited: batch 12
ALTER TABLE transactions DROP CONSTRAINT ck_transactions_returned_whole_and_never_credited;
$EVE_OF_AN_HOUR_AGO;
UPDATE transactions SET credited = true, user_id = 5 WHERE (batch_id, position) = (12, 0);

-- a return by a caller
-- a batch and a reversal are as they were accepted and answered: reversal 13
-- a batch that is over or was answered and a reversal that took something have one event each, of their type: reversal
--   13
-- a reversal has an entry for each transaction asked for, in order: reversal 13
-- returned points were held until held_until, and went back once: transaction 1572864
UPDATE reversals SET is_return = false WHERE id = 13;

-- a reversal of nobody
-- a reversal and its transactions have one organization and mode: reversal 11
UPDATE reversals SET organization_id = 9, api_key_id = NULL WHERE id = 11;
$DIGEST_REVERSALS;

-- an event that is gone
-- a user's claim at an organization has one event, of the same time and number of transactions: user 3
-- event sequences rise by one, from the first kept to the last: organization 1, live
DELETE FROM events WHERE organization_id = 1 AND type = 'transaction.claimed';

-- a registration that is told twice
-- a user, an organization and a refill have one event each in the platform's log, and these no others: user 2
INSERT INTO unnumbered_events (organization_id, sandbox, type, data)
    VALUES (0, false, 'user.registered', '{"user": {"id": 2}}');

-- a user that nobody was told of
-- a user, an organization and a refill have one event each in the platform's log, and these no others: user 5
INSERT INTO users (email, email_key, first_name, last_name) VALUES ('x@x.org', 'x@x.org', 'First', 'Last');

-- an event of the platform that is gone
-- a user, an organization and a refill have one event each in the platform's log, and these no others: organization 2
-- event sequences rise by one, from the first kept to the last: the platform
DELETE FROM events WHERE organization_id = 0 AND type = 'organization.created' AND data #>> '{organization,id}' = '2';

-- an event in place of another that is gone
-- event sequences rise by one, from the first kept to the last: organization 1, sandbox
UPDATE events SET sequence = sequence + 1 WHERE organization_id = 1 AND sandbox AND sequence = 2;

-- a log that has forgotten how far it goes
-- event sequences rise by one, from the first kept to the last: organization 1, live
DELETE FROM event_logs WHERE organization_id = 1 AND NOT sandbox;

-- a log that lost its last event with its number
-- a batch that is over or was answered and a reversal that took something have one event each, of their type: reversal
--   9
DELETE FROM events WHERE reversal_id = 9;
UPDATE event_logs SET last_sequence = last_sequence - 1 WHERE organization_id = 4 AND NOT sandbox;

-- a batch that is told twice
-- a batch that is over or was answered and a reversal that took something have one event each, of their type: batch 1
INSERT INTO unnumbered_events (organization_id, sandbox, type, batch_id, credited)
    VALUES (1, false, 'batch.issued', 1, 1);

-- a batch told as issued that is not
-- a batch that is over or was answered and a reversal that took something have one event each, of their type: batch 5
INSERT INTO unnumbered_events (organization_id, sandbox, type, batch_id, credited)
    VALUES (1, false, 'batch.issued', 5, 1);

-- a batch told to another organization
-- a batch that is over or was answered and a reversal that took something have one event each, of their type: batch 6
-- event sequences rise by one, from the first kept to the last: organization 2, sandbox; organization 3, sandbox
UPDATE events SET organization_id = 2, sequence = 1 WHERE batch_id = 6;

-- events dropped before their time
-- a batch that is over or was answered and a reversal that took something have one event each, of their type: batch 2;
--   batch 3
-- a refill, a key, its limit of a day and its end have one event each, and these no others: key 2, sandbox: t
-- a user's claim at an organization has one event, of the same time and number of transactions: user 3
DELETE FROM events WHERE organization_id = 1 AND NOT sandbox;
UPDATE event_logs SET dropped_to = last_sequence, dropped_until = (SELECT issued_at FROM batches WHERE id = 1)
    WHERE organization_id = 1 AND NOT sandbox;

-- a refill told as a ping
-- a refill, a key, its limit of a day and its end have one event each, and these no others: refill of 100 to 100, no
--   reference
-- an event's data is as it was numbered, and tells of a balance that was: event 38
UPDATE events SET type = 'ping' WHERE organization_id = 6 AND type = 'balance.refilled';

-- a cancellation told as a refusal
-- a batch that is over or was answered and a reversal that took something have one event each, of their type: batch 16
UPDATE events SET type = 'batch.refused' WHERE type = 'batch.cancelled';

-- a reversal told as a return
-- a batch that is over or was answered and a reversal that took something have one event each, of their type: reversal
--   9
UPDATE events SET type = 'transaction.returned' WHERE reversal_id = 9;

-- other data of an event
-- an event's data is as it was numbered, and tells of a balance that was: event 53
UPDATE events SET data = '{}' WHERE organization_id = 6 AND type = 'balance.low';

-- another number of the credited told
-- the events of a batch tell its send_at, its key and how many were credited: batch 14
UPDATE events SET credited = 2 WHERE batch_id = 14;

-- another key told
-- the events of a batch tell its send_at, its key and how many were credited: batch 14
UPDATE events SET idempotency_key = 'two' WHERE batch_id = 14;

-- another time told of what is scheduled
-- the events of a batch tell its send_at, its key and how many were credited: batch 19
UPDATE events SET send_at = send_at + interval '1 s' WHERE batch_id = 19;

-- another time of what is scheduled
-- the events of a batch tell its send_at, its key and how many were credited: batch 19
UPDATE batches SET send_at = now() WHERE id = 19;

-- a log that lost its last event with its number, of a key
-- a refill, a key, its limit of a day and its end have one event each, and these no others: key 7, sandbox: f
DELETE FROM events WHERE organization_id = 6 AND type = 'key.revoked';
UPDATE event_logs SET last_sequence = last_sequence - 1 WHERE organization_id = 6 AND NOT sandbox;

-- two batches whose keys are swapped
-- a batch and a reversal are as they were accepted and answered: batch 14; batch 15
-- the events of a batch tell its send_at, its key and how many were credited: batch 14; batch 15
UPDATE batches SET idempotency_key = 'swapped' WHERE id = 14;
UPDATE batches SET idempotency_key = 'one' WHERE id = 15;
UPDATE batches SET idempotency_key = 'two' WHERE id = 14;

-- a key that is gone, so that a retry would pay again
-- a batch and a reversal are as they were accepted and answered: batch 14
UPDATE batches SET idempotency_key = NULL, idempotency_hash = NULL WHERE id = 14;

-- an answer to another body
-- a batch and a reversal are as they were accepted and answered: batch 14
UPDATE batches SET idempotency_hash = '' WHERE id = 14;

-- another label
-- a batch and a reversal are as they were accepted and answered: batch 1
UPDATE batches SET label = 'another' WHERE id = 1;

-- other metadata
-- a batch and a reversal are as they were accepted and answered: batch 1
UPDATE batches SET metadata = '{}' WHERE id = 1;

-- another name in an answer
-- a batch and a reversal are as they were accepted and answered: batch 1
UPDATE batches SET organization_name = 'x' WHERE id = 1;

-- another refill in an answer
-- a batch and a reversal are as they were accepted and answered: batch 1
UPDATE batches SET last_refill = 1 WHERE id = 1;

-- another refusal
-- a batch and a reversal are as they were accepted and answered: batch 17
UPDATE batches SET refusal = 'organization_disabled' WHERE id = 17;

-- another time of an issue
-- a batch and a reversal are as they were accepted and answered: batch 14
UPDATE batches SET issued_at = created_at - interval '1 s' WHERE id = 14;

-- another time of a reversal
-- a batch and a reversal are as they were accepted and answered: reversal 8
-- an entry has the time of its issue, claim or reversal, and the points of the reversal: transaction 917504;
--   transaction 917506
UPDATE reversals SET done_at = 'epoch' WHERE id = 8;

-- another reason
-- a batch and a reversal are as they were accepted and answered: reversal 8
UPDATE reversals SET reason = 'another' WHERE id = 8;

-- another reason why nothing was taken
-- a batch and a reversal are as they were accepted and answered: reversal 8
UPDATE reversal_entries SET code = 'more_than_left' WHERE (reversal_id, position) = (8, 3);

-- a claim from before the issue
-- a user's claim at an organization has one event, of the same time and number of transactions: user 3
UPDATE transactions SET claimed_at = 'epoch' WHERE (batch_id, position) = (2, 1);
UPDATE user_entries SET created_at = 'epoch' WHERE transaction_id = 262145;

-- a claim that is forgotten
-- a user's claim at an organization has one event, of the same time and number of transactions: user 3
-- an entry has the time of its issue, claim or reversal, and the points of the reversal: transaction 262145
-- the events of a batch tell its send_at, its key and how many were credited: batch 2
UPDATE transactions SET claimed_at = NULL WHERE (batch_id, position) = (2, 1);

-- a claim where there was none
-- a user's claim at an organization has one event, of the same time and number of transactions: user 1
-- an entry has the time of its issue, claim or reversal, and the points of the reversal: transaction 131072
-- the events of a batch tell its send_at, its key and how many were credited: batch 1
UPDATE transactions SET claimed_at = now() WHERE (batch_id, position) = (1, 0);

-- a key of another organization
-- a key, a member and what they sent belong to one organization and mode: batch 14; batch 15; batch 16; batch 20;
--   batch 21; batch 22
-- a refill, a key, its limit of a day and its end have one event each, and these no others: key 6, sandbox: f
UPDATE api_keys SET organization_id = 2 WHERE id = 6;

-- a key of the other mode
-- a key, a member and what they sent belong to one organization and mode: batch 14; batch 15; batch 16; batch 20;
--   batch 21; batch 22
-- a refill, a key, its limit of a day and its end have one event each, and these no others: key 6, sandbox: f; key 6,
--   sandbox: t
UPDATE api_keys SET sandbox = true WHERE id = 6;

-- a key that never was
-- a key, a member and what they sent belong to one organization and mode: batch 14; batch 15; batch 16; batch 20;
--   batch 21; batch 22
-- a refill, a key, its limit of a day and its end have one event each, and these no others: key 6, sandbox: f
DELETE FROM api_keys WHERE id = 6;

-- a revoked key that works again
-- a refill, a key, its limit of a day and its end have one event each, and these no others: key 7, sandbox: f
UPDATE api_keys SET revoked_at = NULL WHERE id = 7;

-- a batch sent by a key of another organization
-- a batch and a reversal are as they were accepted and answered: batch 14
-- a key, a member and what they sent belong to one organization and mode: batch 14
UPDATE batches SET api_key_id = 1 WHERE id = 14;

-- a member of another organization
-- a key, a member and what they sent belong to one organization and mode: action 16; batch 18; batch 19
UPDATE members SET organization_id = 2 WHERE id = 1;

-- an approval told as a rejection
-- a batch that is over or was answered and a reversal that took something have one event each, of their type: batch 20
UPDATE events SET type = 'batch.rejected' WHERE type = 'batch.approved';

-- a rejection told as an approval
-- a batch that is over or was answered and a reversal that took something have one event each, of their type: batch 21
UPDATE events SET type = 'batch.approved' WHERE type = 'batch.rejected';

-- an approval told that nobody gave
-- a batch that is over or was answered and a reversal that took something have one event each, of their type: batch 22
UPDATE events SET type = 'batch.approved' WHERE batch_id = 22;

-- a key that approves what another key of its maker has sent
-- who has answered a batch is another person than who has sent it: batch 20; batch 21
UPDATE api_keys SET made_by_member_id = 1 WHERE organization_id = 6;

-- an approval by a key of another organization
-- a batch and a reversal are as they were accepted and answered: batch 20
-- a key, a member and what they sent belong to one organization and mode: approval 20
UPDATE batches SET answered_by_key_id = 1 WHERE id = 20;

-- another reason of a rejection
-- a batch and a reversal are as they were accepted and answered: batch 21
UPDATE batches SET rejection_reason = 'another' WHERE id = 21;

-- a webhook beyond its log
-- a webhook stands within its log: webhook 1
UPDATE webhooks SET position = 1000;

-- a refused batch that is gone
-- a batch that is over or was answered and a reversal that took something have one event each, of their type: batch 17
DELETE FROM batches WHERE id = 17;

-- a cancelled batch that is queued again
-- a batch and a reversal are as they were accepted and answered: batch 16
-- a batch that is over or was answered and a reversal that took something have one event each, of their type: batch 16
UPDATE batches SET status = 'queued', cancelled_at = NULL WHERE id = 16;

-- an organization that is suspended without a word
-- an organization is suspended and disabled as its log told last: organization 6
UPDATE organizations SET is_suspended = true WHERE id = 6;
