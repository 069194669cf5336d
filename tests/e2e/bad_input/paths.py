"""Paths, queries and methods that lead nowhere, and batches that cannot be."""

from tests.e2e.bad_input.cases import CANARY, ORGANIZATION, SEND, VERIFY, RawCase, call, get, raw

_CANARY = CANARY.encode()

_NOWHERE = [
    raw(f"path: {target.decode('latin-1')}"[:60], get(target), 404, "path")
    for target in (
        *(
            b"/",
            b"//",
            b"/v1",
            b"/v1/",
            b"/v2/organization",
            b"/nowhere",
            b"/%b@example.com" % _CANARY,
            b"/.env",
            b"/admin",
            b"/v1/points",
        ),
        *(b"/v1//organization", b"/v1/organization/", b"/v1/organization//"),
        *(b"/v1/./organization", b"/v1/x/../organization", b"/../v1/organization", b"/v1/%2e%2e/v1/organization"),
        *(b"/../../../../etc/passwd", b"/%2e%2e/%2e%2e/etc/passwd", b"/..%2f..%2fetc%2fpasswd", b"/..%5c..%5cwin.ini"),
        *(b"/v1/organization%00", b"/v1/organization%00.json", b"/%00", b"/v1/organization%20", b"/v1/organization%0a"),
        *(
            b"/v1/organization%0d%0aX-Evil:%201",
            b"/v1/organization;x=1",
            b"/v1/organization.json",
            b"/v1/organization%2f",
        ),
        *(b"/V1/organization", b"/v1/Organization", b"/v1/organ%69zation%", b"/v1/%zz", b"/v1/%", b"/v1/%ff%fe"),
        *(b"/v1/%c0%af", b"/v1/%ed%a0%80", b"/v1/%F0%9F%90%98", b"/v1/%u0041", b"/v1/organization%3flimit=1"),
        *(b"/" + b"a" * 4_000, b"/" + b"a/" * 2_000, b"/" + b"%41" * 1_300),
    )
]

# Slashes before the path are one slash to the gateway; nothing is redirected, so nothing is lost either way.
_SLASHES = [raw("path: //v1/organization", get(b"//v1/organization"), (200, 404), "path")]

_NO_REQUEST = [
    raw(f"target: {target!r}"[:60], get(target), 400, "request")
    for target in (b"/%b\xc3\xa9" % _CANARY, b"/\xff", b"/a b", b"/a\tb", b"/\x7f", b"/\x00")
] + [
    raw("target: 5,000 characters", get(b"/" + b"a" * 5_000), 400, "request"),
    raw("target: a query of 64 KB", get(ORGANIZATION + b"?" + b"a" * 65_536), 400, "request"),
    raw("target: a port that is none", get(b"http://x:port/v1/organization"), (200, 400), "request"),
]

_NUMBERED = {"batch": b"/v1/batches/", "transaction": b"/v1/transactions/", "webhook": b"/v1/webhooks/"}

# A number that no batch of the caller's has is a batch that is not there, however long the number is.
_NO_BATCH = [
    raw(f"{noun}: {number}"[:60], get(path + number.encode()), 404, noun)
    for noun, path in _NUMBERED.items()
    for number in (
        *("0", "00000", "2147483648", "4294967296", "9223372036854775807", "9223372036854775808"),
        *("18446744073709551616", "9" * 40, "1" + "0" * 4_000, "%30", "%39" * 30),
    )
]

_NOT_EVEN_A_BATCH = [
    raw(f"{noun}: {number}"[:60], get(path + number.encode()), 404, "path")
    for noun, path in _NUMBERED.items()
    for number in (
        *(
            "-1",
            "+1",
            "1.0",
            "1e3",
            "0x1",
            "1_000",
            "1,2",
            "%201",
            "1%20",
            "1%0a",
            "%00",
            "1%00",
            "NaN",
            "null",
            "nowhere",
        ),
        *("1/", "1//", "1/transactions", "1%2f2", "1;x=1", "%27%20OR%201=1", "%7b%7d", "%5b1%5d", "..", "%2e%2e"),
    )
]

# Digits that Python counts as digits.
_DIGITS_OF_OTHERS = [
    raw(f"batch: {name}", get(b"/v1/batches/" + number), 404, "path")
    for name, number in {
        "Arabic digits": b"%D9%A3%D9%A3%D9%A3%D9%A3%D9%A3%D9%A3%D9%A3%D9%A3%D9%A3",
        "full-width digits": b"%EF%BC%99" * 9,
    }.items()
]

_ACTIONS = (b"cancel", b"ping", b"rotate", b"disable", b"enable", b"skip", b"reset")
_ALL_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW")
_METHODS_OF = {
    VERIFY: "POST",
    SEND: "POST",
    ORGANIZATION: "GET",
    b"/v1/batches": "GET",
    b"/v1/batches/1": "GET PATCH",
    b"/v1/batches/1/cancel": "POST",
    b"/v1/transactions": "GET",
    b"/v1/transactions/1": "GET",
    b"/v1/transactions/1/extend": "POST",
    b"/v1/points/reverse": "POST",
    b"/v1/points/reverse/verify": "POST",
    b"/v1/reversals": "GET",
    b"/v1/reversals/1": "GET",
    b"/v1/events": "GET",
    b"/v1/webhooks": "GET POST",
    b"/v1/webhooks/1": "GET PATCH DELETE",
    b"/v1/webhooks/1/ping": "POST",
    b"/v1/webhooks/1/rotate": "POST",
    b"/v1/webhooks/1/disable": "POST",
    b"/v1/webhooks/1/enable": "POST",
    b"/v1/webhooks/1/replay": "POST",
    b"/v1/webhooks/1/skip": "POST",
    b"/v1/webhooks/1/deliveries": "GET",
    b"/v1/statement": "GET",
    b"/v1/sandbox/reset": "POST",
    b"/healthz": "GET",
    b"/readyz": "GET",
    b"/openapi.json": "GET",
    b"/docs": "GET",
}

_METHODS = [
    raw(f"method: {method} {target.decode()}", call(method, target, body=b"{}"), 405, "method")
    for target, right in _METHODS_OF.items()
    for method in _ALL_METHODS
    if method not in right.split()
]

# Nobody asked for a query: one without a parameter changes nothing, and each parameter is a fault.
_NO_QUERIES = [
    raw(f"query: {query.decode()}", get(ORGANIZATION + b"?" + query), 200) for query in (b"", b"&&&", b"#fragment")
]
_QUERIES = [
    raw(f"query: {query.decode()}"[:60], get(ORGANIZATION + b"?" + query), 400, name)
    for query, name in (
        *((b"?", "?"), (b"=", "query"), (b"%b=1" % _CANARY, CANARY), (b"limit=abc", "limit"), (b"%00", "\0")),
        *((b"%zz", "%zz"), (b"%", "%"), (b"%ff=%fe", "\ufffd"), (b"a=%0d%0aX-Evil:1", "a"), (b"id=1&id=2", "id")),
        *((b"a[]=1", "a[]"), (b"%3Cscript%3E", "<script>"), (b"sandbox=true", "sandbox")),
        *((b"&".join([b"a=1"] * 900), "a"), (b"a" * 4_000, "a" * 64 + "…")),
    )
]

# They take no field: one that is sent is a fault, and not ignored.
_WITHOUT_FIELDS = [
    (method, target)
    for target, methods in _METHODS_OF.items()
    for method in methods.split()
    if method == "DELETE" or (method == "POST" and target.split(b"/")[-1] in _ACTIONS)
]
_FIELDS = [
    raw(f"fields: {method} {target.decode()} {name}", call(method, target, *lines, **request), status, field)
    for method, target in _WITHOUT_FIELDS
    for name, lines, request, status, field in (
        ("a field", (), {"body": b'{"%b": 1}' % _CANARY}, 400, CANARY),
        ("an array", (), {"body": b"[]"}, 400, "body"),
        ("no JSON", (), {"body": b"{"}, 400, "body"),
        ("a form", (), {"body": b"a=1", "content_type": b"application/x-www-form-urlencoded"}, 415, "content_type"),
        (
            "a field in a chunk",
            (b"Transfer-Encoding: chunked",),
            {"body": b'7\r\n{"a":1}\r\n0\r\n\r\n', "framed": False},
            400,
            "a",
        ),
    )
]
_NO_FIELDS = [
    raw(f"no fields: {name}", call("POST", b"/v1/batches/999999999/cancel", *lines, **request), 404, "batch")
    for name, lines, request in (
        ("an empty object", (), {"body": b"{}"}),
        ("no body", (), {"framed": False}),
        ("no body and no type", (), {"content_type": None}),
        ("an empty form", (), {"content_type": b"application/x-www-form-urlencoded"}),
        ("no chunk", (b"Transfer-Encoding: chunked",), {"body": b"0\r\n\r\n", "framed": False, "content_type": None}),
    )
]

CASES: list[RawCase] = [
    *_NOWHERE,
    *_SLASHES,
    *_NO_REQUEST,
    *_NO_BATCH,
    *_NOT_EVEN_A_BATCH,
    *_DIGITS_OF_OTHERS,
    *_METHODS,
    *_NO_QUERIES,
    *_QUERIES,
    *_FIELDS,
    *_NO_FIELDS,
]
