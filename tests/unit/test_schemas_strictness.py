"""The body of verify and send: types are strict, and so are JSON and UTF-8."""

import pytest

from tests.unit.bodies import accepted, faults_of


def raw(**fields: str) -> bytes:
    """Return a body that is right, but for the fields given as raw JSON."""
    body = {"recipients": '["a@example.com"]', "amount": "10"} | fields
    return b"{%b}" % ", ".join(f'"{name}": {value}' for name, value in body.items()).encode()


@pytest.mark.parametrize(
    "amount", ["true", "10.0", "1e3", "1E0", "-0.0", '"10"', "[10]", "{}", "NaN", "Infinity", "-Infinity", "1e400"]
)
def test_only_an_integer_is_an_amount(amount: str) -> None:
    [sentence] = faults_of(raw(amount=amount))["amount"]
    assert sentence.startswith("The amount must be an integer, but is a")


@pytest.mark.parametrize("amount", ["nan", "+10", "010", "0x10", "1_000", "10."])
def test_what_json_does_not_know_as_a_number_is_a_fault_of_the_body(amount: str) -> None:
    assert set(faults_of(raw(amount=amount))) == {"body"}


def test_a_number_that_is_no_json_is_refused_also_where_no_field_is_at_fault() -> None:
    assert set(faults_of(raw(atomic='NaN, "atomic": true'))) == {"body"}
    assert set(faults_of(raw(unknown="NaN"))) == {"unknown"}
    assert set(faults_of(raw(recipients='["a@example.com", NaN]', unknown="NaN"))) == {"recipients.1", "unknown"}


@pytest.mark.parametrize("digits", [4_300, 4_301, 5_000, 100_000])
def test_an_integer_of_thousands_of_digits_is_a_fault_of_its_field(digits: int) -> None:
    [sentence] = faults_of(raw(amount="9" * digits))["amount"]
    assert sentence.endswith("but is a number beyond 64 bits.")
    assert faults_of(raw(amount="-" + "9" * digits)) == {"amount": [sentence]}
    assert set(faults_of(raw(amount="9" * digits, atomic="1" * digits))) == {"amount", "atomic"}
    assert set(faults_of(raw(amount="9" * digits) + b"}")) == {"body"}


@pytest.mark.parametrize("mark", [b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff"])
def test_a_byte_order_mark_is_named(mark: bytes) -> None:
    [sentence] = faults_of(mark + raw())["body"]
    assert sentence.endswith(": leave out the byte order mark.")


@pytest.mark.parametrize("atomic", ["0", "1", '"true"', "[true]", "{}", "1.0"])
def test_only_a_boolean_is_atomic(atomic: str) -> None:
    [sentence] = faults_of(raw(atomic=atomic))["atomic"]
    assert sentence.startswith("The atomic field must be true or false, but is a")


@pytest.mark.parametrize("label", ["5", "false", "1.5", '["x"]', "{}"])
def test_only_a_string_or_null_is_a_label(label: str) -> None:
    [sentence] = faults_of(raw(label=label))["label"]
    assert sentence.startswith("The label must be a string, but is a")


@pytest.mark.parametrize("recipients", ['"a@example.com"', '{"0": "a@example.com"}', "1", "true", "false", "0"])
def test_only_an_array_is_recipients(recipients: str) -> None:
    [sentence] = faults_of(raw(recipients=recipients))["recipients"]
    assert sentence.startswith("The recipients must be an array of e-mail addresses, but are a")


@pytest.mark.parametrize("recipient", ['["a@example.com"]', '{"email": "a@example.com"}', "1", "true", "false", "0"])
def test_only_a_string_is_a_recipient(recipient: str) -> None:
    [sentence] = faults_of(raw(recipients="null", recipient=recipient))["recipient"]
    assert sentence.startswith("The recipient must be a string with an e-mail address, but is a")


@pytest.mark.parametrize("entry", ["null", "1", "true", "1.5", "[]", "{}"])
def test_only_a_string_is_an_entry_of_recipients(entry: str) -> None:
    [sentence] = faults_of(raw(recipients=f'["a@example.com", {entry}]'))["recipients.1"]
    assert sentence.startswith("The entry must be a string with an e-mail address, but is ")


@pytest.mark.parametrize("blank", ['""', '" "', '"\\t\\u00a0"'])
def test_a_blank_entry_and_a_blank_recipient_are_no_address(blank: str) -> None:
    assert set(faults_of(raw(recipients=f'["a@example.com", {blank}]'))) == {"recipients.1"}


@pytest.mark.parametrize("body", [b"[]", b'["a@example.com"]', b'"x"', b"5", b"1.5", b"null", b"true", b'""'])
def test_a_body_that_is_not_an_object_is_a_fault_of_the_body(body: bytes) -> None:
    [sentence] = faults_of(body)["body"]
    assert sentence.startswith("The body must be a JSON object, but is ")


@pytest.mark.parametrize(
    "body",
    [
        b"", b" ", b"{", b"}", b"{}{}", b"{} x", b'{"amount": 10,}', b"{'amount': 10}", b"{amount: 10}", b"\0",
        b'{"amount": 10', b'{"label": "a\nb"}', b'{"label": "\\x41"}', b"// no\n{}", b"recipient=a&amount=1",
        b'\xef\xbb\xbf{"amount": 10}', '{"amount": 10}'.encode("utf-16"),
    ],
)  # fmt: skip
def test_malformed_json_is_a_fault_of_the_body(body: bytes) -> None:
    [sentence] = faults_of(body)["body"]
    assert sentence.startswith("The body must be a JSON object in UTF-8: ")


@pytest.mark.parametrize("label", [b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xc0\x80", b"caf\xe9"])
def test_invalid_utf_8_is_a_fault_of_the_body(label: bytes) -> None:
    assert set(faults_of(raw(label='"?"').replace(b"?", label))) == {"body"}


@pytest.mark.parametrize("text", [r"\ud800", r"\udc00", r"\ud83d\u0041", r"\udc00\ud800"])
def test_a_lone_surrogate_is_a_fault_wherever_it_stands(text: str) -> None:
    assert faults_of(raw(label=f'"{text}"'))
    assert faults_of(raw(recipients=f'["{text}@example.com"]'))
    assert faults_of(raw(**{text: "1"}))


def test_a_pair_of_surrogates_is_one_character() -> None:
    assert accepted(raw(label=r'"\ud83c\udf81"')).label == "🎁"


def test_a_nul_character_is_a_fault_of_the_field_it_stands_in() -> None:
    assert set(faults_of(raw(label=r'"a\u0000b"'))) == {"label"}
    assert set(faults_of(raw(recipients=r'["a\u0000@example.com"]'))) == {"recipients.0"}
    assert set(faults_of(raw(recipients="null", recipient=r'"a@example.com\u0000"'))) == {"recipient"}


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}")])
def test_nesting_without_end_is_a_fault_of_the_body(opening: str, closing: str) -> None:
    assert set(faults_of((opening * 100_000).encode())) == {"body"}
    assert set(faults_of(raw(extra=opening * 100_000 + "1" + closing * 100_000))) == {"body"}


def test_a_number_of_very_many_digits_is_a_fault_and_costs_nothing() -> None:
    assert set(faults_of(raw(amount="9" * 1_000_000))) <= {"body", "amount"}
