"""Deadlocks: none where users are locked in one order, and what they would look like where they are not."""

import random
import threading
from functools import partial

import pytest
from sqlalchemy.exc import OperationalError

from app.postgres.database import transaction
from tests.integration import books, races

pytestmark = pytest.mark.usefixtures("many_connections", "no_failure")


def test_organizations_that_pay_the_same_users_in_opposite_orders_never_deadlock() -> None:
    # Without ORDER BY where a drain locks its users, they would be locked in an order that depends on
    # the addresses of the drain; test_two_orders_of_locking_deadlock_and_the_count_shows_it is that case.
    emails = [f"{n}@example.com" for n in range(60)]
    books.make_users(*emails)
    organization_ids = [books.make_organization(10**9) for _ in range(4)]
    before = books.deadlocks()

    def send_often(organization_id: int) -> int:
        choice = random.Random(organization_id)  # noqa: S311  # Repeatable is what is wanted.
        sent = 0
        for _ in range(25):
            recipients = choice.sample(emails, choice.randint(20, 60))
            books.issue_now(organization_id, recipients, 1)
            sent += len(recipients)
        return sent

    sent = races.at_once(*[partial(send_often, organization_id) for organization_id in organization_ids])
    assert books.deadlocks() == before
    assert sum(books.balance_of_user(email) for email in emails) == sum(sent)
    assert books.breaches() == []


def test_two_orders_of_locking_deadlock_and_the_count_shows_it() -> None:
    books.make_users("1@example.com", "2@example.com")
    before = books.deadlocks()

    def lock(first: int, then: int) -> str | None:
        with transaction() as connection:
            connection.exec_driver_sql("SELECT FROM users WHERE id = %s FOR NO KEY UPDATE", (first,))
            meeting.wait(races.PATIENCE_S)
            try:
                connection.exec_driver_sql("SELECT FROM users WHERE id = %s FOR NO KEY UPDATE", (then,))
            except OperationalError as error:
                return getattr(error.orig, "sqlstate", None)
        return None

    meeting = threading.Barrier(2)
    assert set(races.at_once(partial(lock, 1, 2), partial(lock, 2, 1))) == {None, "40P01"}
    assert books.deadlocks() == before + 1


def test_imports_that_meet_on_the_same_addresses_in_opposite_orders_never_deadlock() -> None:
    emails = [f"{n}@example.com" for n in range(400)]
    before = books.deadlocks()
    for attempt in range(5):
        fresh = [f"{attempt}-{email}" for email in emails]
        races.at_once(partial(books.make_users, *fresh), partial(books.make_users, *reversed(fresh)))
    assert books.deadlocks() == before
