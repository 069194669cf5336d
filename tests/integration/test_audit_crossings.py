"""The audit of points held for a user whose registration crossed their issue: by the books' own time."""

from collections.abc import Callable
from functools import partial

import pytest

from app.audit.run import _PARAMETERS, audit
from app.postgres.database import snapshot
from tests.integration import books

pytestmark = pytest.mark.usefixtures("database")

ANN, BOB = "ann@example.com", "bob@example.com"
STAYS_HELD = "nothing stays held for a registered user"


def _cross_an_issue() -> None:
    """Leave points held for a user whose registration crossed their issue, all of it long ago."""
    books.issue_now(books.make_organization(100), [ANN], 10)
    books.execute(
        *books.WITHOUT_GUARDS,
        f"INSERT INTO users (email, email_key, first_name, last_name) VALUES ('{ANN}', '{ANN}', 'A', 'N')",
        "UPDATE users SET created_at = created_at - interval '3 days'",
        "UPDATE refills SET created_at = created_at - interval '3 days'",
        "UPDATE batches SET issued_at = issued_at - interval '3 days', created_at = created_at - interval '3 days'",
        *books.WITH_GUARDS,
    )


def test_a_crossing_just_before_a_copy_was_made_is_no_breach_of_the_copy_however_old_that_is() -> None:
    _cross_an_issue()
    assert books.breaches() == []


@pytest.mark.parametrize(
    "write",
    [
        pytest.param(partial(books.make_users, BOB), id="user"),
        pytest.param(partial(books.make_organization, 100), id="refill"),
        pytest.param(partial(books.queue_batch, 1, [BOB], 10), id="batch"),
    ],
)
def test_a_crossing_that_stays_is_a_breach_once_anything_newer_is_in_the_books(write: Callable[[], object]) -> None:
    _cross_an_issue()
    write()
    assert [breach.rule for breach in books.breaches()] == [STAYS_HELD]


def test_an_audit_counts_the_age_of_a_crossing_up_to_its_own_beginning_however_long_it_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(_PARAMETERS, "crossing_grace_s", 1)
    books.issue_now(books.make_organization(100), [ANN], 10)
    books.execute(f"INSERT INTO users (email, email_key, first_name, last_name) VALUES ('{ANN}', '{ANN}', 'A', 'N')")
    with snapshot() as connection:
        connection.exec_driver_sql("SELECT pg_sleep(1.5)")
        assert audit(connection).breaches == []
    books.make_users(BOB)
    assert [breach.rule for breach in books.breaches()] == [STAYS_HELD]
