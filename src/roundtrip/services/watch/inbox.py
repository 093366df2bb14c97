"""Shows an account its alerts, and tokens with their verdicts for lists of pages. Watches a token, held or
not: alerts report when its verdict changes."""

from datetime import UTC, datetime, timedelta
from typing import Annotated

import msgspec

from roundtrip.domain.accounts.account import Account
from roundtrip.domain.base.errors import CallerFault
from roundtrip.domain.base.figures import format_count
from roundtrip.domain.base.types import Address
from roundtrip.domain.watch.alerts import INBOX_S, MAX_WATCHED
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.support.alert_rows import RETRACTED, AlertRow, rows
from roundtrip.services.support.answer_fields import AnswerText, TokenParams, says
from roundtrip.services.support.index_reader import Nothing, accounts, reading
from roundtrip.services.support.shown_verdict import TokenState, read_states
from roundtrip.store.server.rows import Connection
from roundtrip.store.watch import alerts as store
from roundtrip.store.watch import watches
from roundtrip.store.watch.watches import TooManyWatches

MAX_ROWS = 500
_QUOTED = 3
"""Rows that the text quotes; every row has its own sentence."""


class Inbox(msgspec.Struct, frozen=True, rename="camel"):
    """The alerts of the last seven days, the newest first."""

    text: AnswerText
    total: Annotated[int, says("Alerts in all, listed or not.")]
    at_least: Annotated[bool, says("true: there are more than total.")]
    rows: Annotated[list[AlertRow], says("The newest 500, the newest first.")]


class InboxFeed(Inbox, frozen=True, rename="camel", kw_only=True):
    """The inbox with its tokens as they stand now, for its page."""

    tokens: list[TokenState]


async def inbox_feed(ctx: Context, params: Nothing, account: Account) -> UseCaseAnswer[InboxFeed]:
    """The account's inbox, and the state of each token in it. Raises ServiceFull."""
    found = (await inbox(ctx, params, account)).answer
    tokens = {Address(row.token) for row in found.rows if row.token is not None}
    async with accounts(ctx) as connection:
        states = await read_states(connection, tokens, ctx.now_s())
    return UseCaseAnswer(InboxFeed(**msgspec.structs.asdict(found), tokens=list(states.values())))


async def inbox(ctx: Context, params: Nothing, account: Account) -> UseCaseAnswer[Inbox]:
    """The account's alerts of the last seven days. Raises ServiceFull."""
    since = datetime.fromtimestamp(ctx.now_s(), UTC) - timedelta(seconds=INBOX_S)
    async with accounts(ctx) as connection:
        alerts, total = await store.newest(connection, account.id, since, MAX_ROWS)
    shown = rows(alerts, ctx.outward.public_url)
    at_least, total = total > store.MAX_COUNTED, min(total, store.MAX_COUNTED)
    return UseCaseAnswer(Inbox(_text(shown, total, at_least), total, at_least, shown))


def _text(shown: list[AlertRow], total: int, at_least: bool) -> str:
    if not shown:
        return "You got no alert within the last seven days."
    at_least_text = "At least " if at_least else ""
    sentences = [f"{at_least_text}{format_count(total, 'alert')} within the last seven days."]
    if total > len(shown):
        sentences.append(f"The rows hold the newest {len(shown)}.")
    retracted = sum(row.verb == RETRACTED for row in shown)
    if retracted:
        sentences.append(f"{format_count(retracted, 'row')} retracted by a reorg.")
    return "\n".join([" ".join([*sentences, "The newest:"]), *(row.text for row in shown[:_QUOTED])])


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


async def watch_token(ctx: Context, params: TokenParams, account: Account) -> UseCaseAnswer[WatchedTokens]:
    """Watches a token. Raises CallerFault (bad_address, bad_input), ServiceFull."""
    token, now = params.token(), datetime.fromtimestamp(ctx.now_s(), UTC)
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


async def unwatch_token(ctx: Context, params: TokenParams, account: Account) -> UseCaseAnswer[WatchedTokens]:
    """Ends watching a token. Raises CallerFault (bad_address), ServiceFull."""
    token = params.token()
    async with accounts(ctx) as connection:
        await watches.remove_token(connection, account.id, token)
        rows = await _rows(ctx, connection, account)
    return UseCaseAnswer(WatchedTokens(f"You no longer watch {token}.", rows))


_NONE = "You watch no token."


async def _rows(ctx: Context, connection: Connection, account: Account) -> list[WatchedTokenRow]:
    watched = await watches.list_tokens(connection, account.id)
    states = await read_states(connection, list(watched), ctx.now_s())
    return [
        WatchedTokenRow(states[token].token, states[token].verdict, made_at)
        for token, made_at in watched.items()
    ]
