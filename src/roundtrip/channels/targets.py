"""Parses and checks the urls that messages may be sent to. A target url is untrusted input. Also tells
whether an IP address is a public unicast address of the internet."""

import re
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

import idna

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


MAX_CHARACTERS = 300
MIN_HIGH_PORT, MAX_PORT = 1024, 65_535
"""The allowed ports besides 443. Lower ports belong to mail, remote shells and the like, which a POST could
attack."""
DEFAULT_PORT = {"https": 443, "http": 80}
LOCAL_ENDINGS = frozenset(
    {"arpa", "corp", "home", "internal", "intranet", "invalid", "lan", "local", "localdomain", "localhost"}
    | {"onion", "private"}
)
"""Last labels of names that exist only within a local network."""

_URL = re.compile(r"(https?)://([^/?#]*)([^#]*)", re.IGNORECASE)
_PATH = re.compile(r"[!$-;=?-\[\]_a-z~]*")
_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
_PORT = re.compile(r"[0-9]{1,5}")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")


class BadTarget(Exception):
    """The url is not an allowed target; the text, for the user who gave it, says why."""


@dataclass(frozen=True, slots=True)
class Target:
    """``host``: as in the url, in lower case and ASCII, an IPv6 address in brackets. ``url``: as it is
    requested; it is not part of the repr because it may contain a secret."""

    url: str = field(repr=False)
    host: str
    port: int


def parse_target(text: str, loopback: frozenset[str] = frozenset()) -> Target:
    """Parses a target url. ``loopback``: hosts of this machine with their ports (``127.0.0.1:9000``,
    ``localhost:9000``) that are allowed, by http and https. Raises BadTarget."""
    if len(text) > MAX_CHARACTERS:
        raise BadTarget(f"it must have at most {MAX_CHARACTERS} characters")
    match = _URL.fullmatch(text)
    if match is None:
        raise BadTarget("it must begin with https://, name a host, and have no # part")
    scheme, authority, path = match[1].lower(), match[2], match[3]
    if "@" in authority:
        raise BadTarget("it must not contain a user or password")
    if _PATH.fullmatch(path) is None:
        raise BadTarget("its path must consist of ASCII letters, digits and punctuation")
    raw_host, port = _split_authority(authority, DEFAULT_PORT[scheme])
    host = _normalize_host(raw_host)
    host_port = f"{host}:{port}"
    if host_port not in loopback:
        _refuse_unless_global(scheme, host, port)
    authority = host if port == DEFAULT_PORT[scheme] else host_port
    return Target(f"{scheme}://{authority}{path if path.startswith('/') else '/' + path}", host, port)


def _split_authority(authority: str, default_port: int) -> tuple[str, int]:
    """Splits into host and port. Raises BadTarget."""
    if authority.startswith("["):
        host, bracket, rest = authority.partition("]")
        host += bracket
    else:
        host, colon, rest = authority.partition(":")
        rest = colon + rest
    if not rest:
        return host, default_port
    if not rest.startswith(":") or _PORT.fullmatch(rest[1:]) is None or not 0 < int(rest[1:]) <= MAX_PORT:
        raise BadTarget(f"its port must be a number from 1 to {MAX_PORT}")
    return host, int(rest[1:])


def _normalize_host(raw_host: str) -> str:
    """The host in lower case and ASCII, without a trailing dot. Raises BadTarget."""
    if raw_host.startswith("["):
        address = parse_address(raw_host[1:-1]) if raw_host.endswith("]") else None
        if address is None or address.version != 6:
            raise BadTarget("its brackets must contain an IPv6 address")
        return f"[{address}]"
    host = raw_host.lower()
    if not host.isascii() or "xn--" in host:
        try:
            host = idna.encode(raw_host, uts46=True, std3_rules=True).decode().lower()
        except (idna.IDNAError, UnicodeError):
            raise BadTarget("its host is not a valid internet name") from None
    host = host.removesuffix(".")
    labels = host.split(".")
    if len(host) > 253 or not all(_LABEL.fullmatch(label) for label in labels):
        raise BadTarget("its host is not a valid internet name")
    if _NUMBER.fullmatch(labels[-1]) is not None and parse_address(host) is None:
        raise BadTarget("an IPv4 address must be four decimal numbers")
    return host


def _refuse_unless_global(scheme: str, host: str, port: int) -> None:
    """Raises BadTarget unless it is https to a public host on an allowed port."""
    if scheme != "https":
        raise BadTarget("it must begin with https://")
    if port != DEFAULT_PORT["https"] and port < MIN_HIGH_PORT:
        raise BadTarget(f"its port must be {DEFAULT_PORT['https']}, or {MIN_HIGH_PORT} or higher")
    address = parse_address(host.strip("[]"))
    if address is not None:
        if not is_global(address):
            raise BadTarget("its address is not on the public internet")
        return
    labels = host.split(".")
    if len(labels) == 1 or labels[-1] in LOCAL_ENDINGS:
        raise BadTarget("its host exists only within a local network")
