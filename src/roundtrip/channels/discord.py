"""Discord's incoming webhooks."""

from collections.abc import Sequence

from .targets import Target

MOST_ROWS = 10


def is_discord(to: Target) -> bool:
    """Whether it is a webhook of Discord's own host."""
    raise NotImplementedError


def message(texts: Sequence[str]) -> tuple[bytes, dict[str, str]]:
    """Body and headers: plain text that pings nobody, a row a line, within what Discord takes."""
    raise NotImplementedError
