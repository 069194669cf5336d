"""The audit: each break of the books is named by its rule alone, crossings and errors are told apart."""

from collections.abc import Callable
from functools import partial
from inspect import unwrap

import pytest

from app.audit.rules import RULES
from app.audit.run import _PARAMETERS, Audit, Breach, audit
from app.cli.operating import audit as audit_command
from app.messaging import process_redis, worker_counters
from app.postgres.database import snapshot
from tests.integration import books
from tests.integration.breaks import BREAKS, KEPT, write_the_books, write_what_was_answered


def _all_to_break() -> None:
    write_the_books()
    write_what_was_answered()
    assert books.breaches() == []


@pytest.mark.parametrize(("named", "statements"), [pytest.param(*rest, id=what) for what, *rest in BREAKS])
def test_each_break_of_the_books_is_named_by_its_rule_alone(
    given: Callable[[Callable[[], None]], None], named: set[tuple[str, str]], statements: list[str]
) -> None:
    given(_all_to_break)
    keep_held = [] if KEPT in {rule for rule, _ in named} else [books.KEEP_HELD]
    with books.undone() as connection:
        for statement in [*books.WITHOUT_GUARDS, *statements, *keep_held]:
            connection.exec_driver_sql(statement)
        assert {(breach.rule, breach.subject) for breach in audit(connection).breaches} == named


def test_every_rule_of_the_audit_is_broken_alone_here() -> None:
    alone = {rule for _, named, _ in BREAKS for rule, _ in named if len({rule for rule, _ in named}) == 1}
    assert alone == set(RULES)


ANN, BOB = "ann@example.com", "bob@example.com"
_A_USER = books.and_told(
    f"INSERT INTO users (email, email_key, first_name, last_name) VALUES ('{ANN}', '{ANN}', 'A', 'N')"
)


STAYS_HELD = "nothing stays held for a registered user"


def _cross_an_issue() -> None:
    """Leave points held for a user whose registration crossed their issue, all of it long ago."""
    books.issue_now(books.make_organization(100), [ANN], 10)
    books.rewrite(
        _A_USER,
        "UPDATE users SET created_at = created_at - interval '3 days'",
        "UPDATE refills SET created_at = created_at - interval '3 days'",
        "UPDATE batches SET issued_at = issued_at - interval '3 days', created_at = created_at - interval '3 days'",
        books.DIGEST_BATCHES,
    )


@pytest.mark.usefixtures("database")
def test_a_crossing_just_before_a_copy_was_made_is_no_breach_of_the_copy_however_old_that_is() -> None:
    _cross_an_issue()
    assert books.breaches() == []


@pytest.mark.usefixtures("database")
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


@pytest.mark.usefixtures("database")
def test_an_audit_counts_the_age_of_a_crossing_up_to_its_own_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(_PARAMETERS, "crossing_grace_s", 1)
    books.issue_now(books.make_organization(100), [ANN], 10)
    books.execute(_A_USER)
    with snapshot() as connection:
        connection.exec_driver_sql("SELECT pg_sleep(1.5)")
        assert audit(connection).breaches == []
    books.make_users(BOB)
    assert [breach.rule for breach in books.breaches()] == [STAYS_HELD]


def _audit() -> Audit:
    with snapshot() as connection:
        return audit(connection)


@pytest.mark.usefixtures("database", "broker")
def test_a_rule_that_fails_is_a_breach_and_the_others_are_still_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    books.make_users("ann@example.com")
    books.execute("INSERT INTO user_balances SELECT id, 1, 1 FROM users")
    monkeypatch.setattr("app.audit.run.RULES", {"one": "SELECT 1/0", **RULES})
    found = _audit()
    assert [(breach.rule, breach.subject) for breach in found.breaches] == [
        ("one", "an error"),
        ("a user's balance is the credited live transactions, less what was taken back", "user 1"),
    ]
    assert found.users == 1
    assert audit_command.callback is not None
    answer = unwrap(audit_command.callback)()
    assert answer.exit_status == 1
    assert answer._document["breaches"][0] == {"rule": "one", "subject": "an error", "seen": "DivisionByZero"}
    noted = worker_counters.last_audit(process_redis.redis())
    assert noted is not None
    assert noted.breaches == 2
    assert str(answer._sentence).startswith("an error: one, but: DivisionByZero")


@pytest.mark.usefixtures("database", "broker")
def test_an_audit_that_can_read_nothing_is_red(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.audit.run._COUNTS", "SELECT 1/0")
    monkeypatch.setattr("app.audit.run.RULES", {})
    assert _audit().breaches == [Breach(rule="every row can be counted", subject="an error", seen="DivisionByZero")]
