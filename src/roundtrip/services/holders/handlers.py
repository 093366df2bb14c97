"""Who holds a token, and how they came by it; which of them win elsewhere; who bought at its launch."""

from roundtrip.chain.rpc.client import Meter
from roundtrip.services.runtime.context import Context, UseCaseAnswer

from .collect import gather_holders
from .findings import HolderRecord
from .launch_bundle import LaunchBundle, present_launch_bundle
from .present import present
from .schema import HoldersParams, TokenHolders
from .smart_money import SmartMoney, present_smart_money

_READING_TTL_MS = 2000
"""Who waits for a busy token's whole answer does not wait for an answer without it to grow old."""


async def token_holders(ctx: Context, params: HoldersParams) -> UseCaseAnswer[TokenHolders]:
    """The whole answer, as far as it is read. Raises CallerFault (bad_address, not_a_token), NodeFault,
    ReadFailed (holders_failed), ServiceFull."""
    meter = Meter()
    gathered = await gather_holders(ctx, params.token(), meter)
    return UseCaseAnswer(present(gathered), ttl_ms(ctx, gathered), meter=meter)


def ttl_ms(ctx: Context, gathered: HolderRecord) -> int:
    """How long an answer is shared."""
    return _READING_TTL_MS if gathered.status == "reading" else ctx.policy.answer_ttl_ms


async def smart_money(ctx: Context, params: HoldersParams) -> UseCaseAnswer[SmartMoney]:
    """Of it, which winners hold the token. Raises as ``token_holders``."""
    meter = Meter()
    gathered = await gather_holders(ctx, params.token(), meter)
    return UseCaseAnswer(present_smart_money(gathered), ttl_ms(ctx, gathered), meter=meter)


async def launch_bundle(ctx: Context, params: HoldersParams) -> UseCaseAnswer[LaunchBundle]:
    """Of it, who bought in the launch window. Raises as ``token_holders``."""
    meter = Meter()
    gathered = await gather_holders(ctx, params.token(), meter)
    return UseCaseAnswer(present_launch_bundle(gathered), ttl_ms(ctx, gathered), meter=meter)
