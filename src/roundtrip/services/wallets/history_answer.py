"""A wallet's history, from what the index and the node told, for people and programs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Literal

import msgspec

from roundtrip.chain.holders.wallet_views import WalletToken, WalletViews
from roundtrip.domain.base.types import BPS, WEI_PER_ETH, Address, plain_decimal
from roundtrip.domain.check.price import USDG_UNIT
from roundtrip.domain.wallets.linked import is_exchange
from roundtrip.services.support.index_reader import (
    IndexAnswer,
    TokenNamed,
    eth,
    eth_text,
    present_token,
    quote_token,
    share_bps,
    when,
)
from roundtrip.services.wallets.names import scam_text
from roundtrip.store.index.cursor import Cursor
from roundtrip.store.index.deployers import MOST_LAUNCHES, DeployerLaunches
from roundtrip.store.index.origins import StoredOrigin
from roundtrip.store.index.tokens import Label
from roundtrip.store.wallets.wallets import (
    MOST_ROWS,
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

Eth = Annotated[float, msgspec.Meta(description="In eth.")]
Bps = Annotated[int, msgspec.Meta(description="In hundredths of a percent.")]


class FunderAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """Who first sent the wallet eth in a plain transfer."""

    address: str
    wallets_funded: Annotated[
        int, msgspec.Meta(description="How many wallets it first sent eth to; counted up to 501.")
    ]
    exchange_like: Annotated[
        bool, msgspec.Meta(description="It first sent eth to over 500 wallets, as exchanges and bridges do.")
    ]


class LaunchRow(msgspec.Struct, frozen=True, rename="camel"):
    """A token that the wallet launched, and what became of it."""

    token: TokenNamed
    launched_at: datetime
    phase: Annotated[
        Phase,
        msgspec.Meta(
            description="curve: on its curve; between: the curve is over and no pool there yet; graduated: "
            "it became a pool; rescued: taken back by the launchpad; pool: launched straight into a pool."
        ),
    ]
    fill_bps: Annotated[
        int | None,
        msgspec.Meta(
            description="On the curve: how full it is, in hundredths of a percent; null: not known."
        ),
    ]
    sold_bps: Annotated[
        int | None,
        msgspec.Meta(
            description="How much of what the wallet itself bought of it was sold, in hundredths of a "
            "percent; null: it bought none."
        ),
    ]


class LaunchesAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """Launches, and how they ended."""

    count: Annotated[int, msgspec.Meta(description="Launches with a curve; counted up to the newest 200.")]
    graduated: Annotated[int, msgspec.Meta(description="Those of them that became a pool.")]
    sold_own: Annotated[
        int, msgspec.Meta(description="Those of them of which it sold half or more of what it bought.")
    ]
    into_pools: Annotated[
        int, msgspec.Meta(description="Launches straight into a pool, which are in no other count.")
    ]
    rows: Annotated[tuple[LaunchRow, ...], msgspec.Meta(description="The newest, at most 10.")]


class ClosingAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """A token that the wallet had bought and sold out of."""

    token: TokenNamed
    at: datetime
    spent_eth: Eth
    got_eth: Eth
    profit_eth: Eth


class RecordAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """The trading record. A round is closed when the wallet has sold out of a token and the worth of
    everything that it paid and got is known."""

    trades: int
    buys: int
    sells: int
    tokens: int
    closed: Annotated[int, msgspec.Meta(description="Rounds closed.")]
    won: Annotated[int, msgspec.Meta(description="Rounds closed with a profit.")]
    win_rate_bps: Annotated[
        int | None, msgspec.Meta(description="Won of closed, in hundredths of a percent; null: none closed.")
    ]
    profit_eth: Annotated[float, msgspec.Meta(description="Of closed rounds only, in eth.")]
    spent_eth: Annotated[float, msgspec.Meta(description="Paid in all buys whose worth is known, in eth.")]
    got_eth: Annotated[
        float,
        msgspec.Meta(description="Got in sells of what it had bought, where the worth is known, in eth."),
    ]
    unpriced: Annotated[int, msgspec.Meta(description="Trades whose worth in eth is not known.")]
    best: ClosingAnswer | None
    worst: ClosingAnswer | None
    partial: Annotated[
        bool,
        msgspec.Meta(description="There is more than is counted: the newest 4,000 tokens and rounds are."),
    ]


class RecentAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """The last 30 days in short."""

    tokens: Annotated[int, msgspec.Meta(description="Tokens whose newest trade was then.")]
    closed: int
    won: int
    win_rate_bps: int | None
    profit_eth: Annotated[float, msgspec.Meta(description="Of rounds closed then, in eth.")]
    partial: Annotated[bool, msgspec.Meta(description="There is more than is counted.")]


class HoldingAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """A token that the wallet bought and has not sold, by the index, and what it really holds of it."""

    token: TokenNamed
    amount: Annotated[
        str | None,
        msgspec.Meta(description="What it holds by the token itself, whole tokens; null: could not be read."),
    ]
    amount_raw: Annotated[str | None, msgspec.Meta(description="The same in base units.")]
    bought_raw: Annotated[
        str, msgspec.Meta(description="What is left of what it bought, by its trades, in base units.")
    ]
    supply_bps: Annotated[
        int | None,
        msgspec.Meta(description="What it holds of all there are, in hundredths of a percent."),
    ]
    entry_eth: Annotated[
        float | None,
        msgspec.Meta(
            description="What a whole token cost on average over all its buys, in eth; null: unknown."
        ),
    ]
    entry_usd: Annotated[
        float | None,
        msgspec.Meta(description="What a whole token cost on average over all its buys, in dollars."),
    ]
    worth_eth: Annotated[
        float | None,
        msgspec.Meta(
            description="What it holds at the price of the token's last trade, in eth; no proof of a sell."
        ),
    ]
    priced_at: Annotated[datetime | None, msgspec.Meta(description="When that last trade was.")]
    last_traded_at: Annotated[datetime, msgspec.Meta(description="When the wallet last traded it.")]


class HoldingsAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """What the wallet holds. A wallet may hold what it never traded: that is not here."""

    at_block: Annotated[
        int | None, msgspec.Meta(description="The block balances were read at; null: they could not be.")
    ]
    eth: Annotated[float | None, msgspec.Meta(description="Eth; null: could not be read.")]
    weth: Annotated[float | None, msgspec.Meta(description="Wrapped eth; null: could not be read.")]
    usdg: Annotated[float | None, msgspec.Meta(description="Usdg, in dollars; null: could not be read.")]
    count: Annotated[
        int, msgspec.Meta(description="Tokens that it bought and has not sold out of, by its trades.")
    ]
    rows: Annotated[
        tuple[HoldingAnswer, ...], msgspec.Meta(description="Those that cost it most, at most 20.")
    ]


class WalletHistory(IndexAnswer, frozen=True, rename="camel"):
    """Where a wallet comes from, what it launched, how it traded, what it holds."""

    address: str
    contract: Annotated[
        bool | None, msgspec.Meta(description="It is a contract and no wallet; null: could not be read.")
    ]
    origin_status: Annotated[
        OriginStatus,
        msgspec.Meta(
            description="known: age and funder are known for sure; searching: older blocks are being looked "
            "through, ask again; unknown: could not be found out, or the wallet was never met."
        ),
    ]
    first_seen: datetime | None
    age_days: int | None
    funder: FunderAnswer | None
    launches: LaunchesAnswer
    record: RecordAnswer
    last30_days: RecentAnswer
    holdings: HoldingsAnswer


_DAY_S = 86_400


@dataclass(frozen=True, slots=True)
class WalletRecord:
    """All that the index tells of a wallet. ``family``: how many wallets its funder first sent eth to.
    ``scams``: how many people mark it, or its funder, as a scam."""

    stands: Cursor
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
    """Where the wallet comes from, as far as that is known for sure."""

    origin: StoredOrigin | None
    status: OriginStatus


def present(
    chain_id: int,
    wallet: Address,
    came: WalletBeginning,
    known: WalletRecord,
    at_block: int | None,
    views: WalletViews,
) -> WalletHistory:
    """The answer. ``at_block``: the block that ``views`` are of; None: the node did not answer."""
    block = known.stands.block
    age_days = None if came.origin is None else max(0, block.timestamp_s - came.origin.first_s) // _DAY_S
    return WalletHistory(
        text=text_of(wallet, came, age_days, known, views),
        chain_id=chain_id,
        block=block.number,
        block_time=when(block.timestamp_s),
        address=wallet,
        contract=views.is_contract,
        origin_status=came.status,
        first_seen=None if came.origin is None else when(came.origin.first_s),
        age_days=age_days,
        funder=_funder(came.origin, known.family),
        launches=_launches(known),
        record=_record(known),
        last30_days=_recent(known.traded, known.ended.recent),
        holdings=_holdings(known, at_block, views),
    )


def _funder(origin: StoredOrigin | None, family: int) -> FunderAnswer | None:
    if origin is None or origin.funder is None:
        return None
    return FunderAnswer(origin.funder, family, is_exchange(family))


# --- launches --------------------------------------------------------------------------------------


def _launches(known: WalletRecord) -> LaunchesAnswer:
    record = known.record
    rows = tuple(_launch(one, known.labels[one.token_id]) for one in known.launches)
    return LaunchesAnswer(record.launches, record.graduated, record.sold_own, known.into_pools, rows)


def _launch(launched: WalletLaunch, label: Label) -> LaunchRow:
    phase = phase_of(launched)
    return LaunchRow(
        token=present_token(label),
        launched_at=when(launched.at_s),
        phase=phase,
        fill_bps=_fill_bps(launched) if phase == "curve" else None,
        sold_bps=share_bps(min(launched.sold_raw, launched.bought_raw), launched.bought_raw),
    )


def phase_of(launched: WalletLaunch) -> Phase:
    """Where the launch stands, by the last of its steps."""
    if launched.generation == 1:
        return "pool"
    if "rescued" in launched.steps:
        return "rescued"
    if "pooled" in launched.steps:
        return "graduated"
    return "between" if "swept" in launched.steps else "curve"


def _fill_bps(launched: WalletLaunch) -> int | None:
    if launched.raised_raw is None or not launched.threshold_raw:
        return None
    return max(0, min(BPS, launched.raised_raw * BPS // launched.threshold_raw))


# --- the record ------------------------------------------------------------------------------------


def _record(known: WalletRecord) -> RecordAnswer:
    traded, closings = known.traded, known.ended.all
    return RecordAnswer(
        trades=traded.buys + traded.sells,
        buys=traded.buys,
        sells=traded.sells,
        tokens=traded.tokens,
        closed=closings.closed,
        won=closings.won,
        win_rate_bps=share_bps(closings.won, closings.closed),
        profit_eth=eth(closings.got_wei - closings.spent_wei),
        spent_eth=eth(traded.spent_wei),
        got_eth=eth(traded.got_wei),
        unpriced=traded.unpriced,
        best=_closing(known.ended.best, known.labels),
        worst=_closing(known.ended.worst, known.labels),
        partial=traded.is_part or closings.is_part,
    )


def _recent(traded: TradeTotals, recent: WalletClosings) -> RecentAnswer:
    return RecentAnswer(
        tokens=traded.recent_tokens,
        closed=recent.closed,
        won=recent.won,
        win_rate_bps=share_bps(recent.won, recent.closed),
        profit_eth=eth(recent.got_wei - recent.spent_wei),
        partial=traded.is_part or recent.is_part,
    )


def _closing(one: WalletClosing | None, labels: Mapping[int, Label]) -> ClosingAnswer | None:
    if one is None:
        return None
    profit_wei = one.got_wei - one.spent_wei
    token = present_token(labels[one.token_id])
    return ClosingAnswer(token, when(one.at_s), eth(one.spent_wei), eth(one.got_wei), eth(profit_wei))


# --- holdings --------------------------------------------------------------------------------------


def _holdings(known: WalletRecord, at_block: int | None, views: WalletViews) -> HoldingsAnswer:
    rows = []
    for held in known.held:
        label = known.labels[held.token_id]
        seen = views.tokens.get(label.address, WalletToken())
        rows.append(_holding(held, label, seen, known.last_trades.get(held.token_id)))
    return HoldingsAnswer(
        at_block=at_block,
        eth=_in_eth(views.eth_wei),
        weth=_in_eth(views.weth_wei),
        usdg=None if views.usdg_raw is None else views.usdg_raw / USDG_UNIT,
        count=known.traded.held,
        rows=tuple(rows),
    )


def _holding(held: OpenPosition, label: Label, seen: WalletToken, last: LastTrade | None) -> HoldingAnswer:
    amount = seen.amount_raw
    decimals = seen.decimals if label.decimals is None else label.decimals
    supply = seen.supply_raw if label.supply_raw is None else label.supply_raw
    # An average of some of its trades would be made up.
    spent_wei = None if held.unpriced else held.spent_wei
    # A token that tells a wallet more than there is of it lies.
    believed = amount if amount is not None and (supply is None or amount <= supply) else None
    worth = None if believed is None or last is None else eth(believed * last.eth_wei // last.token_raw)
    return HoldingAnswer(
        token=present_token(label),
        amount=None if amount is None or decimals is None else plain_decimal(amount, decimals),
        amount_raw=None if amount is None else str(amount),
        bought_raw=str(held.held_raw),
        supply_bps=None if believed is None else share_bps(believed, supply),
        entry_eth=_each(spent_wei, held.bought_raw, decimals, WEI_PER_ETH),
        entry_usd=_each(held.spent_micro_usd, held.bought_raw, decimals, USDG_UNIT),
        worth_eth=worth,
        priced_at=None if worth is None or last is None else when(last.at_s),
        last_traded_at=when(held.last_s),
    )


def _each(paid: int | None, token_raw: int, decimals: int | None, unit: int) -> float | None:
    """What one whole token cost, in whole units of the money; None: not known."""
    if paid is None or decimals is None or not token_raw:
        return None
    whole: int = 10**decimals
    return paid * whole / (token_raw * unit)


def _in_eth(wei: int | None) -> float | None:
    return None if wei is None else eth(wei)


# --- in words --------------------------------------------------------------------------------------


def text_of(
    wallet: Address, came: WalletBeginning, age_days: int | None, known: WalletRecord, views: WalletViews
) -> str:
    """Plain sentences, one after the other: what to beware of first."""
    said = [*_scam_text(wallet, known.scams), *_contract_text(views)]
    said += [*_origin_text(came, age_days, known.family, views), *_launch_text(known)]
    return " ".join([*said, *_record_text(known), *_holdings_text(known, views)])


def _scam_text(wallet: Address, scams: Mapping[Address, int]) -> list[str]:
    return [
        scam_text("This wallet" if one == wallet else f"Its funder {one}", people)
        for one, people in scams.items()
    ]


def _contract_text(views: WalletViews) -> list[str]:
    return ["This address is a contract, not a person's wallet."] if views.is_contract else []


def _origin_text(came: WalletBeginning, age_days: int | None, family: int, views: WalletViews) -> list[str]:
    if came.origin is None:
        if came.status == "searching":
            return ["Its age and funder are being looked for in older blocks: ask again in a while."]
        return [
            "Its age and funder are not known: the index saw nothing reach it, or cannot tell whether that "
            "was the first."
        ]
    days = "less than a day" if not age_days else "1 day" if age_days == 1 else f"{age_days:,} days"
    since = f"It was first seen {when(came.origin.first_s):%Y-%m-%d %H:%M} UTC, {days} ago."
    # What sends a contract eth calls it.
    plainly = "" if views.is_contract else " in a plain transfer"
    if came.origin.funder is None:
        return [since, f"Nobody is known to have sent it eth{plainly}."]
    if is_exchange(family):
        also = "who sent over 500 wallets their first eth: probably an exchange or a bridge"
    elif family:
        also = f"who sent {family:,} wallet{' its' if family == 1 else 's their'} first eth"
    else:
        also = "an older wallet"
    return [since, f"Its first eth{plainly} came from {came.origin.funder}, {also}."]


def _launch_text(known: WalletRecord) -> list[str]:
    record, into_pools = known.record, known.into_pools
    if not record.launches and not into_pools:
        return ["It launched no token."]
    said = []
    if record.launches:
        least = "at least " if record.launches >= MOST_LAUNCHES else ""
        tokens = "token" if record.launches == 1 else "tokens"
        said.append(
            f"It launched {least}{record.launches:,} {tokens}: {record.graduated or 'none'} graduated, and "
            f"of {record.sold_own or 'none'} it sold half or more of what it had bought."
        )
    if into_pools:
        said.append(f"It launched {into_pools:,} straight into a pool.")
    newest = known.launches[0] if known.launches else None
    if newest is not None:
        said.append(f"The newest is {quote_token(known.labels[newest.token_id])}.")
    return said


def _record_text(known: WalletRecord) -> list[str]:
    traded, closings = known.traded, known.ended.all
    if not traded.tokens:
        return ["It made no trade that the index knows of."]
    tokens = "token" if traded.tokens == 1 else "tokens"
    said = [f"It traded {traded.tokens:,} {tokens}: {_buys_and_sells(traded)}."]
    if closings.closed:
        profit_wei = closings.got_wei - closings.spent_wei
        gain = "a profit" if profit_wei >= 0 else "a loss"
        times = "once" if closings.closed == 1 else f"{closings.closed:,} times"
        said.append(
            f"It bought and sold out {times}, {closings.won or 'none'} of them with a profit; "
            f"that makes {gain} of {eth_text(abs(profit_wei))} in all."
        )
    else:
        said.append("It has not bought and sold out of anything whose worth is known, so no profit counts.")
    best = known.ended.best
    if best is not None and best.got_wei > best.spent_wei:
        gained = eth_text(best.got_wei - best.spent_wei)
        said.append(f"Its best was {quote_token(known.labels[best.token_id])} with {gained}.")
    if traded.is_part or closings.is_part:
        said.append(f"There is more: only the newest {MOST_ROWS:,} are counted.")
    return said


def _buys_and_sells(traded: TradeTotals) -> str:
    buys = f"{traded.buys:,} buy{'' if traded.buys == 1 else 's'}"
    return f"{buys} and {traded.sells:,} sell{'' if traded.sells == 1 else 's'}"


def _holdings_text(known: WalletRecord, views: WalletViews) -> list[str]:
    said = []
    if known.traded.held:
        tokens = "token" if known.traded.held == 1 else "tokens"
        some = f"; {len(known.held)} are listed" if known.traded.held > len(known.held) else ""
        said.append(f"By its trades it still holds {known.traded.held:,} {tokens}{some}.")
    else:
        said.append("By its trades it holds no token.")
    if views.eth_wei is not None:
        said.append(f"It has {eth_text(views.eth_wei)}.")
    unread = [one for one in known.held if not _is_read(views, known.labels[one.token_id])]
    if not views.tokens and views.eth_wei is None:
        said.append("What it really holds could not be read just now: the chain did not answer.")
    elif unread:
        said.append("Of some tokens the balance could not be read.")
    if any(one.token_id in known.last_trades for one in known.held) and views.tokens:
        said.append("Worth is by the last trade of each token and no proof that it can be sold.")
    return [*said, "It may also hold tokens that it never traded: those are not listed."]


def _is_read(views: WalletViews, label: Label) -> bool:
    return views.tokens.get(label.address, WalletToken()).amount_raw is not None
