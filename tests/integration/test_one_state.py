"""What stands together in an answer is of one state, whatever is committed while it is read."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

import pytest
from sqlalchemy import Connection, event
from werkzeug.test import TestResponse

from app.members.members import ADMIN
from app.postgres.connections import engine
from app.web.application import create_app
from tests.integration import books
from tests.integration.visitors import visitor

pytestmark = pytest.mark.usefixtures("database", "broker")

ANN, BOB = "ann@example.com", "bob@example.com"
_ONCE = re.compile(r'name="(csrf_token|form_id)"[^>]* value="[^"]*"')
# What is built of several statements, and changes when a batch is issued.
_PAGES = (
    *("", "/batches?points=4", "/batches/{}", "/batches/{}/take-back", "/batches/{}/cancel"),
    *("/transactions?points=2", "/held?label=x", "/statement"),
)
_CALLS = ("/v1/batches", "/v1/batches/{}", "/v1/transactions?batch={}", "/v1/organization")

# These read in an order that cannot show two states, or things that do not belong together, or wait for who writes.
_READ_COMMITTED = re.compile(
    r"/v1/(platform/)?events|/metrics|/readyz|/console/live/(batches|transactions|recipient|held|reversals)\.csv"
)


@pytest.fixture
def organization_id() -> int:
    books.make_users(ANN)
    return books.make_organization(1_000)


@pytest.fixture
def get(organization_id: int) -> Callable[[str], TestResponse]:
    """Give a test the pages to a member, and the calls to a live key."""
    client = visitor(create_app(), organization_id, ADMIN).client
    key = {"Authorization": f"Bearer {books.make_live_key(organization_id)}"}
    return lambda path: client.get(path, headers=key if path.startswith("/v1/") else {})


@contextmanager
def _behind(number: int, change: Callable[[], object]) -> Iterator[list[int]]:
    """Make a change behind so many statements of the block; yield a list that is empty until it is made."""
    seen: list[int] = []
    made: list[int] = []

    def statement_ended(*_: Any) -> None:
        seen.append(len(seen) + 1)
        if seen[-1] == number:
            change()
            made.append(number)

    event.listen(engine(), "after_cursor_execute", statement_ended)
    try:
        yield made
    finally:
        event.remove(engine(), "after_cursor_execute", statement_ended)


@pytest.mark.parametrize("path", [*(f"/console/live{page}" for page in _PAGES), *_CALLS])
def test_an_answer_is_of_the_state_before_an_issue_or_after_it(
    get: Callable[[str], TestResponse], organization_id: int, path: str
) -> None:
    for number in count(1):
        batch_id = books.queue_batch(organization_id, [ANN, BOB], 2, label="x", hold_days=3)

        def look(batch_id: int = batch_id) -> tuple[int, str]:
            answer = get(path.format(batch_id))
            return answer.status_code, _ONCE.sub("", answer.text)

        before = look()
        with _behind(number, lambda: books.drain_all(organization_id)) as is_made:
            between = look()
        if not is_made:
            break
        assert between in (before, look()), f"behind statement {number}"
    assert number > 2, "the key or the session is read, and something else"


def test_no_page_and_no_call_that_only_reads_sees_each_statement_in_another_state(
    get: Callable[[str], TestResponse], organization_id: int
) -> None:
    books.issue_now(organization_id, [ANN, BOB], 2)
    begun: list[object] = []

    def began(connection: Connection) -> None:
        begun.append(connection.get_execution_options().get("isolation_level", "READ COMMITTED"))

    rules = [rule for rule in create_app().url_map.iter_rules() if "GET" in (rule.methods or ())]
    paths = [re.sub(r"<[^>]+>", "1", rule.rule.replace("<any(live, sandbox):mode>", "live")) for rule in rules]
    event.listen(engine(), "begin", began)
    try:
        for path in filter(lambda path: not _READ_COMMITTED.match(path), paths):
            begun.clear()
            get(path)
            assert "READ COMMITTED" not in begun, path
    finally:
        event.remove(engine(), "begin", began)
