"""The audit rules about what was answered, and to whom, in the form of `app.audit.rules`."""

from app.batches.read import DIGESTED as OF_BATCH
from app.postgres.digests import digest
from app.reversals.read import CODES
from app.reversals.read import DIGESTED as OF_REVERSAL

ANSWER_RULES = {
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
                    UNION ALL SELECT 'list', id, organization_id, member_id FROM uploads) s
              LEFT JOIN members m ON m.id = s.member_id
              WHERE s.member_id IS NOT NULL AND m.organization_id IS DISTINCT FROM s.organization_id) owned
        ORDER BY noun, id""",
}
