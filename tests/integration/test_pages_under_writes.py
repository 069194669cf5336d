"""Pages while others write: no row comes twice, and none that was there before the first page is left out."""

from collections.abc import Callable, Iterator
from functools import partial

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.pages import batch_pages, transaction_pages
from app.pages.filters import Filters
from tests.integration import books
from tests.integration.test_pages import look_at_batches, look_at_transactions, pages_of

ANN = "ann@example.com"
FILTERS = [
    partial(Filters, sandbox=False),
    partial(Filters, sandbox=False, debited=True),
    partial(Filters, sandbox=False, credited=True),
    partial(Filters, sandbox=False, allocated=False),
    partial(Filters, sandbox=False, email_key=ANN),
]


def transaction_ids(filters: Filters, limit: int) -> Iterator[list[int]]:
    for page in pages_of(transaction_pages.page, filters, limit=limit):
        yield [row.id for _, row in page.rows]


def batch_ids(filters: Filters, limit: int) -> Iterator[list[int]]:
    for page in pages_of(batch_pages.page, filters, limit=limit):
        yield [batch.id for batch in page.rows]


LISTS = [(transaction_ids, look_at_transactions), (batch_ids, look_at_batches)]


class Writer:
    """Somebody who issues, postpones, claims and resumes for an organization, one thing at a time."""

    def __init__(self, organization_id: int) -> None:
        self._organization_id = organization_id
        self._registered = 0

    def issue(self) -> None:
        """Issue to Ann, and to some who may come to be registered."""
        recipients = [ANN, f"r{self._registered}@example.com", f"r{self._registered + 1}@example.com"]
        books.issue_now(self._organization_id, recipients, 3)

    def postpone(self) -> None:
        """Leave a batch in the queue: those that come after it are issued before it."""
        batch_id = books.queue_batch(self._organization_id, [ANN, "late@example.com"], 2)
        books.execute(f"UPDATE batches SET retry_at = clock_timestamp() + interval '50 s' WHERE id = {batch_id}")

    def resume(self) -> None:
        """Issue what was postponed, below rows that are listed already."""
        books.execute("UPDATE batches SET retry_at = NULL WHERE status = 'queued'")
        books.drain_all(self._organization_id)

    def claim(self) -> None:
        """Register somebody: what was held for them is credited, on rows that may be listed already."""
        books.make_users(f"r{self._registered}@example.com")
        self._registered += 1


def assert_complete(seen: list[int], *, before: list[int], after: list[int]) -> None:
    assert len(seen) == len(set(seen)), "a row came twice"
    # What matched before the walk and still did after it matched all the while: nothing is taken back.
    assert set(before) & set(after) <= set(seen), "a row was left out"


STEPS = ("issue", "postpone", "resume", "claim", None)


@pytest.mark.usefixtures("database")
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.sampled_from(STEPS), min_size=4, max_size=12),
    st.integers(min_value=1, max_value=3),
    st.sampled_from(FILTERS),
    st.sampled_from(LISTS),
)
def test_whatever_is_written_between_two_pages(
    steps: list[str | None],
    limit: int,
    asking: Callable[..., Filters],
    kind: tuple[Callable[[Filters, int], Iterator[list[int]]], Callable[[Filters], list[int]]],
) -> None:
    books.empty()
    organization_id = books.make_organization(60)
    writer, filters = Writer(organization_id), asking(organization_id=organization_id)
    for _ in range(2):
        writer.issue()
        writer.postpone()
    ids, look = kind
    before, seen, remaining = look(filters), list[int](), iter(steps)
    for page in ids(filters, limit):
        seen += page
        if (step := next(remaining, None)) is not None:
            getattr(writer, step)()
    assert_complete(seen, before=before, after=look(filters))
