"""Recipients of a wrong shape, bad addresses, and addresses that are the same in another dress."""

import json
from typing import Any

from tests.e2e.bad_input.cases import ADDRESS, CANARY, MISSING, BodyCase, body, entries


def _list(*recipients: Any) -> bytes:
    """Write a body whose recipients are these, as characters and not as escapes."""
    return json.dumps({"recipients": recipients, "amount": 1, "label": CANARY}, ensure_ascii=False).encode()


def _recipient(value: Any) -> str:
    return json.dumps({"recipient": value, "amount": 1}, ensure_ascii=False)


_SHAPES: list[BodyCase] = [
    *(
        body(f"recipients {written}", f'{{"recipients": {written}, "amount": 1}}', "recipients")
        for written in (f'{{"0": "{ADDRESS}"}}', "{}", f'"{ADDRESS}"', "1", "true", "false", "0", "1e400")
    ),
    *(
        body(f"an entry {written}", f'{{"recipients": ["{ADDRESS}", {written}], "amount": 1}}', "recipients.1")
        for written in ("null", "1", "1.5", "true", "{}", "[]", f'["{ADDRESS}"]', f'{{"email": "{ADDRESS}"}}', '""')
    ),
    *(
        body(f"recipient {value!r}"[:60], _recipient(value), "recipient")
        for value in (1, True, False, 0, {}, {"email": ADDRESS}, [ADDRESS], " ", "\t\r\n", CANARY)
    ),
    body("recipient an array of nothing, which is missing", _recipient([]), "recipient", "recipients"),
    body("both", f'{{"recipient": "{ADDRESS}", "recipients": ["b{ADDRESS}"], "amount": 1}}', *MISSING[1:]),
    body("arrays in arrays", f'{{"recipients": [[["{ADDRESS}"]]], "amount": 1}}', "recipients.0"),
]

# The words of RFC 5321 and 6531, read strictly, and without DNS.
_BAD_ADDRESSES = [
    body(f"address {address!r}"[:60], _list(address), "recipients.0")
    for address in (
        *(CANARY, "@", f"{CANARY}@", "@example.com", f"{CANARY}@@example.com", f"{CANARY}@b@example.com"),
        *(f"{CANARY} x@example.com", f"{CANARY}@exam ple.com", f"{CANARY}@example.com, b@example.com"),
        *(f"{CANARY} <{ADDRESS}>", f"<{ADDRESS}>", f"mailto:{CANARY}@", f'"{CANARY} x"@example.com', f"{ADDRESS};"),
        *(f"{CANARY}..x@example.com", f".{ADDRESS}", f"{CANARY}.@example.com", f"{CANARY}@example..com"),
        *(f"{CANARY}@.example.com", f"{CANARY}@example.com.", f"{CANARY}@-example.com", f"{CANARY}@example-.com"),
        *(f"{CANARY}@localhost", f"{CANARY}@127.0.0.1", f"{CANARY}@[127.0.0.1]", f"{CANARY}@[IPv6:::1]"),
        *(f"{CANARY}@exa_mple.com", f"{CANARY}(x)@example.com", f"{CANARY}@example.com(x)", f"{CANARY}@example.c/m"),
        *(f"{CANARY}\0@example.com", f"{CANARY}@example.com\0", f"{CANARY}\r\nBcc: b@example.com", f"\b{ADDRESS}"),
        *(f"{CANARY}\u200b@example.com", f"{CANARY}@exam\u200bple.com", f"\ufeff{ADDRESS}", f"\u202e{ADDRESS}"),
        *(f"{CANARY}\u00a0x@example.com", f"{CANARY}\u2028@example.com", f"{CANARY}@\u0301example.com"),
        *(f"{CANARY}@🐘.com", f"{CANARY}@xn--.com", f"{CANARY}@xn--a.com", f"{CANARY}＠example.com"),
        *(f"{CANARY}@" + "a" * 64 + ".com", CANARY + "a" * 64 + "@example.com", f"{CANARY}@" + "a." * 130 + "com"),
    )
] + [
    body("an address of a megabyte", _list("a" * 1_000_000 + ADDRESS), "recipients.0"),
    body("a megabyte of blanks", _list(" " * 1_000_000), "recipients.0"),
    body("a megabyte of @", _list("@" * 1_000_000), "recipients.0"),
    body("an address of 250 combining characters", _list("a" + "\u0301" * 240 + "@b.com"), "recipients.0"),
]

# Two addresses are the same when their normalised lower-case forms are equal: the later place is at fault.
_THE_SAME = [
    body(name, _list(one, f"between.{ADDRESS}", other), "recipients.2")
    for name, one, other in (
        ("the same twice", ADDRESS, ADDRESS),
        ("the same in capitals", ADDRESS, ADDRESS.upper()),
        ("the same with blanks around it", ADDRESS, f" \t{ADDRESS}\r\n"),
        ("the same with a no-break space before it", ADDRESS, f"\u00a0{ADDRESS}"),
        ("the same domain in Punycode", f"{CANARY}@bücher.example", f"{CANARY}@xn--bcher-kva.example"),
        ("the same domain in Punycode capitals", f"{CANARY}@bücher.example", f"{CANARY}@XN--BCHER-KVA.example"),
        ("the same domain in capitals with an umlaut", f"{CANARY}@bücher.example", f"{CANARY}@BÜCHER.example"),
        ("the same domain decomposed", f"{CANARY}@bücher.example", f"{CANARY}@bu\u0308cher.example"),
        ("the same domain in full width", ADDRESS, f"{CANARY}@ｅｘａｍｐｌｅ．ｃｏｍ"),
        ("the same domain with an ideographic full stop", ADDRESS, f"{CANARY}@example。com"),
        ("the same local part decomposed", f"é{ADDRESS}", f"e\u0301{ADDRESS}"),
        ("the same local part in Greek capitals", f"λόγοσ{ADDRESS}", f"ΛΌΓΟΣ{ADDRESS}"),
    )
]

_A_HUNDRED = (*entries(range(100)), "recipients")
_TEN_THOUSAND = range(10_000)
_COMBINING = "a\u0301" * 110

_MANY = [
    body("150 bad entries", _list(*[CANARY] * 150), *_A_HUNDRED),
    body("101 bad entries", _list(*[CANARY] * 101), *_A_HUNDRED),
    body("100 bad entries", _list(*[CANARY] * 100), *entries(range(100))),
    body("10,001 good entries", _list(*(f"{n}.{ADDRESS}" for n in range(10_001))), "recipients"),
    body("10,001 times the same", _list(*[ADDRESS] * 10_001), "recipients", *entries(range(1, 101))),
    body("10,000 numbers", _list(*_TEN_THOUSAND), *_A_HUNDRED),
    body("eight megabytes of blanks", b'{"recipients": [' + b'"",' * 2_600_000 + b'""], "amount": 1}', *_A_HUNDRED),
    body("eight megabytes of objects", b'{"recipients": [' + b"{}," * 2_600_000 + b'{}], "amount": 1}', *_A_HUNDRED),
    body("10,000 bad domains", _list(*(f"{n}é@exä..mple.com" for n in _TEN_THOUSAND)), *_A_HUNDRED),
    body("10,000 domains of 120 labels", _list(*(f"{n}@{'ä.' * 115}com" for n in _TEN_THOUSAND)), *_A_HUNDRED),
    body("10,000 too long by a little", _list(*(f"{'a' * 40}{n}@{'ä.' * 30}com" for n in _TEN_THOUSAND)), *_A_HUNDRED),
    body(
        "10,000 times one of 30 labels",
        _list(*[f"{CANARY}@{'ä.' * 29}com"] * 10_000),
        *entries(range(1, 101)),
        "recipients",
    ),
    body("10,000 combining local parts", _list(*(f"{n}{_COMBINING}@b.com" for n in _TEN_THOUSAND)), *_A_HUNDRED),
]

CASES = [*_SHAPES, *_BAD_ADDRESSES, *_THE_SAME, *_MANY]

GOOD_CASES = [
    body("an international address", _recipient(f"дядя.{CANARY}@bücher.example")),
    body("a right-to-left address", _recipient(f"שלום{CANARY}@example.com")),
    body("an address with an emoji", _recipient(f"🐘{ADDRESS}")),
    body("neither dots nor plus are folded", _list(ADDRESS, f"c.{ADDRESS}", f"{CANARY}+a@example.com")),
    body("a capital that only looks the same", _list(ADDRESS, f"с{ADDRESS[1:]}")),
]
