"""Where somebody signs in: the browser and the IP address, as the request says them."""

import ipaddress
from typing import NamedTuple

from app.values.ip_addresses import is_public


class Place(NamedTuple):
    """Where a member signs in: the browser in words, and the IP address. Both are what the caller says."""

    browser: str | None = None
    address: str | None = None

    def __str__(self) -> str:
        return ", ".join(part for part in (self.browser, self.address) if part)


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


def place_of(user_agent: str, direct: str, forwarded: str) -> Place:
    """Return where a request comes from.

    Args:
        direct: the address that it comes from, which may be a proxy's.
        forwarded: the addresses that `X-Forwarded-For` names.
    """
    return Place(_browser(user_agent), _address(direct, forwarded))


def _browser(named: str) -> str:
    """Return the browser and its system, such as `Firefox on Linux`."""
    browser, system = (next((words[mark] for mark in words if mark in named), "") for words in (_BROWSERS, _SYSTEMS))
    return f"{browser or 'another browser'} on {system}" if system else browser or "another browser"


def _address(direct: str, forwarded: str) -> str:
    """Return the caller's address: of a proxy in a private network, the address that it names last."""
    named = forwarded.rpartition(",")[2].strip()
    is_direct = _is_address(direct) and is_public(ipaddress.ip_address(direct))
    return named if _is_address(named) and not is_direct else direct


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return "%" not in text  # The name of an interface, of any length.
