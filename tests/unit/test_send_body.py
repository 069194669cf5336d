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


def test_an_amount_too_large_for_all_is_told_beside_other_faults(monkeypatch: pytest.MonkeyPatch) -> None:
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


def raw(**fields: str) -> bytes:
    """Return a body that is right, but for the fields given as raw JSON."""
    body = {"recipients": '["a@example.com"]', "amount": "10"} | fields
    return b"{%b}" % ", ".join(f'"{name}": {value}' for name, value in body.items()).encode()


_TYPES = {
    "amount": ("The amount must be an integer, but is a", 'true 10.0 1e3 1E0 -0.0 "10" [10] {} NaN -Infinity 1e400'),
    "atomic": ("The atomic field must be true or false, but is a", '0 1 "true" [true] {} 1.0'),
    "label": ("The label must be a string, but is a", '5 false 1.5 ["x"] {}'),
    "recipients": (
        "The recipients must be an array of e-mail addresses, but are a",
        '"a@x.com" {"0":"a@x.com"} 1 true 0',
    ),
    "recipient": (
        "The recipient must be a string with an e-mail address, but is a",
        '["a@x.com"] {"email":"a@x.com"} 1 0',
    ),
    "recipients.1": ("The entry must be a string with an e-mail address, but is ", "null 1 true 1.5 [] {}"),
}


@pytest.mark.parametrize(
    ("field", "value"), [(field, one) for field, (_, all_) in _TYPES.items() for one in all_.split()]
)
def test_a_value_of_another_type_is_told_what_it_must_be_and_what_it_is(field: str, value: str) -> None:
    given = {"recipient": {"recipients": "null", "recipient": value}}
    given["recipients.1"] = {"recipients": f'["a@example.com", {value}]'}
    [sentence] = faults_of(raw(**given.get(field, {field: value})))[field]
    assert sentence.startswith(_TYPES[field][0])


def test_a_number_that_is_no_json_is_refused_also_where_no_field_is_at_fault() -> None:
    assert set(faults_of(raw(atomic='NaN, "atomic": true'))) == {"body", "atomic"}
    assert set(faults_of(raw(unknown="NaN"))) == {"unknown"}
    assert set(faults_of(raw(recipients='["a@example.com", NaN]', unknown="NaN"))) == {"recipients.1", "unknown"}


@pytest.mark.parametrize("digits", [4_300, 4_301, 5_000, 100_000])
def test_an_integer_of_thousands_of_digits_is_a_fault_of_its_field(digits: int) -> None:
    [sentence] = faults_of(raw(amount="9" * digits))["amount"]
    assert sentence.endswith("but is a number beyond 64 bits.")
    assert faults_of(raw(amount="-" + "9" * digits)) == {"amount": [sentence]}
    assert set(faults_of(raw(amount="9" * digits, atomic="1" * digits))) == {"amount", "atomic"}
    assert set(faults_of(raw(amount="9" * digits) + b"}")) == {"body"}


@pytest.mark.parametrize(
    ("body", "words"),
    [
        *((one, "The body must be a JSON object, but is ") for one in (b"[]", b'"x"', b"5", b"1.5", b"null", b"true")),
        *(
            (one, "The body must be a JSON object in UTF-8: ")
            for one in (b"", b" ", b"{", b"{}{}", b"\0", b"recipient=a")
        ),
        *((mark + b"{}", ": leave out the byte order mark.") for mark in (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")),
    ],
)
def test_what_is_no_object_in_utf_8_is_told_what_it_is(body: bytes, words: str) -> None:
    [sentence] = faults_of(body)["body"]
    assert words in sentence


def test_a_pair_of_surrogates_is_one_character() -> None:
    assert accepted(raw(label=r'"\ud83c\udf81"')).label == "🎁"


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
