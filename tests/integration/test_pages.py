"""Pages of the lists on a real PostgreSQL: each walk gives just the rows that a plain look at the tables gives."""

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import pytest
from sqlalchemy import text

from app.errors import NotFound
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

Walk = Callable[..., list[int]]


def pages_of(read: Callable[..., Page[Any]], filters: Filters, *, limit: int) -> Iterator[Page[Any]]:
    """Read page after page to the end of the list, each in a transaction of its own."""
    start: CursorPosition | None = None
    while True:
        with transaction() as connection:
            page = read(connection, filters, start=start, limit=limit)
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
    with transaction() as connection:
        return list(connection.execute(text(statement), filters.parameters()).scalars())


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


@pytest.mark.parametrize(("looked_at_max", "limit"), [(2, 1_000), (3, 2), (5_000, 1), (5_000, 1_000)])
def test_a_walk_gives_each_row_that_the_filters_let_through_once_and_in_order(
    organization: int, monkeypatch: pytest.MonkeyPatch, looked_at_max: int, limit: int
) -> None:
    monkeypatch.setattr("app.pages.filters.LOOKED_AT_MAX", looked_at_max)
    seen = 0
    emails = (None, ANN, "bob@example.com", "nobody@example.com")
    for email_key, debited, credited in product(emails, FLAGS, FLAGS):
        filters = Filters(
            organization_id=organization, sandbox=False, email_key=email_key, debited=debited, allocated=credited
        )
        transactions = walk_transactions(filters, limit=limit)
        assert transactions == look_at_transactions(filters), filters
        assert walk_batches(filters, limit=limit) == look_at_batches(filters), filters
        seen += len(transactions)
    assert seen > 50


@pytest.mark.parametrize("looked_at_max", [2, 5_000])
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


def test_the_rows_of_one_batch_are_listed_from_its_last_to_its_first(organization: int) -> None:
    for batch_id in look_at_batches(Filters(organization_id=organization, sandbox=False)):
        filters = Filters(organization_id=organization, sandbox=False, batch_id=batch_id)
        with transaction() as connection:
            positions = connection.execute(
                text(
                    "SELECT transaction_id(batch_id, position) FROM transactions WHERE batch_id = :id ORDER BY 1 DESC"
                ),
                {"id": batch_id},
            )
            ids = list(positions.scalars())
        assert walk_transactions(filters, limit=2) == ids
        assert walk_batches(filters) == [batch_id]
        by_address = Filters(organization_id=organization, sandbox=False, batch_id=batch_id, email_key=ANN)
        assert walk_transactions(by_address) == look_at_transactions(by_address)
        stranger = Filters(organization_id=organization, sandbox=True, batch_id=batch_id)
        assert walk_transactions(stranger) == walk_batches(stranger) == []


@pytest.mark.usefixtures("database")
def test_the_lists_of_an_address_in_one_batch_hold_nothing_of_the_batches_beside_it() -> None:
    organization_id = books.make_organization(100)
    for batch_id in [books.issue_now(organization_id, [ANN], 1) for _ in range(3)]:
        filters = Filters(organization_id=organization_id, sandbox=False, email_key=ANN, batch_id=batch_id)
        assert walk_transactions(filters) == [batch_id * POSITIONS]
        assert walk_batches(filters) == [batch_id]


def test_a_place_and_a_batch_that_nobody_was_ever_given_cost_no_more_than_others(organization: int) -> None:
    filters = Filters(organization_id=organization, sandbox=False, email_key=ANN)
    for read, look in ((transaction_pages.page, look_at_transactions), (batch_pages.page, look_at_batches)):
        with transaction() as connection:
            page = read(connection, filters, start=CursorPosition(None, INT64_MAX), limit=1_000)
            assert len(page.rows) == len(look(filters))
            nowhere = Filters(organization_id=organization, sandbox=False, email_key=ANN, batch_id=INT64_MAX)
            assert read(connection, nowhere, start=None, limit=1_000) == Page([], None)


@pytest.mark.usefixtures("database")
def test_before_the_first_batch_the_lists_of_an_address_are_empty() -> None:
    for batch_id in (None, INT64_MAX):
        filters = Filters(organization_id=1, sandbox=False, email_key=ANN, batch_id=batch_id)
        assert walk_transactions(filters) == walk_batches(filters) == []


def test_lists_hold_nothing_of_another_organization_or_mode(organization: int) -> None:
    own = [Filters(organization_id=organization, sandbox=sandbox) for sandbox in (False, True)]
    others = [Filters(organization_id=organization + 1, sandbox=sandbox) for sandbox in (False, True)]
    for walk in (walk_transactions, walk_batches):
        lists = [set(walk(filters)) for filters in (*own, *others)]
        assert all(lists)
        assert sum(map(len, lists)) == len(set.union(*lists))


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
    with transaction() as connection:
        one, other = connection.execute(_WITH_ONE_HASH, {"organization_id": organization_id}).scalar_one()
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


def test_flags_that_no_transaction_can_have_together_give_an_empty_list(organization: int) -> None:
    for debited, credited, allocated in ((None, True, False), (False, True, None), (False, None, True)):
        filters = Filters(
            organization_id=organization, sandbox=False, debited=debited, credited=credited, allocated=allocated
        )
        assert walk_transactions(filters) == walk_batches(filters) == []


def test_one_transaction_is_found_by_its_own_organization_and_mode_alone(organization: int) -> None:
    filters = Filters(organization_id=organization, sandbox=False)
    with transaction() as connection:
        for batch, row in transaction_pages.page(connection, filters, start=None, limit=1_000).rows:
            ours = transaction_pages.get(connection, row.id, organization_id=organization, sandbox=False)
            assert ours == (batch, row)
            for organization_id, sandbox in ((organization, True), (organization + 1, False)):
                with pytest.raises(NotFound, match=f"There is no transaction {row.id}."):
                    transaction_pages.get(connection, row.id, organization_id=organization_id, sandbox=sandbox)
        for nothing in (0, 1, 131_071, row.id + 100, 2**63 - 1, 2**63, 2**200):
            with pytest.raises(NotFound, match=f"There is no transaction {nothing}."):
                transaction_pages.get(connection, nothing, organization_id=organization, sandbox=False)
