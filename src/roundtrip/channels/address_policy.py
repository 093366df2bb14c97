"""Which addresses are somebody's on the internet, and not this machine's, its network's or nobody's."""

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

# By hand: ``is_global`` of the standard library says yes to NAT64, to fec0::/10 and to multicast.
_REFUSED_V4 = tuple(
    IPv4Network(text)
    for text in (
        "0.0.0.0/8",  # this network
        "10.0.0.0/8",
        "100.64.0.0/10",  # carriers' own; a cloud's metadata lies in it
        "127.0.0.0/8",
        "168.63.129.16/32",  # a cloud's own server, on an address that looks like anybody's
        "169.254.0.0/16",  # link-local; most clouds' metadata lie in it
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
"""All that is given out. Loopback, v4-mapped, NAT64, unique local, link-local, site-local, multicast lie
outside."""
_REFUSED_V6 = tuple(
    IPv6Network(text)
    for text in (
        "2001::/23",  # protocol assignments; Teredo, which holds a v4 address
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4, which holds a v4 address
        "3fff::/20",  # documentation
    )
)


def is_global(address: IPv4Address | IPv6Address) -> bool:
    """Whether it is a unicast address of the internet's own. What holds a v4 address inside is not."""
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _REFUSED_V4)
    if address.scope_id is not None:
        return False
    return address in _GLOBAL_V6 and not any(address in network for network in _REFUSED_V6)


def parse_address(text: str) -> IPv4Address | IPv6Address | None:
    """The address, in its plain notation only."""
    try:
        return ip_address(text)
    except ValueError:
        return None
