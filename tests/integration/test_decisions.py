"""What a balance pays is decided twice, for verify in Python and for a send in SQL: they must be of one mind."""

from itertools import accumulate
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as effort
from hypothesis import strategies as st

from app.batches import read as batches
from app.batches.request import IssueRequest
from app.batches.verify import affordable
from app.settings import INT64_MAX
from tests.integration import books

pytestmark = pytest.mark.usefixtures("database")

ANN = "ann@example.com"
_FAR_BEYOND_FLOATS = 2**60


class _Send(NamedTuple):
    sandbox: bool
    amounts: list[int]
    is_uniform: bool
    atomic: bool


# Also amounts of which a balance pays two and almost, or just, a third.
amounts = st.one_of(st.integers(1, 50), st.integers(-3, 3).map(lambda more: INT64_MAX // 3 + more))
uniform = st.tuples(amounts, st.integers(1, 4)).map(lambda drawn: [drawn[0]] * drawn[1])
items = st.lists(amounts, min_size=1, max_size=6)


def _of(drawn: tuple[bool, list[int], bool, bool]) -> _Send:
    sandbox, amounts, is_uniform, atomic = drawn
    return _Send(sandbox, amounts, is_uniform and len(set(amounts)) == 1, atomic)


sends = (
    st.tuples(st.booleans(), st.one_of(uniform, items), st.booleans(), st.booleans())
    .map(_of)
    .filter(lambda send: sum(send.amounts) <= INT64_MAX)  # Else it is no request.
)
balances = st.one_of(st.integers(0, 500), st.integers(0, 10).map(lambda less: INT64_MAX - less))


def _request(send: _Send) -> IssueRequest:
    emails = [ANN] * len(send.amounts)
    return IssueRequest(
        emails=emails,
        email_keys=emails,
        amount=send.amounts[0] if send.is_uniform else None,
        running_totals=None if send.is_uniform else list(accumulate(send.amounts)),
        atomic=send.atomic,
        label=None,
    )


def _paid_by_a_loop(amounts: list[int], balance: int) -> int:
    for count, amount in enumerate(amounts):
        if amount > balance:
            return count
        balance -= amount
    return len(amounts)


@effort(
    max_examples=100,
    deadline=None,
    # The fixtures stay for all examples; each example empties the tables itself.
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(balance=balances, sandbox_balance=balances, queue=st.lists(sends, min_size=1, max_size=8))
def test_a_drain_pays_what_verify_says_that_a_balance_pays(
    balance: int, sandbox_balance: int, queue: list[_Send]
) -> None:
    books.empty()
    organization_id = books.make_organization(balance, sandbox_balance=sandbox_balance)
    left = {False: balance, True: sandbox_balance}
    expected = []
    for send in queue:
        emails = [ANN] * len(send.amounts)
        amount = send.amounts[0] if send.is_uniform else send.amounts
        batch_id = books.queue_batch(organization_id, emails, amount, sandbox=send.sandbox, atomic=send.atomic)
        count = affordable(_request(send), balance=left[send.sandbox])
        assert count == _paid_by_a_loop(send.amounts, left[send.sandbox])
        if send.atomic and count < len(send.amounts):
            count = 0
        left[send.sandbox] -= sum(send.amounts[:count])
        expected.append((batch_id, count, left[send.sandbox]))
    books.drain_all(organization_id)
    seen = []
    for (batch_id, _, _), send in zip(expected, queue, strict=True):
        batch, _ = books.read_batch(organization_id, batch_id, sandbox=send.sandbox)
        assert batch.status == batches.ISSUED
        seen.append((batch_id, batch.debited_count, batch.current_balance))
    assert seen == expected
    assert books.balance_of(organization_id) == left[False]
    assert books.balance_of(organization_id, sandbox=True) == left[True]


def test_more_than_a_float_can_tell_apart_is_paid_to_the_point() -> None:
    amount = _FAR_BEYOND_FLOATS + 1
    poor, rich = books.make_organization(3 * amount - 1), books.make_organization(3 * amount)
    paid = []
    for organization_id in (poor, rich):
        batch_id = books.issue_now(organization_id, [ANN] * 3, amount)
        paid.append(books.read_batch(organization_id, batch_id)[0].debited_count)
    assert paid == [2, 3]
