"""Header lines that are missing, doubled, too long or of another kind, around a body that is right."""

import gzip

from tests.e2e.bad_input.cases import CANARY, GOOD, KEY, SEND, VERIFY, Case, call, get, raw, raws, verify

_CANARY = CANARY.encode()

# The service speaks of all of these in the same words, and never of what was wrong.
_KEYS = {
    name: verify(key=key)
    for name, key in {
        "missing": None,
        "empty": b"",
        "a scheme alone": b"Bearer",
        "a key alone": KEY,
        "another scheme": b"Basic " + KEY,
        "no blank": b"Bearer" + KEY,
        "quotes": b'Bearer "' + KEY + b'"',
        "a second key": b"Bearer " + KEY + b" " + KEY,
        "Latin-1": b"Bearer " + KEY[:-1] + b"\xe9",
        "UTF-8": "Bearer pts_live_ключ".encode(),
        "full-width digits": b"Bearer pts_live_" + "０".encode() * 49,
        "zeros": b"Bearer pts_live_" + b"0" * 49,
        "8,000 characters": b"Bearer " + b"a" * 8_000,
        "percent-encoded": b"Bearer%20" + KEY,
    }.items()
} | {
    "twice": verify(b"Authorization: Bearer " + KEY),
    "two schemes": verify(b"Authorization: Basic eDp5"),
    "in the query": verify(key=None).replace(VERIFY, VERIFY + b"?key=" + KEY),
    "in a cookie": verify(b"Cookie: key=" + KEY, key=None),
    "another name": verify(b"X-Api-Key: " + KEY, key=None),
    "an underscore": verify(b"Proxy_Authorization: Bearer " + KEY, key=None),
}


def _type(content_type: bytes | None, target: bytes = VERIFY) -> bytes:
    return call("POST", target, body=GOOD, content_type=content_type)


_TYPES = [
    raw(f"content type: {name}", _type(content_type, SEND), 415, "content_type")
    for name, content_type in {
        "missing": None,
        "empty": b"",
        "text": b"text/plain",
        "a form": b"application/x-www-form-urlencoded",
        "multipart": b"multipart/form-data; boundary=x",
        "JSON of another kind": b"application/problem+json",
        "two in one": b"application/json, text/plain",
        "Latin-1": b"application/j\xe9son",
        "4,000 characters": b"a" * 4_000,
        "markup": b"<script>alert(1)</script>",
    }.items()
] + [
    raw("content type: twice", call("POST", SEND, b"Content-Type: text/plain", body=GOOD), 400, "request"),
]


def _encoding(encoding: bytes, body: bytes) -> Case:
    name = f"content encoding: {encoding.decode('latin-1')} of {len(body)} bytes"
    return raw(name, call("POST", SEND, b"Content-Encoding: " + encoding, body=body), 415, "content_type")


_ENCODINGS = [
    _encoding(b"gzip", gzip.compress(GOOD)),
    _encoding(b"gzip, gzip", gzip.compress(gzip.compress(GOOD))),
    _encoding(b"deflate", GOOD),
    _encoding(b"br", GOOD),
    _encoding(b"nonsense", GOOD),
]


def _idempotency(*values: bytes) -> bytes:
    return call("POST", SEND, *(b"Idempotency-Key: " + value for value in values), body=GOOD)


_IDEMPOTENCY_KEYS = [
    raw(f"idempotency key: {name}", _idempotency(*values), 400, "idempotency_key")
    for name, values in {
        "empty": [b""],
        "a blank": [b" "],
        "256 characters": [b"a" * 256],
        "8,000 characters": [b"a" * 8_000],
        "a blank within": [_CANARY + b" " + _CANARY],
        "a tab within": [_CANARY + b"\t" + _CANARY],
        "Latin-1": [_CANARY + b"\xe9"],
        "UTF-8": [_CANARY + "é".encode()],
    }.items()
] + [
    # Either alone would do, and so would both with a comma between them, which is what WSGI makes of two.
    raw("idempotency key: twice", _idempotency(b"a", b"b"), 400, "idempotency_key"),
    raw("idempotency key: twice, the same", _idempotency(b"a", b"a"), 400, "idempotency_key"),
    raw("idempotency key: twice, in two cases", _idempotency(b"a", b"a\r\nidempotency-key: a"), 400, "idempotency_key"),
    *(
        raw(f"{name.decode()}", call("POST", SEND, name + b": a", body=GOOD), 400, "idempotency_key")
        for name in b"Idempotency_Key idempotency_key IdempotencyKey X-Idempotency-Key Idempotency-_Key".split()
    ),
    raw("idempotency key: a NUL", _idempotency(_CANARY + b"\0"), 400, "request"),
    raw("idempotency key: 64 KB", _idempotency(b"a" * 65_536), 400, "request"),
]


_LINES = [
    raw(f"a line: {name}", verify(line), 400, "request")
    for name, line in {
        "a bare return": b"X-Request-Id: %b\rX-Evil: 1" % _CANARY,
        "a bare newline": b"X-Request-Id: %b\nX-Evil: 1" % _CANARY,
        "folded": b"X-Request-Id: %b\r\n X-Evil: 1" % _CANARY,
        "a NUL": b"X-Request-Id: %b\0" % _CANARY,
        "an escape character": b"X-Request-Id: %b\x1b[31m" % _CANARY,
        "a DEL": b"X-Request-Id: %b\x7f" % _CANARY,
        "a blank before the colon": b"X-Request-Id : %b" % _CANARY,
        "no name": b": %b" % _CANARY,
        "no colon": _CANARY,
        "a name with a blank": b"X Evil: %b" % _CANARY,
        "a second host": b"Host: %b" % _CANARY,
    }.items()
] + [
    raw("2,000 lines", verify(*(b"X-%d: %b" % (n, _CANARY) for n in range(2_000))), 400, "request"),
    raw("a line of 64 KB", verify(b"X-Long: " + b"a" * 65_536), 400, "request"),
    raw("a name of 64 KB", verify(b"X" * 65_536 + b": 1"), 400, "request"),
    raw("a head of half a megabyte", verify(*(b"X-%d: %b" % (n, b"a" * 8_000) for n in range(64))), 200),
    raw("a head of two megabytes", verify(*(b"X-%d: %b" % (n, b"a" * 8_000) for n in range(256))), 400, "request"),
]

# Odd, and within the rules: answered as if it were not there, or as what it means.
_TOLERATED = {
    "the scheme in lower case": verify(key=b"bearer " + KEY),
    "the scheme in capitals": verify(key=b"BEARER " + KEY),
    "three blanks before the key": verify(key=b"Bearer   " + KEY),
    "blanks and a tab behind the key": verify(key=b"Bearer " + KEY + b" \t "),
    "the type in capitals": _type(b"APPLICATION/JSON"),
    "a charset that is not ours": _type(b"application/json;charset=latin-1"),
    "a charset that is none": _type(b'application/json; charset="'),
    "names in any case": verify(b"x-REQUEST-id: seven.7"),
    "a name with an underscore": verify(b"Content_Length: 1", b"Transfer_Encoding: chunked", b"X_Idempotency: a"),
    "a path of a proxy's": verify(b"Script_Name: /elsewhere", b"Path_Info: /elsewhere"),
    "forwarded for somebody": verify(b"X-Forwarded-For: %b" % _CANARY, b"X-Forwarded-Proto: https"),
    "two schemes of proxies": verify(
        b"X-Forwarded-Proto: https", b"X-Forwarded-Protocol: http", b"X-Forwarded-Ssl: off"
    ),
    "another method in a header": verify(b"X-HTTP-Method-Override: DELETE"),
    "an offer of HTTP/2": verify(b"Connection: Upgrade, HTTP2-Settings", b"Upgrade: h2c", b"HTTP2-Settings: AAMAAABk"),
    "a range": get(b"/v1/organization", b"Range: bytes=0-1"),
    "a condition": get(b"/v1/organization", b"If-None-Match: *", b"If-Modified-Since: nonsense"),
    "nothing is acceptable": get(b"/v1/organization", b"Accept: image/png;q=0", b"Accept-Encoding: identity;q=0"),
}

CASES: list[Case] = [
    *raws("authorization", _KEYS, 401, "authorization"),
    raw("authorization: 64 KB", verify(key=b"Bearer " + b"a" * 65_536), 400, "request"),
    raw("authorization: a key and 64 KB", verify(key=b"Bearer " + KEY + b" " * 65_536), 400, "request"),
    raw("authorization: a NUL", verify(key=b"Bearer " + KEY + b"\0"), 400, "request"),
    *_TYPES,
    *_ENCODINGS,
    *_IDEMPOTENCY_KEYS,
    *_LINES,
    *raws("tolerated", _TOLERATED, 200),
]
