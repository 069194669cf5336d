"""The audit: clean books give no breach, and each way to break them is named by the rule it breaks."""

import pytest

from app.connections import engine
from app.ledger.audit import _RULES, audit
from tests.integration import books
from tests.integration.breaks import BREAKS, write_the_books

pytestmark = pytest.mark.usefixtures("database")


@pytest.mark.parametrize(("named", "statements"), [pytest.param(*rest, id=what) for what, *rest in BREAKS])
def test_each_break_of_the_books_is_named_by_the_rule_it_breaks_and_by_no_other(
    named: set[tuple[str, str]], statements: list[str]
) -> None:
    write_the_books()
    assert books.breaches() == []
    with engine().connect() as connection:
        for statement in [*books.WITHOUT_GUARDS, *statements]:
            connection.exec_driver_sql(statement)
        assert {(breach.rule, breach.subject) for breach in audit(connection).breaches} == named
        connection.rollback()
    assert books.breaches() == []


def test_every_rule_of_the_audit_is_broken_alone_here() -> None:
    alone = {rule for _, named, _ in BREAKS for rule, _ in named if len({rule for rule, _ in named}) == 1}
    assert alone == set(_RULES)
