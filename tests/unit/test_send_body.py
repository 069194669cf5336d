"""The body of verify and send: its fields, their limits, and all of its faults in one answer, word for word."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as effort
from hypothesis import strategies as st

from tests.unit.bodies import accepted, body_with, faults_of

missing = pytest.mark.parametrize("nothing", [..., None, "", []], ids=["absent", "null", "empty string", "empty array"])


@missing
def test_with_everything_missing_amount_recipient_and_recipients_are_named_together(nothing: object) -> None:
    faults = faults_of(body_with(amount=nothing, recipient=nothing, recipients=nothing))
    assert faults == {
        "amount": ["The amount field is required."],
        "recipient": ["The recipient field is required when recipients is not present."],
        "recipients": ["The recipients field is required when recipient is not present."],
    }


@missing
def test_recipients_are_not_required_beside_a_recipient_nor_a_recipient_beside_recipients(nothing: object) -> None:
    one = accepted(body_with(recipient="a@example.com", recipients=nothing))
    many = accepted(body_with(recipient=nothing, recipients=["a@example.com"]))
    assert one == many  # One recipient is the same as a list of one.
    assert one.emails == ["a@example.com"]


@missing
def test_atomic_and_label_are_optional_and_default_to_false_and_null(nothing: object) -> None:
    request = accepted(body_with(atomic=nothing, label=nothing))
    assert request.atomic is False
    assert request.label is None


def test_what_is_sent_is_what_is_read() -> None:
    request = accepted(body_with(amount=7, atomic=True, label=" Spring – 100 % "))
    assert (request.amount, request.atomic, request.label) == (7, True, " Spring – 100 % ")


def test_the_amount_for_all_recipients_together_must_fit_64_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POINTS_AMOUNT_MAX", str(2**63 - 1))
    seven = [f"{number}@example.com" for number in range(7)]  # 2**63 - 1 is divisible by 7.
    assert accepted(body_with(recipients=seven, amount=(2**63 - 1) // 7)).required == 2**63 - 1
    [sentence] = faults_of(body_with(recipients=seven, amount=(2**63 - 1) // 7 + 1))["amount"]
    limit = "must not exceed 9223372036854775807 points, but is 9223372036854775814"
    assert sentence == f"The amount for all 7 recipients together {limit}."


def test_unknown_fields_without_end_are_counted_and_a_long_name_is_cut() -> None:
    faults = dict(faults_of(body_with() | {f"{number:03}" + "x" * 500: 1 for number in range(150)}))
    assert faults.pop("body") == ["50 more fields are not known."]
    assert len(faults) == 100
    assert all(len(name) == 65 for name in faults)


@given(st.lists(st.from_regex(r"[A-Za-z]{1,8}@[a-z]{1,8}\.de", fullmatch=True), min_size=1, unique_by=str.lower))
@effort(deadline=None)
def test_recipients_keep_their_order_and_their_spelling(emails: list[str]) -> None:
    request = accepted(body_with(recipients=[f" {email}\n" for email in emails]))
    assert request.emails == emails
    assert request.email_keys == [email.lower() for email in emails]


def test_what_is_over_the_limit_is_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POINTS_RECIPIENTS_MAX", "2")
    assert set(faults_of(body_with(recipients=["a@example.com", "bad", "bad", 7]))) == {"recipients", "recipients.1"}


@pytest.mark.parametrize(
    ("bad", "last_line"),
    [
        (100, None),
        (101, "1 more entry is at fault."),
        (350, "250 more entries are at fault."),
    ],
)
def test_a_hundred_bad_entries_are_listed_and_then_one_line_counts_the_rest(bad: int, last_line: str | None) -> None:
    faults = faults_of(body_with(recipients=["good@example.com", *["bad"] * bad]))
    listed = {f"recipients.{place}" for place in range(1, 101)}
    expected: dict[str, Any] = {} if last_line is None else {"recipients": [last_line]}
    assert set(faults) - listed == set(expected)
    assert listed <= set(faults)
    assert {field: faults[field] for field in expected} == expected


def test_a_repeat_of_an_address_names_the_earlier_place() -> None:
    emails = ["a@example.com", "b@example.com", " A@EXAMPLE.com", "a@example.com"]
    assert faults_of(body_with(recipients=emails)) == {
        "recipients.2": ["The entry is the same address as recipients.0."],
        "recipients.3": ["The entry is the same address as recipients.0."],
    }


def test_repeats_are_counted_behind_a_hundred_bad_entries_too() -> None:
    faults = faults_of(body_with(recipients=["a@example.com", *["bad"] * 100, "a@example.com", "A@example.com"]))
    assert faults["recipients"] == ["2 more entries are at fault."]


def test_those_that_would_take_seconds_are_counted_in_the_same_line_and_not_looked_at() -> None:
    faults = faults_of(body_with(recipients=[f"a@{'ü' * 250}"] * 1_000 + ["broken"] * 10))
    assert faults["recipients"] == ["910 more entries are at fault or not looked at."]
