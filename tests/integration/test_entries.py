"""The entries of users: written by folds, claims and reversals, and the same whatever is folded already."""

from collections.abc import Iterator
from functools import partial
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.ledger.registering import change_user
from app.pages import entry_pages
from app.pages.entry_pages import EntryRow
from app.pages.filters import Filters
from app.values.addresses import parse
from app.values.ids import POSITIONS
from tests.integration import books, races
from tests.integration.test_pages import pages_of

ANN, BOB, CID = (f"{name}@example.com" for name in ("ann", "bob", "cid"))


def _pages(user_id: int, limit: int) -> Iterator[list[EntryRow]]:
    filters = Filters(organization_id=0, sandbox=False, user_id=user_id)
    for page in pages_of(entry_pages.page, filters, limit=limit):
        yield list(page.rows)


def _entries(user_id: int, limit: int = 1_000) -> list[EntryRow]:
    return [row for page in _pages(user_id, limit) for row in page]


def _told(user_id: int) -> list[tuple[int, int]]:
    """Return of each entry the transaction and the points, newest first."""
    return [(row.transaction_id, row.amount) for row in _entries(user_id)]


@pytest.mark.usefixtures("database")
def test_an_entry_is_the_same_before_and_after_the_fold_that_writes_it() -> None:
    [ann] = books.make_users(ANN)
    organization_id = books.make_organization(1_000)
    first = books.issue_now(organization_id, [BOB, ANN], 10) * POSITIONS + 1
    second = books.issue_now(organization_id, [ANN], [7]) * POSITIONS
    books.issue_now(books.make_organization(sandbox_balance=10), [ANN], 10, sandbox=True)
    before = _entries(ann)
    assert _told(ann) == [(second, 7), (first, 10)]
    assert books.fold() == 1
    assert _entries(ann) == before
    books.reverse_now(organization_id, transaction_ids=[first], amount=4)
    assert _told(ann) == [(first, -4), (second, 7), (first, 10)]
    assert books.breaches() == []


class _Writer:
    """Somebody who does one thing after the other for Ann, at two organizations."""

    def __init__(self) -> None:
        self._organizations = [books.make_organization(10_000) for _ in range(2)]
        [self.ann] = books.make_users(ANN)
        self._addresses = [ANN]
        self._issued: list[tuple[int, int]] = []

    def issue(self) -> None:
        organization_id = self._organizations[len(self._issued) % 2]
        batch_id = books.issue_now(organization_id, [BOB, self._addresses[-1], CID], 10)
        self._issued.append((organization_id, batch_id))

    def take_back(self) -> None:
        organization_id, batch_id = self._issued[len(self._issued) // 2]
        books.reverse_now(organization_id, batch_id=batch_id, amount=1)

    def fold(self) -> None:
        books.fold()

    def claim(self) -> None:
        self._addresses.append(f"ann{len(self._addresses)}@example.com")
        books.issue_now(self._organizations[0], [self._addresses[-1]], 3)
        books.run(change_user, self.ann, {"address": parse(self._addresses[-1])})

    def balance(self) -> int:
        return books.balance_of_user(self._addresses[-1])


_STEPS = ("issue", "take_back", "fold", "claim")


@pytest.mark.usefixtures("database")
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from(_STEPS), min_size=4, max_size=10), st.integers(min_value=1, max_value=3))
def test_whatever_is_written_between_two_pages_a_walk_adds_up_to_the_balance_when_it_began(
    steps: list[str], limit: int
) -> None:
    books.empty()
    writer = _Writer()
    for first in ("issue", "issue", "fold", "issue", "take_back"):
        getattr(writer, first)()
    before, balance, seen, remaining = _entries(writer.ann), writer.balance(), list[EntryRow](), iter(steps)
    for page in _pages(writer.ann, limit):
        seen += page
        if (step := next(remaining, None)) is not None:
            getattr(writer, step)()
    assert seen == before
    assert sum(row.amount for row in seen) == balance
    after = _entries(writer.ann)
    assert sum(row.amount for row in after) == writer.balance()
    assert all(one.created_at >= other.created_at for one, other in pairwise(after))
    assert books.breaches() == []


@pytest.mark.usefixtures("many_connections")
def test_a_fold_and_a_reversal_that_cross_write_the_credit_once_and_what_was_taken() -> None:
    [ann] = books.make_users(ANN)
    organization_id = books.make_organization(1_000)
    for taken in range(1, 6):
        batch_id = books.issue_now(organization_id, [ANN], 10)
        reversal_id = books.queue_reversal(organization_id, batch_id=batch_id, amount=taken)
        assert reversal_id > batch_id
        races.at_once(books.fold, partial(_drain, organization_id))
        assert _told(ann)[:2] == [(batch_id * POSITIONS, -taken), (batch_id * POSITIONS, 10)]
    books.fold()
    assert len(_told(ann)) == 10
    assert books.breaches() == []


def _drain(organization_id: int) -> int:
    return len(books.drain_all(organization_id))
