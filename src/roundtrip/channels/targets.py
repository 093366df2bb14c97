"""Where may be sent to. What a stranger names as a target is a stranger's text."""

from dataclasses import dataclass


class BadTarget(Exception):
    """Nothing is sent there; the text says why, to whoever named it."""


@dataclass(frozen=True, slots=True)
class Target:
    """``host``: as it stands in the url, in lower case and ASCII; ``url``: as it is requested."""

    url: str
    host: str
    port: int


def target(text: str, loopback: frozenset[str] = frozenset()) -> Target:
    """``loopback``: hosts with their ports (``127.0.0.1:9000``, ``localhost:9000``) that may be reached by
    http and https, though they are here. Raises BadTarget."""
    raise NotImplementedError
