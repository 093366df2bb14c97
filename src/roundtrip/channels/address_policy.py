"""Which IP addresses are public unicast addresses of the internet."""

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

# Listed here because ``is_global`` of the standard library accepts NAT64, fec0::/10 and multicast.
_REFUSED_V4 = tuple(
    IPv4Network(text)
    for text in (
        "0.0.0.0/8",  # this network
        "10.0.0.0/8",
        "100.64.0.0/10",  # carrier-grade NAT; includes a cloud's metadata server
        "127.0.0.0/8",
        "168.63.129.16/32",  # a cloud's internal server on a public address
        "169.254.0.0/16",  # link-local; includes most clouds' metadata servers
        "172.16.0.0/12",
        "192.0.0.0/24",  # protocol assignments
        "192.0.2.0/24",  # documentation
        "192.88.99.0/24",  # 6to4 relays
        "192.168.0.0/16",
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, and broadcast
    )
)
_GLOBAL_V6 = IPv6Network("2000::/3")
"""All allocated unicast addresses. It excludes loopback, v4-mapped, NAT64, unique local, link-local,
site-local and multicast addresses."""
_REFUSED_V6 = tuple(
    IPv6Network(text)
    for text in (
        "2001::/23",  # protocol assignments; Teredo, which contains a v4 address
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4, which contains a v4 address
        "3fff::/20",  # documentation
    )
)


def is_global(address: IPv4Address | IPv6Address) -> bool:
    """Whether the address is a public unicast address. An IPv6 address that contains a v4 address is not."""
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _REFUSED_V4)
    if address.scope_id is not None:
        return False
    return address in _GLOBAL_V6 and not any(address in network for network in _REFUSED_V6)


def parse_address(text: str) -> IPv4Address | IPv6Address | None:
    """Parses an address in its standard notation; None for anything else."""
    try:
        return ip_address(text)
    except ValueError:
        return None
