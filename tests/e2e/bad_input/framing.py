"""Where a request begins and ends: lengths, chunks, versions, and bytes that are not HTTP at all."""

from tests.e2e.bad_input.cases import CANARY, GOOD, KEY, ORGANIZATION, SEND, VERIFY, Case, call, get, raw, raws, verify

_CANARY = CANARY.encode()

# What an attacker hopes is read as a request of its own: it would debit.
_SMUGGLED = call("POST", SEND, body=GOOD)


def _length(length: bytes, body: bytes = GOOD, *lines: bytes) -> bytes:
    return call("POST", VERIFY, *lines, body=body, length=length)


def _chunked(content: bytes, coding: bytes = b"chunked") -> bytes:
    return call("POST", VERIFY, b"Transfer-Encoding: " + coding, body=content, framed=False)


def _nowhere(content: bytes) -> bytes:
    return call("POST", b"/v1/nothing", b"Transfer-Encoding: chunked", body=content, framed=False)


def _chunk(content: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(content), content)


_GOOD_CHUNK = _chunk(GOOD)
_SIZE = b"%d" % len(GOOD)

_LENGTHS = {
    "negative": _length(b"-1"),
    "with a plus": _length(b"+" + _SIZE),
    "hexadecimal": _length(b"0x10"),
    "empty": _length(b""),
    "a word": _length(b"many"),
    "a list": _length(_SIZE + b", " + _SIZE),
    "Arabic digits": _length("٣".encode()),
    "5,000 digits": _length(b"1" + b"0" * 5_000),
    "twice, the same": _length(_SIZE, GOOD, b"Content-Length: " + _SIZE),
    "twice, another": _length(_SIZE, GOOD + _SMUGGLED, b"Content-Length: 1"),
    "and chunks": _length(_SIZE, b"0\r\n\r\n" + _SMUGGLED, b"Transfer-Encoding: chunked"),
    "and chunks, hidden by a tab": _length(_SIZE, b"0\r\n\r\n" + _SMUGGLED, b"Transfer-Encoding:\tchunked"),
}
_TOO_LONG = [
    raw("length: over the limit", _length(b"8388610", b""), 413, "body"),
    raw("length: beyond 64 bits", _length(b"9" * 30, b""), 413, "body"),
    raw("length: less than comes", _length(b"1", b"{" + GOOD[1:]), 400, "body"),
    raw("length: zero before a body", _length(b"0"), 400, "body"),
]

_KEY_LAST = _GOOD_CHUNK + b"0\r\nAuthorization: Bearer " + KEY + b"\r\n\r\n"
_KEY_IN_A_TRAILER = call("POST", SEND, b"Transfer-Encoding: chunked", body=_KEY_LAST, framed=False, key=None)
_CHUNKS = [
    raw(f"chunks: {name}", _chunked(content), 400, "request")
    for name, content in {
        "a size of a word": b"zz\r\n" + GOOD + b"\r\n0\r\n\r\n",
        "an empty size": b"\r\n" + GOOD + b"\r\n0\r\n\r\n",
        "a size with 0x": b"0x2\r\n{}\r\n0\r\n\r\n",
        "a size with a plus": b"+2\r\n{}\r\n0\r\n\r\n",
        "a size with an underscore": b"0_2\r\n{}\r\n0\r\n\r\n",
        "a size in Arabic digits": "٢\r\n{}\r\n0\r\n\r\n".encode(),
        "a size line of 20,000 characters": b"2;" + b"a" * 20_000 + b"\r\n{}\r\n0\r\n\r\n",
        "more than its size": b"1\r\n" + GOOD + b"\r\n0\r\n\r\n",
        "no end of line": b"2\r\n{}0\r\n\r\n",
        "a trailer that is none": _GOOD_CHUNK + b"0\r\n" + _CANARY + b"\r\n\r\n",
        "a trailer with a NUL": _GOOD_CHUNK + b"0\r\nX-Sum: \0\r\n\r\n",
        "a folded trailer": _GOOD_CHUNK + b"0\r\nX-Sum: 1\r\n 2\r\n\r\n",
    }.items()
] + [
    raw("chunks: the key in a trailer", _KEY_IN_A_TRAILER, 401, "authorization"),
    raw("chunks: an empty body", _chunked(b"0\r\n\r\n"), 400, "body"),
    raw("chunks: over the limit", _chunked(_chunk(b" " * 4_500_000) * 2 + b"0\r\n\r\n"), 413, "body"),
    raw("chunks: 50,000 of one byte", _chunked(_chunk(b" ") * 50_000 + b"0\r\n\r\n"), 400, "body"),
]

# The caller goes away in the middle of what was announced; the answer is there for a proxy that waits for it.
_BROKEN_OFF = {
    "less than the length": _length(b"1000"),
    "nothing of the length": _length(b"1000", b""),
    "no chunk": _chunked(b""),
    "no last chunk": _chunked(_GOOD_CHUNK),
    "half of the last chunk": _chunked(_GOOD_CHUNK + b"0\r\n"),
    "a chunk shorter than its size": _chunked(b"ff\r\n" + GOOD + b"\r\n0\r\n\r\n"),
    "a chunk of a size beyond 64 bits": _chunked(b"F" * 30 + b"\r\n" + GOOD),
    "a size line ending in a newline": _chunked(b"2\n{}\n0\n\n"),
}


_CODINGS = [
    raw(f"coding: {coding.decode()}", _chunked(_GOOD_CHUNK + b"0\r\n\r\n", coding), 400, "request")
    for coding in (
        *(b"", b"gzip", b"identity", b"br", b"br, chunked", b"chunked, gzip", b"chunked, chunked", b"xchunked"),
        # Served as it comes, it would be compressed bytes for JSON, or JSON that is not what was declared.
        *(b"gzip, chunked", b"identity, chunked", b"deflate,chunked", b"gzip\r\nTransfer-Encoding: chunked"),
    )
] + [
    raw("coding: chunked in capitals", _chunked(_GOOD_CHUNK + b"0\r\n\r\n", b"CHUNKED"), 200),
    raw("coding: chunked in HTTP/1.0", _chunked(b"0\r\n\r\n").replace(b"HTTP/1.1", b"HTTP/1.0"), 400, "request"),
]

_VERSIONS = [
    raw(f"version: {version.decode('latin-1')}", call("POST", VERIFY, body=GOOD, version=version), 400, "request")
    for version in (b"HTTP/2.0", b"HTTP/0.9", b"HTTP/1", b"HTTP/1.10", b"http/1.1", b"HTTP/11", b"HTTP/\xb9.1", b"ICY")
] + [
    raw("version: none", b"GET /%b\r\n\r\n" % _CANARY, 400, "request"),
    raw("version: none, and no head", b"GET /%b\r\n" % _CANARY, 400, "request"),
    raw("version: 1.0", call("POST", VERIFY, body=GOOD, version=b"HTTP/1.0"), 200),
    raw("version: 1.0 and a fault", call("POST", VERIFY, body=b"[]", version=b"HTTP/1.0"), 400, "body"),
]

_NO_REQUEST = {
    "a word": b"%b\r\n\r\n" % _CANARY,
    "an empty line and another": b"\r\n\r\n\r\n",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 20 + b"\r\n\r\n",
    "NULs": b"\0" * 100 + b"\r\n\r\n",
    "newlines only": b"GET / HTTP/1.1\nHost: x\n\n",
    "two blanks": b"GET  / HTTP/1.1\r\nHost: x\r\n\r\n",
    "a method in lower case": call("post", VERIFY, body=GOOD),
    "a method with a NUL": call("PO\0ST", VERIFY, body=GOOD),
}
_MORE_THAN_A_REQUEST = [
    raw("no request: 100,000 characters", b"A" * 100_000, 400, "request"),
    raw("no request: a method of 5,000 characters", call("A" * 5_000, VERIFY), 400, "request"),
]

# One request, one answer: what stands in a body is never read as a request.
_WITHIN = [
    raw("a request in the body of a GET", call("GET", ORGANIZATION, body=_SMUGGLED), 200),
    raw("a request in a body", call("POST", VERIFY, body=_SMUGGLED), 400, "body"),
    raw("a request behind a CONNECT", call("CONNECT", b"example.com:80", framed=False) + _SMUGGLED, (404, 405), "path"),
    raw("told to go on", verify(b"Expect: 100-continue"), 200),
    raw("told to go on, without a key", verify(b"Expect: 100-continue", key=None), 401, "authorization"),
    raw("no length and no body", call("POST", SEND, framed=False), 400, "body"),
    raw("an absolute target", call("POST", b"http://%b.example%b" % (_CANARY, VERIFY), body=GOOD), 200),
    raw("a target that is a star", call("OPTIONS", b"*", framed=False), 404, "path"),
    raw("no target", get(b""), 400, "request"),
    # Of an answer that needs no body the chunks are read all the same, and what they are not brings no second one.
    raw("chunks that are none behind an answer", _nowhere(b"nonsense\r\n"), 404, "path"),
]

CASES: list[Case] = [
    *raws("length", _LENGTHS, 400, "request"),
    *_TOO_LONG,
    *_CHUNKS,
    *raws("broken off", _BROKEN_OFF, 400, "request", then_close=True),
    *_CODINGS,
    *_VERSIONS,
    *raws("no request", _NO_REQUEST, 400, "request"),
    *_MORE_THAN_A_REQUEST,
    *_WITHIN,
]
