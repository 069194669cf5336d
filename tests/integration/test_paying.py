"""What a balance pays, in Python and in the database."""

import json
from itertools import accumulate

import pytest
from hypothesis import HealthCheck, example, given
from hypothesis import settings as effort
from hypothesis import strategies as st

from app.settings import INT64_MAX
from app.values.numbers import paid_count
from tests.integration import books

pytestmark = pytest.mark.usefixtures("database")

_Case = tuple[int, list[int], bool]
_CASES = st.lists(
    st.tuples(st.integers(0, INT64_MAX), st.lists(st.integers(1, 2**60), min_size=1, max_size=7), st.booleans()),
    min_size=1,
    max_size=50,
)
_ASK = """
    SELECT paid_count(balance, recipients, amount, totals)
    FROM json_to_recordset(%s) AS c (place int, balance bigint, recipients int, amount bigint, totals bigint[])
    ORDER BY place
"""


@effort(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(_CASES)
@example([(balance, [50, 20, 10], own) for balance in (0, 49, 50, 69, 70, 80, 81) for own in (True, False)])
@example([(3 * 2**60 - 1, [2**60] * 3, own) for own in (True, False)])  # In floating point it would pay all three.
def test_a_balance_pays_as_many_in_the_database_as_in_python(cases: list[_Case]) -> None:
    asked, expected = [], []
    for place, (balance, amounts, has_own) in enumerate(cases):
        amount, totals = (None, list(accumulate(amounts))) if has_own else (amounts[0], None)
        count = paid_count(balance, recipients=len(amounts), amount=amount, running_totals=totals)
        own = amounts if has_own else amounts[:1] * len(amounts)
        assert sum(own[:count]) <= balance < sum(own[: count + 1]) or count == len(own)
        expected.append(count)
        asked.append(
            {"place": place, "balance": balance, "recipients": len(amounts), "amount": amount, "totals": totals}
        )
    assert books.values(_ASK, (json.dumps(asked),)) == expected
