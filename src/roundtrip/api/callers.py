"""Who asks, as far as a request tells."""

from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network

from roundtrip.domain.errors import CallerFault

from .dispatch import Caller
from .limits import anonymous, parsed

Headers = Iterable[tuple[bytes, bytes]]


@dataclass(frozen=True, slots=True)
class Callers:
    """``trusted_proxies``: only from these is X-Forwarded-For believed."""

    anonymous_per_minute: int
    trusted_proxies: tuple[IPv4Network | IPv6Network, ...] = ()

    def identify(self, headers: Headers, client: tuple[str, int] | None) -> Caller:
        """The caller. Raises CallerFault (bad_key) for a key that is not live."""
        host = client[0] if client else None
        forwarded = b""
        for name, value in headers:
            if name == b"x-api-key" or (name == b"authorization" and value[:7].lower() == b"bearer "):
                raise CallerFault("bad_key", "This key is not live.")
            if name == b"x-forwarded-for":
                forwarded = value
        if forwarded and self._trusted(host):
            host = self._first_untrusted(forwarded.decode("latin-1").split(","))
        return Caller(anonymous(host), self.anonymous_per_minute)

    def _trusted(self, host: str | None) -> bool:
        address = parsed(host)
        return address is not None and any(address in network for network in self.trusted_proxies)

    def _first_untrusted(self, hops: list[str]) -> str | None:
        """The nearest hop that is no proxy of ours: what stands further left, its sender could write."""
        for hop in reversed(hops):
            if not self._trusted(hop.strip()):
                return hop.strip()
        return hops[0].strip() or None
