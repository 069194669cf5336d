"""Books to break past every function, and what an audit must name for each break of them (`breaks.sql`)."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from string import Template

from sqlalchemy import Connection

from app import api_keys, organizations
from app.api_keys import Caller
from app.batches import approval, schedule
from app.batches.accept import Acceptance, Send, SendingMember, accept
from app.batches.request import IssueRequest
from app.ledger.returns import extend
from app.members import links
from app.postgres.database import transaction
from app.scope import Scope
from app.values.ids import POSITIONS
from app.webhooks.webhook import webhooks
from tests.integration import books
from tests.integration.logs_of_events import number_all

ANN, BOB, CID, DAN = (f"{name}@example.com" for name in ("ann", "bob", "cid", "dan"))
EVE, FAY, GUS = (f"{name}@example.com" for name in ("eve", "fay", "gus"))

KEPT = "what is kept as held is the sum of the held transactions"


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
    _add_to_sandbox(organization_id)  # User 91.
    books.issue_now(organization_id, [ANN], 10, sandbox=True)  # Batch 4: transaction 8.
    books.queue_batch(organization_id, [ANN], 10)  # Batch 5 stays queued.
    with_items = books.make_organization(sandbox_balance=20)  # 3.
    _add_to_sandbox(with_items)  # User 93.
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
        extend(connection, 12 * POSITIONS + 1, later, Scope(returning, sandbox=False))
    books.let_days_pass(11)
    books.return_unclaimed()  # and the first returned, by reversal 13.


def _add_to_sandbox(organization_id: int) -> None:
    """Register Ann in a sandbox, under an id beside those of the others."""
    books.execute(f"""
        INSERT INTO users (id, sandbox_of, email, email_key, first_name, last_name) OVERRIDING SYSTEM VALUE
        VALUES (90 + {organization_id}, {organization_id}, '{ANN}', '{ANN}', 'A', 'N')
    """)


def write_what_was_answered() -> None:
    """Write, after `write_the_books`, what the statements below change, in organization 6."""
    organization_id = books.make_organization(100)
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    for key in ("one", "two"):  # Batches 14 and 15.
        books.queue_batch(organization_id, [ANN, BOB], 5, idempotency_key=key)
    books.drain_all(organization_id)
    batch_id = books.queue_batch(organization_id, [ANN], 10, send_at=tomorrow)  # Batch 16 is moved, and then
    with transaction() as connection:
        schedule.reschedule(connection, batch_id, tomorrow + timedelta(hours=1), Scope(organization_id, sandbox=False))
        schedule.cancel(connection, batch_id, Scope(organization_id, sandbox=False))  # cancelled.
        organizations.change(connection, organization_id, {"is_suspended": True})
    books.queue_batch(organization_id, [ANN], 10)  # Batch 17 is refused.
    books.drain_all(organization_id)
    with transaction() as connection:
        organizations.change(connection, organization_id, {"is_suspended": False})
        organizations.change(connection, organization_id, {"low_balance": 50})
        member_id, _ = links.add(connection, organization_id, "eli@example.com", "Eli", "E", role="sender", by=None)
        request = IssueRequest(emails=[BOB], email_keys=[BOB], amount=40, atomic=False, label=None)
        [sent] = accept(connection, [Send(SendingMember(member_id, False), request, None)])  # Batch 18 makes
        assert isinstance(sent, Acceptance)
        hook = {"url": "https://192.0.2.7/", "types": ["*"], "secret": "s", "position": 0}
        webhooks.add(connection, Scope(organization_id, sandbox=False), **hook)
        scheduled = IssueRequest(emails=[BOB], email_keys=[BOB], amount=1, atomic=False, label=None, send_at=tomorrow)
        accept(connection, [Send(SendingMember(member_id, False), scheduled, None)])  # Batch 19 stays scheduled.
    books.drain_all(organization_id)  # the balance low.
    with transaction() as connection:  # Key 7 is revoked, and that is told last.
        revoked, _ = api_keys.create(connection, organization_id, sandbox=False)
        _answer_three(connection, organization_id, revoked)
        api_keys.revoke(connection, revoked)
    number_all()


def _answer_three(connection: Connection, organization_id: int, other_key: int) -> None:
    """Send batches 20 to 22, of which the first is approved, the second rejected, and the third awaits an approval."""
    organizations.change(connection, organization_id, {"approval_above": 0, "approval_of": "all"})
    request = IssueRequest(emails=[BOB], email_keys=[BOB], amount=1, atomic=False, label=None)
    sends = [Send(books.key_of(connection, organization_id), request, None)] * 3
    first, second, _ = [one.batch_id for one in accept(connection, sends) if isinstance(one, Acceptance)]
    organization = organizations.get(connection, Scope(organization_id, sandbox=False))
    who = Caller(api_key_id=other_key, sandbox=False, organization=organization)
    approval.approve(connection, who, first)
    approval.reject(connection, who, second, "a mistake")


def _a_user_of_an_hour_ago(email: str) -> str:
    columns = "(email, email_key, first_name, last_name, created_at)"
    values = f"'{email}', '{email}', 'First', 'Last', now() - interval '1 hour'"
    return books.and_told(f"INSERT INTO users {columns} VALUES ({values})")


def _read() -> list[tuple[str, set[tuple[str, str]], list[str]]]:
    """Read what is wrong, the rules and subjects that an audit names, and the statements, a paragraph each."""
    words = Template((Path(__file__).parent / "breaks.sql").read_text()).substitute(
        DIGEST_BATCHES=books.DIGEST_BATCHES,
        DIGEST_REVERSALS=books.DIGEST_REVERSALS,
        BOB_OF_AN_HOUR_AGO=_a_user_of_an_hour_ago(BOB),
        EVE_OF_AN_HOUR_AGO=_a_user_of_an_hour_ago(EVE),
    )
    breaks = []
    for paragraph in words.strip().replace("\n--   ", " ").split("\n\n")[1:]:
        what, *rules = re.findall(r"^-- (.+)$", paragraph, re.MULTILINE)
        named = {
            (rule, one)
            for rule, _, subjects in (line.partition(": ") for line in rules)
            for one in subjects.split("; ")
        }
        statements = re.sub(r"^--.*\n", "", paragraph, flags=re.MULTILINE).removesuffix(";").split(";\n")
        breaks.append((what, named, statements))
    return breaks


BREAKS = _read()
