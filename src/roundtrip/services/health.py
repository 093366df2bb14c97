"""Is the service keeping up with the chain."""

import msgspec

from roundtrip.domain.errors import RoundtripError
from roundtrip.domain.price import usd_per_eth

from .context import Answered, Context


class HealthParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Nothing to ask."""


class Health(msgspec.Struct, frozen=True, rename="camel"):
    """``head``: the newest block known. ``ok`` false: the service has fallen behind the chain."""

    ok: bool
    head: int
    blocks_behind: int
    eth_usd: float | None


async def health(ctx: Context, params: HealthParams) -> Answered[Health]:
    """Never fails: a chain that does not answer makes ``ok`` false."""
    try:
        head = ctx.heads.current()
    except RoundtripError:
        return Answered(Health(ok=False, head=ctx.heads.last_number(), blocks_behind=0, eth_usd=None))
    price = usd_per_eth(head.market, ctx.policy)
    return Answered(
        Health(
            ok=True,
            head=head.block.number,
            blocks_behind=0,
            eth_usd=None if price is None else float(price),
        )
    )
