"""The books as a test handles them: organizations with balances, users, queued batches, the audit."""

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from itertools import accumulate
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

import psycopg
from sqlalchemy import Connection, Executable, text
from sqlalchemy.exc import IntegrityError

from app import api_keys, organizations, users
from app.audit.run import Breach, audit
from app.batches import queue
from app.batches.accept import Acceptance, Send, accept
from app.batches.batch import DIGESTED, Batch, batches
from app.batches.request import IssueRequest
from app.batches.transaction import TransactionRow, transactions_of
from app.errors import MayNotIssue
from app.events import log
from app.ledger import fold as ledger_fold
from app.ledger import issue as ledger_issue
from app.ledger.claim import register
from app.ledger.drain import drain
from app.ledger.refill import refill
from app.messaging import process_redis, worker_counters
from app.postgres.connections import engine
from app.postgres.database import digest, single_statement, snapshot, steps, transaction
from app.reversals import accept as reversal_acceptance
from app.reversals import reversal
from app.reversals.request import ReverseRequest
from app.scope import Scope
from app.values.ids import POSITIONS
from app.values.key_hashes import hash_key
from tests.deadline import until
from tests.tables import EMPTY

# Keeps the sums of what is held as the transactions are now: for a test that has changed these past every function.
KEEP_HELD = """
    UPDATE organizations o
    SET held_points = s.points, held_count = s.count, sandbox_held_points = s.sandbox_points,
        sandbox_held_count = s.sandbox_count
    FROM (SELECT o.id, coalesce(sum(left_) FILTER (WHERE NOT sandbox), 0) + (
                     SELECT coalesce(sum(points), 0) FROM unfolded_claims WHERE organization_id = o.id) AS points,
                 count(left_) FILTER (WHERE NOT sandbox) + (
                     SELECT coalesce(sum(count), 0) FROM unfolded_claims WHERE organization_id = o.id) AS count,
                 coalesce(sum(left_) FILTER (WHERE sandbox), 0) AS sandbox_points,
                 count(left_) FILTER (WHERE sandbox) AS sandbox_count
          FROM organizations o
          LEFT JOIN (SELECT t.organization_id, t.sandbox, coalesce(t.points_left, t.amount, b.amount) AS left_
                     FROM transactions t JOIN batches b ON b.id = t.batch_id
                     WHERE t.debited AND NOT t.credited AND t.points_left IS DISTINCT FROM 0) t
                 ON t.organization_id = o.id
          GROUP BY o.id) s
    WHERE s.id = o.id
"""


_P = ParamSpec("_P")
_T = TypeVar("_T")


def run(function: Callable[Concatenate[Connection, _P], _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
    """Call a function of the service in a transaction of its own."""
    with transaction() as connection:
        return function(connection, *args, **kwargs)


def empty() -> None:
    """Empty the tables and start their ids at 1, for a test that needs it more than once."""
    execute(EMPTY)


def make_organization(balance: int = 0, *, sandbox_balance: int = 0, name: str = "Acme") -> int:
    """Make an organization with opening balances and return its id."""
    with transaction() as connection:
        organization_id, _ = organizations.create(connection, name, sandbox_start_balance=sandbox_balance)
        if balance:
            refill(connection, organization_id, balance)
        if sandbox_balance:
            refill(connection, organization_id, sandbox_balance, sandbox=True)
    return organization_id


def refill_now(organization_id: int, amount: int) -> None:
    with transaction() as connection:
        refill(connection, organization_id, amount)


def set_flags(organization_id: int, **flags: bool) -> None:
    """Set `is_disabled` or `is_suspended` as the commands do."""
    with transaction() as connection:
        organizations.change(connection, organization_id, flags)


def make_users(*emails: str) -> list[int]:
    """Register users and return their ids in the order of the addresses."""
    with transaction() as connection:
        register(connection, [users.new_user(email, "First", "Last") for email in emails])
        return [users.get(connection, email).id for email in emails]


def issue(connection: Connection, organization_id: int, *, only: int | None = None) -> list[int] | None:
    """Issue as a drain does, in this transaction, and return the ids of the batches; None when the drain is owned."""
    outcomes = ledger_issue.issue(connection, organization_id, only=only)
    return None if outcomes is None else [outcome.id for outcome in outcomes]


def queue_batch(
    organization_id: int,
    emails: Sequence[str],
    amount: int | Sequence[int],
    *,
    sandbox: bool = False,
    atomic: bool = False,
    label: str | None = None,
    references: Sequence[str | None] | None = None,
    idempotency_key: str | None = None,
    send_at: datetime | None = None,
    hold_days: int | None = None,
) -> int:
    """Accept a batch as the front does, and return its id. No worker is told. Each recipient may have its amount."""
    request = IssueRequest(
        emails=list(emails),
        email_keys=[email.lower() for email in emails],
        amount=amount if isinstance(amount, int) else None,
        running_totals=None if isinstance(amount, int) else list(accumulate(amount)),
        atomic=atomic,
        label=label,
        references=references,
        send_at=send_at,
        kept={} if hold_days is None else {"hold_days": hold_days},
    )
    with transaction() as connection:
        send = Send(key_of(connection, organization_id, sandbox), request, idempotency_key)
        [accepted] = accept(connection, [send])
        if isinstance(accepted, MayNotIssue):
            return _queue_all_the_same(connection, organization_id, request, sandbox=sandbox)
    assert isinstance(accepted, Acceptance), accepted
    assert not accepted.existed, "the idempotency key names another batch"
    return accepted.batch_id


def _queue_all_the_same(connection: Connection, organization_id: int, request: IssueRequest, *, sandbox: bool) -> int:
    """Queue a batch as a front does that is overtaken by a suspension: the worker has to refuse it."""
    values = {
        "organization_id": organization_id,
        "sandbox": sandbox,
        "amount": request.amount,
        "running_totals": request.running_totals,
        "atomic": request.atomic,
        "label": request.label,
        "recipient_count": len(request.emails),
        "emails": request.emails,
        "email_keys": request.email_keys,
        "hold_days": request.kept.get("hold_days"),
    }
    names, parameters = ", ".join(values), ", ".join(f":{name}" for name in values)
    statement = text(f"INSERT INTO batches ({names}) VALUES ({parameters}) RETURNING id")
    batch_id: int = connection.execute(statement, values).scalar_one()
    connection.exec_driver_sql(f"{DIGEST_BATCHES} WHERE id = {batch_id}")  # Alone: others may hold theirs.
    return batch_id


def key_of(connection: Connection, organization_id: int, sandbox: bool = False) -> bytes:
    """Return the hash of an API key of an organization and mode; make one if there is none."""
    statement = text("SELECT hash FROM api_keys WHERE (organization_id, sandbox) = (:id, :sandbox) LIMIT 1")
    known: bytes | None = connection.execute(statement, {"id": organization_id, "sandbox": sandbox}).scalar()
    if known is not None:
        return bytes(known)
    _, key = api_keys.create(connection, organization_id, sandbox=sandbox)
    return hash_key(key)


def make_live_key(organization_id: int) -> str:
    """Make an API key of an organization, as a caller has it."""
    with transaction() as connection:
        return api_keys.create(connection, organization_id, sandbox=False)[1]


def rounds_of(organization_id: int) -> list[list[int]]:
    """Drain an organization as a worker does and return the batch ids that each round announced."""
    rounds: list[list[int]] = []
    for _ in range(_DRAINS_MAX):
        if not drain(
            organization_id, announce=lambda batch_ids, *_: rounds.append(list(batch_ids)) if batch_ids else None
        ):
            return rounds
    raise AssertionError(f"something is always due and never issued; announced were {rounds}")


def drain_all(organization_id: int) -> list[int]:
    """Drain an organization as a worker does and return the ids of the batches it announced."""
    return [batch_id for batch_ids in rounds_of(organization_id) for batch_id in batch_ids]


def issue_now(
    organization_id: int,
    emails: Sequence[str],
    amount: int | Sequence[int],
    *,
    sandbox: bool = False,
    hold_days: int | None = None,
) -> int:
    """Queue a batch and drain, and return its id. Where other workers drain too, one of them may issue it."""
    batch_id = queue_batch(organization_id, emails, amount, sandbox=sandbox, hold_days=hold_days)
    drain_all(organization_id)
    return batch_id


def queue_reversal(
    organization_id: int,
    *,
    batch_id: int | None = None,
    transaction_ids: Sequence[int] | None = None,
    amount: int | None = None,
    atomic: bool = False,
    sandbox: bool = False,
    idempotency_key: str | None = None,
) -> int:
    """Accept a reversal as the front does, and return its id. No worker is told."""
    request = ReverseRequest(
        batch_id=batch_id, transaction_ids=transaction_ids, amount=amount, atomic=atomic, reason="a mistake"
    )
    with transaction() as connection:
        who = api_keys.get_caller(connection, key_of(connection, organization_id, sandbox))
        accepted = reversal_acceptance.accept(connection, who, request, idempotency_key)
    assert not accepted.existed, "the idempotency key names another reversal"
    return accepted.reversal_id


def reverse_now(organization_id: int, **request: Any) -> int:
    """Queue a reversal and drain, and return its id."""
    reversal_id = queue_reversal(organization_id, **request)
    drain_all(organization_id)
    return reversal_id


def entries_of(reversal_id: int) -> list[tuple[int, str | None]]:
    """Return what a reversal took from each of its transactions, with the code, in request order."""
    with transaction() as connection:
        owner = text("SELECT organization_id FROM reversals WHERE id = :id")
        organization_id = connection.execute(owner, {"id": reversal_id}).scalar_one()
        entries = reversal.entries_of(connection, reversal_id, organization_id=organization_id)
        return [(entry.reversed, entry.code) for entry in entries]


def counted(*fields: str) -> dict[str, float]:
    """Return what the workers have counted, by the fields in Redis: these, or all."""
    found = {str(field): float(amount) for field, amount in process_redis.redis().hgetall(worker_counters.KEY).items()}
    return {field: amount for field, amount in found.items() if not fields or field in fields}


def has_due(organization_id: int) -> bool:
    """Tell whether a drain would look again: the look that follows its commit."""
    with single_statement() as connection:
        return queue.has_due(connection, organization_id)


def fold() -> int:
    """Fold everything that is not folded yet, as the worker's task does, and return in how many steps."""
    for step in range(_DRAINS_MAX):
        with transaction() as connection:
            if ledger_fold.fold(connection) == 0:
                return step
    raise AssertionError("something is always unfolded")


def fold_claims() -> None:
    """Fold every claim, as the worker's task does."""
    steps(ledger_fold.fold_claims, steps_max=_DRAINS_MAX)


def claim_crossed(*, registered_within_s: float | None = 900.0) -> None:
    """Run the upkeep that claims what is held for users whose registration crossed an issue."""
    # Importing the worker ends a process without settings, and a test has some only while it runs.
    from worker.upkeep import claim_crossed  # noqa: PLC0415

    claim_crossed(registered_within_s=registered_within_s)


def return_unclaimed() -> None:
    """Run the upkeep that gives back what was held too long."""
    from worker.upkeep import return_unclaimed  # noqa: PLC0415  # As above.

    return_unclaimed()


def and_told(insert: str) -> str:
    """Word an INSERT of users, past every function, with the events that the log of the platform has of them."""
    return f"WITH new AS ({insert} RETURNING id) {log.OF_REGISTERED_USERS}"


# For a test that has written or changed batches past every function: the audit takes them as they are now.
DIGEST_BATCHES = f"UPDATE batches b SET digest = {digest(DIGESTED, 'b')}"
DIGEST_REVERSALS = f"UPDATE reversals r SET digest = {digest(reversal.DIGESTED, 'r', codes=reversal.CODES)}"


def move_scheduled(moment: str, which: str = "true") -> None:
    """Move scheduled batches to a moment, as a call does that may be long ago; `which` says in SQL which of them."""
    execute(f"""
        WITH moved AS (
            UPDATE batches SET send_at = {moment} WHERE status = 'scheduled' AND {which}
            RETURNING organization_id, sandbox, id, send_at
        )
        INSERT INTO unnumbered_events (organization_id, sandbox, type, batch_id, send_at)
        SELECT organization_id, sandbox, 'batch.scheduled', id, send_at FROM moved""")


def let_days_pass(days: int) -> None:
    """Put what has an end, and what was claimed of it, so many days into the past."""
    past = f"interval '{24 * days} hours'"
    rewrite(
        f"UPDATE transactions t SET held_until = t.held_until - {past}, claimed_at = t.claimed_at - {past}"
        " FROM batches b WHERE b.id = t.batch_id AND b.held_until IS NOT NULL",
        f"UPDATE batches SET created_at = created_at - {past}, issued_at = issued_at - {past},"
        f" held_until = held_until - {past}, return_at = return_at - {past} WHERE held_until IS NOT NULL",
        f"UPDATE user_entries e SET created_at = e.created_at - {past} FROM batches b"
        f" WHERE b.id = e.transaction_id / {POSITIONS} AND b.held_until IS NOT NULL AND e.reversal_id IS NULL",
        *(
            f"UPDATE {table} e SET created_at = e.created_at - {past} FROM batches b"
            f" WHERE e.type = 'transaction.claimed' AND b.held_until IS NOT NULL"
            f" AND b.id = (e.data #>> '{{transactions,0}}')::bigint / {POSITIONS}"
            for table in ("events", "unnumbered_events")
        ),
        DIGEST_BATCHES,
    )


def read_batch(organization_id: int, batch_id: int, *, sandbox: bool = False) -> tuple[Batch, list[TransactionRow]]:
    """Return a batch and its transactions in request order."""
    with transaction() as connection:
        batch = batches.get(connection, batch_id, Scope(organization_id, sandbox))
        return batch, transactions_of(connection, batch_id, organization_id=organization_id)


def balance_of(organization_id: int, *, sandbox: bool = False) -> int:
    with transaction() as connection:
        return organizations.get(connection, Scope(organization_id, sandbox=sandbox)).balance


def balance_of_user(email: str) -> int:
    with transaction() as connection:
        return users.get(connection, email).balance


def counts() -> tuple[int, int]:
    """Return how many batches are queued and how many transactions there are, whoever's."""
    with transaction() as connection:
        statement = "SELECT (SELECT count(*) FROM batches WHERE status = 'queued'), (SELECT count(*) FROM transactions)"
        queue, transactions = connection.execute(text(statement)).one()
        return queue, transactions


# No test has more to drain than this many drains of ten rounds.
_DRAINS_MAX = 20

# The triggers would refuse before an audit has its turn. Rolled back with what follows, or undone.
WITHOUT_GUARDS = ["SET LOCAL session_replication_role = replica"]
WITH_GUARDS = ["SET LOCAL session_replication_role = origin"]


def values(statement: str | Executable, parameters: Any = None) -> list[Any]:
    """Return the first column of what a statement finds."""
    with transaction() as connection:
        if isinstance(statement, str):
            return list(connection.exec_driver_sql(statement, parameters).scalars())
        return list(connection.execute(statement, parameters).scalars())


def value(statement: str | Executable, parameters: Any = None) -> Any:
    """Return the one value that a statement finds."""
    [found] = values(statement, parameters)
    return found


def rewrite(*statements: str) -> None:
    """Run statements past the triggers that keep what was written once."""
    execute(*WITHOUT_GUARDS, *statements, *WITH_GUARDS)


def execute(*statements: str) -> None:
    """Run statements in one transaction, for what no function of the service would do."""
    with transaction() as connection:
        for statement in statements:
            connection.exec_driver_sql(statement)


@contextmanager
def undone() -> Iterator[Connection]:
    """Open a transaction of which nothing stays, and no id is drawn."""
    with engine().connect() as connection:
        as_before = connection.execute(_SEQUENCES_AS_THEY_ARE).scalar_one()
        try:
            yield connection
        finally:
            connection.rollback()
            connection.exec_driver_sql(f"SELECT {as_before}")
            connection.rollback()


_SEQUENCES_AS_THEY_ARE = text("""
    SELECT string_agg(format('setval(%L, %s, %L)', seqrelid::regclass, coalesce(last_value, seqstart),
                             last_value IS NOT NULL), ', ')
    FROM pg_sequence, pg_sequence_last_value(seqrelid) AS last_value
""")


def refused_by(*statements: str) -> str | None:
    """Return the constraint or the trigger that refuses one of the statements; nothing of them stays."""
    try:
        with undone() as connection:
            for statement in statements:
                connection.exec_driver_sql(statement)
    except IntegrityError as error:
        return cast(psycopg.Error, error.orig).diag.constraint_name
    return None


def breaches() -> list[Breach]:
    """Audit the books and return what is wrong with them."""
    with snapshot() as connection:
        return audit(connection).breaches


def deadlocks() -> int:
    """Return how many deadlocks PostgreSQL has broken in this database since it was made.

    A connection reports what it met with some delay, and at its end at the latest. So all of ours
    are ended first, and seen to be gone.
    """
    engine().dispose()
    with single_statement() as connection:  # A transaction would see the sessions of its first look again and again.
        others = text(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
            " AND backend_type = 'client backend'"
        )

        def are_gone() -> bool:
            gc.collect()  # A thread of an earlier test may have given one back to a pool that is no more.
            return bool(connection.execute(others).scalar_one() == 0)

        until(are_gone, what="the other connections end", every_s=0.2)
    with transaction() as connection:
        statement = text("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")
        return int(connection.execute(statement).scalar_one())
