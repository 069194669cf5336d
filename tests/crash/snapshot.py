"""The invariants, from one moment of the database, held against what callers were told. Tolerance zero."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Engine, Row, text

from app.audit.run import audit
from tests.crash.intents import Intent, Intents, IssuedRow, Known
from tests.crash.undoing import Undo

Rows = Sequence[Row[Any]]
Taken = tuple[int, int, str | None]


class Snapshot:
    """Looks at the books again and again; a send that was found right and final is not looked up twice."""

    def __init__(self, engine: Engine, intents: Intents) -> None:
        self._engine = engine
        self._intents = intents
        self._found_right: set[Intent] = set()
        self._undone_right: set[Undo] = set()

    def violations(self, *, everything: bool = False) -> list[str]:
        """Return a sentence for each breach. With `everything`, every send of the run is looked up again."""
        # What callers know is copied before the moment of the snapshot: it must be true in it.
        known = [
            (intent, intent.known) for intent in self._intents.all() if everything or intent not in self._found_right
        ]
        undos = [
            (undo, undo.known, list(undo.taken))
            for undo in self._intents.undos()
            if everything or undo not in self._undone_right
        ]
        options = {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
        with self._engine.connect().execution_options(**options) as connection, connection.begin():
            found = [f"{rule}: {row.subject}" for rule, sql in _RULES.items() for row in connection.execute(text(sql))]
            found += [f"audit: {breach}" for breach in audit(connection).breaches]
            return found + self._wrong_sends(connection, known) + self._wrong_undos(connection, undos)

    def _wrong_undos(self, connection: Connection, undos: Sequence[tuple[Undo, Known, list[Taken]]]) -> list[str]:
        """Hold each reversal against what its caller was told: the entries, and that it is there once."""
        there: dict[str, list[Row[Any]]] = defaultdict(list)
        for row in connection.execute(_REVERSALS, {"reasons": [undo.reason for undo, _, _ in undos]}):
            there[row.reason].append(row)
        wrong = []
        for undo, known, taken in undos:
            done = [row for row in there[undo.reason] if row.status == "done"]
            stored = [(row.transaction_id, row.reversed, row.code) for row in done]
            if len({row.id for row in there[undo.reason]}) > 1 or (known is Known.NOT_SENT and there[undo.reason]):
                wrong.append(f"reversal {undo.reason} ({known.value}) is there {len(there[undo.reason])} times")
            elif known is Known.ISSUED and stored != taken:
                wrong.append(f"reversal {undo.reason}: answered {taken}, stored {stored}")
            elif known is Known.ISSUED:
                self._undone_right.add(undo)
        return wrong

    def _wrong_sends(self, connection: Connection, known: Sequence[tuple[Intent, Known]]) -> list[str]:
        batches: dict[str, list[Row[Any]]] = defaultdict(list)
        for row in connection.execute(_BATCHES, {"labels": [intent.label for intent, _ in known]}):
            batches[row.label].append(row)
        ids = [row.id for rows in batches.values() for row in rows]
        transactions: dict[int, list[Row[Any]]] = defaultdict(list)
        for row in connection.execute(_TRANSACTIONS, {"ids": ids}):
            transactions[row.batch_id].append(row)
        wrong = []
        for intent, outcome in known:
            of_intent = batches[intent.label]
            faults = _faults(intent, outcome, of_intent, transactions)
            wrong += [f"send {intent.label} ({outcome.value}): {fault}" for fault in faults]
            is_final = intent.key is None or outcome in (Known.ISSUED, Known.REFUSED)
            if (
                is_final
                and not faults
                and outcome is not Known.NOTHING
                and all(b.status != "queued" for b in of_intent)
            ):
                self._found_right.add(intent)
        return wrong


def _faults(intent: Intent, known: Known, batches: Rows, transactions: dict[int, list[Row[Any]]]) -> list[str]:
    standing = [batch for batch in batches if batch.status != "refused"]
    if len(standing) > 1:
        return [f"it is there {len(standing)} times"]
    if known is Known.REFUSED or (known is Known.NOT_SENT and intent.key is None):
        return ["it left a trace"] if standing else []
    told = {Known.ISSUED: "issued", Known.CANCELLED: "cancelled"}.get(known)
    if told is not None and (not standing or standing[0].status != told):
        return [f"it was answered that it is {told}, and it is not"]
    if known is Known.ACCEPTED and intent.key is None and intent.batch_id not in [batch.id for batch in batches]:
        return ["it was answered 202 and is gone"]
    if not standing:
        return []
    return _faults_of_rows(intent, known, standing[0], transactions[standing[0].id])


def _faults_of_rows(intent: Intent, known: Known, batch: Row[Any], rows: Rows) -> list[str]:
    if batch.status in ("scheduled", "queued", "cancelled") and not rows:
        return []
    meant = list(zip(intent.amounts, intent.references, strict=True))
    positions = [row.position for row in rows]
    for is_so, otherwise in (
        (positions == list(range(len(intent.recipients))), f"it has the positions {positions}"),
        ([row.email for row in rows] == intent.recipients, "its recipients are others, or in another order"),
        (
            (batch.organization_id, batch.sandbox) == (intent.organization_id, intent.sandbox),
            "it was issued for another organization or mode",
        ),
        ([(row.amount, row.reference) for row in rows] == meant, "its amounts or references are others"),
        (not intent.atomic or len({row.debited for row in rows}) == 1, "it is atomic and was debited in part"),
    ):
        if not is_so:
            return [otherwise]
    return _faults_of_answer(intent, batch, rows) if known is Known.ISSUED else []


def _faults_of_answer(intent: Intent, batch: Row[Any], rows: Rows) -> list[str]:
    """Hold what was answered 201 against what is stored: the very ids, recipients, amounts, flags and balances."""
    # What was claimed since was held when it was issued, and answered so.
    there = [
        IssuedRow(
            **{name: getattr(row, name) for name in ("id", "email", "amount", "reference", "balance", "debited")},
            credited=row.credited and not row.claimed,
            user_id=None if row.claimed else row.user_id,
        )
        for row in rows
    ]
    total = sum(row.amount for row in rows if row.debited)
    told = intent.batch_id, intent.current_balance, intent.total, intent.issued
    stored = batch.id, batch.current_balance, total, there
    return [] if told == stored else [f"answered {told}, stored {stored}"]


_BATCHES = text("""
    SELECT label, id, status, organization_id, sandbox, current_balance
    FROM batches WHERE label = ANY(:labels) ORDER BY id
""")
_REVERSALS = text("""
    SELECT r.reason, r.id, r.status, e.batch_id * 131072 + e.transaction_position AS transaction_id, e.reversed, e.code
    FROM reversals r LEFT JOIN reversal_entries e ON e.reversal_id = r.id
    WHERE r.reason = ANY(:reasons) ORDER BY r.id, e.position
""")
_TRANSACTIONS = text("""
    SELECT t.batch_id, t.position, transaction_id(t.batch_id, t.position) AS id, t.email, t.debited,
           t.credited, t.claimed_at IS NOT NULL AS claimed, t.user_id, t.balance,
           coalesce(t.amount, b.amount) AS amount, t.reference
    FROM transactions t JOIN batches b ON b.id = t.batch_id WHERE t.batch_id = ANY(:ids)
    ORDER BY t.batch_id, t.position
""")

# The two sums of the books once more, in words of their own, so that a fault of the audit is no blindness of ours.
_RULES = {
    "refills less debits are not the balance": """
        SELECT o.id AS subject FROM organizations o, (VALUES (false), (true)) AS mode (sandbox)
        WHERE CASE WHEN mode.sandbox THEN o.sandbox_balance ELSE o.balance END <>
              (SELECT coalesce(sum(r.amount), 0) FROM refills r
               WHERE r.organization_id = o.id AND r.sandbox = mode.sandbox)
              - (SELECT coalesce(sum(coalesce(t.amount, b.amount)), 0)
                 FROM batches b JOIN transactions t ON t.batch_id = b.id
                 WHERE b.organization_id = o.id AND b.sandbox = mode.sandbox AND t.debited)
              + (SELECT coalesce(sum(e.reversed), 0)
                 FROM reversals r JOIN reversal_entries e ON e.reversal_id = r.id
                 WHERE r.organization_id = o.id AND r.sandbox = mode.sandbox)
           OR o.balance < 0 OR o.sandbox_balance < 0""",
    "a user's balance is not the sum of its credits": """
        SELECT u.id AS subject FROM users u LEFT JOIN (
            SELECT t.user_id, sum(coalesce(t.points_left, t.amount, b.amount)) AS points
            FROM transactions t JOIN batches b ON b.id = t.batch_id
            WHERE t.credited AND NOT b.sandbox GROUP BY t.user_id) c ON c.user_id = u.id
        LEFT JOIN (SELECT t.user_id, sum(coalesce(t.points_left, t.amount, b.amount)) AS points
                   FROM unfolded_batches f JOIN batches b ON b.id = f.batch_id JOIN transactions t ON t.batch_id = b.id
                   WHERE t.credited AND t.claimed_at IS NULL GROUP BY t.user_id) f ON f.user_id = u.id
        LEFT JOIN (SELECT user_id, sum(points) AS points FROM user_balances GROUP BY user_id) s ON s.user_id = u.id
        WHERE coalesce(s.points, 0) + coalesce(f.points, 0) <> coalesce(c.points, 0)""",
    "points of one transaction were both claimed and returned, or claimed past their end": """
        SELECT t.batch_id AS subject FROM transactions t JOIN batches b ON b.id = t.batch_id
        WHERE t.claimed_at >= coalesce(t.returned_at, t.held_until, b.held_until)""",
    "a batch is overdue": """
        SELECT id AS subject FROM batches
        WHERE status = 'scheduled' AND send_at < clock_timestamp() - interval '60 s'""",
    "one label stands more than once": """
        SELECT label AS subject FROM batches WHERE status <> 'refused' GROUP BY label HAVING count(*) > 1""",
}
