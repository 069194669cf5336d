"""The write of one round: what is issued, and what is refused under the lock."""

import pytest

from app import organizations
from app.batches.accept import Acceptance, Send, accept
from app.batches.request import IssueRequest
from app.postgres.database import transaction
from app.settings import INT64_MAX
from tests.integration import books

pytestmark = pytest.mark.usefixtures("database")

both_modes = pytest.mark.parametrize("sandbox", [False, True], ids=["live", "sandbox"])


def test_one_transaction_per_recipient_in_request_order() -> None:
    organization_id = books.make_organization(100)
    emails = ["c@example.com", "a@example.com", "b@example.com"]
    batch, transactions = books.read_batch(organization_id, books.issue_now(organization_id, emails, 10))
    assert [row.email for row in transactions] == emails
    assert [row.balance for row in transactions] == [90, 80, 70]
    assert batch.current_balance == 70
    assert books.balance_of(organization_id) == 70
    assert books.breaches() == []


@both_modes
@pytest.mark.parametrize(
    ("balance", "has_account", "debited", "credited", "has_recipient"),
    [
        pytest.param(10, True, True, True, True, id="balance suffices, recipient has an account"),
        pytest.param(10, False, True, False, False, id="balance suffices, no account"),
        pytest.param(9, True, False, False, True, id="balance too low, recipient has an account"),
        pytest.param(9, False, False, False, False, id="balance too low, no account"),
    ],
)
def test_flags_follow_the_table_of_the_contract(
    *, sandbox: bool, balance: int, has_account: bool, debited: bool, credited: bool, has_recipient: bool
) -> None:
    organization_id = books.make_organization(balance, sandbox_balance=balance)
    user_ids = books.make_users("ann@example.com") if has_account else []
    batch_id = books.issue_now(organization_id, ["ann@example.com"], 10, sandbox=sandbox)
    batch, [row] = books.read_batch(organization_id, batch_id, sandbox=sandbox)
    assert (row.debited, row.credited, row.claimed) == (debited, credited, False)
    assert row.user_id == (user_ids[0] if has_recipient else None)
    assert row.first_name == ("First" if has_recipient else None)
    assert batch.debited_count == int(debited)
    assert books.balance_of(organization_id, sandbox=sandbox) == balance - 10 * debited
    assert books.breaches() == []


@both_modes
def test_recipients_are_served_in_request_order_while_the_balance_lasts(*, sandbox: bool) -> None:
    organization_id = books.make_organization(25, sandbox_balance=25)
    emails = ["d@example.com", "c@example.com", "b@example.com", "a@example.com"]
    batch_id = books.issue_now(organization_id, emails, 10, sandbox=sandbox)
    batch, transactions = books.read_batch(organization_id, batch_id, sandbox=sandbox)
    assert [row.debited for row in transactions] == [True, True, False, False]
    assert [row.balance for row in transactions] == [15, 5, 5, 5]
    assert (batch.status, batch.debited_count, batch.current_balance) == ("issued", 2, 5)
    assert books.breaches() == []


@both_modes
@pytest.mark.parametrize(("balance", "debited_count"), [(30, 3), (29, 0)], ids=["just enough", "one point short"])
def test_an_atomic_batch_debits_all_or_nobody(*, sandbox: bool, balance: int, debited_count: int) -> None:
    organization_id = books.make_organization(balance, sandbox_balance=balance)
    emails = ["a@example.com", "b@example.com", "c@example.com"]
    batch_id = books.queue_batch(organization_id, emails, 10, sandbox=sandbox, atomic=True)
    books.drain_all(organization_id)
    batch, transactions = books.read_batch(organization_id, batch_id, sandbox=sandbox)
    assert (batch.status, batch.debited_count) == ("issued", debited_count)
    assert [row.debited for row in transactions] == [debited_count == 3] * 3
    assert books.balance_of(organization_id, sandbox=sandbox) == balance - 10 * debited_count
    assert books.breaches() == []


def test_a_sandbox_batch_changes_no_live_balance_and_no_users_points() -> None:
    organization_id = books.make_organization(100, sandbox_balance=70)
    books.make_users("ann@example.com")
    books.issue_now(organization_id, ["ann@example.com", "bob@example.com"], 30, sandbox=True)
    assert books.balance_of(organization_id) == 100
    assert books.balance_of(organization_id, sandbox=True) == 10
    assert books.balance_of_user("ann@example.com") == 0


def test_a_live_batch_changes_no_sandbox_balance() -> None:
    organization_id = books.make_organization(100, sandbox_balance=70)
    books.make_users("ann@example.com")
    books.issue_now(organization_id, ["ann@example.com"], 30)
    assert books.balance_of(organization_id, sandbox=True) == 70
    assert books.balance_of_user("ann@example.com") == 30


def test_a_batch_keeps_its_label_and_its_amount() -> None:
    organization_id = books.make_organization(100)
    labelled = books.queue_batch(organization_id, ["a@example.com"], 10, label="Spring")
    plain = books.queue_batch(organization_id, ["a@example.com"], 20)
    books.drain_all(organization_id)
    kept = [books.read_batch(organization_id, batch_id)[0] for batch_id in (labelled, plain)]
    assert [(batch.amount, batch.label) for batch in kept] == [(10, "Spring"), (20, None)]


def test_a_repeated_address_gets_a_transaction_and_a_credit_each_time() -> None:
    organization_id = books.make_organization(25)
    [user_id] = books.make_users("ann@example.com")
    emails = ["ann@example.com", "Ann@Example.com", "ann@example.com"]
    _, transactions = books.read_batch(organization_id, books.issue_now(organization_id, emails, 10))
    assert [row.email for row in transactions] == emails
    assert [row.user_id for row in transactions] == [user_id] * 3
    assert [row.credited for row in transactions] == [True, True, False]
    assert books.balance_of_user("ann@example.com") == 20
    assert books.breaches() == []


def test_a_user_credited_by_several_batches_of_one_drain_gets_the_sum() -> None:
    organization_id = books.make_organization(100, sandbox_balance=100)
    books.make_users("ann@example.com")
    for amount, sandbox in [(10, False), (40, True), (20, False)]:
        books.queue_batch(organization_id, ["ann@example.com"], amount, sandbox=sandbox)
    books.drain_all(organization_id)
    assert books.balance_of_user("ann@example.com") == 30
    assert books.breaches() == []


def test_the_largest_balance_can_be_issued_to_the_last_point() -> None:
    organization_id = books.make_organization(INT64_MAX)
    books.make_users("ann@example.com")
    amount = INT64_MAX // 7
    emails = ["ann@example.com"] + [f"{n}@example.com" for n in range(6)]
    batch, transactions = books.read_batch(organization_id, books.issue_now(organization_id, emails, amount))
    assert batch.current_balance == INT64_MAX - 7 * amount == 0
    assert transactions[0].balance == 6 * amount
    assert books.balance_of_user("ann@example.com") == amount
    assert books.breaches() == []


def test_an_issued_batch_keeps_the_organization_as_it_was_then() -> None:
    organization_id = books.make_organization(100, sandbox_balance=40, name="Before")
    live = books.issue_now(organization_id, ["a@example.com"], 10)
    sandbox = books.issue_now(organization_id, ["a@example.com"], 10, sandbox=True)
    before = books.read_batch(organization_id, live), books.read_batch(organization_id, sandbox, sandbox=True)
    books.execute("UPDATE organizations SET name = 'After', is_suspended = true, last_refill = 7, balance = 5")
    assert [batch.organization_name for batch, _ in before] == ["Before", "Before"]
    assert [batch.last_refill for batch, _ in before] == [100, 40]
    assert before == (
        books.read_batch(organization_id, live),
        books.read_batch(organization_id, sandbox, sandbox=True),
    )


ANN = "ann@example.com"


reasons = pytest.mark.parametrize(
    ("is_disabled", "is_suspended", "code"),
    [
        pytest.param(True, False, "organization_disabled", id="disabled"),
        pytest.param(False, True, "organization_suspended", id="suspended"),
        pytest.param(True, True, "organization_disabled", id="disabled wins"),
    ],
)


def _set_flags(organization_id: int, *, is_disabled: bool, is_suspended: bool) -> None:
    with transaction() as connection:
        organizations.change(connection, organization_id, {"is_disabled": is_disabled, "is_suspended": is_suspended})


@reasons
@pytest.mark.parametrize("sandbox", [False, True], ids=["live", "sandbox"])
def test_a_batch_of_an_organization_that_may_not_issue_is_refused_and_writes_nothing(
    *, sandbox: bool, is_disabled: bool, is_suspended: bool, code: str
) -> None:
    organization_id = books.make_organization(100, sandbox_balance=100)
    books.make_users(ANN)
    batch_id = books.queue_batch(organization_id, [ANN], 10, sandbox=sandbox)
    _set_flags(organization_id, is_disabled=is_disabled, is_suspended=is_suspended)
    assert books.drain_all(organization_id) == [batch_id]
    batch, transactions = books.read_batch(organization_id, batch_id, sandbox=sandbox)
    assert (batch.status, batch.refusal, batch.issued_at, transactions) == ("refused", code, None, [])
    assert books.balance_of(organization_id, sandbox=sandbox) == 100
    assert books.balance_of_user(ANN) == 0
    assert books.breaches() == []


def test_every_batch_of_the_drain_is_refused() -> None:
    organization_id = books.make_organization(100)
    queued = [books.queue_batch(organization_id, [ANN], 10) for _ in range(3)]
    _set_flags(organization_id, is_disabled=False, is_suspended=True)
    assert books.drain_all(organization_id) == queued
    assert [books.read_batch(organization_id, batch_id)[0].status for batch_id in queued] == ["refused"] * 3


def test_a_refused_batch_gives_its_idempotency_key_back() -> None:
    organization_id = books.make_organization(100)
    refused = books.queue_batch(organization_id, [ANN], 10, idempotency_key="once")
    _set_flags(organization_id, is_disabled=False, is_suspended=True)
    books.drain_all(organization_id)
    _set_flags(organization_id, is_disabled=False, is_suspended=False)
    again = books.queue_batch(organization_id, [ANN], 10, idempotency_key="once")
    assert books.drain_all(organization_id) == [again] != [refused]
    assert books.read_batch(organization_id, again)[0].status == "issued"


def test_an_issued_batch_keeps_its_idempotency_key_while_the_organization_is_suspended() -> None:
    organization_id = books.make_organization(100)
    books.queue_batch(organization_id, [ANN], 10, idempotency_key="once")
    books.drain_all(organization_id)
    _set_flags(organization_id, is_disabled=False, is_suspended=True)
    request = IssueRequest(emails=[ANN], email_keys=[ANN], amount=10, atomic=False, label=None)
    with transaction() as connection:
        [found] = accept(connection, [Send(books.key_of(connection, organization_id), request, "once")])
    assert isinstance(found, Acceptance)
    assert found.status == "issued"


def test_a_refused_batch_stays_refused_when_the_organization_may_issue_again() -> None:
    organization_id = books.make_organization(100)
    batch_id = books.queue_batch(organization_id, [ANN], 10)
    _set_flags(organization_id, is_disabled=True, is_suspended=False)
    books.drain_all(organization_id)
    _set_flags(organization_id, is_disabled=False, is_suspended=False)
    assert books.drain_all(organization_id) == []
    with transaction() as connection:
        assert books.issue(connection, organization_id, only=batch_id) == []
    assert books.read_batch(organization_id, batch_id)[0].status == "refused"
    assert books.balance_of(organization_id) == 100
