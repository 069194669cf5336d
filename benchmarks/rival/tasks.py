"""The rival's worker: one task a send, one transaction a task, a loop over the recipients."""

import os
import warnings
from typing import Any

from celery import Celery
from celery.platforms import SecurityWarning
from sqlalchemy import select
from sqlalchemy.orm import Session

from benchmarks.rival.models import Organization, Transaction, User, engine

# Celery warns root because of pickled messages; this worker accepts JSON only.
warnings.simplefilter("ignore", SecurityWarning)

celery = Celery("rival", broker=os.environ.get("REDIS_URL"), backend=os.environ.get("REDIS_URL"))
celery.conf.update(task_default_queue="rival", worker_prefetch_multiplier=1, accept_content=["json"])


@celery.task(name="rival.issue")  # type: ignore[untyped-decorator]  # Celery ships no types.
def issue(organization_id: int, emails: list[str], amount: int) -> list[dict[str, Any]]:
    """Debit the organization and write one transaction per recipient, in order; return them."""
    with Session(engine(), expire_on_commit=False) as session:
        organization = session.get_one(Organization, organization_id, with_for_update=True)
        transactions = [_issue_one(session, organization, email, amount) for email in emails]
        session.commit()
        return [_as_json(transaction) for transaction in transactions]


def _issue_one(session: Session, organization: Organization, email: str, amount: int) -> Transaction:
    user = session.scalar(select(User).where(User.email == email).with_for_update())
    debited = organization.balance >= amount
    if debited:
        organization.balance -= amount
        if user is not None:
            user.balance += amount
    transaction = Transaction(
        organization_id=organization.id,
        user=user,
        email=email,
        amount=amount,
        balance=organization.balance,
        debited=debited,
        credited=debited and user is not None,
    )
    session.add(transaction)
    return transaction


def _as_json(transaction: Transaction) -> dict[str, Any]:
    return {
        "id": transaction.id,
        "organization": {"id": transaction.organization_id, "balance": transaction.balance},
        "recipient": None if transaction.user is None else {"id": transaction.user.id},
        "email": transaction.email,
        "amount": transaction.amount,
        "debited": transaction.debited,
        "credited": transaction.credited,
        "created_at": transaction.created_at.isoformat(),
    }
