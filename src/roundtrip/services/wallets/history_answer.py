"""The answer on a wallet's history, as fields and as text, from the index and the node."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Literal

import msgspec

from roundtrip.chain.holders.wallet_views import WalletToken, WalletViews
from roundtrip.domain.base.figures import format_count, format_eth
from roundtrip.domain.base.types import BPS, WEI_PER_ETH, Address, plain_decimal
from roundtrip.domain.check.price import USDG_UNIT
from roundtrip.domain.market.profit import value_held
from roundtrip.domain.wallets.linked import FirstSeen, is_exchange
from roundtrip.services.support.answer_fields import (
    Graduated,
    SoldOutAt,
    SoldOwn,
    WalletAddress,
    says,
    scam_text,
)
from roundtrip.services.support.index_reader import (
    IndexAnswer,
    TokenNamed,
    eth,
    present_token,
    quote_token,
    share_bps,
    when,
)
from roundtrip.store.index.cursor import Cursor
from roundtrip.store.index.deployers import MAX_LAUNCHES, DeployerLaunches
from roundtrip.store.index.tokens import Label
from roundtrip.store.wallets.wallets import (
    MAX_ROWS,
    ClosingsSummary,
    LastTrade,
    OpenPosition,
    TradeTotals,
    WalletClosing,
    WalletClosings,
    WalletLaunch,
)

OriginStatus = Literal["known", "searching", "unknown"]
Phase = Literal["curve", "between", "graduated", "rescued", "pool"]

Eth = Annotated[float, says("In eth.")]
Bps = Annotated[int, says("In hundredths of a percent.")]


class FunderAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """Who first sent the wallet eth in a plain transfer."""

    address: Annotated[str, says("The funder's wallet.")]
    wallets_funded: Annotated[int, says("Wallets that it first sent eth to; counted up to 501.")]
    exchange_like: Annotated[bool, says("true: over 500 wallets, as exchanges and bridges do.")]


class LaunchRow(msgspec.Struct, frozen=True, rename="camel"):
    """A token that the wallet launched, and what became of it."""

    token: Annotated[TokenNamed, says("The token.")]
    launched_at: Annotated[datetime, says("When it was launched.")]
    phase: Annotated[
        Phase,
        says(
            "curve: on its curve. between: the curve is over, no pool yet. graduated: became a pool. "
            "rescued: taken back by the launchpad. pool: launched straight into a pool."
        ),
    ]
    fill_bps: Annotated[
        int | None,
        says("How full the curve is, in hundredths of a percent. null: not on the curve, or not known."),
    ]
    sold_bps: Annotated[
        int | None,
        says(
            "How much the wallet sold of what it bought of it, in hundredths of a percent. "
            "null: it bought none."
        ),
    ]


class LaunchesAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """Launches, and how they ended."""

    count: Annotated[int, says("Launches onto curves; counted up to the newest 200.")]
    graduated: Graduated
    sold_own: SoldOwn
    into_pools: Annotated[int, says("Launches straight into a pool, in no other count.")]
    rows: Annotated[tuple[LaunchRow, ...], says("The newest launches, at most 10.")]


class ClosingAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """A token that the wallet had bought and sold out of."""

    token: Annotated[TokenNamed, says("The token.")]
    at: SoldOutAt
    spent_eth: Annotated[Eth, says("What it paid, in eth.")]
    got_eth: Annotated[Eth, says("What it received, in eth.")]
    profit_eth: Annotated[Eth, says("Profit in eth; below zero: a loss.")]


class RecordAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """The trading record. A round is closed when the wallet has sold out of a token and the worth of
    everything that it paid and got is known."""

    trades: Annotated[int, says("Trades of the wallet.")]
    buys: Annotated[int, says("Buys.")]
    sells: Annotated[int, says("Sells.")]
    tokens: Annotated[int, says("Different tokens that it traded.")]
    closed: Annotated[
        int, says("Rounds closed: tokens that it sold out of, with the worth of every trade known.")
    ]
    won: Annotated[int, says("Rounds closed with a profit.")]
    win_rate_bps: Annotated[int | None, says("won of closed, in hundredths of a percent. null: none closed.")]
    profit_eth: Annotated[float, says("Profit of the closed rounds, losses subtracted, in eth.")]
    spent_eth: Annotated[float, says("Paid in all buys of known worth, in eth.")]
    got_eth: Annotated[
        float, says("Received in sells of what it had bought, where the worth is known, in eth.")
    ]
    unpriced: Annotated[int, says("Trades without a known worth in eth.")]
    best: Annotated[ClosingAnswer | None, says("The closed round with the most profit. null: none closed.")]
    worst: Annotated[ClosingAnswer | None, says("The closed round with the largest loss. null: none.")]
    partial: Annotated[bool, says("true: only the newest 4,000 tokens and rounds are counted.")]


class RecentAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """The last 30 days in short."""

    tokens: Annotated[int, says("Tokens last traded in these 30 days.")]
    closed: Annotated[int, says("Rounds closed.")]
    won: Annotated[int, says("Rounds closed with a profit.")]
    win_rate_bps: Annotated[int | None, says("won of closed, in hundredths of a percent. null: none closed.")]
    profit_eth: Annotated[float, says("Profit of these rounds, losses subtracted, in eth.")]
    partial: Annotated[bool, says("true: there is more than is counted.")]


class HoldingAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """A token that the wallet bought and has not sold, by the index, and what it really holds of it."""

    token: Annotated[TokenNamed, says("The token.")]
    amount: Annotated[
        str | None,
        says(
            "What it holds in whole tokens, a decimal number, read from the token. null: could not be read."
        ),
    ]
    amount_raw: Annotated[str | None, says("The same in base units. null: could not be read.")]
    bought_raw: Annotated[str, says("What is left of what it bought, by its trades, in base units.")]
    supply_bps: Annotated[
        int | None,
        says("Share of the total supply that it holds, in hundredths of a percent. null: not known."),
    ]
    entry_eth: Annotated[
        float | None, says("Average price of a whole token over all its buys, in eth. null: not known.")
    ]
    entry_usd: Annotated[
        float | None, says("Average price of a whole token over all its buys, in dollars. null: not known.")
    ]
    worth_eth: Annotated[
        float | None,
        says(
            "What it holds at the price of the token's last trade, in eth; no proof that "
            "it sells. null: not known."
        ),
    ]
    priced_at: Annotated[datetime | None, says("Time of that last trade. null: not known.")]
    cost_eth: Annotated[
        float | None,
        says(
            "What it paid, on average, for what is left of what it bought since it last had sold out, in "
            "eth. null: not known."
        ),
    ]
    gain_eth: Annotated[
        float | None,
        says(
            "Worth of what is left of its buys, less costEth, in eth. null: not known, or it no longer "
            "holds some of what it did not sell."
        ),
    ]
    last_traded_at: Annotated[datetime, says("When the wallet last traded it.")]


class HoldingsAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """What the wallet holds. A wallet may hold what it never traded: that is not here."""

    at_block: Annotated[int | None, says("Block of the balances. null: they could not be read.")]
    eth: Annotated[float | None, says("Eth that it holds. null: could not be read.")]
    weth: Annotated[float | None, says("Wrapped eth that it holds. null: could not be read.")]
    usdg: Annotated[float | None, says("Usdg that it holds. null: could not be read.")]
    count: Annotated[int, says("Tokens that it bought and has not sold out of, by its trades.")]
    rows: Annotated[tuple[HoldingAnswer, ...], says("Those that cost it most, at most 20.")]


class WalletHistory(IndexAnswer, frozen=True, rename="camel"):
    """Where a wallet comes from, what it launched, how it traded, what it holds."""

    address: WalletAddress
    contract: Annotated[bool | None, says("true: a contract, not a wallet. null: could not be read.")]
    origin_status: Annotated[
        OriginStatus,
        says(
            "known: age and funder are certain. searching: older blocks are being read, "
            "ask again. unknown: could not be found out, or the wallet was never met."
        ),
    ]
    first_seen: Annotated[datetime | None, says("When the wallet was first seen. null: not known.")]
    age_days: Annotated[int | None, says("Days since firstSeen. null: not known.")]
    funder: Annotated[
        FunderAnswer | None, says("The wallet that first sent it eth in a plain transfer. null: none known.")
    ]
    launches: Annotated[LaunchesAnswer, says("Tokens that it launched.")]
    record: Annotated[RecordAnswer, says("Its trading record.")]
    last30_days: Annotated[RecentAnswer, says("Its last 30 days.")]
    holdings: Annotated[HoldingsAnswer, says("What it holds of what it bought.")]


_DAY_S = 86_400


@dataclass(frozen=True, slots=True)
class WalletRecord:
    """What the index knows of a wallet. ``family``: number of wallets that its funder was the first to send
    eth. ``scams``: how many people mark it, or its funder, as a scam."""

    index_cursor: Cursor
    scams: Mapping[Address, int]
    family: int
    record: DeployerLaunches
    into_pools: int
    launches: Sequence[WalletLaunch]
    traded: TradeTotals
    ended: ClosingsSummary
    held: Sequence[OpenPosition]
    last_trades: Mapping[int, LastTrade]
    labels: Mapping[int, Label]


@dataclass(frozen=True, slots=True)
class WalletBeginning:
    """The wallet's origin; None: it is not known for sure."""

    origin: FirstSeen | None
    status: OriginStatus


def present(
    chain_id: int,
    wallet: Address,
    beginning: WalletBeginning,
    record: WalletRecord,
    at_block: int | None,
    views: WalletViews,
) -> WalletHistory:
    """The answer. ``at_block``: the block that ``views`` are of; None: the node did not answer."""
    block = record.index_cursor.block
    age_days = (
        None if beginning.origin is None else max(0, block.timestamp_s - beginning.origin.first_s) // _DAY_S
    )
    return WalletHistory(
        text=_describe_wallet(wallet, beginning, age_days, record, views),
        chain_id=chain_id,
        block=block.number,
        block_time=when(block.timestamp_s),
        address=wallet,
        contract=views.is_contract,
        origin_status=beginning.status,
        first_seen=None if beginning.origin is None else when(beginning.origin.first_s),
        age_days=age_days,
        funder=_present_funder(beginning.origin, record.family),
        launches=_present_launches(record),
        record=_present_record(record),
        last30_days=_present_recent(record.traded, record.ended.recent),
        holdings=_present_holdings(record, at_block, views),
    )


def _present_funder(origin: FirstSeen | None, family: int) -> FunderAnswer | None:
    if origin is None or origin.funder is None:
        return None
    return FunderAnswer(origin.funder, family, is_exchange(family))


# --- launches --------------------------------------------------------------------------------------


def _present_launches(record: WalletRecord) -> LaunchesAnswer:
    deployer = record.record
    rows = tuple(_present_launch(launch, record.labels[launch.token_id]) for launch in record.launches)
    return LaunchesAnswer(deployer.launches, deployer.graduated, deployer.sold_own, record.into_pools, rows)


def _present_launch(launch: WalletLaunch, label: Label) -> LaunchRow:
    phase = _find_phase(launch)
    return LaunchRow(
        token=present_token(label),
        launched_at=when(launch.at_s),
        phase=phase,
        fill_bps=_compute_fill_bps(launch) if phase == "curve" else None,
        sold_bps=share_bps(min(launch.sold_raw, launch.bought_raw), launch.bought_raw),
    )


def _find_phase(launch: WalletLaunch) -> Phase:
    """The phase of the launch, by the last of its steps. Generation 1 launches straight into a pool."""
    if launch.generation == 1:
        return "pool"
    if "rescued" in launch.steps:
        return "rescued"
    if "pooled" in launch.steps:
        return "graduated"
    return "between" if "swept" in launch.steps else "curve"


def _compute_fill_bps(launch: WalletLaunch) -> int | None:
    if launch.raised_raw is None or not launch.threshold_raw:
        return None
    return max(0, min(BPS, launch.raised_raw * BPS // launch.threshold_raw))


# --- the record ------------------------------------------------------------------------------------


def _present_record(record: WalletRecord) -> RecordAnswer:
    totals, closings = record.traded, record.ended.all
    return RecordAnswer(
        trades=totals.buys + totals.sells,
        buys=totals.buys,
        sells=totals.sells,
        tokens=totals.tokens,
        closed=closings.closed,
        won=closings.won,
        win_rate_bps=share_bps(closings.won, closings.closed),
        profit_eth=eth(closings.got_wei - closings.spent_wei),
        spent_eth=eth(totals.spent_wei),
        got_eth=eth(totals.got_wei),
        unpriced=totals.unpriced,
        best=_present_closing(record.ended.best, record.labels),
        worst=_present_closing(record.ended.worst, record.labels),
        partial=totals.is_part or closings.is_part,
    )


def _present_recent(totals: TradeTotals, recent: WalletClosings) -> RecentAnswer:
    return RecentAnswer(
        tokens=totals.recent_tokens,
        closed=recent.closed,
        won=recent.won,
        win_rate_bps=share_bps(recent.won, recent.closed),
        profit_eth=eth(recent.got_wei - recent.spent_wei),
        partial=totals.is_part or recent.is_part,
    )


def _present_closing(closing: WalletClosing | None, labels: Mapping[int, Label]) -> ClosingAnswer | None:
    if closing is None:
        return None
    profit_wei = closing.got_wei - closing.spent_wei
    token = present_token(labels[closing.token_id])
    return ClosingAnswer(
        token, when(closing.at_s), eth(closing.spent_wei), eth(closing.got_wei), eth(profit_wei)
    )


# --- holdings --------------------------------------------------------------------------------------


def _present_holdings(record: WalletRecord, at_block: int | None, views: WalletViews) -> HoldingsAnswer:
    rows = []
    for position in record.held:
        label = record.labels[position.token_id]
        balance = views.tokens.get(label.address, WalletToken())
        rows.append(_present_holding(position, label, balance, record.last_trades.get(position.token_id)))
    return HoldingsAnswer(
        at_block=at_block,
        eth=_to_eth(views.eth_wei),
        weth=_to_eth(views.weth_wei),
        usdg=None if views.usdg_raw is None else views.usdg_raw / USDG_UNIT,
        count=record.traded.held,
        rows=tuple(rows),
    )


def _present_holding(
    position: OpenPosition, label: Label, balance: WalletToken, last_trade: LastTrade | None
) -> HoldingAnswer:
    amount = balance.amount_raw
    decimals = balance.decimals if label.decimals is None else label.decimals
    supply = balance.supply_raw if label.supply_raw is None else label.supply_raw
    # An average over only a part of its trades would be wrong.
    spent_wei = None if position.unpriced else position.spent_wei
    # A balance above the supply is false.
    believed = amount if amount is not None and (supply is None or amount <= supply) else None
    worth_wei = value = None
    if believed is not None and last_trade is not None:
        worth_wei = believed * last_trade.eth_wei // last_trade.token_raw
    if believed is not None and not position.round_unpriced:
        value = value_held(position.held_raw, position.cost_wei, believed, worth_wei)
    return HoldingAnswer(
        token=present_token(label),
        amount=None if amount is None or decimals is None else plain_decimal(amount, decimals),
        amount_raw=None if amount is None else str(amount),
        bought_raw=str(position.held_raw),
        supply_bps=None if believed is None else share_bps(believed, supply),
        entry_eth=_price_each(spent_wei, position.bought_raw, decimals, WEI_PER_ETH),
        entry_usd=_price_each(position.spent_micro_usd, position.bought_raw, decimals, USDG_UNIT),
        worth_eth=_to_eth(worth_wei),
        priced_at=None if worth_wei is None or last_trade is None else when(last_trade.at_s),
        cost_eth=None if value is None else eth(value.cost_wei),
        gain_eth=None if value is None else _to_eth(value.gain_wei),
        last_traded_at=when(position.last_s),
    )


def _price_each(paid: int | None, token_raw: int, decimals: int | None, unit: int) -> float | None:
    """The price of one whole token in whole units of the money; None: not known."""
    if paid is None or decimals is None or not token_raw:
        return None
    whole: int = 10**decimals
    return paid * whole / (token_raw * unit)


def _to_eth(wei: int | None) -> float | None:
    return None if wei is None else eth(wei)


# --- in words --------------------------------------------------------------------------------------


def _describe_wallet(
    wallet: Address,
    beginning: WalletBeginning,
    age_days: int | None,
    record: WalletRecord,
    views: WalletViews,
) -> str:
    """The answer's text; warnings come first."""
    sentences = [*_describe_scams(wallet, record.scams), *_describe_contract(views)]
    sentences += [*_describe_origin(beginning, age_days, record.family, views), *_describe_launches(record)]
    return " ".join([*sentences, *_describe_record(record), *_describe_holdings(record, views)])


def _describe_scams(wallet: Address, scams: Mapping[Address, int]) -> list[str]:
    return [
        scam_text("This wallet" if wallet_or_funder == wallet else f"Its funder {wallet_or_funder}", people)
        for wallet_or_funder, people in scams.items()
    ]


def _describe_contract(views: WalletViews) -> list[str]:
    return ["This address is a contract, not a person's wallet."] if views.is_contract else []


def _describe_origin(
    beginning: WalletBeginning, age_days: int | None, family: int, views: WalletViews
) -> list[str]:
    if beginning.origin is None:
        if beginning.status == "searching":
            return ["We are searching older blocks for its age and funder: ask again in a few minutes."]
        return [
            "Its age and funder are not known: the index saw nothing reach it, or does not show whether that "
            "was the first."
        ]
    days = format_count(age_days, "day") if age_days else "less than a day"
    since = f"It was first seen {when(beginning.origin.first_s):%Y-%m-%d %H:%M} UTC, {days} ago."
    # Sending eth to a contract also calls it, so it is no plain transfer.
    plainly = "" if views.is_contract else " in a plain transfer"
    if beginning.origin.funder is None:
        return [since, f"We know of no wallet that sent it eth{plainly}."]
    if is_exchange(family):
        funder_note = "which sent over 500 wallets their first eth: probably an exchange or a bridge"
    elif family:
        funder_note = f"which sent {format_count(family, 'wallet its', 'wallets their')} first eth"
    else:
        funder_note = "an older wallet"
    return [since, f"Its first eth{plainly} came from {beginning.origin.funder}, {funder_note}."]


def _describe_launches(record: WalletRecord) -> list[str]:
    deployer, into_pools = record.record, record.into_pools
    if not deployer.launches and not into_pools:
        return ["It launched no token that we know of."]
    sentences = []
    if deployer.launches:
        at_least = "at least " if deployer.launches >= MAX_LAUNCHES else ""
        launches, sold_own = format_count(deployer.launches, "token"), deployer.sold_own or "none"
        sentences.append(
            f"It launched {at_least}{launches}: {deployer.graduated or 'none'} graduated. It sold half or "
            f"more of what it had bought of {sold_own} of them."
        )
    if into_pools:
        sentences.append(f"It launched {format_count(into_pools, 'token')} straight into a pool.")
    newest = record.launches[0] if record.launches else None
    if newest is not None:
        sentences.append(f"The newest is {quote_token(record.labels[newest.token_id])}.")
    return sentences


def _describe_record(record: WalletRecord) -> list[str]:
    totals, closings = record.traded, record.ended.all
    if not totals.tokens:
        return ["We know of no trade by it."]
    buys, sells = format_count(totals.buys, "buy"), format_count(totals.sells, "sell")
    sentences = [f"It traded {format_count(totals.tokens, 'token')}: {buys} and {sells}."]
    if closings.closed:
        profit_wei = closings.got_wei - closings.spent_wei
        gain = "profit" if profit_wei >= 0 else "loss"
        total, positions = format_eth(abs(profit_wei)), format_count(closings.closed, "position")
        won = closings.won or "none"
        sentences.append(f"It closed {positions}, {won} with a profit: a total {gain} of {total}.")
    else:
        sentences.append("It has closed no position with a known value, so no profit counts.")
    best = record.ended.best
    if best is not None and best.got_wei > best.spent_wei:
        gained = format_eth(best.got_wei - best.spent_wei)
        token = quote_token(record.labels[best.token_id])
        sentences.append(f"Its best position was {token} with a profit of {gained}.")
    if totals.is_part or closings.is_part:
        sentences.append(f"There is more: only the newest {MAX_ROWS:,} are counted.")
    return sentences


def _describe_holdings(record: WalletRecord, views: WalletViews) -> list[str]:
    sentences = []
    if record.traded.held:
        listed = f"; {len(record.held)} are listed" if record.traded.held > len(record.held) else ""
        sentences.append(f"By its trades it still holds {format_count(record.traded.held, 'token')}{listed}.")
    else:
        sentences.append("By its trades it holds no token.")
    if views.eth_wei is not None:
        sentences.append(f"It has {format_eth(views.eth_wei)}.")
    unread = [position for position in record.held if not _is_read(views, record.labels[position.token_id])]
    if not views.tokens and views.eth_wei is None:
        sentences.append("We could not read what it holds now: the chain did not answer. Ask again.")
    elif unread:
        sentences.append("The balance of some tokens could not be read.")
    if any(position.token_id in record.last_trades for position in record.held) and views.tokens:
        sentences.append(
            "Values are from the last trade of each token. They do not prove that it can be sold."
        )
    return [*sentences, "It may also hold tokens that it never traded: those are not listed."]


def _is_read(views: WalletViews, label: Label) -> bool:
    return views.tokens.get(label.address, WalletToken()).amount_raw is not None
