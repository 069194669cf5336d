"""The body of verify and send: its fields, their limits, and all of its faults in one answer, word for word."""

from typing import Any

import pytest

from tests.unit.bodies import accepted, body_with, faults_of

missing = pytest.mark.parametrize("nothing", [..., None, "", []], ids=["absent", "null", "empty string", "empty array"])


def test_unknown_fields_without_end_are_counted_and_a_long_name_is_cut() -> None:
    faults = dict(faults_of(body_with() | {f"{number:03}" + "x" * 500: 1 for number in range(150)}))
    assert faults.pop("body") == ["50 more fields are not known."]
    assert len(faults) == 100
    assert all(len(name) == 65 for name in faults)


def test_what_is_over_the_limit_is_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POINTS_RECIPIENTS_MAX", "2")
    assert set(faults_of(body_with(recipients=["a@example.com", "bad", "bad", 7]))) == {"recipients", "recipients.1"}


def test_more_points_together_than_64_bits_hold_are_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POINTS_AMOUNT_MAX", str(2**62))
    emails = ["a@example.com", "b@example.com"]
    for amount, faults in ((2**62, 1), (2**62 - 1, 0)):
        items = [{"email": email, "amount": amount} for email in emails]
        bodies = {"amount": body_with(recipients=emails, amount=amount), "items": {"items": items}}
        for field, body in bodies.items():
            if faults:
                assert set(faults_of(body)) == {field}
            else:
                assert accepted(body).required == 2**63 - 2


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
