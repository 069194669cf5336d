"""The day of a key, where callers and drains meet: the sum is exact, and nobody waits for what is not theirs."""

from datetime import timedelta

import pytest
from sqlalchemy import Connection, text

from app import api_keys
from app.api.sending.accepting import accept_bounded_together
from app.batches import accept, key_limits
from app.batches.accept import Acceptance, Send
from app.batches.errors import KeyLimit
from app.batches.key_limits import KeyInUse
from app.batches.request import IssueRequest
from app.postgres.database import transaction
from app.values.key_bounds import Bounds
from app.values.key_hashes import hash_key
from tests.deadline import TIMEOUT_S
from tests.integration import books, races

pytestmark = pytest.mark.usefixtures("database", "balanced")

ANN = "ann@example.com"


def _key(organization_id: int, bounds: Bounds) -> bytes:
    with transaction() as connection:
        return hash_key(api_keys.create(connection, organization_id, sandbox=False, bounds=bounds)[1])


def _send(key: bytes, amount: int, idempotency_key: str | None = None) -> Send:
    request = IssueRequest(emails=[ANN], email_keys=[ANN], amount=amount, atomic=False, label=None)
    return Send(key, request, idempotency_key)


def _days() -> list[tuple[int, int]]:
    """Return what each key has used of its days, and what of that is given back and not taken off yet."""
    with transaction() as connection:
        return [(row[0], row[1]) for row in connection.execute(_DAYS)]


_DAYS = text("""
    SELECT used, CAST((SELECT coalesce(sum(points), 0) FROM points_given_back g
                       WHERE (g.api_key_id, g.day) = (d.api_key_id, d.day)) AS bigint)
    FROM key_days d ORDER BY api_key_id, day
""")


def test_no_drain_waits_for_who_accepts_sends_of_the_key_and_what_it_gives_back_is_used_again() -> None:
    organization_id = books.make_organization(10)
    key = _key(organization_id, Bounds(daily_limit=100))
    [unpaid] = accept_bounded_together([_send(key, 60)])
    assert isinstance(unpaid, Acceptance)
    with transaction() as connection:
        [accepted] = accept.accept_within_limits(connection, [_send(key, 40)])
        assert isinstance(accepted, Acceptance)
        with races.started() as start:
            assert start(lambda: books.drain_all(organization_id)).result(TIMEOUT_S) == [unpaid.batch_id]
    assert _days() == [(100, 60)]
    assert books.breaches() == []
    again, over = accept_bounded_together([_send(key, 60), _send(key, 1)])
    assert isinstance(again, Acceptance)
    assert isinstance(over, KeyLimit)
    assert _days() == [(100, 0)]


def test_a_batch_counts_on_its_own_day_when_a_day_ends_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    key = _key(books.make_organization(10), Bounds(daily_limit=100))
    lock, locked = key_limits.lock, list[object]()

    def lock_the_day_before(connection: Connection, key_hashes: set[bytes]) -> dict[bytes, KeyInUse]:
        keys = lock(connection, key_hashes)
        for one in keys.values() if not locked else ():
            one.row = one.row._replace(day=one.row.day - timedelta(days=1))
        locked.append(keys)
        return keys

    monkeypatch.setattr("app.batches.key_limits.lock", lock_the_day_before)
    [accepted] = accept_bounded_together([_send(key, 60)])
    assert isinstance(accepted, Acceptance)
    assert len(locked) == 2
    assert _days() == [(60, 0)]


def test_a_repeated_send_takes_nothing_also_when_both_come_in_one_group() -> None:
    key = _key(books.make_organization(1_000), Bounds(daily_limit=100))
    first, same, over, other = accept_bounded_together(
        [_send(key, 60, "once"), _send(key, 60, "once"), _send(key, 41, "over"), _send(key, 40, "other")]
    )
    assert isinstance(first, Acceptance)
    assert isinstance(same, Acceptance)
    assert (first.batch_id, first.existed, same.existed) == (same.batch_id, False, True)
    assert isinstance(over, KeyLimit)
    assert isinstance(other, Acceptance)
    assert _days() == [(100, 0)]
    [again] = accept_bounded_together([_send(key, 60, "once")])
    assert isinstance(again, Acceptance)
    assert again.batch_id == first.batch_id


def test_a_send_that_another_key_is_just_making_takes_nothing_of_this_key() -> None:
    organization_id = books.make_organization(1_000)
    first, second = (_key(organization_id, Bounds(daily_limit=100)) for _ in range(2))
    [same] = races.behind(
        lambda connection: accept.accept_within_limits(connection, [_send(first, 60, "once")]),
        lambda: accept_bounded_together([_send(second, 60, "once")]),
    )
    assert isinstance(same, Acceptance)
    assert same.existed
    assert [used for used, _ in _days()] == [60, 0]
    assert isinstance(accept_bounded_together([_send(second, 100)])[0], Acceptance)


def test_groups_of_the_same_keys_in_any_order_neither_deadlock_nor_pass_a_limit() -> None:
    organization_id = books.make_organization(10**6)
    keys = [_key(organization_id, Bounds(daily_limit=100)) for _ in range(3)]
    groups = [[_send(keys[(turn + place) % 3], 7) for place in range(6)] for turn in range(12)]
    before = books.deadlocks()
    outcomes = races.at_once(*(lambda group=group: accept_bounded_together(group) for group in groups))
    flat = [outcome for group in outcomes for outcome in group]
    assert {type(outcome) for outcome in flat} == {Acceptance, KeyLimit}
    assert sum(isinstance(outcome, Acceptance) for outcome in flat) == 3 * (100 // 7)
    assert _days() == [(98, 0)] * 3
    assert books.deadlocks() == before
