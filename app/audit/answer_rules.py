"""The audit rules about what was answered, and about what is counted by the day, in the form of `app.audit.rules`."""

from app.batches.approval import is_one_person
from app.batches.batch import DIGESTED as OF_BATCH
from app.batches.batch import NOT_FINAL
from app.postgres.database import digest
from app.reversals.reversal import CODES
from app.reversals.reversal import DIGESTED as OF_REVERSAL
from app.statement.read import DAY_OF_MOMENT, MOVES, SUMS, begin_of
from app.values.addresses import IS_ERASED


def _told(row: str) -> str:
    """Word in SQL the sums of a day as a person reads them."""
    figures = ", ".join(f"'{name} ' || coalesce({row}.{name}, 0)" for name in SUMS)
    return f"concat_ws(', ', {figures})"


ANSWER_RULES = {
    # Who is erased after the issue keeps what was debited.
    "who was erased before the issue counts for nothing, and everybody else in full": f"""
        SELECT format('batch %s', b.id) AS subject,
               format('%s debited where %s follow, and the first that counts wrongly at position %s', b.debited_count,
                      r.debited, coalesce(r.wrong::text, 'none')) AS seen
        FROM batches b
        CROSS JOIN LATERAL (
            SELECT count(*) FILTER (WHERE counts > 0 AND payable <= b.debited_amount) AS debited,
                   min(place - 1) FILTER (WHERE CASE WHEN NOT {IS_ERASED} THEN counts = points
                                                     WHEN b.status IN {NOT_FINAL} THEN counts = 0
                                                     ELSE counts IN (0, points) END IS NOT TRUE) AS wrong
            FROM (SELECT email, payable, place, points, coalesce(payable - payable_before, points) AS counts
                  FROM unnest(b.emails, b.payable_totals, (0::bigint || b.payable_totals)[1 : b.recipient_count],
                              b.running_totals, (0::bigint || b.running_totals)[1 : b.recipient_count]) WITH ORDINALITY
                           AS i (email, payable, payable_before, total, total_before, place)
                  CROSS JOIN LATERAL (SELECT coalesce(total - total_before, b.amount) AS points) p) r
        ) r
        WHERE (b.payable_totals IS NOT NULL OR b.status IN {NOT_FINAL})
          AND (r.wrong IS NOT NULL OR b.payable_totals IS NOT NULL AND r.debited <> b.debited_count)
        ORDER BY b.id""",
    "a batch and a reversal are as they were accepted and answered": f"""
        SELECT format('%s %s', noun, id) AS subject, format('status %s', status) AS seen
        FROM (SELECT 'batch' AS noun, id, status FROM batches b
              WHERE digest IS DISTINCT FROM {digest(OF_BATCH, "b")}
              UNION ALL
              SELECT 'reversal', id, status FROM reversals r
              WHERE digest IS DISTINCT FROM {digest(OF_REVERSAL, "r", codes=CODES)}) differing
        ORDER BY noun, id""",
    "a key, a member and what they sent belong to one organization and mode": """
        SELECT format('%s %s', noun, id) AS subject,
               format('organization %s, of its sender %s', organization_id, coalesce(of_sender::text, 'none')) AS seen
        FROM (SELECT s.noun, s.id, s.organization_id, k.organization_id AS of_sender
              FROM (SELECT 'batch' AS noun, id, organization_id, sandbox, api_key_id FROM batches
                    UNION ALL SELECT 'reversal', id, organization_id, sandbox, api_key_id FROM reversals
                    UNION ALL SELECT 'approval', id, organization_id, sandbox, answered_by_key_id FROM batches
                              WHERE answered_by_key_id IS NOT NULL) s
              LEFT JOIN api_keys k ON k.id = s.api_key_id
              WHERE s.api_key_id IS NOT NULL
                AND (k.organization_id, k.sandbox) IS DISTINCT FROM (s.organization_id, s.sandbox)
              UNION ALL
              SELECT s.noun, s.id, s.organization_id, m.organization_id
              FROM (SELECT 'batch' AS noun, id, organization_id, member_id FROM batches
                    UNION ALL SELECT 'reversal', id, organization_id, member_id FROM reversals
                    UNION ALL SELECT 'approval', id, organization_id, answered_by_member_id FROM batches
                              WHERE answered_by_member_id IS NOT NULL
                    UNION ALL SELECT 'action', id, organization_id, member_id FROM actions
                    UNION ALL SELECT 'action', id, organization_id, subject_id FROM actions
                              WHERE action LIKE 'member.%'
                    UNION ALL SELECT 'key', id, organization_id, made_by_member_id FROM api_keys
                    UNION ALL SELECT 'list', id, organization_id, member_id FROM uploads) s
              LEFT JOIN members m ON m.id = s.member_id
              WHERE s.member_id IS NOT NULL AND m.organization_id IS DISTINCT FROM s.organization_id) owned
        ORDER BY noun, id""",
    "who has answered a batch is another person than who has sent it": f"""
        SELECT format('batch %s', b.id) AS subject,
               format('sent by %s, answered by %s', coalesce('member ' || b.member_id, 'key ' || b.api_key_id),
                      coalesce('member ' || b.answered_by_member_id, 'key ' || b.answered_by_key_id)) AS seen
        FROM batches b
        WHERE coalesce(b.answered_by_member_id, b.answered_by_key_id) IS NOT NULL
          AND {is_one_person(("b.member_id", "b.api_key_id"), ("b.answered_by_member_id", "b.answered_by_key_id"))}
        ORDER BY b.id""",
    "a key's day counts the points of its batches, but for those refused, cancelled or not paid": """
        SELECT format('key %s on %s', api_key_id, day) AS subject,
               format('%s used less %s given back, where its batches count %s', sum(used), sum(given_back),
                      sum(counted)) AS seen
        FROM (
            SELECT api_key_id, day, used, 0 AS given_back, 0 AS counted FROM key_days
            UNION ALL
            SELECT api_key_id, day, 0, points, 0 FROM points_given_back
            UNION ALL
            SELECT b.api_key_id, CAST(b.created_at AT TIME ZONE 'UTC' AS date), 0, 0,
                   CASE WHEN b.status = 'issued' THEN b.debited_amount
                        WHEN b.status IN ('refused', 'cancelled', 'rejected') THEN 0
                        ELSE coalesce(b.amount::numeric * b.recipient_count, b.running_totals[b.recipient_count]) END
            FROM batches b JOIN api_keys k ON k.id = b.api_key_id WHERE k.daily_limit IS NOT NULL
        ) of_each
        GROUP BY api_key_id, day
        HAVING sum(used) - sum(given_back) <> sum(counted)
        ORDER BY api_key_id, day""",
    "a key's day has the limit of its key": """
        SELECT format('key %s on %s', d.api_key_id, d.day) AS subject,
               format('limit %s, of the key %s', d.daily_limit, coalesce(k.daily_limit::text, 'none')) AS seen
        FROM key_days d LEFT JOIN api_keys k ON k.id = d.api_key_id
        WHERE d.daily_limit IS DISTINCT FROM k.daily_limit
        ORDER BY d.api_key_id, d.day""",
    # With the rule that the balance is the sum of all moves, every opening and closing balance of a statement follows.
    "what is counted of a day is what the books have of it": f"""
        SELECT format('organization %s, %s, %s', coalesce(c.organization_id, b.organization_id),
                      CASE WHEN coalesce(c.sandbox, b.sandbox) THEN 'sandbox' ELSE 'live' END,
                      coalesce(c.day, b.day)) AS subject,
               format('counted %s; in the books %s', {_told("c")}, {_told("b")}) AS seen
        FROM (SELECT s.* FROM daily_sums s
              JOIN modes mode ON (mode.organization_id, mode.sandbox) = (s.organization_id, s.sandbox)
              WHERE {begin_of("s.day")} < mode.counted_until) c
        FULL JOIN (SELECT moves.organization_id, moves.sandbox, {DAY_OF_MOMENT} AS day,
                          {", ".join(f"sum({name}) AS {name}" for name in SUMS)}
                   FROM ({MOVES}) moves
                   JOIN modes mode ON (mode.organization_id, mode.sandbox) = (moves.organization_id, moves.sandbox)
                   WHERE moves.moment < mode.counted_until GROUP BY 1, 2, 3) b
               ON (b.organization_id, b.sandbox, b.day) = (c.organization_id, c.sandbox, c.day)
        WHERE ({", ".join(f"c.{name}" for name in SUMS)})
              IS DISTINCT FROM ({", ".join(f"b.{name}" for name in SUMS)})
        ORDER BY coalesce(c.organization_id, b.organization_id), coalesce(c.sandbox, b.sandbox),
                 coalesce(c.day, b.day)""",
}
