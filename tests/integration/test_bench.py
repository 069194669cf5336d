"""The bench on a real PostgreSQL: stored transactions whose books balance, and looks at the worker's body."""

import psycopg
import pytest

from app import api_keys
from app.postgres.database import transaction
from app.settings import settings
from benchmarks import disk, filling
from benchmarks.body import accept_and_drain
from benchmarks.options import NotMeasured
from benchmarks.service import Sender
from benchmarks.stored import store
from tests.integration import books

pytestmark = pytest.mark.usefixtures("database")

_EMAILS = ("ann@example.com", "bob@example.com", "eve@example.com")


def test_transactions_stored_in_bulk_are_ones_that_the_audit_accepts() -> None:
    organization_id = books.make_organization(100)
    books.make_users(*_EMAILS)
    with psycopg.connect(settings().database_url, autocommit=True) as connection:
        store(connection, organization_id, batches=2)
        store(connection, organization_id, batches=1)
    assert books.balance_of(organization_id) == 91
    assert [books.balance_of_user(email) for email in _EMAILS] == [3, 3, 3]
    assert books.breaches() == []


def test_books_that_are_filled_step_by_step_are_ones_that_the_audit_accepts() -> None:
    organizations = [books.make_organization(10_000), books.make_organization(10_000)]
    with psycopg.connect(settings().database_url, autocommit=True) as connection:
        population = filling.register(connection, users=1_500, strangers=100)
        for step in range(2):
            filling.fill(connection, organizations, population, step=step, batches=2)
        [(held,)] = connection.execute(
            "SELECT count(*) FROM transactions WHERE email = %s AND debited AND NOT credited",
            (filling.email_of_holder(1, 23),),
        ).fetchall()
        [(referenced,)] = connection.execute(
            "SELECT count(*) FROM transactions WHERE reference = %s", (filling.reference_of(999),)
        ).fetchall()
    assert (held, referenced) == (2, 1)
    assert [books.balance_of(organization_id) for organization_id in organizations] == [8_000, 8_000]
    assert books.breaches() == []


def test_more_rows_than_the_disk_has_room_for_are_refused_before_anything_is_filled() -> None:
    disk.require_room(0)
    with pytest.raises(NotMeasured, match=r"1,000,000,000,000 rows may take 360006 GB, and .* GB free: .*--rows"):
        disk.require_room(10**12)


def test_a_look_at_the_workers_body_issues_its_batch() -> None:
    organization_id = books.make_organization(100)
    with transaction() as connection:
        _, key = api_keys.create(connection, organization_id, sandbox=False)
    accept_s, drain_s = accept_and_drain(Sender(organization_id=organization_id, key=key), _EMAILS)
    assert accept_s > 0
    assert drain_s > 0
    assert books.balance_of(organization_id) == 97
    assert books.breaches() == []
