"""Where the service is, with which key, and whose certificates are trusted: checked before anything is sent."""

import os
import re
import ssl
from urllib.parse import urlsplit

import httpx

_LOCAL_HOSTS = ("127.0.0.1", "localhost", "::1")


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


def is_local(url: str) -> bool:
    """Tell whether an address is on this machine, so that no proxy of the environment is used."""
    return urlsplit(url).hostname in _LOCAL_HOSTS


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
