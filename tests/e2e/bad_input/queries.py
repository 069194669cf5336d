"""Queries of the lists: each parameter with what it must not be, alone, twice, and all at once."""

from urllib.parse import quote

from tests.e2e.bad_input.cases import ADDRESS, CANARY, ORGANIZATION, Case, get, raw

_BATCHES, _TRANSACTIONS, _EVENTS, _STATEMENT = b"/v1/batches", b"/v1/transactions", b"/v1/events", b"/v1/statement"
_LONG = "9" * 400
_OFFSETS = "%2B14:15 -12:15 %2B23:59 -99:00 %2B01:01 -05:60"

# Of each parameter the values, between blanks, that are a fault; one that is empty is a fault of most of them.
_OF_LISTS = {
    "limit": f"0 -1 1.0 1e2 abc 1001 {_LONG} 0x10 %D9%A3 1%00 1%0a NaN",
    "cursor": f"{CANARY} {'A' * 3_999} B{'A' * 37} %00 %ff null eyJpZCI6MX0= ..%2f.. %27%20OR%201=1",
    "email": f"{CANARY} {CANARY}%00@example.com {CANARY}@@example.com %ff {'a' * 255}@x.example",
    "batch": f"0 -1 1.0 {CANARY} 9223372036854775808 {_LONG} 1;DROP %D9%A3",
    "created_from": f"{CANARY} 2026-01-31 2026-01-31T09:30:00 2026-02-30T00:00:00Z 0 infinity now",
    "created_to": "0001-01-01T00:00:00%2B14:00 9999-12-31T23:59:59-12:00 2026-01-31T09:30:00+02:00 %00 %ff "
    + " ".join(f"2026-01-31T09:30:00{offset}" for offset in _OFFSETS.split()),
    "debited": f"1 0 T TRUE! yes {CANARY} %00 true%00 null",
    "credited": "1 Falsch on",
    "allocated": "f no []",
}
_FAULTS = {
    _BATCHES: _OF_LISTS | {"label": f"{CANARY}%ff %ED%A0%BD %C0%AF"},
    _TRANSACTIONS: _OF_LISTS | {"user": f"0 -1 1.0 {CANARY} 9223372036854775808 %D9%A3"},
    _EVENTS: {
        "after": f"-1 1.0 abc 9223372036854775808 9223372036854775807 {_LONG} %D9%A3 1%00",
        "types": f"{CANARY} batch batch.*, , batch.issued;x [b]* %00 {'*' * 1_001} BATCH.* ping,ping %ff",
        "limit": "0 -1 1001 abc",
        "wait": f"-1 26 0.5 abc {_LONG}",
    },
    b"/v1/requests": {
        "status": "600 4x issued",
        "api_key": "0",
        "batch": "x",
        "request_id": "a%20b %ff",
        "cursor": f"{'A' * 38} %00",
    },
    _STATEMENT: {"from": f"{CANARY} 2026-02-30 2026-1-1 20260101 2026-01-01T00:00:00Z %00 %ff {_LONG}"},
}
_OTHERS = [
    *((_TRANSACTIONS, "reference", f"{CANARY}%ff"), (_BATCHES, "idempotency_key", "%ff"), (_BATCHES, "status", "%ff")),
    *((_EVENTS, "cursor", "1"), (b"/v1/requests", "email", "a@example.com")),
]
_RIGHT = [
    *("", "&&&", "limit=1", "limit=0001", f"batch=9223372036854775807&email={ADDRESS}", f"email={quote(ADDRESS)}"),
    *(f"email=%20{ADDRESS}%20", "email=%EF%BF%BD%40example.com", "credited=TRUE&debited=False"),
    *(
        "created_from=2026-01-31T09:30:00%2B14:00",
        "created_to=2026-01-31T09:30-12:00&created_from=2026-01-31T09:30-11:45",
    ),
    *("created_from=0001-01-01T00:00:00Z", "created_to=9999-12-31T23:59:59.999999Z"),
]
_TURNED_ROUND = "created_from=2030-01-01T00:00:00Z&created_to=2020-01-01T00:00:00Z"
_UNKNOWN = [
    *((CANARY, CANARY), ("%00", "\0"), ("%ff", "\ufffd"), ("", "query"), ("Limit", "Limit")),
    *(("limit%5B%5D", "limit[]"), ("organization_id", "organization_id")),
]


def _query(path: bytes, query: str, status: int, *fields: str) -> Case:
    name = f"{path.decode()}?{query if len(query) < 99 else query[:60] + str(len(query))}"
    beside = b"&to=2026-01-31" if path == _STATEMENT else b""
    return raw(name, get(b"%b?%b%b" % (path, query.encode(), beside)), status, *fields)


CASES: list[Case] = [
    *(
        _query(path, f"{name}={value}", 400, name)
        for path, faults in _FAULTS.items()
        for name, values in faults.items()
        for value in ["", *values.split()]
    ),
    *(_query(path, f"{name}={value}", 400, name) for path, name, value in _OTHERS),
    *(_query(_TRANSACTIONS, f"{name}=1&{name}=1", 400, name) for name in _OF_LISTS),
    _query(_BATCHES, "&".join(f"{name}=%3F" for name in _OF_LISTS), 400, *_OF_LISTS),
    *(
        _query(path, f"{query}=1", 400, name)
        for path in (_BATCHES, _TRANSACTIONS, ORGANIZATION, b"/v1/batches/1")
        for query, name in _UNKNOWN
    ),
    *(_query(path, query, 200) for path in (_BATCHES, _TRANSACTIONS) for query in _RIGHT),
    *(_query(path, _TURNED_ROUND, 400, "created_from", "created_to") for path in (_BATCHES, _TRANSACTIONS)),
]
