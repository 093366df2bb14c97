"""Telegram's bot API."""

from collections.abc import Sequence
from dataclasses import dataclass

from .post import Poster, Reply

MOST_ROWS = 10


@dataclass(frozen=True, slots=True)
class Started:
    """Somebody sent the bot ``/start code`` in a chat of two. ``name``: a stranger's text."""

    update_id: int
    chat_id: int
    code: str
    name: str


class Telegram:
    """``api_url``: ``https://api.telegram.org``, or a stand-in's. The token is secret: no error has it."""

    def __init__(self, poster: Poster, token: str, api_url: str) -> None:
        raise NotImplementedError

    async def tell(self, chat_id: int, texts: Sequence[str]) -> Reply:
        """Sends plain text, a row a line, within what Telegram takes. 403 of a bot that was blocked comes as
        status 410: it is gone."""
        raise NotImplementedError

    async def name(self) -> str | None:
        """What the bot is called; None: it did not say."""
        raise NotImplementedError

    async def started(self, after: int, wait_s: int) -> tuple[list[Started], int]:
        """Who sent ``/start`` since the update ``after``, and the newest update; waits up to ``wait_s`` for
        one. Raises OSError when it could not be asked."""
        raise NotImplementedError
