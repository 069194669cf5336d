"""The recipients of a body: their order, how many they may be, and what is said of each bad entry."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as effort
from hypothesis import strategies as st

from tests.unit.bodies import accepted, body_with, faults_of


@given(st.lists(st.from_regex(r"[A-Za-z]{1,8}@[a-z]{1,8}\.de", fullmatch=True), min_size=1, unique_by=str.lower))
@effort(deadline=None)
def test_recipients_keep_their_order_and_their_spelling(emails: list[str]) -> None:
    request = accepted(body_with(recipients=[f" {email}\n" for email in emails]))
    assert request.emails == emails
    assert request.email_keys == [email.lower() for email in emails]


def test_recipients_may_be_as_many_as_the_limit_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POINTS_RECIPIENTS_MAX", "3")
    emails = [f"{number}@example.com" for number in range(4)]
    assert accepted(body_with(recipients=emails[:3])).emails == emails[:3]
    faults = faults_of(body_with(recipients=emails))
    assert faults == {"recipients": ["There must be at most 3 recipients, but there are 4."]}


def test_what_is_over_the_limit_is_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POINTS_RECIPIENTS_MAX", "2")
    assert set(faults_of(body_with(recipients=["a@example.com", "bad", "bad", 7]))) == {"recipients", "recipients.1"}


def test_ten_thousand_recipients_are_not_too_many() -> None:
    emails = [f"{number}@example.com" for number in range(10_000)]
    assert accepted(body_with(recipients=emails)).emails == emails
    assert set(faults_of(body_with(recipients=[*emails, "one-more@example.com"]))) == {"recipients"}


def test_a_bad_entry_is_keyed_by_its_place() -> None:
    faults = faults_of(body_with(recipients=["a@example.com", "b@example.com", "c@example.com", "d"]))
    assert set(faults) == {"recipients.3"}
    assert faults["recipients.3"][0].startswith("The entry must be an e-mail address: ")


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


def test_addresses_that_differ_in_a_dot_or_a_plus_are_no_repeat() -> None:
    emails = ["first.last@gmail.com", "firstlast@gmail.com", "first.last+tag@gmail.com"]
    assert accepted(body_with(recipients=emails)).emails == emails


def test_a_setting_allows_repeats(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POINTS_ALLOW_REPEATS", "true")
    request = accepted(body_with(recipients=["a@example.com", "A@example.com", "a@example.com"]))
    assert request.emails == ["a@example.com", "A@example.com", "a@example.com"]
    assert request.email_keys == ["a@example.com"] * 3


@pytest.mark.parametrize("entry", ["broken@", "user@@example.com", "x y@example.com", "a@b"])
def test_ten_thousand_short_bad_entries_are_all_counted_in_one_line(entry: str) -> None:
    faults = faults_of(body_with(recipients=[entry] * 10_000))
    assert faults["recipients"] == ["9900 more entries are at fault."]


def test_those_that_would_take_seconds_are_counted_in_the_same_line_and_not_looked_at() -> None:
    faults = faults_of(body_with(recipients=[f"a@{'ü' * 250}"] * 1_000 + ["broken"] * 10))
    assert faults["recipients"] == ["910 more entries are at fault or not looked at."]
