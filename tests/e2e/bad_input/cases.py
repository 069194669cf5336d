"""What a case of bad input is: the bytes a caller sends, and the status and fields they are answered with."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from http import HTTPMethod

# Stands in a request for the key of the caller; it is filled in when there is one.
KEY = b"<KEY>"

# Every body, header, path and address of these cases holds this word, so that a log can be searched for it.
CANARY = "canary7q"
ADDRESS = f"{CANARY}@example.com"

VERIFY = b"/v1/points/verify"
SEND = b"/v1/points/send"
ORGANIZATION = b"/v1/organization"

# A body that is right: what is wrong then is only what stands around it.
GOOD = b'{"recipient": "%b", "amount": 1, "label": "%b"}' % (ADDRESS.encode(), CANARY.encode())

# What an answer of 400 about a body can name at once.
MISSING = ("amount", "recipient", "recipients")


@dataclass(frozen=True, kw_only=True)
class Case:
    """A whole request, byte for byte; no fields means an answer of success.

    `then_close` is a caller who says, before there is an answer, that nothing more will come.
    """

    name: str
    request: bytes
    statuses: frozenset[int]
    fields: frozenset[str]
    then_close: bool = False


def raw(name: str, request: bytes, status: int | Collection[int], *fields: str, then_close: bool = False) -> Case:
    """Make a case of a whole request, with the status, or the few statuses, that it may be answered with."""
    statuses = frozenset([status] if isinstance(status, int) else status)
    return Case(name=name, request=request, statuses=statuses, fields=frozenset(fields), then_close=then_close)


def raws(what: str, requests: Mapping[str, bytes], status: int, *fields: str, then_close: bool = False) -> list[Case]:
    """Make cases of requests that are answered alike."""
    return [
        raw(f"{what}: {name}", request, status, *fields, then_close=then_close) for name, request in requests.items()
    ]


def body(name: str, content: bytes | str, *fields: str) -> Case:
    """Make a case of a bad body, which is a 400 on these fields; the text of one is sent in UTF-8."""
    encoded = content if isinstance(content, bytes) else content.encode()
    return raw(name, call("POST", SEND, body=encoded), 400, *fields)


def good(name: str, content: str) -> Case:
    """Make a case of a strange body that is right: it is verified."""
    return raw(name, call("POST", VERIFY, body=content.encode()), 200)


def call(
    method: str | HTTPMethod,
    target: bytes,
    *lines: bytes,
    body: bytes = b"",
    key: bytes | None = b"Bearer " + KEY,
    content_type: bytes | None = b"application/json",
    length: bytes | None = None,
    framed: bool = True,
    version: bytes = b"HTTP/1.1",
) -> bytes:
    """Write a request, well-formed but for what the arguments say.

    Args:
        method: any word.
        target: the request target, unescaped.
        lines: more header lines, as they are.
        body: the body, or what is sent of it.
        key: the value of `Authorization`; None leaves the line out.
        content_type: the value of `Content-Type`; None leaves the line out.
        length: the value of `Content-Length`, if not the true one.
        framed: False leaves `Content-Length` out.
        version: the last word of the request line.
    """
    head = [b"%b %b %b" % (method.encode(), target, version), b"Host: 127.0.0.1", b"Accept: application/json"]
    if key is not None:
        head.append(b"Authorization: " + key)
    if content_type is not None:
        head.append(b"Content-Type: " + content_type)
    if framed:
        head.append(b"Content-Length: " + (b"%d" % len(body) if length is None else length))
    return b"\r\n".join([*head, *lines, b"", b""]) + body


def get(target: bytes, *lines: bytes) -> bytes:
    """Write a GET without a body."""
    return call("GET", target, *lines, content_type=None, framed=False)


def verify(*lines: bytes, key: bytes | None = b"Bearer " + KEY) -> bytes:
    """Write a verify whose body is right, with more header lines."""
    return call("POST", VERIFY, *lines, body=GOOD, key=key)
