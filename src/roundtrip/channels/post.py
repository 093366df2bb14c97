"""One POST to a stranger's server, which may answer what and when it likes."""

from collections.abc import Mapping
from dataclasses import dataclass

from .targets import Target

TIMEOUT_S = 10.0
MOST_READ = 16 * 1024


@dataclass(frozen=True, slots=True)
class Reply:
    """``status`` None: there was no answer, and ``error`` says why in words of ours. ``retry_after_s``: as
    the answer wishes, at least 0. ``read``: the beginning of the answer's body."""

    status: int | None
    error: str | None
    retry_after_s: float | None
    took_ms: int
    read: bytes = b""

    @property
    def ok(self) -> bool:
        """Only 2xx is success."""
        return self.status is not None and 200 <= self.status < 300


class Poster:
    """``loopback``: as in ``targets.target``. A context manager: it owns its connections."""

    def __init__(self, loopback: frozenset[str] = frozenset(), timeout_s: float = TIMEOUT_S) -> None:
        raise NotImplementedError

    async def __aenter__(self) -> "Poster":
        raise NotImplementedError

    async def __aexit__(self, *_: object) -> None:
        raise NotImplementedError

    async def post(self, to: Target, body: bytes, headers: Mapping[str, str]) -> Reply:
        """Never raises for what the other side does. No redirect is followed; the address really connected to
        is looked at, at every connect."""
        raise NotImplementedError
