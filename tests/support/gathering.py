"""A check at the followed head, up to its evidence."""

from roundtrip.chain.rpc.client import Meter
from roundtrip.domain.base.types import Address
from roundtrip.domain.check.evidence import Evidence
from roundtrip.services.engine.token_check import check_token
from roundtrip.services.runtime.context import Context


async def gather_evidence(ctx: Context, token: Address, meter: Meter, *, deep: bool = False) -> Evidence:
    return (await check_token(ctx, token, meter, deep, head=ctx.heads.current())).evidence
