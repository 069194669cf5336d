"""The books as a test handles them: organizations with balances, users, queued batches, the audit."""

from collections.abc import Sequence

from sqlalchemy import text

from app import batches, organizations, users
from app.batches import BatchRow, IssueRequest, TransactionRow
from app.database import snapshot, transaction
from app.ledger.audit import Breach, audit
from app.ledger.claim import register
from app.ledger.drain import drain
from app.ledger.refill import refill


def make_organization(balance: int = 0, *, sandbox_balance: int = 0, name: str = "Acme") -> int:
    """Make an organization with opening balances and return its id."""
    with transaction() as connection:
        organization_id = organizations.create(connection, name, sandbox_start_balance=sandbox_balance)
        if balance:
            refill(connection, organization_id, balance)
        if sandbox_balance:
            refill(connection, organization_id, sandbox_balance, sandbox=True)
    return organization_id


def make_users(*emails: str) -> list[int]:
    """Register users and return their ids in the order of the addresses."""
    with transaction() as connection:
        register(connection, [users.new_user(email, "First", "Last") for email in emails])
        return [users.find(connection, email).id for email in emails]


def queue_batch(
    organization_id: int,
    emails: Sequence[str],
    amount: int,
    *,
    sandbox: bool = False,
    atomic: bool = False,
    label: str | None = None,
    idempotency_key: str | None = None,
) -> int:
    """Accept a batch as the front does, and return its id. No worker is told."""
    request = IssueRequest(
        emails=list(emails),
        email_keys=[email.lower() for email in emails],
        amount=amount,
        atomic=atomic,
        label=label,
    )
    with transaction() as connection:
        batch_id = batches.accept(
            connection, organization_id, request, sandbox=sandbox, idempotency_key=idempotency_key
        )
    assert batch_id is not None
    return batch_id


def drain_all(organization_id: int) -> list[int]:
    """Drain an organization as a worker does and return the ids of the batches it announced."""
    announced: list[int] = []
    while drain(organization_id, announce=announced.extend):
        pass
    return announced


def issue_now(organization_id: int, emails: Sequence[str], amount: int, *, sandbox: bool = False) -> int:
    """Queue a batch, drain it, and return its id."""
    batch_id = queue_batch(organization_id, emails, amount, sandbox=sandbox)
    drain_all(organization_id)
    return batch_id


def read_batch(organization_id: int, batch_id: int, *, sandbox: bool = False) -> tuple[BatchRow, list[TransactionRow]]:
    """Return a batch and its transactions in request order."""
    with transaction() as connection:
        batch = batches.find(connection, batch_id, organization_id=organization_id, sandbox=sandbox)
        assert batch is not None
        return batch, batches.transactions_of(connection, batch_id)


def balance_of(organization_id: int, *, sandbox: bool = False) -> int:
    with transaction() as connection:
        return organizations.find(connection, organization_id, sandbox=sandbox).balance


def balance_of_user(email: str) -> int:
    with transaction() as connection:
        return users.find(connection, email).balance


def breaches() -> list[Breach]:
    """Audit the books and return what is wrong with them."""
    with snapshot() as connection:
        return audit(connection).breaches


def deadlocks() -> int:
    """Return how many deadlocks PostgreSQL has broken in this database since it was made."""
    with transaction() as connection:
        statement = text("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")
        return int(connection.execute(statement).scalar_one())
