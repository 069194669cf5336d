"""Pages of the lists on a real PostgreSQL: each walk gives just the rows that a plain look at the tables gives."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
from sqlalchemy import text

from app.pages import batch_pages, transaction_pages
from app.pages.filters import CursorPosition, Filters, Page
from app.postgres.connections import engine
from app.postgres.database import transaction
from app.settings import INT64_MAX
from app.values.ids import POSITIONS
from tests.integration import books

ANN, BOB, CEM, DAN = "ann@example.com", "Bob@Example.com", "cem@example.com", "dan@example.com"
FLAGS = (None, True, False)
# Batch ids an era, as the index of addresses has it.
_ERA = 16_384


def pages_of(read: Callable[..., Page[Any]], filters: Filters, *, limit: int) -> Iterator[Page[Any]]:
    """Read page after page to the end of the list, each in a transaction of its own."""
    start: CursorPosition | None = None
    while True:
        page = books.run(read, filters, start=start, limit=limit)
        assert len(page.rows) <= limit
        assert page.next is None or page.next != start, "a page must lead on"
        yield page
        start = page.next
        if start is None:
            return


def walk_transactions(filters: Filters, *, limit: int = 1_000) -> list[int]:
    """Return the ids of all transactions of a list, in its order."""
    pages = pages_of(transaction_pages.page, filters, limit=limit)
    return [transaction_row.id for page in pages for _, transaction_row in page.rows]


def walk_batches(filters: Filters, *, limit: int = 1_000) -> list[int]:
    return [batch.id for page in pages_of(batch_pages.page, filters, limit=limit) for batch in page.rows]


def _look(statement: str, filters: Filters) -> list[int]:
    """Return ids by a statement that reads whole tables and compares every row with the filters."""
    return books.values(text(statement), filters.parameters())


_MATCHES = """
    t.organization_id = :organization_id AND t.sandbox = :sandbox
    AND (CAST(:email_key AS text) IS NULL OR coalesce(t.email_key, t.email) = :email_key)
    AND (CAST(:debited AS boolean) IS NULL OR t.debited = :debited)
    AND (CAST(:credited AS boolean) IS NULL OR t.credited = :credited)
"""
_BATCH_IN_RANGE = """
    (CAST(:batch_id AS bigint) IS NULL OR b.id = :batch_id)
    AND (CAST(:created_from AS timestamptz) IS NULL OR {moment} >= :created_from)
    AND (CAST(:created_to AS timestamptz) IS NULL OR {moment} <= :created_to)
"""


def look_at_transactions(filters: Filters) -> list[int]:
    order = "" if filters.email_key is not None else "b.issued_at DESC, "
    return _look(
        f"""SELECT transaction_id(t.batch_id, t.position) FROM transactions t JOIN batches b ON b.id = t.batch_id
            WHERE {_MATCHES} AND {_BATCH_IN_RANGE.format(moment="b.issued_at")}
            ORDER BY {order}b.id DESC, t.position DESC""",
        filters,
    )


def look_at_batches(filters: Filters) -> list[int]:
    order = "" if filters.email_key is not None else "b.created_at DESC, "
    asked = (filters.debited, filters.credited, filters.allocated, filters.email_key)
    asks_rows = any(value is not None for value in asked)
    rows = f"AND EXISTS (SELECT FROM transactions t WHERE t.batch_id = b.id AND {_MATCHES})" if asks_rows else ""
    return _look(
        f"""SELECT b.id FROM batches b
            WHERE b.organization_id = :organization_id AND b.sandbox = :sandbox
            AND {_BATCH_IN_RANGE.format(moment="b.created_at")} {rows}
            ORDER BY {order}b.id DESC""",
        filters,
    )


@pytest.fixture
def organization(database: None) -> int:
    """Make a little of everything: paid, partly paid and unpaid batches, held and claimed points, modes, eras."""
    organization_id, other = (books.make_organization(100, sandbox_balance=40, name=name) for name in ("Acme", "Other"))
    books.make_users(ANN)
    for recipients, amount in (([ANN, BOB], 10), ([CEM], 5), ([ANN, CEM, DAN, ANN], 20), ([BOB, BOB, BOB], 1)):
        for owner in (organization_id, other):
            books.queue_batch(owner, recipients, amount)
            books.queue_batch(owner, recipients, amount, sandbox=True)
    books.drain_all(organization_id)
    books.drain_all(other)
    books.execute(f"SELECT setval('batches_id_seq', {_ERA - 2})")  # The next is the last of its era.
    late = books.queue_batch(organization_id, [DAN, ANN], 3)
    assert late == _ERA - 1
    books.execute(f"UPDATE batches SET retry_at = clock_timestamp() + interval '50 s' WHERE id = {late}")
    books.issue_now(organization_id, [CEM, BOB], 500)
    books.execute(f"SELECT setval('batches_id_seq', {7 * _ERA})")  # There are eras in which nobody was paid.
    books.issue_now(organization_id, [DAN], 1)
    books.execute(f"UPDATE batches SET retry_at = NULL WHERE id = {late}")
    books.drain_all(organization_id)
    books.make_users(BOB)
    books.queue_batch(organization_id, [ANN, DAN], 1)
    return organization_id


def _asked(organization_id: int) -> Iterator[Filters]:
    """Yield every combination of an address, two flags and a batch, and the same of the other mode and organization."""
    emails = (None, ANN, "bob@example.com", "nobody@example.com")
    everything = Filters(organization_id=organization_id, sandbox=False)
    for email_key, debited, credited in product(emails, FLAGS, FLAGS):
        yield replace(everything, email_key=email_key, debited=debited, allocated=credited)
    for batch_id, email_key in product(look_at_batches(everything), (None, ANN)):
        yield replace(everything, batch_id=batch_id, email_key=email_key)
        yield replace(everything, batch_id=batch_id, email_key=email_key, sandbox=True)
    yield replace(everything, batch_id=INT64_MAX, email_key=ANN)
    for other, sandbox in ((organization_id, True), (organization_id + 1, False), (organization_id + 2, False)):
        yield Filters(organization_id=other, sandbox=sandbox)
        yield Filters(organization_id=other, sandbox=sandbox, email_key=ANN)


@pytest.mark.parametrize(
    ("looked_at_max", "limit"), [(2, 1_000), (5_000, 3), pytest.param(3, 2, marks=pytest.mark.long)]
)
def test_a_walk_gives_each_row_that_the_filters_let_through_once_and_in_order(
    organization: int, monkeypatch: pytest.MonkeyPatch, looked_at_max: int, limit: int
) -> None:
    monkeypatch.setattr("app.pages.filters.LOOKED_AT_MAX", looked_at_max)
    seen = 0
    for filters in _asked(organization):
        transactions = walk_transactions(filters, limit=limit)
        assert transactions == look_at_transactions(filters), filters
        assert walk_batches(filters, limit=limit) == look_at_batches(filters), filters
        seen += len(transactions)
    assert seen > 100
    for debited, credited, allocated in ((None, True, False), (False, True, None), (False, None, True)):
        of_no_row = replace(filters, batch_id=None, debited=debited, credited=credited, allocated=allocated)
        assert walk_transactions(of_no_row) == walk_batches(of_no_row) == []


@pytest.mark.parametrize("looked_at_max", [2, pytest.param(5_000, marks=pytest.mark.long)])
def test_times_are_exact_and_inclusive_at_both_ends(
    organization: int, monkeypatch: pytest.MonkeyPatch, looked_at_max: int
) -> None:
    monkeypatch.setattr("app.pages.filters.LOOKED_AT_MAX", looked_at_max)
    for moment, walk, look in (
        ("issued_at", walk_transactions, look_at_transactions),
        ("created_at", walk_batches, look_at_batches),
    ):
        with transaction() as connection:
            statement = text(f"SELECT DISTINCT {moment} FROM batches WHERE {moment} IS NOT NULL")
            moments = [*connection.execute(statement).scalars(), None]
        for created_from, created_to, email_key in product(moments[::2], moments[1::2], (None, ANN)):
            filters = Filters(
                organization_id=organization,
                sandbox=False,
                email_key=email_key,
                created_from=created_from,
                created_to=created_to,
            )
            assert walk(filters, limit=2) == look(filters), filters


def test_how_a_page_is_planned_is_forgotten_with_its_transaction(organization: int) -> None:
    settings = text("SELECT name, setting FROM pg_settings WHERE name LIKE 'enable_%' OR name = 'jit' ORDER BY name")
    with engine().connect() as connection:
        with connection.begin():
            before = connection.execute(settings).all()
        with connection.begin():
            batch_pages.page(connection, Filters(organization_id=organization, sandbox=False), start=None, limit=1)
            assert connection.execute(settings).all() != before
        with connection.begin():
            assert connection.execute(settings).all() == before


@pytest.mark.usefixtures("database")
def test_of_two_addresses_with_one_hash_each_has_a_list_of_its_own() -> None:
    organization_id = books.make_organization(100)
    one, other = books.value(_WITH_ONE_HASH, {"organization_id": organization_id})
    first, second = (books.issue_now(organization_id, [email], 1) for email in (one, other))
    for email, batch_id in ((one, first), (other, second)):
        filters = Filters(organization_id=organization_id, sandbox=False, email_key=email)
        assert walk_batches(filters) == [batch_id]
        assert walk_transactions(filters) == [batch_id * POSITIONS]


_WITH_ONE_HASH = text("""
    SELECT (array_agg(email))[1:2]
    FROM (SELECT format('u%s@example.com', n) AS email FROM generate_series(1, 400000) n) addresses
    GROUP BY CAST(hashtextextended(email, :organization_id * 2) >> 32 AS int) HAVING count(*) > 1 LIMIT 1
""")
