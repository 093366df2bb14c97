"""Access to the accounts' tables, and an account's call allowance."""

import contextlib
from collections.abc import AsyncIterator

from roundtrip.domain.accounts.account import CallAllowance
from roundtrip.domain.base.errors import ServiceFull
from roundtrip.domain.base.types import Address
from roundtrip.services.runtime.context import Context
from roundtrip.store.server.errors import DATABASE_FAULTS
from roundtrip.store.server.rows import Connection

_DATABASE_S = 5.0


@contextlib.asynccontextmanager
async def accounts(ctx: Context) -> AsyncIterator[Connection]:
    """A connection in one transaction. Raises ServiceFull (busy) when the database is unavailable."""
    try:
        async with ctx.pool.acquire(timeout=_DATABASE_S) as connection, connection.transaction():
            yield connection
    except DATABASE_FAULTS as error:
        raise ServiceFull("busy", "Account data is unavailable. Retry in 5 seconds.", 5) from error


async def allowance_of(ctx: Context, wallet: Address) -> CallAllowance:
    """The call limits of a wallet's account: higher for a holder of the service's own token."""
    return ctx.allowances.holder if await ctx.is_holder(wallet) else ctx.allowances.key
