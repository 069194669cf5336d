"""Sends as they are accepted in groups, and their idempotency keys as they are kept and forgotten."""

from functools import partial
from itertools import pairwise

import pytest

from app import organizations
from app.batches.accept import Acceptance, Send, accept
from app.batches.request import IssueRequest
from app.errors import IdempotencyKeyReused, InvalidKey, OrganizationDisabled, OrganizationSuspended, PointsError
from app.postgres.database import transaction
from tests.integration import books, races

pytestmark = pytest.mark.usefixtures("database")

ANN, BOB = "ann@example.com", "bob@example.com"


STRANGE = 'quote"back\\slash,{comma}null@example.com'


def _request(*emails: str, amount: int = 1, label: str | None = None) -> IssueRequest:
    keys = [email.lower() for email in emails]
    return IssueRequest(emails=list(emails), email_keys=keys, amount=amount, atomic=False, label=label)


def _key(organization_id: int, *, sandbox: bool = False) -> bytes:
    return books.run(books.key_of, organization_id, sandbox)


def _accept(*sends: Send) -> list[Acceptance | PointsError | None]:
    return books.run(accept, sends)


def test_a_group_is_accepted_each_send_with_its_own_recipients_mode_and_label() -> None:
    one, other = books.make_organization(100, sandbox_balance=100), books.make_organization(100)
    requests = [_request(ANN), _request("Bob@Example.com", ANN, label="L"), _request(BOB, amount=7), _request(ANN)]
    keys = [(one, False), (one, True), (other, False), (one, False)]
    outcomes = _accept(
        *[Send(_key(number, sandbox=sandbox), request, None)
          for (number, sandbox), request in zip(keys, requests, strict=True)]
    )  # fmt: skip
    ids = []
    for outcome, (number, sandbox), request in zip(outcomes, keys, requests, strict=True):
        assert isinstance(outcome, Acceptance)
        assert (outcome.organization_id, outcome.status, outcome.existed) == (number, "queued", False)
        ids.append(outcome.batch_id)
        books.drain_all(number)
        batch, transactions = books.read_batch(number, outcome.batch_id, sandbox=sandbox)
        assert ([row.email for row in transactions], batch.amount) == (list(request.emails), request.amount)
        assert batch.label == request.label
    assert len(set(ids)) == 4
    assert books.breaches() == []


def test_batches_of_a_group_are_as_old_as_their_ids_say_whatever_their_idempotency_keys() -> None:
    number = books.make_organization(100)
    key = _key(number)
    outcomes = _accept(*[Send(key, _request(ANN), name) for name in ("d", "b", None, "c", "a")])
    ids = [outcome.batch_id for outcome in outcomes if isinstance(outcome, Acceptance)]
    assert ids == sorted(ids)
    assert books.values("SELECT id FROM batches ORDER BY created_at") == ids


def test_nobody_is_refused_for_what_another_of_the_group_has_done() -> None:
    good, disabled, suspended = (books.make_organization(100) for _ in range(3))
    sends = [Send(_key(number), _request(ANN), None) for number in (good, disabled, suspended)]
    sends[1:1] = [Send(b"x" * 32, _request(ANN), None)]
    with transaction() as connection:
        organizations.change(connection, disabled, {"is_disabled": True, "is_suspended": True})
        organizations.change(connection, suspended, {"is_suspended": True})
    kinds = [type(outcome) for outcome in _accept(*sends)]
    assert kinds == [Acceptance, InvalidKey, OrganizationDisabled, OrganizationSuspended]
    assert books.counts() == (1, 0)


def test_one_idempotency_key_twice_in_a_group_is_one_batch() -> None:
    organization_id = books.make_organization(100)
    key = _key(organization_id)
    first, second, other = _accept(
        Send(key, _request(ANN), "once"), Send(key, _request(ANN), "once"), Send(key, _request(ANN), "twice")
    )
    assert isinstance(first, Acceptance)
    assert isinstance(other, Acceptance)
    assert second is None  # It is told to ask again,
    [again, reused] = _accept(Send(key, _request(ANN), "once"), Send(key, _request(BOB), "once"))
    assert isinstance(again, Acceptance)
    assert (again.batch_id, again.existed) == (first.batch_id, True)  # and finds it.
    assert isinstance(reused, IdempotencyKeyReused)
    assert books.counts() == (2, 0)


@pytest.mark.parametrize(
    "emails", [(STRANGE,), (ANN, STRANGE), (STRANGE, STRANGE + "x"), ("NULL",), ("",), ("ü@é.org",)]
)
def test_every_address_is_kept_to_the_letter_however_an_array_is_written(emails: tuple[str, ...]) -> None:
    organization_id = books.make_organization(100)
    batch_id = books.queue_batch(organization_id, emails, 1)
    books.drain_all(organization_id)
    assert tuple(row.email for row in books.read_batch(organization_id, batch_id)[1]) == emails
    assert books.breaches() == []


def test_groups_that_meet_on_the_same_keys_in_opposite_orders_never_deadlock() -> None:
    organization_id = books.make_organization(100)
    key = _key(organization_id)
    before = books.deadlocks()
    for attempt in range(4):
        sends = [Send(key, _request(ANN), f"{attempt}-{number}") for number in range(40)]
        races.at_once(partial(_accept, *sends), partial(_accept, *reversed(sends)), partial(_accept, *sends))
    assert books.deadlocks() == before
    assert books.counts() == (160, 0)


def test_a_run_of_ids_stands_for_a_bounded_number_of_transactions() -> None:
    """The index of addresses goes by it (app/pages/addresses.py): about 16 transactions an id, at least one id."""
    organization_id = books.make_organization()
    sizes = (1, 15, 16, 100, 10_000, 1)
    ids = [books.queue_batch(organization_id, [f"u{n}@example.com" for n in range(size)], 1) for size in sizes]
    drawn = [after - before for before, after in pairwise([0, *ids])]
    assert drawn == [1 + size // 16 for size in sizes]


def _drawn() -> int:
    return int(books.value("SELECT last_value FROM batches_id_seq"))


def test_only_what_is_written_draws_ids_because_ids_make_eras() -> None:
    one, other = books.make_organization(100), books.make_organization(100)
    books.run(organizations.change, other, {"is_suspended": True})
    request = _request(*[f"{number}@example.com" for number in range(160)])
    _accept(Send(_key(one), request, "key"))
    before = _drawn()
    outcomes = _accept(
        Send(_key(one), request, "key"),
        Send(_key(one), _request(ANN), "key"),
        Send(_key(other), request, None),
        Send(b"x" * 32, request, None),
    )
    assert isinstance(outcomes[0], Acceptance)
    assert [type(outcome) for outcome in outcomes[1:]] == [IdempotencyKeyReused, OrganizationSuspended, InvalidKey]
    assert _drawn() == before
    _accept(Send(_key(one), request, None))
    assert _drawn() == before + 160 // 16 + 1
