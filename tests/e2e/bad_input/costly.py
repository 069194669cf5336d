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
    "eight megabytes of objects": (lambda: _array("{}", 2_600_000), _A_HUNDRED),
    "10,000 domains of 120 labels": (lambda: _list("{n}@" + "ä." * 115 + "com"), _A_HUNDRED),
    "10,000 too long by a little": (lambda: _list("a" * 40 + "{n}@" + "ä." * 30 + "com"), _A_HUNDRED),
    "10,000 times one of 30 labels": (lambda: _list(f"{CANARY}@{'ä.' * 29}com"), _BUT_THE_FIRST),
    "10,000 combining local parts": (lambda: _list("{n}" + "a\u0301" * 110 + "@b.com"), _A_HUNDRED),
    "an amount of eight million digits": (lambda: _amount("9" * 8_000_000), ("amount",)),
    "arrays without end": (lambda: "[" * 8_000_000, ("body",)),
    "a million keys": (
        lambda: "{" + ",".join(f'"{number}":1' for number in range(700_000)) + "}",
        (*MISSING, "body", *_KEYS),
    ),
    "pairs of keys": (lambda: _x('{"a":1,"a":2}', 590_000), (*MISSING, "x", "body", *_PAIRS)),
    "a million numbers": (lambda: _x("1.2345678901234567e-300", 330_000), (*MISSING, "x")),
    "numbers as long as may be": (lambda: _x("9" * 4_000, 1_990), (*MISSING, "x")),
}
