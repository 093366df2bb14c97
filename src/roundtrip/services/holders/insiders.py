"""Keeps which share of a token its insiders hold, for boards."""

from datetime import UTC, datetime

import structlog

from roundtrip.domain.base.types import Address
from roundtrip.domain.market.exposure import INSIDERS_MINDED_BPS
from roundtrip.services.runtime.context import Context
from roundtrip.store.boards.exposures import put_insiders
from roundtrip.store.server.errors import DATABASE_FAULTS

from .schema import TokenHolders

_WRITE_S = 5.0
log = structlog.get_logger(__name__)


async def keep_insiders(ctx: Context, held: TokenHolders) -> None:
    """Stores the share; where the database does not answer, the next reading does it."""
    at = datetime.fromtimestamp(ctx.now_s(), UTC)
    try:
        async with ctx.pool.acquire(timeout=_WRITE_S) as connection:
            await put_insiders(connection, Address(held.address), share_bps(held), at)
    except DATABASE_FAULTS as error:
        log.warning("the insiders' share could not be stored", error=repr(error))


def share_bps(held: TokenHolders) -> int | None:
    """What the deployer, launch buyers and wallets that the deployer funded hold together, or what the
    largest purse holds where that is more. None: not known. A small share is only known if everything was
    read, and none at all only if the deployer is known."""
    share = held.forensics.suspicious_bps
    if share is None:
        return None
    purses = held.forensics.purses
    share = max([share, *(() if purses is None else (purse.held_bps for purse in purses.rows[:1]))])
    if held.status != "complete" and share < INSIDERS_MINDED_BPS:
        return None
    return None if held.deployer is None and not share else share
