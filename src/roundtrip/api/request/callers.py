"""Identifies the caller of a request by its address and key.

Makes request ids, which are written to every log line and the answer of a request. A caller's own
``x-request-id`` is ignored: it could be any text in the log, or another request's id.

Removes API keys and session tokens from request paths before anything else reads the path."""

import asyncio
import functools
import re
from collections.abc import Coroutine, Iterable
from contextvars import Context
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from random import Random
from typing import Any
from urllib.parse import quote, unquote

import msgspec
from starlette.types import Scope
from structlog.contextvars import bind_contextvars, get_contextvars

from roundtrip.domain.accounts.keys import PREFIX

_KEY_BEGINS = PREFIX.encode()
_MAX_NAME = 64
_MAX_HOSTS = 10_000

Headers = Iterable[tuple[bytes, bytes]]


class CallerRequest(msgspec.Struct, frozen=True):
    """The caller of a request, unauthenticated. ``name``: what its calls are counted under without a key.
    ``key``: unvalidated. ``two_keys``: the request has different keys, and none of them counts.
    ``by_cookie``: the key is a session's, which is valid in cookies only. ``networks``: the networks around
    its address, each with how many addresses' calls it may make. ``is_local``: it calls from this machine.
    ``in_view``: the call is part of a page, whose view is counted instead."""

    name: str
    key: str | None = None
    two_keys: bool = False
    by_cookie: bool = False
    networks: tuple[tuple[str, int], ...] = ()
    is_local: bool = False
    in_view: bool = False

    def without_key(self) -> "CallerRequest":
        """The same caller, as if the request carried no key."""
        return msgspec.structs.replace(self, key=None, two_keys=False, by_cookie=False)

    def __repr__(self) -> str:
        # Whoever logs it must not log a key.
        return f"CallerRequest({self.name!r})"


@dataclass(frozen=True, slots=True)
class Callers:
    """Identifies callers. ``trusted_proxies``: only their X-Forwarded-For is believed."""

    trusted_proxies: tuple[IPv4Network | IPv6Network, ...] = ()

    def identify(
        self, headers: Headers, client: tuple[str, int] | None, path_key: str | None = None
    ) -> CallerRequest:
        """The caller. ``path_key``: the key at the end of the request's path."""
        key, two_keys = (None if path_key is None else path_key.encode()), False
        for name, value in headers:
            if name == b"x-api-key":
                shown: bytes | None = value.strip()
            elif name == b"authorization":
                shown = _authorization_key(value)
            else:
                continue
            two_keys = two_keys or (key is not None and shown is not None and shown != key)
            key = key if shown is None else shown
        base = keyless(self.host(headers, client))
        if key is None:
            return base
        if two_keys:
            return CallerRequest(base.name, two_keys=True, networks=base.networks, is_local=base.is_local)
        return CallerRequest(base.name, key.decode("latin-1"), networks=base.networks, is_local=base.is_local)

    def host(self, headers: Headers, client: tuple[str, int] | None) -> str | None:
        """The client's address: the one that trusted proxies name, else the connection's."""
        host = client[0] if client else None
        if not self.trusted_proxies or not self._is_trusted(host):
            return host
        forwarded = b""
        for name, value in headers:
            if name == b"x-forwarded-for":
                forwarded = value
        return self._first_untrusted(forwarded.decode("latin-1").split(",")) if forwarded else host

    def _is_trusted(self, host: str | None) -> bool:
        address = parse_host(host)
        return address is not None and any(address in network for network in self.trusted_proxies)

    def _first_untrusted(self, hops: list[str]) -> str | None:
        """The rightmost hop that is not a trusted proxy. The client could have written any hop left of it."""
        for hop in reversed(hops):
            if not self._is_trusted(hop.strip()):
                return hop.strip()
        return hops[0].strip() or None


def _authorization_key(value: bytes) -> bytes | None:
    """The key that the header shows; None: it shows none."""
    scheme, *rest = value.split(None, 1) or [b""]
    if scheme.lower() == b"bearer":
        return b"".join(rest).strip()
    # A key without "Bearer": it counts, so that its owner is not treated as anonymous.
    return value.strip() if scheme.startswith(_KEY_BEGINS) else None


def parse_host(host: str | None) -> IPv4Address | IPv6Address | None:
    """Parses an address, with or without a port; a v4-mapped one becomes IPv4. None: it is not an address."""
    text = host or ""
    if text.startswith("["):
        text = text[1:].split("]")[0]
    elif text.count(":") == 1:
        text = text.split(":")[0]
    try:
        address = ip_address(text)
    except ValueError:
        return None
    return (address.ipv4_mapped or address) if isinstance(address, IPv6Address) else address


@functools.lru_cache(maxsize=_MAX_HOSTS)
def anonymous(host: str | None) -> str:
    """The name that an address's calls are counted under: IPv4 whole, IPv6 by its /64, v4-mapped IPv6 as
    IPv4."""
    address = parse_host(host)
    if address is None:
        # Text from a proxy: it may have any length, and contain NUL, which the database cannot store.
        return f"address:{(host or 'unknown')[:_MAX_NAME].replace(chr(0), '')}"
    if isinstance(address, IPv4Address):
        return f"address:{address}"
    return f"address:{int(address) >> 64:x}/64"


_WIDER_V4, _WIDER_V6 = ((24, 8),), ((56, 4), (48, 16))
"""Networks around an address: prefix length, and how many addresses' calls each may make. One customer of a
provider often has a whole /56 of IPv6, and may rent a /24 of IPv4."""


@functools.lru_cache(maxsize=_MAX_HOSTS)
def networks(host: str | None) -> tuple[tuple[str, int], ...]:
    """The networks around an address, with their factors; empty if ``host`` is not an address."""
    address = parse_host(host)
    if address is None:
        return ()
    wider = _WIDER_V4 if isinstance(address, IPv4Address) else _WIDER_V6
    bits = address.max_prefixlen
    return tuple(
        (f"network:{int(address) >> (bits - length):x}/{length}", factor) for length, factor in wider
    )


@functools.lru_cache(maxsize=_MAX_HOSTS)
def is_loopback(host: str | None) -> bool:
    """Whether an address is a loopback address."""
    address = parse_host(host)
    return address is not None and address.is_loopback


@functools.lru_cache(maxsize=_MAX_HOSTS)
def keyless(host: str | None) -> CallerRequest:
    """The caller of a request without a key from this address."""
    return CallerRequest(anonymous(host), networks=networks(host), is_local=is_loopback(host))


HEADER = b"x-request-id"
_IN_LOGS = "request"
_CHANCE = Random()  # noqa: S311


def start_request() -> str:
    """Binds a new request id to the current task and to the tasks that it starts from now on; returns it."""
    request = new_id()
    bind_contextvars(**{_IN_LOGS: request})
    return request


def start_detached_task(work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
    """Starts a task in an empty context: it serves many requests, so its log lines carry no request id."""
    return asyncio.create_task(work, name=name, context=Context())


def request_id() -> str:
    """The current request's id; a new one outside of a request."""
    return get_contextvars().get(_IN_LOGS) or new_id()


def new_id() -> str:
    """12 random hex digits. They need not be unguessable: an id gives access to nothing."""
    return f"{_CHANCE.getrandbits(48):012x}"


PATH_KEY = "roundtrip.path_key"
"""The scope entry that holds the key of ``/mcp/{key}``."""

_TOOL_SERVER = "/mcp/"
_LOOKS_LIKE_A_KEY = re.compile("(rt_|rs_(?=[0-9A-Za-z]{20}))[^/&?#=]*")
"""``rs_`` must be followed by 20 more characters, because many words end with it."""
_SLASH = re.compile(rb"%2f", re.IGNORECASE)


def hide_keys(scope: Scope) -> None:
    """Removes keys from a request's path and query, in place, so that no log, trace or error contains them.
    An encoded slash stays part of its segment."""
    path, query = scope["path"], scope.get("query_string", b"")
    if b"%2f" in scope.get("raw_path", b"").lower():
        path = unquote(_SLASH.sub(b"%252F", scope["raw_path"]).decode("latin-1"))
        scope["path"] = path
    if path.startswith(_TOOL_SERVER):
        key = path[len(_TOOL_SERVER) :]
        is_key = key and "/" not in key
        if is_key:
            scope[PATH_KEY] = key
        # Nothing is at /mcp/-: what cannot be a key may still contain one.
        _set_path(scope, "/mcp" if is_key else "/mcp/-")
    elif _LOOKS_LIKE_A_KEY.search(path):
        _set_path(scope, _LOOKS_LIKE_A_KEY.sub(r"\1", path))
    query_text = query.decode("latin-1")
    if _LOOKS_LIKE_A_KEY.search(query_text):
        scope["query_string"] = _LOOKS_LIKE_A_KEY.sub(r"\1", query_text).encode("latin-1")


def _set_path(scope: Scope, path: str) -> None:
    scope["path"] = path
    scope["raw_path"] = quote(path).encode()
