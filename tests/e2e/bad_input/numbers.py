"""Numbers and what looks like them, where an integer, a boolean or an address belongs."""

from tests.e2e.bad_input.cases import ADDRESS, CANARY, BodyCase, body


def _amount(written: str) -> str:
    return f'{{"recipient": "{ADDRESS}", "label": "{CANARY}", "amount": {written}}}'


# These are numbers in JSON, or what some libraries take for one, and no amount: a 400 on the field.
_NO_AMOUNT = [
    body(f"amount {written}", _amount(written), "amount")
    for written in (
        *("0", "-0", "-1", "-9223372036854775808", "1000000001", "9223372036854775807"),
        *("9223372036854775808", "18446744073709551616", "1" + "0" * 30, "-1" + "0" * 30),
        *("10.0", "-0.0", "0.1", "10.5", "1e0", "1E0", "1e3", "1E+3", "1e-1", "1.0E+2", "1e-400"),
        *("NaN", "Infinity", "-Infinity", "1e400", "-1e400", "1e999999999999", "1.7976931348623159e308"),
        *(
            '"10"',
            '"１０"',
            '" "',
            '"1e3"',
            '"NaN"',
            "true",
            "false",
            "null",
            '""',
            "[]",
            "{}",
            "[10]",
            '{"amount": 10}',
        ),
    )
] + [
    body("amount of 4,300 digits", _amount("9" * 4_300), "amount"),
    body("amount of 4,301 digits", _amount("9" * 4_301), "amount"),
    body("amount of 5,000 digits", _amount("9" * 5_000), "amount"),
    body("amount of 100,000 digits", _amount("9" * 100_000), "amount"),
    body("amount of 100,000 digits and a minus", _amount("-" + "9" * 100_000), "amount"),
    body("amount of eight million digits", _amount("9" * 8_000_000), "amount"),
    body("amount of 100,000 digits behind the point", _amount("1." + "0" * 100_000), "amount"),
    body("amount with an exponent of 100,000 digits", _amount("1e" + "9" * 100_000), "amount"),
]

# These are no JSON at all, so nothing can be said of a field.
_NO_JSON = [
    body(f"amount {written}", _amount(written), "body")
    for written in (
        *("nan", "inf", "0x10", "0b1", "0o7", "01", "-01", "00", "+1", "--1"),
        *("1.", ".5", "1e", "1e+", "1_000", "1,000", "10n", "1 0", "１０", "٣", "-", "½", "1d", "'10'"),
    )
] + [
    body("100,000 digits and nothing else", "9" * 100_000, "body"),
    body("100,000 digits and a half", _amount("9" * 100_000 + "."), "body"),
]

_NO_BOOLEAN = [
    body(f"atomic {written}", f'{{"recipient": "{ADDRESS}", "amount": 1, "atomic": {written}}}', "atomic")
    for written in ("0", "1", "1.0", '"true"', '"false"', '" "', "[true]", "{}", "1e400")
]

_NO_LABEL = [
    body(f"label {written}", f'{{"recipient": "{ADDRESS}", "amount": 1, "label": {written}}}', "label")
    for written in ("0", "1.5", "true", "false", f'["{CANARY}"]', "{}", "1e400", "9" * 4_000, "9" * 5_000)
]

_EVERYTHING = [
    body(
        "every field at fault",
        f'{{"recipient": 1, "recipients": [1, "{ADDRESS}", null], "amount": "1", "atomic": 1, "label": 1}}',
        *("recipient", "recipients", "recipients.0", "recipients.2", "amount", "atomic", "label"),
    ),
]

CASES: list[BodyCase] = [*_NO_AMOUNT, *_NO_JSON, *_NO_BOOLEAN, *_NO_LABEL, *_EVERYTHING]

GOOD_CASES = [
    body("an amount at its limit", _amount("1000000000")),
    body("atomic missing as an empty string", f'{{"recipient": "{ADDRESS}", "amount": 1, "atomic": ""}}'),
    body("label missing as an empty array", f'{{"recipient": "{ADDRESS}", "amount": 1, "label": []}}'),
]
