"""What a page costs in a filled database: as PostgreSQL counts it, the same at any depth, for every filter."""

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from itertools import product
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, TextClause, text

from app.batches import sent_lately
from app.batches.request import IssueRequest
from app.pages import batch_pages, entry_pages, far, transaction_pages, waiting
from app.pages.filters import LOOKED_AT_MAX, CursorPosition, Filters, Page
from app.postgres.connections import new_engine
from app.scope import Scope
from app.statement.counting import count_step
from app.statement.read import statement_of
from app.values.ids import POSITIONS
from tests.conftest import Servers
from tests.integration import filled
from tests.tables import EMPTY

LIMIT = 100

# A row of a page is at the most a descent into an index and a row of its table, for the transaction, its batch
# and its user each; a small table's index has three levels. A page that looks at all it may has no users.
BUFFERS_A_ROW = 12
PAGE_MAX = BUFFERS_A_ROW * (LIMIT + 1)
# An era in which an address was never paid is a descent into the index.
BUFFERS_AN_ERA = 3
# The newest batch of 64 eras, which tells how many of them there are, is a descent and its row.
BUFFERS_OF_THE_NEWEST = 4
LOOKED_AT_BUFFERS_MAX = 8 * LOOKED_AT_MAX

_FIRST = datetime(2026, 1, 1, tzinfo=UTC)
_RANGE = (_FIRST + timedelta(days=3), _FIRST + timedelta(days=9))
FLAGS = (None, True, False)
LISTS: dict[str, Callable[..., Page[Any]]] = {"batches": batch_pages.page, "transactions": transaction_pages.page}


@pytest.fixture(scope="module")
def full(servers: Servers) -> Iterator[Engine]:
    """Fill the database once for all tests of this file."""
    engine = new_engine(servers.database_url, pool_size=1)
    _empty(engine)
    filled.fill(engine)
    yield engine
    _empty(engine)
    engine.dispose()


def _empty(engine: Engine) -> None:
    with engine.begin() as connection:
        connection.exec_driver_sql(EMPTY)


class Explained:
    """A connection that has each statement explained as it runs: the `buffers` it touched, the tables it `scanned`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.buffers = 0
        self.scanned: set[str] = set()

    def execute(self, statement: TextClause, parameters: Any = None) -> Any:
        if "set_config" in statement.text:
            return self._connection.execute(statement)
        explain = text(f"EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) {statement.text}")
        [document] = self._connection.execute(explain, parameters).scalar_one()
        self.buffers += document["Plan"]["Shared Hit Blocks"] + document["Plan"]["Shared Read Blocks"]
        self._look_at(document["Plan"])
        return self._connection.execute(statement, parameters)

    def _look_at(self, plan: dict[str, Any]) -> None:
        if plan["Node Type"] in ("Seq Scan", "Bitmap Heap Scan"):
            self.scanned.add(plan["Relation Name"])
        for part in plan.get("Plans", []):
            self._look_at(part)


def cost(engine: Engine, kind: str, filters: Filters, *, start: CursorPosition | None) -> tuple[int, int]:
    """Return how many buffers a page touches and how many rows it holds."""
    with engine.connect() as connection:
        explained = Explained(connection)
        page = LISTS[kind](explained, filters, start=start, limit=LIMIT)
    assert explained.scanned == set(), "a page is found in indexes"
    return explained.buffers, len(page.rows)


def place_at(kind: str, filters: Filters, batch_id: int) -> CursorPosition:
    """Return the place of a batch of `filled.fill` in a list."""
    by_id = kind == "transactions" or filters.email_key is not None
    row_id = batch_id * POSITIONS + POSITIONS - 1 if by_id else batch_id
    return CursorPosition(None if filters.email_key is not None else _FIRST + timedelta(minutes=batch_id), row_id)


def everything_asked() -> Iterator[Filters]:
    """Yield every combination of flags, an address that is in all batches or in two or none, and times."""
    for email_key, debited, credited, (created_from, created_to) in product(
        (None, filled.BUSY, filled.RARE), FLAGS, FLAGS, ((None, None), _RANGE)
    ):
        yield Filters(
            organization_id=1,
            sandbox=False,
            email_key=email_key,
            debited=debited,
            credited=credited,
            created_from=created_from,
            created_to=created_to,
        )


@pytest.mark.parametrize("kind", LISTS)
def test_whatever_is_asked_a_page_looks_at_a_bounded_number_of_rows_at_any_depth(full: Engine, kind: str) -> None:
    worst = {}
    for filters in everything_asked():
        for batch_id in (None, 30_015, 25_000, 1_500, 3):
            start = None if batch_id is None else place_at(kind, filters, batch_id)
            buffers, rows = cost(full, kind, filters, start=start)
            if buffers > (PAGE_MAX if rows == LIMIT else LOOKED_AT_BUFFERS_MAX):
                worst[filters, batch_id] = buffers, rows
    assert worst == {}


def test_a_page_of_entries_looks_at_its_own_rows_at_any_depth(full: Engine) -> None:
    filters = Filters(organization_id=0, sandbox=False, user_id=1)
    for start in (None, CursorPosition(_FIRST + timedelta(days=19), 0), CursorPosition(_FIRST + timedelta(days=5), 0)):
        with full.connect() as connection:
            explained: Any = Explained(connection)
            page = entry_pages.page(explained, filters, start=start, limit=LIMIT)
        assert explained.scanned <= {"unfolded_batches"}  # What is not folded yet is looked through whole.
        assert explained.buffers <= PAGE_MAX
    assert len(page.rows) > 0


# Where 64 eras end that have a batch, and how many eras a list looks into: a restore skips 61,000 that have none.
_ERAS = {"with batches": (range(63, 1_024, 64), 1_024), "that restores skip": ([61_037, 122_073], 1 + 46 + 26)}


@pytest.mark.parametrize("kind", LISTS)
@pytest.mark.parametrize(("ends", "eras"), _ERAS.values(), ids=list(_ERAS))
def test_the_lists_of_an_address_look_into_the_index_once_for_each_era_that_may_have_a_batch(
    full: Engine, kind: str, ends: Sequence[int], eras: int
) -> None:
    with full.connect() as connection:  # Never committed: other tests use the same rows.
        connection.execute(_A_BATCH_IN_ERA, [{"id": end * 16_384} for end in ends])
        looked_at = BUFFERS_AN_ERA * eras + BUFFERS_OF_THE_NEWEST * (len(ends) + 2)  # The first eras, and no more.
        for email_key, most in ((filled.RARE, looked_at + PAGE_MAX), ("nobody@example.com", looked_at)):
            explained = Explained(connection)
            filters = Filters(organization_id=1, sandbox=False, email_key=email_key)
            LISTS[kind](explained, filters, start=None, limit=LIMIT)
            assert explained.scanned == set()
            assert explained.buffers <= most
        connection.rollback()


_A_BATCH_IN_ERA = text("""
    INSERT INTO batches (id, organization_id, sandbox, amount, atomic, recipient_count, emails)
    OVERRIDING SYSTEM VALUE VALUES (:id, 1, false, 1, false, 1, ARRAY['late@example.com'])
""")


@pytest.mark.parametrize("kind", LISTS)
def test_one_batch_is_found_and_not_walked_to(full: Engine, kind: str) -> None:
    for batch_id in (30_015, 15_000, 3, 1_000_000):
        for debited, credited, (created_from, created_to) in product(FLAGS, FLAGS, ((None, None), _RANGE)):
            filters = Filters(
                organization_id=1,
                sandbox=False,
                batch_id=batch_id,
                debited=debited,
                credited=credited,
                created_from=created_from,
                created_to=created_to,
            )
            buffers, rows = cost(full, kind, filters, start=None)
            # What was credited, only the rows of the batch can tell.
            most = BUFFERS_A_ROW * (rows + 1) if filters.credit is None else PAGE_MAX
            assert buffers <= most, filters


@pytest.mark.parametrize(
    "asked", [{"email_part": "nobody"}, {"label_part": "x"}, {"sender": 7}, {"points": 6}, {"state": "returned"}]
)
def test_a_search_for_a_person_looks_no_further_than_it_may(
    full: Engine, monkeypatch: pytest.MonkeyPatch, asked: dict[str, Any]
) -> None:
    monkeypatch.setattr(far, "FAR_MAX", 20_000)
    filters = Filters(organization_id=1, sandbox=False, **asked)
    for batch_id in (None, 20_000):  # From the large batches, and from among the small ones.
        start = None if batch_id is None else place_at("transactions", filters, batch_id)
        with full.connect() as connection:
            explained: Any = Explained(connection)
            page = transaction_pages.page(explained, filters, start=start, limit=LIMIT, is_far=True)
        assert (page.rows, page.next is None, explained.scanned) == ([], False, set())
        assert explained.buffers <= far.FAR_MAX, batch_id
    with full.connect() as connection:
        explained = Explained(connection)
        assert not far.totals(explained, filters).is_whole
    assert explained.scanned == set()
    assert explained.buffers <= 2 * far.FAR_MAX


def test_a_search_for_who_waits_looks_no_further_than_it_may(full: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "LOOKED_AT_MAX", 5_000)
    asked: tuple[dict[str, Any], ...] = (
        {"email_part": "nobody"},
        {"email_key": "w999@example.com"},
        {"email_part": "w", "label_part": "x"},
    )
    for of, found in zip(asked, (0, 5, 0), strict=True):
        filters = Filters(organization_id=1, sandbox=False, **of)
        with full.connect() as connection:  # Never committed: other tests use the same rows.
            connection.execute(_SCHEDULED)
            explained: Any = Explained(connection)
            rows, whole = waiting.find(explained, filters, at_most=LIMIT)
            connection.rollback()
        assert (len(rows), whole, explained.scanned) == (found, False, set())
        assert explained.buffers <= waiting.LOOKED_AT_MAX


def test_a_search_for_a_label_reads_no_more_labels_of_items_than_it_may(
    full: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_pages, "FAR_BATCHES_MAX", 100_000)  # As many as the newest ten batches have.
    filters = Filters(organization_id=1, sandbox=False, label_part="nobody's")
    with full.connect() as connection:  # Never committed: other tests use the same rows.
        connection.execute(text("SET LOCAL session_replication_role = replica"))  # Rows are written once.
        connection.execute(_LABELLED)
        explained: Any = Explained(connection)
        page = batch_pages.page(explained, filters, start=None, limit=LIMIT, is_far=True)
        totals = batch_pages.totals(explained, filters, page, limit=0)
        connection.rollback()
    assert (page.rows, page.next is None, totals, explained.scanned) == ([], False, (0, 0, False), set())
    assert explained.buffers <= far.FAR_MAX / 100


_LABELLED = text("""
    UPDATE batches SET labels = array_fill('spring'::text, ARRAY[recipient_count]) WHERE recipient_count > 1
""")
_SCHEDULED = text("""
    INSERT INTO batches (id, organization_id, sandbox, amount, atomic, recipient_count, emails, status, send_at)
    OVERRIDING SYSTEM VALUE
    SELECT 50000 + i, 1, false, 1, false, 1000, ARRAY(SELECT 'w' || j || '@example.com' FROM generate_series(0, 999) j),
           'scheduled', now() FROM generate_series(1, 50) i
""")


def test_a_comparison_with_what_was_sent_lately_looks_no_further_than_it_may(
    full: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sent_lately, "DAYS", 20 * 365)
    monkeypatch.setattr(sent_lately, "LOOKED_AT_MAX", 100_000)
    emails = [f"a{number}@example.com" for number in range(31_000, 41_000)]
    for amount, label, is_alike in ((5, None, True), (6, "x", False)):  # As all batches, and as none.
        request = IssueRequest(emails=emails, email_keys=emails, amount=amount, atomic=False, label=label)
        with full.connect() as connection:
            explained: Any = Explained(connection)
            found = sent_lately.of_request(explained, request, 1, sandbox=False, but_key=None)
        assert (found.recipients > 9_000, found.is_whole) == (is_alike, False)
        assert not explained.scanned & {"batches", "transactions"}
        assert explained.buffers <= 5 * sent_lately.LOOKED_AT_MAX


def test_a_statement_costs_as_many_rows_as_days_however_many_batches_these_had(full: Engine) -> None:
    first, last = date(2026, 1, 1), date(2026, 2, 28)
    with full.connect() as connection:
        while count_step(connection, Scope(1, sandbox=False)):
            connection.commit()
        explained: Any = Explained(connection)
        found = statement_of(explained, Scope(1, sandbox=False), first=first, last=last)
    assert found.total.batches == filled.SMALL + filled.LARGE
    # What is not counted yet may be found by a bitmap of the index: only the number of pages tells that it is little.
    assert explained.buffers <= BUFFERS_A_ROW * ((last - first).days + 2)
