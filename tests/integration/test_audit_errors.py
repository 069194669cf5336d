"""An audit that cannot look is red, and says at which rule: it never leaves the last good one to stand."""

from inspect import unwrap

import pytest

from app.audit.rules import RULES
from app.audit.run import Audit, Breach, audit
from app.cli.audit import audit as audit_command
from app.messaging import last_runs, process_redis
from app.postgres.database import snapshot
from tests.integration import books

pytestmark = pytest.mark.usefixtures("database", "broker")


def _audit() -> Audit:
    with snapshot() as connection:
        return audit(connection)


def test_a_rule_that_ends_with_an_error_is_a_breach_and_the_others_are_looked_at_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    books.make_users("ann@example.com")
    books.execute("UPDATE users SET folded_balance = 1")
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
    noted = last_runs.last_audit(process_redis.redis())
    assert noted is not None
    assert noted.breaches == 2
    assert str(answer._sentence).startswith("an error: one, but: DivisionByZero")


def test_an_audit_that_can_read_nothing_is_red(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.audit.run._COUNTS", "SELECT 1/0")
    monkeypatch.setattr("app.audit.run.RULES", {})
    assert _audit().breaches == [Breach(rule="every row can be counted", subject="an error", seen="DivisionByZero")]
