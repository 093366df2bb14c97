"""The state of a token in lists of pages: its symbol and its verdict."""

from collections.abc import Collection

import msgspec

from roundtrip.domain.base.types import Address
from roundtrip.services.support.index_reader import TokenNamed, present_token
from roundtrip.services.support.shown_verdict import ShownVerdict, present_stored
from roundtrip.store.boards.newest_checks import read_shown_checks
from roundtrip.store.index.tokens import labels_of
from roundtrip.store.server.rows import Connection


class TokenState(msgspec.Struct, frozen=True):
    """A token and the check of it that people are shown. ``verdict`` None: no check is stored. An old one has
    level unknown."""

    token: TokenNamed
    verdict: ShownVerdict | None


async def read_states(
    connection: Connection, tokens: Collection[Address], now_s: float
) -> dict[str, TokenState]:
    """The state of each of these tokens, by address."""
    checks, labels = await read_shown_checks(connection, tokens), await labels_of(connection, tokens)
    return {
        token: TokenState(present_token(labels[token]), present_stored(checks[token], now_s))
        for token in set(tokens)
    }
