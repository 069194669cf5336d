"""Values that a field must not have: numbers and what looks like them, labels, recipients of a wrong shape."""

import json
from typing import Any

from tests.e2e.bad_input.cases import ADDRESS, CANARY, MISSING, Case, body, good


def _with(**fields: str) -> str:
    """Write a body that is right, but for the fields given as raw JSON."""
    values = {"recipient": f'"{ADDRESS}"'} | fields
    return "{" + ", ".join(f'"{name}": {value}' for name, value in values.items()) + "}"


def _amount(written: str) -> str:
    return _with(label=f'"{CANARY}"', amount=written)


def _recipients(*recipients: Any) -> str:
    """Write a body whose recipients are these, as characters and not as escapes."""
    return json.dumps({"recipients": recipients, "amount": 1, "label": CANARY}, ensure_ascii=False)


def _label(label: str) -> str:
    return json.dumps({"recipient": ADDRESS, "amount": 1, "label": label}, ensure_ascii=False)


# Numbers in JSON, or what some libraries take for one, and no amount: a 400 on the field.
_NO_AMOUNTS = """
    0 -0 -1 -9223372036854775808 1000000001 9223372036854775807 9223372036854775808 18446744073709551616
    10.0 -0.0 0.1 10.5 1e0 1E0 1e3 1E+3 1e-1 1.0E+2 1e-400 1e400 -1e400 1e999999999999 1.7976931348623159e308
    NaN Infinity -Infinity "10" "１０" "" "1e3" "NaN" true false null [] {} [10] {"amount":10}
"""
# No JSON at all, so nothing can be said of a field.
_NO_NUMBERS = "nan inf 0x10 0b1 0o7 01 -01 00 +1 --1 1. .5 1e 1e+ 1_000 1,000 10n １０ ٣ - ½ 1d '10'"
_NO_BOOLEANS = '0 1 1.0 "true" "false" [true] {} 1e400'
_NO_LABELS = ["0", "1.5", "true", "false", f'["{CANARY}"]', "{}", "1e400", "9" * 4_000, "9" * 5_000]
_NO_RECIPIENTS = [f'{{"0": "{ADDRESS}"}}', "{}", f'"{ADDRESS}"', "1", "true", "false", "0", "1e400"]
_NO_ENTRIES = ["null", "1", "1.5", "true", "{}", "[]", f'["{ADDRESS}"]', f'{{"email": "{ADDRESS}"}}', '""']
_NO_RECIPIENT: list[Any] = [1, True, False, 0, {}, {"email": ADDRESS}, [ADDRESS], " ", "\t\r\n", CANARY]

CASES: list[Case] = [
    *(body(f"amount {written}", _amount(written), "amount") for written in _NO_AMOUNTS.split()),
    *(body(f"amount {written}", _amount(written), "body") for written in _NO_NUMBERS.split()),
    *(body(f"amount of {digits} digits", _amount("9" * digits), "amount") for digits in (30, 4_300, 4_301, 100_000)),
    body("a negative amount of 100,000 digits", _amount("-" + "9" * 100_000), "amount"),
    body("an amount of 100,000 digits behind the point", _amount("1." + "0" * 100_000), "amount"),
    body("an amount with an exponent of 100,000 digits", _amount("1e" + "9" * 100_000), "amount"),
    body("100,000 digits and nothing else", "9" * 100_000, "body"),
    body("100,000 digits and a half", _amount("9" * 100_000 + "."), "body"),
    *(body(f"atomic {written}", _with(amount="1", atomic=written), "atomic") for written in _NO_BOOLEANS.split()),
    *(
        body(f"label {written}"[:60] + str(len(written)), _with(amount="1", label=written), "label")
        for written in _NO_LABELS
    ),
    body("a label of 256 characters beyond the basic plane", _label("🐘" * 256), "label"),
    body("a label of 256 combining characters", _label("a" + "\u0301" * 255), "label"),
    body("a label of 256 blanks", _label(" " * 256), "label"),
    body("a label of a megabyte", _label("a" * 1_000_000), "label"),
    body("an address of a megabyte", _recipients("a" * 1_000_000 + ADDRESS), "recipients.0"),
    body("a label with a NUL", _with(amount="1", label=f'"{CANARY}\\u0000"'), "label"),
    body("a NUL in an address", _with(amount="1", recipient=f'"{CANARY}\\u0000@example.com"'), "recipient"),
    body("an escaped newline in an address", _with(amount="1", recipient=f'"{CANARY}\\n@example.com"'), "recipient"),
    *(body(f"recipients {one}", f'{{"recipients": {one}, "amount": 1}}', "recipients") for one in _NO_RECIPIENTS),
    *(
        body(f"an entry {one}", f'{{"recipients": ["{ADDRESS}", {one}], "amount": 1}}', "recipients.1")
        for one in _NO_ENTRIES
    ),
    *(body(f"recipient {one!r}", _with(amount="1", recipient=json.dumps(one)), "recipient") for one in _NO_RECIPIENT),
    body("recipient an array of nothing, which is missing", _with(amount="1", recipient="[]"), *MISSING[1:]),
    body("both", _with(amount="1", recipients=f'["b{ADDRESS}"]'), *MISSING[1:]),
    body("a pair of addresses", _recipients(f"{CANARY}@example.com, b@example.com"), "recipients.0"),
    body("a header in an address", _recipients(f"{CANARY}\r\nBcc: b@example.com"), "recipients.0"),
    body("an address of 250 combining characters", _recipients("a" + "\u0301" * 240 + "@b.com"), "recipients.0"),
    body("the same twice", _recipients(ADDRESS, f"between.{ADDRESS}", f" \t{ADDRESS.upper()}"), "recipients.2"),
    body(
        "every field at fault",
        f'{{"recipient": 1, "recipients": [1, "{ADDRESS}", null], "amount": "1", "atomic": 1, "label": 1}}',
        *("recipient", "recipients", "recipients.0", "recipients.2", "amount", "atomic", "label"),
    ),
    good("an amount at its limit", _amount("1000000000")),
    good("atomic missing as an empty string", _with(amount="1", atomic='""')),
    good("label missing as an empty array", _with(amount="1", label="[]")),
    good("an international address", _recipients(f"дядя.{CANARY}@bücher.example", f"שלום{CANARY}@example.com")),
    good("an address with an emoji", _recipients(f"🐘{ADDRESS}")),
    good("a capital that only looks the same", _recipients(ADDRESS, f"с{ADDRESS[1:]}")),
    *(
        good(f"a label of {name}", _label(label))
        for name, label in {
            "255 characters beyond the basic plane": "🐘" * 255,
            "right-to-left marks": f"\u202e{CANARY}\u200f\u2066",
            "nothing to be seen": "\u200b\u2060\ufeff",
            "many marks on one letter": "Z" + "\u0351\u0334" * 100,
            "noncharacters": "\uffff\ufffe\U0010ffff",
            "control characters": "\x01\x1b[31m\x7f\x85",
            "SQL": f"{CANARY}'; DROP TABLE transactions; --",
            "HTML": f"<script>{CANARY}</script>",
            "a template": "{{7*7}} ${7*7} %s %n {0}",
            "a log line": f"{CANARY}\r\nERROR root: forged",
            "a backslash": "\\u0000 \\",
        }.items()
    ),
]
