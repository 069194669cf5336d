"""Where the service is, with which key, and whose certificates are trusted: checked before anything is sent."""

import os
import re
import ssl
from ipaddress import ip_address, ip_network
from urllib.parse import urlsplit
from urllib.request import getproxies

import httpx

_LOCAL_HOSTS = ("127.0.0.1", "localhost", "::1")
_PORTS = {"http": 80, "https": 443}
# An entry of NO_PROXY: a scheme, a host or network, a port. Two colons are IPv6, in brackets if a port follows.
_EXCEPTED = re.compile(r"(?:(\w+)://)?(\[[^]]*\](?:/\d+)?|[^:]*|.*:.*:.*)(?::(\d+))?")


def base_url(url: str) -> str:
    """Return the address of the service without a slash at its end.

    Raises:
        ValueError: it does not begin with http:// or https://, names no host, or has what no address of a service has.
    """
    parts = urlsplit(url or "")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"The URL {url} must begin with http:// or https:// and name a host.")
    if parts.username is not None or parts.query or parts.fragment:
        raise ValueError("The URL must not have a user, a query or a fragment: it is where the service is.")
    try:
        return str(httpx.URL(url.rstrip("/")))
    except httpx.InvalidURL as error:
        raise ValueError(f"The URL {url} is not valid: {error}.") from None


def host_and_port(url: str) -> str:
    """Return where an address leads, as a sentence names it: `points.example.com:443`."""
    address = httpx.URL(url)
    return address.netloc.decode() + ("" if address.port else f":{_PORTS.get(address.scheme, '')}")


def proxy_of(url: str) -> str | None:
    """Return the proxy that the environment names for an address; None: none, or it is on this machine or in NO_PROXY.

    httpx would read the environment too, but not NO_PROXY as curl does, and would raise at some of its forms.
    """
    named, address = getproxies(), httpx.URL(url)
    proxy = named.get(address.scheme) or named.get("all")
    entries = re.split(r"[\s,]+", named.get("no", ""))
    if not proxy or address.host in _LOCAL_HOSTS or any(_is_about(entry, address) for entry in entries):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def _is_about(entry: str, address: httpx.URL) -> bool:
    """Tell whether an entry of NO_PROXY is about an address: `*`, a network, or a domain with all that is below it."""
    parts = _EXCEPTED.fullmatch(entry)
    if parts is None:
        return False
    scheme, host, port = parts.groups()
    if scheme not in (None, "all", address.scheme) or port not in (None, str(address.port or _PORTS[address.scheme])):
        return False
    try:
        return host == "*" or ip_address(address.host) in ip_network(re.sub(r"[][]", "", host), strict=False)
    except ValueError:  # One of the two is a name, and the last digits of a number are none.
        domain = host.strip(".").lower()
        names = (address.host, address.raw_host.decode()) if re.search(r"[^\d.:]", domain) else ()
        return any(f".{name.rstrip('.')}".endswith(f".{domain}") for name in names)


def checked_key(key: str) -> str:
    """Return an API key without the blanks around it.

    Raises:
        ValueError: it is not a key. The sentence does not repeat it.
    """
    if not re.fullmatch(r"[!-~]+", (key or "").strip()):
        raise ValueError("A key holds letters, digits and _ only: copy it once more.")
    return key.strip()


def from_environment(name: str) -> str:
    """Return a variable of the environment.

    Raises:
        ValueError: it is not set.
    """
    if not (value := os.environ.get(name, "").strip()):
        raise ValueError(f"{name} is not set in the environment.")
    return value


def trusted(ssl_context: ssl.SSLContext | None) -> ssl.SSLContext:
    """Return what is trusted: `ssl_context`, or what `SSL_CERT_FILE` or `SSL_CERT_DIR` names, or httpx's own.

    Raises:
        ValueError: the environment names a file or folder that cannot be used.
    """
    if ssl_context is not None:
        return ssl_context
    for name, argument in (("SSL_CERT_FILE", "cafile"), ("SSL_CERT_DIR", "capath")):
        named = os.environ.get(name)
        if named:
            try:
                if not os.path.exists(named):
                    raise FileNotFoundError("it does not exist")
                return ssl.create_default_context(**{argument: named})  # type: ignore[arg-type]
            except OSError as error:
                raise ValueError(f"{name} names {named}, which cannot be used: {error}.") from None
    return httpx.create_ssl_context()
