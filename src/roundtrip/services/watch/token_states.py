"""What pages show of tokens in lists: their symbols and their verdicts."""

from collections.abc import Collection

import msgspec

from roundtrip.domain.base.types import Address
from roundtrip.services.boards.shown_verdict import ShownVerdict, present_stored
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.support.index_reader import TokenNamed, present_token, reading
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


class StatesParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which tokens, by address in lower case."""

    tokens: list[str]


class TokenStates(msgspec.Struct, frozen=True):
    """The state of each of those tokens, by address."""

    states: dict[str, TokenState]


async def token_states(ctx: Context, params: StatesParams) -> UseCaseAnswer[TokenStates]:
    """The states of some dozens of tokens, for a page. Raises ServiceFull (busy)."""
    async with reading(ctx) as (connection, _):
        tokens = [Address(token) for token in params.tokens]
        return UseCaseAnswer(TokenStates(await read_states(connection, tokens, ctx.now_s())))
