"""Is the service keeping up with the chain, and what does it have to do without."""

import contextlib

import asyncpg
import msgspec

from roundtrip.chain.doctor import NEEDED
from roundtrip.domain.errors import RoundtripError
from roundtrip.domain.price import usd_per_eth

from .context import Answered, Context

_DATABASE_S = 1.0


class HealthParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Nothing to ask."""


class Lack(msgspec.Struct, frozen=True):
    """What does not work, or in part only, and what that costs."""

    what: str
    costs: str


class Health(msgspec.Struct, frozen=True, rename="camel"):
    """``head``: the newest block known. ``ok`` false: the service has fallen behind the chain, or cannot make
    a check at all. ``lacks``: what it does without."""

    ok: bool
    head: int
    blocks_behind: int
    eth_usd: float | None
    lacks: list[Lack]


async def health(ctx: Context, params: HealthParams) -> Answered[Health]:
    """Never fails: a chain that does not answer makes ``ok`` false."""
    lacks, needed = await _lacks(ctx)
    try:
        head = ctx.heads.current()
    except RoundtripError:
        number = ctx.heads.last_number()
        return Answered(Health(ok=False, head=number, blocks_behind=0, eth_usd=None, lacks=lacks))
    price = usd_per_eth(head.market, ctx.policy)
    return Answered(
        Health(
            ok=not needed and head.dialect is not None,
            head=head.block.number,
            blocks_behind=0,
            eth_usd=None if price is None else float(price),
            lacks=lacks,
        )
    )


async def _lacks(ctx: Context) -> tuple[list[Lack], bool]:
    """What is missing, and whether no check can be made without it."""
    found = [Lack(row.what, row.costs) for row in ctx.lacks()]
    needed = any(row.what in NEEDED and row.state == "missing" for row in ctx.lacks())
    if await _keeps(ctx):
        return found, needed
    return [*found, Lack("database", "every check: its evidence cannot be kept")], True


async def _keeps(ctx: Context) -> bool:
    """Whether the database answers; where every connection is at work, it does."""
    try:
        connection = await ctx.pool.acquire(timeout=_DATABASE_S)
    except TimeoutError:
        return bool(ctx.pool.get_size() >= ctx.pool.get_max_size())
    except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
        return False
    try:
        await connection.fetchval("SELECT 1", timeout=_DATABASE_S)
    except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError):
        return False
    finally:
        with contextlib.suppress(OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError):
            await ctx.pool.release(connection, timeout=_DATABASE_S)
    return True
