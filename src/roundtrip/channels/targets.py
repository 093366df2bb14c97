"""Where may be sent to. What a stranger names as a target is a stranger's text."""

import re
from dataclasses import dataclass, field

import idna

from .address_policy import is_global, parse_address

MOST_CHARACTERS = 300
LEAST_HIGH_PORT, MOST_PORT = 1024, 65_535
"""Beside 443: below lie mail, shells and their like, which a POST might be made to speak to."""
DEFAULT_PORT = {"https": 443, "http": 80}
LOCAL_ENDINGS = frozenset(
    {"arpa", "corp", "home", "internal", "intranet", "invalid", "lan", "local", "localdomain", "localhost"}
    | {"onion", "private"}
)
"""Last labels of names that mean something within a network only."""

_URL = re.compile(r"(https?)://([^/?#]*)([^#]*)", re.IGNORECASE)
_PATH = re.compile(r"[!$-;=?-\[\]_a-z~]*")
_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
_PORT = re.compile(r"[0-9]{1,5}")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")


class BadTarget(Exception):
    """Nothing is sent there; the text says why, to whoever named it."""


@dataclass(frozen=True, slots=True)
class Target:
    """``host``: as it stands in the url, in lower case and ASCII, an IPv6 address in its brackets; ``url``:
    as it is requested. It is not shown: it may hold what only its owner should know."""

    url: str = field(repr=False)
    host: str
    port: int


def target(text: str, loopback: frozenset[str] = frozenset()) -> Target:
    """``loopback``: hosts with their ports (``127.0.0.1:9000``, ``localhost:9000``) that may be reached by
    http and https, though they are here. Raises BadTarget."""
    if len(text) > MOST_CHARACTERS:
        raise BadTarget(f"a url has at most {MOST_CHARACTERS} characters")
    found = _URL.fullmatch(text)
    if found is None:
        raise BadTarget("a url begins with https://, has a host, and no part after a #")
    scheme, authority, path = found[1].lower(), found[2], found[3]
    if "@" in authority:
        raise BadTarget("a url has no user or password in it")
    if _PATH.fullmatch(path) is None:
        raise BadTarget("after the host a url has ASCII letters, digits and punctuation only")
    named, port = _split(authority, DEFAULT_PORT[scheme])
    host = _host(named)
    at = f"{host}:{port}"
    if at not in loopback:
        _refuse_unless_global(scheme, host, port)
    shown = host if port == DEFAULT_PORT[scheme] else at
    return Target(f"{scheme}://{shown}{path if path.startswith('/') else '/' + path}", host, port)


def _split(authority: str, default_port: int) -> tuple[str, int]:
    """Host and port. Raises BadTarget."""
    if authority.startswith("["):
        host, bracket, rest = authority.partition("]")
        host += bracket
    else:
        host, colon, rest = authority.partition(":")
        rest = colon + rest
    if not rest:
        return host, default_port
    if not rest.startswith(":") or _PORT.fullmatch(rest[1:]) is None or not 0 < int(rest[1:]) <= MOST_PORT:
        raise BadTarget(f"a port is a number up to {MOST_PORT}")
    return host, int(rest[1:])


def _host(named: str) -> str:
    """In lower case and ASCII, without the dot at the end. Raises BadTarget."""
    if named.startswith("["):
        address = parse_address(named[1:-1]) if named.endswith("]") else None
        if address is None or address.version != 6:
            raise BadTarget("what stands in brackets is no IPv6 address")
        return f"[{address}]"
    host = named.lower()
    if not host.isascii() or "xn--" in host:
        try:
            host = idna.encode(named, uts46=True, std3_rules=True).decode().lower()
        except (idna.IDNAError, UnicodeError):
            raise BadTarget("the host is not a name of the internet") from None
    host = host.removesuffix(".")
    labels = host.split(".")
    if len(host) > 253 or not all(_LABEL.fullmatch(label) for label in labels):
        raise BadTarget("the host is not a name of the internet")
    if _NUMBER.fullmatch(labels[-1]) is not None and parse_address(host) is None:
        raise BadTarget("an address is written as four decimal numbers")
    return host


def _refuse_unless_global(scheme: str, host: str, port: int) -> None:
    """Raises BadTarget."""
    if scheme != "https":
        raise BadTarget("a url begins with https://")
    if port != DEFAULT_PORT["https"] and port < LEAST_HIGH_PORT:
        raise BadTarget(f"the port is {DEFAULT_PORT['https']}, or one from {LEAST_HIGH_PORT} up")
    address = parse_address(host.strip("[]"))
    if address is not None:
        if not is_global(address):
            raise BadTarget("that address is not one of the internet")
        return
    labels = host.split(".")
    if len(labels) == 1 or labels[-1] in LOCAL_ENDINGS:
        raise BadTarget("that host is known within a network only")
