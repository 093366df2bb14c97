"""Who holds a token, and how they came by it; which of them win elsewhere; who bought at its launch."""

from typing import Annotated

import msgspec

from roundtrip.chain.rpc.client import Meter
from roundtrip.services.holders.collect import gather_holders
from roundtrip.services.holders.findings import HolderFindings, HolderRecord, HolderWin, find
from roundtrip.services.holders.launch_bundle import LaunchBundle, present_launch_bundle
from roundtrip.services.holders.present import MOST_LISTED, market_cap_usd, of_holders, present, smart_wallets
from roundtrip.services.holders.schema import HoldersParams, OfHolders, SmartWallet, TokenHolders
from roundtrip.services.holders.text import smart_text, status_text, token_text
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.support.index_reader import eth_text, quote_token
from roundtrip.store.index.tokens import Label

_READING_TTL_MS = 2000
"""Who waits for a busy token's whole answer does not wait for an answer without it to grow old."""


class SmartMoney(OfHolders, frozen=True, rename="camel"):
    """Wallets in profit on the winners list that bought the token and hold it."""

    market_cap_usd: float | None
    holding: Annotated[int | None, msgspec.Meta(description="null: not known.")]
    sold_out: Annotated[
        int | None, msgspec.Meta(description="How many of them bought it and sold it all again.")
    ]
    wallets: Annotated[list[SmartWallet], msgspec.Meta(description="At most 100, the nearest board first.")]


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


_SAID = 3


def present_smart_money(gathered: HolderRecord) -> SmartMoney:
    """The answer."""
    found = find(gathered)
    return SmartMoney(
        **of_holders(gathered, _text(gathered, found)),
        market_cap_usd=market_cap_usd(gathered),
        holding=None if found.smart is None else len(found.smart.holding),
        sold_out=None if found.smart is None else found.smart.sold_out,
        wallets=smart_wallets(gathered, found),
    )


def _text(gathered: HolderRecord, found: HolderFindings) -> list[str]:
    said = status_text(gathered)
    if gathered.read is None:
        return [*said, "Which wallets of the winners list hold it is not known before that."]
    smart = found.smart
    if smart is None:
        return [*said, *smart_text(gathered, found)]
    said += [f"This is about {token_text(gathered)}.", *smart_text(gathered, found)]
    said += [_line(one) for one in smart.holding[:_SAID]]
    more = len(smart.holding) - MOST_LISTED
    if more > 0:
        said.append(f"{more:,} more hold it and are not listed.")
    if smart.holding:
        said.append("That winners hold it is no proof that it can be sold, and they may sell at any moment.")
    return said


def _line(one: HolderWin) -> str:
    board = "of all time" if one.window == "all" else f"of the last {one.window}"
    said = f"{one.wallet} is rank {one.rank} {board} with {eth_text(one.profit_wei)}"
    if one.best is None:
        return f"{said}."
    label = Label(one.best.token, one.best.symbol, None, None, None)
    return f"{said}; its best ever was {quote_token(label)} with {eth_text(one.best.profit_wei)}."
