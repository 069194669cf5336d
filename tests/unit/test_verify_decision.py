"""The decision of verify: whether points may be issued, and to how many."""

from dataclasses import replace
from itertools import accumulate

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from app.batches.errors import InsufficientBalance
from app.batches.request import IssueRequest
from app.batches.verify import verify
from app.errors import OrganizationDisabled, OrganizationSuspended
from app.organizations import OrganizationInMode, may_not_issue
from tests.unit.conftest import CALLER

_POINTS = st.integers(0, 2**63 - 1)


def uniform(amount: int, recipients: int) -> IssueRequest:
    emails = ["a@example.com"] * recipients
    return IssueRequest(emails=emails, email_keys=emails, amount=amount, atomic=False, label=None)


def with_items(*amounts: int) -> IssueRequest:
    return replace(uniform(1, len(amounts)), amount=None, running_totals=list(accumulate(amounts)))


def organization(*, balance: int, is_disabled: bool = False, is_suspended: bool = False) -> OrganizationInMode:
    return replace(CALLER.organization, balance=balance, is_disabled=is_disabled, is_suspended=is_suspended)


@pytest.mark.parametrize(("balance", "validated"), [(90, True), (91, True), (89, False), (0, False)])
def test_the_balance_must_pay_the_whole_batch(*, balance: int, validated: bool) -> None:
    verdict = verify(organization(balance=balance), uniform(30, 3))
    assert (verdict.refusal is None) is validated
    assert (verdict.required, verdict.available) == (90, balance)


def test_too_little_balance_is_said_with_both_numbers() -> None:
    refusal = verify(organization(balance=89), uniform(30, 3)).refusal
    assert isinstance(refusal, InsufficientBalance)
    assert refusal.code == "insufficient_balance"
    assert refusal.sentence == "The issue needs 90 points, but the balance is 89."


@pytest.mark.parametrize(("balance", "count"), [(0, 0), (29, 0), (30, 1), (89, 2), (90, 3), (10_000, 3)])
def test_a_verdict_counts_the_recipients_that_can_be_paid(balance: int, count: int) -> None:
    assert verify(organization(balance=balance), uniform(30, 3)).affordable_recipients == count


@pytest.mark.parametrize(
    ("is_disabled", "is_suspended", "kind", "code"),
    [
        (True, False, OrganizationDisabled, "organization_disabled"),
        (False, True, OrganizationSuspended, "organization_suspended"),
        (True, True, OrganizationDisabled, "organization_disabled"),
    ],
    ids=["disabled", "suspended", "disabled wins"],
)
@pytest.mark.parametrize("balance", [0, 90], ids=["poor", "rich"])
def test_an_organization_that_may_not_issue_is_refused_for_that_first(
    *, is_disabled: bool, is_suspended: bool, kind: type[Exception], code: str, balance: int
) -> None:
    seen = organization(balance=balance, is_disabled=is_disabled, is_suspended=is_suspended)
    refusal = verify(seen, uniform(30, 3)).refusal
    assert type(refusal) is kind
    assert refusal.code == code
    assert type(may_not_issue(is_disabled=is_disabled, is_suspended=is_suspended)) is kind


def test_an_organization_with_neither_flag_may_issue() -> None:
    assert may_not_issue(is_disabled=False, is_suspended=False) is None


@given(_POINTS, st.integers(1, 2**63 - 1), st.integers(1, 10_000))
@example(3 * 2**60 - 1, 2**60, 3)  # In floating point the balance would pay all three.
def test_exactly_as_many_are_served_as_the_balance_pays(balance: int, amount: int, recipients: int) -> None:
    count = uniform(amount, recipients).paid_by(balance)
    assert 0 <= count <= recipients
    assert count * amount <= balance
    assert count == recipients or (count + 1) * amount > balance


@given(_POINTS, st.integers(1, 2**63 - 1), st.integers(1, 10_000))
def test_verify_says_yes_when_everybody_is_served_and_only_then(balance: int, amount: int, recipients: int) -> None:
    verdict = verify(organization(balance=balance), uniform(amount, recipients))
    assert (verdict.refusal is None) is (verdict.affordable_recipients == recipients)


@given(_POINTS, st.lists(st.integers(1, 2**60), min_size=1, max_size=7))
@example(60, [50, 20, 10])  # The third alone would be paid; the second, which is not, ends the paying.
@example(2**63 - 1, [2**60] * 7)
def test_of_items_the_first_that_the_balance_cannot_pay_ends_the_paying(balance: int, amounts: list[int]) -> None:
    left, count = balance, 0
    for amount in amounts:
        if amount > left:
            break
        left, count = left - amount, count + 1
    verdict = verify(organization(balance=balance), with_items(*amounts))
    assert (verdict.affordable_recipients, verdict.required) == (count, sum(amounts))
    assert (verdict.refusal is None) is (count == len(amounts))
