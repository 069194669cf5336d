"""The body of verify and send: its fields, their limits, and all of its faults in one answer."""

from datetime import UTC, datetime

import pytest

from app.batches.request import read_reschedule
from app.settings import settings
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
def test_a_missing_amount_is_required(nothing: object) -> None:
    assert faults_of(body_with(amount=nothing)) == {"amount": ["The amount field is required."]}


@missing
def test_recipients_are_not_required_beside_a_recipient_nor_a_recipient_beside_recipients(nothing: object) -> None:
    one = accepted(body_with(recipient="a@example.com", recipients=nothing))
    many = accepted(body_with(recipient=nothing, recipients=["a@example.com"]))
    assert one == many  # One recipient is the same as a list of one.
    assert one.emails == ["a@example.com"]


def test_recipient_and_recipients_together_are_a_fault_of_both() -> None:
    assert faults_of(body_with(recipient="b@example.com")) == {
        "recipient": ["Send either recipient or recipients, not both."],
        "recipients": ["Send either recipients or recipient, not both."],
    }


@missing
def test_atomic_and_label_are_optional_and_default_to_false_and_null(nothing: object) -> None:
    request = accepted(body_with(atomic=nothing, label=nothing))
    assert request.atomic is False
    assert request.label is None


def test_what_is_sent_is_what_is_read() -> None:
    request = accepted(body_with(amount=7, atomic=True, label=" Spring – 100 % "))
    assert (request.amount, request.atomic, request.label) == (7, True, " Spring – 100 % ")


@pytest.mark.parametrize("amount", [1, 1_000_000_000])
def test_an_amount_from_1_to_the_limit_is_accepted(amount: int) -> None:
    assert accepted(body_with(amount=amount)).amount == amount


@pytest.mark.parametrize("amount", [0, -1, 1_000_000_001, 2**63, -(2**63), 10**4_000])
def test_an_amount_outside_1_to_the_limit_is_a_fault(amount: int) -> None:
    [sentence] = faults_of(body_with(amount=amount))["amount"]
    assert sentence.startswith("The amount must be between 1 and 1000000000 points, but is ")
    assert len(sentence) < 120  # A number of thousands of digits is not repeated.


def test_the_limit_of_the_amount_is_a_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POINTS_AMOUNT_MAX", "9")
    assert accepted(body_with(amount=9)).amount == 9
    assert set(faults_of(body_with(amount=10))) == {"amount"}


def test_the_amount_for_all_recipients_together_must_fit_64_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POINTS_AMOUNT_MAX", str(2**63 - 1))
    seven = [f"{number}@example.com" for number in range(7)]  # 2**63 - 1 is divisible by 7.
    assert accepted(body_with(recipients=seven, amount=(2**63 - 1) // 7)).required == 2**63 - 1
    [sentence] = faults_of(body_with(recipients=seven, amount=(2**63 - 1) // 7 + 1))["amount"]
    limit = "must not exceed 9223372036854775807 points, but is 9223372036854775814"
    assert sentence == f"The amount for all 7 recipients together {limit}."


def test_an_amount_too_large_for_all_is_told_beside_the_faults_of_the_recipients(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("POINTS_AMOUNT_MAX", str(2**63 - 1))
    half = {"amount": 2**62}
    assert set(faults_of(body_with(recipients=["a@example.com", "b"], **half))) == {"recipients.1", "amount"}
    assert set(faults_of(body_with(recipients=["a", "b"], **half))) == {"recipients.0", "recipients.1", "amount"}
    assert set(faults_of(body_with(recipients=["b"], **half))) == {"recipients.0"}
    assert set(faults_of({"recipient": "b", **half})) == {"recipient"}
    assert set(faults_of({"recipient": "b", "recipients": ["c"], **half})) >= {"recipient", "recipients", "amount"}


def test_a_label_may_have_255_characters_and_no_more() -> None:
    assert accepted(body_with(label="🎁" * 255)).label == "🎁" * 255
    assert faults_of(body_with(label="x" * 256)) == {
        "label": ["The label must have at most 255 characters, but has 256."]
    }


def test_unknown_fields_are_faults_that_name_the_nearest_known_one() -> None:
    faults = faults_of(body_with() | {"recipents": 5, "Amount": None, "sender": {"id": [None]}, "": True})
    assert set(faults) == {"recipents", "Amount", "sender", "body"}
    assert faults["recipents"][0].endswith("did you mean recipients?")
    assert faults["Amount"][0].endswith("did you mean amount?")
    assert faults["sender"][0].endswith(
        "this call takes recipients, recipient, items, amount, atomic, label, expect, metadata."
    )


def test_unknown_fields_without_end_are_counted_and_a_long_name_is_cut() -> None:
    faults = dict(faults_of(body_with() | {f"{number:03}" + "x" * 500: 1 for number in range(150)}))
    assert faults.pop("body") == ["50 more fields are not known."]
    assert len(faults) == 100
    assert all(len(name) == 65 for name in faults)


def test_all_faults_of_a_body_are_reported_together() -> None:
    faults = faults_of(body_with(recipients=["a@example.com", "no", 7], amount=0, atomic="yes", label=5))
    assert set(faults) == {"recipients.1", "recipients.2", "amount", "atomic", "label"}


def test_a_bad_recipient_is_reported_beside_the_other_faults() -> None:
    faults = faults_of(body_with(recipients=..., recipient="no", amount=None))
    assert set(faults) == {"recipient", "amount"}
    assert faults["recipient"][0].startswith("The recipient must be an e-mail address: ")


def test_a_time_is_read_in_utc_to_the_microsecond() -> None:
    moved = read_reschedule({"send_at": "2026-02-01T14:30:00.1234569+05:30"}, settings())
    assert moved == datetime(2026, 2, 1, 9, microsecond=123456, tzinfo=UTC)
