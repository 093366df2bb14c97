"""Watches a token, held or not: alerts report when its verdict changes. Actions of the console."""

from datetime import UTC, datetime
from typing import Annotated

import msgspec

from roundtrip.domain.accounts.account import Account
from roundtrip.domain.base.errors import CallerFault
from roundtrip.domain.watch.alerts import MAX_WATCHED
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.support.accounts_database import accounts
from roundtrip.services.support.answer_fields import says
from roundtrip.services.support.index_reader import Nothing
from roundtrip.services.support.strangers_text import AnswerText
from roundtrip.services.support.token_states import TokenState, read_states
from roundtrip.services.support.wallet_params import WalletParams
from roundtrip.store.server.rows import Connection
from roundtrip.store.watch import watches
from roundtrip.store.watch.watches import TooManyWatches


class WatchedTokenRow(TokenState, frozen=True):
    """A token that the account watches."""

    since: Annotated[datetime, says("When you began to watch it.")]


class WatchedTokens(msgspec.Struct, frozen=True):
    """The tokens that the account watches."""

    text: AnswerText
    tokens: Annotated[list[WatchedTokenRow], says(f"At most {MAX_WATCHED}, the newest first.")]


async def watched_tokens(ctx: Context, params: Nothing, account: Account) -> UseCaseAnswer[WatchedTokens]:
    """The tokens that the account watches. Raises ServiceFull."""
    async with accounts(ctx) as connection:
        rows = await _rows(ctx, connection, account)
    text = "You get an alert when the verdict of one of these tokens changes." if rows else _NONE
    return UseCaseAnswer(WatchedTokens(text, rows))


async def watch_token(ctx: Context, params: WalletParams, account: Account) -> UseCaseAnswer[WatchedTokens]:
    """Watches a token. Raises CallerFault (bad_address, bad_input), ServiceFull."""
    token, now = params.wallet(), datetime.fromtimestamp(ctx.now_s(), UTC)
    async with accounts(ctx) as connection:
        try:
            await watches.add_token(connection, account.id, token, now)
        except TooManyWatches as error:
            raise CallerFault(
                "bad_input",
                f"You watch {error.most} tokens, the maximum. Stop watching one on your page Watch first.",
            ) from None
        rows = await _rows(ctx, connection, account)
    return UseCaseAnswer(
        WatchedTokens(f"You watch {token}: you get an alert when its verdict changes.", rows)
    )


async def unwatch_token(ctx: Context, params: WalletParams, account: Account) -> UseCaseAnswer[WatchedTokens]:
    """Ends watching a token. Raises CallerFault (bad_address), ServiceFull."""
    token = params.wallet()
    async with accounts(ctx) as connection:
        await watches.remove_token(connection, account.id, token)
        rows = await _rows(ctx, connection, account)
    return UseCaseAnswer(WatchedTokens(f"You no longer watch {token}.", rows))


_NONE = "You watch no token."


async def _rows(ctx: Context, connection: Connection, account: Account) -> list[WatchedTokenRow]:
    watched = await watches.list_tokens(connection, account.id)
    states = await read_states(connection, [one.token for one in watched], ctx.now_s())
    return [
        WatchedTokenRow(states[one.token].token, states[one.token].verdict, one.made_at) for one in watched
    ]
