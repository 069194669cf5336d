"""The audit: clean books give no breach, and each way to break them is named by the rule it breaks."""

import psycopg
import pytest
from sqlalchemy.exc import IntegrityError

from app.audit.rules import RULES
from app.audit.run import audit
from app.postgres.connections import engine
from tests.integration import books
from tests.integration.breaks import BREAKS, write_the_books
from tests.integration.unseen import UNSEEN, write_what_no_audit_sees

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
    assert alone == set(RULES)


@pytest.mark.parametrize(
    ("guard", "statements"), [pytest.param(guard, statements, id=what) for guard, what, statements in UNSEEN]
)
def test_what_no_audit_can_see_is_refused_by_a_trigger(guard: str, statements: list[str]) -> None:
    write_the_books()
    write_what_no_audit_sees()
    with pytest.raises(IntegrityError) as refused:
        books.execute(*statements)
    assert isinstance(refused.value.orig, psycopg.Error)
    assert refused.value.orig.diag.constraint_name == guard
    with engine().connect() as connection:
        for statement in [*books.WITHOUT_GUARDS, *statements]:
            assert connection.exec_driver_sql(statement).rowcount != 0, "it changes nothing"
        # Once a rule sees it, it belongs to the breaks that an audit names.
        assert audit(connection).breaches == []
        connection.rollback()
