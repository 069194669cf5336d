"""Receivers of webhooks: which URLs may be called, and which addresses their names have now.

A caller chooses the URL, and the service calls it. So it must lead to the public internet, or to a network that the
operator allows (`POINTS_WEBHOOK_ALLOW`). It is checked when it is registered, and again at every connect.
"""

import re
import socket
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address
from urllib.parse import SplitResult, urlsplit

from app.settings import settings
from app.values.ip_addresses import IPAddress, is_public, unwrapped

URL_LENGTH_MAX = 2_000
_PORTS = {"https": 443, "http": 80}
_FIRST_FREE_PORT = 1_024
_VISIBLE_ASCII = re.compile(r"[!-\[\]-~]+")  # Without the backslash, which some readers take for a slash.
_NAME = re.compile(r"[A-Za-z0-9_-]{1,63}(\.[A-Za-z0-9_-]{1,63})*\.?")
# A resolver may hang for half a minute and takes no time limit, so it is called in a thread that can be left waiting.
_resolvers = ThreadPoolExecutor(64, thread_name_prefix="resolver")


class ReceiverRefused(Exception):
    """A URL may not be called. The text completes “The url …”; `code` is a word for programs."""

    def __init__(self, sentence: str, code: str = "address_refused") -> None:
        super().__init__(sentence)
        self.code = code


@dataclass(frozen=True, kw_only=True, slots=True)
class Receiver:
    """Where a webhook is sent: the parts of a URL that may be called. `target` is its path with its query."""

    scheme: str
    host: str
    port: int
    target: str

    @property
    def host_header(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"


def parse(url: str) -> Receiver:
    """Take a URL apart.

    Raises:
        ReceiverRefused: it is not a URL, or a URL that may never be called.
    """
    if len(url) > URL_LENGTH_MAX:
        raise ReceiverRefused(f"must have at most {URL_LENGTH_MAX} characters.")
    if not _VISIBLE_ASCII.fullmatch(url):
        raise ReceiverRefused("must be visible ASCII without a backslash; of an international name, its xn-- form.")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ReceiverRefused("has a host or a port that cannot be read.") from None
    if parts.scheme not in _PORTS:
        raise ReceiverRefused("must begin with https://.")
    if "@" in parts.netloc:
        raise ReceiverRefused("must not hold a user or a password.")
    if "#" in url:
        raise ReceiverRefused("must not have a fragment.")
    port = _PORTS[parts.scheme] if port is None else port
    if port not in _PORTS.values() and port < _FIRST_FREE_PORT:
        raise ReceiverRefused(f"must have port 443, 80, or one from {_FIRST_FREE_PORT} on.")
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Receiver(scheme=parts.scheme, host=_host(parts), port=port, target=target)


def _host(parts: SplitResult) -> str:
    host = parts.hostname or ""
    if parts.netloc.startswith("["):
        try:
            literal = IPv6Address(host)
        except ValueError:
            literal = None
        if literal is None or literal.scope_id is not None:
            raise ReceiverRefused("has a host that is no IPv6 address.")
    elif not _NAME.fullmatch(host) or len(host) > 253:
        raise ReceiverRefused("has a host that is no name and no address.")
    return host


def resolve(receiver: Receiver, *, timeout_s: float) -> Sequence[IPAddress]:
    """Return the addresses of a receiver's name, all of which may be called.

    A single address that may not be called is enough to refuse the name: a name with both kinds is suspicious.

    Raises:
        ReceiverRefused: an address may not be called, or not without TLS, or the name leads nowhere in time.
    """
    lookup = _resolvers.submit(_look_up, receiver.host, receiver.port)
    try:
        addresses = lookup.result(timeout=max(timeout_s, 0.0))
    except (OSError, UnicodeError, FutureTimeoutError):
        lookup.cancel()
        raise ReceiverRefused("has a name that leads to no address at present.", "name_not_found") from None
    for address in addresses:
        if is_allowed(address):
            continue
        if not is_public(address):
            raise ReceiverRefused("leads to an address that is not public.")
        if receiver.scheme != "https":
            raise ReceiverRefused("must begin with https://.", "https_required")
    return addresses


def is_allowed(address: IPAddress) -> bool:
    """Tell whether the operator allows an address, public or not."""
    meant = unwrapped(address)
    return any(meant in network for network in settings().webhook_allow)


def _look_up(host: str, port: int) -> list[IPAddress]:
    """Ask the resolver, which also reads unusual forms of an IPv4 address, such as 0x7f.1.

    Raises:
        OSError: it knows no address of this name.
    """
    entries = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
    # A zone (fe80::1%eth0) is left out: an address with a zone is not public anyway.
    addresses = [ip_address(str(address[0]).partition("%")[0]) for *_, address in entries]
    if not addresses:
        raise OSError
    return list(dict.fromkeys(addresses))
