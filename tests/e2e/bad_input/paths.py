"""Paths, queries and methods that lead nowhere, and batches that cannot be."""

from typing import Any

from tests.e2e.bad_input.cases import CANARY, ORGANIZATION, SEND, VERIFY, Case, call, get, raw

_CANARY = CANARY.encode()

_NOWHERE = (
    """
    / // /v1 /v1/ /v2/organization /nowhere /<CANARY>@example.com /.env /admin /v1/points
    /v1//organization /v1/organization/ /v1/organization// /v1/./organization /v1/x/../organization /../v1/organization
    /v1/%2e%2e/v1/organization /../../../../etc/passwd /%2e%2e/%2e%2e/etc/passwd /..%2f..%2fetc%2fpasswd
    /..%5c..%5cwin.ini /v1/organization%00 /v1/organization%00.json /%00 /v1/organization%20 /v1/organization%0a
    /v1/organization%0d%0aX-Evil:%201 /v1/organization;x=1 /v1/organization.json /v1/organization%2f /V1/organization
    /v1/Organization /v1/organ%69zation% /v1/%zz /v1/% /v1/%ff%fe /v1/%c0%af /v1/%ed%a0%80 /v1/%F0%9F%90%98 /v1/%u0041
    /v1/organization%3flimit=1
""".replace("<CANARY>", CANARY)
    .encode()
    .split()
)
_NOWHERE += [b"/" + b"a" * 4_000, b"/" + b"a/" * 2_000, b"/" + b"%41" * 1_300]

_NO_TARGETS = [b"/%b\xc3\xa9" % _CANARY, b"/\xff", b"/a b", b"/a\tb", b"/\x7f", b"/\x00", b"/" + b"a" * 5_000]
_NO_TARGETS += [ORGANIZATION + b"?" + b"a" * 65_536]

_NUMBERED = {"batch": b"/v1/batches/", "transaction": b"/v1/transactions/", "webhook": b"/v1/webhooks/"}
# A number that no batch of the caller's has is a batch that is not there, however long the number is.
_TOO_LARGE = b"0 00000 2147483648 4294967296 9223372036854775807 9223372036854775808 18446744073709551616 %30".split()
_TOO_LARGE += [b"9" * 40, b"1" + b"0" * 4_000, b"%39" * 30]
# The last two are digits for Python.
_NO_NUMBERS = b"""
    -1 +1 1.0 1e3 0x1 1_000 1,2 %201 1%20 1%0a %00 1%00 NaN null nowhere 1/ 1// 1/transactions 1%2f2 1;x=1
    %27%20OR%201=1 %7b%7d %5b1%5d .. %2e%2e %D9%A3%D9%A3%D9%A3 %EF%BC%99%EF%BC%99
""".split()

_ALL_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW")
_METHODS_OF = {
    VERIFY: "POST",
    SEND: "POST",
    ORGANIZATION: "GET",
    b"/v1/batches/1": "GET PATCH",
    b"/v1/batches/1/cancel": "POST",
    b"/v1/transactions/1/extend": "POST",
    b"/v1/webhooks": "GET POST",
    b"/v1/webhooks/1": "GET PATCH DELETE",
    b"/healthz": "GET",
    b"/openapi.json": "GET",
    b"/docs": "GET",
}

# Nobody asked for a query: one without a parameter changes nothing, and each parameter is a fault.
_QUERIES = [
    *((b"?", "?"), (b"=", "query"), (b"%b=1" % _CANARY, CANARY), (b"limit=abc", "limit"), (b"%00", "\0")),
    *((b"%zz", "%zz"), (b"%", "%"), (b"%ff=%fe", "\ufffd"), (b"a=%0d%0aX-Evil:1", "a"), (b"id=1&id=2", "id")),
    *((b"a[]=1", "a[]"), (b"%3Cscript%3E", "<script>"), (b"sandbox=true", "sandbox")),
    *((b"&".join([b"a=1"] * 900), "a"), (b"a" * 4_000, "a" * 64 + "…")),
]

# They take no field: one that is sent is a fault, and not ignored.
_WITHOUT_FIELDS = [("DELETE", b"/v1/webhooks/1"), ("POST", b"/v1/batches/1/cancel"), ("POST", b"/v1/sandbox/reset")]
_WITHOUT_FIELDS += [
    ("POST", b"/v1/webhooks/1/" + action) for action in (b"ping", b"rotate", b"disable", b"enable", b"skip")
]
_FORM, _CHUNKED = b"application/x-www-form-urlencoded", b"Transfer-Encoding: chunked"


def _fields(method: str, target: bytes) -> list[Case]:
    named = f"{method} {target.decode()} with"
    return [
        raw(f"{named} a field", call(method, target, body=b'{"%b": 1}' % _CANARY), 400, CANARY),
        raw(f"{named} an array", call(method, target, body=b"[]"), 400, "body"),
        raw(f"{named} no JSON", call(method, target, body=b"{"), 400, "body"),
        raw(f"{named} a form", call(method, target, body=b"a=1", content_type=_FORM), 415, "content_type"),
        raw(
            f"{named} a chunk",
            call(method, target, _CHUNKED, body=b'7\r\n{"a":1}\r\n0\r\n\r\n', framed=False),
            400,
            "a",
        ),
    ]


def _no_field(name: str, *lines: bytes, **request: Any) -> Case:
    written = call("POST", b"/v1/batches/999999999/cancel", *lines, **request)
    return raw(f"no field: {name}", written, 404, "batch")


CASES: list[Case] = [
    *(raw(f"path: {target[:60]!r}", get(target), 404, "path") for target in _NOWHERE),
    # Slashes before the path are one slash to the gateway; nothing is redirected, so nothing is lost either way.
    raw("path: //v1/organization", get(b"//v1/organization"), (200, 404), "path"),
    *(raw(f"target: {target[:60]!r}", get(target), 400, "request") for target in _NO_TARGETS),
    raw("target: a port that is none", get(b"http://x:port/v1/organization"), (200, 400), "request"),
    *(
        raw(f"{noun}: {number[:30]!r}", get(path + number), 404, field or noun)
        for noun, path in _NUMBERED.items()
        for numbers, field in ((_TOO_LARGE, ""), (_NO_NUMBERS, "path"))
        for number in numbers
    ),
    *(
        raw(f"method: {method} {target.decode()}", call(method, target, body=b"{}"), 405, "method")
        for target, right in _METHODS_OF.items()
        for method in _ALL_METHODS
        if method not in right.split()
    ),
    *(raw(f"query: {query!r}", get(ORGANIZATION + b"?" + query), 200) for query in (b"", b"&&&", b"#fragment")),
    *(raw(f"query: {query[:60]!r}", get(ORGANIZATION + b"?" + query), 400, name) for query, name in _QUERIES),
    *(case for method, target in _WITHOUT_FIELDS for case in _fields(method, target)),
    _no_field("an empty object", body=b"{}"),
    _no_field("no body", framed=False),
    _no_field("no body and no type", content_type=None),
    _no_field("an empty form", content_type=_FORM),
    _no_field("no chunk", _CHUNKED, body=b"0\r\n\r\n", framed=False, content_type=None),
]
