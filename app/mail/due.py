"""What is due: news for members, collected into one mail for each member and kind.

A mail is sent a few seconds after its first news, with all that came since, and the next of its kind a minute later at
the earliest. So a hundred batches that await an approval are one mail.

No transaction is held while a server is called. Whoever takes a mail puts off its rows; if that process dies, they are
due again. So a mail may come twice, with the same Message-ID, and none is lost.
"""

from typing import NamedTuple

from sqlalchemy import Connection, text

from app.batches.approval import is_one_person
from app.events.event_types import AWAITING, LOW_BALANCE
from app.members.members import ADMIN, APPROVER
from app.postgres import locks
from app.postgres.database import row_to

_COLLECT_S = 5
_APART_S = 60
# Longer than a server may take for one mail.
_TAKEN_S = 300
_PAUSE_S, _PAUSE_MAX_S = 15, 3_600
_TRIED_HOURS = 24
_GIVEN_UP_KEPT_DAYS = 7
_NEWS_AT_ONCE = 1_000


class Due(NamedTuple):
    """News for one member, of one kind and mode, that are due: the ids of their rows, and what they are about."""

    member_id: int
    organization_id: int
    kind: str
    sandbox: bool
    ids: list[int]
    batch_ids: list[int]
    links: list[str]
    failures: int


def is_any(connection: Connection) -> bool:
    """Tell whether there is anything to do, at the price of one look."""
    return bool(connection.execute(_IS_ANY).scalar())


_IS_ANY = text("""
    SELECT EXISTS (SELECT FROM mails WHERE state IN ('news', 'waiting', 'done', 'given_up')
                                       AND due_at <= (SELECT clock_timestamp()))
""")


def take(connection: Connection) -> Due | None:
    """Take the mail that is due for the longest time; None if none is, or somebody else is looking."""
    # Otherwise two of them, each with a row of one mail, would wait for each other.
    if not locks.try_to_take(connection, locks.Kind.MAIL):
        return None
    connection.execute(_DROP)
    connection.execute(_ADDRESS, {"at_most": _NEWS_AT_ONCE})
    row = connection.execute(_TAKE).one_or_none()
    return None if row is None else row_to(Due, row)


_DROP = text("DELETE FROM mails WHERE state IN ('done', 'given_up') AND due_at <= (SELECT clock_timestamp())")
# Whoever has neither a password nor a link that works cannot look.
_ADDRESS = text(f"""
    WITH news AS (
        DELETE FROM mails
        WHERE id = ANY(ARRAY(SELECT id FROM mails WHERE state = 'news' ORDER BY due_at, id LIMIT :at_most))
        RETURNING *
    )
    INSERT INTO mails (organization_id, sandbox, kind, batch_id, member_id, state, due_at)
    SELECT n.organization_id, n.sandbox, n.kind, n.batch_id, m.id, 'waiting',
           greatest(clock_timestamp() + interval '{_COLLECT_S} s',
                    (SELECT max(due_at) FROM mails o
                     WHERE (o.member_id, o.kind, o.sandbox) = (m.id, n.kind, n.sandbox) AND o.state <> 'given_up'))
    FROM news n
    LEFT JOIN LATERAL (SELECT * FROM batches WHERE batches.id = n.batch_id LIMIT 1) b ON true
    JOIN members m ON m.organization_id = n.organization_id AND m.removed_at IS NULL
                      AND (m.password_hash IS NOT NULL OR m.link_expires_at > clock_timestamp())
    WHERE CASE n.kind
          WHEN '{AWAITING}' THEN m.role IN ('{APPROVER}', '{ADMIN}')
                                 AND NOT {is_one_person(("b.member_id", "b.api_key_id"), ("m.id", "NULL"))}
          WHEN '{LOW_BALANCE}' THEN m.role = '{ADMIN}'
          ELSE m.id = b.member_id END
    ORDER BY n.id, m.id
""")
_SAME = "(m.member_id, m.kind, m.sandbox)"
_TAKE = text(f"""
    WITH longest AS (
        SELECT member_id, kind, sandbox FROM mails
        WHERE state = 'waiting' AND due_at <= (SELECT clock_timestamp()) ORDER BY due_at LIMIT 1
    ), taken AS (
        UPDATE mails m SET due_at = clock_timestamp() + interval '{_TAKEN_S} s'
        FROM longest l WHERE {_SAME} = (l.member_id, l.kind, l.sandbox) AND m.state = 'waiting'
        RETURNING m.*
    )
    SELECT member_id, organization_id, kind, sandbox, array_agg(id ORDER BY id) AS ids,
           coalesce(array_agg(batch_id ORDER BY id) FILTER (WHERE batch_id IS NOT NULL), '{{}}') AS batch_ids,
           coalesce(array_agg(link ORDER BY id) FILTER (WHERE link IS NOT NULL), '{{}}') AS links,
           max(failures) AS failures
    FROM taken GROUP BY member_id, organization_id, kind, sandbox
""")


def note_done(connection: Connection, due: Due) -> None:
    """Note that a mail was sent, or had nothing to tell any more. What came meanwhile has its mail a minute later."""
    connection.execute(_DONE, due._asdict())


_DONE = text(f"""
    UPDATE mails m
    SET due_at = clock_timestamp() + interval '{_APART_S} s', (state, link) = (
            SELECT CASE WHEN is_done THEN 'done' ELSE m.state END, CASE WHEN NOT is_done THEN m.link END
            FROM (SELECT m.id = ANY(:ids) AS is_done) AS told)
    WHERE {_SAME} = (:member_id, :kind, :sandbox) AND m.state = 'waiting'
""")


def note_failed(connection: Connection, due: Due, error: str) -> bool:
    """Put off a mail that could not be sent, for longer each time; tell whether it was given up, after a day."""
    pause_s = min(_PAUSE_S * 2.0**due.failures, _PAUSE_MAX_S)
    parameters = {"ids": due.ids, "error": error, "pause_s": pause_s}
    return any(connection.execute(_FAILED, parameters).scalars())


_FAILED = text(f"""
    UPDATE mails m
    SET failures = failures + 1, error = :error, (state, due_at, link) = (
            SELECT CASE WHEN is_over THEN 'given_up' ELSE m.state END,
                   CASE WHEN is_over THEN now + interval '{_GIVEN_UP_KEPT_DAYS} days'
                        ELSE now + make_interval(secs => :pause_s) END,
                   CASE WHEN NOT is_over THEN m.link END
            FROM (SELECT now, now - m.created_at > interval '{_TRIED_HOURS} hours' AS is_over
                  FROM (SELECT clock_timestamp() AS now) AS clock) AS tried)
    WHERE id = ANY(:ids) AND state = 'waiting'
    RETURNING state = 'given_up'
""")


class Unsent(NamedTuple):
    """How many mails failed so far and are tried again, how many were given up lately, and why the last failed."""

    failing: int
    given_up: int
    error: str | None


def unsent(connection: Connection) -> Unsent:
    """Return which mail the server does not take."""
    return row_to(Unsent, connection.execute(_UNSENT).one())


_UNSENT = text("""
    SELECT count(DISTINCT (member_id, kind, sandbox)) FILTER (WHERE state = 'waiting') AS failing,
           count(DISTINCT (member_id, kind, sandbox)) FILTER (WHERE state = 'given_up') AS given_up,
           (array_agg(error ORDER BY id DESC))[1] AS error
    FROM mails WHERE failures > 0 AND state IN ('waiting', 'given_up')
""")
