"""Users are locked before anything is written for them, and in one order: or folds and claims would deadlock."""

from collections.abc import Callable

import pytest

from app.ledger.claim import claim
from app.postgres.database import transaction
from tests.conftest import Servers
from tests.integration import books, races
from tests.integration.plans import use_no_index

pytestmark = pytest.mark.usefixtures("database")

EMAILS = [f"{n}@example.com" for n in range(1, 41)]


def _fold() -> Callable[[], object]:
    """Prepare a fold for every user, the last one first."""
    books.issue_now(books.make_organization(100), list(reversed(EMAILS)), 1)
    return books.fold


def _claim() -> Callable[[], object]:
    """Prepare a claim for every user, the last one first, of points that their registration passed by."""
    books.execute(*books.WITHOUT_GUARDS, "UPDATE users SET email_key = email_key || '.invalid'", *books.WITH_GUARDS)
    books.issue_now(books.make_organization(100), EMAILS, 1)
    books.execute(*books.WITHOUT_GUARDS, "UPDATE users SET email_key = email", *books.WITH_GUARDS)

    def claim_all() -> int:
        with transaction() as connection:
            return claim(connection, list(range(40, 0, -1)))

    return claim_all


def _users_not_locked() -> list[int]:
    with transaction() as connection:
        statement = "SELECT id FROM users FOR NO KEY UPDATE SKIP LOCKED"
        return sorted(connection.exec_driver_sql(statement).scalars())


WRITES = {_fold: "UPDATE users", _claim: "UPDATE transactions"}

either = pytest.mark.parametrize("prepare", WRITES, ids=["fold", "claim"])


@either
@pytest.mark.parametrize("plans", ["any plan", "no index"])
def test_users_are_locked_in_the_order_of_their_ids_whatever_the_order_of_the_addresses(
    prepare: Callable[[], Callable[[], object]], plans: str, servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    if plans == "no index":
        use_no_index(servers, monkeypatch)
    books.make_users(*EMAILS)
    run = prepare()
    # An updated row moves to another place in its page, so that reading the table is not reading by id.
    books.execute("UPDATE users SET folded_balance = folded_balance WHERE mod(id, 2) = 1")
    with races.started() as start:
        with transaction() as holder:
            holder.exec_driver_sql("SELECT FROM users WHERE id = 20 FOR NO KEY UPDATE")
            running = start(run)
            races.until_waiting()
            assert _users_not_locked() == list(range(21, 41))
        running.result(races.PATIENCE_S)
    assert [books.balance_of_user(email) for email in EMAILS] == [1] * 40


@either
def test_every_user_is_locked_before_anything_is_written(prepare: Callable[[], Callable[[], object]]) -> None:
    books.make_users(*EMAILS)
    run = prepare()
    seen: list[list[int]] = []
    with races.before_statement(WRITES[prepare], lambda: seen.append(_users_not_locked())):
        run()
    assert seen == [[]]
