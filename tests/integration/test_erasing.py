"""Erasing a user: no table and no log line has the name or an address any more, and the books are what they were."""

from collections.abc import Callable, MutableMapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from flask import Flask

from app import api_keys, users
from app.batches import schedule
from app.batches.accept import Acceptance, Send, accept, accept_within_limits
from app.batches.request import IssueRequest
from app.batches.transaction import transactions_of
from app.batches.verify import DOMAIN
from app.erasing import issued, lists
from app.erasing.erase import ErasureUnfinished, erase_user
from app.errors import NotFound
from app.events.event_types import PLATFORM
from app.events.restores import SKIPPED
from app.exports.columns import CSV, TRANSACTIONS
from app.exports.export import begin
from app.ledger import sandbox
from app.ledger.registering import change_user, register_user
from app.pages import batch_pages, transaction_pages
from app.pages.filters import Filters
from app.platform import keys as platform_keys
from app.postgres import locks
from app.postgres.database import transaction
from app.recipient_files.writing import workbook_of
from app.scope import Scope
from app.users import UserErased
from app.values.addresses import parse
from app.values.ids import POSITIONS
from app.values.key_bounds import Bounds
from app.values.key_hashes import hash_key
from app.web.recording import request_log
from tests.deadline import until
from tests.integration import books
from tests.integration.console_lists import checked, confirm
from tests.integration.logs_of_events import events_of, number_all
from tests.integration.needles import tables_with
from tests.integration.races import started
from tests.integration.visitors import visitor

pytestmark = pytest.mark.usefixtures("database", "broker", "balanced")

# Written as a person does, so that the normalised forms are kept beside them.
BEFORE, NOW = "Ada.Before@Example.com", "Ada.Now@Example.org"
FIRST, LAST = "Augustine", "Lovelaceton"
NEEDLES = [text.lower() for text in (BEFORE, NOW, FIRST, LAST)]
BO, CY = "bo@example.com", "cy@example.com"


def _found() -> list[str]:
    return tables_with(NEEDLES)


def _send(organization_id: int, emails: list[str], key: str, **more: Any) -> Acceptance:
    """Accept items with labels and references by the live key, or find the batch of the idempotency key."""
    request = IssueRequest(
        emails=emails,
        email_keys=[parse(email).key for email in emails],
        amount=None,
        running_totals=[*range(5, 5 * len(emails) + 1, 5)],
        atomic=False,
        label="all",
        labels=[f"label {place}" for place in range(len(emails))],
        references=[f"item-{place}" for place in range(len(emails))],
        **more,
    )
    with transaction() as connection:
        [accepted] = accept(connection, [Send(books.key_of(connection, organization_id), request, key)])
    assert isinstance(accepted, Acceptance), accepted
    return accepted


@pytest.fixture
def ada(app: Flask) -> int:
    """Make a user with a rich history at the organizations 1 and 2, and return the id."""
    acme, globex = books.make_organization(10_000, sandbox_balance=1_000), books.make_organization(100)
    books.make_users(BO)
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    # Held before there was an account, and given back; held, and claimed; in a batch of many, with labels.
    books.issue_now(acme, [BEFORE, CY], 1, hold_days=1)
    books.let_days_pass(2)
    books.return_unclaimed()
    _send(acme, [BO, BEFORE, CY], "many")
    books.drain_all(acme)
    books.issue_now(globex, [BEFORE], 7)
    with transaction() as connection:
        new = replace(users.new_user(BEFORE, FIRST, LAST), external_id=NOW.lower())
        user_id = register_user(connection, new).user.id
        sandbox.register(connection, acme, users.new_user(BEFORE, FIRST, LAST))
    number_all()
    # Alone, in the sandbox as the live user and as one of its own, unpaid, and taken back in part and in whole.
    first = books.issue_now(acme, [BEFORE], 3)
    books.issue_now(globex, [CY, BEFORE], 60)
    for organization_id in (acme, globex):
        books.refill_now(organization_id, 5)
    books.issue_now(acme, [BEFORE, BO], 2, sandbox=True)
    books.reverse_now(acme, transaction_ids=[first * POSITIONS], amount=1)
    # The address is changed: what the new one holds is claimed, and the event has no number yet.
    books.issue_now(acme, [NOW], 11)
    with transaction() as connection:
        sandbox.register(connection, acme, users.new_user(NOW, FIRST, LAST))
        change_user(connection, user_id, {"address": parse(NOW)})
    books.issue_now(acme, [NOW, CY], 4, sandbox=True)
    _send(acme, [NOW], "alone")
    books.drain_all(acme)
    books.reverse_now(acme, batch_id=books.issue_now(acme, [BO, NOW], 2))
    # Never issued, or not yet.
    cancelled = _send(acme, [CY, NOW], "cancelled", send_at=tomorrow)
    books.run(schedule.cancel, cancelled.batch_id, Scope(acme, sandbox=False))
    books.set_flags(globex, is_suspended=True)
    books.queue_batch(globex, [NOW], 1)
    books.drain_all(globex)
    books.set_flags(globex, is_suspended=False)
    _send(acme, [NOW, BO], "scheduled", send_at=tomorrow)
    # Lists of a member: sent, with a bad line that has the name too; and not sent, as text and as a workbook.
    ann = visitor(app, acme, "sender", "ann@example.com")
    rows = f"email,first,last,points\n{BO},Bo,B,1\n{NOW},{FIRST},{LAST},2\n{NOW.upper()},{FIRST},{LAST},3\n"
    confirm(ann, checked(ann, rows, label="Spring"))
    books.drain_all(acme)
    books.queue_batch(acme, [BEFORE.lower(), NOW, CY], [1, 2, 3])
    checked(ann, rows.replace(BO, CY))
    checked(ann, f"a,b\n{CY},{NOW}\n")  # Which column is meant is a question.
    checked(ann, workbook_of(["email", "points", "note"], [[CY, 1, NOW]]))
    checked(ann, f"email,points\n{CY},1\n")
    key = books.make_live_key(acme)
    app.test_client().get(f"/v1/transactions?email={NOW}", headers={"Authorization": f"Bearer {key}"})
    app.test_client().get(f"/v1/{NOW}", headers={"Authorization": f"Bearer {key}", "X-Request-Id": NOW})
    request_log.write()
    books.fold()
    return user_id


@pytest.fixture
def call(app: Flask) -> Callable[..., Any]:
    _, key = books.run(platform_keys.create, "Support")

    def call(method: str, path: str, status: int = 200, **body: Any) -> Any:
        headers = {"Authorization": f"Bearer {key}"}
        answer = app.test_client().open(f"/v1/platform/{path}", method=method, json=body or None, headers=headers)
        assert answer.status_code == status, answer.text
        return answer.get_json()["data"]

    return call


def test_after_an_erasure_nothing_has_the_name_or_an_address_and_the_books_balance(
    ada: int, app: Flask, call: Callable[..., Any], events: list[MutableMapping[str, Any]]
) -> None:
    books.execute("ANALYZE")
    assert {line.partition(":")[0] for line in _found()} >= {
        *("users", "former_addresses", "transactions", "batches", "events", "unnumbered_events", "uploads"),
        *("upload_parts", "pg_stats", "pg_stats_ext_exprs"),
    }
    assert books.breaches() == []
    before = call("GET", f"users/{ada}")
    name = f"erased-{ada}"
    erased = call("POST", f"users/{ada}/erase")
    assert erased == before | {"email": name, "first_name": name, "last_name": name, "external_id": None}
    assert _found() == []
    assert books.breaches() == []
    number_all()
    assert books.breaches() == []
    assert call("POST", f"users/{ada}/erase") == call("GET", f"users/{ada}") == erased

    # A replay answers with what is left. Any address stands for the erased one: else a guess of it would be proved.
    for emails, key in (([BO, BEFORE, CY], "many"), ([BO, "guess@example.com", CY], "many"), ([NOW], "alone")):
        assert _send(1, emails, key).existed
    many = books.run(transactions_of, _send(1, [BO, BEFORE, CY], "many").batch_id, organization_id=1)
    assert [(one.email, one.reference, one.label) for one in many] == [
        (email, f"item-{place}", f"label {place}") for place, email in enumerate((BO, name, CY))
    ]
    assert many[1].first_name == name
    claims = [event["data"] for event in events_of(1) if event["type"] == "transaction.claimed"]
    assert [claim["user"] for claim in claims] == [{"id": ada, "first_name": name, "last_name": name}] * len(claims)
    assert len(claims) == 2
    # What waited is issued without a debit for nobody.
    books.drain_all(1)
    books.move_scheduled("now()")
    books.run(schedule.release_due, at_most=9)
    books.drain_all(1)
    assert books.breaches() == []
    assert call("GET", f"users/{ada}") == erased

    assert not any(needle in str(line).lower() for line in events for needle in NEEDLES)
    written = [(action["action"], action["subject_id"]) for action in call("GET", "actions")["actions"]]
    assert written.count(("user.erased", ada)) == 1
    told = [event["data"] for event in events_of(PLATFORM) if event["type"] == "user.erased"]
    assert told == [{"user": {"id": ada}}]


def test_an_erasure_that_is_killed_leaves_books_that_balance_and_goes_on_when_it_is_asked_for_again(
    ada: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(issued, "BATCHES_MAX", 1)
    monkeypatch.setattr(issued, "_FOUND_MAX", 2)
    rewrite = issued._rewrite_batches
    for at in (0, 1, 3, 6):
        left = [at]

        def killed(*arguments: Any, left: list[int] = left) -> None:
            if not left[0]:
                raise ConnectionError
            left[0] -= 1
            rewrite(*arguments)

        monkeypatch.setattr(issued, "_rewrite_batches", killed)
        with pytest.raises(ConnectionError):
            erase_user(ada)
        assert books.breaches() == []
        with transaction() as connection, pytest.raises(UserErased):
            users.change(connection, ada, {"first_name": FIRST})
    assert _found()
    monkeypatch.setattr(issued, "_rewrite_batches", rewrite)
    monkeypatch.setattr(lists, "_STEP", 1)
    erase_user(ada)
    assert _found() == []


# The amounts of Bo, of the erased user, of Cy and of the erased user again; the balance, whether it is atomic, and who
# is debited.
_PAID = {
    "all of one amount": (5, 100, False, [True, False, True, False]),
    "each its own": ([5, 90, 7, 90], 12, False, [True, False, True, False]),
    "the balance ends before Cy": ([5, 1, 7, 1], 11, False, [True, False, False, False]),
    "all, since the erased user needs nothing": ([5, 90, 7, 90], 12, True, [True, False, True, False]),
    "nobody": ([5, 90, 7, 90], 11, True, [False] * 4),
}


@pytest.mark.parametrize(("amount", "balance", "atomic", "debited"), _PAID.values(), ids=list(_PAID))
def test_who_is_erased_before_the_issue_is_not_debited_and_everybody_else_is_paid_as_far_as_the_balance_goes(
    amount: int | list[int], balance: int, debited: list[bool], *, atomic: bool
) -> None:
    organization_id = books.make_organization(balance)
    [user_id, *_] = books.make_users(NOW, CY)
    emails, references = [BO, NOW, CY, NOW.upper()], ["a", "b", "c", "d"]
    batch_id = books.queue_batch(organization_id, emails, amount, atomic=atomic, references=references)
    erase_user(user_id)
    assert books.breaches() == []
    [new] = books.make_users(NOW)
    books.drain_all(organization_id)
    batch, rows = books.read_batch(organization_id, batch_id)
    assert [row.debited for row in rows] == debited
    assert [row.email for row in rows] == [BO, f"erased-{user_id}", CY, f"erased-{user_id}"]
    amounts = [amount] * 4 if isinstance(amount, int) else amount
    assert [row.amount or batch.amount for row in rows] == amounts
    paid = [points * is_debited for points, is_debited in zip(amounts, debited, strict=True)]
    assert [row.balance for row in rows] == [balance - sum(paid[: place + 1]) for place in range(4)]
    assert (batch.debited_count, batch.debited_amount, batch.current_balance) == (
        sum(debited),
        sum(paid),
        books.balance_of(organization_id),
    )
    # Both kinds of each list: the first recipients are no longer the debited ones.
    for wanted in (True, False):
        filters = Filters(organization_id=organization_id, sandbox=False, debited=wanted)
        for is_far in (True, False):
            page = books.run(transaction_pages.page, filters, start=None, limit=9, is_far=is_far)
            assert [row.reference for _, row in page.rows] == [
                reference for reference, has in zip("dcba", reversed(debited), strict=True) if has is wanted
            ]
        assert bool(books.run(batch_pages.page, filters, start=None, limit=9).rows) is (wanted in debited)
        exported = b"".join(begin(TRANSACTIONS, CSV, filters).content()).decode()
        assert f"total of {debited.count(wanted)} rows" in exported
    assert books.breaches() == []
    taken = books.reverse_now(organization_id, batch_id=batch_id)
    assert [code for _, code in books.entries_of(taken)] == [None if has else "not_debited" for has in debited]
    assert books.balance_of(organization_id) == balance
    # Whoever has the address since is another: what is sent from now on is theirs.
    books.issue_now(organization_id, [NOW], 1)
    assert books.run(users.get_by_id, new).balance == 1
    assert books.breaches() == []


def test_several_who_are_erased_are_passed_over_and_the_key_gets_their_points_of_the_day_back() -> None:
    organization_id = books.make_organization(100)
    ada, cy = books.make_users(NOW, CY)
    with transaction() as connection:
        key_id, key = api_keys.create(connection, organization_id, sandbox=False, bounds=Bounds(daily_limit=9))
        request = IssueRequest(
            emails=[NOW, BO, CY],
            email_keys=[parse(email).key for email in (NOW, BO, CY)],
            amount=3,
            atomic=False,
            label=None,
        )
    with transaction() as connection:
        [accepted] = accept_within_limits(connection, [Send(hash_key(key), request, None)])
        assert isinstance(accepted, Acceptance)
    for user_id in (ada, cy):
        erase_user(user_id)
    books.drain_all(organization_id)
    _, rows = books.read_batch(organization_id, accepted.batch_id)
    assert [row.debited for row in rows] == [False, True, False]
    assert books.value(f"SELECT sum(points) FROM points_given_back WHERE api_key_id = {key_id}") == 6
    # Everybody of a batch may be gone.
    organization_id = books.make_organization(100)
    last = books.queue_batch(organization_id, [BO], 5, atomic=True)
    [bo] = books.make_users(BO)
    erase_user(bo)
    books.drain_all(organization_id)
    batch, [row] = books.read_batch(organization_id, last)
    assert (batch.status, batch.debited_amount, row.debited, row.email) == ("issued", 0, False, f"erased-{bo}")
    assert books.breaches() == []


def test_a_batch_that_is_issued_while_the_erasure_is_under_way_holds_nothing_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    organization_id = books.make_organization(100, sandbox_balance=100)
    [user_id] = books.make_users(NOW)
    batches = [books.queue_batch(organization_id, [BO, NOW], 10, sandbox=mode) for mode in (False, True)]
    first_pass = issued._pass

    def after_a_drain(user_id: int) -> int:
        monkeypatch.setattr(issued, "_pass", first_pass)
        books.drain_all(organization_id)
        return first_pass(user_id)

    monkeypatch.setattr(issued, "_pass", after_a_drain)
    erase_user(user_id)
    books.drain_all(organization_id)
    for batch_id, in_sandbox in zip(batches, (False, True), strict=True):
        _, [bo, erased] = books.read_batch(organization_id, batch_id, sandbox=in_sandbox)
        assert (bo.points_left, erased.debited, erased.points_left) == (None, True, 0)
        assert books.balance_of(organization_id, sandbox=in_sandbox) == 90
    assert _found() == []
    assert books.breaches() == []


def test_an_issue_that_has_seen_the_user_is_waited_for_and_rewritten_too() -> None:
    organization_id = books.make_organization(100)
    with transaction() as connection:
        user_id = register_user(connection, users.new_user(NOW, FIRST, LAST)).user.id
    books.queue_batch(organization_id, [BO, NOW], 10)

    def is_erased() -> bool:
        with transaction() as connection:
            return users.get_by_id(connection, user_id).email == f"erased-{user_id}"

    with started() as start:
        with transaction() as connection:
            books.issue(connection, organization_id)
            erasing = start(lambda: erase_user(user_id))
            until(is_erased)
        assert erasing.result().balance == 10
    assert _found() == []


def test_an_erasure_that_waits_too_long_says_that_it_must_be_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    [user_id] = books.make_users(NOW)
    with monkeypatch.context() as patched, transaction() as other:
        patched.setattr(locks, "_WRITES_AT_MOST_S", 0.0)
        other.exec_driver_sql("LOCK TABLE transactions IN ROW EXCLUSIVE MODE")
        with pytest.raises(ErasureUnfinished):
            erase_user(user_id)
    assert erase_user(user_id).email == f"erased-{user_id}"
    assert _found() == []


def test_points_that_a_crossing_left_held_go_to_the_user_who_is_erased() -> None:
    organization_id = books.make_organization(100)
    with transaction() as connection:
        user_id = register_user(connection, users.new_user(NOW, FIRST, LAST)).user.id
        # The issue does not see the registration yet, nor the registration the transaction.
        books.issue_now(organization_id, [NOW], 10)
    assert erase_user(user_id).balance == 10


def test_what_another_user_has_at_an_address_of_before_stays_theirs() -> None:
    organization_id = books.make_organization(1_000)
    [first] = books.make_users(BEFORE)
    books.issue_now(organization_id, [BEFORE], 1)
    books.run(change_user, first, {"address": parse(NOW)})
    held = books.issue_now(organization_id, [BEFORE], 2)
    [second] = books.make_users(BEFORE)
    later = books.issue_now(organization_id, [BEFORE], 4)
    erase_user(first)
    with transaction() as connection:
        rows = [transactions_of(connection, one, organization_id=organization_id) for one in (held, later)]
        theirs = [one.email for [one] in rows]
        assert users.get_by_id(connection, second).balance == 6
    assert theirs == [BEFORE] * 2
    assert [line for line in _found() if "now@" in line] == []


def test_what_was_sent_to_an_address_of_before_that_nobody_has_is_erased_and_stays_held() -> None:
    organization_id = books.make_organization(100)
    [first] = books.make_users(BEFORE)
    books.run(change_user, first, {"address": parse(NOW)})
    batch_id = books.issue_now(organization_id, [BEFORE], 8)
    erase_user(first)
    assert _found() == []
    [second] = books.make_users(BEFORE)
    with transaction() as connection:
        [one] = transactions_of(connection, batch_id, organization_id=organization_id)
        assert users.get_by_id(connection, second).balance == 0
    assert (one.email, one.debited, one.credited) == (f"erased-{first}", True, False)
    assert books.breaches() == []
    # The organization may take them back.
    books.reverse_now(organization_id, batch_id=batch_id)


def test_an_erasure_does_not_go_through_the_ids_that_restores_have_skipped(call: Callable[..., Any]) -> None:
    organization_id = books.make_organization(100)
    [user_id] = books.make_users(NOW)
    books.issue_now(organization_id, [NOW], 1)
    # As 100 restores do. To look at six million ranges would outlast the timeout of a statement.
    books.execute(f"SELECT setval('batches_id_seq', {100 * SKIPPED})")
    books.issue_now(organization_id, [NOW], 2)
    assert call("POST", f"users/{user_id}/erase")["balance"] == 3
    assert _found() == []


def test_the_books_hold_when_the_address_that_rehearses_too_little_balance_is_a_users_and_erased() -> None:
    organization_id = books.make_organization(10, sandbox_balance=100)
    books.issue_now(organization_id, [BO, f"insufficient@{DOMAIN}", CY], 10, sandbox=True)
    with transaction() as connection:
        user_id = register_user(connection, users.new_user(f"insufficient@{DOMAIN}", FIRST, LAST)).user.id
    erase_user(user_id)
    assert books.values("SELECT debited_count FROM batches") == [1]
    assert books.breaches() == []


def test_a_user_of_a_sandbox_cannot_be_erased_and_is_erased_with_the_live_user_alone() -> None:
    organization_id = books.make_organization(10, sandbox_balance=10)
    of_sandbox, *_ = books.run(sandbox.register, organization_id, users.new_user(NOW, FIRST, LAST))
    with pytest.raises(NotFound):
        erase_user(of_sandbox.id)
    with transaction() as connection:
        user_id = register_user(connection, users.new_user(NOW, FIRST, LAST)).user.id
    batch_id = books.issue_now(organization_id, [NOW], 1, sandbox=True)
    erase_user(user_id)
    [one] = books.run(transactions_of, batch_id, organization_id=organization_id)
    assert (one.email, one.user_id) == (f"erased-{of_sandbox.id}", of_sandbox.id)
