"""Where a webhook may lead: to the public internet, or to a network that the operator allows."""

import socket
from ipaddress import ip_address
from typing import Any

import pytest

from app.settings import settings
from app.values.ip_addresses import is_public
from app.webhooks.allowed_receivers import ReceiverRefused, parse, resolve

_NOT_PUBLIC = """
    0.0.0.1 0.1.2.3 10.0.0.0 10.255.255.255 100.64.0.1 100.127.255.255 127.0.0.1 127.255.255.255 169.254.0.1
    169.254.169.254 169.254.170.2 172.16.0.1 172.31.255.255 192.0.0.1 192.0.0.170 192.0.2.1 192.88.99.1 192.168.0.1
    192.168.255.255 198.18.0.1 198.19.255.255 198.51.100.7 203.0.113.9 224.0.0.1 239.255.255.250 240.0.0.1
    255.255.255.255
    :: ::1 fc00::1 fd00:ec2::254 fe80::1 fec0::1 ff02::1 2001:db8::1 3fff::1 3fff:fff::1 2001::1 2001:10::1 2001:20::1
    100::1 5f00::1 4000::1 ::7f00:1 ::ffff:0:127.0.0.1
    ::ffff:127.0.0.1 ::ffff:10.0.0.1 ::ffff:169.254.169.254 ::ffff:0:0 ::ffff:192.88.99.1 64:ff9b::127.0.0.1
    64:ff9b::10.0.0.1 64:ff9b::a9fe:a9fe 64:ff9b::192.168.1.1 64:ff9b:1::8.8.8.8 64:ff9b:1::1 64:ff9b:1:fffe::7f00:1
    2002:7f00:1:: 2002:a00:1::1 2002:a9fe:a9fe:: 2002:c0a8:101::1
"""
_PUBLIC = """
    1.1.1.1 8.8.8.8 100.63.255.255 100.128.0.1 172.15.255.255 172.32.0.1 192.0.1.1 223.255.255.1
    2606:4700::1111 2a00:1450:4001::1 2001:4860:4860::8888 ::ffff:8.8.8.8 64:ff9b::8.8.8.8
"""


def _answers(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> None:
    """Have every name lead to these addresses."""

    def look_up(_host: str, port: int, **_: Any) -> list[Any]:
        families = {4: socket.AF_INET, 6: socket.AF_INET6}
        return [(families[ip_address(one).version], 1, 6, "", (one, port)) for one in addresses]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)


@pytest.mark.parametrize("address", _NOT_PUBLIC.split())
def test_an_address_that_is_not_public_is_refused_in_any_form(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    assert not is_public(ip_address(address))
    literal = f"[{address}]" if ":" in address else address
    with pytest.raises(ReceiverRefused, match="not public"):
        resolve(parse(f"https://{literal}/"), timeout_s=5)
    _answers(monkeypatch, "8.8.8.8", address)
    with pytest.raises(ReceiverRefused, match="not public"):
        resolve(parse("https://hook.example.com/"), timeout_s=5)


@pytest.mark.parametrize("address", _PUBLIC.split())
def test_a_public_address_is_taken_over_tls_alone(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    _answers(monkeypatch, address)
    assert resolve(parse("https://hook.example.com/"), timeout_s=5) == [ip_address(address)]
    with pytest.raises(ReceiverRefused, match="https"):
        resolve(parse("http://hook.example.com/"), timeout_s=5)


# What the C library takes for an IPv4 address, although nobody writes it so.
@pytest.mark.parametrize(
    "host", ["0x7f.1", "127.1", "2130706433", "0177.0.0.1", "0x7f000001", "0", "localhost", "localhost."]
)
def test_an_odd_form_of_a_local_address_is_refused(host: str) -> None:
    with pytest.raises(ReceiverRefused):
        resolve(parse(f"https://{host}/"), timeout_s=5)


@pytest.mark.parametrize(
    "url",
    [
        *("", "hook.example.com", "//hook.example.com/", "ftp://hook.example.com/", "file:///etc/passwd"),
        *("gopher://hook.example.com/", "https://", "https:///path", "https://user@hook.example.com/"),
        *("https://user:secret@hook.example.com/", "https://@hook.example.com/", "https://8.8.8.8@127.0.0.1/"),
        *("https://hook.example.com:22/", "https://hook.example.com:25/", "https://hook.example.com:0/"),
        *("https://hook.example.com:65536/", "https://hook.example.com:x/", "https://hook.example.com/#part"),
        *("https://hook.example.com\\@127.0.0.1/", "https://hook .example.com/", "https://höök.example.com/"),
        *(
            "https://hook.example.com/\r\nX-Evil:1",
            "https://hook.example.com/\0",
            "https://[::1",
            "https://[fe80::1%25e]/",
        ),
        *("https://[::ffff:127.0.0.1%251]/", "https://[127.0.0.1]/", "https://hook..example.com/"),
        *("https://hook.example.com/?" + "x" * 2_000, "https://hook%2eexample.com/", "https://hook,example.com/"),
    ],
)
def test_what_is_no_url_that_may_be_called_is_refused(url: str) -> None:
    with pytest.raises(ReceiverRefused):
        parse(url)


@pytest.mark.parametrize(
    ("address", "allowed"),
    [
        *(("10.1.2.3", True), ("10.2.0.1", False), ("::ffff:10.1.2.3", True), ("64:ff9b::10.1.2.3", True)),
        *(("fd12::1", True), ("fd13::1", False), ("127.0.0.1", False)),
    ],
)
def test_an_operator_allows_networks_without_tls(monkeypatch: pytest.MonkeyPatch, address: str, allowed: bool) -> None:
    monkeypatch.setenv("POINTS_WEBHOOK_ALLOW", "10.1.0.0/16, fd12::/16")
    settings.cache_clear()
    _answers(monkeypatch, address)
    for scheme in ("http", "https"):
        receiver = parse(f"{scheme}://hook.internal/")
        if allowed:
            assert resolve(receiver, timeout_s=5) == [ip_address(address)]
        else:
            with pytest.raises(ReceiverRefused):
                resolve(receiver, timeout_s=5)


def test_a_name_that_leads_nowhere_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> list[Any]:
        raise socket.gaierror

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    with pytest.raises(ReceiverRefused, match="no address") as refused:
        resolve(parse("https://hook.example.com/"), timeout_s=5)
    assert refused.value.code == "name_not_found"
