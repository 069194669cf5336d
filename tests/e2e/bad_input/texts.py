"""Labels: too long, with characters that a database cannot keep, and strange ones that are only text."""

import json

from tests.e2e.bad_input.cases import ADDRESS, CANARY, BodyCase, body


def _label(label: str) -> str:
    return json.dumps({"recipient": ADDRESS, "amount": 1, "label": label}, ensure_ascii=False)


CASES: list[BodyCase] = [
    body("a label of 256 characters", _label("a" * 256), "label"),
    body("a label of 256 characters beyond the basic plane", _label("🐘" * 256), "label"),
    body("a label of 256 combining characters", _label("a" + "\u0301" * 255), "label"),
    body("a label of a megabyte", _label("a" * 1_000_000), "label"),
    body("a label of eight megabytes", _label("a" * 8_000_000), "label"),
    body("a label of 256 blanks", _label(" " * 256), "label"),
    body("a label with a NUL", f'{{"recipient": "{ADDRESS}", "amount": 1, "label": "{CANARY}\\u0000"}}', "label"),
    body("a label of a NUL", f'{{"recipient": "{ADDRESS}", "amount": 1, "label": "\\u0000"}}', "label"),
    body("a NUL in an address", f'{{"recipient": "{CANARY}\\u0000@example.com", "amount": 1}}', "recipient"),
    body("an escaped newline in an address", f'{{"recipient": "{CANARY}\\n@example.com", "amount": 1}}', "recipient"),
]

GOOD_CASES: list[BodyCase] = [
    body(f"a label of {name}", _label(label))
    for name, label in (
        ("255 characters", "a" * 255),
        ("255 characters beyond the basic plane", "🐘" * 255),
        ("right-to-left marks", f"\u202e{CANARY}\u200f\u2066"),
        ("nothing to be seen", "\u200b\u2060\ufeff"),
        ("a family", "👩‍👩‍👧‍👦🏳️‍🌈"),
        ("many marks on one letter", "Z" + "\u0351\u0334" * 100),
        ("noncharacters", "\uffff\ufffe\U0010ffff"),
        ("control characters", "\x01\x1b[31m\x7f\x85"),
        ("SQL", f"{CANARY}'; DROP TABLE transactions; --"),
        ("HTML", f"<script>{CANARY}</script>"),
        ("a template", "{{7*7}} ${7*7} %s %n {0}"),
        ("a log line", f"{CANARY}\r\nERROR root: forged"),
        ("a backslash", "\\u0000 \\"),
    )
]
