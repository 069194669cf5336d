"""Queries of the lists: each parameter with what it must not be, alone, twice, and all at once."""

from urllib.parse import quote

from tests.e2e.bad_input.cases import ADDRESS, CANARY, ORGANIZATION, RawCase, get, raw

BATCHES, TRANSACTIONS = b"/v1/batches", b"/v1/transactions"

_BAD = {
    "limit": ("", "0", "-1", "1.0", "1e2", "abc", "1001", "9" * 400, "0x10", "%D9%A3", "1%00", "1%0a", "NaN"),
    "cursor": (
        "",
        CANARY,
        "A" * 3_999,
        "B" + "A" * 37,
        "%00",
        "%ff",
        "null",
        "eyJpZCI6MX0=",
        "..%2f..",
        "%27%20OR%201=1",
    ),
    "email": ("", CANARY, f"{CANARY}%00@example.com", f"{CANARY}@@example.com", "%ff", "a" * 255 + "@x.example"),
    "batch": ("", "0", "-1", "1.0", CANARY, "9223372036854775808", "9" * 400, "1;DROP", "%D9%A3"),
    "created_from": ("", CANARY, "2026-01-31", "2026-01-31T09:30:00", "2026-02-30T00:00:00Z", "0", "infinity", "now"),
    "created_to": (
        *("", "0001-01-01T00:00:00%2B14:00", "9999-12-31T23:59:59-12:00", "2026-01-31T09:30:00+02:00", "%00", "%ff"),
        *(
            f"2026-01-31T09:30:00{offset}"
            for offset in ("%2B14:15", "-12:15", "%2B23:59", "-99:00", "%2B01:01", "-05:60")
        ),
    ),
    "debited": ("", "1", "0", "T", "TRUE!", "yes", CANARY, "%00", "true%00", "null"),
    "credited": ("", "1", "Falsch", "on"),
    "allocated": ("", "f", "no", "[]"),
}

_BAD_OF_TRANSACTIONS = {
    "user": ("", "0", "-1", "1.0", CANARY, "9223372036854775808", "%D9%A3"),
    "reference": (f"{CANARY}%ff", f"{CANARY}%C3"),
}
_BAD_OF_BATCHES = {
    "label": ("", f"{CANARY}%ff", "%ED%A0%BD", "%C0%AF"),
    "idempotency_key": ("%ff",),
    "status": ("%ff",),
}

_FAULTS = [
    raw(f"{path.decode()} {name}={value}"[:61], get(b"%b?%b=%b" % (path, name.encode(), value.encode())), 400, name)
    for path in (BATCHES, TRANSACTIONS)
    for name, values in _BAD.items()
    for value in values
]

_BAD_OF_EVENTS = {
    "after": ("", "-1", "1.0", "abc", "9223372036854775808", "9223372036854775807", "9" * 400, "%D9%A3", "1%00"),
    "types": (
        "",
        CANARY,
        "batch",
        "batch.*,",
        ",",
        "batch.issued;x",
        "[b]*",
        "%00",
        "*" * 1_001,
        "BATCH.*",
        "ping,ping",
        "%ff",
    ),
    "limit": ("", "0", "-1", "1001", "abc"),
    "wait": ("", "-1", "26", "0.5", "abc", "9" * 400),
    "cursor": ("1",),
}

_FAULTS_OF_EVENTS = [
    raw(f"events {name}={value}"[:61], get(b"/v1/events?%b=%b" % (name.encode(), value.encode())), 400, name)
    for name, values in _BAD_OF_EVENTS.items()
    for value in values
]

_FAULTS_OF_STATEMENT = [
    raw(f"statement from={value}"[:61], get(b"/v1/statement?from=%b&to=2026-01-31" % value.encode()), 400, "from")
    for value in ("", CANARY, "2026-02-30", "2026-1-1", "20260101", "2026-01-01T00:00:00Z", "%00", "%ff", "9" * 400)
]

_FAULTS_OF_TRANSACTIONS = [
    raw(f"transactions {name}={value}", get(b"%b?%b=%b" % (TRANSACTIONS, name.encode(), value.encode())), 400, name)
    for name, values in _BAD_OF_TRANSACTIONS.items()
    for value in values
]

_FAULTS_OF_BATCHES = [
    raw(f"batches {name}={value}", get(b"%b?%b=%b" % (BATCHES, name.encode(), value.encode())), 400, name)
    for name, values in _BAD_OF_BATCHES.items()
    for value in values
]

_TWICE = [
    raw(f"twice {name}", get(b"%b?%b=1&%b=1" % (TRANSACTIONS, name.encode(), name.encode())), 400, name)
    for name in _BAD
]

_ALL = b"&".join(name.encode() + b"=%3F" for name in _BAD)

_UNKNOWN = [
    raw(f"unknown: {path.decode()} {query}", get(b"%b?%b=1" % (path, query.encode())), 400, name)
    for path in (BATCHES, TRANSACTIONS, ORGANIZATION, b"/v1/batches/1")
    for query, name in (
        *((CANARY, CANARY), ("%00", "\0"), ("%ff", "\ufffd"), ("", "query"), ("Limit", "Limit")),
        *(("limit%5B%5D", "limit[]"), ("organization_id", "organization_id")),
    )
]

_STRANGE_AND_RIGHT = [
    raw(f"right: {path.decode()} {query}"[:99], get(b"%b?%b" % (path, query.encode())), 200)
    for path in (BATCHES, TRANSACTIONS)
    for query in (
        *(
            "",
            "&&&",
        ),
        *(
            "limit=1",
            "limit=0001",
            f"batch=9223372036854775807&email={ADDRESS}",
            f"email={quote(ADDRESS)}",
            f"email=%20{ADDRESS}%20",
        ),
        *(
            "created_from=2026-01-31T09:30:00%2B14:00",
            "created_to=2026-01-31T09:30-12:00&created_from=2026-01-31T09:30-11:45",
        ),
        *("created_from=0001-01-01T00:00:00Z", "created_to=9999-12-31T23:59:59.999999Z", "credited=true&debited=false"),
        *("created_from=2030-01-01T00:00:00Z&created_to=2020-01-01T00:00:00Z", "email=%EF%BF%BD%40example.com"),
    )
]

CASES: list[RawCase] = [
    *_FAULTS,
    *_FAULTS_OF_TRANSACTIONS,
    *_FAULTS_OF_BATCHES,
    *_FAULTS_OF_EVENTS,
    *_FAULTS_OF_STATEMENT,
    *_TWICE,
    raw("everything at once", get(b"%b?%b" % (BATCHES, _ALL)), 400, *_BAD),
    *_UNKNOWN,
    *_STRANGE_AND_RIGHT,
]
