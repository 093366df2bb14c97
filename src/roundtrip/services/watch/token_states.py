"""What pages show of tokens in lists: their symbols and their verdicts."""

import msgspec

from roundtrip.domain.base.types import Address
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.support.index_reader import reading
from roundtrip.services.support.token_states import TokenState, read_states


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
