"""Where a request comes from, in words for a person: the address and the browser. Callers can make up both."""

import ipaddress

from flask import request

from app.members.sessions import Place

# The first that stands in `User-Agent` counts: browsers name those that they descend from as well.
_BROWSERS = {
    "Edg": "Edge",
    "OPR/": "Opera",
    "SamsungBrowser/": "Samsung Internet",
    "FxiOS/": "Firefox",
    "Firefox/": "Firefox",
    "CriOS/": "Chrome",
    "Chrome/": "Chrome",
    "Safari/": "Safari",
}
_SYSTEMS = {
    "iPhone": "iPhone",
    "iPad": "iPad",
    "Android": "Android",
    "Windows": "Windows",
    "CrOS": "ChromeOS",
    "Mac OS X": "macOS",
    "Linux": "Linux",
}


def place() -> Place:
    """Return where the request comes from."""
    return Place(_browser(), _address())


def _browser() -> str:
    """Return the browser and its system, such as `Firefox on Linux`."""
    named = request.user_agent.string
    found, system = (next((words[mark] for mark in words if mark in named), "") for words in (_BROWSERS, _SYSTEMS))
    return f"{found or 'another browser'} on {system}" if system else found or "another browser"


def _address() -> str:
    """Return the caller's IP address: of a proxy in a private network, the one that it names last."""
    direct = request.remote_addr or ""
    named = request.headers.get("X-Forwarded-For", "").rpartition(",")[2].strip()
    return named if _is_address(named) and not _is_public(direct) else direct


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return "%" not in text  # The name of an interface, of any length.


def _is_public(text: str) -> bool:
    return _is_address(text) and ipaddress.ip_address(text).is_global
