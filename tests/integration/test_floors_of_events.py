"""While a snapshot is held open: the numbering and the folds walk past few dead entries, and miss nothing."""

from collections.abc import Callable

import pytest
from sqlalchemy import Connection, text

from app.events import sequencer
from app.events.sequencer import Floor
from app.ledger import fold
from app.ledger.issue import issue
from app.ledger.refill import refill
from app.postgres.database import snapshot, transaction
from tests.integration import books
from tests.integration.logs_of_events import number_all, rendered

pytestmark = pytest.mark.usefixtures("database")

ANN = "ann@example.com"
_MANY = 40
_FEW = 5
_VERSIONS = 150


@pytest.fixture(autouse=True)
def _few_events_make_a_floor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sequencer, "_EVENTS_MIN", 1)


def _number(organization_id: int, floor: Floor) -> int:
    with transaction() as connection:
        numbered = sequencer.number_events(connection, organization_id, first=floor.first)
    floor.note(numbered)
    return numbered.events


def test_a_floor_waits_for_who_has_drawn_a_lower_id_and_not_committed() -> None:
    organization_id, floor = books.make_organization(100), Floor()
    number_all()
    with transaction() as connection:
        refill(connection, organization_id, 1)  # Its event has the lower id.
        for _ in range(3):
            books.make_live_key(organization_id)
            assert _number(organization_id, floor) == 1
        assert floor.first == 0
    assert _number(organization_id, floor) == 1, "what was committed late"
    books.make_live_key(organization_id)
    assert [_number(organization_id, floor), _number(organization_id, floor)] == [1, 0]
    assert floor.first > 0
    assert len(rendered(organization_id)) == 6
    assert books.breaches() == []


def test_no_floor_is_set_past_what_a_call_has_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sequencer, "NUMBERED_MAX", 2)
    organization_id, floor = books.make_organization(100), Floor()
    for _ in range(4):
        books.make_live_key(organization_id)
    assert [_number(organization_id, floor) for _ in range(4)] == [2, 2, 1, 0]
    assert len(rendered(organization_id)) == 5


def test_the_numbering_walks_past_few_dead_entries() -> None:
    organization_id, floor = books.make_organization(100), Floor()
    number_all()
    with snapshot() as held:
        held.exec_driver_sql("SELECT count(*) FROM unnumbered_events")
        for _ in range(_MANY):
            books.make_live_key(organization_id)
            assert _number(organization_id, floor) == 1
        walked = {}
        for first in (0, floor.first):
            with transaction() as connection:
                before = _walked(connection, "pk_unnumbered_events")
                assert sequencer.number_events(connection, organization_id, first=first).events == 0
                walked[first] = _walked(connection, "pk_unnumbered_events") - before
    assert walked.pop(0) >= _MANY, "the entries of all that was numbered are there"
    assert max(walked.values()) <= _FEW


def test_the_folds_of_a_run_go_on_where_the_last_one_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fold, "BATCHES_MAX", _FEW)
    books.make_users(ANN)
    organization_id = books.make_organization(100)
    with snapshot() as held:
        held.exec_driver_sql("SELECT count(*) FROM unfolded_batches")
        for _ in range(_MANY):
            books.issue_now(organization_id, [ANN], 1)
        folds, walked = fold.Folds(), []
        while True:
            with transaction() as connection:
                before = _walked(connection, "pk_unfolded_batches")
                folded = folds.fold(connection)
                walked.append(_walked(connection, "pk_unfolded_batches") - before)
            if not folded:
                break
    assert len(walked) == _MANY // _FEW + 1
    assert max(walked[1:]) <= walked[0], "the last ones walk no further than the first"
    assert books.balance_of_user(ANN) == _MANY
    assert books.breaches() == []


def _walked(connection: Connection, index: str) -> int:
    asked = text("SELECT pg_stat_get_xact_tuples_returned(CAST(:index AS regclass))")
    return int(connection.execute(asked, {"index": index}).scalar_one())


def test_a_drain_walks_once_past_what_is_left_of_its_organization() -> None:
    organization_id = books.make_organization(10_000)
    with snapshot() as held:
        held.exec_driver_sql("SELECT count(*) FROM organizations")
        for letter in "xy" * _VERSIONS:
            books.execute(f"UPDATE organizations SET name = '{letter * 255}' WHERE id = {organization_id}")
        books.queue_batch(organization_id, [ANN], 1)
        with transaction() as connection:
            by_id = _pages(connection, lambda: connection.execute(_BY_ID, {"id": organization_id}))
        with transaction() as connection:
            drained = _pages(connection, lambda: issue(connection, organization_id))
    assert by_id >= 12, "its versions are all there"
    assert drained < 2 * by_id
    assert books.counts() == (0, 1)
    assert books.breaches() == []


_BY_ID = text("SELECT name FROM organizations WHERE id = :id")
_PAGES = "SELECT pg_stat_get_xact_blocks_fetched('organizations'::regclass)"


def _pages(connection: Connection, work: Callable[[], object]) -> int:
    """Return how many pages of the table of organizations some work looks at."""
    before = connection.exec_driver_sql(_PAGES).scalar_one()
    work()
    return int(connection.exec_driver_sql(_PAGES).scalar_one() - before)
