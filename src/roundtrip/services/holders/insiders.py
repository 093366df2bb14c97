"""Stores and reads which share of a token its insiders hold, for boards and pages."""

from datetime import UTC, datetime

import msgspec
import structlog

from roundtrip.domain.base.errors import ServiceFull
from roundtrip.domain.base.types import Address
from roundtrip.domain.market.exposure import INSIDERS_MINDED_BPS, LeavingLiquidity
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.support.answer_fields import TokenParams
from roundtrip.store.boards.moving import put_insiders, read_exposures
from roundtrip.store.boards.price_candles import is_traded
from roundtrip.store.server.connections import DATABASE_FAULTS

from .schema import TokenHolders

_WAIT_S = 5.0
log = structlog.get_logger(__name__)


class StoredRisk(msgspec.Struct, frozen=True, rename="camel"):
    """What was read lately; None: not known. ``insiders_bps``: what insiders held. ``leaving``: what of the
    liquidity can be withdrawn. ``is_traded``: the index has a trade of it."""

    insiders_bps: int | None = None
    leaving: LeavingLiquidity | None = None
    is_traded: bool = False


async def stored_risk(ctx: Context, params: TokenParams) -> UseCaseAnswer[StoredRisk]:
    """What is stored of the token: nothing is read from the chain. Raises CallerFault (bad_address),
    ServiceFull (busy)."""
    token = params.token()
    try:
        async with ctx.pool.acquire(timeout=_WAIT_S) as connection:
            exposure = (await read_exposures(connection, [token]))[token]
            traded = await is_traded(connection, token)
    except DATABASE_FAULTS as error:
        raise ServiceFull(
            "busy", "What is stored of this token cannot be read now; retry in 5 s.", 5
        ) from error
    now_s = ctx.now_s()
    return UseCaseAnswer(StoredRisk(exposure.insiders(now_s), exposure.liquidity(now_s), traded))


async def keep_insiders(ctx: Context, held: TokenHolders) -> None:
    """Stores the share. Where the database does not answer, only the next reading of the holders stores
    it."""
    at = datetime.fromtimestamp(ctx.now_s(), UTC)
    try:
        async with ctx.pool.acquire(timeout=_WAIT_S) as connection:
            await put_insiders(connection, Address(held.address), share_bps(held), at)
    except DATABASE_FAULTS as error:
        log.warning("the insiders' share could not be stored", error=repr(error))


def share_bps(held: TokenHolders) -> int | None:
    """What insiders hold together. None: not known. A small share is only known if everything was read, and
    none at all only if the deployer is known."""
    share = held.forensics.suspicious_bps
    if share is None:
        return None
    if held.status != "complete" and share < INSIDERS_MINDED_BPS:
        return None
    return None if held.deployer is None and not share else share
