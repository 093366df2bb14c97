"""Who holds a token and who bought at its launch, of one reading."""

import msgspec

from roundtrip.chain.rpc.client import Meter
from roundtrip.services.runtime.context import Context, UseCaseAnswer

from .collect import gather_holders
from .handlers import ttl_ms
from .launch_bundle import LaunchBundle, present_launch_bundle
from .present import present
from .schema import HoldersParams, TokenHolders


class HoldersPage(msgspec.Struct, frozen=True):
    """Both answers as their tools give them, of the same block."""

    held: TokenHolders
    launched: LaunchBundle


async def holders_page(ctx: Context, params: HoldersParams) -> UseCaseAnswer[HoldersPage]:
    """Raises as ``token_holders``."""
    meter = Meter()
    gathered = await gather_holders(ctx, params.token(), meter)
    both = HoldersPage(present(gathered), present_launch_bundle(gathered))
    return UseCaseAnswer(both, ttl_ms(ctx, gathered), meter=meter)
