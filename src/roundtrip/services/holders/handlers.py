"""The tools token_holders, smart_money and launch_bundle."""

from typing import Annotated

import msgspec

from roundtrip.chain.rpc.client import Meter
from roundtrip.domain.base.figures import format_count, format_eth
from roundtrip.services.holder_record.collect import gather_holders
from roundtrip.services.holder_record.findings import HolderFindings, HolderRecord, summarize
from roundtrip.services.holders.growth import HolderGrowth, present_growth
from roundtrip.services.holders.insiders import keep_insiders
from roundtrip.services.holders.launch_bundle import LaunchBundle, present_launch_bundle
from roundtrip.services.holders.present import (
    MAX_LISTED,
    common_fields,
    market_cap_usd,
    present,
    smart_wallets,
)
from roundtrip.services.holders.schema import OfHolders, SmartWallet, TokenHolders
from roundtrip.services.holders.text import large_buy_text, smart_text, status_text, token_text
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.support.answer_fields import TokenParams, says
from roundtrip.services.support.index_reader import quote_token
from roundtrip.store.holders.smart_money import BoardRow, WinningClose
from roundtrip.store.index.tokens import Label

_READING_TTL_MS = 2000
"""Callers that wait for a busy token's full answer must not get a cached partial one for long."""


class SmartMoney(OfHolders, frozen=True, rename="camel"):
    """Wallets in profit on the winners list that bought the token and hold it."""

    market_cap_usd: Annotated[float | None, says("Market cap now, in dollars. null: not known.")]
    holding: Annotated[int | None, says("Winners that hold the token. null: not known.")]
    sold_out: Annotated[int | None, says("Winners that bought it and sold all of it. null: not known.")]
    wallets: Annotated[list[SmartWallet], says("Winners that hold it, at most 100, the nearest board first.")]


async def token_holders(ctx: Context, params: TokenParams) -> UseCaseAnswer[TokenHolders]:
    """The full answer, as far as transfers are read. Raises CallerFault (bad_address, not_a_token),
    NodeFault, ReadFailed (holders_failed), ServiceFull."""
    meter = Meter()
    record = await gather_holders(ctx, params.token(), meter)
    answer = present(record)
    await keep_insiders(ctx, answer)
    return UseCaseAnswer(answer, ttl_ms(ctx, record), meter=meter)


def ttl_ms(ctx: Context, record: HolderRecord) -> int:
    """How long an answer is cached and shared."""
    return _READING_TTL_MS if record.status == "reading" else ctx.policy.answer_ttl_ms


async def smart_money(ctx: Context, params: TokenParams) -> UseCaseAnswer[SmartMoney]:
    """Which winners hold the token. Raises as ``token_holders``."""
    meter = Meter()
    record = await gather_holders(ctx, params.token(), meter)
    return UseCaseAnswer(present_smart_money(record), ttl_ms(ctx, record), meter=meter)


async def launch_bundle(ctx: Context, params: TokenParams) -> UseCaseAnswer[LaunchBundle]:
    """Who bought in the launch window. Raises as ``token_holders``."""
    meter = Meter()
    record = await gather_holders(ctx, params.token(), meter)
    return UseCaseAnswer(present_launch_bundle(record), ttl_ms(ctx, record), meter=meter)


class HoldersPage(msgspec.Struct, frozen=True):
    """The answers as their operations give them, of the same block. ``large_buy``: the sentence about the
    first large buy after the launch; empty: there was none."""

    held: TokenHolders
    launched: LaunchBundle
    grown: HolderGrowth
    large_buy: str


async def holders_page(ctx: Context, params: TokenParams) -> UseCaseAnswer[HoldersPage]:
    """The answers from one read. Raises as ``token_holders``."""
    meter = Meter()
    record = await gather_holders(ctx, params.token(), meter)
    large_buy = " ".join(large_buy_text(record))
    page = HoldersPage(present(record), present_launch_bundle(record), present_growth(record), large_buy)
    await keep_insiders(ctx, page.held)
    return UseCaseAnswer(page, ttl_ms(ctx, record), meter=meter)


_MAX_NAMED = 3


def present_smart_money(record: HolderRecord) -> SmartMoney:
    """Builds the answer."""
    summary = summarize(record)
    return SmartMoney(
        **common_fields(record, *_text(record, summary)),
        market_cap_usd=market_cap_usd(record),
        holding=None if summary.smart is None else len(summary.smart.holding),
        sold_out=None if summary.smart is None else summary.smart.sold_out,
        wallets=smart_wallets(record, summary),
    )


def _text(record: HolderRecord, summary: HolderFindings) -> tuple[list[str], list[str]]:
    """The sentences about all winners, and a row for each of the first three."""
    sentences = status_text(record)
    if record.full_inputs is None:
        return [*sentences, "Which wallets on the winners list hold it is not known before that."], []
    sentences += smart_text(record, summary, token_text(record))
    holding = [] if summary.smart is None else summary.smart.holding
    if len(holding) > MAX_LISTED:
        more = format_count(len(holding) - MAX_LISTED, "more holds it and is", "more hold it and are")
        sentences.append(f"{more} not listed.")
    if holding:
        sentences.append("That does not prove that you can sell it, and they may sell at any moment.")
    return sentences, [_winner_text(win, record.biggest_wins.get(win.wallet)) for win in holding[:_MAX_NAMED]]


def _winner_text(win: BoardRow, best: WinningClose | None) -> str:
    board = "of all time" if win.span == "all" else f"of the last {win.span}"
    sentence = f"{win.wallet} is rank {win.rank:,} {board} with a profit of {format_eth(win.profit_wei)}"
    if best is None:
        return f"{sentence}."
    label = Label(best.token, best.symbol, None, None, None)
    return f"{sentence}. Its best token ever was {quote_token(label)} with {format_eth(best.profit_wei)}."
