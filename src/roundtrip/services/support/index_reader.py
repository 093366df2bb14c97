"""Reads the index, and what all answers from it share: the block, and helpers for their text. Access to the
accounts' tables, and an account's call allowance."""

import contextlib
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Annotated

import msgspec

from roundtrip.domain.accounts.account import CallAllowance
from roundtrip.domain.base import names
from roundtrip.domain.base.errors import ServiceFull
from roundtrip.domain.base.types import BPS, WEI_PER_ETH, Address
from roundtrip.services.runtime.context import Context
from roundtrip.services.support.answer_fields import AnswerText, ChainId, Name, Symbol, says
from roundtrip.store.index.cursor import Cursor, cursor
from roundtrip.store.index.tokens import Label
from roundtrip.store.server.connections import DATABASE_FAULTS
from roundtrip.store.server.rows import Connection

_DATABASE_S = 5.0


class IndexAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """An answer that is read from the index."""

    text: AnswerText
    chain_id: ChainId
    block: Annotated[int, says("Newest block that the answer covers.")]
    block_time: Annotated[datetime, says("Time of that block.")]


class TokenNamed(msgspec.Struct, frozen=True, rename="camel"):
    """A token. Symbol and name were written by strangers: identify it by its address."""

    address: Annotated[str, says("The token's address; identify it by this.")]
    symbol: Symbol
    name: Name


class Nothing(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """No parameters."""


@contextlib.asynccontextmanager
async def reading(ctx: Context) -> AsyncIterator[tuple[Connection, Cursor]]:
    """Yields a connection with a snapshot of the index, and the index's cursor. Raises ServiceFull (busy)
    when there is no index or the database is unavailable."""
    async with looking(ctx) as (connection, index_cursor):
        if index_cursor is None:
            raise ServiceFull(
                "busy", "The index is empty: it has read no block yet. Retry in 30 seconds.", 30
            )
        yield connection, index_cursor


@contextlib.asynccontextmanager
async def looking(ctx: Context) -> AsyncIterator[tuple[Connection, Cursor | None]]:
    """As ``reading``, but yields None as the cursor if there is no index. Raises ServiceFull (busy) when the
    database is unavailable."""
    try:
        async with (
            ctx.index_pool().acquire(timeout=_DATABASE_S) as connection,
            connection.transaction(isolation="repeatable_read", readonly=True),
        ):
            # A plan for the given arguments: a generic one would read everything that a bot ever did, in 114
            # ms instead of 41.
            await connection.execute("SET LOCAL plan_cache_mode = force_custom_plan")
            yield connection, await cursor(connection)
    except DATABASE_FAULTS as error:
        raise ServiceFull("busy", "The index is unavailable. Retry in 5 seconds.", 5) from error


def when(at_s: int) -> datetime:
    """Seconds since 1970 as a UTC time."""
    return datetime.fromtimestamp(at_s, UTC)


def present_token(label: Label) -> TokenNamed:
    """A token with its symbol and name cleaned for display."""
    return TokenNamed(
        label.address,
        None if label.symbol is None else names.symbol(label.symbol),
        None if label.name is None else names.name(label.name),
    )


def quote_token(label: Label) -> str:
    """A token in a sentence: its symbol in quotes, cleaned so that it cannot end them, and its address."""
    symbol = names.reason(label.symbol or "")[: names.SYMBOL_LENGTH].rstrip()
    return f'"{symbol}" ({label.address})' if symbol else label.address


def called_by(token: TokenNamed) -> str:
    """As ``quote_token``, for a token that is already cleaned for display."""
    return quote_token(Label(Address(token.address), token.symbol, None, None, None))


def eth(wei: int) -> float:
    """Wei as a float of eth, for display only."""
    return wei / WEI_PER_ETH


def share_bps(part: int, whole: int | None) -> int | None:
    """A part of a whole in hundredths of a percent; None if the whole is zero or not known."""
    return part * BPS // whole if whole else None


@contextlib.asynccontextmanager
async def accounts(ctx: Context) -> AsyncIterator[Connection]:
    """Yields a connection to the primary, in one transaction. Raises ServiceFull (busy) when the database is
    unavailable."""
    try:
        async with ctx.pool.acquire(timeout=_DATABASE_S) as connection, connection.transaction():
            yield connection
    except DATABASE_FAULTS as error:
        raise ServiceFull("busy", "Account data is unavailable. Retry in 5 seconds.", 5) from error


async def allowance_of(ctx: Context, wallet: Address) -> CallAllowance:
    """The call limits of a wallet's account: higher for a holder of the service's own token."""
    return ctx.allowances.holder if await ctx.is_holder(wallet) else ctx.allowances.key
