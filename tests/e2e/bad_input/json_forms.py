"""Bodies that are no JSON object in UTF-8: each is a 400 on `body`."""

import gzip

from tests.e2e.bad_input.cases import ADDRESS, CANARY, GOOD, MISSING, Case, body, good

_TEXT = GOOD.decode()
_DEPTH = 100_000


_ON_BODY: dict[str, bytes | str] = {
    # Cut off.
    "nothing": "",
    "an opening brace": "{",
    "a string cut off": f'{{"recipient": "{CANARY}',
    "an escape cut off": f'{{"label": "{CANARY}\\',
    "no closing brace": _TEXT[:-1],
    # Too much.
    "a word behind": f"{_TEXT} {CANARY}",
    "a NUL behind": f"{_TEXT}\0",
    "two objects": _TEXT * 2,
    "a comma before the brace": f"{_TEXT[:-1]},}}",
    "a comma in the array": f'{{"recipients": ["{ADDRESS}",], "amount": 1}}',
    "two commas": _TEXT.replace(",", ",,", 1),
    # Not quite JSON.
    "a line comment": f"{{// {CANARY}\n{_TEXT[1:]}",
    "a block comment": f"{{/* {CANARY} */{_TEXT[1:]}",
    "single quotes": _TEXT.replace('"', "'"),
    "bare keys": f'{{recipient: "{ADDRESS}", amount: 1}}',
    "no comma": _TEXT.replace(",", " "),
    "a number as a key": f'{{1: "{CANARY}"}}',
    "a tab in a string": f'{{"label": "{CANARY}\t"}}',
    "a raw NUL in a string": f'{{"label": "{CANARY}\0"}}',
    "a raw NUL in a key": f'{{"{CANARY}\0": 1}}',
    "a no-break space between": _TEXT.replace(" ", "\u00a0"),
    "an unknown escape": f'{{"label": "{CANARY}\\x41"}}',
    "True of another language": f'{{"atomic": True, "label": "{CANARY}"}}',
    "undefined": f'{{"label": undefined, "recipient": "{ADDRESS}"}}',
    # Another format.
    "a form": f"recipient={CANARY}&amount=1",
    "XML": f"<?xml version='1.0'?><!DOCTYPE a [<!ENTITY b SYSTEM 'file:///etc/passwd'>]><a>&b;{CANARY}</a>",
    "MessagePack": b"\x82\xa9recipient\xa8" + CANARY.encode() + b"\xa6amount\x01",
    "gzip without saying so": gzip.compress(GOOD),
    # No object.
    "null": "null",
    "a number": "1",
    "a string": f'"{CANARY}"',
    "an empty array": "[]",
    "an array of objects": f"[{_TEXT}]",
    # Not UTF-8.
    "a byte order mark": b"\xef\xbb\xbf" + GOOD,
    "UTF-16 with a mark": _TEXT.encode("utf-16"),
    "UTF-32": _TEXT.encode("utf-32"),
    "Latin-1": f'{{"label": "{CANARY}é"}}'.encode("latin-1"),
    "a byte that is never UTF-8": b'{"label": "%b\xff"}' % CANARY.encode(),
    "a sequence cut off": b'{"label": "%b\xe2\x82"}' % CANARY.encode(),
    "a continuation alone": b'{"label": "%b\x80"}' % CANARY.encode(),
    "an overlong NUL": b'{"label": "%b\xc0\x80"}' % CANARY.encode(),
    "a surrogate in UTF-8": b'{"label": "%b\xed\xa0\x80"}' % CANARY.encode(),
    "beyond the last character": b'{"label": "%b\xf4\x90\x80\x80"}' % CANARY.encode(),
    "a bad byte in a key": b'{"%b\xff": 1}' % CANARY.encode(),
    "a high surrogate escaped": f'{{"label": "{CANARY}\\ud83d"}}',
    "surrogates the wrong way round": f'{{"label": "{CANARY}\\ude00\\ud83d"}}',
    "a surrogate in a key": f'{{"{CANARY}\\ud83d": 1}}',
    "a surrogate in an address": f'{{"recipient": "\\ud83d{ADDRESS}", "amount": 1}}',
    # Nested without end.
    "arrays closed again": f'{{"amount": {"[" * _DEPTH}{"]" * _DEPTH}}}',
    "objects closed again": '{"label": ' + '{"a":' * _DEPTH + "1" + "}" * _DEPTH + "}",
    "arrays in a field nobody knows": f'{{"{CANARY}": {"[" * _DEPTH}{"]" * _DEPTH}, "amount": 1}}',
}

# Good JSON, and nothing that helps: the fields are missing, whatever else is there.
_EMPTY = [
    body("an empty object", "{}", *MISSING),
    body("other fields only", f'{{"{CANARY}": 1, "Amount": 1}}', *MISSING, CANARY, "Amount"),
    body("every field null", '{"recipient": null, "recipients": null, "amount": null}', *MISSING),
    body("every field empty", '{"recipient": "", "recipients": [], "amount": ""}', *MISSING),
    body("the interface of an object", '{"__proto__": {"amount": 1}}', *MISSING, "__proto__"),
    body("fields nobody knows", f'{{"{CANARY}": [[[{{}}]]], "": null, "🐘": 1e400, {_TEXT[1:]}', CANARY, "body", "🐘"),
    body("a key twice, the last one bad", f'{{"recipient": "{ADDRESS}", "amount": 1, "amount": "1"}}', "amount"),
    body("a key twice, the last one missing", f'{{"recipient": "{ADDRESS}", "amount": 1, "amount": null}}', "amount"),
    body("a key twice, once escaped", f'{{"recipient": "{ADDRESS}", "amount": 1, "\\u0061mount": 0}}', "amount"),
]

_BOTH = ("amount", "atomic")
# Which of the two was meant is never guessed, also when both would do.
_TWICE = [
    body("a key twice, both good", f'{{"recipient": "{ADDRESS}", "amount": 1, "amount": 1}}', "amount"),
    body("a key twice, escaped, both good", f'{{"recipient": "{ADDRESS}", "amount": 1, "\\u0061mount": 1}}', "amount"),
    body(
        "keys twice within",
        f'{{"items": [{{"email": "a@x.example", "amount": 1}}, {{"email": "{ADDRESS}", "amount": 1, "amount": 2}}],'
        ' "metadata": {"run": "1", "run": "2"}, "expect": {"recipients": 2, "recipients": 2}, "label": 1}',
        *("items.1.amount", "metadata.run", "expect.recipients", "label"),
    ),
    body(
        "a key twice in what nobody knows",
        f'{{"{CANARY}": [[{{"a": {{"": 1, "": 2}}}}]], "": 1, "": 1, {_TEXT[1:]}',
        *(CANARY, f"{CANARY}.0.0.a.", "body"),
    ),
    body("a key twice, and no number", '{"recipient": "a@b.de", "amount": NaN, "atomic": 1, "atomic": true}', *_BOTH),
]

CASES: list[Case] = [
    *(body(name, content, "body") for name, content in _ON_BODY.items()),
    *_EMPTY,
    *_TWICE,
    # What JSON leaves open, read as the contract reads it: escapes are characters.
    good("an escaped key", f'{{"recipient": "{ADDRESS}", "\\u0061mount": 1}}'),
    good("blanks around it", f"\r\n\t {_TEXT} \r\n\t"),
]
