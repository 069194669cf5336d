"""Bodies that are no JSON object in UTF-8: each is a 400 on `body`."""

import gzip

from tests.e2e.bad_input.cases import ADDRESS, CANARY, GOOD, MISSING, BodyCase, body

_TEXT = GOOD.decode()
_DEPTH = 100_000


def _on_body(forms: dict[str, bytes | str]) -> list[BodyCase]:
    return [body(name, content, "body") for name, content in forms.items()]


_CUT_OFF = _on_body(
    {
        "nothing": "",
        "blanks": " \t\r\n ",
        "an opening brace": "{",
        "a string cut off": f'{{"recipient": "{CANARY}',
        "a key without a value": f'{{"{CANARY}":',
        "an escape cut off": f'{{"label": "{CANARY}\\',
        "no closing brace": _TEXT[:-1],
    }
)

_TOO_MUCH = _on_body(
    {
        "a word behind": f"{_TEXT} {CANARY}",
        "a brace behind": f"{_TEXT}}}",
        "a NUL behind": f"{_TEXT}\0",
        "two objects": _TEXT * 2,
        "two lines of objects": f"{_TEXT}\n{_TEXT}\n",
        "a comma before the brace": f"{_TEXT[:-1]},}}",
        "a comma in the array": f'{{"recipients": ["{ADDRESS}",], "amount": 1}}',
        "two commas": _TEXT.replace(",", ",,", 1),
    }
)

_NOT_QUITE_JSON = _on_body(
    {
        "a line comment": f"{{// {CANARY}\n{_TEXT[1:]}",
        "a block comment": f"{{/* {CANARY} */{_TEXT[1:]}",
        "a hash comment": f"{{# {CANARY}\n{_TEXT[1:]}",
        "single quotes": _TEXT.replace('"', "'"),
        "bare keys": f'{{recipient: "{ADDRESS}", amount: 1}}',
        "no comma": _TEXT.replace(",", " "),
        "no colon": _TEXT.replace(":", " "),
        "an equals sign": _TEXT.replace(":", "="),
        "a number as a key": f'{{1: "{CANARY}"}}',
        "a tab in a string": f'{{"label": "{CANARY}\t"}}',
        "a newline in a string": f'{{"label": "{CANARY}\n"}}',
        "a raw NUL in a string": f'{{"label": "{CANARY}\0"}}',
        "a raw NUL in a key": f'{{"{CANARY}\0": 1}}',
        "a form feed between": _TEXT.replace(" ", "\f"),
        "a no-break space between": _TEXT.replace(" ", "\u00a0"),
        "an unknown escape": f'{{"label": "{CANARY}\\x41"}}',
        "an escape of two digits": f'{{"label": "{CANARY}\\u41"}}',
        "True of another language": f'{{"atomic": True, "label": "{CANARY}"}}',
        "None of another language": f'{{"label": None, "recipient": "{ADDRESS}"}}',
        "undefined": f'{{"label": undefined, "recipient": "{ADDRESS}"}}',
    }
)

_ANOTHER_FORMAT = _on_body(
    {
        "a form": f"recipient={CANARY}&amount=1",
        "XML": f"<?xml version='1.0'?><!DOCTYPE a [<!ENTITY b SYSTEM 'file:///etc/passwd'>]><a>&b;{CANARY}</a>",
        "JSONP": f"callback({_TEXT})",
        "MessagePack": b"\x82\xa9recipient\xa8" + CANARY.encode() + b"\xa6amount\x01",
        "gzip without saying so": gzip.compress(GOOD),
        "base64": "eyJhbW91bnQiOjF9",
    }
)

_ANOTHER_TOP = _on_body(
    {
        "null": "null",
        "true": "true",
        "a number": "1",
        "a string": f'"{CANARY}"',
        "an object in a string": '"{\\"amount\\": 1}"',
        "an empty array": "[]",
        "an array of objects": f"[{_TEXT}]",
    }
)

_ENCODINGS = _on_body(
    {
        "a byte order mark": b"\xef\xbb\xbf" + GOOD,
        "UTF-16 with a mark": _TEXT.encode("utf-16"),
        "UTF-16 little-endian": _TEXT.encode("utf-16-le"),
        "UTF-16 big-endian": _TEXT.encode("utf-16-be"),
        "UTF-32": _TEXT.encode("utf-32"),
        "Latin-1": f'{{"label": "{CANARY}é"}}'.encode("latin-1"),
        "a byte that is never UTF-8": b'{"label": "%b\xff"}' % CANARY.encode(),
        "a sequence cut off": b'{"label": "%b\xe2\x82"}' % CANARY.encode(),
        "a continuation alone": b'{"label": "%b\x80"}' % CANARY.encode(),
        "an overlong slash": b'{"label": "%b\xc0\xaf"}' % CANARY.encode(),
        "an overlong NUL": b'{"label": "%b\xc0\x80"}' % CANARY.encode(),
        "a surrogate in UTF-8": b'{"label": "%b\xed\xa0\x80"}' % CANARY.encode(),
        "a pair of surrogates in UTF-8": b'{"label": "%b\xed\xa0\xbd\xed\xb8\x80"}' % CANARY.encode(),
        "beyond the last character": b'{"label": "%b\xf4\x90\x80\x80"}' % CANARY.encode(),
        "a bad byte in a key": b'{"%b\xff": 1}' % CANARY.encode(),
        "a high surrogate escaped": f'{{"label": "{CANARY}\\ud83d"}}',
        "a low surrogate escaped": f'{{"label": "{CANARY}\\ude00"}}',
        "surrogates the wrong way round": f'{{"label": "{CANARY}\\ude00\\ud83d"}}',
        "a surrogate in a key": f'{{"{CANARY}\\ud83d": 1}}',
        "a surrogate in an address": f'{{"recipient": "\\ud83d{ADDRESS}", "amount": 1}}',
    }
)

_WITHOUT_END = _on_body(
    {
        "arrays without end": "[" * _DEPTH,
        "objects without end": '{"a":' * _DEPTH,
        "arrays closed again": f'{{"amount": {"[" * _DEPTH}{"]" * _DEPTH}}}',
        "objects closed again": '{"label": ' + '{"a":' * _DEPTH + "1" + "}" * _DEPTH + "}",
        "arrays in a field nobody knows": f'{{"{CANARY}": {"[" * _DEPTH}{"]" * _DEPTH}, "amount": 1}}',
        "eight megabytes of brackets": "[" * 8_000_000,
    }
)

# Good JSON, and nothing that helps: the fields are missing, whatever else is there.
_EMPTY = [
    body("an empty object", "{}", *MISSING),
    body(
        "other fields only",
        f'{{"{CANARY}": 1, "Amount": 1, "recipient ": "{ADDRESS}"}}',
        *MISSING,
        CANARY,
        "Amount",
        "recipient ",
    ),
    body("every field null", '{"recipient": null, "recipients": null, "amount": null}', *MISSING),
    body("every field empty", '{"recipient": "", "recipients": [], "amount": ""}', *MISSING),
    body(
        "the interface of an object",
        '{"__proto__": {"amount": 1}, "__class__": "x"}',
        *MISSING,
        "__proto__",
        "__class__",
    ),
    body("fields nobody knows", f'{{"{CANARY}": [[[{{}}]]], "": null, "🐘": 1e400, {_TEXT[1:]}', CANARY, "body", "🐘"),
    body("a key twice, the last one bad", f'{{"recipient": "{ADDRESS}", "amount": 1, "amount": "1"}}', "amount"),
    body("a key twice, the last one missing", f'{{"recipient": "{ADDRESS}", "amount": 1, "amount": null}}', "amount"),
    body("a key twice, once escaped", f'{{"recipient": "{ADDRESS}", "amount": 1, "\\u0061mount": 0}}', "amount"),
]

# Which of the two was meant is never guessed, also when both would do.
_TWICE = [
    body("a key twice, both good", f'{{"recipient": "{ADDRESS}", "amount": 1, "amount": 1}}', "amount"),
    body(
        "a key twice, once escaped, both good",
        f'{{"recipient": "{ADDRESS}", "amount": 1, "\\u0061mount": 1}}',
        "amount",
    ),
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
    body(
        "a key twice, and no number",
        f'{{"recipient": "{ADDRESS}", "amount": NaN, "atomic": 1, "atomic": true}}',
        "amount",
        "atomic",
    ),
]

_HUNDRED = tuple(str(number) for number in range(100))
_PAIRS = tuple(f"x.{number}.a" for number in range(100))

# Each is near the largest body there may be, of what is dear to take apart.
_HUGE = [
    body(
        "a million keys",
        "{" + ",".join(f'"{number}":1' for number in range(700_000)) + "}",
        *MISSING,
        "body",
        *_HUNDRED,
    ),
    body("a million times one key", "{" + ",".join(['"a":1'] * 1_300_000) + "}", *MISSING, "a"),
    body("pairs of keys", '{"x": [' + ",".join(['{"a":1,"a":2}'] * 590_000) + "]}", *MISSING, "x", "body", *_PAIRS),
    body("a million numbers", '{"x": [' + ",".join(["1.2345678901234567e-300"] * 330_000) + "]}", *MISSING, "x"),
    body("numbers as long as may be", '{"x": [' + ",".join(["9" * 4_000] * 1_990) + "]}", *MISSING, "x"),
    body("a million escapes", '{"x": "' + "\\u00e9" * 1_300_000 + '"}', *MISSING, "x"),
]

CASES = [
    *_CUT_OFF,
    *_TOO_MUCH,
    *_NOT_QUITE_JSON,
    *_ANOTHER_FORMAT,
    *_ANOTHER_TOP,
    *_ENCODINGS,
    *_WITHOUT_END,
    *_EMPTY,
    *_TWICE,
    *_HUGE,
]

# What JSON leaves open, read as the contract reads it: escapes are characters.
GOOD_CASES = [
    body("an escaped key", f'{{"recipient": "{ADDRESS}", "\\u0061mount": 1}}'),
    body("blanks around it", f"\r\n\t {_TEXT} \r\n\t"),
]
