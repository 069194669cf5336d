"""Which IP addresses belong to the public internet: an explicit list, and the forms that stand for an IPv4 address.

`ipaddress.is_global` would not do: in Python 3.11 it counts NAT64, 6to4, 3fff::/20 and 5f00::/16 as public.
Source: the IANA registries of special-purpose addresses for IPv4 and IPv6.
"""

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network

IPAddress = IPv4Address | IPv6Address
IPNetwork = IPv4Network | IPv6Network

_NOT_PUBLIC_V4 = tuple(
    IPv4Network(network)
    for network in (
        "0.0.0.0/8",  # This network.
        "10.0.0.0/8",  # Private.
        "100.64.0.0/10",  # Behind a provider's NAT.
        "127.0.0.0/8",  # Loopback.
        "169.254.0.0/16",  # Link-local; cloud machines get their secrets here.
        "172.16.0.0/12",  # Private.
        "192.0.0.0/24",  # Protocol assignments.
        "192.0.2.0/24",  # Documentation.
        "192.31.196.0/24",  # AS112.
        "192.52.193.0/24",  # AMT.
        "192.88.99.0/24",  # Relays of 6to4.
        "192.168.0.0/16",  # Private.
        "192.175.48.0/24",  # AS112.
        "198.18.0.0/15",  # Benchmarks.
        "198.51.100.0/24",  # Documentation.
        "203.0.113.0/24",  # Documentation.
        "224.0.0.0/4",  # Multicast.
        "240.0.0.0/4",  # Reserved, and broadcast.
    )
)
# Everything outside of it is reserved, local, multicast, or stands for an IPv4 address.
_PUBLIC_V6 = IPv6Network("2000::/3")
_NOT_PUBLIC_V6 = tuple(
    IPv6Network(network)
    for network in (
        "2001::/23",  # Protocol assignments, Teredo among them.
        "2001:db8::/32",  # Documentation.
        "2620:4f:8000::/48",  # AS112.
        "3fff::/20",  # Documentation.
    )
)
_NAT64 = IPv6Network("64:ff9b::/96")


def unwrapped(address: IPAddress) -> IPAddress:
    """Return the IPv4 address that an IPv6 address stands for (mapped, NAT64, 6to4), or the address itself."""
    if isinstance(address, IPv4Address):
        return address
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return address.ipv4_mapped or address.sixtofour or address


def is_public(address: IPAddress) -> bool:
    """Tell whether an address, or the IPv4 address that it stands for, belongs to the public internet."""
    meant = unwrapped(address)
    if isinstance(meant, IPv4Address):
        return not any(meant in network for network in _NOT_PUBLIC_V4)
    return meant in _PUBLIC_V6 and not any(meant in network for network in _NOT_PUBLIC_V6)


def networks(text: str) -> tuple[IPNetwork, ...]:
    """Read a list of networks, with commas between them.

    Raises:
        ValueError: any of them is not a network, or is an address within a network.
    """
    return tuple(ip_network(part.strip()) for part in text.split(",") if part.strip())
