"""Bodies near the largest there may be, of what is dear to take apart: each is made when it is sent."""

import json
from collections.abc import Callable

from tests.e2e.bad_input.cases import ADDRESS, CANARY, MISSING


def _list(entry: str, count: int = 10_000) -> str:
    """Write a body of so many recipients; `{n}` in an entry is its place."""
    entries = [entry.replace("{n}", str(n)) for n in range(count)]
    return json.dumps({"recipients": entries, "amount": 1}, ensure_ascii=False)


def _amount(written: str) -> str:
    return f'{{"recipient": "{ADDRESS}", "amount": {written}}}'


def _label(label: str) -> str:
    return f'{{"recipient": "{ADDRESS}", "amount": 1, "label": "{label}"}}'


def _array(value: str, count: int) -> str:
    """Write a body of so many recipients that are this value."""
    return '{"recipients": [' + ",".join([value] * count) + '], "amount": 1}'


def _x(value: str, count: int) -> str:
    """Write an unknown field that holds a value so often."""
    return '{"x": [' + ",".join([value] * count) + "]}"


_LISTED = tuple(f"recipients.{place}" for place in range(100))
_A_HUNDRED = (*_LISTED, "recipients")
_BUT_THE_FIRST = (*(f"recipients.{place}" for place in range(1, 101)), "recipients")
_PAIRS = tuple(f"x.{place}.a" for place in range(100))
_KEYS = tuple(map(str, range(100)))

# What is sent, and the fields of its 400.
COSTLY: dict[str, tuple[Callable[[], str], tuple[str, ...]]] = {
    "10,001 good entries": (lambda: _list("{n}." + ADDRESS, 10_001), ("recipients",)),
    "10,001 times the same": (lambda: _list(ADDRESS, 10_001), _BUT_THE_FIRST),
    "eight megabytes of blanks": (lambda: _array('""', 2_600_000), _A_HUNDRED),
    "eight megabytes of objects": (lambda: _array("{}", 2_600_000), _A_HUNDRED),
    "10,000 bad domains": (lambda: _list("{n}é@exä..mple.com"), _A_HUNDRED),
    "10,000 domains of 120 labels": (lambda: _list("{n}@" + "ä." * 115 + "com"), _A_HUNDRED),
    "10,000 too long by a little": (lambda: _list("a" * 40 + "{n}@" + "ä." * 30 + "com"), _A_HUNDRED),
    "10,000 times one of 30 labels": (lambda: _list(f"{CANARY}@{'ä.' * 29}com"), _BUT_THE_FIRST),
    "10,000 combining local parts": (lambda: _list("{n}" + "a\u0301" * 110 + "@b.com"), _A_HUNDRED),
    "an address of a megabyte": (lambda: _list("a" * 1_000_000 + ADDRESS, 1), ("recipients.0",)),
    "a megabyte of @": (lambda: _list("@" * 1_000_000, 1), ("recipients.0",)),
    "an amount of eight million digits": (lambda: _amount("9" * 8_000_000), ("amount",)),
    "a label of eight megabytes": (lambda: _label("a" * 8_000_000), ("label",)),
    "arrays without end": (lambda: "[" * 8_000_000, ("body",)),
    "objects without end": (lambda: '{"a":' * 1_000_000, ("body",)),
    "a million keys": (
        lambda: "{" + ",".join(f'"{number}":1' for number in range(700_000)) + "}",
        (*MISSING, "body", *_KEYS),
    ),
    "a million times one key": (lambda: "{" + ",".join(['"a":1'] * 1_300_000) + "}", (*MISSING, "a")),
    "pairs of keys": (lambda: _x('{"a":1,"a":2}', 590_000), (*MISSING, "x", "body", *_PAIRS)),
    "a million numbers": (lambda: _x("1.2345678901234567e-300", 330_000), (*MISSING, "x")),
    "numbers as long as may be": (lambda: _x("9" * 4_000, 1_990), (*MISSING, "x")),
    "a million escapes": (lambda: '{"x": "' + "\\u00e9" * 1_300_000 + '"}', (*MISSING, "x")),
}
