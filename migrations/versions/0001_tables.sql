-- The tables, the nouns first, and the triggers that guard their rows. Constraints have names, and refuse what the code
-- forbids: PostgreSQL reports the name of the one that was violated.
--
-- Every text is COLLATE "C": the order of a locale may change with the server's image, and then an index would no
-- longer find its rows.

-- An organization, with a live and a sandbox balance; `last_refill` is the balance right after the last refill.
-- `held_days` is how long points may be held if the send has no `hold_days`; null: without end. An event reports when
-- a debit leaves the live balance below `low_balance` (null: never), once: `low_balance_told` is whether the last debit
-- did, and false again with another `low_balance`. A send of more points than `approval_above` (null: none)
-- waits for an approval: one from the console, or with `approval_of` `all` each. `sandbox_ahead` is how far the clock of
-- its sandbox was set ahead; it has no days, whose length depends on the zone.
--
-- `held_points` and `held_count` (and the sandbox's) are the sums of the held transactions, as if nothing in
-- `unfolded_claims` had been claimed yet. Points are numeric: over the years more may be held than fits in 64 bits.
--
-- All that moved the balance before `counted_until` is in `daily_sums` (and of the sandbox before
-- `sandbox_counted_until`). Who stamps a row with an earlier moment, because a clock went back, puts it back to the
-- start of that day.
--
-- `external_id` is what the platform calls it. Every drain updates this row; free space in its page keeps the updates out
-- of the index.
CREATE TABLE organizations (
    id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT pk_organizations PRIMARY KEY,
    name text COLLATE "C" NOT NULL CONSTRAINT ck_organizations_name_length CHECK (char_length(name) BETWEEN 1 AND 255),
    external_id text COLLATE "C" CONSTRAINT uq_organizations_external_id UNIQUE
        CONSTRAINT ck_organizations_external_id_length CHECK (char_length(external_id) BETWEEN 1 AND 128),
    is_disabled boolean NOT NULL DEFAULT false,
    is_suspended boolean NOT NULL DEFAULT false,
    balance bigint NOT NULL DEFAULT 0 CONSTRAINT ck_organizations_balance_not_negative CHECK (balance >= 0),
    last_refill bigint NOT NULL DEFAULT 0,
    sandbox_balance bigint NOT NULL DEFAULT 0
        CONSTRAINT ck_organizations_sandbox_balance_not_negative CHECK (sandbox_balance >= 0),
    sandbox_last_refill bigint NOT NULL DEFAULT 0,
    sandbox_start_balance bigint NOT NULL DEFAULT 0,
    sandbox_ahead interval NOT NULL DEFAULT '0'
        CONSTRAINT ck_organizations_sandbox_ahead_in_range CHECK (sandbox_ahead BETWEEN '0' AND '731 days'),
    held_days int CONSTRAINT ck_organizations_held_days_in_range CHECK (held_days BETWEEN 1 AND 3650),
    low_balance bigint CONSTRAINT ck_organizations_low_balance_positive CHECK (low_balance > 0),
    low_balance_told boolean NOT NULL DEFAULT false,
    approval_above bigint CONSTRAINT ck_organizations_approval_above_not_negative CHECK (approval_above >= 0),
    approval_of text COLLATE "C" NOT NULL DEFAULT 'console'
        CONSTRAINT ck_organizations_approval_of_known CHECK (approval_of IN ('console', 'all')),
    requires_second_factor boolean NOT NULL DEFAULT false,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    held_points numeric NOT NULL DEFAULT 0,
    held_count bigint NOT NULL DEFAULT 0,
    sandbox_held_points numeric NOT NULL DEFAULT 0,
    sandbox_held_count bigint NOT NULL DEFAULT 0,
    counted_until timestamptz NOT NULL DEFAULT '-infinity',
    sandbox_counted_until timestamptz NOT NULL DEFAULT '-infinity',
    CONSTRAINT ck_organizations_held_not_negative CHECK (
        least(held_points, held_count, sandbox_held_points, sandbox_held_count) >= 0)
) WITH (fillfactor = 50);
-- The few sandboxes whose clock was set ahead, for the release and the return of what is due by it.
CREATE INDEX ix_organizations_sandbox_ahead ON organizations (id) WHERE sandbox_ahead > '0';

-- The time of an organization in one mode.
CREATE FUNCTION time_of(organization_id bigint, sandbox boolean) RETURNS timestamptz LANGUAGE sql VOLATILE AS $$
    SELECT clock_timestamp() + CASE WHEN $2 THEN (SELECT sandbox_ahead FROM organizations WHERE id = $1)
                                    ELSE interval '0' END
$$;

-- Until when an organization's days stay counted when something is stamped with this moment: as before, unless it is
-- earlier, since a clock went back.
CREATE FUNCTION still_counted_until(counted_until timestamptz, stamped timestamptz) RETURNS timestamptz
LANGUAGE sql STABLE PARALLEL SAFE
AS 'SELECT CASE WHEN $2 < $1 THEN date_trunc(''day'', $2, ''UTC'') ELSE $1 END';

-- How many recipients a balance pays, from the first on, up to the first that it cannot pay: each gets the amount, or
-- the running totals have the sum up to each. They rise, so a binary search finds the first one too large. Says what
-- `paid_count` of app/values/numbers.py says; PostgreSQL puts it into the statement that asks.
CREATE FUNCTION paid_count(balance bigint, recipients int, amount bigint, running_totals bigint[]) RETURNS int
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS 'SELECT CASE WHEN $4 IS NULL THEN least($2, $1 / $3)::int ELSE width_bucket($1, $4) END';

-- A key of the platform's own programs, stored as its SHA-256; `name` tells people which program has it.
CREATE TABLE platform_keys (
    id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT pk_platform_keys PRIMARY KEY,
    name text COLLATE "C" NOT NULL CONSTRAINT ck_platform_keys_name_length CHECK (char_length(name) BETWEEN 1 AND 100),
    scopes text[] COLLATE "C" NOT NULL CONSTRAINT ck_platform_keys_scopes_known CHECK (
            cardinality(scopes) >= 1
            AND scopes <@ ARRAY['users:read', 'users:register', 'users:change', 'users:erase', 'organizations:read',
                                'organizations:write', 'refills:write', 'keys:write', 'members:read',
                                'members:write']),
    hash bytea NOT NULL CONSTRAINT uq_platform_keys_hash UNIQUE
        CONSTRAINT ck_platform_keys_hash_is_sha256 CHECK (octet_length(hash) = 32),
    start text COLLATE "C" NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    last_used_at timestamptz,
    revoked_at timestamptz
);

-- A second factor. `secret` is encrypted. `used_step` is the time step of the last code that was given: neither it nor an
-- earlier one is good again. `recovery_hashes` are the SHA-256 of the recovery codes that are left.
CREATE TABLE second_factors (
    id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT pk_second_factors PRIMARY KEY,
    secret text COLLATE "C" NOT NULL,
    used_step bigint NOT NULL,
    recovery_hashes bytea[] NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- A person of one organization; the same person may be a member of others, by other rows. The row of a removed member
-- is kept for the record; it allows no sign-in. `password_hash` of one address has the same salt in all rows, so that
-- one look tells which of them a password opens, and its time tells nobody how many there are. `link_hash` is the
-- SHA-256 of the token of a link that is good until `link_expires_at`. `wrong_passwords` counts since `wrong_since`;
-- until `locked_until` no password is accepted. `time_zone` is for reading and writing times; stored are times in UTC
-- alone. `mails_off` are the kinds of mail that the member does not want.
CREATE TABLE members (
    id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT pk_members PRIMARY KEY,
    organization_id bigint NOT NULL CONSTRAINT fk_members_organization_id REFERENCES organizations (id),
    email text COLLATE "C" NOT NULL,
    email_key text COLLATE "C" NOT NULL,
    first_name text COLLATE "C" NOT NULL,
    last_name text COLLATE "C" NOT NULL,
    role text COLLATE "C" NOT NULL
        CONSTRAINT ck_members_role_known CHECK (role IN ('viewer', 'sender', 'approver', 'admin')),
    time_zone text COLLATE "C" NOT NULL DEFAULT 'UTC'
        CONSTRAINT ck_members_time_zone_length CHECK (char_length(time_zone) <= 64),
    mails_off text[] COLLATE "C" NOT NULL DEFAULT '{}' CONSTRAINT ck_members_mails_off_known CHECK (
            mails_off <@ ARRAY['awaiting', 'answered', 'later', 'low_balance', 'link']),
    password_hash text COLLATE "C",
    link_hash bytea CONSTRAINT uq_members_link_hash UNIQUE
        CONSTRAINT ck_members_link_hash_is_sha256 CHECK (octet_length(link_hash) = 32),
    link_expires_at timestamptz,
    wrong_passwords int NOT NULL DEFAULT 0,
    wrong_since timestamptz,
    locked_until timestamptz,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    last_signed_in_at timestamptz,
    second_factor_id bigint CONSTRAINT fk_members_second_factor_id REFERENCES second_factors (id),
    removed_at timestamptz,
    CONSTRAINT ck_members_link_with_an_end CHECK ((link_hash IS NULL) = (link_expires_at IS NULL)),
    CONSTRAINT ck_members_removed_has_no_way CHECK (
        removed_at IS NULL OR password_hash IS NULL AND link_hash IS NULL AND second_factor_id IS NULL)
);
CREATE UNIQUE INDEX uq_members_email_key ON members (email_key, organization_id) WHERE removed_at IS NULL;
CREATE INDEX ix_members_organization_id ON members (organization_id);
CREATE INDEX ix_members_second_factor_id ON members (second_factor_id) WHERE second_factor_id IS NOT NULL;

-- An API key of one organization and mode, stored as its SHA-256. `name` is for people; null: it has none. The columns
-- from `scopes` to `daily_limit` bound what the key may do; null: no bound. The statement that accepts sends leaves out
-- the keys with bounds, whose sends are accepted by themselves (app/batches/accept.py). `made_by_…` is who made it: a
-- member, a program of the platform, or an operator by a command (the system user).
CREATE TABLE api_keys (
    id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT pk_api_keys PRIMARY KEY,
    organization_id bigint NOT NULL CONSTRAINT fk_api_keys_organization_id REFERENCES organizations (id),
    sandbox boolean NOT NULL,
    hash bytea NOT NULL CONSTRAINT uq_api_keys_hash UNIQUE
        CONSTRAINT ck_api_keys_hash_is_sha256 CHECK (octet_length(hash) = 32),
    start text COLLATE "C" NOT NULL,
    name text COLLATE "C" CONSTRAINT ck_api_keys_name_length CHECK (char_length(name) BETWEEN 1 AND 100),
    scopes text[] COLLATE "C" CONSTRAINT ck_api_keys_scopes_known CHECK (
            cardinality(scopes) >= 1 AND scopes <@ ARRAY['read', 'send', 'reverse', 'webhooks', 'approve']),
    expires_at timestamptz,
    batch_limit bigint CONSTRAINT ck_api_keys_batch_limit_positive CHECK (batch_limit > 0),
    daily_limit bigint CONSTRAINT ck_api_keys_daily_limit_positive CHECK (daily_limit > 0),
    is_bounded boolean NOT NULL
        GENERATED ALWAYS AS (num_nonnulls(scopes, expires_at, batch_limit, daily_limit) > 0) STORED,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    made_by_member_id bigint CONSTRAINT fk_api_keys_made_by_member_id REFERENCES members (id),
    made_by_platform_key_id bigint CONSTRAINT fk_api_keys_made_by_platform_key_id REFERENCES platform_keys (id),
    made_by_operator text COLLATE "C"
        CONSTRAINT ck_api_keys_made_by_operator_length CHECK (char_length(made_by_operator) BETWEEN 1 AND 100),
    last_used_at timestamptz,
    revoked_at timestamptz,
    CONSTRAINT ck_api_keys_made_by_one CHECK (
        num_nonnulls(made_by_member_id, made_by_platform_key_id, made_by_operator) <= 1)
);
CREATE INDEX ix_api_keys_organization_id ON api_keys (organization_id);

-- The points that a key with a `daily_limit` has used of a day: each batch that was accepted then counts with all its
-- points. What was refused, cancelled or not paid of them stands in `points_given_back`, until the key's next send on
-- that day takes it off. So only who accepts a send of the key locks this row, and no drain waits for it.
-- `limit_reached_at` is when the first send of the day was refused for the limit. Each send updates this row.
CREATE TABLE key_days (
    api_key_id bigint NOT NULL,
    daily_limit bigint NOT NULL,
    used bigint NOT NULL DEFAULT 0,
    limit_reached_at timestamptz,
    day date NOT NULL,
    CONSTRAINT pk_key_days PRIMARY KEY (api_key_id, day),
    CONSTRAINT ck_key_days_used_within_the_limit CHECK (used BETWEEN 0 AND daily_limit)
) WITH (fillfactor = 50);

-- Points that count on a key's day no longer, to be taken off it. Those of days that are over stay here.
CREATE TABLE points_given_back (
    api_key_id bigint NOT NULL,
    points bigint NOT NULL CONSTRAINT ck_points_given_back_points_positive CHECK (points > 0),
    day date NOT NULL
);
CREATE INDEX ix_points_given_back_key_day ON points_given_back (api_key_id, day);

-- A member's session in one browser, found by the SHA-256 of a random token. `browser` and `address` are what the
-- browser said when it began. `opens_others`: it began with a password that was counted as a try for all members of the
-- address, so it may go on as those who have the same password; one that was just chosen is no try. `seen_at` is when the
-- last request came, to the minute. While it `awaits_code` of the second factor, it opens nothing.
CREATE TABLE member_sessions (
    id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT pk_member_sessions PRIMARY KEY,
    member_id bigint NOT NULL CONSTRAINT fk_member_sessions_member_id REFERENCES members (id),
    hash bytea NOT NULL CONSTRAINT uq_member_sessions_hash UNIQUE
        CONSTRAINT ck_member_sessions_hash_is_sha256 CHECK (octet_length(hash) = 32),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at timestamptz NOT NULL,
    revoked_at timestamptz,
    opens_others boolean NOT NULL DEFAULT false,
    awaits_code boolean NOT NULL DEFAULT false,
    seen_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    browser text COLLATE "C" CONSTRAINT ck_member_sessions_browser_length CHECK (char_length(browser) <= 100),
    address text COLLATE "C" CONSTRAINT ck_member_sessions_address_length CHECK (char_length(address) <= 100)
);
CREATE INDEX ix_member_sessions_member_id ON member_sessions (member_id);
CREATE INDEX ix_member_sessions_expires_at ON member_sessions (expires_at);

-- What somebody did: a member, a program of the platform, or an operator by a command (`operator` is the system user);
-- none of the three: somebody unknown. `organization_id` is null for what belongs to none, such as a user. `subject_id`
-- is the id of what was made or changed; `detail` adds what an id does not say, but no address and no name of a user.
CREATE TABLE actions (
    id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT pk_actions PRIMARY KEY,
    organization_id bigint CONSTRAINT fk_actions_organization_id REFERENCES organizations (id),
    member_id bigint CONSTRAINT fk_actions_member_id REFERENCES members (id),
    platform_key_id bigint CONSTRAINT fk_actions_platform_key_id REFERENCES platform_keys (id),
    operator text COLLATE "C" CONSTRAINT ck_actions_operator_length CHECK (char_length(operator) BETWEEN 1 AND 100),
    action text COLLATE "C" NOT NULL,
    subject_id bigint,
    sandbox boolean,
    detail text COLLATE "C" CONSTRAINT ck_actions_detail_length CHECK (char_length(detail) <= 255),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT ck_actions_done_by_one CHECK (num_nonnulls(member_id, platform_key_id, operator) <= 1)
);
CREATE INDEX ix_actions_created ON actions (created_at, id);
CREATE INDEX ix_actions_organization ON actions (organization_id, created_at, id);

-- The forms of the console that have had their effect; each has it once.
CREATE TABLE used_forms (
    member_id bigint NOT NULL CONSTRAINT fk_used_forms_member_id REFERENCES members (id),
    form_id text COLLATE "C" NOT NULL CONSTRAINT ck_used_forms_form_id_length CHECK (char_length(form_id) = 24),
    used_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT pk_used_forms PRIMARY KEY (member_id, form_id)
);
CREATE INDEX ix_used_forms_used_at ON used_forms (used_at);

-- What was answered to a call that made something, for a day: whoever repeats the call gets it again. `name` is the
-- SHA-256 of caller, call and idempotency key. `answer` is encrypted, with a digest of the body: it may hold a key or an
-- address.
CREATE TABLE kept_answers (
    name bytea CONSTRAINT pk_kept_answers PRIMARY KEY
        CONSTRAINT ck_kept_answers_name_is_sha256 CHECK (octet_length(name) = 32),
    answer text COLLATE "C" NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX ix_kept_answers_created_at ON kept_answers (created_at);

-- A secret that all processes of the service share. The first process that needs it makes it.
CREATE TABLE service_secrets (
    name text COLLATE "C" CONSTRAINT pk_service_secrets PRIMARY KEY,
    secret bytea NOT NULL CONSTRAINT ck_service_secrets_secret_of_256_bits CHECK (octet_length(secret) = 32),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- A list as a member uploaded it in the console, and what its check found. `token` names it in URLs and forms, and
-- begins the idempotency keys of its batches. `content` is what was uploaded, until the list is sent; of a workbook, the
-- text of its sheets. `address_hashes` are 32 bits of each address in it, by which an erasure finds it. `column` is the
-- chosen column of addresses (from 0). `question` is what the member must still answer before the list can be checked.
-- `amount` null: each line has its own. `send_at` null: it is issued at once. `findings` are shown with the check;
-- `bad_lines` holds all of them. They and the hashes are dropped with the parts after their time. `batch_ids` are the batches of the
-- parts, in order, once the list is sent.
CREATE TABLE uploads (
    id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT pk_uploads PRIMARY KEY,
    organization_id bigint NOT NULL CONSTRAINT fk_uploads_organization_id REFERENCES organizations (id),
    member_id bigint NOT NULL CONSTRAINT fk_uploads_member_id REFERENCES members (id),
    sandbox boolean NOT NULL,
    token text COLLATE "C" NOT NULL CONSTRAINT uq_uploads_token UNIQUE,
    name text COLLATE "C" NOT NULL,
    content bytea,
    address_hashes int[],
    sheet text COLLATE "C",
    hidden_rows text COLLATE "C" CONSTRAINT ck_uploads_hidden_rows_known CHECK (hidden_rows IN ('include', 'leave-out')),
    "column" int,
    amount_column int,
    reference_column int,
    label_column int,
    amount bigint CONSTRAINT ck_uploads_amount_positive CHECK (amount > 0),
    label text COLLATE "C" CONSTRAINT ck_uploads_label_length CHECK (char_length(label) <= 255),
    send_at timestamptz,
    atomic boolean NOT NULL DEFAULT false,
    question text COLLATE "C" CONSTRAINT ck_uploads_question_known CHECK (
        question IN ('sheet', 'hidden_rows', 'column', 'amount')),
    recipients int,
    points bigint,
    digest text COLLATE "C",
    findings json,
    bad_lines json,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    sent_at timestamptz,
    batch_ids bigint[],
    sent_before json,
    used_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT ck_uploads_sent_as_batches CHECK ((sent_at IS NULL) = (batch_ids IS NULL)),
    CONSTRAINT ck_uploads_checked_unless_a_question CHECK (
        (question IS NULL) = (recipients IS NOT NULL) AND (question IS NULL) = (points IS NOT NULL)
        AND (question IS NULL) = (digest IS NOT NULL)),
    CONSTRAINT ck_uploads_sent_once_checked CHECK (
        sent_at IS NULL OR (question IS NULL AND content IS NULL))
);
-- Finds out whether a list was sent before.
CREATE INDEX ix_uploads_sent ON uploads (organization_id, sandbox, digest, sent_at) WHERE sent_at IS NOT NULL;
-- The lists of an organization, newest first, and the list that a batch was sent from.
CREATE INDEX ix_uploads_listed ON uploads (organization_id, sandbox, id);
CREATE INDEX ix_uploads_batches ON uploads USING gin (batch_ids);
-- For the upkeep: the oldest that are not sent, and those whose content is not dropped yet.
CREATE INDEX ix_uploads_unsent ON uploads (organization_id, id) WHERE sent_at IS NULL;
CREATE INDEX ix_uploads_age ON uploads (created_at) WHERE findings IS NOT NULL;

-- The recipients of one batch of a list, with the line of each. An array is null when no line has such a value;
-- `email_keys` is null when every address is its own normalised form.
CREATE TABLE upload_parts (
    upload_id bigint NOT NULL CONSTRAINT fk_upload_parts_upload_id REFERENCES uploads (id) ON DELETE CASCADE,
    number int NOT NULL,
    lines int[] NOT NULL,
    emails text[] COLLATE "C" NOT NULL,
    email_keys text[] COLLATE "C",
    amounts bigint[],
    item_references text[] COLLATE "C",
    labels text[] COLLATE "C",
    CONSTRAINT pk_upload_parts PRIMARY KEY (upload_id, number),
    CONSTRAINT ck_upload_parts_recipients_counted CHECK (
        cardinality(emails) >= 1 AND cardinality(lines) = cardinality(emails)
        AND (email_keys IS NULL OR cardinality(email_keys) = cardinality(emails))
        AND (amounts IS NULL OR cardinality(amounts) = cardinality(emails))
        AND (item_references IS NULL OR cardinality(item_references) = cardinality(emails))
        AND (labels IS NULL OR cardinality(labels) = cardinality(emails)))
);

-- An account, found by the normalised form of its address. A user of a sandbox (`sandbox_of`: the organization's) is
-- known there only, and has no balance. `external_id` is what the platform calls it. `address_changed_at` is since when
-- the address is this one; null: since it was registered. An erased user keeps its id and its balance: `email` and the
-- names are `erased-<id>`, and without an `email_key` nothing is credited to it any more. `claimed_count` and
-- `claimed_points` are what its registration has claimed; null: nothing.
CREATE TABLE users (
    id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT pk_users PRIMARY KEY,
    email text COLLATE "C" NOT NULL,
    email_key text COLLATE "C",
    first_name text COLLATE "C" NOT NULL,
    last_name text COLLATE "C" NOT NULL,
    external_id text COLLATE "C"
        CONSTRAINT ck_users_external_id_length CHECK (char_length(external_id) BETWEEN 1 AND 128),
    sandbox_of bigint CONSTRAINT fk_users_sandbox_of REFERENCES organizations (id),
    claimed_count bigint,
    claimed_points numeric,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    address_changed_at timestamptz,
    erased_at timestamptz,
    CONSTRAINT ck_users_erased_whole CHECK (
        CASE WHEN erased_at IS NULL THEN email_key IS NOT NULL
             ELSE email = 'erased-' || CAST(id AS text) AND first_name = email AND last_name = email
                  AND email_key IS NULL AND external_id IS NULL END)
);
CREATE UNIQUE INDEX uq_users_email_key ON users (email_key) WHERE sandbox_of IS NULL;
CREATE UNIQUE INDEX uq_users_sandbox_of_email_key ON users (sandbox_of, email_key) WHERE sandbox_of IS NOT NULL;
CREATE UNIQUE INDEX uq_users_external_id ON users (external_id) WHERE external_id IS NOT NULL;
-- Finds the users who lately registered or changed their address, for the search for crossed registrations.
CREATE INDEX ix_users_known_since ON users (coalesce(address_changed_at, created_at));

-- An address that a user had before. Its transactions keep it, and the audit knows by this whose they are. What was sent
-- to it after `last_batch_id` is not the user's. An erasure keeps the addresses here until none of its rows has them.
CREATE TABLE former_addresses (
    user_id bigint NOT NULL CONSTRAINT fk_former_addresses_user_id REFERENCES users (id),
    email_key text COLLATE "C" NOT NULL,
    last_batch_id bigint NOT NULL,
    changed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT pk_former_addresses PRIMARY KEY (user_id, email_key)
);

-- An accepted send: its recipients in request order, and what became of them. `email_keys` is null when every address
-- is its own normalised form. If items have their own amounts, `amount` is null and `running_totals` holds for each
-- item the sum up to and including it. `labels` and `item_references` are null when no item has one; otherwise an item
-- without one has a null there. `metadata` is json, which, unlike jsonb, keeps the order of its keys.
--
-- `send_at` is when it is due; null: at once. Until then it is `scheduled`, and not in the queue. The columns from
-- `issued_at` on are null until it is issued. `organization_name` and `last_refill` are the organization's at the
-- issue, so that a replay gives the same answer.
--
-- `hold_days` is how long its points may be held; null: the organization's `held_days`. `held_until` is computed from
-- either at the issue; null: without end. `return_at` is when a return looks at the batch; null when nothing of it is
-- held until a moment.
--
-- While it is `awaiting_approval` it is neither scheduled nor in the queue. Once it is approved, `queue_place` is the id
-- that it would have, had it been accepted then; null: its place in the queue is its `id`. It is approved or rejected by
-- a member or a key, and by neither if it is rejected because nobody answered in time. `awaiting_since` is when it was moved
-- beyond what its approval was good for, and awaited another; null: it awaits one since it was accepted, or none.
--
-- `rehearsed_unpaid`: a program rehearses that the balance of the sandbox pays nobody.
--
-- Who was erased before the issue is paid nothing: `payable_totals` are the running totals in which such a recipient
-- counts for nothing; null: nobody was. The erasure writes them, so that the drain looks nothing up. A recipient whose
-- total rises is debited, if the batch's `debited_amount` reaches it.
--
-- `digest` is over what its answer holds and no other row tells (`DIGESTED` in app/batches/read.py); the audit compares it.
--
-- There is no foreign key to the organization: its check would lock the organization's row in each INSERT of the front.
-- The accepting statement joins that row instead, and organizations are never deleted.
CREATE TABLE batches (
    id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT pk_batches PRIMARY KEY,
    organization_id bigint NOT NULL,
    sandbox boolean NOT NULL,
    status text COLLATE "C" NOT NULL DEFAULT 'queued',
    api_key_id bigint,
    member_id bigint,
    amount bigint,
    running_totals bigint[],
    payable_totals bigint[],
    atomic boolean NOT NULL,
    label text COLLATE "C",
    recipient_count int NOT NULL,
    emails text[] COLLATE "C" NOT NULL,
    email_keys text[] COLLATE "C",
    labels text[] COLLATE "C",
    item_references text[] COLLATE "C",
    metadata json,
    hold_days int,
    rehearsed_unpaid boolean,
    idempotency_key text COLLATE "C",
    idempotency_hash bytea,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    failures int NOT NULL DEFAULT 0,
    retry_at timestamptz,
    send_at timestamptz,
    cancelled_at timestamptz,
    awaiting_since timestamptz,
    approved_at timestamptz,
    rejected_at timestamptz,
    answered_by_member_id bigint,
    answered_by_key_id bigint,
    rejection_reason text COLLATE "C",
    queue_place bigint,
    refusal text COLLATE "C",
    issued_at timestamptz,
    debited_count int,
    debited_amount bigint,
    current_balance bigint,
    organization_name text COLLATE "C",
    last_refill bigint,
    held_until timestamptz,
    return_at timestamptz,
    digest bytea
);
-- The constraints of a batch, in one function (docs/decisions/0012). As in a CHECK, what is null breaks nothing; the first
-- constraint that is broken is told by its name.
CREATE FUNCTION batch_is_sound(b batches) RETURNS boolean LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    is_issued boolean := b.status = 'issued';
    broken text := CASE
        WHEN (b.amount IS NULL) <> (b.running_totals IS NOT NULL) THEN 'ck_batches_amount_or_running_totals'
        WHEN b.amount <= 0 THEN 'ck_batches_amount_positive'
        WHEN CASE num_nonnulls(b.answered_by_member_id, b.answered_by_key_id)
                 WHEN 0 THEN b.approved_at IS NOT NULL
                 WHEN 1 THEN num_nonnulls(b.approved_at, b.rejected_at) <> 1
                             OR b.answered_by_member_id = b.member_id OR b.answered_by_key_id = b.api_key_id
                 ELSE true END THEN 'ck_batches_answered_by_another'
        WHEN (b.approved_at IS NULL) <> (b.queue_place IS NULL)
             OR b.approved_at IS NOT NULL AND b.status IN ('awaiting_approval', 'rejected')
            THEN 'ck_batches_approved_once'
        WHEN b.atomic AND b.debited_count NOT IN (0, b.recipient_count)
             AND (b.debited_amount = b.payable_totals[b.recipient_count]) IS NOT TRUE
            THEN 'ck_batches_atomic_all_or_none'
        WHEN (b.status = 'cancelled') <> (b.cancelled_at IS NOT NULL) THEN 'ck_batches_cancelled_at_a_moment'
        WHEN b.current_balance < 0 THEN 'ck_batches_current_balance_not_negative'
        WHEN CASE WHEN b.payable_totals IS NOT NULL THEN b.debited_amount <> ALL (0::bigint || b.payable_totals)
                  WHEN b.running_totals IS NULL THEN b.debited_amount <> b.amount * b.debited_count
                  ELSE b.debited_amount <> coalesce(b.running_totals[b.debited_count], 0) END
            THEN 'ck_batches_debited_amount_of_the_debited'
        WHEN b.debited_count NOT BETWEEN 0 AND b.recipient_count THEN 'ck_batches_debited_count_in_range'
        WHEN CASE WHEN is_issued THEN NOT coalesce(b.held_until > b.issued_at, b.hold_days IS NULL)
                  ELSE b.held_until IS NOT NULL END THEN 'ck_batches_held_until_after_the_issue'
        WHEN b.hold_days NOT BETWEEN 1 AND 3650 THEN 'ck_batches_hold_days_in_range'
        WHEN char_length(b.idempotency_key) NOT BETWEEN 1 AND 255 THEN 'ck_batches_idempotency_key_length'
        WHEN (b.idempotency_key IS NULL) <> (b.idempotency_hash IS NULL) THEN 'ck_batches_idempotency_key_with_hash'
        WHEN num_nonnulls(b.issued_at, b.debited_count, b.debited_amount, b.current_balance, b.organization_name,
                          b.last_refill) <> CASE WHEN is_issued THEN 6 ELSE 0 END THEN 'ck_batches_issued_when_complete'
        WHEN char_length(b.label) > 255 THEN 'ck_batches_label_length'
        WHEN b.recipient_count NOT BETWEEN 1 AND 131072 OR cardinality(b.emails) <> b.recipient_count
             OR cardinality(b.email_keys) <> b.recipient_count OR cardinality(b.running_totals) <> b.recipient_count
             OR cardinality(b.payable_totals) <> b.recipient_count OR cardinality(b.labels) <> b.recipient_count
             OR cardinality(b.item_references) <> b.recipient_count THEN 'ck_batches_recipients_counted'
        WHEN (b.status = 'refused') <> (b.refusal IS NOT NULL) THEN 'ck_batches_refused_with_a_reason'
        WHEN b.rehearsed_unpaid AND NOT b.sandbox THEN 'ck_batches_rehearsed_unpaid_in_the_sandbox'
        WHEN num_nonnulls(b.rejected_at, b.rejection_reason) <> CASE WHEN b.status = 'rejected' THEN 2 ELSE 0 END
            THEN 'ck_batches_rejected_with_a_reason'
        WHEN char_length(b.rejection_reason) NOT BETWEEN 1 AND 255 THEN 'ck_batches_rejection_reason_length'
        WHEN b.return_at IS NOT NULL AND b.held_until IS NULL THEN 'ck_batches_return_at_of_what_has_an_end'
        WHEN b.status = 'scheduled' AND b.send_at IS NULL THEN 'ck_batches_scheduled_for_a_moment'
        WHEN num_nonnulls(b.api_key_id, b.member_id) > 1 THEN 'ck_batches_sent_by_one'
        WHEN b.status NOT IN ('awaiting_approval', 'scheduled', 'queued', 'issued', 'refused', 'cancelled', 'rejected')
            THEN 'ck_batches_status_known'
    END;
BEGIN
    IF broken IS NOT NULL THEN
        RAISE 'a batch breaks the constraint "%"', broken USING ERRCODE = 'check_violation', CONSTRAINT = broken;
    END IF;
    RETURN true;
END $$;
ALTER TABLE batches ADD CONSTRAINT ck_batches_sound CHECK (batch_is_sound(batches));
-- Not compressed: 10,000 addresses are accepted a millisecond sooner, and take five times the room.
ALTER TABLE batches ALTER emails SET STORAGE EXTERNAL, ALTER email_keys SET STORAGE EXTERNAL,
    ALTER running_totals SET STORAGE EXTERNAL, ALTER payable_totals SET STORAGE EXTERNAL,
    ALTER item_references SET STORAGE EXTERNAL;
-- No plan goes by these values. Without statistics, no address is kept there, and analysing reads no long arrays.
ALTER TABLE batches ALTER emails SET STATISTICS 0, ALTER email_keys SET STATISTICS 0;
ALTER TABLE upload_parts ALTER emails SET STATISTICS 0, ALTER email_keys SET STATISTICS 0;
ALTER TABLE uploads ALTER name SET STATISTICS 0;
ALTER TABLE users ALTER email SET STATISTICS 0, ALTER first_name SET STATISTICS 0, ALTER last_name SET STATISTICS 0;

-- One idempotency key is one batch.
CREATE UNIQUE INDEX uq_batches_idempotency_key ON batches (organization_id, sandbox, idempotency_key)
    WHERE idempotency_key IS NOT NULL;
-- Finds idempotency keys that are old enough to be forgotten. Those of batches that are not final are not in it.
CREATE INDEX ix_batches_idempotency_age ON batches (coalesce(issued_at, cancelled_at, rejected_at))
    WHERE idempotency_key IS NOT NULL AND coalesce(issued_at, cancelled_at, rejected_at) IS NOT NULL;
-- The queue, in order. Only queued batches are in it, so it stays small.
CREATE INDEX ix_batches_queued ON batches (organization_id, coalesce(queue_place, id)) WHERE status = 'queued';
-- What awaits an approval: by its time, for the rejection of what nobody answers, and that of each organization and mode.
CREATE INDEX ix_batches_unanswered ON batches (coalesce(awaiting_since, created_at), id) WHERE status = 'awaiting_approval';
CREATE INDEX ix_batches_awaiting ON batches (organization_id, sandbox, coalesce(awaiting_since, created_at))
    WHERE status = 'awaiting_approval';
-- What was never issued, for erasures: no transaction leads to its addresses.
CREATE INDEX ix_batches_never_issued ON batches (organization_id, id) WHERE status IN ('refused', 'cancelled', 'rejected');
-- Scheduled batches by their time: for the release, and for the limit of each organization and mode.
CREATE INDEX ix_batches_due ON batches (send_at, id) WHERE status = 'scheduled';
CREATE INDEX ix_batches_scheduled ON batches (organization_id, sandbox, send_at) WHERE status = 'scheduled';
-- Batches that a return must look at, by when.
CREATE INDEX ix_batches_return ON batches (return_at, id) WHERE return_at IS NOT NULL;
-- The same of one sandbox, whose clock may be ahead.
CREATE INDEX ix_batches_sandbox_return ON batches (organization_id, return_at) WHERE sandbox AND return_at IS NOT NULL;
-- The lists (app/pages), newest first by the time that each shows. The unpaid indexes hold only the few batches that
-- the balance did not pay in full.
CREATE INDEX ix_batches_created ON batches (organization_id, sandbox, created_at, id);
CREATE INDEX ix_batches_issued ON batches (organization_id, sandbox, issued_at, id) WHERE issued_at IS NOT NULL;
CREATE INDEX ix_batches_created_unpaid ON batches (organization_id, sandbox, created_at, id)
    WHERE debited_count < recipient_count;
CREATE INDEX ix_batches_issued_unpaid ON batches (organization_id, sandbox, issued_at, id)
    WHERE debited_count < recipient_count;

-- One recipient of a batch. What is equal for the whole batch (the time) is in its row; `amount` and `label` are null
-- where they are the batch's. `position` counts from 0 in request order. `balance` is the organization's balance right
-- after this transaction. A held transaction is debited and not credited; a claim sets `claimed_at`. `email_key` is
-- null when the address is its own normalised form. Two fields of the answer have no column: `allocated` always equals
-- `credited`, and `transaction_id` below makes `id` from the batch and the position.
--
-- `points_left` is null until points are taken back, and then what is left of the amount. The flags stay as they were.
-- `held_until` is null until it is extended, and then replaces the batch's. `returned_at` is when its points went back
-- because they were held for too long.
--
-- There are no foreign keys: each would cost a look-up per row. The only statement that writes these rows joins the
-- batch and the user, neither is ever deleted, and the audit checks both. Wide columns come first: without padding, a
-- row is a tenth smaller.
--
-- Each partition has a range of batch ids, and they follow each other without a gap (app/postgres/partitions.py). So a
-- statement names the batch id wherever it knows it, and a `ctid` never without it: each partition has its own.
CREATE TABLE transactions (
    organization_id bigint NOT NULL,
    batch_id bigint NOT NULL,
    balance bigint NOT NULL CONSTRAINT ck_transactions_balance_not_negative CHECK (balance >= 0),
    user_id bigint,
    claimed_at timestamptz,
    held_until timestamptz,
    returned_at timestamptz,
    position int NOT NULL CONSTRAINT ck_transactions_position_in_range CHECK (position BETWEEN 0 AND 131071),
    sandbox boolean NOT NULL,
    debited boolean NOT NULL,
    credited boolean NOT NULL,
    email text COLLATE "C" NOT NULL,
    email_key text COLLATE "C",
    amount bigint CONSTRAINT ck_transactions_amount_positive CHECK (amount > 0),
    label text COLLATE "C",
    reference text COLLATE "C",
    points_left bigint,
    CONSTRAINT pk_transactions PRIMARY KEY (batch_id, position),
    CONSTRAINT ck_transactions_debited_is_credited_or_held CHECK (
        CASE WHEN debited THEN credited = (user_id IS NOT NULL) ELSE NOT credited END),
    CONSTRAINT ck_transactions_claimed_only_if_credited CHECK (claimed_at IS NULL OR credited),
    CONSTRAINT ck_transactions_points_left_of_the_debited CHECK (
        points_left IS NULL OR (debited AND points_left >= 0 AND (amount IS NULL OR points_left < amount))),
    CONSTRAINT ck_transactions_held_until_of_the_debited CHECK (held_until IS NULL OR debited),
    CONSTRAINT ck_transactions_returned_whole_and_never_credited CHECK (
        returned_at IS NULL OR (debited AND NOT credited AND points_left IS NOT DISTINCT FROM 0))
) PARTITION BY RANGE (batch_id);
-- Only held transactions, by address, for claims: those of the newest partition are found here, the others are listed. If
-- all points were taken back, nothing is held.
CREATE INDEX ix_transactions_held ON transactions (coalesce(email_key, email))
    WHERE debited AND NOT credited AND NOT sandbox AND points_left IS DISTINCT FROM 0;
-- The same of one sandbox.
CREATE INDEX ix_transactions_sandbox_held ON transactions (organization_id, coalesce(email_key, email))
    WHERE sandbox AND debited AND NOT credited AND points_left IS DISTINCT FROM 0;
-- The lists of one address (app/pages/addresses.py): 16 bytes per row for any length of the address. The range of ids
-- comes first: otherwise 10,000 hashes would touch as many pages of an index that grows without end.
CREATE INDEX ix_transactions_address ON transactions (
    ((batch_id >> 14)::int),
    ((hashtextextended(coalesce(email_key, email), organization_id * 2 + sandbox::int) >> 32)::int),
    (batch_id * 131072 + position));
-- A reference is unique in its batch; the lists of one reference (app/pages/addresses.py) read this index too.
CREATE UNIQUE INDEX uq_transactions_reference ON transactions (organization_id, sandbox, reference, batch_id)
    WHERE reference IS NOT NULL;
-- How many transactions an address has. Without this PostgreSQL guesses one in 200 of all, and a claim for some users
-- reads all held transactions.
CREATE STATISTICS transactions_address ON (coalesce(email_key, email)) FROM transactions;

CREATE FUNCTION transaction_id(batch_id bigint, "position" int) RETURNS bigint
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS 'SELECT $1 * 131072 + $2';

-- A batch id itself, asked for once when a statement starts: what is compared with it leaves partitions out then. For the
-- bare parameter PostgreSQL would make a plan anew each time, with fewer partitions in it.
CREATE FUNCTION at_start(batch_id bigint) RETURNS bigint
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE AS 'BEGIN RETURN $1; END';

-- What is held in full partitions, by the hash of its address: a claim asks none of them (app/ledger/held_list.py). A row may
-- outlive what it lists, and hashes may collide, so whoever reads one looks at the transaction.
CREATE TABLE held_transactions (
    organization_id bigint NOT NULL,
    transaction_id bigint NOT NULL,
    address_hash int NOT NULL,
    CONSTRAINT pk_held_transactions PRIMARY KEY (address_hash, transaction_id)
);
-- What is live is held for a user by any organization, so it has one hash.
CREATE FUNCTION held_hash(email_key text, sandbox boolean, organization_id bigint) RETURNS int
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS 'SELECT (hashtextextended($1, CASE WHEN $2 THEN $3 ELSE 0 END) >> 32)::int';

-- How far it is listed, in batch ids; at first there is no row. What is held below `listed_to` is listed, and so is, by
-- its issue, what is issued from now on below `listing_to`.
CREATE TABLE held_listing (
    is_the_one boolean DEFAULT true CONSTRAINT pk_held_listing PRIMARY KEY
        CONSTRAINT ck_held_listing_one_row CHECK (is_the_one),
    listed_to bigint NOT NULL,
    listing_to bigint NOT NULL,
    CONSTRAINT ck_held_listing_in_order CHECK (listed_to BETWEEN 0 AND listing_to)
);

-- The points that a user has of one organization, without those of batches in `unfolded_batches`: a user's balance is
-- the sum of both (app/users.py). A fold, a claim and a reversal change it, under the lock of the organization's
-- balances. The points are numeric: over the years an organization may credit more than fits in 64 bits. As with
-- transactions, there are no foreign keys; the audit compares each row with what was credited.
--
-- A fold updates many of these rows; free space in their pages keeps that out of the index.
CREATE TABLE user_balances (
    user_id bigint NOT NULL,
    organization_id bigint NOT NULL,
    points numeric NOT NULL CONSTRAINT ck_user_balances_points_not_negative CHECK (points >= 0),
    CONSTRAINT pk_user_balances PRIMARY KEY (user_id, organization_id)
) WITH (fillfactor = 70);

-- A live batch whose credits are not in `user_balances` yet. The fold that adds them deletes this row. Every row lives
-- for seconds, so vacuum must start early, not at a share of a large table.
CREATE TABLE unfolded_batches (
    organization_id bigint NOT NULL,
    batch_id bigint NOT NULL,
    CONSTRAINT pk_unfolded_batches PRIMARY KEY (organization_id, batch_id)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);

-- What a claim has credited of an organization's held transactions, until a fold takes it off the organization's sums. A
-- claim may not wait for the row of each organization that holds points for its user. Every row lives for seconds.
CREATE TABLE unfolded_claims (
    organization_id bigint NOT NULL,
    points numeric NOT NULL,
    count bigint NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
CREATE INDEX ix_unfolded_claims_organization_id ON unfolded_claims (organization_id);

-- What made a user's balance: a credit, or with a `reversal_id` what was taken back of it, below 0. `amount` is null
-- where it is all of the transaction's. `created_at` is when the points were issued, claimed or taken back. The fold
-- writes the credits of a batch, a claim and a reversal their own; the credits of a batch in `unfolded_batches` have no
-- row yet (app/pages/entry_pages.py adds them). As with transactions, there are no foreign keys.
CREATE TABLE user_entries (
    user_id bigint NOT NULL,
    organization_id bigint NOT NULL,
    created_at timestamptz NOT NULL,
    transaction_id bigint NOT NULL,
    reversal_id bigint,
    amount bigint,
    CONSTRAINT ck_user_entries_below_zero_of_a_reversal CHECK (
        CASE WHEN reversal_id IS NULL THEN amount IS NULL OR amount > 0 ELSE coalesce(amount < 0, false) END)
);
CREATE INDEX ix_user_entries_listed ON user_entries (user_id, created_at, transaction_id);

-- Points added to a balance; below 0 in a correction, which has a reference, and in a reset of the sandbox.
CREATE TABLE refills (
    id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT pk_refills PRIMARY KEY,
    organization_id bigint NOT NULL CONSTRAINT fk_refills_organization_id REFERENCES organizations (id),
    sandbox boolean NOT NULL,
    amount bigint NOT NULL,
    balance bigint NOT NULL CONSTRAINT ck_refills_balance_not_negative CHECK (balance >= 0),
    reference text COLLATE "C" CONSTRAINT ck_refills_reference_length CHECK (char_length(reference) BETWEEN 1 AND 128),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT uq_refills_organization_id_reference UNIQUE (organization_id, reference),
    CONSTRAINT ck_refills_below_zero_named_or_of_a_sandbox CHECK (
        amount > 0 OR (amount < 0 AND (sandbox OR reference IS NOT NULL)))
);
CREATE INDEX ix_refills_created ON refills (organization_id, sandbox, created_at, id);

-- An accepted request to take points back: of a whole batch, or of transactions in request order. Ids come from the
-- sequence of the batches, so that one order by id holds across sends and reversals. `amount` is what to take from each
-- transaction; null: all that is left of it. `expected` is the sum that must come back, or nothing is taken; null: any.
-- The columns from `done_at` on are null until the reversal is done. A
-- return (`is_return`) is made by the service: it takes the points of the batch that were held for too long, and is
-- done when it is written. As with a batch, there is no foreign key to the organization.
CREATE TABLE reversals (
    id bigint CONSTRAINT pk_reversals PRIMARY KEY DEFAULT nextval('batches_id_seq'),
    organization_id bigint NOT NULL,
    sandbox boolean NOT NULL,
    status text COLLATE "C" NOT NULL DEFAULT 'queued'
        CONSTRAINT ck_reversals_status_known CHECK (status IN ('queued', 'done', 'refused')),
    api_key_id bigint,
    member_id bigint,
    batch_id bigint,
    transaction_ids bigint[],
    amount bigint CONSTRAINT ck_reversals_amount_positive CHECK (amount > 0),
    atomic boolean NOT NULL,
    reason text COLLATE "C" NOT NULL
        CONSTRAINT ck_reversals_reason_length CHECK (char_length(reason) BETWEEN 1 AND 255),
    expected bigint CONSTRAINT ck_reversals_expected_not_negative CHECK (expected >= 0),
    is_return boolean NOT NULL DEFAULT false,
    idempotency_key text COLLATE "C"
        CONSTRAINT ck_reversals_idempotency_key_length CHECK (char_length(idempotency_key) BETWEEN 1 AND 255),
    idempotency_hash bytea,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    failures int NOT NULL DEFAULT 0,
    retry_at timestamptz,
    refusal text COLLATE "C",
    done_at timestamptz,
    reversed_amount bigint CONSTRAINT ck_reversals_reversed_amount_not_negative CHECK (reversed_amount >= 0),
    current_balance bigint CONSTRAINT ck_reversals_current_balance_not_negative CHECK (current_balance >= 0),
    digest bytea,
    CONSTRAINT ck_reversals_asked_by_one CHECK (num_nonnulls(api_key_id, member_id) <= 1),
    CONSTRAINT ck_reversals_of_a_batch_or_of_transactions CHECK (
        (batch_id IS NULL) = (transaction_ids IS NOT NULL) AND cardinality(transaction_ids) BETWEEN 1 AND 131072),
    CONSTRAINT ck_reversals_idempotency_key_with_hash CHECK ((idempotency_key IS NULL) = (idempotency_hash IS NULL)),
    CONSTRAINT ck_reversals_return_of_a_batch_done CHECK (
        NOT is_return OR (status = 'done' AND batch_id IS NOT NULL AND amount IS NULL AND NOT atomic
                          AND reversed_amount > 0)),
    CONSTRAINT ck_reversals_refused_with_a_reason CHECK ((status = 'refused') = (refusal IS NOT NULL)),
    CONSTRAINT ck_reversals_done_when_complete CHECK (
        (status = 'done') = (done_at IS NOT NULL) AND (status = 'done') = (reversed_amount IS NOT NULL)
        AND (status = 'done') = (current_balance IS NOT NULL))
);
CREATE UNIQUE INDEX uq_reversals_idempotency_key ON reversals (organization_id, sandbox, idempotency_key)
    WHERE idempotency_key IS NOT NULL;
CREATE INDEX ix_reversals_idempotency_age ON reversals (created_at) WHERE idempotency_key IS NOT NULL;
-- Queued reversals, in order. Each drain looks here, and the index is nearly always empty.
CREATE INDEX ix_reversals_queued ON reversals (organization_id, id) WHERE status = 'queued';
CREATE INDEX ix_reversals_created ON reversals (organization_id, sandbox, created_at, id);
-- What was taken back on a day (app/statement).
CREATE INDEX ix_reversals_done ON reversals (organization_id, sandbox, done_at, id) INCLUDE (reversed_amount)
    WHERE done_at IS NOT NULL;
-- The reversals of a batch, whether it was asked for whole or by some of its transactions.
CREATE FUNCTION reversal_batches(batch_id bigint, transaction_ids bigint[]) RETURNS bigint[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS 'SELECT CASE WHEN $1 IS NOT NULL THEN ARRAY[$1] ELSE ARRAY(SELECT DISTINCT id / 131072 FROM unnest($2) id) END';
CREATE INDEX ix_reversals_batches ON reversals USING gin (reversal_batches(batch_id, transaction_ids));

-- What a reversal took from one transaction: `reversed` points, or 0 and a `code` for the reason. `position` counts
-- from 0 in request order. `reversed` may be 0 without a `code`: an atomic reversal that cannot take everything takes
-- nothing.
CREATE TABLE reversal_entries (
    reversal_id bigint NOT NULL,
    organization_id bigint NOT NULL,
    batch_id bigint NOT NULL,
    reversed bigint NOT NULL,
    position int NOT NULL,
    transaction_position int NOT NULL,
    code text COLLATE "C" CONSTRAINT ck_reversal_entries_code_known CHECK (
            code IN ('not_debited', 'already_reversed', 'more_than_left')),
    CONSTRAINT pk_reversal_entries PRIMARY KEY (reversal_id, position),
    CONSTRAINT ck_reversal_entries_reversed_unless_a_code CHECK (
        reversed >= 0 AND (code IS NULL OR reversed = 0))
);

-- What moved an organization's balance in one mode on each day in UTC, for its statement. A day on which nothing did has
-- no row. A row counts what was before the organization's `counted_until`; one that begins then or later is void, and
-- the next count deletes it. It is counted under the lock of the organization's row (app/statement/counting.py).
CREATE TABLE daily_sums (
    organization_id bigint NOT NULL,
    day date NOT NULL,
    sandbox boolean NOT NULL,
    refilled numeric NOT NULL,
    debited numeric NOT NULL,
    reversed numeric NOT NULL,
    returned numeric NOT NULL,
    batches bigint NOT NULL,
    transactions bigint NOT NULL,
    unpaid bigint NOT NULL,
    CONSTRAINT pk_daily_sums PRIMARY KEY (organization_id, sandbox, day),
    CONSTRAINT ck_daily_sums_not_negative CHECK (
        least(debited, reversed, returned, batches, transactions, unpaid) >= 0 AND unpaid <= transactions)
);

-- An event as written with the change that it reports. The sequencer numbers it and moves it to `events`. It names the
-- batch or the reversal that it is about, or holds its `data`. Ids rise in an order that respects cause. Two values of
-- a batch that may change later are stored here: its `send_at`, and how many of its transactions were `credited` at the
-- issue. Every row lives for less than a second, so vacuum must start early. `organization_id` is 0 in the log of the
-- platform, which tells of users and organizations.
CREATE TABLE unnumbered_events (
    organization_id bigint NOT NULL,
    id bigint GENERATED ALWAYS AS IDENTITY,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    batch_id bigint,
    reversal_id bigint,
    send_at timestamptz,
    credited int,
    sandbox boolean NOT NULL,
    type text COLLATE "C" NOT NULL CONSTRAINT ck_unnumbered_events_type_known CHECK (
            type IN ('batch.scheduled', 'batch.issued', 'batch.refused', 'batch.cancelled',
                     'batch.awaiting_approval', 'batch.approved', 'batch.rejected', 'transaction.claimed',
                     'transaction.returned', 'reversal.issued', 'balance.refilled', 'balance.low',
                     'organization.suspended', 'organization.resumed', 'organization.disabled',
                     'organization.enabled', 'key.created', 'key.revoked', 'key.limit_reached', 'webhook.disabled',
                     'ping', 'user.registered', 'user.changed', 'user.erased', 'organization.created')),
    data json,
    CONSTRAINT pk_unnumbered_events PRIMARY KEY (organization_id, id),
    CONSTRAINT ck_unnumbered_events_tells_of_one CHECK (num_nonnulls(batch_id, reversal_id, data) = 1),
    CONSTRAINT ck_unnumbered_events_in_their_log CHECK (
        organization_id <> 0 AND type NOT IN ('user.registered', 'user.changed', 'user.erased', 'organization.created')
        OR organization_id = 0 AND NOT sandbox AND data IS NOT NULL)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);

-- An event with its sequence: 1, 2, 3 … for each organization and mode, and for the platform (`organization_id` 0),
-- without a gap but for `restores`. `idempotency_key` is a copy: the batch or the reversal forgets its own before the event is dropped.
-- `digest` is that of an event with `data`.
CREATE TABLE events (
    organization_id bigint NOT NULL,
    sequence bigint NOT NULL CONSTRAINT ck_events_sequence_positive CHECK (sequence > 0),
    id bigint NOT NULL,
    created_at timestamptz NOT NULL,
    batch_id bigint,
    reversal_id bigint,
    send_at timestamptz,
    credited int,
    sandbox boolean NOT NULL,
    type text COLLATE "C" NOT NULL,
    idempotency_key text COLLATE "C",
    data json,
    digest bytea,
    CONSTRAINT pk_events PRIMARY KEY (organization_id, sandbox, sequence)
);

-- The events that name a user, for erasures.
CREATE INDEX ix_events_claims ON events (CAST(data #>> '{user,id}' AS bigint)) WHERE type = 'transaction.claimed';

-- The log of an organization in one mode: its last sequence, and which of its events are dropped: all up to and
-- including `dropped_to`, the youngest of which was written at `dropped_until`. Every numbering updates this row.
CREATE TABLE event_logs (
    organization_id bigint NOT NULL,
    last_sequence bigint NOT NULL,
    dropped_to bigint NOT NULL DEFAULT 0
        CONSTRAINT ck_event_logs_dropped_to_in_range CHECK (dropped_to BETWEEN 0 AND last_sequence),
    dropped_until timestamptz,
    sandbox boolean NOT NULL,
    CONSTRAINT pk_event_logs PRIMARY KEY (organization_id, sandbox),
    CONSTRAINT ck_event_logs_dropped_until_a_moment CHECK ((dropped_to = 0) = (dropped_until IS NULL))
) WITH (fillfactor = 50);

-- The sequences of a log that are of no event, because the database was restored from a backup (app/events/restores.py).
CREATE TABLE restores (
    organization_id bigint NOT NULL,
    skipped_from bigint NOT NULL,
    skipped_to bigint NOT NULL,
    restored_at timestamptz NOT NULL,
    sandbox boolean NOT NULL,
    CONSTRAINT pk_restores PRIMARY KEY (organization_id, sandbox, skipped_to),
    CONSTRAINT ck_restores_skipped_in_order CHECK (skipped_from BETWEEN 1 AND skipped_to)
);

-- What members are told by mail (app/mail). The sequencer writes an event as `news`; of that the worker makes a row
-- `waiting` for each member whom it concerns, and what one mail tells is `done` with it. At `due_at` comes what is next:
-- its mail, or the row is dropped. There is no address and no text here; `link` is the token of a link, encrypted, until
-- its mail is sent. `error` is why the last of the `failures` happened.
CREATE TABLE mails (
    id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT pk_mails PRIMARY KEY,
    organization_id bigint NOT NULL,
    member_id bigint CONSTRAINT fk_mails_member_id REFERENCES members (id),
    batch_id bigint,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    due_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    failures int NOT NULL DEFAULT 0,
    sandbox boolean NOT NULL,
    kind text COLLATE "C" NOT NULL
        CONSTRAINT ck_mails_kind_known CHECK (kind IN ('awaiting', 'answered', 'later', 'low_balance', 'link')),
    state text COLLATE "C" NOT NULL DEFAULT 'news'
        CONSTRAINT ck_mails_state_known CHECK (state IN ('news', 'waiting', 'done', 'given_up')),
    link text COLLATE "C",
    error text COLLATE "C",
    CONSTRAINT ck_mails_news_of_nobody_yet CHECK ((state = 'news') = (member_id IS NULL)),
    CONSTRAINT ck_mails_link_until_sent CHECK ((kind = 'link' AND state = 'waiting') = (link IS NOT NULL))
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
CREATE INDEX ix_mails_due ON mails (state, due_at);
CREATE INDEX ix_mails_member ON mails (member_id, kind, sandbox);

-- A receiver of one organization and mode: a cursor over its events. `position` is the sequence of the last event that
-- was delivered or passed over. `failures` counts the failed attempts of the next event, and `failing_since` is null
-- unless the last attempt failed. The worker that delivers owns it until `owned_until`. `is_slow`: its last attempt took
-- long. The secrets are encrypted; each previous one, the newest first, signs too until its end. Each delivery updates this row.
CREATE TABLE webhooks (
    id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT pk_webhooks PRIMARY KEY,
    organization_id bigint NOT NULL CONSTRAINT fk_webhooks_organization_id REFERENCES organizations (id),
    sandbox boolean NOT NULL,
    url text COLLATE "C" NOT NULL CONSTRAINT ck_webhooks_url_length CHECK (char_length(url) BETWEEN 1 AND 2000),
    types text[] COLLATE "C" NOT NULL CONSTRAINT ck_webhooks_types_counted CHECK (cardinality(types) BETWEEN 1 AND 50),
    description text COLLATE "C"
        CONSTRAINT ck_webhooks_description_length CHECK (char_length(description) BETWEEN 1 AND 255),
    secret text COLLATE "C" NOT NULL,
    previous_secrets text[] COLLATE "C" NOT NULL DEFAULT '{}',
    previous_until timestamptz[] NOT NULL DEFAULT '{}',
    position bigint NOT NULL CONSTRAINT ck_webhooks_position_not_negative CHECK (position >= 0),
    disabled_reason text COLLATE "C"
        CONSTRAINT ck_webhooks_disabled_reason_known CHECK (disabled_reason IN ('caller', 'gone', 'failing')),
    failures int NOT NULL DEFAULT 0 CONSTRAINT ck_webhooks_failures_not_negative CHECK (failures >= 0),
    failing_since timestamptz,
    retry_at timestamptz,
    owned_until timestamptz,
    is_slow boolean NOT NULL DEFAULT false,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT ck_webhooks_previous_secrets_until_a_moment CHECK (
        cardinality(previous_secrets) = cardinality(previous_until))
) WITH (fillfactor = 50);
CREATE INDEX ix_webhooks_organization ON webhooks (organization_id, sandbox);

-- One attempt to deliver an event, kept for 30 days. There is no foreign key: the attempts of a deleted webhook are
-- dropped by their age, like all others.
CREATE TABLE webhook_deliveries (
    id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT pk_webhook_deliveries PRIMARY KEY,
    webhook_id bigint NOT NULL,
    sequence bigint NOT NULL,
    event_id text COLLATE "C" NOT NULL,
    type text COLLATE "C" NOT NULL,
    attempt int NOT NULL CONSTRAINT ck_webhook_deliveries_attempt_counted CHECK (attempt >= 1),
    status int,
    ms int NOT NULL,
    error text COLLATE "C",
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX ix_webhook_deliveries_webhook ON webhook_deliveries (webhook_id, id);
CREATE INDEX ix_webhook_deliveries_created_at ON webhook_deliveries (created_at);

-- A call that a program made with a key, kept for 30 days. `route` is the template of its path; null: there is no such
-- call. `batch_id` is the batch that it was about. The web processes write these rows a moment after they have answered,
-- so there is no foreign key. Ids go by the time of writing, `created_at` by that of the call.
CREATE TABLE api_requests (
    id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT pk_api_requests PRIMARY KEY,
    organization_id bigint NOT NULL,
    api_key_id bigint NOT NULL,
    created_at timestamptz NOT NULL,
    batch_id bigint,
    status int NOT NULL CONSTRAINT ck_api_requests_status_of_an_answer CHECK (status BETWEEN 200 AND 599),
    ms int NOT NULL CONSTRAINT ck_api_requests_ms_not_negative CHECK (ms >= 0),
    sandbox boolean NOT NULL,
    request_id text COLLATE "C" NOT NULL
        CONSTRAINT ck_api_requests_request_id_length CHECK (char_length(request_id) BETWEEN 1 AND 128),
    method text COLLATE "C" NOT NULL,
    route text COLLATE "C",
    code text COLLATE "C",
    at_fault text COLLATE "C"
);
CREATE INDEX ix_api_requests_listed ON api_requests (organization_id, sandbox, created_at, id);

-- Rows that move points are written once (docs/decisions/0005). `UPDATE OF` fires only if those columns are set, so
-- inserts and the claim of a held transaction pay nothing for it.
CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            RAISE EXCEPTION 'a row of % is written once', TG_TABLE_NAME
                USING ERRCODE = 'restrict_violation', CONSTRAINT = TG_NAME;
        END $$;
CREATE TRIGGER batches_accepted_once
    BEFORE DELETE OR UPDATE OF id, organization_id, sandbox, api_key_id, member_id, amount, running_totals, atomic,
                               label, recipient_count, labels, item_references, metadata, hold_days,
                               rehearsed_unpaid ON batches
    FOR EACH ROW EXECUTE FUNCTION refuse_change();
-- The one edit of what was written: a person may have their name and address erased (app/erasing). Ids, amounts, order
-- and flags stay, so the books do; nothing else takes the place of an address.
CREATE FUNCTION only_erased(was text[], becomes text[]) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT cardinality($1) = cardinality($2) AND NOT EXISTS (
        SELECT FROM unnest($1, $2) AS x (was, becomes) WHERE x.was <> x.becomes AND x.becomes !~ '^erased-[0-9]+$')
$$;
CREATE TRIGGER batches_addresses_only_erased BEFORE UPDATE OF emails, email_keys ON batches
    FOR EACH ROW WHEN (NOT only_erased(OLD.emails, NEW.emails)
                       OR NOT only_erased(coalesce(OLD.email_keys, OLD.emails), coalesce(NEW.email_keys, NEW.emails)))
    EXECUTE FUNCTION refuse_change();
CREATE TRIGGER batches_payable_until_issued BEFORE UPDATE OF payable_totals ON batches
    FOR EACH ROW WHEN (OLD.status NOT IN ('awaiting_approval', 'scheduled', 'queued')
                       AND OLD.payable_totals IS DISTINCT FROM NEW.payable_totals)
    EXECUTE FUNCTION refuse_change();
CREATE TRIGGER transactions_addresses_only_erased BEFORE UPDATE OF email, email_key ON transactions
    FOR EACH ROW WHEN (NEW.email !~ '^erased-[0-9]+$' OR NEW.email_key IS NOT NULL) EXECUTE FUNCTION refuse_change();
CREATE FUNCTION only_names_erased(was json, becomes json) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT coalesce(
        CAST($1 AS jsonb) #- '{user,first_name}' #- '{user,last_name}'
        = CAST($2 AS jsonb) #- '{user,first_name}' #- '{user,last_name}'
        AND $2 #>> '{user,first_name}' ~ '^erased-[0-9]+$' AND $2 #>> '{user,last_name}' ~ '^erased-[0-9]+$', false)
$$;
CREATE TRIGGER batches_final_once
    BEFORE UPDATE OF status, refusal, issued_at, debited_count, debited_amount, current_balance, organization_name,
                     last_refill, cancelled_at, held_until ON batches
    FOR EACH ROW WHEN (OLD.status NOT IN ('awaiting_approval', 'scheduled', 'queued')) EXECUTE FUNCTION refuse_change();
CREATE TRIGGER batches_queued_before_issued BEFORE UPDATE OF status ON batches
    FOR EACH ROW WHEN (OLD.status = 'awaiting_approval' AND NEW.status IN ('issued', 'refused')
                       OR OLD.status = 'scheduled' AND NEW.status NOT IN ('scheduled', 'queued', 'cancelled')
                          AND NOT (NEW.status = 'awaiting_approval' AND OLD.approved_at IS NOT NULL)
                       OR OLD.status = 'queued' AND NEW.status IN ('awaiting_approval', 'scheduled', 'rejected'))
    EXECUTE FUNCTION refuse_change();
CREATE TRIGGER batches_answered_once
    BEFORE UPDATE OF approved_at, rejected_at, answered_by_member_id, answered_by_key_id, rejection_reason,
                     queue_place ON batches
    FOR EACH ROW WHEN (OLD.status <> 'awaiting_approval'
                       AND NOT (OLD.status = 'scheduled' AND NEW.status = 'awaiting_approval'))
    EXECUTE FUNCTION refuse_change();
CREATE TRIGGER batches_moved_while_scheduled BEFORE UPDATE OF send_at ON batches
    FOR EACH ROW WHEN (OLD.status <> 'scheduled') EXECUTE FUNCTION refuse_change();
CREATE TRIGGER transactions_written_once
    BEFORE DELETE OR UPDATE OF organization_id, batch_id, position, sandbox, debited, balance, amount, label,
                               reference ON transactions
    FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER transactions_points_left_only_fall BEFORE UPDATE OF points_left ON transactions
    FOR EACH ROW WHEN (NEW.points_left IS NULL OR NEW.points_left >= OLD.points_left) EXECUTE FUNCTION refuse_change();
CREATE TRIGGER transactions_held_until_only_rises BEFORE UPDATE OF held_until ON transactions
    FOR EACH ROW WHEN (OLD.credited OR NOT OLD.debited OR OLD.points_left = 0 OR NEW.held_until IS NULL
                       OR NEW.held_until <= OLD.held_until) EXECUTE FUNCTION refuse_change();
CREATE TRIGGER transactions_returned_once BEFORE UPDATE OF returned_at ON transactions
    FOR EACH ROW WHEN (OLD.returned_at IS NOT NULL OR OLD.credited OR NOT OLD.debited OR OLD.points_left = 0)
    EXECUTE FUNCTION refuse_change();
CREATE TRIGGER reversals_accepted_once
    BEFORE DELETE OR UPDATE OF id, organization_id, sandbox, api_key_id, member_id, batch_id, transaction_ids,
                               amount, atomic, reason, expected, is_return ON reversals
    FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER reversals_final_once
    BEFORE UPDATE OF status, refusal, done_at, reversed_amount, current_balance ON reversals
    FOR EACH ROW WHEN (OLD.status <> 'queued') EXECUTE FUNCTION refuse_change();
CREATE TRIGGER reversals_answer_to_one_key BEFORE UPDATE OF idempotency_key, idempotency_hash ON reversals
    FOR EACH ROW WHEN (NEW.idempotency_key IS NOT NULL
                       AND (OLD.idempotency_key, OLD.idempotency_hash)
                           IS DISTINCT FROM (NEW.idempotency_key, NEW.idempotency_hash))
    EXECUTE FUNCTION refuse_change();
CREATE TRIGGER reversal_entries_written_once BEFORE DELETE OR UPDATE ON reversal_entries
    FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER transactions_claimed_once BEFORE UPDATE OF user_id, credited, claimed_at ON transactions
    FOR EACH ROW WHEN (OLD.credited OR NOT OLD.debited OR OLD.returned_at IS NOT NULL
                       OR OLD.sandbox AND NEW.claimed_at IS NULL) EXECUTE FUNCTION refuse_change();
-- An erasure empties the hash of a body that had the address: by it, one could find out whether a guess is right.
CREATE TRIGGER batches_answer_to_one_key BEFORE UPDATE OF idempotency_key, idempotency_hash ON batches
    FOR EACH ROW WHEN (NEW.idempotency_key IS NOT NULL
                       AND (NEW.idempotency_key <> OLD.idempotency_key OR NEW.idempotency_hash <> ''))
    EXECUTE FUNCTION refuse_change();
CREATE TRIGGER api_keys_made_once
    BEFORE DELETE OR UPDATE OF id, organization_id, sandbox, hash, scopes, expires_at, batch_limit, daily_limit,
                               made_by_member_id, made_by_platform_key_id, made_by_operator ON api_keys
    FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER key_days_of_a_key BEFORE DELETE OR UPDATE OF api_key_id, day, daily_limit ON key_days
    FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER api_keys_revoked_once BEFORE UPDATE OF revoked_at ON api_keys
    FOR EACH ROW WHEN (OLD.revoked_at <> NEW.revoked_at OR OLD.revoked_at IS NOT NULL AND NEW.revoked_at IS NULL)
    EXECUTE FUNCTION refuse_change();
CREATE TRIGGER platform_keys_made_once BEFORE DELETE OR UPDATE OF id, name, scopes, hash ON platform_keys
    FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER platform_keys_revoked_once BEFORE UPDATE OF revoked_at ON platform_keys
    FOR EACH ROW WHEN (OLD.revoked_at <> NEW.revoked_at OR OLD.revoked_at IS NOT NULL AND NEW.revoked_at IS NULL)
    EXECUTE FUNCTION refuse_change();
CREATE TRIGGER members_made_once
    BEFORE DELETE OR UPDATE OF id, organization_id, email, email_key, first_name, last_name ON members
    FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER members_removed_once BEFORE UPDATE OF removed_at ON members
    FOR EACH ROW WHEN (OLD.removed_at IS NOT NULL) EXECUTE FUNCTION refuse_change();
CREATE TRIGGER actions_written_once BEFORE DELETE OR UPDATE ON actions FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER users_registered_once BEFORE DELETE OR UPDATE OF id, sandbox_of ON users
    FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER users_known_since_a_moment BEFORE UPDATE OF email, email_key ON users
    FOR EACH ROW WHEN (OLD.address_changed_at IS NOT DISTINCT FROM NEW.address_changed_at)
    EXECUTE FUNCTION refuse_change();
CREATE TRIGGER users_erased_for_good
    BEFORE UPDATE OF email, email_key, first_name, last_name, external_id, erased_at ON users
    FOR EACH ROW WHEN (OLD.erased_at IS NOT NULL) EXECUTE FUNCTION refuse_change();
CREATE TRIGGER former_addresses_written_once BEFORE UPDATE ON former_addresses
    FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER user_balances_of_a_user BEFORE DELETE OR UPDATE OF user_id, organization_id ON user_balances
    FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER user_entries_written_once BEFORE DELETE OR UPDATE ON user_entries
    FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER events_written_once BEFORE UPDATE ON events FOR EACH ROW WHEN (NOT only_names_erased(OLD.data, NEW.data)
                       OR (OLD.organization_id, OLD.sequence, OLD.id, OLD.created_at, OLD.batch_id, OLD.reversal_id,
                           OLD.send_at, OLD.credited, OLD.sandbox, OLD.type, OLD.idempotency_key)
                          IS DISTINCT FROM
                          (NEW.organization_id, NEW.sequence, NEW.id, NEW.created_at, NEW.batch_id, NEW.reversal_id,
                           NEW.send_at, NEW.credited, NEW.sandbox, NEW.type, NEW.idempotency_key))
    EXECUTE FUNCTION refuse_change();
CREATE TRIGGER unnumbered_events_written_once BEFORE UPDATE ON unnumbered_events
    FOR EACH ROW WHEN (NOT only_names_erased(OLD.data, NEW.data)
                       OR (OLD.organization_id, OLD.id, OLD.created_at, OLD.batch_id, OLD.reversal_id, OLD.send_at,
                           OLD.credited, OLD.sandbox, OLD.type)
                          IS DISTINCT FROM
                          (NEW.organization_id, NEW.id, NEW.created_at, NEW.batch_id, NEW.reversal_id, NEW.send_at,
                           NEW.credited, NEW.sandbox, NEW.type)) EXECUTE FUNCTION refuse_change();
CREATE TRIGGER event_logs_only_grow BEFORE UPDATE ON event_logs
    FOR EACH ROW WHEN (NEW.last_sequence < OLD.last_sequence OR NEW.dropped_to < OLD.dropped_to)
    EXECUTE FUNCTION refuse_change();
CREATE TRIGGER restores_written_once BEFORE DELETE OR UPDATE ON restores FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER refills_written_once BEFORE DELETE OR UPDATE ON refills FOR EACH ROW EXECUTE FUNCTION refuse_change();
